"""Options survive being written as TOML and read again."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf import ICQF
from icqf.data.settings import choices_of
from icqf.errors import InputError
from icqf.workflow.options import StudyOptions, counts, read_config

names = st.text(min_size=1, max_size=8).filter(lambda text: text.strip() and "\x00" not in text)
numbers = st.floats(0, 10, allow_nan=False)


@given(
    st.fixed_dictionaries(
        {"answers": st.just("data/answers.csv")},
        optional={
            "codebook": st.just("items.csv"),
            "id": names,
            "confounds": st.lists(names, min_size=1, max_size=3),
            "confound_ranges": st.dictionaries(names, st.just([0, 5.5]), min_size=1, max_size=2),
            "missing_codes": st.lists(st.one_of(st.integers(-999, 999), names), min_size=1, max_size=3),
            "n_components": st.one_of(st.just("auto"), st.integers(1, 30), st.just("2-5")),
            "beta": st.one_of(numbers, st.lists(numbers, min_size=1, max_size=3)),
            "rule": st.sampled_from(choices_of("rule")),
            "intercept": st.booleans(),
            "seed": st.integers(0, 2**31),
            "tol": st.floats(1e-9, 1),
        },
    )
)
def test_round_trip(values):
    options = StudyOptions.of(values)
    again = StudyOptions.of(tomllib.loads(options.to_toml()))
    assert again == options


def test_paths_are_relative_to_the_file(tmp_path):
    study, results = tmp_path / "study", tmp_path / "out" / "results"
    study.mkdir()
    results.mkdir(parents=True)
    options = StudyOptions(study / "answers.csv", codebook=study / "items.csv")
    (results / "config.toml").write_text(options.to_toml(folder=results))
    assert '"../../study/answers.csv"' in (results / "config.toml").read_text()
    assert StudyOptions.of(read_config(results / "config.toml")) == options


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"n_components": 0}, "a number between 1 and"),
        ({"n_components": "8-2"}, "lower end first"),
        ({"n_components": True}, "'auto'"),
        ({"beta": []}, "one number or several"),
        ({"n_splits": 1}, "at least 2"),
        ({"jobs": 0}, "processes"),
        ({"intercept": "yes"}, "intercept must be true or false, not 'yes'."),
        ({"format": "docx"}, "choose one of"),
        ({"confound_ranges": ["age"]}, "age=5:21"),
        ({"betas": 1}, "Did you mean 'beta'?"),
        ({"groups": ""}, "groups must be a name"),
    ],
)
def test_refusals(values, said):
    with pytest.raises(InputError) as caught:
        StudyOptions.of({"answers": "a.csv", **values})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("beta", value) for value in (-1, float("nan"), float("inf"), True)),
        *(("n_init", value) for value in (0, 1.5, "one")),
        *(("tol", value) for value in (0, -1.0, "small")),
        *(("max_iter", value) for value in (0, True)),
        ("intercept", 1),
        ("penalty", "l3"),
        ("missing_confounds", "drop"),
    ],
)
def test_python_and_options_refuse_the_same_values_with_the_same_sentence(name, value):
    with pytest.raises(InputError) as of_the_model:
        ICQF(1, item_range=(0, 2), **{name: value}).fit([[0, 1], [2, 2], [0, 0]])
    with pytest.raises(InputError) as of_the_options:
        StudyOptions.of({"answers": "a.csv", name: value})
    assert str(of_the_model.value) == str(of_the_options.value)
    assert of_the_model.value.code == of_the_options.value.code == "parameter"
    assert of_the_model.value.fields["name"] == name


def test_counts():
    assert counts([2, "4-6", "5"]) == (2, 4, 5, 6)


@pytest.mark.parametrize("text", ["answers = ", "\xff", 'answers = "a.csv"\nid = 3'])
def test_a_damaged_config(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.toml"):
        read_config(path)
