"""Correlations of items (Pearson or polychoric), moments, and sampling adequacy for factor analysis."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from narwhals.exceptions import NarwhalsError
from scipy import linalg, special
from sklearn.exceptions import ConvergenceWarning

from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError, counted

Floats = npt.NDArray[np.float64]

MOST_ANSWERS = 12  # different answers to an item; more are practically continuous
_HIGHEST = 0.9995
_NODES = {0.8: 16, 1.0: 64}  # of the integral over the angle, by the largest correlation
_AT_ONCE = 400_000  # cells times nodes in memory at once
_STEPS, _TOL = 100, 1e-9


@one_blas_thread()
def polychoric_correlation(
    X: npt.ArrayLike, *, correct: float = 0.5, names: Sequence[Any] | None = None
) -> Floats:
    """Polychoric correlations of items with a few ordered answers, by the two-step method.

    Each item is treated as a normal variable cut at thresholds, which follow from the shares of its answers;
    the correlation of two items then maximises the likelihood of their table of answers. For items with two
    answers it is the tetrachoric correlation.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers, at most 12 different ones per item; NaN is a missing answer.
    correct : float, default=0.5
        Count of an empty cell of a pair's table, which would otherwise drive correlations to 1. 0: no
        correction.
    names : sequence, optional
        Item names for error messages.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        It need not be positive definite.

    References
    ----------
    U. Olsson (1979). Maximum likelihood estimation of the polychoric correlation coefficient. Psychometrika
    44, 443-460.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=2000)
    >>> answers = (hidden > 1).astype(float)
    >>> R = polychoric_correlation(answers)
    >>> bool(abs(R[0, 1] - 0.6) < 0.05), bool(abs(np.corrcoef(answers.T)[0, 1] - 0.6) > 0.15)
    (True, True)
    """
    answers = np.asarray(X, dtype=np.float64)
    m = answers.shape[1]
    codes, cuts = [], []
    for j, column in enumerate(answers.T):
        values, code = np.unique(column[~np.isnan(column)], return_inverse=True)
        if len(values) > MOST_ANSWERS:
            raise InputError(
                f"Item {item_name(names, j)} has {len(values)} different answers, but polychoric "
                f"correlations need items with at most {MOST_ANSWERS}; use correlation='pairwise'."
            )
        full = np.full(len(column), -1)
        full[~np.isnan(column)] = code
        shares = np.bincount(code, minlength=len(values)) / max(len(code), 1)
        codes.append(full)
        cuts.append(special.ndtri(np.cumsum(shares)[:-1]))
    R = np.eye(m)
    pairs = [(i, j) for i in range(m) for j in range(i)]
    by_shape: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, j in pairs:
        by_shape.setdefault((len(cuts[i]) + 1, len(cuts[j]) + 1), []).append((i, j))
    for (a, b), some in by_shape.items():
        tables = np.stack([_table(codes[i], codes[j], a, b) for i, j in some])
        if correct:
            tables = np.where(tables == 0, correct, tables)
        rows, columns = np.stack([cuts[i] for i, _ in some]), np.stack([cuts[j] for _, j in some])
        step = max(1, _AT_ONCE // ((a + 1) * (b + 1) * max(_NODES.values())))
        for at in range(0, len(some), step):
            part = slice(at, at + step)
            for (i, j), value in zip(
                some[part], _most_likely(tables[part], rows[part], columns[part]), strict=True
            ):
                R[i, j] = R[j, i] = value
    return R


def _table(one: npt.NDArray[Any], other: npt.NDArray[Any], a: int, b: int) -> Floats:
    both = (one >= 0) & (other >= 0)
    return np.bincount(one[both] * b + other[both], minlength=a * b).reshape(a, b).astype(float)


def _most_likely(tables: Floats, rows: Floats, columns: Floats) -> Floats:
    """The correlation (P,) of each table (P, a, b), by Fisher scoring within shrinking brackets."""
    h, k = _with_ends(rows)[:, :, None], _with_ends(columns)[:, None, :]
    total = tables.sum(axis=(1, 2))
    rho = np.zeros(len(tables))
    low, high = np.full(len(tables), -_HIGHEST), np.full(len(tables), _HIGHEST)
    for _ in range(_STEPS):
        cells = np.maximum(_differences(_normal(h, k, rho)), 1e-12)
        slopes = _differences(_density(h, k, rho))
        score = (tables / cells * slopes).sum(axis=(1, 2))
        information = np.maximum(total * (slopes**2 / cells).sum(axis=(1, 2)), 1e-12)
        low, high = np.where(score > 0, rho, low), np.where(score < 0, rho, high)
        wanted = rho + score / information
        inside = (wanted > low) & (wanted < high)
        new = np.where(inside, wanted, (low + high) / 2)
        moved = np.abs(new - rho).max()
        rho = new
        if moved < _TOL:
            break
    return rho


def _with_ends(cuts: Floats) -> Floats:
    """Thresholds with outer ends at nine standard deviations, which is practically infinite."""
    ends = np.full((len(cuts), 1), 9.0)
    return np.clip(np.concatenate([-ends, cuts, ends], axis=1), -9.0, 9.0)


def _differences(corners: Floats) -> Floats:
    return np.diff(np.diff(corners, axis=1), axis=2)


def _density(h: Floats, k: Floats, rho: Floats) -> Floats:
    """Density (P, a, b) of the bivariate normal, which is the slope of its distribution in `rho`."""
    r = rho[:, None, None]
    rest = 1 - r**2
    return np.exp(-(h**2 - 2 * r * h * k + k**2) / (2 * rest)) / (2 * np.pi * np.sqrt(rest))


def _normal(h: Floats, k: Floats, rho: Floats) -> Floats:
    """Distribution (P, a, b) of the bivariate normal: Plackett's integral over the angle."""
    largest = float(np.abs(rho).max(initial=0.0))
    nodes, weights = np.polynomial.legendre.leggauss(next(n for end, n in _NODES.items() if largest <= end))
    half = np.arcsin(rho) / 2
    total = np.zeros(np.broadcast_shapes(h.shape, k.shape))
    squares, product = h**2 + k**2, 2 * h * k
    for node, weight in zip(nodes, weights, strict=True):
        angle = (half * (node + 1))[:, None, None]
        total += weight * np.exp(-(squares - product * np.sin(angle)) / (2 * np.cos(angle) ** 2))
    return special.ndtr(h) * special.ndtr(k) + half[:, None, None] * total / (2 * np.pi)


CorrelationKind = Literal["pairwise", "em", "polychoric"]

_CHUNK = 4_000_000  # numbers in memory at once in the EM step: 32 MB


class Moments(NamedTuple):
    """Means, standard deviations and correlations of items.

    Attributes
    ----------
    mean : ndarray of shape (n_items,)
    scale : ndarray of shape (n_items,)
        Standard deviations.
    correlation : ndarray of shape (n_items, n_items)
    n_iter : int
        Iterations taken; 1 when none were needed.
    """

    mean: Floats
    scale: Floats
    correlation: Floats
    n_iter: int = 1


@dataclass(frozen=True)
class KMO:
    """Kaiser-Meyer-Olkin measure of sampling adequacy.

    Attributes
    ----------
    overall : float
        Between 0 and 1; above about 0.6 the items share enough to be factored. NaN when the correlation
        matrix is not positive definite.
    per_item : ndarray of shape (n_items,)
    """

    overall: float
    per_item: Floats


@dataclass(frozen=True)
class Sphericity:
    """Bartlett's test that all items are uncorrelated.

    Attributes
    ----------
    chi2 : float
        NaN when the correlation matrix is not positive definite.
    dof : int
    p_value : float
        Small when the items are correlated, so that there is something to factor.
    """

    chi2: float
    dof: int
    p_value: float


def item_name(names: Sequence[Any] | None, j: int) -> str:
    """The name of item `j` for an error message: its column name in quotes, or its number."""
    return f"number {j} (counted from 0)" if names is None else f"'{names[j]}'"


@contextmanager
def as_input_errors() -> Iterator[None]:
    """Turn errors of scikit-learn, such as about a table of one participant, into `InputError`."""
    try:
        yield
    except (ValueError, NarwhalsError) as error:  # NarwhalsError: a duplicated name
        raise InputError(str(error)) from None


@one_blas_thread()
def item_moments(
    X: npt.ArrayLike,
    *,
    correlation: CorrelationKind = "pairwise",
    names: Sequence[Any] | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Moments:
    """Means, standard deviations and correlations of items, ignoring missing answers.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        "pairwise": Pearson's correlation of each pair of items over the participants who answered both.
        "em": maximum likelihood under a multivariate normal, by the EM algorithm; it uses every answer and
        gives a positive-definite matrix unless items repeat each other, but needs more participants than
        items. "polychoric": correlations of the normal variables behind graded answers; see
        `icqf.baselines.polychoric_correlation`.
    names : sequence, optional
        Item names for error messages.
    tol : float, default=1e-6
        EM stops when no correlation, standardised mean or relative standard deviation moves by more.
    max_iter : int, default=1000
        Most EM iterations.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[1, 2], [2, 4], [3, 5], [np.nan, 9]]
    >>> moments = item_moments(X)
    >>> moments.mean.round(2).tolist(), float(moments.correlation[0, 1].round(3))
    ([2.0, 5.0], 0.982)
    """
    answers = np.asarray(X, dtype=np.float64)
    check_items(answers, names)
    if correlation == "pairwise":
        return _pairwise(answers, names)
    if correlation == "em":
        return _expectation_maximization(answers, tol=tol, max_iter=max_iter)
    if correlation == "polychoric":
        plain = _pairwise(answers, names)
        return Moments(plain.mean, plain.scale, polychoric_correlation(answers, names=names))
    raise InputError(f"correlation is {correlation!r}; choose 'pairwise', 'em' or 'polychoric'.")


def check_items(X: Floats, names: Sequence[Any] | None = None) -> None:
    """Refuse items without a correlation: with fewer than two answers, or constant."""
    if X.ndim != 2:
        raise InputError(
            f"Answers must be a participants-by-items table, not an array of {counted(X.ndim, 'dimension')}."
        )
    if not X.shape[1]:
        raise InputError("There are no items to correlate.")
    if np.isinf(X).any():
        j = int(np.argmax(np.isinf(X).any(axis=0)))
        raise InputError(f"Item {item_name(names, j)} holds an infinite value; correct it or leave it empty.")
    answered = np.sum(~np.isnan(X), axis=0)
    if np.any(answered < 2):
        j = int(np.argmin(answered))
        raise InputError(
            f"Item {item_name(names, j)} has {counted(int(answered[j]), 'answer')}, but a correlation needs "
            "at least 2; drop the item."
        )
    flat = np.nanmax(X, axis=0) == np.nanmin(X, axis=0)
    if np.any(flat):
        j = int(np.argmax(flat))
        raise InputError(
            f"Item {item_name(names, j)} has the same answer {np.nanmax(X[:, j]):g} from everyone who "
            "answered it, so it correlates with nothing; drop the item."
        )


def _pairwise(X: Floats, names: Sequence[Any] | None) -> Moments:
    seen = ~np.isnan(X)
    count = np.count_nonzero(seen, axis=0)
    mean = np.where(seen, X, 0.0).sum(axis=0) / count
    # Standardised first, so that the sums of squares below lose no digits.
    Z = np.where(seen, X - mean, 0.0)
    scale = np.sqrt(np.einsum("ij,ij->j", Z, Z) / (count - 1))
    Z /= scale
    if seen.all():
        R = Z.T @ Z / (len(X) - 1)
    else:
        n, cross, spread = pairwise_sums(Z, seen.astype(np.float64))
        if n.min() < 2:
            i, j = np.unravel_index(int(np.argmin(n)), n.shape)
            raise InputError(
                f"Items {item_name(names, int(i))} and {item_name(names, int(j))} were both answered by "
                f"{counted(int(n[i, j]), 'participant')}, too few for a correlation; drop one of them or use "
                "correlation='em'."
            )
        if np.any(spread <= 1e-20 * n**2):
            i, j = np.unravel_index(int(np.argmin(spread / n**2)), n.shape)
            raise InputError(
                f"Items {item_name(names, int(i))} and {item_name(names, int(j))} do not vary among the "
                f"{int(n[i, j])} participants who answered both; drop one of them or use correlation='em'."
            )
        R = np.clip(cross / np.sqrt(spread), -1.0, 1.0)
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return Moments(mean, scale, R)


def pairwise_sums(Z: Floats, O: Floats, weights: Any = 1.0) -> tuple[Floats, Floats, Floats]:
    """Of each pair of items, over those who answered both: number, cross product, product of the squares.

    `Z` (n, m) are answers, 0 where missing; `O` (n, m) says where they are.
    """
    weighted, number = Z * weights, (O * weights).T @ O
    n = np.maximum(number, 1.0)
    total = weighted.T @ O  # [i, j]: sum of item i over the participants who also answered item j
    square = np.maximum((weighted * Z).T @ O - total**2 / n, 0.0)
    return number, weighted.T @ Z - total * total.T / n, square * square.T


def _expectation_maximization(X: Floats, *, tol: float, max_iter: int) -> Moments:
    seen = ~np.isnan(X)
    X, seen = X[seen.any(axis=1)], seen[seen.any(axis=1)]
    if seen.all():
        return _pairwise(X, None)
    n, m = X.shape
    if n <= m:
        raise InputError(
            f"EM correlations need more participants than items, but there are {n} participants and {m} "
            "items; drop items or use correlation='pairwise'."
        )
    shift, unit = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    Z = np.where(seen, (X - shift) / unit, 0.0)
    groups = _missing_groups(seen)
    mean, cov = np.zeros(m), np.eye(m)
    n_iter, moved = 0, np.inf
    while moved > tol and n_iter < max_iter:
        n_iter += 1
        new_mean, new_cov = _em_step(Z, groups, mean, cov)
        sd, new_sd = np.sqrt(np.diag(cov)), np.sqrt(np.diag(new_cov))
        corr, new_corr = cov / np.outer(sd, sd), new_cov / np.outer(new_sd, new_sd)
        moved = max(
            np.abs(new_corr - corr).max(), np.abs(new_mean - mean).max(), np.abs(new_sd / sd - 1).max()
        )
        mean, cov = new_mean, new_cov
    if moved > tol:
        warnings.warn(
            f"EM correlations still move by {moved:.1e} after {max_iter} iterations (tol is {tol:.1e}); "
            "raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
    np.fill_diagonal(new_corr, 1.0)
    # With n - 1, this is the usual standard deviation if no answers are missing.
    scale = unit * np.sqrt(np.diag(cov) * n / (n - 1))
    return Moments(shift + unit * mean, scale, (new_corr + new_corr.T) / 2, n_iter)


def _missing_groups(seen: npt.NDArray[np.bool_]) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Participants grouped by their number of missing answers, as (rows, missing columns), in chunks."""
    n_missing = np.sum(~seen, axis=1)
    groups = []
    for count in np.unique(n_missing[n_missing > 0]):
        rows = np.flatnonzero(n_missing == count)
        columns = np.nonzero(~seen[rows])[1].reshape(len(rows), count)
        step = max(1, int(_CHUNK // count**2))
        groups += [(rows[i : i + step], columns[i : i + step]) for i in range(0, len(rows), step)]
    return groups


def _em_step(Z: Floats, groups: list[Any], mean: Floats, cov: Floats) -> tuple[Floats, Floats]:
    """One EM step; missing answers given the rest follow from the precision matrix."""
    n, m = Z.shape
    try:
        precision = linalg.cho_solve(linalg.cho_factor(cov), np.eye(m))
    except linalg.LinAlgError as error:
        raise InputError(
            f"EM correlations of {m} items from {n} participants became singular, which happens when there "
            "are too few participants or one item repeats others; drop items or use correlation='pairwise'."
        ) from error
    D = Z - mean
    for rows, columns in groups:
        D[rows[:, None], columns] = 0.0
    pull = D @ precision
    spread = np.zeros(m * m)
    for rows, columns in groups:
        at = columns[:, :, None], columns[:, None, :]
        conditional = np.linalg.inv(precision[at])
        D[rows[:, None], columns] = -np.einsum("rij,rj->ri", conditional, pull[rows[:, None], columns])
        spread += np.bincount((at[0] * m + at[1]).ravel(), weights=conditional.ravel(), minlength=m * m)
    drift = D.mean(axis=0)
    D -= drift
    return mean + drift, (D.T @ D + spread.reshape(m, m)) / n


def is_positive_definite(R: Floats) -> bool:
    """Whether the smallest eigenvalue of a correlation matrix is clearly above zero."""
    return bool(linalg.eigvalsh(R, subset_by_index=(0, 0))[0] > 1e-10 * len(R))


def _correlations(given: npt.ArrayLike, name: str) -> Floats:
    """Check a table of correlations; a table of answers is refused."""
    R = np.asarray(given, dtype=np.float64)
    square = R.ndim == 2 and R.shape[0] == R.shape[1]
    if not square or not (np.allclose(R, R.T, atol=1e-6) and np.allclose(np.diag(R), 1, atol=1e-6)):
        shape = " × ".join(map(str, R.shape)) or "one number"
        raise InputError(
            f"{name} needs the correlations of the items, a symmetric table with 1 on its diagonal, not "
            f"{shape} other numbers.",
            code="not-correlations",
            remedy=f"For answers, call {name} with item_moments(answers).correlation.",
        )
    return R


@one_blas_thread()
def kmo(correlation: npt.ArrayLike) -> KMO:
    """Kaiser-Meyer-Olkin measure of sampling adequacy.

    Compares the correlations with the partial correlations that remain when all other items are held fixed:
    ``sum r² / (sum r² + sum partial²)`` over all pairs of items, and over the pairs of each item.

    Parameters
    ----------
    correlation : array-like of shape (n_items, n_items)

    Examples
    --------
    >>> import numpy as np
    >>> R = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    >>> round(kmo(R).overall, 2)
    0.8
    """
    R = _correlations(correlation, "kmo")
    m = len(R)
    if not is_positive_definite(R):
        return KMO(math.nan, np.full(m, math.nan))
    inverse = linalg.inv(R)
    d = np.sqrt(np.diag(inverse))
    off = ~np.eye(m, dtype=bool)
    r2 = np.sum(R**2 * off, axis=0)
    p2 = np.sum((inverse / np.outer(d, d)) ** 2 * off, axis=0)
    with np.errstate(invalid="ignore"):
        return KMO(float(np.divide(r2.sum(), (r2 + p2).sum())), r2 / (r2 + p2))


def bartlett_sphericity(correlation: npt.ArrayLike, n_participants: int) -> Sphericity:
    """Bartlett's test of sphericity: are all items uncorrelated?

    Parameters
    ----------
    correlation : array-like of shape (n_items, n_items)
    n_participants : int
        The number of participants in the correlations.

    Examples
    --------
    >>> import numpy as np
    >>> R = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> test = bartlett_sphericity(R, n_participants=50)
    >>> test.dof, round(test.chi2, 2), test.p_value < 0.001
    (1, 21.2, True)
    """
    R = _correlations(correlation, "bartlett_sphericity")
    m = len(R)
    dof = m * (m - 1) // 2
    if not is_positive_definite(R):
        return Sphericity(math.nan, dof, math.nan)
    chi2 = -float(np.linalg.slogdet(R)[1]) * (n_participants - 1 - (2 * m + 5) / 6)
    return Sphericity(chi2, dof, float(special.chdtrc(dof, max(chi2, 0.0))) if dof else math.nan)
