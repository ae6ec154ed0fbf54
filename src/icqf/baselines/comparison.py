"""How many factors, by answers made with one factor more: the comparison data method."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import CorrelationKind, Floats, item_moments
from icqf.baselines.count import FactorCount
from icqf.baselines.eigenvalues import eigenvalues
from icqf.baselines.extraction import degrees_of_freedom, extract
from icqf.baselines.retention import RandomState, largest_count, read_answers, refuse_wide
from icqf.errors import InputError, counted, shown_p

TRIALS = 5  # attempts without a better match before a population is taken as it is
MOST_ATTEMPTS = 50


def comparison_data(
    X: npt.ArrayLike,
    *,
    n_samples: int = 500,
    n_population: int = 10_000,
    alpha: float = 0.30,
    max_components: int | None = None,
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Comparison data: add factors as long as answers made with one more resemble these better.

    For 1, 2, ... factors a large population is made whose items have the answers of these items (their
    skew and steps included) and, as nearly as that many factors allow, their correlations. Samples of as
    many participants, with the same missing answers, are drawn from it; how far their eigenvalues are from
    those of the answers says how well that many factors explain them. A factor is added when the samples with
    it are nearer (one-sided Mann-Whitney test).

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    n_samples : int, default=500
        Samples drawn from each population.
    n_population : int, default=10000
        Size of each population; at least as many as there are participants are made.
    alpha : float, default=0.30
        Level of the test, as the authors recommend it.
    max_components : int, optional
        Default: as many factors as the items can identify.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.
    random_state : int, Generator or None
        An integer makes the result repeatable.

    Returns
    -------
    FactorCount
        The curve has the columns `rmsr` (mean root mean square difference of the eigenvalues) and `p_value`
        (of the test against one factor less; NaN for the first).

    References
    ----------
    J. Ruscio, B. Roche (2012). Determining the number of factors to retain in an exploratory factor analysis
    using comparison data of known factorial structure. Psychological Assessment 24, 282-292. The populations
    are made after J. Ruscio, W. Kaczetow (2008), Multivariate Behavioral Research 43, 355-381.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> comparison_data(X, n_samples=100, random_state=0).n_components
    3
    """
    if n_samples < 2:
        raise InputError(f"n_samples is {n_samples}; at least two samples are needed for a comparison.")
    if n_population < 100:
        raise InputError(f"n_population is {n_population}; choose at least 100.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; choose a number between 0 and 1, such as 0.30.")
    answers, moments = read_answers(X, correlation)
    R, (n, m) = moments.correlation, answers.shape
    if m < 3:
        raise InputError(f"{m} items are too few for comparison data; at least 3 are needed.")
    refuse_wide(answers, "Comparison data")
    identified = max(k for k in range(1, m) if degrees_of_freedom(m, k) >= 0)
    most = largest_count(max_components, identified, identified)
    rng = np.random.default_rng(random_state)
    ordered = _marginals((answers - moments.mean) / moments.scale, max(n_population, n))
    observed, missing = eigenvalues(R), np.isnan(answers)
    rows: list[tuple[int, float, float]] = []
    before = None
    for k in range(1, most + 1):
        population = make_population(R, ordered, k, rng)
        distance = np.empty(n_samples)
        for i in range(n_samples):
            sample = population[rng.integers(len(population), size=n)]
            sample[missing] = np.nan
            found = eigenvalues(_correlation(sample, correlation))
            distance[i] = np.sqrt(np.mean((found - observed) ** 2))
        p = np.nan if before is None else stats.mannwhitneyu(distance, before, alternative="less").pvalue
        rows.append((k, float(distance.mean()), float(p)))
        if p > alpha:  # never of the first, whose p is NaN
            break
        before = distance
    curve = pd.DataFrame(rows, columns=["n_components", "rmsr", "p_value"])
    stopped = bool(curve["p_value"].iloc[-1] > alpha)
    best = k - 1 if stopped else k
    if stopped:
        p = shown_p(curve["p_value"].iloc[-1], alpha, equals="= ")
        reason = (
            f"Answers made with {counted(best, 'factor')} resemble these as well as answers made with one "
            f"more (p {p} for the next factor, level {alpha:g})."
        )
    else:
        reason = f"Answers made with {counted(best, 'factor')}, the most looked at, resemble these best."
    return FactorCount("Comparison data", best, curve, reason, value="rmsr", better="lower")


def _marginals(answers: Floats, size: int) -> Floats:
    """Each item's own answers, in order, repeated evenly until there are `size` of them.

    The authors draw them with replacement; repeating them evenly keeps an answer that only one participant
    gave.
    """
    ordered = np.empty((size, answers.shape[1]))
    for j, column in enumerate(answers.T):
        given = np.sort(column[~np.isnan(column)])
        ordered[:, j] = given[(np.arange(size) * len(given)) // size]
    return ordered


def make_population(R: Floats, ordered: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Answers with given marginals and `k` factors whose correlations are as near to `R` as they come.

    Parameters
    ----------
    R : ndarray of shape (n_items, n_items)
        The correlations to reproduce.
    ordered : ndarray of shape (size, n_items)
        The answers that each item shall have, ascending.
    k : int
    rng : Generator

    Returns
    -------
    ndarray of shape (size, n_items)

    Examples
    --------
    >>> import numpy as np
    >>> R = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    >>> ordered = np.repeat(np.repeat([0.0, 1.0, 2.0], [700, 200, 100])[:, None], 6, axis=1)
    >>> made = make_population(R, ordered, 1, np.random.default_rng(0))
    >>> np.bincount(made[:, 0].astype(int)).tolist()
    [700, 200, 100]
    >>> bool(abs(np.corrcoef(made.T)[np.triu_indices(6, 1)].mean() - 0.3) < 0.01)
    True
    """
    size, m = ordered.shape
    shared, own = rng.standard_normal((size, k)), rng.standard_normal((size, m))
    below = np.tril_indices(m, -1)
    aim, best_aim, best_left = R, R, np.zeros_like(R)
    best, found = np.inf, ordered
    trial = attempt = 0
    while trial < TRIALS and attempt < MOST_ATTEMPTS:
        attempt += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the aim is only a step on the way
            L = extract(aim, k, tol=1e-4).loadings
        explained = np.sum(L**2, axis=1)
        L = L / np.sqrt(np.maximum(explained, 1.0))[:, None]
        level = shared @ L.T + own * np.sqrt(1.0 - np.minimum(explained, 1.0))
        made = np.empty_like(ordered)
        np.put_along_axis(made, np.argsort(level, axis=0), ordered, axis=0)
        left = R - _correlation(made, "pairwise")
        miss = float(np.sqrt(np.mean(left[below] ** 2)))
        if miss < best:
            best, best_aim, best_left, found, trial = miss, aim, left, made, 0
            aim = best_aim + best_left
        else:
            trial += 1
            aim = best_aim + 0.5**trial * best_left
    return found


def _correlation(X: Floats, correlation: CorrelationKind) -> Floats:
    """Correlations of a sample, in which a rare answer may be left out: an item without spread has none."""
    if correlation == "em" and np.isnan(X).any():
        R = np.eye(X.shape[1])
        varies = np.flatnonzero(np.nanmax(X, axis=0) > np.nanmin(X, axis=0))
        R[np.ix_(varies, varies)] = item_moments(X[:, varies], correlation="em").correlation
        return R
    seen = ~np.isnan(X)
    Z = np.where(seen, X - np.nanmean(X, axis=0), 0.0)
    if seen.all():
        cross = Z.T @ Z
        spread = np.outer(np.diag(cross), np.diag(cross))
    else:
        O = seen.astype(np.float64)
        n = np.maximum(O.T @ O, 1.0)
        total = Z.T @ O
        square = np.maximum((Z * Z).T @ O - total**2 / n, 0.0)
        cross = Z.T @ Z - total * total.T / n
        spread = square * square.T
    with np.errstate(divide="ignore", invalid="ignore"):
        R = np.where(spread > 1e-20 * spread.max(), cross / np.sqrt(spread), 0.0)
    R = np.clip((R + R.T) / 2, -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    return R
