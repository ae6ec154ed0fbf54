"""Options survive being written as TOML and read again."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf.errors import InputError
from icqf.workflow.options import RULES, StudyOptions, counts, read_config

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
            "rule": st.sampled_from(RULES),
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
        ({"n_components": 0}, "between 1"),
        ({"n_components": "8-2"}, "lower one first"),
        ({"n_components": True}, "auto"),
        ({"beta": []}, "one number or several"),
        ({"n_splits": 1}, "at least 2"),
        ({"jobs": 0}, "processes"),
        ({"intercept": "yes"}, "true or false"),
        ({"format": "docx"}, "choose one of"),
        ({"confound_ranges": ["age"]}, "age=5:21"),
        ({"betas": 1}, "Did you mean 'beta'?"),
        ({"id": ""}, "give a name"),
    ],
)
def test_refusals(values, said):
    with pytest.raises(InputError, match="options") as caught:
        StudyOptions.of({"answers": "a.csv", **values})
    assert said in str(caught.value)


def test_counts():
    assert counts([2, "4-6", "5"]) == (2, 4, 5, 6)


@pytest.mark.parametrize("text", ["answers = ", "\xff", 'answers = "a.csv"\nid = 3'])
def test_a_damaged_config(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.toml"):
        read_config(path)
