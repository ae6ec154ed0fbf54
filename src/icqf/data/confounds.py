"""Confounds such as age and sex, encoded as named columns between 0 and 1."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.disclosure import (
    INTERCEPT,
    SMALLEST_CATEGORY,
    refuse_lone_value,
    refuse_small_categories,
    rounded,
)
from icqf.data.frames import as_pandas, label_at
from icqf.data.settings import parameter_error
from icqf.errors import Advice, InputError, InputWarning, and_more, counted, did_you_mean, listed

Array = NDArray[Any]
_MOSTLY = 0.8  # share of texts that are numbers, above which the others are mistakes, not categories
_FRIENDLY = {"age": ("Old", "Young")}


@dataclass(frozen=True)
class _Column:
    """One confound: its categories, or its range and mean."""

    name: str
    categories: tuple[Any, ...] | None = None
    low: float = 0.0
    high: float = 1.0
    mean: float = 0.0
    shares: tuple[float, ...] = ()  # of the categories in the fitted sample

    def labels(self) -> tuple[str, ...]:
        if self.categories is None:
            return _FRIENDLY.get(self.name.lower(), (f"{self.name}: high", f"{self.name}: low"))
        return tuple(
            category if isinstance(category, str) else f"{self.name}: {category:g}"
            for category in self.categories
        )


class ConfoundEncoder:
    """Encodes confounds as a design with columns in [0, 1].

    A categorical confound (text, category, true/false, or numbers with two different values)
    becomes one 0/1 column per category. A continuous one is rescaled to [0, 1] and becomes two
    columns, x and 1 − x. The intercept comes last.
    """

    def __init__(
        self,
        *,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        intercept: bool = True,
        missing: str = "error",
        smallest_category: int = SMALLEST_CATEGORY,
    ) -> None:
        self.ranges = dict(ranges or {})
        self.intercept = intercept
        self.missing = missing
        self.smallest_category = smallest_category
        self.columns: tuple[_Column, ...] = ()

    def fit(self, confounds: Any, *, weights: Array | None = None) -> ConfoundEncoder:
        """Learn the categories and ranges of a table of confounds (None: there are none).

        Members of a category are counted by their `weights` (n,), as an effective number.
        """
        frame = table_of_confounds(confounds, None if weights is None else len(weights))
        weights = np.ones(len(frame)) if weights is None else weights / (weights.max(initial=0.0) or 1.0)
        for name in self.ranges:
            if name not in frame.columns:
                raise parameter_error(
                    "confound_ranges",
                    f" names {name!r}, which is not among the confounds "
                    f"({listed(frame.columns) or 'there are none'}).{did_you_mean(name, frame.columns)}",
                )
        self.columns = tuple(self._learn(frame[name], weights) for name in frame.columns)
        return self

    def _learn(self, values: pd.Series, weights: Array) -> _Column:
        name = str(values.name)
        known, weights = values.dropna(), weights[values.notna().to_numpy()]
        if known.empty:
            raise InputError(f"Confound {name!r} is missing for everybody; leave it out.")
        if _is_categorical(values) and name not in self.ranges:
            return self._learn_categories(name, known, weights)
        numbers = _as_numbers(known, f"Confound {name!r} has a range in confound_ranges, but holds")
        if not np.isfinite(numbers).all():
            row = label_at(known.index, np.flatnonzero(~np.isfinite(numbers))[0])
            raise InputError(f"Confound {name!r} is infinite in row {row!r}; correct it or leave it out.")
        if name in self.ranges:
            low, high = _pair(name, self.ranges[name])
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise parameter_error(
                    "confound_ranges",
                    f" gives {name!r} the range {low:g} to {high:g}; the first number must be the lower one.",
                )
        else:
            low, high = float(numbers.min()), float(numbers.max())
        if low == high:
            raise InputError(
                f"Confound {name!r} has the same value {low:g} for everybody, so it explains nothing; "
                "leave it out."
            )
        mean = float(numbers.mean())
        if self.smallest_category > 1:
            clipped = np.clip(numbers, low, high)
            refuse_lone_value(name, known.index, clipped, weights, limit=self.smallest_category)
            ends, mean = rounded(numbers, low, high, mean)
            low, high = (low, high) if name in self.ranges else ends
            mean = min(max(mean, low), high)
        return _Column(name, low=low, high=high, mean=mean)

    def _learn_categories(self, name: str, known: pd.Series, weights: Array) -> _Column:
        _refuse_stray_text(name, known)
        codes, keys = _coded(known)
        counts = dict(zip(keys, np.bincount(codes).tolist(), strict=True))
        odd = [value for value in counts if not isinstance(value, (str, bool, int, float))]
        if odd:
            raise InputError(
                f"Confound {name!r} holds {odd[0]!s}, which is neither a number nor text; give a number, "
                "such as an age in years, or a category."
            )
        refuse_small_categories(name, keys, codes, weights, limit=self.smallest_category)
        categories = tuple(sorted(counts, key=lambda value: (str(type(value)), value)))
        shares = tuple(counts[category] / len(known) for category in categories)
        return _Column(name, categories=categories, shares=shares)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the design's columns."""
        labels = [(column.name, label) for column in self.columns for label in column.labels()]
        often = Counter(label for _, label in labels)
        unique = [
            f"{name}: {label}" if often[label] > 1 and ": " not in label else label for name, label in labels
        ]
        return (*unique, *([INTERCEPT] if self.intercept else []))

    def categories(self) -> dict[int, str]:
        """Names of the 0/1 columns of the design, by position."""
        kinds = [column.categories is not None for column in self.columns for _ in column.labels()]
        kinds += [True] if self.intercept else []
        return {at: name for at, name in enumerate(self.names) if kinds[at]}

    @property
    def partitions(self) -> tuple[tuple[int, ...], ...]:
        """Groups of the design's columns that add up to one for everybody."""
        groups, at = [], 0
        for column in self.columns:
            width = len(column.labels())
            groups.append(tuple(range(at, at + width)))
            at += width
        return tuple(groups)

    def transform(self, confounds: Any, *, n_rows: int | None = None) -> Array:
        """The design (n, c) of a table with the fitted confounds."""
        if not self.columns:
            if confounds is not None and table_of_confounds(confounds).shape[1]:
                raise InputError(
                    "The model was fitted without confounds, but confounds were given; leave them out, or "
                    "fit the model with them."
                )
            return np.ones((n_rows or 0, 1 if self.intercept else 0))
        names = [column.name for column in self.columns]
        if confounds is None:
            raise InputError(
                f"The model was fitted with the confounds {listed(names)}; give confounds= with them."
            )
        frame = table_of_confounds(confounds, n_rows)
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise InputError(
                f"Confound {absent[0]!r} is not among the columns given ({listed(frame.columns)})."
                f"{did_you_mean(absent[0], frame.columns)}"
            )
        parts = [self._encode(column, frame[column.name]) for column in self.columns]
        if self.intercept:
            parts.append(np.ones((len(frame), 1)))
        return np.concatenate(parts, axis=1)

    def outside(self, confounds: pd.DataFrame) -> Array:
        """Which participants (n,) have a number outside the fitted range."""
        outside = np.zeros(len(confounds), dtype=bool)
        for column in self.columns:
            if column.categories is None:
                x = _new_numbers(column, confounds[column.name])
                outside |= (x < column.low) | (x > column.high)
        return outside

    def _encode(self, column: _Column, values: pd.Series) -> Array:
        gaps = values.isna().to_numpy()
        if gaps.any() and self.missing == "error":
            rows = values.index[gaps]
            first = label_at(rows, 0)
            raise InputError(
                f"Confound {column.name!r} is missing for participant {first!r}{and_more(len(rows))}.",
                code="missing-confound",
                remedy=Advice(
                    "Fill it in, leave these participants out, or fit the model with {missing_confounds=} to "
                    "use the sample mean.",
                    missing_confounds="mean",
                ),
                confound=column.name,
                participant=first,
                count=len(rows),
            )
        if column.categories is not None:
            return self._indicators(column, values, gaps)
        numbers = _new_numbers(column, values)
        if np.isinf(numbers).any():
            row = label_at(values.index, np.flatnonzero(np.isinf(numbers))[0])
            raise InputError(f"Confound {column.name!r} is infinite in row {row!r}; correct it.")
        x = np.where(gaps, column.mean, numbers)
        outside = (x < column.low) | (x > column.high)
        if outside.any():
            rows = values.index[outside]
            text = (
                f"Confound {column.name!r} is outside the fitted range {column.low:g} to {column.high:g} for "
                f"{counted(int(outside.sum()), 'participant')}"
            )
            first = f", first {label_at(rows, 0)!r} with {x[outside][0]:g}"
            then = "; the nearest end of the range is used."
            warnings.warn(InputWarning(text + first + then, anonymous=text + then), stacklevel=5)
        x = (np.clip(x, column.low, column.high) - column.low) / (column.high - column.low)
        return np.column_stack([x, 1 - x])

    def _indicators(self, column: _Column, values: pd.Series, gaps: Array) -> Array:
        categories = list(column.categories or ())
        codes, keys = _coded(values)
        levels = pd.Index(categories, dtype=object).get_indexer(pd.Index(keys, dtype=object))
        for at in np.flatnonzero(levels < 0):
            category = matching(keys[at], categories)
            levels[at] = -1 if category is None else categories.index(category)
        level = np.append(levels, -1)[codes]
        unseen = (level < 0) & ~gaps
        if unseen.any():
            row = int(np.flatnonzero(unseen)[0])
            participant = label_at(values.index, row)
            raise InputError(
                f"Confound {column.name!r} is {values.iloc[row]!r} for participant {participant!r}, but the "
                f"model was fitted with {listed(categories)}. Recode it as one of these, or leave the "
                "participant out."
            )
        design = np.zeros((len(values), len(categories)))
        filled = np.flatnonzero(~gaps)
        design[filled, level[filled]] = 1.0
        if gaps.any():
            design[gaps] = column.shares
        return design

    def to_dict(self) -> dict[str, Any]:
        """Return all that was learned as plain values."""
        return {
            "intercept": self.intercept,
            "missing": self.missing,
            "columns": [
                {
                    "name": column.name,
                    "categories": None if column.categories is None else list(column.categories),
                    "low": column.low,
                    "high": column.high,
                    "mean": column.mean,
                    "shares": list(column.shares),
                }
                for column in self.columns
            ],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ConfoundEncoder:
        """Return the encoder that `to_dict` described."""
        encoder = cls(intercept=bool(stored["intercept"]), missing=str(stored["missing"]))
        encoder.columns = tuple(
            _Column(
                str(column["name"]),
                None if column["categories"] is None else tuple(column["categories"]),
                float(column["low"]),
                float(column["high"]),
                float(column["mean"]),
                tuple(float(share) for share in column["shares"]),
            )
            for column in stored["columns"]
        )
        return encoder


def category_key(value: Any) -> str:
    """A category as text, in which 1, 1.0, "1" and "01" are the same."""
    if isinstance(value, str):
        try:
            value = float(value) if "_" not in value else value.strip()
        except ValueError:
            return value.strip()
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return f"{value:.15g}" if number else str(value)


def matching(value: Any, categories: Iterable[Any]) -> Any:
    """The category that is the same as a value, whatever its type; None if there is none, or several are."""
    same = [category for category in categories if category_key(category) == category_key(value)]
    return same[0] if len(same) == 1 else None


def _as_number_if_written_so(value: Any) -> Any:
    """A text such as "1" or "2.5" as its number; "01" and other texts stay as they are."""
    if not isinstance(value, str) or category_key(value) != value.strip():
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return (int(number) if number.is_integer() else number) if np.isfinite(number) else value


def _coded(values: pd.Series) -> tuple[Array, list[Any]]:
    """The place of each value's category, -1 if missing, and the categories: texts of numbers as numbers."""
    codes, different = pd.factorize(values)
    plain = np.empty(len(different), dtype=object)
    plain[:] = [_as_number_if_written_so(value) for value in np.asarray(different, dtype=object)]
    places, keys = pd.factorize(plain)
    return np.append(places, -1)[codes], [
        value.item() if isinstance(value, np.generic) else value for value in keys
    ]


def _new_numbers(column: _Column, values: pd.Series) -> Array:
    """The numbers of new participants; missing ones are NaN."""
    return _as_numbers(
        values, f"Confound {column.name!r} was numeric when the model was fitted, but now holds"
    )


def _refuse_stray_text(name: str, known: pd.Series) -> None:
    """Refuse a column of numbers with a few texts among them."""
    different = [value for value in known.unique() if isinstance(value, str)]
    plain = pd.Series([value.strip().replace(",", ".") for value in different], dtype=object)
    only_texts = len(different) == known.nunique()
    if not different or (only_texts and pd.to_numeric(plain, errors="coerce").isna().all()):
        return
    texts = known.astype(object).map(lambda value: value.strip() if isinstance(value, str) else None)
    written = texts.notna()
    right = pd.to_numeric(texts, errors="coerce").notna() | ~written
    meant = pd.to_numeric(texts.str.replace(",", "."), errors="coerce").notna() | ~written
    if right.all() or meant.mean() < _MOSTLY:
        return
    at = int(np.flatnonzero(~right)[0])
    row = label_at(known.index, at)
    more = and_more(int((~right).sum()))
    raise InputError(
        f"Confound {name!r} holds numbers, but {texts.iloc[at][:40]!r} in row {row!r}{more}.",
        code="stray-text",
        remedy="Correct it (with a decimal point) or leave the cell empty; if the numbers are categories, "
        "give them names.",
        confound=name,
        row=row,
        value=texts.iloc[at][:40],
    )


def _pair(name: str, ends: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise parameter_error(
            "confound_ranges", f" gives {name!r} {ends!r}; give (lowest, highest), such as (5, 21)."
        ) from None
    return low, high


def _as_numbers(values: pd.Series, complaint: str) -> Array:
    dates = values.dtype.kind in "mM"
    numbers = pd.to_numeric(values, errors="coerce")
    text = (values.notna() & (numbers.isna() | dates)).to_numpy()
    if text.any():
        at = int(np.flatnonzero(text)[0])
        raise InputError(
            f"{complaint} {values.iloc[at]!r} (row {label_at(values.index, at)!r}); give numbers."
        )
    return numbers.to_numpy(dtype=float, na_value=np.nan)


def _is_categorical(values: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return True
    return values.dropna().nunique() == 2


def table_of_confounds(confounds: Any, n: int | None = None) -> pd.DataFrame:
    """Confounds of `n` participants, given as any kind of table, as a pandas table."""
    if confounds is None:
        return pd.DataFrame()
    confounds = as_pandas(confounds)
    if isinstance(confounds, pd.Series):
        confounds = confounds.to_frame()
    if not isinstance(confounds, pd.DataFrame):
        if not isinstance(confounds, Mapping):
            values = np.asarray(confounds)
            if values.ndim not in (1, 2):
                raise InputError(
                    f"The confounds have the shape {values.shape}; give a table with one row per participant."
                )
            confounds = pd.DataFrame(values[:, None] if values.ndim == 1 else values)
            confounds.columns = [f"confound{number}" for number in range(1, confounds.shape[1] + 1)]
        else:
            confounds = pd.DataFrame(confounds)
    if n is not None and len(confounds) != n:
        raise InputError(
            f"There are {n} rows of answers but {len(confounds)} rows of confounds; give one row per "
            "participant, in the same order."
        )
    frame = confounds.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise InputError(f"Confound {doubled[0]!r} is given twice; keep one column of that name.")
    return frame
