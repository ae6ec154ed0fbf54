"""Blockwise folds: which answers are hidden together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.errors import InputError
from icqf.resampling.assignment import deal_evenly, deal_groups, strata_of

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Folds:
    """A cut of the table into blocks, each dealt to a fold."""

    row_block: Array  # (n,), the block of rows each participant belongs to
    col_block: Array  # (m,), the block of columns each item belongs to
    fold_of: Array  # (row_blocks, col_blocks), the fold each block is dealt to
    n_splits: int

    def mask(self, fold: int, problem: Problem | None = None) -> Array:
        """Which answers (n, m) a fold hides, laid out as the problem's are; folds partition the table."""
        chosen = (self.fold_of == fold)[self.row_block]
        if problem is None:
            return chosen[:, self.col_block]
        return problem.observations.laid_out(chosen, self.col_block)


def make_folds(
    n: int,
    m: int,
    *,
    n_splits: int = 10,
    row_blocks: int | None = None,
    col_blocks: int | None = None,
    strata: Array | None = None,
    groups: Array | None = None,
    rng: np.random.Generator,
) -> Folds:
    """Cut a permuted n × m table into blocks and deal them into folds.

    Neighbouring blocks go to different folds, so that every fold hides about the same share of
    each participant's answers and of each item's. Participants of one stratum spread evenly over
    the blocks of rows; those of one group stay in the same block.
    """
    units = n if groups is None else len(np.unique(groups))
    row_blocks = min(units, n_splits if row_blocks is None else row_blocks)
    col_blocks = min(m, n_splits if col_blocks is None else col_blocks)
    if n_splits < 2:
        raise InputError(f"n_splits={n_splits} is too few; cross-validation needs at least 2 folds.")
    if row_blocks * col_blocks < n_splits:
        raise InputError(
            f"{row_blocks} × {col_blocks} blocks cannot be dealt into {n_splits} folds; "
            "use fewer folds (n_splits)."
        )
    if row_blocks < 2 or col_blocks < 2:
        raise InputError(
            f"{row_blocks} × {col_blocks} blocks ({units} {'sample' if groups is None else 'group'}(s), {m} "
            "feature(s)) hide all answers of an item or of a participant together, so that none could be "
            "predicted; at least 2 × 2 are needed."
        )
    if groups is None:
        row_block = deal_evenly(n, row_blocks, strata, rng)
    else:
        row_block = deal_groups(groups, row_blocks, strata, rng)
    col_block = deal_evenly(m, col_blocks, None, rng)
    shift = np.arange(row_blocks)[:, None] * (1 if max(row_blocks, col_blocks) >= n_splits else col_blocks)
    fold_of = (shift + np.arange(col_blocks)[None, :]) % n_splits
    return Folds(row_block, col_block, fold_of, n_splits)


def folds_of(problem: Problem, *, groups: Array | None = None, **options: Any) -> Folds:
    """Folds of a problem's answers, its confounds spread evenly; `options` as for `make_folds`."""
    return make_folds(problem.n, problem.m, strata=strata_of(problem), groups=groups, **options)


def halves_of(problem: Problem, *, groups: Array | None = None, rng: np.random.Generator) -> Array:
    """The half (0 or 1) of each participant (n,), confounds spread evenly and groups kept whole."""
    blocks = {"n_splits": 2, "row_blocks": 2, "col_blocks": 2}
    return make_folds(problem.n, 2, strata=strata_of(problem), groups=groups, rng=rng, **blocks).row_block
