"""Who is scored by a form, and how: participants, held out and simulated ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.errors import InputError, counted
from icqf.extensions.forms import correlation_by_row
from icqf.extensions.reduced import reduced_model
from icqf.extensions.simulation import drawn_from
from icqf.models.base import FittedModel
from icqf.models.icqf import ICQF
from icqf.models.statement import state_others
from icqf.resampling.dealing import deal_evenly, deal_groups, strata_of

Array = NDArray[Any]
FEWEST = 30  # participants; a correlation of ten held out ones would say nothing
PARTS = 3  # of the participants, one of which is held out
SIMULATED = 1500  # participants among whom items are searched
_SWEEPS = 4


@dataclass(frozen=True, eq=False)
class ModelRecovery:
    """How well forms of a model's items recover its scores of some participants.

    Attributes
    ----------
    model : fitted ICQF
    problem : Problem
        The participants who answered anything.
    answered : bool array (n,)
        Who of the table that is.
    wanted : array (k, n)
        Their scores from all items.
    """

    model: FittedModel
    problem: Problem
    answered: Array
    wanted: Array

    @classmethod
    def of(cls, model: FittedModel, X: Any, *, confounds: Any = None) -> ModelRecovery:
        """Of the participants of a table."""
        problem, answered = state_others(model, X, confounds)
        if not answered.any():
            raise InputError(
                "Nobody answered any of the model's items, so no form of them can be tried.",
                code="no-answers",
                remedy="Give the answers of participants, and check the missing codes.",
            )
        return cls(model, problem, answered, model.solve_scores(problem))

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return tuple(str(name) for name in self.model.item_range_.index)

    @property
    def n(self) -> int:
        """Number of participants."""
        return self.problem.n

    @property
    def strata(self) -> Array | None:
        """Participants that are alike in their confounds (n,), or None."""
        return strata_of(self.problem)

    @property
    def shares(self) -> Array:
        """Loadings (k, m) as shares of the items' ranges."""
        return self.model.components_ / np.ptp(self.model.item_range_.to_numpy(), axis=1)

    def reduced(self, form: Sequence[int]) -> ICQF:
        """The model of some of the items."""
        return reduced_model(self.model, [self.items[item] for item in form])

    def take(self, rows: Array) -> ModelRecovery:
        """Of some of these participants."""
        return ModelRecovery(self.model, self.problem.of_rows(rows), self.answered, self.wanted[:, rows])

    def accuracies(self, form: Sequence[int]) -> Array:
        """Correlation (k,) of a form's scores with the full form's; NaN where all have one score there."""
        asked = (self.problem.answers[:, list(form)] >= 0).any(axis=1)  # the others have no score
        found, wanted = self.exact(form)[:, asked], self.wanted[:, asked]
        return np.where(np.ptp(wanted, axis=1) > 0, correlation_by_row(found, wanted), np.nan)

    def exact(self, form: Sequence[int]) -> Array:
        """Scores (k, n) of those who are asked only these items, within all bounds."""
        short = self.reduced(form)
        problem = self.problem.of_items(np.sort(form)).with_beta(float(short.beta))
        problem = replace(problem, observations=replace(problem.observations, dtype=short.dtype_))
        return short.solve_scores(problem.scaled(short.item_scale_))

    def simulated(self, rng: np.random.Generator, n: int = SIMULATED) -> SimulatedRecovery:
        """Of participants simulated from the model: the scores of one, and what it leaves of others' answers.

        Which item of a factor is best is decided by small differences, which among the participants are
        mostly chance: forms that were searched among them did worse in others (docs/short-forms.md).
        """
        problem = drawn_from(self.model, self.problem, self.wanted, rng, n, gaps=False)
        return SimulatedRecovery(self.model, problem, self.model.solve_scores(problem))


@dataclass(frozen=True, eq=False)
class SimulatedRecovery:
    """The same of simulated participants, who answered everything; see `icqf.extensions.Recovery`.

    The bound on reconstructed answers is left out here, which hardly changes a score and is quick.
    """

    model: FittedModel
    problem: Problem
    wanted: Array  # (k, n)

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items."""
        return tuple(str(name) for name in self.model.item_range_.index)

    def nothing(self) -> AskedItems:
        """The form that asks nothing."""
        return AskedItems(self, np.zeros((len(self.wanted),) * 2), *np.zeros((2, *self.wanted.shape)))

    @cached_property
    def loadings(self) -> Array:
        """Loadings (k, m), in the problem's units."""
        return self.problem.scaled_loadings(self.model.components_)

    @cached_property
    def left(self) -> Array:
        """What confounds leave of each answer (m, n)."""
        offset = self.problem.scaled_loadings(self.model.confound_components_)
        return np.concatenate([(block.X - block.C.T @ offset).T for block in self.problem.blocks()], axis=1)


@dataclass(frozen=True, eq=False)
class AskedItems:
    """A form of a model's items, which grows and shrinks by one item at little cost."""

    recovery: SimulatedRecovery
    gram: Array  # (k, k)
    pull: Array  # (k, n)
    scores: Array  # (k, n)

    def plus(self, item: int) -> AskedItems:
        """The form with one more item."""
        return self._with(item, 1.0)

    def minus(self, item: int) -> AskedItems:
        """The form without one of its items."""
        return self._with(item, -1.0)

    def _with(self, item: int, sign: float) -> AskedItems:
        recovery, q = self.recovery, self.recovery.loadings[:, item]
        gram = self.gram + sign * np.outer(q, q)
        pull = self.pull + sign * q[:, None] * recovery.left[item]
        penalty, top = recovery.problem.penalty, recovery.problem.bounds.score
        scores = penalty.sweep(self.scores.copy(), gram, pull, top, scale=1.0, sweeps=_SWEEPS, xp=np)
        return AskedItems(recovery, gram, pull, scores)


def divided(recovery: Any, groups: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Places of those who choose the items, and of those who are held out.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*"])
    >>> parts = divided(ModelRecovery.of(ICQF(1).fit(demo), demo), None, np.random.default_rng(0))
    >>> [len(part) for part in parts]
    [400, 200]
    """
    n = recovery.n
    if n < FEWEST:
        raise InputError(
            f"{counted(n, 'participant')} answered anything, but at least {FEWEST} are needed: two thirds "
            "choose the items, and the others say how well the form does."
        )
    strata = recovery.strata
    if groups is None:
        part = deal_evenly(n, PARTS, strata, rng)
    else:
        together = np.asarray(groups)[recovery.answered].astype(str)
        number = len(np.unique(together))
        if number < PARTS:
            raise InputError(
                f"There {'is' if number == 1 else 'are'} {counted(number, 'group')} (family or site), and "
                f"whole groups are held out; at least {PARTS} are needed. Leave the groups out."
            )
        part = deal_groups(together, PARTS, strata, rng)
    choosing, held_out = np.flatnonzero(part != 0), np.flatnonzero(part == 0)
    return choosing, held_out


def top_loading(
    shares: Array, length: int, keep: Sequence[int] = (), drop: Iterable[int] = ()
) -> tuple[int, ...]:
    """The items that are picked without a search: each factor's largest loadings, the factors in turn.

    Parameters
    ----------
    shares : array (k, m)
        Loadings as shares of the items' ranges.
    length : int
        How many to pick; the kept items come first.
    keep, drop
        Places of items that must and must not be among them.

    Examples
    --------
    >>> import numpy as np
    >>> top_loading(np.array([[0.9, 0.8, 0.1, 0.0], [0.0, 0.2, 0.5, 0.7]]), 3)
    (0, 3, 1)
    """
    ranked = [iter(order.tolist()) for order in np.argsort(-shares, axis=1, kind="stable")]
    chosen, out = list(keep), {*drop, *keep}
    while len(chosen) < length:
        for items in ranked:
            following = next((item for item in items if item not in out), None)
            if following is not None and len(chosen) < length:
                chosen.append(following)
                out.add(following)
    return tuple(chosen)
