"""One file for a whole battery: the same bytes for the same fit, and no harm from damaged or made-up ones."""

import json
import random

import numpy as np
import pandas as pd
import pytest

from hostile import model_files
from hostile.model_files import contents, sealed
from icqf import ICQF
from icqf.datasets import make_battery
from icqf.errors import InputError
from icqf.models import MetaICQF


@pytest.fixture(scope="module")
def battery():
    return make_battery(n=60, n_items=(5, 6), n_factors=2, n_meta=2, absent=0.2, random_state=0).battery


@pytest.fixture(scope="module")
def model(battery):
    return MetaICQF(ICQF(2), meta_estimator=ICQF(2, item_weight="variance")).fit(battery)


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("meta") / "meta.icqf"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def load(tmp_path):
    def from_bytes(content):
        (tmp_path / "some.icqf").write_bytes(content)
        return MetaICQF.load(tmp_path / "some.icqf")

    return from_bytes


def test_the_same_model_after_loading(battery, model, content, load):
    again = load(content)
    pd.testing.assert_frame_equal(again.item_loadings_, model.item_loadings_)
    pd.testing.assert_frame_equal(again.transform(battery), model.transform(battery))
    assert again.n_participants_ == model.n_participants_


def test_the_same_bytes_for_the_same_fit(battery, content, tmp_path):
    MetaICQF(ICQF(2), meta_estimator=ICQF(2, item_weight="variance")).fit(battery).save(
        tmp_path / "again.icqf"
    )
    assert (tmp_path / "again.icqf").read_bytes() == content


def test_no_participant_is_in_it(battery, content):
    assert not any(str(id).encode() in content for id in battery.ids)


def test_damage_is_refused_or_does_not_matter(model, content, load):
    rng = random.Random(5)
    damages = [
        *(model_files.flip_bits, model_files.edit_bytes, model_files.zero_bytes, model_files.truncate),
        *(model_files.drop_bytes, model_files.add_bytes, model_files.edit_header),
        *(model_files.remove_member, model_files.duplicate_member, model_files.swap_members),
        *(model_files.rename_member, model_files.add_member, model_files.edit_member),
    ]
    refused = 0
    for turn in range(130):
        damaged = damages[turn % len(damages)](content, rng)
        try:
            again = load(damaged)
        except InputError:
            refused += 1
        else:
            assert again.item_loadings_.equals(model.item_loadings_)
    assert refused > 60


def header(members, name, **changes):
    return {name: json.dumps({**json.loads(members[name]), **changes}).encode()}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: header(m, "battery.json", instruments=["A"]),
        lambda m: header(m, "battery.json", instruments=["A", "A"]),
        lambda m: header(m, "battery.json", instruments=["A", "B", "C"]),
        lambda m: header(m, "battery.json", instruments=["A", "Z"]),
        lambda m: header(m, "battery.json", instruments=["A", ""]),
        lambda m: header(m, "battery.json", instruments="AB"),
        lambda m: header(m, "battery.json", instruments=["A", 3]),
        lambda m: header(m, "battery.json", format="icqf-model"),
        lambda m: header(m, "battery.json", more=1),
        lambda m: {"battery.json": b"[]"},
        lambda m: {"3/model.json": m["1/model.json"]},
        lambda m: {"extra": m["1/components"]},
        lambda m: {"../evil": m["1/components"]},
        lambda m: {"1/model.json": m["2/model.json"]},
        lambda m: {"meta/model.json": m["1/model.json"]},
        lambda m: {"meta/item_range": m["1/item_range"]},
        lambda m: {"1/components": m["2/components"]},
        lambda m: {f"meta/{n[2:]}": p for n, p in m.items() if n.startswith("1/")},
    ],
)
def test_a_forged_file_with_right_checksums_is_refused(content, load, change):
    members = contents(content)
    with pytest.raises(InputError) as error:
        load(sealed({**members, **change(members)}))
    assert "damaged" in str(error.value)


def test_a_newer_file_is_refused(content, load):
    members = contents(content)
    with pytest.raises(InputError, match="saved in file format 99, but this icqf reads format 3; install a"):
        load(sealed({**members, **header(members, "battery.json", version=99)}))


def test_a_part_that_is_missing_is_refused(content, load):
    members = contents(content)
    for name in ("battery.json", "1/model.json", "meta/model.json", "2/components"):
        with pytest.raises(InputError):
            load(sealed({key: part for key, part in members.items() if key != name}))


def test_a_file_that_is_too_large_is_refused(content, load):
    members = contents(content)
    long = json.dumps({"instruments": ["A" * (9 * 2**20)]}).encode()
    with pytest.raises(InputError, match="larger than that of any model"):
        load(sealed({**members, "battery.json": long}))
    many = {f"{at}/model.json": b"0" * (2**20) for at in range(1, 12)}
    with pytest.raises(InputError):
        load(sealed({**members, **many}))
    with pytest.raises(InputError, match="its arrays are not those of a model"):
        load(sealed({**members, **{f"1/{i}": members["1/components"] for i in range(60)}}))


def test_the_two_kinds_of_files_are_told_apart(battery, content, tmp_path):
    (tmp_path / "meta.icqf").write_bytes(content)
    with pytest.raises(InputError, match=r"model of a battery. Load it with MetaICQF.load"):
        ICQF.load(tmp_path / "meta.icqf")
    ICQF(2).fit(battery.instruments["A"]).save(tmp_path / "one.icqf")
    with pytest.raises(InputError, match=r"one questionnaire, not of a battery. Load it with ICQF.load"):
        MetaICQF.load(tmp_path / "one.icqf")
    with pytest.raises(InputError, match="no such file"):
        MetaICQF.load(tmp_path / "none.icqf")


def test_loaded_arrays_are_numbers(content, load):
    assert load(content).meta_.components_.dtype == np.float64
