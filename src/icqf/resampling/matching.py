"""Match the factors of two sets of loadings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.errors import InputError, counted, listed

Array = NDArray[Any]
MEASURES = ("pearson", "congruence")
METHODS = ("greedy", "optimal")
FEWEST_ITEMS = 3


def correlations(a: Array, b: Array, *, centred: bool = True) -> Array:
    """Pearson correlation of every row of `a` with every row of `b`; 0 where a row is constant.

    Not centred, it is Tucker's congruence (the cosine), and 0 where a row is zero.
    """
    return np.clip(_directions(a, centred) @ _directions(b, centred).T, -1, 1)


def paired(similarity: Array, *, greedy: bool = False) -> tuple[Array, Array]:
    """Matched rows and columns of a similarity matrix: the pairs with the largest sum, or greedily."""
    if not greedy:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(similarity, maximize=True)
        return rows, columns
    left = similarity.copy()
    pairs = []
    for _ in range(min(left.shape)):
        row, column = divmod(int(left.argmax()), left.shape[1])
        pairs.append((row, column))
        left[row, :] = left[:, column] = -np.inf
    rows, columns = np.array(pairs).T
    return rows, columns


def aligned(reference: Array, other: Array) -> tuple[Array, float]:
    """Which row of `other` goes with each row of `reference`, and their mean correlation."""
    similarity = correlations(reference, other)
    rows, columns = paired(similarity)
    return columns, float(similarity[rows, columns].mean())


def _directions(loadings: Array, centred: bool) -> Array:
    """Each row as a vector of length 1, or 0 where it has no direction."""
    values = np.asarray(loadings, dtype=np.float64)
    largest = np.abs(values).max(axis=1, keepdims=True)
    values = values / np.where(largest > 0, largest, 1)
    if centred:
        values = values - values.mean(axis=1, keepdims=True)
        # Equal loadings leave only rounding errors, not a direction.
        values = np.where(np.abs(values).max(axis=1, keepdims=True) > 1e-12, values, 0)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(length > 0, length, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """Pairs of factors from two sets of loadings.

    Parameters
    ----------
    pairs : DataFrame with columns ``factor_a, factor_b, pearson, congruence``
        One row per pair, the most similar first.
    unmatched_a, unmatched_b : tuple
        Names of the factors that are in no pair.
    n_items : int
        Number of items the loadings were compared on.
    method, similarity : str
        How pairs were formed, and by which measure.
    similarities : DataFrame of shape (n_factors_a, n_factors_b)
        Similarity of every factor of a with every factor of b, by that measure.
    """

    pairs: pd.DataFrame
    unmatched_a: tuple[Any, ...]
    unmatched_b: tuple[Any, ...]
    n_items: int
    method: str
    similarity: str
    similarities: pd.DataFrame

    @property
    def values(self) -> np.ndarray:
        """Similarity of each pair, by the measure that formed the pairs; shape (n_pairs,)."""
        return self.pairs[self.similarity].to_numpy()

    @property
    def mean(self) -> float:
        """Mean similarity over the pairs."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the similarity over the pairs (divided by their number)."""
        return float(self.values.std())

    @property
    def min(self) -> float:
        """Similarity of the worst pair."""
        return float(self.values.min())

    def __repr__(self) -> str:
        lines = [
            f"{counted(len(self.pairs), 'matched pair')} over {counted(self.n_items, 'item')} "
            f"({self.method}, {self.similarity}): mean {self.mean:.3f}, sd {self.std:.3f}, "
            f"worst {self.min:.3f}",
            self.pairs.round(3).to_string(index=False),
        ]
        for side, names in (("a", self.unmatched_a), ("b", self.unmatched_b)):
            if names:
                lines.append(f"unmatched in {side}: {', '.join(map(str, names))}")
        return "\n".join(lines)


def match_factors(
    a: Any,
    b: Any,
    *,
    method: Literal["greedy", "optimal"] = "greedy",
    similarity: Literal["pearson", "congruence"] = "pearson",
) -> Match:
    """Pair the factors of two fits by the similarity of their loadings.

    Greedy matching takes the most similar pair, removes both factors, and continues until no factor of one
    fit is left. Optimal matching maximises the total similarity. Both form min(k, k') pairs and keep signs.

    Parameters
    ----------
    a, b : DataFrame or array of shape (n_items, n_factors), or a fitted model with ``loadings_``
        Tables are compared on shared items, by name. Arrays must have the same items in the same order.
    method : {"greedy", "optimal"}
        How pairs are formed.
    similarity : {"pearson", "congruence"}
        Pearson's correlation, or Tucker's congruence (the cosine, which does not subtract the mean). Where
        it is not defined, because a factor's loadings are all equal or all zero, it counts as 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.resampling import match_factors
    >>> items = ["sad", "tired", "angry", "loud", "shy"]
    >>> first = pd.DataFrame({"mood": [2.0, 1, 0, 0, 1], "temper": [0.0, 0, 2, 1, 0]}, index=items)
    >>> second = pd.DataFrame({"F1": [0.0, 0, 1, 1, 0], "F2": [2.0, 1, 0, 0, 1]}, index=items)
    >>> match_factors(first, second)
    2 matched pairs over 5 items (greedy, pearson): mean 0.959, sd 0.041, worst 0.919
    factor_a factor_b  pearson  congruence
        mood       F2    1.000       1.000
      temper       F1    0.919       0.949
    """
    _refuse("method", method, METHODS)
    _refuse("similarity", similarity, MEASURES)
    left, right = _same_items(_loadings(a, "a"), _loadings(b, "b"), named=_named(a) and _named(b))
    a_rows, b_rows = left.to_numpy().T, right.to_numpy().T
    measures = {
        "pearson": correlations(a_rows, b_rows),
        "congruence": correlations(a_rows, b_rows, centred=False),
    }
    chosen = measures[similarity]
    rows, columns = paired(chosen, greedy=method == "greedy")
    order = np.argsort(-chosen[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    pairs = pd.DataFrame(
        {
            "factor_a": left.columns[rows],
            "factor_b": right.columns[columns],
            **{name: values[rows, columns] for name, values in measures.items()},
        }
    )
    return Match(
        pairs,
        unmatched_a=tuple(np.delete(np.asarray(left.columns, dtype=object), rows)),
        unmatched_b=tuple(np.delete(np.asarray(right.columns, dtype=object), columns)),
        n_items=len(left),
        method=method,
        similarity=similarity,
        similarities=pd.DataFrame(chosen, index=left.columns, columns=right.columns),
    )


def agreement(a: Any, b: Any) -> dict[str, float]:
    """How well the factors of two fits agree over min(k, k') pairs, by three measures.

    Greedy pairs by Pearson's correlation (mean and standard deviation, as in the paper), the pairs with the
    largest sum of correlations, and greedy pairs by Tucker's congruence. Loadings as for `match_factors`.

    Examples
    --------
    >>> import pandas as pd
    >>> loadings = pd.DataFrame({"a": [2.0, 1, 0, 0], "b": [0.0, 0, 1, 2]}, index=list("wxyz"))
    >>> {name: round(value, 6) for name, value in agreement(loadings, loadings[["b", "a"]]).items()}
    {'pearson': 1.0, 'pearson_sd': 0.0, 'pearson_optimal': 1.0, 'congruence': 1.0}
    """
    greedy = match_factors(a, b)
    return {
        "pearson": greedy.mean,
        "pearson_sd": greedy.std,
        "pearson_optimal": match_factors(a, b, method="optimal").mean,
        "congruence": match_factors(a, b, similarity="congruence").mean,
    }


def _refuse(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}; choose one of {listed(choices)}.")


def _loadings(source: Any, side: str) -> pd.DataFrame:
    """Loadings as a checked table."""
    values = _source_table(source)
    if not isinstance(values, pd.DataFrame):
        values = np.asarray(values)
        if values.ndim != 2:
            raise InputError(
                f"{side} has {counted(values.ndim, 'dimension')}; give loadings as items x factors, or a "
                "fitted model."
            )
        values = pd.DataFrame(values)
    if not values.shape[1]:
        raise InputError(f"{side} has no factors; there is nothing to match.")
    if not values.index.is_unique:
        again = values.index[values.index.duplicated()][0]
        raise InputError(f"{side} has the item {str(again)!r} twice; item names must be unique.")
    try:
        table = values.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{side} holds loadings that are not numbers; give numbers only.") from None
    numbers = table.to_numpy()
    broken = np.argwhere(~np.isfinite(numbers))
    if len(broken):
        row, column = broken[0]
        raise InputError(
            f"{side} holds {float(numbers[row, column])} at item {str(table.index[row])!r}, factor "
            f"{str(table.columns[column])!r}; every loading must be a finite number."
        )
    return table


def _named(source: Any) -> bool:
    return isinstance(_source_table(source), pd.DataFrame)


def _source_table(source: Any) -> Any:
    """Loadings, or those of a model, in the units of its fit."""
    return getattr(source, "weighted_loadings_", getattr(source, "loadings_", source))


def _same_items(left: pd.DataFrame, right: pd.DataFrame, *, named: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    if named:
        shared = left.index.intersection(right.index, sort=False)
        if len(shared) < FEWEST_ITEMS:
            raise InputError(
                f"a and b share {counted(len(shared), 'item name')} (a has {listed(left.index, most=3)}; b "
                f"has {listed(right.index, most=3)}), but {FEWEST_ITEMS} are needed. Give both the same "
                "item names as index."
            )
        return left.loc[shared], right.loc[shared]
    if len(left) != len(right):
        raise InputError(
            f"a has {counted(len(left), 'item')} and b has {len(right)}; without item names on both sides "
            "they must be the same items in the same order."
        )
    if len(left) < FEWEST_ITEMS:
        raise InputError(
            f"a and b have {counted(len(left), 'item')}, but {FEWEST_ITEMS} are needed to compare loadings."
        )
    return left, right
