"""How many factors: parallel analysis, MAP, BIC, Kaiser, Hull, comparison data, and all at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg, optimize, stats
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from icqf.baselines.correlation import (
    CorrelationKind,
    Floats,
    Moments,
    as_input_errors,
    check_items,
    is_positive_definite,
    item_moments,
    kmo,
    pairwise_sums,
)
from icqf.baselines.factor_analysis import (
    LOWEST_UNIQUENESS,
    Extraction,
    Method,
    degrees_of_freedom,
    extract,
    fit_statistics,
    start_uniquenesses,
)
from icqf.engines.progress import Progress
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError, counted, joined, shown_p


@dataclass(frozen=True, eq=False, repr=False)
class FactorCount:
    """How many factors a method chose, and why.

    Attributes
    ----------
    method : str
        Name of the method, such as "Parallel analysis".
    n_components : int
        The number of factors chosen; 0 means that no factor stands out.
    curve : DataFrame
        One row per number of factors tried: column `n_components` and one or more value columns.
    reason : str
        One sentence on why this number was chosen.
    value : str
        The column of `curve` that the method compares. Default: the first one after `n_components`.
    better : {"lower", "higher"} or None
        Whether a lower or a higher value is better; None if values are compared with `reference`.
    reference : str or None
        A column of `curve` to compare `value` with, such as the eigenvalues of random data.
    spread : str or None
        A column of `curve` with the uncertainty of `value`, such as its standard error.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"n_components": [1, 2, 3], "error": [0.9, 0.4, 0.5]})
    >>> count = FactorCount("Cross-validation", 2, curve, "Two factors predict hidden answers best.",
    ...                     better="lower")
    >>> count
    FactorCount(method='Cross-validation', n_components=2)
    >>> print(count)
    Cross-validation: 2 factors. Two factors predict hidden answers best.
    """

    method: str
    n_components: int
    curve: pd.DataFrame
    reason: str
    value: str = ""
    better: Literal["lower", "higher"] | None = None
    reference: str | None = None
    spread: str | None = None

    def __post_init__(self) -> None:
        columns = [str(name) for name in self.curve.columns]
        if "n_components" not in columns or len(columns) < 2:
            raise ValueError(
                f"The curve of {self.method!r} has the columns {columns}; it needs 'n_components' and at "
                "least one column of values."
            )
        if not self.value:
            object.__setattr__(self, "value", next(name for name in columns if name != "n_components"))
        for name in (self.value, self.reference, self.spread):
            if name is not None and name not in columns:
                raise ValueError(f"The curve of {self.method!r} has no column {name!r}, only {columns}.")
        if self.better not in ("lower", "higher", None):
            raise ValueError(f"better is {self.better!r}; choose 'lower', 'higher' or None.")
        object.__setattr__(self, "n_components", int(self.n_components))

    def __repr__(self) -> str:
        return f"FactorCount(method={self.method!r}, n_components={self.n_components})"

    def __str__(self) -> str:
        return f"{self.method}: {counted(self.n_components, 'factor')}. {self.reason}"


# Eigenvalues of the correlations of more items than participants, without the full matrix.
#
# The correlations of m items from n participants are ``Z.T @ Z`` for a table Z of n rows, so that a product
# with a vector costs n·m operations, and at most n − 1 eigenvalues are above 0.

MOST_EIGENVALUES = 100
_SMALL = 300  # items up to which decomposing the whole matrix is faster


def unit_columns(X: Floats) -> Floats:
    """Answers (n, m) as columns of mean 0 and length 1, missing answers at their item's mean."""
    Z = X - np.nanmean(X, axis=0)
    Z[np.isnan(Z)] = 0.0
    return np.asarray(Z / np.linalg.norm(Z, axis=0))


def wide_eigenvalues(Z: Floats, kind: str, communalities: str) -> Floats:
    """The largest eigenvalues of ``Z.T @ Z``, with communalities in its diagonal if `kind` is "fa".

    There are n − 1 of them, or `MOST_EIGENVALUES` if that is fewer. Squared multiple correlations do not
    exist for more items than participants; communalities are then 0.5, as in
    `icqf.baselines.factor_analysis`.
    """
    n, m = Z.shape
    count = min(n - 1, m - 1, MOST_EIGENVALUES)
    if kind == "pc" or communalities == "smc":
        values = linalg.eigvalsh(Z @ Z.T, check_finite=False)[::-1][:count]
        return np.asarray(values - (0.5 if kind == "fa" else 0.0))
    return _largest(Z, 1.0 - one_factor(Z) ** 2, count)


def one_factor(Z: Floats) -> Floats:
    """Loadings (m,) of one factor by minimum residuals, ignoring the diagonal."""
    values, V = linalg.eigh(Z @ Z.T, subset_by_index=(len(Z) - 1,) * 2, check_finite=False)
    start = Z.T @ V[:, 0]  # the first principal component
    highest = np.sqrt(1.0 - LOWEST_UNIQUENESS)

    def residual(loadings: Floats) -> tuple[float, Floats]:
        pulled, size = Z.T @ (Z @ loadings) - loadings, float(loadings @ loadings)
        square = loadings**2
        value = (size**2 - float(square @ square)) / 2 - float(loadings @ pulled)
        return value, 2 * (size * loadings - loadings * square - pulled)

    result = optimize.minimize(
        residual,
        np.clip(start, -highest, highest),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-highest, highest)] * Z.shape[1],
        options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-6 * float(values[0])},
    )
    return np.asarray(result.x)


def _largest(Z: Floats, uniquenesses: Floats, count: int) -> Floats:
    """The `count` largest eigenvalues of ``Z.T @ Z`` minus the uniquenesses in its diagonal."""
    m = Z.shape[1]
    if m <= _SMALL:
        S = Z.T @ Z - np.diag(uniquenesses)
        return np.asarray(linalg.eigvalsh(S, check_finite=False)[::-1][:count])
    S = LinearOperator(
        (m, m), matvec=lambda v: Z.T @ (Z @ v.ravel()) - uniquenesses * v.ravel(), dtype=np.float64
    )
    # A fixed start, as the library's is random.
    values = eigsh(S, count, which="LA", v0=np.ones(m), tol=1e-6, return_eigenvectors=False)
    return np.asarray(np.sort(values)[::-1])


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


def _refuse_indefinite(R: Floats, n: int, so: str) -> None:
    if not is_positive_definite(R):
        raise InputError(
            f"The correlation matrix of {len(R)} items from {n} participants is not positive definite, so "
            f"{so}; use correlation='em', more participants, or fewer items."
        )


def _refuse_unknown(name: str, value: str, one: str, other: str) -> None:
    if value not in (one, other):
        raise InputError(f"{name} is {value!r}; choose {one!r} or {other!r}.")


def _refuse_share(name: str, value: float, such_as: str) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}; choose a number between 0 and 1, such as {such_as}.")


def most_identified(m: int) -> int:
    """The largest number of factors that `m` items can identify; 0 if they are too few for one."""
    return max((k for k in range(1, m) if degrees_of_freedom(m, k) >= 0), default=0)


def largest_count(max_components: int | None, default: int, ceiling: int) -> int:
    """The largest number of factors to try: `max_components`, or else `default`, at most `ceiling`."""
    if max_components is None:
        return max(1, min(default, ceiling))
    if not 1 <= max_components <= ceiling:
        raise InputError(f"max_components is {max_components}; for these items choose 1 to {ceiling}.")
    return int(max_components)


@one_blas_thread()
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

    The eigenvalues of the items' correlations are compared with those of random data with as many
    participants and items and the same missing answers. Factors are counted up to the first one that is not
    above the given quantile of its random counterparts.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    n_iter : int, default=100
        Random data sets.
    quantile : float, default=0.95
        The quantile of the random eigenvalues to exceed.
    kind : {"fa", "pc"}, default="fa"
        "fa": eigenvalues with communalities in the diagonal, for factors. "pc": eigenvalues of the plain
        correlation matrix, for principal components (Horn's original).
    communalities : {"minres", "smc"}, default="minres"
        For ``kind="fa"``: the communalities of a one-factor minres solution (the default of R's psych), or
        the squared multiple correlations.
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
    With more items than participants, missing answers are replaced by the item's mean, in the answers and in
    the random data, as pairwise correlations would not belong to any table. The eigenvalues come from the
    smaller side of the table: at most 100, and fewer than participants.

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
    _refuse_unknown("kind", kind, "fa", "pc")
    _refuse_unknown("communalities", communalities, "minres", "smc")
    _refuse_unknown("random_data", random_data, "normal", "permuted")
    if n_iter < 1:
        raise InputError(f"n_iter is {n_iter}; at least one random data set is needed.")
    _refuse_share("quantile", quantile, "0.95")
    answers, names = _answers(X)
    check_items(answers, names)
    wide = correlation == "pairwise" and answers.shape[1] > len(answers)

    def eigenvalues_of(table: Floats) -> Floats:
        if wide:
            return wide_eigenvalues(unit_columns(table), kind, communalities)
        R = item_moments(table, correlation=correlation, names=names).correlation
        return _common_eigenvalues(R, kind, communalities)

    rng = np.random.default_rng(random_state)
    missing = np.isnan(answers)
    observed = eigenvalues_of(answers)
    random = np.empty((n_iter, len(observed)))
    for i in range(n_iter):
        if random_data == "normal":
            unrelated = rng.standard_normal(answers.shape)
            unrelated[missing] = np.nan
        else:
            unrelated = rng.permuted(answers, axis=0)
        random[i] = eigenvalues_of(unrelated)
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


def eigenvalues(R: Floats) -> Floats:
    """Eigenvalues of a symmetric matrix, largest first."""
    return np.asarray(linalg.eigvalsh(R, check_finite=False)[::-1], dtype=np.float64)


def _common_eigenvalues(R: Floats, kind: str, communalities: str) -> Floats:
    """Eigenvalues, largest first, of a correlation matrix with communalities or ones in the diagonal."""
    S = R.copy()
    if kind == "fa" and communalities == "smc":
        np.fill_diagonal(S, 1.0 - start_uniquenesses(R))
    elif kind == "fa":
        # Eigenvalues to four digits are plenty for the comparison.
        np.fill_diagonal(S, np.sum(extract(R, 1, tol=1e-6).loadings ** 2, axis=1))
    return eigenvalues(S)


@one_blas_thread()
def velicer_map(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    power: Literal[2, 4] = 2,
    correlation: CorrelationKind = "pairwise",
) -> FactorCount:
    """Velicer's minimum average partial: stop when the remaining correlations between items are smallest.

    For each number of principal components, the components are removed from the items and the remaining
    (partial) correlations are squared and averaged. Components that many items share lower the average; one
    that is specific to few items raises it.

    Parameters
    ----------
    X, correlation
        As for `parallel_analysis`.
    max_components : int, optional
        Default: one less than the number of items.
    power : {2, 4}, default=2
        2: squared partial correlations (1976); 4: their fourth power (the revised test of 2000).

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
            break  # an item has no variance left, so its partial correlations do not exist
        partial = left / np.sqrt(np.outer(variance, variance))
        average.append((np.sum(partial**power) - m) / (m * (m - 1)))
    best = int(np.argmin(average))
    curve = pd.DataFrame({"n_components": np.arange(len(average)), "average_partial": average})
    if best == 0:
        reason = "Removing even one factor leaves the items more related than before."
    else:
        reason = (
            f"With {counted(best, 'factor')} removed, the remaining correlations between items are smallest "
            f"(average partial correlation to the power of {power}: {average[best]:.4f})."
        )
    return FactorCount("Velicer's MAP", best, curve, reason, value="average_partial", better="lower")


@one_blas_thread()
def bic_factor_analysis(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    method: Method = "minres",
    correlation: CorrelationKind = "pairwise",
) -> FactorCount:
    """BIC of factor models with 1, 2, ... factors: fit minus a cost for every parameter.

    The paper calls this BIC₂: ``chi2 - dof * log(n_participants)`` with the Bartlett-corrected
    likelihood-ratio statistic ``chi2`` of the fitted model.

    Parameters
    ----------
    X, correlation
        As for `parallel_analysis`.
    max_components : int, optional
        Default: 20, or as many as leave degrees of freedom.
    method : {"minres", "ml"}, default="minres"
        How the factors are extracted.

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
    _refuse_indefinite(R, len(answers), "BIC does not exist")
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


@one_blas_thread()
def empirical_kaiser(X: npt.ArrayLike, *, correlation: CorrelationKind = "pairwise") -> FactorCount:
    """Empirical Kaiser criterion: eigenvalues above those expected by chance after the stronger factors.

    Kaiser's "eigenvalue above 1" is right for infinitely many participants. Here the threshold is the largest
    eigenvalue expected for unrelated items in a sample of this size, ``(1 + sqrt(m / n))**2``, times the mean
    variance that the stronger factors leave, and never below 1. Factors are counted up to the first that is
    not above its threshold. Nothing is simulated.

    Parameters
    ----------
    X, correlation
        As for `parallel_analysis`.

    Returns
    -------
    FactorCount
        The curve has the columns `eigenvalue` and `reference`.

    References
    ----------
    J. Braeken, M. A. L. M. van Assen (2017). An empirical Kaiser criterion. Psychological Methods 22,
    450-466.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> empirical_kaiser(X).n_components
    3
    """
    answers, moments = read_answers(X, correlation)
    n, m = answers.shape
    observed = eigenvalues(moments.correlation)
    left = (m - np.concatenate([[0.0], np.cumsum(observed)[:-1]])) / (m - np.arange(m))
    bar = np.maximum(left * (1 + np.sqrt(m / n)) ** 2, 1.0)
    # The eigenvalues have mean 1, so the last one cannot be above 1.
    n_components = int(np.flatnonzero(~(observed > bar))[0])
    curve = pd.DataFrame({"n_components": np.arange(1, m + 1), "eigenvalue": observed, "reference": bar})
    first = counted(n_components, "factor")
    against = f"(eigenvalue {observed[n_components]:.2f} against {bar[n_components]:.2f})"
    reason = (
        f"The first {first} {'exceeds' if n_components == 1 else 'exceed'} what is expected by chance with "
        f"{counted(n, 'participant')} after the stronger factors; factor {n_components + 1} does not "
        f"{against}."
        if n_components
        else f"Not even the first factor exceeds what is expected by chance with "
        f"{counted(n, 'participant')} {against}."
    )
    return FactorCount(
        "Empirical Kaiser criterion", n_components, curve, reason, value="eigenvalue", reference="reference"
    )


@one_blas_thread()
def nest(
    X: npt.ArrayLike,
    *,
    n_iter: int = 1000,
    quantile: float = 0.95,
    max_components: int | None = None,
    method: Method = "minres",
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Next eigenvalue sufficiency test: add factors until the next eigenvalue is not unexpected.

    Models with 0, 1, 2, ... factors are fitted, and samples of as many participants with the same missing
    answers are drawn from each. A model is sufficient if the next eigenvalue of the answers is not above the
    given quantile of the next eigenvalue of these samples. The first step is parallel analysis; later ones,
    unlike parallel analysis, account for the factors found so far.

    Answers are assumed to be normal. Correlations of rare or yes/no answers vary more, so that too many
    factors are added; and beyond about a third of the number of items no model suffices, whatever the answers
    are, as sampling makes the later eigenvalues smaller than the model's own. A run is refused where
    samples fail the test of their own model.

    Parameters
    ----------
    X, quantile, correlation, random_state
        As for `parallel_analysis`.
    n_iter : int, default=1000
        Samples drawn from each model.
    max_components : int, optional
        Default: as many factors as the items can identify.
    method : {"minres", "ml"}, default="minres"
        How the factors are extracted.

    Returns
    -------
    FactorCount
        The curve has one row for each eigenvalue tested, and the columns `eigenvalue`, `random_eigenvalue`
        (the quantile) and `p_value` (the share of samples whose eigenvalue is at least as large).

    References
    ----------
    A. Achim (2017). Testing the number of required dimensions in exploratory factor analysis. The
    Quantitative Methods for Psychology 13, 64-74.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> nest(X, n_iter=100, random_state=0).n_components
    3
    """
    if n_iter < 1:
        raise InputError(f"n_iter is {n_iter}; at least one sample of each model is needed.")
    _refuse_share("quantile", quantile, "0.95")
    answers, moments = read_answers(X, correlation)
    R, m = moments.correlation, answers.shape[1]
    if m < 3:
        raise InputError(f"{m} items are too few for NEST; at least 3 are needed.")
    refuse_wide(answers, "NEST")
    identified = most_identified(m)
    most = largest_count(max_components, identified, identified)
    rng = np.random.default_rng(random_state)
    observed, missing = eigenvalues(R), np.isnan(answers)
    rows = []
    for k in range(most + 1):
        covariance = _model(R, k, method)
        drawn = np.array([_next(_sample(covariance, missing, correlation, rng), k) for _ in range(n_iter)])
        bar = float(np.quantile(drawn, quantile))
        rows.append((k + 1, observed[k], bar, float(np.mean(drawn >= observed[k]))))
        if not observed[k] > bar:
            break
        scale = np.sqrt(np.diag(covariance))
        if k and bar < _next(covariance / np.outer(scale, scale), k):
            raise InputError(
                f"NEST finds no number of factors for these answers: {counted(k, 'factor')} did not suffice, "
                "and beyond that even samples drawn from a model fail its own test. NEST assumes normal "
                "answers, but rare or yes/no answers vary more.",
                remedy="Use comparison data, which keeps each item's distribution, or cross-validation.",
            )
    curve = pd.DataFrame(rows, columns=["n_components", "eigenvalue", "random_eigenvalue", "p_value"])
    sufficient = not observed[k] > bar
    against = f"(eigenvalue {observed[k]:.2f} against {bar:.2f} in {quantile:.0%} of {n_iter} samples)"
    if k == 0 and sufficient:
        reason = f"The first factor is no stronger than in samples of unrelated items {against}."
    elif sufficient:
        reason = (
            f"In samples from a model with {counted(k, 'factor')} the next one is as strong as in these "
            f"answers {against}; fewer factors did not suffice."
        )
    else:
        reason = (
            f"Even {counted(k, 'factor')} did not suffice {against}, and models with more were not tried."
        )
    return FactorCount("NEST", k, curve, reason, value="eigenvalue", reference="random_eigenvalue")


def _model(R: Floats, k: int, method: Method) -> Floats:
    """Covariances of the `k`-factor model of a correlation matrix."""
    if k == 0:
        return np.eye(len(R))
    fitted = _roughly(R, k, 1e-6, method)  # stopping a little early matters less than sampling
    return fitted.loadings @ fitted.loadings.T + np.diag(fitted.uniquenesses)


def _roughly(R: Floats, k: int, tol: float, method: Method = "minres") -> Extraction:
    """Unrotated factors that need not be exact."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return extract(R, k, method=method, tol=tol)


def _sample(
    covariance: Floats, missing: npt.NDArray[np.bool_], correlation: CorrelationKind, rng: np.random.Generator
) -> Floats:
    """Correlations of a normal sample with these covariances and missing answers."""
    n, m = missing.shape
    root = linalg.cholesky(covariance, lower=True, check_finite=False)
    if missing.any():
        drawn = rng.standard_normal((n, m)) @ root.T
        drawn[missing] = np.nan
        return item_moments(drawn, correlation=correlation).correlation
    # Without missing answers it suffices to draw the sums of squares and products (Bartlett's decomposition
    # of the Wishart distribution), whose cost does not depend on the number of participants.
    A = np.tril(rng.standard_normal((m, m)), -1)
    A[np.diag_indices(m)] = np.sqrt(rng.chisquare(n - 1 - np.arange(m)))
    half = root @ A
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    return half @ half.T


def _next(R: Floats, k: int) -> float:
    at = len(R) - 1 - k
    return float(linalg.eigvalsh(R, subset_by_index=(at, at), check_finite=False)[0])


FEWEST = 3  # the last number of factors has no elbow, and a choice needs at least two


@one_blas_thread()
def hull_method(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    n_iter: int = 100,
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Hull method: the number of factors beyond which more factors hardly improve the fit.

    Factors are extracted by minimum residual, and fit is the common part accounted for (CAF): 1 minus the
    Kaiser-Meyer-Olkin measure of the residual correlations. Among the numbers of factors on the upper convex
    hull of fit against parameters, the one with the sharpest elbow is chosen.

    Parameters
    ----------
    X, correlation
        As for `parallel_analysis`.
    max_components : int, optional
        The largest number of factors tried, which cannot be chosen itself. Default: one more than
        parallel analysis of components keeps, at least 3.
    n_iter : int, default=100
        Random data sets of that parallel analysis.
    random_state : int, Generator or None
        For the parallel analysis.

    Returns
    -------
    FactorCount
        The curve starts at 0 factors and has the columns `caf`, `parameters`, and `elbow` (how much steeper
        the fit rises before than after; NaN off the hull and at its ends).

    References
    ----------
    U. Lorenzo-Seva, M. E. Timmerman, H. A. L. Kiers (2011). The Hull method for selecting the number of
    common factors. Multivariate Behavioral Research 46, 340-364.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> hull_method(X, random_state=0).n_components
    3
    """
    answers, moments = read_answers(X, correlation)
    R, m = moments.correlation, answers.shape[1]
    identified = most_identified(m)
    if identified < 2:
        raise InputError(f"{m} items are too few for the Hull method; at least 5 are needed.")
    _refuse_indefinite(R, len(answers), "the Hull method cannot measure fit")
    if max_components is None:
        kept = parallel_analysis(
            answers, n_iter=n_iter, kind="pc", correlation=correlation, random_state=random_state
        )
        most = min(max(kept.n_components + 1, FEWEST), identified)
    else:
        most = largest_count(max_components, identified, identified)
    fit = np.array([_common_part(R, k) for k in range(most + 1)])
    k = np.arange(most + 1)
    parameters = m * k - k * (k - 1) // 2
    on_hull = upper_hull(parameters, fit)
    elbow = np.full(most + 1, math.nan)
    for before, here, after in zip(on_hull, on_hull[1:], on_hull[2:], strict=False):
        elbow[here] = _slope(parameters, fit, before, here) / _slope(parameters, fit, here, after)
    curve = pd.DataFrame({"n_components": k, "caf": fit, "parameters": parameters, "elbow": elbow})
    if np.isnan(elbow).all():
        best = on_hull[-1]
        reason = (
            f"There is no elbow between 0 and {counted(most, 'factor')}; {best} account for the largest "
            f"common part ({fit[best]:.2f})."
        )
    else:
        best = int(np.nanargmax(elbow))
        reason = (
            f"Up to {counted(best, 'factor')}, each parameter improves the fit {elbow[best]:.1f} times as "
            f"much as beyond (the sharpest elbow of 1 to {most - 1})."
        )
    return FactorCount("Hull method", best, curve, reason, value="caf")


def _common_part(R: Floats, k: int) -> float:
    """1 minus the KMO of the residual correlations of `k` factors; NaN if that does not exist."""
    left = R.copy()
    if k:
        L = _roughly(R, k, 1e-6).loadings  # the fit is precise to five digits
        left -= L @ L.T
        np.fill_diagonal(left, 1.0)
    return 1.0 - kmo(left).overall


def upper_hull(x: npt.ArrayLike, y: npt.ArrayLike) -> list[int]:
    """Positions of the points, x ascending, that are above all earlier ones and on the upper convex hull."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    hull: list[int] = []
    for i in np.flatnonzero(~np.isnan(up)).tolist():
        if hull and up[i] <= up[hull[-1]]:
            continue
        while len(hull) > 1 and _slope(across, up, hull[-2], hull[-1]) <= _slope(across, up, hull[-1], i):
            hull.pop()
        hull.append(i)
    return hull


def _slope(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating], i: int, j: int) -> float:
    return float((y[j] - y[i]) / (x[j] - x[i]))


TRIALS = 5  # attempts without a better match before a population is accepted
MOST_ATTEMPTS = 50


@one_blas_thread()
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
    """Comparison data: add factors as long as data simulated with one more resemble the answers better.

    For 1, 2, ... factors a large population is simulated whose items have the distributions of these items
    and, as nearly as that many factors allow, their correlations. Samples of as many participants, with the
    same missing answers, are drawn from it; the distance of their eigenvalues from those of the answers shows
    how well that many factors explain them. A factor is added if the samples with it are nearer (one-sided
    Mann-Whitney test).

    Parameters
    ----------
    X, correlation, random_state
        As for `parallel_analysis`.
    n_samples : int, default=500
        Samples drawn from each population.
    n_population : int, default=10000
        Size of each population; at least the number of participants.
    alpha : float, default=0.30
        Level of the test; the default is recommended by the authors.
    max_components : int, optional
        Default: as many factors as the items can identify.

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
    _refuse_share("alpha", alpha, "0.30")
    answers, moments = read_answers(X, correlation)
    R, (n, m) = moments.correlation, answers.shape
    if m < 3:
        raise InputError(f"{m} items are too few for comparison data; at least 3 are needed.")
    refuse_wide(answers, "Comparison data")
    identified = most_identified(m)
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
            difference = eigenvalues(_correlation(sample, correlation)) - observed
            distance[i] = np.sqrt(np.mean(difference**2))
        p = np.nan if before is None else stats.mannwhitneyu(distance, before, alternative="less").pvalue
        rows.append((k, float(distance.mean()), float(p)))
        if p > alpha:  # never for the first, whose p is NaN
            break
        before = distance
    curve = pd.DataFrame(rows, columns=["n_components", "rmsr", "p_value"])
    stopped = bool(curve["p_value"].iloc[-1] > alpha)
    best = k - 1 if stopped else k
    if stopped:
        p = shown_p(curve["p_value"].iloc[-1], alpha, equals="= ")
        reason = (
            f"Data simulated with {counted(best, 'factor')} resemble the answers as well as data simulated "
            f"with one more (p {p} for the next factor, level {alpha:g})."
        )
    else:
        reason = f"Data simulated with {counted(best, 'factor')}, the most tried, resemble the answers best."
    return FactorCount("Comparison data", best, curve, reason, value="rmsr", better="lower")


def _marginals(answers: Floats, size: int) -> Floats:
    """Each item's answers, sorted and repeated evenly up to `size`.

    The authors draw them with replacement; repeating them evenly preserves rare answers.
    """
    ordered = np.empty((size, answers.shape[1]))
    for j, column in enumerate(answers.T):
        given = np.sort(column[~np.isnan(column)])
        ordered[:, j] = given[(np.arange(size) * len(given)) // size]
    return ordered


def make_population(R: Floats, ordered: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Simulate answers with these marginals, `k` factors, and correlations as near to `R` as possible."""
    size, m = ordered.shape
    shared, own = rng.standard_normal((size, k)), rng.standard_normal((size, m))
    below = np.tril_indices(m, -1)
    aim, best_aim, best_left = R, R, np.zeros_like(R)
    best, population = np.inf, ordered
    trial = attempt = 0
    while trial < TRIALS and attempt < MOST_ATTEMPTS:
        attempt += 1
        L = _roughly(aim, k, 1e-4).loadings  # only an intermediate step
        explained = np.sum(L**2, axis=1)
        L = L / np.sqrt(np.maximum(explained, 1.0))[:, None]
        level = shared @ L.T + own * np.sqrt(1.0 - np.minimum(explained, 1.0))
        simulated = np.empty_like(ordered)
        np.put_along_axis(simulated, np.argsort(level, axis=0), ordered, axis=0)
        left = R - _correlation(simulated, "pairwise")
        miss = float(np.sqrt(np.mean(left[below] ** 2)))
        if miss < best:
            best, best_aim, best_left, population, trial = miss, aim, left, simulated, 0
            aim = best_aim + best_left
        else:
            trial += 1
            aim = best_aim + 0.5**trial * best_left
    return population


def _correlation(X: Floats, correlation: CorrelationKind) -> Floats:
    """Correlations of a sample; 0 for items that are constant in it, as rare answers may be missing."""
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
        _, cross, spread = pairwise_sums(Z, seen.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        R = np.where(spread > 1e-20 * spread.max(), cross / np.sqrt(spread), 0.0)
    R = np.clip((R + R.T) / 2, -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    return R


class Rule(NamedTuple):
    """A rule: its name within a sentence, what it counts, its reference, and how to run it."""

    name: str
    counts: str
    family: str
    reference: str
    # of answers, number of random data sets, kind of correlations, and random generator
    run: Callable[[npt.ArrayLike, int, CorrelationKind, np.random.Generator], FactorCount] | None = None


# What the rules of a family count, to follow their names and "count".
PREDICTS = "the factors that help predict hidden answers; a small dimension may be real and still not help"
BEYOND_CHANCE = (
    "any dimension beyond chance, including small ones, more of which appear with more participants"
)
ONE_ITEM = "the dimensions that explain more than one item's variance, of which long questionnaires have many"
SHARED = "only what many items have in common, and may merge correlated factors"
RULES = {
    "Blockwise cross-validation": Rule(
        "cross-validation",
        "The factors that help predict answers hidden from the model.",
        PREDICTS,
        "Lam et al. (2026)",
    ),
    "Parallel analysis": Rule(
        "parallel analysis",
        "Every dimension stronger than in unrelated answers, including small ones.",
        BEYOND_CHANCE,
        "Horn (1965), Psychometrika 30, 179-185",
        lambda X, n, kind, rng: parallel_analysis(X, n_iter=n, correlation=kind, random_state=rng),
    ),
    "NEST": Rule(
        "NEST",
        "Every dimension that the stronger ones and chance do not explain, including small ones.",
        BEYOND_CHANCE,
        "Achim (2017), The Quantitative Methods for Psychology 13, 64-74",
        lambda X, n, kind, rng: nest(X, n_iter=n, correlation=kind, random_state=rng),
    ),
    "Comparison data": Rule(
        "comparison data",
        "The factors without which simulated answers with the same distributions resemble these less.",
        BEYOND_CHANCE,
        "Ruscio & Roche (2012), Psychological Assessment 24, 282-292",
        lambda X, n, kind, rng: comparison_data(X, n_samples=n, correlation=kind, random_state=rng),
    ),
    "BIC": Rule(
        "BIC",
        "The factors that improve the fit by more than the cost of their parameters; with many participants "
        "also small ones.",
        BEYOND_CHANCE,
        "Preacher et al. (2013), Multivariate Behavioral Research 48, 28-56",
        lambda X, n, kind, rng: bic_factor_analysis(X, correlation=kind),
    ),
    "Empirical Kaiser criterion": Rule(
        "the empirical Kaiser criterion",
        "The dimensions that explain more than one item's variance, corrected for the sample size.",
        ONE_ITEM,
        "Braeken & van Assen (2017), Psychological Methods 22, 450-466",
        lambda X, n, kind, rng: empirical_kaiser(X, correlation=kind),
    ),
    "Velicer's MAP": Rule(
        "Velicer's MAP",
        "The dimensions that many items share; one that few items share does not count.",
        SHARED,
        "Velicer (1976), Psychometrika 41, 321-327",
        lambda X, n, kind, rng: velicer_map(X, correlation=kind),
    ),
    "Hull method": Rule(
        "the Hull method",
        "The factors before the elbow, beyond which more factors hardly add to what the items share.",
        SHARED,
        "Lorenzo-Seva, Timmerman & Kiers (2011), Multivariate Behavioral Research 46, 340-364",
        lambda X, n, kind, rng: hull_method(X, n_iter=n, correlation=kind, random_state=rng),
    ),
}


@dataclass(frozen=True, eq=False)
class RuleTable:
    """The number of factors by every rule.

    Attributes
    ----------
    counts : tuple of FactorCount
        The rules that could be run, each with its number, curve and reason.
    refused : tuple of (rule, why)
        The rules that could not.
    """

    counts: tuple[FactorCount, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row per rule: `rule`, `n_components`, `reason`, `counts` and `reference`.

        For a rule that could not be run, the number is missing and the reason explains it.
        """
        rows: list[tuple[str, Any, str]] = [
            (each.method, each.n_components, each.reason) for each in self.counts
        ]
        rows += [(rule, pd.NA, f"Could not be run: {why}") for rule, why in self.refused]
        table = pd.DataFrame(rows, columns=["rule", "n_components", "reason"])
        table["n_components"] = table["n_components"].astype("Int64")
        table["counts"] = [_rule(rule).counts for rule in table["rule"]]
        table["reference"] = [_rule(rule).reference for rule in table["rule"]]
        return table

    @property
    def explanation(self) -> tuple[str, ...]:
        """Whether the rules agree, and what it means if not, in sentences."""
        if not self.counts:
            return ("No rule could be run on these answers.",)
        if len(self.counts) == 1:
            only = self.counts[0]
            return (
                f"Only one rule could be run: {only.method} keeps {counted(only.n_components, 'factor')}.",
            )
        chosen = sorted({each.n_components for each in self.counts})
        if len(chosen) == 1:
            return (f"All {len(self.counts)} rules keep {counted(chosen[0], 'factor')}.",)
        most_often = max(chosen, key=lambda k: (sum(each.n_components == k for each in self.counts), -k))
        sentences = [
            f"The rules keep between {chosen[0]} ({self._who(chosen[0])}) and {chosen[-1]} factors "
            f"({self._who(chosen[-1])}); the most frequent answer is {most_often}.",
            "They answer different questions, so disagreement is not an error.",
        ]
        for family in (PREDICTS, BEYOND_CHANCE, ONE_ITEM, SHARED):
            who = [each.method for each in self.counts if _rule(each.method).family == family]
            if who:
                names = joined([_rule(method).name for method in who])
                verb = "counts" if len(who) == 1 and who != ["Comparison data"] else "count"
                sentences.append(f"{names[0].upper()}{names[1:]} {verb} {family}.")
        sentences.append(
            "If the numbers differ, look at the factors in question: whether they replicate in halves of the "
            "sample tells more than another rule."
        )
        return tuple(sentences)

    def with_first(self, count: FactorCount) -> RuleTable:
        """Return the table with another count first, such as that of cross-validation."""
        return replace(self, counts=(count, *self.counts))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        rules = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        curves = {each.method: each.curve for each in self.counts}
        for rule in rules:
            curve = curves.get(rule["rule"])
            rule["curve"] = [] if curve is None else _plain(curve)
        return {"explanation": list(self.explanation), "rules": rules}

    def _who(self, k: int) -> str:
        return joined([_rule(each.method).name for each in self.counts if each.n_components == k])


def _rule(name: str) -> Rule:
    """The rule of this name, or an empty one."""
    return RULES.get(name, Rule(name, "", "", ""))


def _plain(curve: pd.DataFrame) -> list[dict[str, Any]]:
    """A curve as records, with None where a value does not exist."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in curve.to_dict("records")
    ]


@one_blas_thread()
def every_rule(
    X: npt.ArrayLike,
    *,
    n_iter: int = 100,
    correlation: CorrelationKind = "pairwise",
    random_state: int | None = 0,
    callback: Callable[[Progress], object] | None = None,
) -> RuleTable:
    """Determine the number of factors by every rule of factor analysis.

    Parallel analysis, NEST, comparison data, BIC, the empirical Kaiser criterion, Velicer's MAP and the Hull
    method, each with its own defaults. A rule that cannot be run on these answers is listed with the reason.

    Parameters
    ----------
    X, correlation
        As for `parallel_analysis`.
    n_iter : int, default=100
        Random data sets of parallel analysis and the Hull method, and samples for each number of factors of
        NEST (1000 in its paper) and comparison data (500). The time is nearly proportional to it.
    random_state : int or None
        Seed; each rule has its own random generator.
    callback : callable, optional
        Called before each rule.

    Examples
    --------
    >>> from icqf.baselines import every_rule
    >>> from icqf.datasets import load_demo
    >>> answers = load_demo().select(["q00*", "q01*"]).keyed_answers()
    >>> found = every_rule(answers, n_iter=10)
    >>> int(found.table.set_index("rule").loc["BIC", "n_components"])
    3
    """
    if n_iter < 2:
        raise InputError(f"n_iter is {n_iter}; at least two random data sets are needed.")
    read_answers(X, correlation)  # answers that no rule can use are refused once
    runs = {name: rule.run for name, rule in RULES.items() if rule.run is not None}
    seeds = np.random.SeedSequence(random_state).spawn(len(runs))
    counts, refused = [], []
    for (name, run), seed in zip(runs.items(), seeds, strict=True):
        if callback is not None:
            callback(Progress(0, 0, what=f"Rule of factor analysis: {name}"))
        try:
            # One of many models that has not converged is not worth reporting.
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                counts.append(run(X, n_iter, correlation, np.random.default_rng(seed)))
        except InputError as error:
            refused.append((name, str(error)))
    return RuleTable(tuple(counts), tuple(refused))
