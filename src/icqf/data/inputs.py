"""Tables and arrays as users give them: names of rows, confounds and weights that fit the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, check_array, validate_data

from icqf.data.confounds import ConfoundEncoder
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError

Array = NDArray[Any]


def unpacked(X: Any, confounds: Any, sample_weight: Any = None) -> tuple[Any, Any, Any, pd.DataFrame | None]:
    """What a fit is given, and the ranges that the answers are known to be in.

    A questionnaire brings its own confounds, weights and ranges, and its answers are checked already.
    """
    if not isinstance(X, Questionnaire):
        return X, confounds, sample_weight, None
    confounds = X.confounds if confounds is None else confounds
    sample_weight = X.weights if sample_weight is None else sample_weight
    return X.keyed_answers(), confounds, sample_weight, X.ranges()


def named_answers(model: Any, table: Any) -> tuple[Array, list[str], bool]:
    """The answers (n, m) of a new table, its items' names, and whether the table gave them."""
    names = _get_feature_names(table)
    try:
        answers = check_array(
            table, dtype="numeric", ensure_all_finite=False, estimator=model, input_name="X"
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    items = [f"item{j}" for j in range(1, answers.shape[1] + 1)] if names is None else list(map(str, names))
    return _countable(answers), items, names is not None


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
    """Numbers that can be subtracted from each other."""
    if answers.dtype == bool:
        return answers.astype(np.int8)
    if np.issubdtype(answers.dtype, np.unsignedinteger):
        return answers.astype(np.int16 if answers.dtype.itemsize == 1 else np.int64)
    return answers


def row_names(table: Any, n: int) -> Any:
    """How to call the rows in a message."""
    return list(table.index) if isinstance(table, pd.DataFrame) else range(n)


def check_same_rows(table: Any, confounds: Any) -> None:
    """Refuse confounds whose row names are not those of the answers, in the same order."""
    if not (isinstance(table, pd.DataFrame) and isinstance(confounds, (pd.DataFrame, pd.Series))):
        return
    if len(table) != len(confounds) or table.index.equals(confounds.index):
        return
    if isinstance(table.index, pd.RangeIndex) or isinstance(confounds.index, pd.RangeIndex):
        return
    at = next(i for i, (a, b) in enumerate(zip(table.index, confounds.index, strict=True)) if a != b)
    raise InputError(
        f"The confounds are not in the order of the answers: row {at + 1} is {table.index[at]!r} there and "
        f"{confounds.index[at]!r} here. Use confounds.loc[answers.index]."
    )


def design_of(encoder: ConfoundEncoder, confounds: Any, n: int) -> Array:
    """The confound design (n, c) of the participants."""
    design = encoder.transform(confounds, n_rows=n)
    if len(design) != n:
        raise InputError(
            f"There are {n} rows of answers but {len(design)} rows of confounds; give one row a participant, "
            "in the same order."
        )
    return design


def weights_of(sample_weight: Any, answers: Array) -> Array | None:
    """Checked sample weights (n,), or None."""
    if sample_weight is None:
        return None
    try:
        values = np.asarray(as_pandas(sample_weight), dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must hold numbers, one a participant ({error}).") from None
    if values.ndim == 1 and len(values) != len(answers):
        raise InputError(
            f"There are {len(answers)} rows of answers but {len(values)} sample weights; give one weight a "
            "participant, in the same order."
        )
    if values.ndim == 1 and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"sample_weight is {values[row]:g} in row {row}; give every participant a weight.")
    if values.ndim < 2 and (values.min() < 0 or not values.sum() > 0):
        raise InputError(
            "sample_weight must hold no negative number, and not all of the weights may be zero."
        )
    weights: Array = _check_sample_weight(values, answers, dtype=np.float64)
    return weights
