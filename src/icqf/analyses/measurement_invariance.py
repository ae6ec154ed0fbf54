"""Are the factors the same in every group? One fit per group, a common one, and a test by permutation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
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
from icqf.engines.parallel import Progress, run_all
from icqf.errors import InputError, counted, did_you_mean, listed, shown_p
from icqf.models.consensus import fresh_agreement
from icqf.models.icqf import ICQF
from icqf.models.statement import StatedProblem
from icqf.resampling.bootstrap import Z, bootstrap, refits, settled
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.replication import FOUND

Array = NDArray[Any]
_AT_ONCE = 10  # permutations or resamples of one job
_DIGITS = 12
FEWEST = 30  # participants of a group
MOST_GROUPS = 12
ALPHA = 0.05
ALIKE = 0.95  # congruence from which factors count as the same (Lorenzo-Seva and ten Berge 2006)
SAME, SIMILAR, DIFFERENT = VERDICTS = ("same", "similar", "different")


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Fits of groups and of shuffled groups."""

    sizes: Array  # (G,)
    loadings: Array  # (G, K, m), matched with the common factors, in the items' own units; confounds last
    levels: Array  # (G, m), mean residual of each group under the common model
    errors: Array  # (G, k, m), bootstrap standard errors of the loadings
    fresh: Array  # (G, k), agreement of each factor when a group is fitted from scratch
    differences: tuple[Array, ...]  # sums of squares between groups, of factors, items and levels
    shuffled: tuple[Array, ...]  # the same for shuffled groups
    n_resamples: int

    def p_factors(self) -> Array:
        """p (k,) of each factor, corrected for the number of factors (Westfall and Young's max statistic)."""
        every = np.concatenate([self.differences[0][None], self.shuffled[0]])
        relative = every / np.maximum(every.mean(axis=0), 1e-300)
        largest = relative[1:].max(axis=1)
        return (1 + (largest[:, None] >= relative[0]).sum(axis=0)) / len(every)

    def p_items(self) -> Array:
        """p (m,) of each item's loadings."""
        return _pooled(self.differences[1], self.shuffled[1])

    def p_levels(self) -> Array:
        """p (m,) of each item's level."""
        return _pooled(self.differences[2], self.shuffled[2])


def _pooled(observed: Array, shuffled: Array) -> Array:
    """p (m,) against all items' shuffled statistics, each relative to its own mean."""
    every = np.concatenate([observed[None], shuffled])
    relative = every / np.maximum(every.mean(axis=0), 1e-300)
    pool = np.sort(relative[1:].ravel())
    above = len(pool) - np.searchsorted(pool, relative[0], side="left")
    return (1 + above) / (1 + len(pool))


def contrasts(
    problem: Problem,
    common: Factors,
    residuals: Array,
    codes: Array,
    *,
    n_permutations: int,
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
) -> Contrasts:
    """Fit groups, resamples of them and shuffled groups, all starting from the common fit."""
    start, number = settled(problem, common), int(codes.max()) + 1
    k = len(common.scores)
    jobs: dict[str, tuple[Any, ...]] = {}
    for first in range(0, n_permutations, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, n_permutations))
        jobs[f"shuffled {first}"] = (
            _shuffled,
            problem,
            start,
            residuals,
            codes,
            [(seed, 0, at) for at in numbers],
        )
    for group in range(number):
        part = problem.of_rows(np.flatnonzero(codes == group))
        jobs[f"afresh {group}"] = (_fresh_fit, part, common.loadings[:k])
        for first in range(0, n_resamples, _AT_ONCE):
            size = min(_AT_ONCE, n_resamples - first)
            own = Factors(common.scores[:, codes == group], common.loadings)
            jobs[f"resampled {group} {first}"] = (_resampled, part, own, size, (seed, 1 + group, first))
    done = run_all(
        jobs,
        _work,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    shuffled = [
        part for name, result in done.items() if name.startswith("shuffled") for part in result["apart"]
    ]
    fitted, differences = group_differences(problem, start, residuals, codes)
    errors = [
        np.concatenate(
            [result["loadings"] for name, result in done.items() if name.startswith(f"resampled {group} ")]
        ).std(axis=0, ddof=1)
        for group in range(number)
    ]
    return Contrasts(
        np.bincount(codes),
        np.stack([problem.own_loadings(loadings) for loadings in fitted]),
        level_of(residuals, codes),
        np.stack(errors),
        np.array([done[f"afresh {group}"]["agreement"] for group in range(number)]),
        differences,
        tuple(np.array([part[at] for part in shuffled]) for at in range(3)),
        n_resamples,
    )


def group_differences(
    problem: Problem, start: Factors, residuals: Array, codes: Array
) -> tuple[list[Array], tuple[Array, Array, Array]]:
    """Matched loadings (K, m) of each group, and sums of squares between groups."""
    k, members = len(start.scores), [(codes == group).astype(int) for group in range(int(codes.max()) + 1)]
    fitted = []
    for loadings in refits(problem, start, members):
        order, _ = aligned(start.loadings[:k], loadings[:k])
        fitted.append(np.concatenate([rescaled(loadings[:k][order], start.loadings[:k]), loadings[k:]]))
    share = np.bincount(codes) / len(codes)
    between = _between(np.stack(fitted)[:, :k], share)
    return fitted, (
        between.sum(axis=1),
        between.sum(axis=0),
        _between(level_of(residuals, codes), share),
    )


def rescaled(loadings: Array, common: Array) -> Array:
    """Loadings (…, k, m) rescaled to the norm of the common factors, which depends on the highest scorers."""
    length = np.linalg.norm(loadings, axis=-1, keepdims=True)
    return loadings * (np.linalg.norm(common, axis=-1, keepdims=True) / np.maximum(length, 1e-300))


def _between(values: Array, share: Array) -> Array:
    """Sum of squares between groups, of values (G, …)."""
    mean = np.tensordot(share, values, axes=1)
    return np.tensordot(share, (values - mean) ** 2, axes=1)


def level_of(residuals: Array, codes: Array) -> Array:
    """Mean residual (G, m) of each group, from residuals (n, m); NaN is missing."""
    given = ~np.isnan(residuals)
    member = np.arange(int(codes.max()) + 1)[:, None] == codes  # (G, n)
    return (member @ np.where(given, residuals, 0.0)) / np.maximum(member @ given.astype(float), 1.0)


def _work(kind: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    return kind(*arguments)


def _shuffled(
    problem: Problem, start: Factors, residuals: Array, codes: Array, seeds: Sequence[Any]
) -> dict[str, Any]:
    statistics = []
    for seed in seeds:
        _, differences = group_differences(
            problem, start, residuals, np.random.default_rng(seed).permutation(codes)
        )
        statistics.append([np.asarray(part, dtype=float).tolist() for part in differences])
    return {"apart": statistics}


def _fresh_fit(part: Problem, loadings: Array) -> dict[str, Any]:
    return {"agreement": fresh_agreement(part, loadings, part.penalty.beta).tolist()}


def _resampled(part: Problem, own: Factors, size: int, seed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    k, common = len(own.scores), part.own_loadings(own.loadings)
    drawn = bootstrap(part, own.scores, common, n_resamples=size, rng=rng)
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
        One row per factor: ``verdict`` (same, similar or different), ``p`` (of the test that its loadings are
        the same in all groups, corrected for the number of factors), ``congruence`` and ``agreement``
        (Tucker's congruence and Pearson's correlation of the two groups that agree least), and ``found``
        (lowest correlation with the common factor when a group is fitted from scratch).
    items : DataFrame
        One row per item: ``factor`` (on which its loadings differ most), ``difference`` (of these loadings,
        in the item's points), ``p``, ``q`` (after Benjamini and Hochberg) and ``flagged``; and the same for
        its level at equal scores (``level_difference, level_p, level_q, level_flagged``).
    loadings : DataFrame
        ``factor, item, group, loading, low, high, common``: every loading with its 95 % interval.
    n_permutations, n_resamples : int

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import invariance
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> result = invariance(ICQF(2).fit(demo), demo, by="sex", n_permutations=19, n_resamples=10)
    >>> result.sizes, result.factors.shape
    ({'female': 302, 'male': 298}, (2, 5))
    """

    by: str
    sizes: dict[str, int]
    factors: pd.DataFrame
    items: pd.DataFrame
    loadings: pd.DataFrame
    n_permutations: int
    n_resamples: int

    @property
    def verdict(self) -> str:
        """The verdict on the factor that differs most."""
        return max(self.factors["verdict"], key=VERDICTS.index)

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
    n_permutations: int = 199,
    n_resamples: int = 100,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
    random_state: Any = 0,
) -> Invariance:
    """Compare the factors of groups of participants: girls and boys, sites, languages, visits.

    A model with the same settings is fitted to everybody and, starting from there, to each group; factors are
    matched by their loadings. Differences are tested by permutation of the groups, corrected for the number
    of factors: a factor is *different* if p < 0.05. Otherwise it is the *same* if Tucker's congruence is at
    least 0.95, and *similar* if lower.

    Parameters
    ----------
    model : fitted ICQF
        Its settings and its factors' names and order are used.
    X, confounds, sample_weight
        The answers, of all groups.
    by : str or array (n,)
        The group of each participant: a column of the questionnaire's confounds, or labels. Participants
        without one are left out.
    n_permutations : int
        How often groups are shuffled.
    n_resamples : int
        Resamples of each group behind the intervals of its loadings.
    n_jobs : int, optional
        Processes; the result does not depend on it.
    checkpoint : path, optional
        Journal from which an interrupted run continues.
    callback : callable, optional
        Called with the progress.
    random_state : int, RandomState or None

    Returns
    -------
    Invariance

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
    common, stated = _common_fit(model, *_with_known_group(X, confounds, sample_weight, known))
    names, codes = _groups(labels[known][stated.kept], what)
    problem = stated.problem.with_beta(float(model.beta))
    every = np.concatenate([common.components_, common.confound_components_])
    fit = Factors(common.solve_scores(problem), problem.scaled_loadings(every))
    fitted = contrasts(
        *(problem, fit, _residuals(problem, fit, stated, what), codes),
        n_permutations=n_permutations,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
        seed=int(check_random_state(random_state).randint(2**31 - 1)),
    )
    return _result(fitted, common, names, what)


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
                "by",
                f" names {by!r}, which is an item of the model; name a column of groups.",
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


def _residuals(problem: Problem, fit: Factors, stated: StatedProblem, by: str) -> Array:
    """Residuals (n, m) in the items' own units; a confound that defines the groups is not subtracted."""
    k, loadings = len(fit.scores), fit.loadings.copy()
    for column, places in zip(stated.encoder.columns, stated.encoder.partitions, strict=True):
        if column.name == by:
            loadings[[k + place for place in places]] = 0.0
    residuals = np.empty((problem.n, problem.m))
    for block in problem.precise_blocks():
        A = np.concatenate([fit.scores[:, block.rows], block.C])
        residuals[block.rows] = np.where(block.observed() > 0, block.X - A.T @ loadings, np.nan)
    return residuals if problem.scaling is None else residuals / problem.scaling.scale


def _result(fitted: Contrasts, common: ICQF, names: list[str], what: str) -> Invariance:
    """The tables and verdicts."""
    k = len(common.components_)
    worst, congruent = _lowest_agreement(fitted.loadings[:, :k] * common.item_scale_)
    p = fitted.p_factors()
    verdicts = [
        DIFFERENT if each < ALPHA + 1e-12 else SAME if alike >= ALIKE else SIMILAR
        for each, alike in zip(p, congruent, strict=True)
    ]
    factors = pd.DataFrame(
        {
            "verdict": verdicts,
            "p": p,
            "congruence": congruent,
            "agreement": worst,
            "found": fitted.fresh.min(axis=0),
        },
        index=pd.Index(common.factor_names_, name="factor"),
    )
    spread = np.ptp(fitted.loadings[:, :k], axis=0)  # (k, m)
    most = (spread * common.item_scale_).argmax(axis=0)
    items = pd.DataFrame(index=pd.Index([str(name) for name in common.item_range_.index], name="item"))
    items["factor"] = [common.factor_names_[r] for r in most]
    items["difference"] = spread[most, np.arange(len(most))]
    items["level_difference"] = np.ptp(fitted.levels, axis=0)
    for prefix, values in (("", fitted.p_items()), ("level_", fitted.p_levels())):
        items[f"{prefix}p"] = values
        items[f"{prefix}q"] = false_discovery_control(values)
        items[f"{prefix}flagged"] = items[f"{prefix}q"] <= ALPHA
    items = items[
        [
            *("factor", "difference", "p", "q", "flagged"),
            *items.columns[items.columns.str.startswith("level")],
        ]
    ]
    return Invariance(
        what,
        dict(zip(names, fitted.sizes.tolist(), strict=True)),
        factors,
        items,
        _loading_table(fitted, common, names),
        len(fitted.shuffled[0]),
        fitted.n_resamples,
    )


def _lowest_agreement(loadings: Array) -> tuple[Array, Array]:
    """Lowest correlation and congruence (k,) over all pairs of groups, of loadings (groups, k, m)."""
    pairs = list(combinations(range(len(loadings)), 2))
    worst, congruent = (
        np.min([np.diag(correlations(loadings[a], loadings[b], centred=centred)) for a, b in pairs], axis=0)
        for centred in (True, False)
    )
    return worst, congruent


def _loading_table(fitted: Contrasts, common: ICQF, names: list[str]) -> pd.DataFrame:
    """Every loading with its interval, one row each."""
    k, items = len(common.components_), [str(name) for name in common.item_range_.index]
    top = np.ptp(common.item_range_.to_numpy(), axis=1) if common.loading_max == "item_range" else np.inf
    rows = []
    for r, factor in enumerate(common.factor_names_):
        for g, group in enumerate(names):
            value, half = fitted.loadings[g, :k][r], Z * fitted.errors[g, r]
            rows.append(
                pd.DataFrame(
                    {
                        "factor": factor,
                        "item": items,
                        "group": group,
                        "loading": value,
                        "low": np.maximum(value - half, 0.0),
                        "high": np.minimum(value + half, top),
                        "common": common.components_[r],
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)


# --- words ------------------------------------------------------------------------------------------------


def _about_factors(result: Invariance) -> str:
    groups = (
        f"{len(result.sizes)} groups of {result.by!r}"
        if len(result.sizes) > 2
        else " and ".join(f"{name!r} ({n})" for name, n in result.sizes.items())
    )
    counts = [(word, int((result.factors["verdict"] == word).sum())) for word in VERDICTS]
    verdicts = ", ".join(f"{n} {word}" for word, n in counts if n)
    text = f"{counted(len(result.factors), 'factor')} compared between {groups}: {verdicts}."
    for name, row in result.factors[result.factors["verdict"] == DIFFERENT].iterrows():
        small = " (a small difference, but beyond chance)" if row["congruence"] >= ALIKE else ""
        p = shown_p(row["p"], ALPHA, equals="= ")
        text += f" {name} differs: p {p}, congruence {row['congruence']:.2f}{small}."
    lost = [str(name) for name, value in result.factors["found"].items() if value < FOUND]
    if lost:
        text += f" A group fitted on its own does not find {', '.join(lost)} (correlation below {FOUND:g})."
    return text


def _about_items(result: Invariance) -> str:
    flagged, level = (result.items[result.items[name]] for name in ("flagged", "level_flagged"))
    loads = (
        "no item loads"
        if flagged.empty
        else f"{counted(len(flagged), 'item')} load{'s' * (len(flagged) == 1)}"
    )
    answered = "none is" if level.empty else f"{len(level)} {'is' if len(level) == 1 else 'are'}"
    return (
        f"Of {counted(len(result.items), 'item')}, {loads} differently, and {answered} answered higher "
        "or lower at equal scores (false discovery rate of 5 %)."
    )
