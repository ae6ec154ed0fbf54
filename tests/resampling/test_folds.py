"""Folds: they partition the answers, keep groups whole, spread strata, and hide evenly."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icqf import ICQF, ICQFCV
from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.errors import InputError
from icqf.resampling.folds import folds_of, halves_of, make_folds, strata_of


@st.composite
def tables(draw, grouped=None, labelled=None):
    """Arguments of `make_folds` for a table that can be divided."""
    n, m = draw(st.integers(2, 60)), draw(st.integers(2, 40))
    groups = strata = None
    if draw(st.booleans()) if grouped is None else grouped:
        groups = np.array(draw(st.lists(st.integers(0, 12), min_size=n, max_size=n)))
        groups[:2] = 0, 1
    if draw(st.booleans()) if labelled is None else labelled:
        strata = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    units = n if groups is None else len(np.unique(groups))
    row_blocks = draw(st.none() | st.integers(2, 15))
    col_blocks = draw(st.none() | st.integers(2, 15))
    most = min(units, row_blocks or units) * min(m, col_blocks or m)
    return {
        "n": n,
        "m": m,
        "n_splits": draw(st.integers(2, min(12, most))),
        "row_blocks": row_blocks,
        "col_blocks": col_blocks,
        "groups": groups,
        "strata": strata,
        "rng": np.random.default_rng(draw(st.integers(0, 100))),
    }


def cut(n, m, **options):
    return make_folds(n, m, rng=options.pop("rng", np.random.default_rng(0)), **options)


def possible(table):
    """Whether as many blocks as folds come out: with as many blocks as folds, few units may not do."""
    units = table["n"] if table["groups"] is None else len(np.unique(table["groups"]))
    n_splits = table["n_splits"]
    return min(units, table["row_blocks"] or n_splits) * min(table["m"], table["col_blocks"] or n_splits) >= (
        n_splits
    )


@settings(deadline=None)
@given(tables(), st.integers(0, 100))
def test_every_observed_answer_is_hidden_exactly_once(table, seed):
    if not possible(table):
        with pytest.raises(InputError, match="cannot be dealt into"):
            cut(**table)
        return
    folds = cut(**table)
    masks = np.array([folds.mask(fold) for fold in range(folds.n_splits)])
    assert masks.shape == (table["n_splits"], table["n"], table["m"])
    assert (masks.sum(axis=0) == 1).all()
    assert masks.any(axis=(1, 2)).all()  # no fold is empty
    observed = np.random.default_rng(seed).random((table["n"], table["m"])) < 0.7
    assert ((masks & observed).sum(axis=0) == observed).all()


@settings(deadline=None)
@given(tables(grouped=True))
def test_groups_are_never_split(table):
    if not possible(table):
        return
    folds = cut(**table)
    for fold in range(folds.n_splits):
        mask = folds.mask(fold)
        for name in np.unique(table["groups"]):
            own = mask[table["groups"] == name]
            assert (own == own[0]).all()


@settings(deadline=None)
@given(tables(grouped=False, labelled=True))
def test_strata_spread_evenly_over_the_blocks(table):
    if not possible(table):
        return
    folds = cut(**table)
    blocks = np.arange(folds.row_block.max() + 1)
    for label in np.unique(table["strata"]):
        block = folds.row_block[table["strata"] == label]
        counts = (block[:, None] == blocks).sum(axis=0)
        assert np.ptp(counts) <= 1


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 3), st.data())
def test_groups_of_one_stratum_spread_evenly(n_blocks, size, data):
    """Groups of equal size, all of one stratum each: no block is ahead by more than one group."""
    stratum_of = data.draw(st.lists(st.sampled_from("abc"), min_size=n_blocks, max_size=40))
    groups = np.repeat(np.arange(len(stratum_of)), size)
    strata = np.array(stratum_of)[groups]
    folds = cut(len(groups), 10, n_splits=2, row_blocks=n_blocks, groups=groups, strata=strata)
    for label in np.unique(strata):
        counts = np.bincount(folds.row_block[strata == label], minlength=n_blocks)
        assert np.ptp(counts) <= size


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 3), st.integers(1, 3), st.integers(0, 30), st.integers(0, 30))
def test_each_fold_hides_the_same_share_of_each_row_and_column(n_splits, across, down, extra_n, extra_m):
    row_blocks, col_blocks = n_splits * down, n_splits * across
    n, m = row_blocks + extra_n, col_blocks + extra_m
    folds = cut(n, m, n_splits=n_splits, row_blocks=row_blocks, col_blocks=col_blocks)
    for fold in range(n_splits):
        mask = folds.mask(fold)
        for counts, things, per_fold, blocks in (
            (mask.sum(axis=1), m, across, col_blocks),
            (mask.sum(axis=0), n, down, row_blocks),
        ):
            assert counts.min() >= per_fold * (things // blocks)
            assert counts.max() <= per_fold * -(-things // blocks)


@pytest.mark.parametrize(("n", "m"), [(100, 5), (200, 8), (5, 100), (8, 200)])
def test_few_items_or_few_participants_are_hidden_evenly_too(n, m):
    """With fewer columns than folds, a fold still hides a tenth of every item it hides, not a half."""
    folds = cut(n, m, n_splits=10)
    few = 0 if m < n else 1  # the longer side: how much of each item (participant) a fold hides
    shares = np.array([folds.mask(fold).mean(axis=few) for fold in range(10)])
    assert shares.max() <= 0.11
    hidden = [folds.mask(fold).mean() for fold in range(10)]
    np.testing.assert_allclose(hidden, 0.1, atol=0.01)


@pytest.mark.parametrize("shape", [(40, 40, 10, 10), (40, 40, 20, 5), (40, 5, None, None)])
def test_neighbouring_blocks_belong_to_different_folds(shape):
    n, m, row_blocks, col_blocks = shape
    fold_of = cut(n, m, n_splits=10, row_blocks=row_blocks, col_blocks=col_blocks).fold_of
    assert (fold_of[:, 1:] != fold_of[:, :-1]).all() and (fold_of[1:] != fold_of[:-1]).all()


def test_blocks_are_of_one_size():
    folds = cut(103, 47)
    assert np.ptp(np.bincount(folds.row_block)) <= 1 and np.ptp(np.bincount(folds.col_block)) <= 1
    assert folds.fold_of.shape == (100, 47)
    assert cut(103, 47, row_blocks=10, col_blocks=12).fold_of.shape == (10, 12)


def test_which_items_are_hidden_together_differs_from_block_to_block():
    """Errors then depend less on the division: most pairs of items are hidden together somewhere."""
    folds = cut(400, 25)
    together = np.zeros((25, 25))
    for fold in range(10):
        mask = folds.mask(fold)
        together += (mask.T.astype(float) @ mask) / 400
    pairs = together[~np.eye(25, dtype=bool)]
    assert pairs.max() < 0.3 and np.mean(pairs > 0) > 0.5
    blocks = cut(400, 25, row_blocks=10, col_blocks=10)
    apart = [len(np.unique(blocks.mask(fold)[:, :25], axis=0)) for fold in range(10)]
    assert max(apart) <= 10  # with few blocks, the same few sets for everybody


def test_the_order_of_confounds_and_of_named_items_does_not_matter():
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(rng.integers(0, 5, (60, 12)), columns=[f"q{j}" for j in range(12)])
    confounds = pd.DataFrame(
        {"age": rng.integers(8, 18, 60), "sex": rng.choice(["f", "m"], 60), "x": rng.random(60)}
    )
    order = rng.permutation(12)
    tables = (answers, confounds), (answers.iloc[:, order], confounds[["x", "sex", "age"]])
    plans = []
    for table, beside in tables:
        model = ICQF(1, item_range=(0, 4))
        stated = model.state(table, confounds=beside)
        stated = replace(stated, problem=stated.problem.with_confounds_in_order())
        plans.append(ICQFCV(model)._plan(model, stated, None, 5))
    first, second = (plan.folds[0] for plan in plans)
    assert (first.mask(3)[:, order] == second.mask(3)).all()
    assert (plans[0].problem.design == plans[1].problem.design).all()
    assert plans[0].problem.partitions == plans[1].problem.partitions


def test_rows_and_columns_are_permuted_by_the_seed_alone():
    first, again, other = (cut(60, 30, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first.row_block == again.row_block).all() and (first.col_block == again.col_block).all()
    assert (first.row_block != other.row_block).any() and (first.col_block != other.col_block).any()
    assert (np.diff(first.row_block) != 1).any()  # not just in the order of the table


@pytest.mark.parametrize(
    ("n", "m", "options", "message"),
    [
        (20, 20, {"n_splits": 1}, "n_splits=1 is too few"),
        (2, 3, {}, r"2 × 3 blocks cannot be dealt into 10 folds; use fewer folds"),
        (20, 20, {"row_blocks": 2, "col_blocks": 2}, "2 × 2 blocks cannot be dealt into 10 folds"),
        (20, 20, {"row_blocks": 0}, "0 × 20 blocks cannot be dealt"),
        (1, 20, {}, r"\(1 sample\(s\), 20 feature\(s\)\) hide all answers"),
        (20, 1, {}, r"\(20 sample\(s\), 1 feature\(s\)\) hide all answers"),
        (20, 20, {"row_blocks": 1}, "at least 2 × 2 are needed"),
        (20, 20, {"col_blocks": 1}, "at least 2 × 2 are needed"),
        (20, 20, {"groups": np.zeros(20)}, r"\(1 group\(s\), 20 feature\(s\)\) hide all answers"),
        (20, 2, {"groups": np.arange(20) % 2}, "2 × 2 blocks cannot be dealt"),
    ],
)
def test_tables_too_small_to_divide(n, m, options, message):
    with pytest.raises(InputError, match=message):
        cut(n, m, **options)


def test_strata_of_a_design():
    """Sex by hand, age in four bands of equal size, and both together; the intercept is no stratum."""
    rng = np.random.default_rng(0)
    age, woman = rng.permutation(np.linspace(0, 1, 40)), rng.integers(0, 2, 40)
    design = np.column_stack([age, 1 - age, woman, 1 - woman, np.ones(40)])
    problem = Problem(Observations(np.zeros((40, 3)), design.T), np.ones(3))

    def strata(*partitions):
        return strata_of(replace(problem, partitions=partitions))

    by_sex = strata((2, 3))
    assert len(set(zip(by_sex, woman, strict=True))) == 2
    by_age = strata((0, 1))
    assert np.bincount(by_age).tolist() == [10, 10, 10, 10]
    ends = sorted((age[by_age == band].min(), age[by_age == band].max()) for band in range(4))
    assert all(low[1] < high[0] for low, high in pairwise(ends))
    both = strata((0, 1), (2, 3))
    pairs = set(zip(both, by_age, by_sex, strict=True))
    assert len(pairs) == len(set(both)) == len({pair[1:] for pair in pairs})
    assert strata() is None
    assert (strata((2, 3), (0, 1)) == both).all() and (strata((3, 2), (0, 1)) == both).all()


def test_folds_and_halves_of_a_problem_spread_its_confounds_and_keep_groups():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 80)
    answers = rng.integers(0, 5, (80, 12))
    problem = ICQF(1, item_range=(0, 4)).state(answers, confounds=sex[:, None]).problem
    families = np.arange(80) // 2
    half = halves_of(problem, rng=np.random.default_rng(1))
    assert np.ptp([np.bincount(half[sex == level]) for level in (0, 1)], axis=1).max() <= 1
    half = halves_of(problem, groups=families, rng=np.random.default_rng(1))
    assert (half[::2] == half[1::2]).all() and 0 < half.mean() < 1
    folds = folds_of(problem, groups=families, n_splits=4, rng=np.random.default_rng(2))
    assert (folds.row_block[::2] == folds.row_block[1::2]).all()
    plain = make_folds(80, 12, n_splits=4, strata=strata_of(problem), rng=np.random.default_rng(2))
    assert (folds_of(problem, n_splits=4, rng=np.random.default_rng(2)).row_block == plain.row_block).all()
