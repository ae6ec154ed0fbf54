"""Divisions of a study: parts resemble the whole, are nested where they should be, and never mix."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf.datasets import make_cohort
from icqf.errors import InputError
from icqf.resampling.folds import deal_in_proportion, make_splits

SIZES = (0.8, 0.6, 0.4, 0.2, 1.0)


@pytest.fixture(scope="module")
def cohort():
    return make_cohort("hbn", 600)


def divided(cohort, n_splits=3, random_state=0, **changes):
    study = replace(cohort.questionnaire, **changes)
    return make_splits(study, cohort.diagnoses, sizes=SIZES, n_splits=n_splits, random_state=random_state)


def test_the_parts_are_the_shares_asked_for(cohort):
    for split in divided(cohort):
        assert len(split.held_out) == 120
        assert len(split.validation) == 96
        assert {size: len(rows) for size, rows in split.training.items()} == {
            0.8: 384,
            0.6: 288,
            0.4: 192,
            0.2: 96,
            1.0: 480,
        }


def test_held_out_validation_and_training_never_mix(cohort):
    for split in divided(cohort):
        development = set(split.training[1.0])
        assert not development & set(split.held_out)
        assert development | set(split.held_out) == set(range(600))
        assert set(split.training[0.8]) == development - set(split.validation)


def test_smaller_training_sets_are_parts_of_larger_ones(cohort):
    for split in divided(cohort):
        for smaller, larger in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8)):
            assert set(split.training[smaller]) < set(split.training[larger])


def test_labels_and_confounds_are_in_proportion(cohort):
    boys = cohort.questionnaire.confounds["sex"] == "male"
    for split in divided(cohort):
        for rows in (split.held_out, split.validation, *split.training.values()):
            expected = cohort.diagnoses.mean() * len(rows)
            assert (cohort.diagnoses.iloc[rows].sum() - expected).abs().max() <= 2.5  # participants
            assert abs(boys.iloc[rows].mean() - boys.mean()) <= 0.03


def test_a_division_depends_on_its_own_number_and_seed_alone(cohort):
    few, many = divided(cohort, n_splits=1), divided(cohort, n_splits=3)
    np.testing.assert_array_equal(few[0].held_out, many[0].held_out)
    assert set(many[1].held_out) != set(many[0].held_out)
    assert set(divided(cohort, random_state=1)[0].held_out) != set(many[0].held_out)


def test_families_are_never_split(cohort):
    families = pd.Series(np.arange(600) // 3, index=cohort.questionnaire.answers.index)
    for split in divided(cohort, groups=families):
        parts = [split.held_out, split.validation, split.training[0.2]]
        parts.append(np.setdiff1d(split.training[0.8], split.training[0.2]))
        seen = [set(families.iloc[rows]) for rows in parts]
        assert sum(map(len, seen)) == len(set().union(*seen)) == 200
        assert 110 <= len(split.held_out) <= 130


def test_a_category_that_training_participants_lack_is_refused_by_name(cohort):
    """As when the site is a confound and also what keeps participants together."""
    sites = pd.Series([f"site {i % 12}" for i in range(600)], index=cohort.questionnaire.answers.index)
    confounds = cohort.questionnaire.confounds.assign(site=sites)
    with pytest.raises(
        InputError, match=r"'site' has the category 'site \d+' \(50 participants\), which nobody"
    ):
        divided(cohort, groups=sites, confounds=confounds)


@pytest.mark.parametrize(
    ("sizes", "n_splits", "message"),
    [((0.9,), 3, "0.9 is not possible"), ((0.0,), 3, "0 is not possible"), ((0.5,), 0, "at least 1, not 0")],
)
def test_impossible_wishes_are_refused(cohort, sizes, n_splits, message):
    with pytest.raises(InputError, match=message):
        make_splits(cohort.questionnaire, None, sizes=sizes, n_splits=n_splits, random_state=0)


def test_too_few_participants_are_refused():
    with pytest.raises(InputError, match="9 participants cannot be divided"):
        make_splits(make_cohort("hbn", 9).questionnaire, None, sizes=[0.8], n_splits=1, random_state=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 200), st.floats(0.1, 0.9))
def test_every_kind_is_dealt_in_proportion_when_kinds_do_not_overlap(seed, n, share):
    rng = np.random.default_rng(seed)
    kinds = np.eye(4, dtype=int)[rng.integers(0, 4, n)]
    part = deal_in_proportion(np.column_stack([np.ones(n, int), kinds]), (share, 1 - share), rng)
    assert abs((part == 0).sum() - share * n) <= 1
    for kind in kinds.T:
        assert abs((part[kind == 1] == 0).sum() - share * kind.sum()) <= 2
