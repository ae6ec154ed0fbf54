"""Checks of tables that are given in Python: answers, ranges and weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from icqf.data.frames import as_pandas, label_at
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, InputWarning, and_more, counted, did_you_mean, listed
from icqf.screening.missing_codes import USUAL_CODES
from icqf.screening.ranges import refuse_wide_range

Array = NDArray[Any]
_ROWS_AT_A_TIME = 65536
WIDEST_WEIGHTS = 1e9  # largest over smallest
LARGEST_WEIGHT = 1e12
WIDEST_ITEM_WEIGHTS = 1e4
_ROWS_IN_CACHE = 1024


class RangeWarning(UserWarning):
    """The answer range was not declared, so the observed one is used."""


class ConstantItemsWarning(UserWarning):
    """Some items have the same answer from everybody."""


class EmptyRowsWarning(InputWarning):
    """Some participants answered nothing."""


def numeric_table(X: Any) -> Any:
    """Return `X`, as a pandas table if it is a table, after checking that columns are numeric and unique."""
    X = as_pandas(X)
    if not isinstance(X, pd.DataFrame):
        _refuse_text(X)
        return X
    if X.shape[1] == 0:
        raise InputError("The table has no items: it has rows but no columns.")
    names = pd.Index([str(name) for name in X.columns])
    doubled = names[names.duplicated()]
    if len(doubled):
        raise InputError(f"Item {doubled[0]!r} appears twice among the columns; give each item its own name.")
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        if not pd.api.types.is_numeric_dtype(kind):
            X = _with_numbers(X, name)
    return X


def _refuse_text(X: Any) -> None:
    """Refuse text in an array or lists; scikit-learn checks the rest."""
    if not isinstance(X, list) and getattr(getattr(X, "dtype", None), "kind", None) not in ("O", "U"):
        return
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return
    if cells.ndim != 2:
        return
    for row, answers in enumerate(cells):
        for item, answer in enumerate(answers, start=1):
            if isinstance(answer, str) and np.isnan(pd.to_numeric(answer, errors="coerce")):
                raise InputError(
                    f"Item 'item{item}' holds text: {str(answer)!r} (row {row}). Give answers as numbers, "
                    "and missing ones as NaN."
                )


def _with_numbers(X: pd.DataFrame, name: Any) -> pd.DataFrame:
    """The table with a column of objects converted to numbers."""
    column = X[name]
    if column.dtype.kind in "mM":
        raise InputError(
            f"Item {str(name)!r} holds dates or times; give answers as numbers, or leave it out."
        )
    numbers = pd.to_numeric(column, errors="coerce")
    bad = column.notna() & numbers.isna()
    if bad.any():
        row = label_at(column.index, bad.to_numpy().argmax())
        raise InputError(
            f"Item {str(name)!r} holds text: {column[bad].iloc[0]!r} (row {row!r}"
            f"{and_more(int(bad.sum()))}). Give answers as numbers, and missing ones as empty cells."
        )
    X = X.copy(deep=False)
    X[name] = numbers.astype(float)
    return X


def unpacked(X: Any, confounds: Any, sample_weight: Any = None) -> tuple[Any, Any, Any, pd.DataFrame | None]:
    """Answers, confounds, weights and, for a questionnaire, the ranges that were checked already."""
    if not isinstance(X, Questionnaire):
        return X, confounds, sample_weight, None
    confounds = X.confounds if confounds is None else confounds
    sample_weight = X.weights if sample_weight is None else sample_weight
    return X.keyed_answers(), confounds, sample_weight, X.ranges()


def named_answers(model: Any, table: Any) -> tuple[Array, list[str], bool]:
    """The answers (n, m) of a new table, its item names, and whether they come from the table."""
    names = _column_names(table)
    try:
        answers = check_array(
            table, dtype="numeric", ensure_all_finite=False, estimator=model, input_name="X"
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    return _countable(answers), names or [f"item{j}" for j in range(1, answers.shape[1] + 1)], bool(names)


def _column_names(table: Any) -> list[str]:
    """The column names of a table; none for an array or numbered columns."""
    names = list(table.columns) if isinstance(table, pd.DataFrame) else []
    texts = [str(name) for name in names if isinstance(name, str)]
    if texts and len(texts) < len(names):
        number = next(name for name in names if not isinstance(name, str))
        raise InputError(
            f"Some columns of the table are named by text, such as {texts[0]!r}, and others by numbers, such "
            f"as {number!r}; rename them, as in table.columns = table.columns.astype(str)."
        )
    return texts


def seen_items(model: Any, table: Any) -> Array:
    """The answers (n, m) of a table that must have the items of a fitted model."""
    try:
        answers = validate_data(model, table, reset=False, dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        if "feature names should match" not in str(error):
            raise InputError(str(error)) from None
        raise InputError(
            f"{str(error).rstrip()}\nGive the table exactly the model's items, in their order, as in "
            "table[model.feature_names_in_]."
        ) from None
    return _countable(answers)


def _countable(answers: Array) -> Array:
    """Booleans and unsigned integers as signed ones, which can be subtracted."""
    if answers.dtype == bool:
        return answers.astype(np.int8)
    if np.issubdtype(answers.dtype, np.unsignedinteger):
        return answers.astype(np.int16 if answers.dtype.itemsize == 1 else np.int64)
    return answers


def item_ranges(item_range: Any, items: list[str], answers: Array, rows: Any = None) -> Array:
    """Lowest and highest answer of each item (m, 2); observed ones, with a warning, if undeclared."""
    m = len(items)
    if item_range is None:
        low, high = _observed_range(answers)
        if np.isinf(low) or np.isinf(high):
            item = int(np.flatnonzero(np.isinf(answers).any(axis=0))[0])
            ends = np.tile(np.finfo(float).max * np.array([-1, 1]), (m, 1))
            _explain_outside(answers, ends, items, range(len(answers)) if rows is None else rows, item)
        warnings.warn(
            f"item_range is not declared: the lowest and highest observed answers, {low:g} and {high:g}, are "
            "used as the range of every item. Declare item_range=(lowest, highest) to be sure.",
            RangeWarning,
            stacklevel=5,
        )
        refuse_wide_range(items[0], low, high)
        return np.tile([low, high], (m, 1))
    if isinstance(item_range, (pd.DataFrame, Mapping)):
        ranges = _ranges_by_name(item_range, items)
    else:
        ranges = _numbers(item_range)
        ranges = np.tile(ranges, (m, 1)) if ranges.shape == (2,) else ranges
    if ranges.shape != (m, 2):
        raise InputError(
            f"item_range has the shape {ranges.shape}; give (lowest, highest) for all items, one such pair "
            f"for each of the {m} items, or a table with the items' names."
        )
    for name, (low, high) in zip(items, ranges, strict=True):
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InputError(
                f"item_range gives item {name!r} the range {low:g} to {high:g}; the first number must be "
                "the lowest answer and the second the highest."
            )
        refuse_wide_range(name, low, high)
    return ranges


def _numbers(item_range: Any) -> Array:
    try:
        return np.asarray(item_range, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"item_range={item_range!r} is not a pair of numbers; give (lowest, highest), such as (0, 4), "
            "or one such pair for each item."
        ) from None


def _ranges_by_name(item_range: Any, items: list[str]) -> Array:
    if isinstance(item_range, pd.DataFrame):
        table = {
            str(name): tuple(row)
            for name, row in zip(item_range.index, item_range.iloc[:, :2].to_numpy(), strict=True)
        }
    else:
        table = {str(name): pair for name, pair in item_range.items()}
    absent = [name for name in items if name not in table]
    if absent:
        raise InputError(
            f"item_range has no entry for item {absent[0]!r}"
            f"{and_more(len(absent))}.{did_you_mean(absent[0], table)}"
        )
    return _numbers([table[name] for name in items])


def _observed_range(answers: Array) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for start in range(0, len(answers), _ROWS_AT_A_TIME):
        part = answers[start : start + _ROWS_AT_A_TIME]
        low = min(low, float(np.fmin.reduce(part, axis=None)))
        high = max(high, float(np.fmax.reduce(part, axis=None)))
    if not low < high:
        content = "only missing answers" if low > high else f"only the answer {low:g}"
        raise InputError(
            f"The table holds {content}, so its range is unknown; declare item_range=(lowest, highest)."
        )
    return low, high


def check_ranges(answers: Array, ranges: Array, items: list[str], rows: Any) -> None:
    """Refuse infinite answers and answers outside their item's range."""
    low, high = _ends(answers, ranges)
    for start in range(0, len(answers), _ROWS_AT_A_TIME):
        part = answers[start : start + _ROWS_AT_A_TIME]
        lowest, highest = np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)
        wrong = np.flatnonzero((lowest < low) | (highest > high))
        if len(wrong):
            _explain_outside(answers, np.column_stack([low, high]), items, rows, int(wrong[0]))


def _ends(answers: Array, ranges: Array) -> tuple[Array, Array]:
    """The ends of the ranges in the answers' precision, so that an answer of 0.7 is not above 0.7."""
    low, high = ranges.astype(answers.dtype).T if answers.dtype == np.float32 else ranges.T
    return low, high


def working_matrix(answers: Array, ranges: Array, dtype: Any) -> Array:
    """Answers minus each item's lowest one; integers stay integers, and missing answers NaN."""
    whole = np.issubdtype(answers.dtype, np.integer)
    low, high = _ends(answers, ranges)
    # Always in C order, so that the same answers give the same bytes from any kind of table.
    if whole and (low == np.rint(low)).all() and np.abs(low).max() < 2**31:
        if not low.any():
            return np.ascontiguousarray(answers)
        top = min(float(high.max()), float(np.iinfo(answers.dtype).max)) - low.min()
        limits = [np.min_scalar_type(int(limit)) for limit in (low.min(), low.max(), max(top, 0.0))]
        wide = np.result_type(answers.dtype, *limits)
        return np.subtract(answers, low.astype(wide), dtype=wide, order="C")
    work = np.empty(answers.shape, dtype=dtype)
    # A few rows at a time, so that a table stored by columns needs no copy of its own.
    for start in range(0, len(answers), _ROWS_IN_CACHE):
        at = slice(start, start + _ROWS_IN_CACHE)
        with np.errstate(invalid="ignore"):  # R's NA is a signalling NaN
            np.subtract(answers[at], low, out=work[at], casting="same_kind")
    return work


def _explain_outside(answers: Array, ranges: Array, items: list[str], rows: Any, item: int) -> None:
    column, (low, high) = answers[:, item], ranges[item]
    bad = np.flatnonzero((column < low) | (column > high))
    value, row = float(column[bad[0]]), rows[int(bad[0])]
    if np.isinf(value):
        raise InputError(
            f"Item {items[item]!r} is infinite (row {row!r}{and_more(len(bad))}). "
            "Leave the cell empty if the answer is missing."
        )
    side = f"above its highest answer {high:g}" if value > high else f"below its lowest answer {low:g}"
    if value in USUAL_CODES:
        advice = f"If {value:g} marks a missing answer, make these cells empty; otherwise correct item_range."
    else:
        advice = "Correct the answer, or declare the item's true range with item_range."
    raise InputError(
        f"Item {items[item]!r} holds {value:g}, {side} (row {row!r}{and_more(len(bad))}). {advice}"
    )


def observed_rows(answers: Array) -> Array:
    """Which participants answered anything (n,)."""
    if np.issubdtype(answers.dtype, np.integer):
        return np.ones(len(answers), dtype=bool)
    observed = np.empty(len(answers), dtype=bool)
    for start in range(0, len(answers), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        observed[part] = ~np.isnan(answers[part]).all(axis=1)
    return observed


def check_items(answers: Array, items: list[str]) -> None:
    """Refuse items without answers; warn about constant items."""
    lowest, highest = np.full(len(items), np.inf), np.full(len(items), -np.inf)
    for start in range(0, len(answers), _ROWS_AT_A_TIME):
        part = answers[start : start + _ROWS_AT_A_TIME]
        lowest = np.fmin(lowest, np.fmin.reduce(part, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(part, axis=0))
    empty = [name for name, top in zip(items, highest, strict=True) if top == -np.inf]
    if empty:
        if len(empty) == 1:
            raise InputError(f"Nobody answered item {empty[0]!r}; leave it out of the table.")
        raise InputError(f"Nobody answered {len(empty)} items: {listed(empty)}; leave them out of the table.")
    constant = [name for name, low, top in zip(items, lowest, highest, strict=True) if low == top]
    if constant:
        warnings.warn(
            f"{counted(len(constant), 'item')} with the same answer from everybody: {listed(constant)}. "
            "Such an item carries no information about the factors; it is kept, but you can leave it out.",
            ConstantItemsWarning,
            stacklevel=5,
        )


def warn_of_empty_rows(rows: Any, filled: Array, *, consequence: str) -> None:
    """Warn about participants who answered nothing."""
    empty = [rows[int(at)] for at in np.flatnonzero(~filled)]
    if empty:
        text = f"{counted(len(empty), 'participant')} answered nothing"
        warning = EmptyRowsWarning(
            f"{text} ({listed(empty)}): {consequence}.", anonymous=f"{text}: {consequence}."
        )
        warnings.warn(warning, stacklevel=5)


def row_names(table: Any, n: int) -> Any:
    """The labels of the rows, for messages."""
    return list(table.index) if isinstance(table, pd.DataFrame) else range(n)


def warn_of_repeated_ids(table: Any) -> None:
    """Warn about duplicated row labels: a table of answers has one row per participant."""
    if not isinstance(table, pd.DataFrame) or table.index.is_unique:
        return
    again = table.index[table.index.duplicated()]
    have = "has" if len(again) == 1 else "have"
    text = f"{counted(len(again), 'row')} of the answers {have} the same label as another row"
    warnings.warn(
        InputWarning(
            f"{text}, first {str(again[0])!r}.",
            code="repeated-id",
            remedy="A table has one row per participant: delete the copies. If rows were drawn with "
            "replacement, or are visits, number them with reset_index(drop=True), and pass groups where "
            "possible.",
            anonymous=f"{text}.",
        ),
        stacklevel=5,
    )


def weights_of(sample_weight: Any, answers: Array) -> Array | None:
    """Checked sample weights (n,), or None."""
    if sample_weight is None:
        return None
    try:
        values = np.asarray(as_pandas(sample_weight), dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must hold numbers, one per participant ({error}).") from None
    if values.ndim > 1:
        raise InputError(
            f"sample_weight has the shape {values.shape}; give one weight per participant, in one column."
        )
    if values.ndim == 1 and len(values) != len(answers):
        raise InputError(
            f"There are {len(answers)} rows of answers but {len(values)} sample weights; give one weight per "
            "participant, in the same order."
        )
    if values.ndim == 1 and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"sample_weight is {values[row]:g} in row {row}; give every participant a weight.")
    if values.min() < 0 or not values.max() > 0:
        raise InputError("sample_weight must not hold negative numbers, and not all weights may be zero.")
    _refuse_extreme_weights(values)
    return np.full(len(answers), values) if values.ndim == 0 else values


def item_weights(item_weight: Any, items: list[str]) -> Any:
    """Check the weights of the items: a word, None, or an array (m,)."""
    if item_weight is None or isinstance(item_weight, str):
        return item_weight
    wanted = "item_weight must be 'range', 'variance', None, or one positive number per item"
    try:
        values = np.asarray(as_pandas(item_weight), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, not {type(item_weight).__name__}.") from None
    if values.shape != (len(items),):
        raise InputError(f"{wanted}; there are {len(items)} items, and it has the shape {values.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(wrong):
        raise InputError(f"{wanted}; that of {items[wrong[0]]!r} is {values[wrong[0]]:g}.")
    if values.max() > WIDEST_ITEM_WEIGHTS * values.min():
        raise InputError(
            f"item_weight ranges from {values.min():g} to {values.max():g}, a ratio of more than "
            f"{WIDEST_ITEM_WEIGHTS:g}, which leaves the lightest items without influence; leave those items "
            "out instead."
        )
    return values


def _refuse_extreme_weights(values: Array) -> None:
    """Refuse weights so unequal that a fit would describe only the heaviest participants."""
    positive = values[values > 0]
    lightest, heaviest = float(positive.min()), float(positive.max())
    if heaviest / WIDEST_WEIGHTS > lightest:
        raise InputError(
            f"sample_weight ranges from {lightest:g} to {heaviest:g}, a ratio of more than "
            f"{WIDEST_WEIGHTS:g}, which leaves the lightest participants without influence; correct the "
            "weights, or set these to 0."
        )
    if not 1 / LARGEST_WEIGHT <= heaviest <= LARGEST_WEIGHT:
        raise InputError(
            f"sample_weight holds {heaviest:g}; divide all weights by their mean, which changes nothing else."
        )
