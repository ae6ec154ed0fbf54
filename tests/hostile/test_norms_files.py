"""Norms files: two of nearly the same sample tell little of one participant; forged ones are refused."""

import copy

import numpy as np
import pandas as pd
import pytest

from hostile import norms_files
from icqf import InputError
from icqf.analyses import Norms, learn_norms
from icqf.resampling import folds


def test_two_files_hardly_tell_the_score_of_one_who_is_in_one_of_them():
    found = norms_files.told(norms_files.alone, 300, practice=60, tries=80)
    assert found.right < 0.62 and found.error > 0.9 * found.chance, found


@pytest.mark.long
def test_the_attack_works_where_everybody_is_used(monkeypatch):
    monkeypatch.setattr(folds, "LEFT_OUT", 0.0)
    found = norms_files.told(norms_files.alone, 300, practice=60, tries=80)
    assert found.right > 0.75 and found.error < 0.5 * found.chance, found


@pytest.mark.long
@pytest.mark.parametrize("n", [100, 1000])
def test_with_age_and_sex_two_files_tell_little(n):
    found = norms_files.told(norms_files.skewed, n, practice=150, tries=100)
    assert found.right < 0.7 and found.error > 0.8 * found.chance, found


def test_one_participant_more_draws_others():
    rng = np.random.default_rng(3)
    scores, covariates = norms_files.skewed(401, rng)
    one, other = (learn_norms(scores[:n], covariates[:n]).to_dict() for n in (400, 401))
    assert one["n_participants"] == other["n_participants"] == 380
    assert one["reference"] == other["reference"]
    levels = [np.array(each["factors"][0]["curves"]["levels"]) for each in (one, other)]
    assert len(levels[0]) != len(levels[1]) or np.abs(levels[0] - levels[1]).max() > 0.02


@pytest.fixture(scope="module")
def stored():
    scores, covariates = norms_files.skewed(300, np.random.default_rng(5))
    return learn_norms(scores, covariates).to_dict()


def test_a_forged_file_does_not_make_work_explode(stored):
    assert Norms.from_dict(copy.deepcopy(stored)).n_participants == 290
    many = np.linspace(0, 1, 100_000)
    curves = stored["factors"][0]["curves"]
    forged = [
        ("knots", [many.tolist()]),
        ("thresholds", many.tolist()),
        ("levels", many.tolist()),
        ("shape", np.ones((len(curves["levels"]), 5000)).tolist()),
        ("tails", [1e400, 1.0]),
    ]
    for name, value in forged:
        wrong = copy.deepcopy(stored)
        wrong["factors"][0]["curves"][name] = value
        with pytest.raises(ValueError, match=r"norms have|not valid"):
            Norms.from_dict(wrong)
    crowd = copy.deepcopy(stored)
    crowd["covariates"][1]["categories"] = [f"g{i}" for i in range(100_000)]
    crowd["factors"][0]["curves"]["crossed"] = True
    with pytest.raises(ValueError, match="more knots or categories than norms have"):
        Norms.from_dict(crowd)


def test_codes_of_another_kind_are_refused_and_not_compared(stored):
    known = Norms.from_dict(stored)
    scores = pd.DataFrame({"mood": [0.2, 0.4, 0.3]})
    for codes in ([1, 2, 1], ["f", "m", "f"], [1, 1, 1]):
        with pytest.raises(InputError, match="categories 'female', 'male', but here it is"):
            known.percentiles(scores, pd.DataFrame({"age": [10.0] * 3, "sex": codes}))
    for words in (["female", "male", "other"], ["other"] * 3, ["female", None, "male"]):
        ranks = known.percentiles(scores, pd.DataFrame({"age": [10.0] * 3, "sex": words}))["mood"]
        assert ranks.notna().tolist() == [word in ("female", "male") for word in words]
    coded = learn_norms(
        norms_files.skewed(300, np.random.default_rng(5))[0],
        {"sex": np.resize([1, 2], 300)},
    )
    with pytest.raises(InputError, match="here it is '0', '1'"):
        coded.percentiles(scores, {"sex": [0, 1, 1]})
    assert coded.percentiles(scores, {"sex": [1, 2, 3]})["mood"].notna().tolist() == [True, True, False]
