"""Polychoric correlations: those of the normal variables that graded answers are taken to be cut from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from icqf.errors import InputError

Floats = npt.NDArray[np.float64]

MOST_ANSWERS = 12  # different answers of an item; beyond, answers are as good as continuous
_HIGHEST = 0.9995
_NODES = {0.8: 16, 1.0: 64}  # of the integral over the angle, by the largest correlation
_AT_ONCE = 400_000  # cells times nodes that are held at once
_STEPS, _TOL = 100, 1e-9


def polychoric_correlation(
    X: npt.ArrayLike, *, correct: float = 0.5, names: Sequence[Any] | None = None
) -> Floats:
    """Polychoric correlations of items with a few ordered answers, by the two-step method.

    Each item is taken for a normal variable that was cut at thresholds. These follow from the shares of its
    answers; the correlation of two items is then the one that makes their table of answers most likely. Of
    items with two answers it is the tetrachoric correlation.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers, at most 12 different ones of each item; NaN is a missing answer.
    correct : float, default=0.5
        What an empty cell of a pair's table counts as, so that no correlation is driven to 1 by it. 0 leaves
        the tables as they are.
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
            name = f"number {j} (counted from 0)" if names is None else repr(str(names[j]))
            raise InputError(
                f"Item {name} has {len(values)} different answers, and polychoric correlations are for items "
                f"with at most {MOST_ANSWERS}; use correlation='pairwise'."
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
    counts: Floats = np.bincount(one[both] * b + other[both], minlength=a * b).reshape(a, b).astype(float)
    return counts


def _most_likely(tables: Floats, rows: Floats, columns: Floats) -> Floats:
    """The correlation (P,) of each table (P, a, b), by Fisher scoring within brackets that only shrink."""
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
    """Thresholds with the ends beyond which nothing lies; nine deviations are as good as infinitely many."""
    ends = np.full((len(cuts), 1), 9.0)
    return np.clip(np.concatenate([-ends, cuts, ends], axis=1), -9.0, 9.0)


def _differences(corners: Floats) -> Floats:
    found: Floats = np.diff(np.diff(corners, axis=1), axis=2)
    return found


def _density(h: Floats, k: Floats, rho: Floats) -> Floats:
    """Density (P, a, b) of the bivariate normal, which is the slope of its distribution in `rho`."""
    r = rho[:, None, None]
    rest = 1 - r**2
    found: Floats = np.exp(-(h**2 - 2 * r * h * k + k**2) / (2 * rest)) / (2 * np.pi * np.sqrt(rest))
    return found


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
    found: Floats = special.ndtr(h) * special.ndtr(k) + half[:, None, None] * total / (2 * np.pi)
    return found
