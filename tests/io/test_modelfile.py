"""The model file: same fit, same bytes; the same answers after loading; and no harm from bad files."""

import hashlib
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

from icqf import ICQF
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.io.modelfile import VERSION

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


def entries(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts):
    """A zip file of these members, with the list of them that belongs to it."""
    contents = {name: part.encode() if isinstance(part, str) else part for name, part in parts.items()}
    contents.pop("members.json", None)
    checksums = {name: hashlib.sha256(part).hexdigest() for name, part in contents.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("members.json", json.dumps(checksums))
        for name, part in contents.items():
            archive.writestr(name, part)
    return stream.getvalue()


def with_header(content, **changes):
    parts = entries(content)
    header = json.loads(parts["model.json"]) | changes
    return zipped(parts | {"model.json": json.dumps(header)})


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
    parts = entries(content)
    assert not any(IDS[0][:-3].encode() in part for part in (content, *parts.values()))
    header = json.loads(parts["model.json"])
    numbers = set(re.findall(rb"-?\d+\.\d+", parts["model.json"]))
    ages = {repr(float(age)).encode() for age in people["age"]}
    ages -= {repr(float(people["age"].mean())).encode()}
    assert not numbers & ages
    assert header["n_participants"] == 57
    for name, part in parts.items():
        if name.endswith(".npy") and not name.startswith("trace_"):
            array = np.load(io.BytesIO(part), allow_pickle=False)
            assert 57 not in array.shape, name
            single = {float(x) for x in answers.to_numpy().ravel() if 0 < x < 100}
            assert not single & set(array.ravel()), name


def test_a_file_holds_no_more_digits_than_scores_need(content):
    """Six digits of a loading, and three of sums over participants, from which answers could be found."""
    parts = entries(content)
    arrays = {
        name.removesuffix(".npy"): np.load(io.BytesIO(part), allow_pickle=False)
        for name, part in parts.items()
        if name.endswith(".npy")
    }
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


def test_the_file_is_json_and_plain_arrays(content):
    parts = entries(content)
    assert {name.rsplit(".", 1)[1] for name in parts} == {"json", "npy"}
    for name, part in parts.items():
        if name.endswith(".npy"):
            assert np.load(io.BytesIO(part), allow_pickle=False).dtype == np.float64
        else:
            json.loads(part)


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
    return entries((tmp_path / "m.icqf").read_bytes())


def test_what_the_values_of_confounds_mean_travels_with_the_model(load, labelled, tmp_path):
    """Of the model's own confounds, and nothing but names, labels and missing codes."""
    loaded = load(zipped(labelled))
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
        {"more": 1},
        {"wording": None},
    ],
)
def test_what_no_model_says_of_a_confound_is_refused(load, labelled, change):
    codebook = json.loads(labelled["codebook.json"])
    (entry,) = codebook["confounds"]
    refused(load, zipped(labelled | {"codebook.json": _json(codebook | {"confounds": [entry | change]})}))
    refused(load, zipped(labelled | {"codebook.json": _json(codebook | {"confounds": [entry, entry]})}))
    refused(load, zipped(labelled | {"codebook.json": _json(codebook | {"confounds": None})}))
    without = {name: part for name, part in codebook.items() if name != "confounds"}
    refused(load, zipped(labelled | {"codebook.json": _json(without)}))


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
def test_a_damaged_file_is_refused_or_unharmed(model, load, content, flip):
    """Some bytes of a zip file (dates, attributes) mean nothing; no other may be changed unnoticed."""
    step, said, loaded = 5, [], []
    for at in range(flip % step, len(content), step):
        damaged = bytearray(content)
        damaged[at] ^= flip
        try:
            loaded.append(load(bytes(damaged)))
        except InputError as error:
            said.append(str(error))
    assert all(same_model(model, found) for found in loaded)
    assert all("some.icqf: " in message and "\n" not in message for message in said)
    assert len(said) > 0.6 * (len(said) + len(loaded))


def test_a_truncated_file_is_refused(load, content):
    for length in range(0, len(content), 11):
        refused(load, content[:length])


def test_a_damaged_codebook_is_refused(model, tmp_path):
    path = tmp_path / "some.icqf"
    model.save(path, items=[Item("q0", reverse=True)])
    content, said, known = path.read_bytes(), [], ICQF.load(path).codebook_
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            assert ICQF.load(path).codebook_ == known
        except InputError as error:
            said.append(str(error))
    assert said and all("some.icqf: " in message and "\n" not in message for message in said)


@pytest.mark.parametrize("name", ["members.json", "model.json", "codebook.json", "sse.npy", "trace_step.npy"])
def test_every_member_is_needed_and_has_its_checksum(model, load, tmp_path, name):
    model.save(tmp_path / "m.icqf", items=[Item("q0", reverse=True)])
    parts = entries((tmp_path / "m.icqf").read_bytes())
    assert same_model(model, load(plainly_zipped(parts)))
    refused(load, plainly_zipped({other: part for other, part in parts.items() if other != name}), "it")
    if name != "members.json":
        spoiled = plainly_zipped(parts | {name: parts[name] + b" "})
        refused(load, spoiled, f"'{name}' does not have its checksum")
    refused(load, plainly_zipped(parts | {"more.npy": parts["sse.npy"]}), "'more.npy' is no part of it")


def plainly_zipped(parts):
    """These members and no others, whatever the list of them says."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"gone\.icqf: there is no such file\."):
        ICQF.load(tmp_path / "gone.icqf")
    with pytest.raises(InputError, match="not an icqf model file"):
        ICQF.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"id,q1\n1,2\n", b"PK\x03\x04", b"\x80\x04\x95" + bytes(50)])
def test_a_file_of_another_kind(load, content):
    refused(load, content, "this is not an icqf model file, or it is damaged .*Save the model again")


def test_a_foreign_zip(load, content):
    refused(
        load,
        zipped({"word/document.xml": "<x/>"}),
        "this is not an icqf model file, or it is damaged .it lacks 'model.json'",
    )
    refused(load, plainly_zipped({"word/document.xml": "<x/>"}), "it holds no members.json")
    refused(load, zipped({"model.json": "{}"}), "it is another kind of zip file")
    refused(load, zipped({"model.json": "[1, 2]"}), "its JSON is not that of a model")
    refused(load, zipped({"model.json": "{"}), "damaged")
    refused(load, zipped({"model.json": b"\xff\xfe"}), "damaged")
    refused(load, zipped({"model.json": "[" * 100_000}), "damaged")


def test_a_newer_file(load, content):
    message = refused(load, with_header(content, version=VERSION + 1))
    assert f"file format {VERSION + 1}, and this icqf reads format {VERSION}; install a newer icqf" in message
    refused(load, with_header(content, version="1"), "file format 1")


def test_a_file_that_unpacks_to_too_much(load, content):
    parts = entries(content)
    bomb = zipped(parts | {"sse.npy": bytes(120 * 2**20)})
    assert len(bomb) < 2**20
    refused(load, bomb, "'sse.npy' would unpack to more than any model needs")
    refused(load, zipped(parts | {"model.json": b" " * 9 * 2**20}), "'model.json' would unpack to more than")


def test_an_entry_larger_than_it_says(load, content):
    """A bomb whose directory lies about its size is read no further than that size."""
    parts = entries(content)
    big = zipped(parts | {"model.json": parts["model.json"] + b" " * 10_000_000})
    true_size, claimed = len(parts["model.json"]) + 10_000_000, 1000
    lying = big.replace(true_size.to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    assert lying != big
    refused(load, lying)


def test_a_pickle_inside_is_not_run(load, content, tmp_path):
    ran = tmp_path / "ran"

    class Harm:
        def __reduce__(self):
            return (ran.touch, ())

    stream = io.BytesIO()
    objects = np.empty((3, 12), dtype=object)
    objects[:] = Harm()
    np.lib.format.write_array(stream, objects, allow_pickle=True)
    assert b"touch" in stream.getvalue()
    for name in ("components.npy", "trace_objective.npy"):
        parts = entries(content) | {name: stream.getvalue()}
        refused(load, zipped(parts), "holds object instead of double precision numbers")
    refused(load, zipped(entries(content) | {"components.npy": pickle.dumps(Harm())}), "damaged")
    refused(load, pickle.dumps(Harm()), "not an icqf model file")
    assert not ran.exists()


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0))
    return stream.getvalue()


def test_arrays_that_do_not_fit(load, content):
    parts = entries(content)
    refused(
        load, zipped(parts | {"components.npy": npy(np.ones((3, 5)))}), r"'components' has the shape \(3, 5\)"
    )
    refused(load, zipped(parts | {"components.npy": npy(np.full((3, 12), np.nan))}), "not a finite number")
    refused(
        load, zipped(parts | {"components.npy": npy(np.ones((3, 12), "f4"))}), "float32 instead of double"
    )
    refused(load, zipped(parts | {"item_range.npy": npy(np.ones((12, 2)))}), "range of an item")
    refused(load, zipped(parts | {"sse.npy": npy(np.ones(3))}), "'sse' has the shape")
    refused(load, zipped(parts | {"solving_order.npy": npy([0.0, 0.0, 1.0])}), "order of the factors")
    short = {name: part for name, part in parts.items() if name != "sst.npy"}
    refused(load, zipped(short), "incomplete .it lacks sst.npy")
    stream = io.BytesIO()
    promise = {"descr": "<f8", "fortran_order": False, "shape": (10**14,)}  # more than any memory holds
    np.lib.format.write_array_header_1_0(stream, promise)
    refused(
        load,
        zipped(parts | {"sse.npy": stream.getvalue() + bytes(96)}),
        "the array 'sse.npy' does not have as many numbers as it says",
    )


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


def test_an_encrypted_entry(load, content):
    damaged = bytearray(content)
    at = content.rindex(b"PK\x01\x02")
    damaged[at + 8] |= 1  # the directory marks the entry as encrypted
    refused(load, bytes(damaged), "encrypted")
