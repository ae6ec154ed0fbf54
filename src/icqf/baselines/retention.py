"""How many factors to keep in a factor analysis: parallel analysis, Velicer's MAP and BIC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg
from sklearn.utils.validation import check_array

from icqf.baselines.correlation import (
    CorrelationKind,
    Floats,
    Moments,
    as_input_errors,
    check_items,
    is_positive_definite,
    item_moments,
)
from icqf.baselines.count import FactorCount
from icqf.baselines.extraction import Method, degrees_of_freedom, extract, fit_statistics, start_uniquenesses
from icqf.baselines.wide import unit_columns, wide_eigenvalues
from icqf.errors import InputError, counted

RandomState = int | np.random.Generator | None


def read_answers(X: npt.ArrayLike, correlation: CorrelationKind) -> tuple[Floats, Moments]:
    """Answers as an array without the participants who answered nothing, and their correlations."""
    answers, names = _answers(X)
    return answers, item_moments(answers, correlation=correlation, names=names)


def _answers(X: npt.ArrayLike) -> tuple[Floats, Sequence[Any] | None]:
    """Answers as an array without the participants who answered nothing, and the items' names."""
    names: Sequence[Any] | None = list(X.columns) if isinstance(X, pd.DataFrame) else None
    with as_input_errors():
        answers = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2, ensure_min_features=2
        )
    return answers[~np.isnan(answers).all(axis=1)], names


def refuse_wide(answers: Floats, rule: str) -> None:
    """Refuse more items than participants for a rule that draws samples from fitted factor models."""
    n, m = answers.shape
    if m >= n:
        raise InputError(
            f"{rule} draws samples from factor models, which need more participants than items; there are "
            f"{counted(n, 'participant')} and {counted(m, 'item')}. Use parallel_analysis, or fewer items."
        )


def largest_count(max_components: int | None, default: int, ceiling: int) -> int:
    """The largest number of factors to look at: what was asked for, or `default`, at most `ceiling`."""
    if max_components is None:
        return max(1, min(default, ceiling))
    if not 1 <= max_components <= ceiling:
        raise InputError(f"max_components is {max_components}; for these items choose 1 to {ceiling}.")
    return int(max_components)


def parallel_analysis(
    X: npt.ArrayLike,
    *,
    n_iter: int = 100,
    quantile: float = 0.95,
    kind: Literal["fa", "pc"] = "fa",
    communalities: Literal["minres", "smc"] = "minres",
    random_data: Literal["normal", "permuted"] = "normal",
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Horn's parallel analysis: keep the factors that are stronger than those of unrelated items.

    The eigenvalues of the items' correlations are held against the eigenvalues of random data with as many
    participants and items and the same missing answers. Factors are counted up to the first one that is not
    above the given quantile of its random counterparts.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    n_iter : int, default=100
        Random data sets.
    quantile : float, default=0.95
        The quantile of the random eigenvalues to beat.
    kind : {"fa", "pc"}, default="fa"
        "fa": eigenvalues with communalities in the diagonal, for factors. "pc": eigenvalues of the plain
        correlation matrix, for principal components (Horn's original).
    communalities : {"minres", "smc"}, default="minres"
        For ``kind="fa"``: the communalities of a one-factor minres solution (as R's psych does unless told
        otherwise), or the squared multiple correlations.
    random_data : {"normal", "permuted"}, default="normal"
        Independent normal answers, or the given answers shuffled within each item.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.
    random_state : int, Generator or None
        An integer makes the result repeatable.

    Returns
    -------
    FactorCount
        The curve has the columns `eigenvalue`, `random_eigenvalue` (the quantile) and `random_mean`.

    Notes
    -----
    With more items than participants, pairwise correlations of incomplete answers are no longer those of any
    table. Missing answers then stand at their item's mean, in the answers as in the random data, and the
    eigenvalues come from the smaller side of the table: at most 100, and fewer than participants.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> count = parallel_analysis(X, n_iter=20, random_state=0)
    >>> count.n_components
    3
    """
    if kind not in ("fa", "pc"):
        raise InputError(f"kind is {kind!r}; choose 'fa' or 'pc'.")
    if communalities not in ("minres", "smc"):
        raise InputError(f"communalities is {communalities!r}; choose 'minres' or 'smc'.")
    if random_data not in ("normal", "permuted"):
        raise InputError(f"random_data is {random_data!r}; choose 'normal' or 'permuted'.")
    if n_iter < 1:
        raise InputError(f"n_iter is {n_iter}; at least one random data set is needed.")
    if not 0 < quantile < 1:
        raise InputError(f"quantile is {quantile}; choose a number between 0 and 1, such as 0.95.")
    answers, names = _answers(X)
    check_items(answers, names)
    wide = correlation == "pairwise" and answers.shape[1] > len(answers)

    def eigenvalues(table: Floats) -> Floats:
        if wide:
            return wide_eigenvalues(unit_columns(table), kind, communalities)
        R = item_moments(table, correlation=correlation, names=names).correlation
        return _eigenvalues(R, kind, communalities)

    rng = np.random.default_rng(random_state)
    missing = np.isnan(answers)
    observed = eigenvalues(answers)
    random = np.empty((n_iter, len(observed)))
    for i in range(n_iter):
        if random_data == "normal":
            unrelated = rng.standard_normal(answers.shape)
            unrelated[missing] = np.nan
        else:
            unrelated = rng.permuted(answers, axis=0)
        random[i] = eigenvalues(unrelated)
    bar = np.quantile(random, quantile, axis=0)
    below = np.flatnonzero(~(observed > bar))
    n_components = int(below[0]) if len(below) else len(observed)
    curve = pd.DataFrame(
        {
            "n_components": np.arange(1, len(observed) + 1),
            "eigenvalue": observed,
            "random_eigenvalue": bar,
            "random_mean": random.mean(axis=0),
        }
    )
    against = f"{quantile:.0%} of {n_iter} sets of unrelated answers"
    if n_components == 0:
        reason = f"Not even the first factor is stronger than the first factor of {against}."
    elif n_components == len(observed):
        reason = f"Every factor is stronger than its counterpart in {against}."
    else:
        reason = (
            f"The first {counted(n_components, 'factor')} explained more than in {against}; factor "
            f"{n_components + 1} did not (eigenvalue {observed[n_components]:.2f} against "
            f"{bar[n_components]:.2f})."
        )
    name = "Parallel analysis" if kind == "fa" else "Parallel analysis (components)"
    return FactorCount(name, n_components, curve, reason, value="eigenvalue", reference="random_eigenvalue")


def _eigenvalues(R: Floats, kind: str, communalities: str) -> Floats:
    """Eigenvalues, largest first, of a correlation matrix with communalities or ones in the diagonal."""
    S = R.copy()
    if kind == "fa" and communalities == "smc":
        np.fill_diagonal(S, 1.0 - start_uniquenesses(R))
    elif kind == "fa":
        # Eigenvalues to four digits are plenty for the comparison.
        np.fill_diagonal(S, np.sum(extract(R, 1, tol=1e-6).loadings ** 2, axis=1))
    return np.asarray(linalg.eigvalsh(S, check_finite=False)[::-1], dtype=np.float64)


def velicer_map(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    power: Literal[2, 4] = 2,
    correlation: CorrelationKind = "pairwise",
) -> FactorCount:
    """Velicer's minimum average partial: stop when what is left between items is least.

    For each number of principal components, the components are taken out of the items and the remaining
    (partial) correlations are squared and averaged. Components that still carry something shared lower the
    average; one that is specific to few items raises it.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    max_components : int, optional
        Default: one less than the number of items.
    power : {2, 4}, default=2
        2: squared partial correlations (1976); 4: their fourth power (the revised test of 2000).
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"

    Returns
    -------
    FactorCount
        The curve has the column `average_partial` and starts at 0 components.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> velicer_map(X).n_components
    3
    """
    if power not in (2, 4):
        raise InputError(f"power is {power}; choose 2 (Velicer 1976) or 4 (the revised test).")
    R = read_answers(X, correlation)[1].correlation
    m = len(R)
    values, V = linalg.eigh(R)
    components = V[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    last = largest_count(max_components, m - 1, m - 1)
    left = R.copy()
    average = []
    for count in range(last + 1):
        if count:
            left = left - np.outer(components[:, count - 1], components[:, count - 1])
        variance = np.diag(left)
        if variance.min() <= 1e-8:
            break  # an item is used up: its partial correlations no longer exist
        partial = left / np.sqrt(np.outer(variance, variance))
        average.append((np.sum(partial**power) - m) / (m * (m - 1)))
    best = int(np.argmin(average))
    curve = pd.DataFrame({"n_components": np.arange(len(average)), "average_partial": average})
    if best == 0:
        reason = "Taking out even one factor leaves the items more related than before."
    else:
        reason = (
            f"With {counted(best, 'factor')} taken out, what is left between the items is least (average "
            f"partial correlation to the power of {power}: {average[best]:.4f})."
        )
    return FactorCount("Velicer's MAP", best, curve, reason, value="average_partial", better="lower")


def bic_factor_analysis(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    method: Method = "minres",
    correlation: CorrelationKind = "pairwise",
) -> FactorCount:
    """BIC of factor models with 1, 2, ... factors: fit, less a price for every parameter.

    The paper calls this BIC₂: ``chi2 - dof * log(n_participants)`` with the Bartlett-corrected
    likelihood-ratio statistic ``chi2`` of the fitted model.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    max_components : int, optional
        Default: 20, or as many as leave degrees of freedom.
    method : {"minres", "ml"}, default="minres"
        How the factors are extracted.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"

    Returns
    -------
    FactorCount
        The curve has the columns `bic`, `chi2` and `dof`.

    References
    ----------
    K. J. Preacher, G. Zhang, C. Kim, G. Mels (2013). Choosing the optimal number of factors in exploratory
    factor analysis: a model selection perspective. Multivariate Behavioral Research 48, 28-56.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> bic_factor_analysis(X).n_components
    3
    """
    answers, moments = read_answers(X, correlation)
    R = moments.correlation
    m = len(R)
    if not is_positive_definite(R):
        raise InputError(
            f"The correlation matrix of {m} items from {len(answers)} participants is not positive definite, "
            "so BIC does not exist; use correlation='em', more participants, or fewer items."
        )
    usable = [k for k in range(1, m) if degrees_of_freedom(m, k) > 0]
    if not usable:
        raise InputError(f"{m} items are too few for a factor model with BIC; at least 4 are needed.")
    rows = []
    for k in range(1, largest_count(max_components, 20, usable[-1]) + 1):
        L = extract(R, k, method=method).loadings
        fit = fit_statistics(R, L @ L.T, k, len(answers))
        rows.append((k, fit.bic, fit.chi2, fit.dof))
    curve = pd.DataFrame(rows, columns=["n_components", "bic", "chi2", "dof"])
    if curve["bic"].isna().all():
        raise InputError("No factor model of these items has a BIC; drop items that repeat others.")
    best = int(curve["n_components"].to_numpy()[np.nanargmin(curve["bic"].to_numpy())])
    reason = (
        f"A model with {counted(best, 'factor')} has the best balance of fit and simplicity (lowest BIC, "
        f"{curve['bic'].min():.1f}, of 1 to {len(curve)} factors)."
    )
    return FactorCount("BIC", best, curve, reason, value="bic", better="lower")
