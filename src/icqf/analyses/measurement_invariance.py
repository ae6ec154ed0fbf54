"""Are the factors the same in every group? One fit per group, a common one, and tests at equal scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import call
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import check_parameter, parameter_error
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted, did_you_mean, joined, listed, shown_p
from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.resampling.bootstrap import Z, bootstrap, fresh_agreement, refits, settled
from icqf.resampling.folds import units_of
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.propensity_bands import (
    FEWEST_EXCHANGED,
    LEFT,
    N_BANDS,
    Bands,
    exchanged,
    make_bands,
    standardized,
)
from icqf.resampling.replication import FOUND

Array = NDArray[Any]
_AT_ONCE = 10  # resamples of one job
_PERMUTATIONS = 100  # of one job
_DIGITS = 12
_RIDGE = 0.05  # of the slopes, relative to the variance of a score
FEWEST = 30  # participants of a group
MOST_GROUPS = 12
ALPHA = 0.05
FITTING, MATCHING = "Fitting everybody", "Matching participants with the same scores"
PERMUTING, RESAMPLING = "Permuting the groups", "Fitting each group and its resamples"
ALIKE = 0.95  # congruence from which factors count as the same (Lorenzo-Seva and ten Berge 2006)
SAME, SIMILAR, UNTESTED, DIFFERENT = VERDICTS = ("same", "similar", "not tested", "different")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the tests compare between groups: residuals of the common model, at the scores of its factors.

    `own` (m,) are the items' own points in the units of the problem, which weigh items in a factor's test.
    """

    residuals: Array  # (n, m), in the items' own points; 0 where missing
    given: Array  # (n, m), the participant's weight where there is an answer
    scores: Array  # (n, k), standardized
    own: Array  # (m,)
    bands: Bands

    def statistics(self, codes: Array) -> tuple[Array, Array, Array]:
        """Sums of squares between groups, of factors (k,), of items (m,) and of the items' levels (m,)."""
        share = _share(self.given, codes)
        between = _between(self.slopes(codes) * self.own, share)
        return between.sum(axis=1), between.sum(axis=0), _between(self.levels(codes), share)

    def slopes(self, codes: Array) -> Array:
        """How much more steeply each item rises with each score in a group than in the model (G, k, m).

        A regression of the residuals on the scores for each group, with its own intercepts and a ridge
        penalty.
        """
        Z = np.concatenate([np.ones((len(codes), 1)), self.scores], axis=1)
        products = np.einsum("np,nq->npq", Z, Z).reshape(len(Z), -1)
        weighted, p = self.given * self.residuals, Z.shape[1]
        ridge = np.diag([0.0] + [_RIDGE] * (p - 1))
        slopes = []
        for group in range(int(codes.max()) + 1):
            rows = np.flatnonzero(codes == group)
            given = self.given[rows]
            gram = (products[rows].T @ given).T.reshape(-1, p, p)
            total = np.maximum(given.sum(axis=0), 1e-9)
            gram = gram + total[:, None, None] * (ridge + 1e-9 * np.eye(p))
            slopes.append(np.linalg.solve(gram, (Z[rows].T @ weighted[rows]).T[:, :, None])[:, 1:, 0].T)
        return np.stack(slopes)

    def levels(self, codes: Array) -> Array:
        """How much higher each group answers than all participants at equal scores (G, m), in points.

        Effects of the groups on the residuals, in a regression with effects of the bands: for two groups, the
        mean difference within bands, each band with the weight n1 n2 / (n1 + n2).
        """
        groups, bands = int(codes.max()) + 1, self.bands.n_bands
        cell = np.arange(groups * bands)[:, None] == codes * bands + self.bands.band  # (cells, n)
        number = (cell @ self.given).reshape(groups, bands, -1)
        total = (cell @ (self.given * self.residuals)).reshape(groups, bands, -1)
        everybody = np.maximum(number.sum(axis=0), 1e-300)
        crossed = np.einsum("gbm,hbm->mgh", number / everybody, number)
        own = np.einsum("gm,gh->mgh", number.sum(axis=1), np.eye(groups))
        share = number.sum(axis=1) / np.maximum(number.sum(axis=(0, 1)), 1e-300)  # (G, m)
        right = total.sum(axis=1) - (number * (total.sum(axis=0) / everybody)).sum(axis=1)
        mean = np.einsum("gm,hm->mgh", share, share) * len(codes)  # the groups' mean is 0
        return np.linalg.solve(own - crossed + mean + 1e-9 * np.eye(groups), right.T[:, :, None])[:, :, 0].T


def _share(given: Array, codes: Array) -> Array:
    """Each group's share (G,) of the answers, with their weights."""
    total = np.bincount(codes, given.sum(axis=1))
    return total / total.sum()


def _between(values: Array, share: Array) -> Array:
    """Sum of squares between groups, of values (G, …)."""
    mean = np.tensordot(share, values, axes=1)
    return np.tensordot(share, (values - mean) ** 2, axes=1)


@dataclass(frozen=True, eq=False)
class PermutationTests:
    """Statistics of groups and of permuted groups."""

    differences: tuple[Array, ...]  # sums of squares between groups, of factors, items and levels
    permuted: tuple[Array, ...]  # the same for permuted groups, one row each
    exchanged: Array  # (G,), members who change places in a permutation, on average
    left: float  # their share of those who would if all participants were in one band

    @property
    def thin(self) -> bool:
        """Whether too few participants of the groups have the same scores to compare them."""
        return bool(self.left < LEFT or self.exchanged.min() < FEWEST_EXCHANGED)

    def p_factors(self) -> Array:
        """p (k,) of each factor, corrected for the number of factors (Westfall and Young's max statistic)."""
        every = np.concatenate([self.differences[0][None], self.permuted[0]])
        relative = every / np.maximum(every.mean(axis=0), 1e-300)
        largest = relative[1:].max(axis=1)
        return self._unless_thin((1 + (largest[:, None] >= relative[0]).sum(axis=0)) / len(every))

    def p_items(self) -> Array:
        """p (m,) of each item's loadings."""
        return self._unless_thin(_pooled(self.differences[1], self.permuted[1]))

    def p_levels(self) -> Array:
        """p (m,) of each item's level."""
        return self._unless_thin(_pooled(self.differences[2], self.permuted[2]))

    def _unless_thin(self, p: Array) -> Array:
        return np.full(len(p), np.nan) if self.thin else p


def permutation_tests(
    evidence: Evidence, codes: Array, *, n_permutations: int, seed: int, **how: Any
) -> PermutationTests:
    """Compare groups with groups permuted within bands; `how` says how `run_all` runs."""
    jobs = {
        f"permuted {first}": (evidence, codes, [(seed, 0, at) for at in numbers])
        for first in range(0, n_permutations, _PERMUTATIONS)
        for numbers in (range(first, min(first + _PERMUTATIONS, n_permutations)),)
    }
    done = run_all(jobs, _permuted, what=PERMUTING, **how)
    every = [part for result in done.values() for part in result["apart"]]
    some = (np.random.default_rng((seed, 0, at)) for at in range(min(n_permutations, _PERMUTATIONS)))
    return PermutationTests(
        evidence.statistics(codes),
        tuple(np.array([part[at] for part in every]) for at in range(3)),
        *exchanged(codes, [evidence.bands.permuted(codes, rng) for rng in some]),
    )


def _permuted(evidence: Evidence, codes: Array, seeds: Sequence[Any]) -> dict[str, Any]:
    statistics = []
    for seed in seeds:
        permuted = evidence.bands.permuted(codes, np.random.default_rng(seed))
        statistics.append([part.tolist() for part in evidence.statistics(permuted)])
    return {"apart": statistics}


def _pooled(observed: Array, shuffled: Array) -> Array:
    """p (m,) against all items' permuted statistics, each relative to its own mean."""
    every = np.concatenate([observed[None], shuffled])
    relative = every / np.maximum(every.mean(axis=0), 1e-300)
    pool = np.sort(relative[1:].ravel())
    above = len(pool) - np.searchsorted(pool, relative[0], side="left")
    return (1 + above) / (1 + len(pool))


@dataclass(frozen=True, eq=False)
class GroupFits:
    """Fits of groups and of resamples of them."""

    loadings: Array  # (G, K, m), matched with the common factors, in the items' own units; confounds last
    errors: Array  # (G, k, m), bootstrap standard errors of the loadings
    fresh: Array  # (G, k), agreement of each factor when a group is fitted from scratch
    n_resamples: int


def fit_groups(
    problem: Problem, common: Factors, codes: Array, units: Array, *, n_resamples: int, seed: int, **how: Any
) -> GroupFits:
    """Fit groups and resamples of their units; `how` says how `run_all` runs."""
    start, number, k = settled(problem, common), int(codes.max()) + 1, len(common.scores)
    jobs: dict[str, tuple[Any, ...]] = {}
    for group in range(number):
        rows = np.flatnonzero(codes == group)
        part = problem.of_rows(rows)
        jobs[f"afresh {group}"] = (_fresh_fit, part, common.loadings[:k])
        families = np.unique(units[rows], return_inverse=True)[1]
        for first in range(0, n_resamples, _AT_ONCE):
            size = min(_AT_ONCE, n_resamples - first)
            own = Factors(common.scores[:, rows], common.loadings)
            where = (seed, 1 + group, first)
            jobs[f"resampled {group} {first}"] = (_resampled, part, own, families, size, where)
    done = run_all(jobs, call, what=RESAMPLING, **how)  # each job names its function first
    errors = [
        np.concatenate(
            [result["loadings"] for name, result in done.items() if name.startswith(f"resampled {group} ")]
        ).std(axis=0, ddof=1)
        for group in range(number)
    ]
    return GroupFits(
        np.stack([problem.own_loadings(loadings) for loadings in group_loadings(problem, start, codes)]),
        np.stack(errors),
        np.array([done[f"afresh {group}"]["agreement"] for group in range(number)]),
        n_resamples,
    )


def group_loadings(problem: Problem, start: Factors, codes: Array) -> list[Array]:
    """Loadings (K, m) of each group, matched with the common factors and on their scale."""
    k, members = len(start.scores), [(codes == group).astype(int) for group in range(int(codes.max()) + 1)]
    fitted = []
    for loadings in refits(problem, start, members):
        order, _ = aligned(start.loadings[:k], loadings[:k])
        fitted.append(np.concatenate([rescaled(loadings[:k][order], start.loadings[:k]), loadings[k:]]))
    return fitted


def rescaled(loadings: Array, common: Array) -> Array:
    """Loadings (…, k, m) rescaled to the norm of the common factors, which depends on the highest scorers."""
    length = np.linalg.norm(loadings, axis=-1, keepdims=True)
    return loadings * (np.linalg.norm(common, axis=-1, keepdims=True) / np.maximum(length, 1e-300))


def _fresh_fit(part: Problem, loadings: Array) -> dict[str, Any]:
    return {"agreement": fresh_agreement(part, loadings, part.penalty.beta).tolist()}


def _resampled(part: Problem, own: Factors, families: Array, size: int, seed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    k, common = len(own.scores), part.own_loadings(own.loadings)
    drawn = bootstrap(part, own.scores, common, n_resamples=size, groups=families, rng=rng)
    scaled = rescaled(part.scaled_loadings(drawn.loadings[:, :k]), own.loadings[:k])
    return {"loadings": part.own_loadings(scaled).round(_DIGITS).tolist()}


@dataclass(frozen=True, eq=False)
class Invariance:
    """Whether factors are the same in some groups of participants.

    Parameters
    ----------
    by : str
        What the groups are.
    sizes : dict of str to int
        Participants of each group.
    factors : DataFrame
        One row per factor: ``verdict`` (same, similar, different or not tested), ``p`` (of the test that
        items rise with it equally steeply in all groups, corrected for the number of factors; NaN if not
        tested), ``congruence`` and ``agreement`` (Tucker's congruence and Pearson's correlation of the
        loadings of the two groups that agree least), and ``found`` (lowest correlation with the common
        factor when a group is fitted from scratch).
    items : DataFrame
        One row per item: ``factor`` (on which its loadings differ most), ``difference`` (of these loadings,
        in the item's points), ``p``, ``q`` (after Benjamini and Hochberg) and ``flagged``; and for its level
        at equal scores ``level_difference`` (in points: the second group less the first, or, of more groups,
        the highest less the lowest), ``level_higher`` and ``level_lower`` (these groups), ``level_p``,
        ``level_q`` and ``level_flagged``; and ``reversed``: whether it is counted from its highest answer.
    loadings : DataFrame
        ``factor, item, group, loading, low, high, common``: every loading with its 95 % interval.
    levels : DataFrame
        ``item, group, level``: how many points higher (or lower, below 0) each group answers than
        participants of all groups at equal scores.
    given : tuple of str
        What the compared participants have in common, in words.
    n_bands : int
        Bands of the propensity within which groups were permuted.
    overlap : float
        Members who changed places in a permutation, as a share of those who would in a single band: 1 where
        the groups have the same scores, 0 where they have none in common.
    tested : bool
        Whether the groups overlap enough for tests.
    n_permutations, n_resamples : int
    """

    by: str
    sizes: dict[str, int]
    factors: pd.DataFrame
    items: pd.DataFrame
    loadings: pd.DataFrame
    levels: pd.DataFrame
    given: tuple[str, ...]
    n_bands: int
    overlap: float
    tested: bool
    n_permutations: int
    n_resamples: int

    @property
    def verdict(self) -> str:
        """The verdict on the factor that differs most."""
        return max(self.factors["verdict"], key=VERDICTS.index)

    def marked(self, item: str) -> str:
        """The name of an item, with "(reversed)" where higher is a lower answer."""
        return f"{item} (reversed)" if self.items.loc[item, "reversed"] else item

    @property
    def level_sign(self) -> str:
        """Which group less which a difference in level is, in words."""
        if len(self.sizes) > 2:
            return "highest less lowest group"
        first, second = self.sizes
        return f"{second} less {first}"

    @property
    def hypothesis(self) -> str:
        """The hypothesis that is tested, in words."""
        return (
            f"Tested: participants with {joined(self.given)} answer alike, whichever group they are in. "
            f"Groups are therefore permuted only within {self.n_bands} bands of participants who are about "
            "equally likely to be in each group given these, and a group that merely has higher or lower "
            "scores does not count as different."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The results in words."""
        return (_about_factors(self), _about_items(self))


def invariance(
    model: ICQF,
    X: Any,
    *,
    by: Any,
    confounds: Any = None,
    sample_weight: Any = None,
    families: Any = None,
    n_bands: int = N_BANDS,
    n_permutations: int = 999,
    n_resamples: int = 100,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
    random_state: Any = 0,
) -> Invariance:
    """Compare the factors of groups of participants: girls and boys, sites, languages, visits.

    A model with the same settings is fitted to everybody and, starting from there, to each group; factors are
    matched by their loadings. The hypothesis tested is that participants with the same scores and the same
    overall level of answers (and the same confounds and survey weight, where there are any) answer alike in
    all groups. Groups are permuted within bands of the propensity to be in a group given these, so that a
    difference in severity alone does not count. Compared is how steeply each item rises with each factor,
    with a correction for the number of factors: a factor is *different* if p ≤ 0.05. Otherwise it is the
    *same* if Tucker's congruence is at least 0.95, and *similar* if lower. Where groups have hardly any
    scores in common, factors are *not tested*, and there are no p-values.

    Parameters
    ----------
    model : fitted ICQF
        Its settings and its factors' names and order are used.
    X, confounds, sample_weight
        The answers, of all groups.
    by : str or array (n,)
        The group of each participant: a column of the questionnaire's confounds, or labels. Participants
        without one are left out.
    families : array (n,), optional
        Families, classes or other clusters, whose members' groups are permuted, and who are resampled,
        together. None: the groups of the questionnaire, if X is one.
    n_bands : int
        Bands of the propensity.
    n_permutations : int
        How often groups are permuted.
    n_resamples : int
        Resamples of each group behind the intervals of its loadings.
    n_jobs, checkpoint, callback, random_state
        As for `icqf.ICQFCV`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import invariance
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> result = invariance(ICQF(2).fit(demo), demo, by="sex", n_permutations=19, n_resamples=10)
    >>> result.verdict in ("same", "similar", "different")
    True
    """
    check_is_fitted(model)
    check_parameter("n_bands", n_bands)
    check_parameter("n_permutations", n_permutations)
    check_parameter("n_resamples", n_resamples)
    labels, what = _labels(X, by, model)
    missing = sum(label is None for label in labels)
    if missing:
        warnings.warn(
            f"{counted(missing, 'participant')} without a group in {what!r} "
            f"{'is' if missing == 1 else 'are'} left out.",
            stacklevel=2,
        )
    known = np.array([label is not None for label in labels])
    _groups(labels[known], what)
    begin = callback or (lambda _: None)
    begin(Progress(0, 0, what=FITTING))
    common, stated = _common_fit(model, *_with_known_group(X, confounds, sample_weight, known))
    names, codes = _groups(labels[known][stated.kept], what)
    problem = stated.problem.with_beta(float(model.beta))
    every = np.concatenate([common.components_, common.confound_components_])
    fit = Factors(common.solve_scores(problem), problem.scaled_loadings(every))
    if families is None and isinstance(X, Questionnaire):
        families = X.groups
    together = None if families is None else np.asarray(as_pandas(families))[known]
    begin(Progress(0, 0, what=MATCHING))
    evidence, given = evidence_of(problem, fit, stated, codes, by=what, families=together, n_bands=n_bands)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    how: dict[str, Any] = {"n_jobs": n_jobs, "checkpoint": checkpoint, "callback": callback}
    tests = permutation_tests(evidence, codes, n_permutations=n_permutations, seed=seed, **how)
    fits = fit_groups(problem, fit, codes, evidence.bands.unit, n_resamples=n_resamples, seed=seed, **how)
    return _result(
        tests, fits, evidence.levels(codes), common, (names, np.bincount(codes)), what, given, n_bands
    )


# --- who belongs to which group ---------------------------------------------------------------------------


def _labels(X: Any, by: Any, model: ICQF) -> tuple[Array, str]:
    """The group of each row as a text, or None, and the name of the grouping."""
    n = X.n_participants if isinstance(X, Questionnaire) else len(X)
    if not isinstance(by, str):
        values, what = pd.Series(np.asarray(by, dtype=object)), str(getattr(by, "name", None) or "group")
        if len(values) != n:
            raise InputError(
                f"by holds {counted(len(values), 'label')} for {counted(n, 'participant')}; give one for "
                "each, in their order."
            )
    else:
        what = by
        if by in {str(name) for name in model.item_range_.index}:
            raise parameter_error(
                "by", f" names {by!r}, which is an item of the model; name a column of groups."
            )
        table = X.confounds if isinstance(X, Questionnaire) else None
        known = [] if table is None else list(table.columns)
        if table is None or by not in known:
            raise parameter_error(
                "by",
                f" names {by!r}, which is not a confound of the questionnaire "
                f"({listed(known) or 'it has none'}).{did_you_mean(by, known)} Give the labels themselves, "
                "one for each participant.",
            )
        values = table[by].astype(object).reset_index(drop=True)
    texts = np.empty(len(values), dtype=object)
    texts[:] = [_text(value) for value in values]
    return texts, what


def _text(value: Any) -> str | None:
    if pd.isna(value):
        return None
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    text = str(int(value) if whole else value).strip()
    return text or None


def _groups(labels: Array, what: str) -> tuple[list[str], Array]:
    """Names of the groups, sorted, and the group (n,) of each participant; refused if not comparable."""
    names = sorted(set(labels))
    if len(names) < 2:
        everybody = f"everybody has {names[0]!r}" if names else "nobody has a value"
        raise InputError(
            f"There is nothing to compare: {everybody} in {what!r}.",
            code="one-group",
            remedy="Name a column that divides the participants into two or more groups.",
        )
    if len(names) > MOST_GROUPS:
        raise InputError(
            f"{what!r} has {len(names)} different values ({listed(names, most=3)}), which are too many "
            f"groups to compare; at most {MOST_GROUPS} are allowed.",
            code="many-groups",
            remedy="Divide them into a few groups first, such as bands of age.",
        )
    codes = np.array([names.index(label) for label in labels])
    sizes = np.bincount(codes, minlength=len(names))
    smallest = int(sizes.argmin())
    if sizes[smallest] < FEWEST:
        raise InputError(
            f"The group {names[smallest]!r} of {what!r} has {counted(int(sizes[smallest]), 'participant')}"
            f"; a group needs at least {FEWEST} to be fitted separately.",
            code="small-group",
            remedy="Pool it with another group, or leave these participants out.",
        )
    return names, codes


def _with_known_group(X: Any, confounds: Any, sample_weight: Any, known: Array) -> tuple[Any, Any, Any]:
    """The answers, confounds and weights of those whose group is known."""
    if known.all():
        return X, confounds, sample_weight
    rows = np.flatnonzero(known)

    def some(table: Any) -> Any:
        if isinstance(table, Questionnaire):
            return table.take(rows)
        frame = as_pandas(table)
        return (
            None if frame is None else frame.iloc[rows] if hasattr(frame, "iloc") else np.asarray(frame)[rows]
        )

    return some(X), some(confounds), some(sample_weight)


def _common_fit(model: ICQF, X: Any, confounds: Any, sample_weight: Any) -> tuple[ICQF, StatedProblem]:
    """A fit to all groups with the model's settings and order of factors, and its stated problem."""
    fresh = clone(model).set_params(callback=None)
    stated = fresh.state(X, confounds=confounds, sample_weight=sample_weight)
    common = fresh.keep(stated, fresh.solve(stated))
    scaled = stated.problem.scaled_loadings
    order, _ = aligned(scaled(model.components_), scaled(common.components_))
    common.components_, common.solving_order_ = common.components_[order], np.arange(len(order))
    common.factor_names_ = list(model.factor_names_)
    return common, stated


def evidence_of(
    problem: Problem,
    fit: Factors,
    stated: StatedProblem,
    codes: Array,
    *,
    by: str = "group",
    families: Any = None,
    n_bands: int = N_BANDS,
) -> tuple[Evidence, tuple[str, ...]]:
    """What the tests compare, and what participants of a band have in common, in words.

    A confound that defines the groups counts as a difference between them: it is neither subtracted from the
    answers nor a reason for the propensity.
    """
    k, loadings, encoder = len(fit.scores), fit.loadings.copy(), stated.encoder
    confounds = {
        column.name: list(places) for column, places in zip(encoder.columns, encoder.partitions, strict=True)
    }
    for place in confounds.pop(by, []):
        loadings[k + place] = 0.0
    answers, residuals = np.empty((problem.n, problem.m)), np.empty((problem.n, problem.m))
    observed = np.empty((problem.n, problem.m), dtype=bool)
    for block in problem.precise_blocks():
        A = np.concatenate([fit.scores[:, block.rows], block.C])
        observed[block.rows], answers[block.rows] = block.observed() > 0, block.X
        residuals[block.rows] = block.X - A.T @ loadings
    weights, scores = problem.weights, fit.scores.T
    total = _overall_level(answers, observed)
    profile = [
        scores,
        scores**2,
        total[:, None],
        *(problem.design[places].T for places in confounds.values()),
    ]
    words = [
        "the same scores",
        "the same overall level of answers",
        *(f"the same {name}" for name in confounds),
    ]
    if weights is not None and np.ptp(weights) > 0:
        profile.append(np.log(weights)[:, None])
        words.append("the same survey weight")
    bands = make_bands(
        np.concatenate(profile, axis=1),
        codes,
        n_bands=n_bands,
        weights=weights,
        units=units_of(problem, families, stated.kept),
    )
    own = np.ones(problem.m) if problem.scaling is None else problem.scaling.scale
    given = observed * (1.0 if weights is None else weights[:, None])
    apart = np.where(observed, residuals / own, 0.0)
    return Evidence(apart, given, standardized(scores), own, bands), tuple(words)


def _overall_level(answers: Array, observed: Array) -> Array:
    """Mean answer (n,), in which a missing answer counts as much above its item's mean as the others are."""
    number = np.maximum(observed.sum(axis=0), 1)
    centred = np.where(observed, answers - np.where(observed, answers, 0.0).sum(axis=0) / number, 0.0)
    return centred.sum(axis=1) / np.maximum(observed.sum(axis=1), 1)


def _result(
    tests: PermutationTests,
    fits: GroupFits,
    level: Array,
    common: ICQF,
    groups: tuple[list[str], Array],
    what: str,
    given: tuple[str, ...],
    n_bands: int,
) -> Invariance:
    """The tables and verdicts."""
    k, names = len(common.components_), groups[0]
    worst, congruent = _lowest_agreement(fits.loadings[:, :k] * common.item_scale_)
    p = tests.p_factors()
    verdicts = [
        UNTESTED
        if np.isnan(each)
        else DIFFERENT
        if each < ALPHA + 1e-12
        else SAME
        if alike >= ALIKE
        else SIMILAR
        for each, alike in zip(p, congruent, strict=True)
    ]
    factors = pd.DataFrame(
        {
            "verdict": verdicts,
            "p": p,
            "congruence": congruent,
            "agreement": worst,
            "found": fits.fresh.min(axis=0),
        },
        index=pd.Index(common.factor_names_, name="factor"),
    )
    spread = np.ptp(fits.loadings[:, :k], axis=0)  # (k, m)
    most = (spread * common.item_scale_).argmax(axis=0)
    items = pd.DataFrame(index=pd.Index([str(name) for name in common.item_range_.index], name="item"))
    items["factor"] = [common.factor_names_[r] for r in most]
    items["difference"] = spread[most, np.arange(len(most))]
    for prefix, values in (("", tests.p_items()), ("level_", tests.p_levels())):
        if prefix:
            high, low = level.argmax(axis=0), level.argmin(axis=0)
            second_less_first = len(names) == 2
            items["level_difference"] = level[1] - level[0] if second_less_first else np.ptp(level, axis=0)
            items["level_higher"], items["level_lower"] = ([names[g] for g in each] for each in (high, low))
        items[f"{prefix}p"] = values
        items[f"{prefix}q"] = values if tests.thin else false_discovery_control(values)
        items[f"{prefix}flagged"] = items[f"{prefix}q"] <= ALPHA
    items["reversed"] = items.index.isin([each.name for each in common.codebook_.items if each.reverse])
    levels = pd.DataFrame(
        {
            "item": np.repeat(items.index, len(names)),
            "group": np.tile(names, len(items)),
            "level": level.T.ravel(),
        }
    )
    return Invariance(
        what,
        dict(zip(names, groups[1].tolist(), strict=True)),
        factors,
        items,
        _loading_table(fits, common, names),
        levels,
        given,
        n_bands,
        tests.left,
        not tests.thin,
        len(tests.permuted[0]),
        fits.n_resamples,
    )


def _lowest_agreement(loadings: Array) -> tuple[Array, Array]:
    """Lowest correlation and congruence (k,) over all pairs of groups, of loadings (groups, k, m)."""
    pairs = list(combinations(range(len(loadings)), 2))
    worst, congruent = (
        np.min([np.diag(correlations(loadings[a], loadings[b], centred=centred)) for a, b in pairs], axis=0)
        for centred in (True, False)
    )
    return worst, congruent


def _loading_table(fitted: GroupFits, common: ICQF, names: list[str]) -> pd.DataFrame:
    """Every loading with its interval, one row each."""
    k, items = len(common.components_), [str(name) for name in common.item_range_.index]
    top = np.ptp(common.item_range_.to_numpy(), axis=1) if common.loading_max == "item_range" else np.inf
    every = [common.factor_names_, names, items]
    table = pd.MultiIndex.from_product(every, names=["factor", "group", "item"]).to_frame(index=False)
    value, half = (each[:, :k].swapaxes(0, 1) for each in (fitted.loadings, Z * fitted.errors))
    return table[["factor", "item", "group"]].assign(
        loading=value.ravel(),
        low=np.maximum(value - half, 0.0).ravel(),
        high=np.minimum(value + half, top).ravel(),
        common=np.broadcast_to(common.components_[:, None], value.shape).ravel(),
    )


# --- words ------------------------------------------------------------------------------------------------


def _about_factors(result: Invariance) -> str:
    groups = (
        f"{len(result.sizes)} groups of {result.by!r}"
        if len(result.sizes) > 2
        else " and ".join(f"{name!r} ({n})" for name, n in result.sizes.items())
    )
    compared = f"{counted(len(result.factors), 'factor')} compared between {groups}"
    if not result.tested:
        return (
            f"{compared}: not tested, because the groups hardly overlap. Of participants with "
            f"{joined(result.given)}, too few are in different groups "
            f"({100 * result.overlap:.0f} % of what groups of one population would have), and a p-value "
            "would mean nothing."
        )
    counts = [(word, int((result.factors["verdict"] == word).sum())) for word in VERDICTS]
    verdicts = ", ".join(f"{n} {word}" for word, n in counts if n)
    text = f"{compared}: {verdicts}."
    for name, row in result.factors[result.factors["verdict"] == DIFFERENT].iterrows():
        small = " (a small difference, but beyond chance)" if row["congruence"] >= ALIKE else ""
        p = shown_p(row["p"], ALPHA, equals="= ")
        text += f" {name} differs: p {p}, congruence {row['congruence']:.2f}{small}."
    lost = [str(name) for name, value in result.factors["found"].items() if value < FOUND]
    if lost:
        text += f" A group fitted on its own does not find {', '.join(lost)} (correlation below {FOUND:g})."
    return text


def _about_items(result: Invariance) -> str:
    n = counted(len(result.items), "item")
    if not result.tested:
        return f"No item was tested. {_largest_level(result, result.items)}"
    flagged, level = (result.items[result.items[name]] for name in ("flagged", "level_flagged"))
    loads = (
        "no item loads"
        if flagged.empty
        else f"{counted(len(flagged), 'item')} load{'s' * (len(flagged) == 1)}"
    )
    answered = "none is" if level.empty else f"{len(level)} {'is' if len(level) == 1 else 'are'}"
    text = (
        f"Of {n}, {loads} differently, and {answered} answered higher or lower at equal scores (false "
        "discovery rate of 5 %)."
    )
    return text if level.empty else f"{text} {_largest_level(result, level)}"


def _largest_level(result: Invariance, items: pd.DataFrame) -> str:
    row = items.iloc[int(items["level_difference"].abs().to_numpy().argmax())]
    points, high, low = abs(row["level_difference"]), row["level_higher"], row["level_lower"]
    return (
        f"The largest such difference: {result.marked(str(row.name))} is answered {points:.2f} points higher "
        f"by {high!r} than by {low!r} with the same scores."
    )
