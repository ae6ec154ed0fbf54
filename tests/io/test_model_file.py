"""The model file: same fit, same bytes; the same answers after loading; and no harm from bad files."""

import io
import json
import pickle
import re
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

from hostile.model_files import checksum_of, contents, part_of, sealed, written
from icqf import ICQF
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.io.model_file import VERSION, StoredModel, write_model

IDS = [f"participant-{i:03d}" for i in range(57)]


@pytest.fixture(scope="module")
def data():
    return make_synthetic(57, 12, 3, noise=0.1, missing=0.05, confounded=True, random_state=0)


@pytest.fixture(scope="module")
def answers(data):
    return pd.DataFrame(data.answers, columns=[f"q{j}" for j in range(12)], index=IDS)


@pytest.fixture(scope="module")
def people(data):
    age, sex = data.confounds.T
    return pd.DataFrame({"age": age, "sex": np.where(sex > 0, "Female", "Male")}, index=IDS)


@pytest.fixture(scope="module")
def model(answers, people):
    model = ICQF(3, item_range=(0, 100), confound_ranges={"age": (5, 20)}, random_state=0)
    return model.fit(answers, confounds=people)


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.icqf"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def load(tmp_path):
    def from_bytes(content):
        path = tmp_path / "some.icqf"
        path.write_bytes(content)
        return ICQF.load(path)

    return from_bytes


def with_header(content, **changes):
    parts = contents(content)
    header = json.loads(parts["model.json"]) | changes
    return sealed(parts | {"model.json": _json(header)})


def refused(load, content, match="some.icqf: "):
    """One sentence about the file, and nothing else."""
    with pytest.raises(InputError, match=match) as caught:
        load(content)
    message = str(caught.value)
    assert "some.icqf: " in message and "\n" not in message and message.endswith(".")
    return message


def same_model(a, b):
    """The same loadings to the bit, and the same file."""
    ours, theirs = a.describe(), b.describe()
    return (
        a.components_.tobytes() == b.components_.tobytes()
        and a.confound_loadings_.equals(b.confound_loadings_)
        and a.loadings_.equals(b.loadings_)
        and a.item_range_.equals(b.item_range_)
        and ours.header == theirs.header
        and all(ours.arrays[name].tobytes() == theirs.arrays[name].tobytes() for name in ours.arrays)
        and [*ours.arrays] == [*theirs.arrays]
    )


# --- a good file -----------------------------------------------------------------------------------


def test_the_same_fit_has_the_same_bytes(model, answers, people, content, tmp_path):
    again = ICQF(3, item_range=(0, 100), confound_ranges={"age": (5, 20)}, random_state=0)
    again.fit(answers, confounds=people).save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == content


def test_loading_and_saving_gives_the_same_bytes(load, content, tmp_path):
    load(content).save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == content


def test_a_loaded_model_does_the_same(model, load, content, answers, people):
    loaded = load(content)
    assert same_model(model, loaded)
    new, who = answers.iloc[5:20] * 0.9, people.iloc[5:20]
    np.testing.assert_array_equal(loaded.transform(new, confounds=who), model.transform(new, confounds=who))
    scores = model.transform(new, confounds=who)
    np.testing.assert_array_equal(
        loaded.inverse_transform(scores, confounds=who), model.inverse_transform(scores, confounds=who)
    )
    assert loaded.score(new, confounds=who) == model.score(new, confounds=who)
    ours, theirs = loaded.summary(), model.summary()
    pd.testing.assert_frame_equal(ours.items, theirs.items, atol=0.01)
    pd.testing.assert_frame_equal(ours.factors, theirs.factors, atol=0.001)
    assert loaded.objective_ == pytest.approx(model.objective_, rel=1e-5)
    assert list(loaded.feature_names_in_) == list(answers.columns)
    with pytest.raises(InputError, match="'Diverse' for participant 'participant-005'"):
        loaded.transform(new, confounds=who.assign(sex="Diverse"))


def test_a_loaded_model_keeps_its_parameters_and_can_be_fitted_again(model, load, content, answers, people):
    loaded = load(content)
    ours, theirs = loaded.get_params(), model.get_params()
    for name in set(ours) - {"item_range", "confound_ranges", "random_state"}:
        assert ours[name] == theirs[name], name
    assert loaded.fit(answers, confounds=people).components_.tobytes() == model.components_.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "admm", "max_iter": 2000},
        {"penalty": "l21", "beta": np.float64(0.5), "max_iter": 2000},
        {"score_max": None, "loading_max": None, "reconstruction_max": None, "intercept": False},
        {"dtype": np.float64, "init": "rotated", "n_init": 2},
        {"missing_confounds": "mean"},
    ],
)
def test_every_kind_of_model_comes_back(data, options, tmp_path):
    model = ICQF(2, item_range=(0, 100), **options).fit(data.answers, confounds=data.confounds)
    model.save(tmp_path / "m.icqf")
    loaded = ICQF.load(tmp_path / "m.icqf")
    assert same_model(model, loaded)
    assert not hasattr(loaded, "feature_names_in_")
    np.testing.assert_array_equal(
        loaded.transform(data.answers, confounds=data.confounds),
        model.transform(data.answers, confounds=data.confounds),
    )


def test_a_start_from_arrays_and_a_callback_are_left_out(data, tmp_path):
    """They are objects of the running program, and the scores of a start are participants' data."""
    model = ICQF(3, item_range=(0, 100), init=(data.scores, data.loadings), callback=lambda progress: None)
    model.fit(data.answers).save(tmp_path / "m.icqf")
    loaded = ICQF.load(tmp_path / "m.icqf")
    assert loaded.init == "nndsvd" and loaded.callback is None
    assert same_model(model, loaded)


def test_items_with_all_sorts_of_names(data, tmp_path):
    names = [
        "Schläft schlecht",
        "睡眠",
        "a/b\\c",
        "../x",
        "q\n1",
        "'quoted\"",
        " ",
        "=1+1",
        "n",
        "o",
        "p",
        "q",
    ]
    model = ICQF(2, item_range=(0, 100)).fit(pd.DataFrame(data.answers, columns=names))
    model.save(tmp_path / "m.icqf")
    assert list(ICQF.load(tmp_path / "m.icqf").feature_names_in_) == names


def test_the_file_holds_no_participants_data(content, answers, people):
    parts = contents(content)
    assert IDS[0][:-3].encode() not in content
    header = json.loads(parts["model.json"])
    numbers = set(re.findall(rb"-?\d+\.\d+", parts["model.json"]))
    ages = {repr(float(age)).encode() for age in people["age"]}
    ages -= {repr(float(people["age"].mean())).encode()}
    assert not numbers & ages
    assert header["n_participants"] == 57
    for name, array in parts.items():
        if not name.endswith(".json") and not name.startswith("trace_"):
            assert 57 not in array.shape, name
            single = {float(x) for x in answers.to_numpy().ravel() if 0 < x < 100}
            assert not single & set(array.ravel()), name


def test_a_file_holds_no_more_digits_than_scores_need(content):
    """Six digits of a loading, and three of sums over participants, from which answers could be found."""
    parts = contents(content)
    arrays = {name: part for name, part in parts.items() if not name.endswith(".json")}
    for name in ("components", "confound_components"):
        mantissa = np.frexp(arrays.pop(name))[0] * 2**20
        np.testing.assert_array_equal(mantissa, np.rint(mantissa))
    for name in ("item_range", "item_scale", "solving_order", "missing"):  # declared, or counts
        arrays.pop(name)
    for name, numbers in arrays.items():
        digits = 6 if name in ("starts", "replication") else 3
        assert all(float(f"{each:.{digits - 1}e}") == each for each in numbers.ravel()), name
    header = json.loads(parts["model.json"])
    assert float(f"{header['objective']:.5e}") == header["objective"]
    assert all(float(f"{each:.2e}") == each for each in header["certificate"].values())


def test_the_file_is_json_and_plain_numbers(content):
    """Read by the library for such files as by hand: all types and places are right."""
    parts = safetensors.numpy.load(content)
    assert {name: part.dtype.name for name, part in parts.items()} == {
        name: "uint8" if name.endswith(".json") else "float64" for name in contents(content)
    }
    assert all(
        part.tobytes()
        == bytes(contents(content)[name].data if part.dtype == float else contents(content)[name])
        for name, part in parts.items()
    )
    assert isinstance(json.loads(parts["model.json"].tobytes()), dict)


def test_the_codebook_travels_with_the_model(model, answers, tmp_path):
    """Through every load and save; its ranges are those of the fit, and it describes all items."""
    items = [Item("q0", "Sad", reverse=True, missing_codes=(999, "?"), labels=((0, "no"),)), Item("other")]
    model.save(tmp_path / "m.icqf", items=items, id="code")
    loaded = ICQF.load(tmp_path / "m.icqf")
    known = loaded.codebook_
    assert known.id == "code" and [item.name for item in known.items] == list(answers.columns)
    assert known.items[0] == replace(items[0], min=0, max=100)
    assert known.items[1] == Item("q1", min=0, max=100)
    assert same_model(model, loaded)
    loaded.save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == (tmp_path / "m.icqf").read_bytes()
    assert model.codebook_ == StoredCodebook()


def test_a_model_of_a_questionnaire_has_its_codebook(answers, tmp_path):
    study = Questionnaire.of(answers.rename_axis("code"), item_range=(0, 100))
    items = (replace(study.items[0], reverse=True), *study.items[1:])
    ICQF(2).fit(replace(study, items=items)).save(tmp_path / "m.icqf")
    assert ICQF.load(tmp_path / "m.icqf").codebook_ == StoredCodebook(items, "code")


@pytest.fixture
def labelled(answers, people, tmp_path):
    """The members of a model file whose codebook says what the values of a confound mean."""
    study = Questionnaire.of(answers.rename_axis("code"), item_range=(0, 100), confounds=people)
    entry = Item("sex", "Sex", missing_codes=(-9,), labels=((1, "f"), (2, "m")), min=1, max=2, reverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ICQF(2).fit(replace(study, confound_entries=(Item("other"), entry))).save(tmp_path / "m.icqf")
    return contents((tmp_path / "m.icqf").read_bytes())


def test_what_the_values_of_confounds_mean_travels_with_the_model(load, labelled, tmp_path):
    """Of the model's own confounds, and nothing but names, labels and missing codes."""
    loaded = load(sealed(labelled))
    assert loaded.codebook_.confounds == (
        Item("sex", "Sex", missing_codes=(-9.0,), labels=((1.0, "f"), (2.0, "m"))),
    )
    loaded.save(tmp_path / "again.icqf", items=[Item("q0", reverse=True)])
    assert ICQF.load(tmp_path / "again.icqf").codebook_.confounds == loaded.codebook_.confounds


@pytest.mark.parametrize(
    "change",
    [
        {"name": "age2"},
        {"name": 5},
        {"min": 1.0, "max": 2.0},
        {"reverse": True},
        {"reverse": 0},
        {"labels": [["1", "f"]]},
        {"labels": [[1.0, 2]]},
        {"labels": [[1.0]]},
        {"labels": 3},
        {"missing_codes": [[1]]},
        {"missing_codes": "9"},
        {"more": 1},
        {"wording": None},
    ],
)
def test_what_no_model_says_of_a_confound_is_refused(load, labelled, change):
    codebook = json.loads(labelled["codebook.json"])
    (entry,) = codebook["confounds"]
    refused(load, sealed(labelled | {"codebook.json": _json(codebook | {"confounds": [entry | change]})}))
    refused(load, sealed(labelled | {"codebook.json": _json(codebook | {"confounds": [entry, entry]})}))
    refused(load, sealed(labelled | {"codebook.json": _json(codebook | {"confounds": None})}))
    without = {name: part for name, part in codebook.items() if name != "confounds"}
    refused(load, sealed(labelled | {"codebook.json": _json(without)}))


def _json(content):
    return json.dumps(content).encode()


def test_an_unwritable_place_leaves_nothing_behind(model, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "m.icqf")
    (tmp_path / "folder.icqf").mkdir()
    with pytest.raises(OSError, match=r"folder\.icqf"):
        model.save(tmp_path / "folder.icqf")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.icqf"]


# --- bad files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_a_damaged_file_is_refused(load, content, flip):
    """Wherever one byte differs, be it in a name, a number or a space."""
    for at in range(flip % 5, len(content), 5):
        damaged = bytearray(content)
        damaged[at] ^= flip
        refused(load, bytes(damaged))


def test_a_truncated_file_is_refused(load, content):
    for length in range(0, len(content), 11):
        refused(load, content[:length])


@pytest.mark.parametrize("name", ["model.json", "codebook.json", "sse", "trace_step"])
def test_every_part_is_needed(model, load, tmp_path, name):
    model.save(tmp_path / "m.icqf", items=[Item("q0", reverse=True)])
    content = (tmp_path / "m.icqf").read_bytes()
    parts = contents(content)
    assert same_model(model, load(sealed(parts)))
    without = {other: part for other, part in parts.items() if other != name}
    if name != "codebook.json":  # a model need not have one
        refused(load, sealed(without))
    old = checksum_of(content)
    refused(load, written([part_of(*each) for each in without.items()], old), "its checksum is wrong")
    refused(load, sealed(parts | {"more": parts["sse"]}), "its arrays are not those of a model")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"gone\.icqf: there is no such file\."):
        ICQF.load(tmp_path / "gone.icqf")
    with pytest.raises(InputError, match="not an icqf model file"):
        ICQF.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"id,q1\n1,2\n", b"PK", b"\x80\x04\x95" + bytes(50)])
def test_a_file_of_another_kind(load, content):
    refused(load, content, "this is not an icqf model file, or it is damaged .*Save the model again")


def test_a_file_of_an_earlier_format(load):
    """They were zip files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model.json", '{"format": "icqf-model", "version": 4}')
    refused(load, stream.getvalue(), "an earlier one, which is no longer read. Fit again")


def test_foreign_parts(load, content):
    foreign = safetensors.numpy.save({"weight": np.zeros(3)}, {"format": "pt"})
    refused(load, foreign, "this is not an icqf model file")
    refused(load, sealed({"weight": np.zeros(3)}), "it lacks 'model.json'")
    refused(load, sealed({"model.json": b"{}"}), "it is another kind of file")
    refused(load, sealed({"model.json": b"[1, 2]"}), "its JSON is not that of a model")
    refused(load, sealed({"model.json": b"{"}), "damaged")
    refused(load, sealed({"model.json": b"\xff\xfe"}), "damaged")
    refused(load, sealed({"model.json": b"[" * 100_000}), "damaged")
    refused(load, sealed({"model.json": np.zeros(3)}), "damaged")


def test_a_newer_file(load, content):
    message = refused(load, with_header(content, version=VERSION + 1))
    assert f"file format {VERSION + 1}, but this icqf reads format {VERSION}; install a newer icqf" in message
    refused(load, with_header(content, version="1"), "file format 1")


def test_a_file_that_is_too_large(load, content):
    parts = contents(content)
    refused(load, sealed(parts | {"sse": np.zeros(15 * 2**20)}), "it is larger than any model")
    refused(
        load, sealed(parts | {"model.json": b" " * 9 * 2**20}), "its JSON is larger than that of any model"
    )
    names = {f"{at}{'x' * 1000}": np.zeros(0) for at in range(1000)}
    refused(load, sealed(parts | names), "it is larger than any model")


def test_a_model_that_is_too_large_is_not_saved(model, tmp_path):
    stored = model.describe()
    large = StoredModel(stored.header, stored.arrays | {"sse": np.zeros(15 * 2**20)}, stored.codebook)
    with pytest.raises(InputError, match="the model is too large for a model file"):
        write_model(tmp_path / "m.icqf", large)
    assert not [*tmp_path.iterdir()]


def test_a_pickle_inside_is_not_run(load, content, tmp_path):
    ran = tmp_path / "ran"

    class Harm:
        def __reduce__(self):
            return (ran.touch, ())

    harm = pickle.dumps(Harm())
    refused(load, sealed(contents(content) | {"components": harm}), "holds uint8 instead of double precision")
    refused(load, sealed(contents(content) | {"model.json": harm}), "damaged")
    refused(load, harm, "not an icqf model file")
    assert not ran.exists()


def test_arrays_that_do_not_fit(load, content):
    parts = contents(content)

    def without(name, value, why):
        refused(load, sealed(parts | {name: value}), why)

    without("components", np.ones((3, 5)), r"'components' has the shape \(3, 5\)")
    without("components", np.full((3, 12), np.nan), "not a finite number")
    without("components", np.ones((3, 12), "f4"), "float32 instead of double")
    without("item_range", np.ones((12, 2)), "range of an item")
    without("sse", np.ones(3), "'sse' has the shape")
    without("solving_order", np.array([0.0, 0.0, 1.0]), "order of the factors")
    short = {name: part for name, part in parts.items() if name != "sst"}
    refused(load, sealed(short), "incomplete .it lacks the array 'sst'")


@pytest.mark.parametrize(
    "changes",
    [
        {"items": ["q0"]},
        {"items": None},
        {"parameters": {"n_components": 3, "unknown": 1}},
        {"parameters": {"n_components": 3, "beta": "much"}},
        {"parameters": []},
        {"confounds": {}},
        {"confounds": {"intercept": True, "missing": "error", "columns": [1]}},
        {"certificate": {"gain": 1}},
        {"certificate": None},
        {"trace": [1]},
        {"trace": None},
        {"trace": ["objective", "nothing"]},
        {"objective": "low"},
        {"n_iter": None},
        {"arrays": None},
        {"arrays": ["components"]},
        {"dtype": "float8"},
        {"items_named": {}, "parameters": {"n_components": 3, "dtype": "int8"}},
    ],
)
def test_a_header_that_makes_no_sense(load, content, changes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(load, with_header(content, **changes))
