"""REDCap's branching logic, the common part of it: comparisons of fields, joined by and, or, not."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

TOKEN = re.compile(
    r"\s*(?:(?P<field>\[\s*[A-Za-z0-9_]+\s*(?:\(\s*-?[A-Za-z0-9_]+\s*\))?\s*\])|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<number>-?\d+(?:\.\d+)?)|(?P<sign><>|!=|<=|>=|=|<|>)|(?P<join>and\b|or\b|not\b|&&|\|\||!)|(?P<bracket>[()]))",
    re.IGNORECASE,
)
COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class NotUnderstood(ValueError):
    """The expression uses something beyond the supported part of the language."""


def shown(expression: str, frame: pd.DataFrame) -> np.ndarray:
    """Return for each record whether the branching logic shows the field."""
    return _Parser(expression, frame).parse()


class _Parser:
    def __init__(self, expression: str, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        text, place = expression.strip(), 0
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise NotUnderstood(text[place : place + 20].strip())
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()

    def parse(self) -> np.ndarray:
        value = self._either()
        if self.at < len(self.tokens):
            raise NotUnderstood(self.tokens[self.at][1])
        return value

    def _next(self, *words: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][1].lower() in words:
            self.at += 1
            return True
        return False

    def _either(self) -> np.ndarray:
        value = self._both()
        while self._next("or", "||"):
            value = value | self._both()
        return value

    def _both(self) -> np.ndarray:
        value = self._one()
        while self._next("and", "&&"):
            value = value & self._one()
        return value

    def _one(self) -> np.ndarray:
        if self._next("not", "!"):
            return ~self._one()
        if self._next("("):
            value = self._either()
            if not self._next(")"):
                raise NotUnderstood("a bracket that is not closed")
            return value
        return self._comparison()

    def _comparison(self) -> np.ndarray:
        left = self._operand()
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "sign":
            raise NotUnderstood("a field without a comparison")
        sign = self.tokens[self.at][1]
        self.at += 1
        right = self._operand()
        left_number, right_number = (_numbers(side) for side in (left, right))
        both = ~np.isnan(left_number) & ~np.isnan(right_number)
        as_numbers = COMPARE[sign](left_number, right_number)
        if sign in ("=", "<>", "!="):
            return np.where(both, as_numbers, COMPARE[sign](left, right))
        return both & as_numbers

    def _operand(self) -> np.ndarray:
        if self.at >= len(self.tokens):
            raise NotUnderstood("an expression that ends early")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "field":
            return self._field(token[1:-1].replace(" ", ""))
        if kind in ("text", "number"):
            return np.full(len(self.frame), token.strip("'\""), dtype=object)
        raise NotUnderstood(token)

    def _field(self, name: str) -> np.ndarray:
        checkbox = re.fullmatch(r"(\w+)\((-?\w+)\)", name)
        column = f"{checkbox[1]}___{checkbox[2].replace('-', '_').lower()}" if checkbox else name
        if column not in self.frame.columns:
            raise NotUnderstood(f"[{name}], which is no column")
        values = self.frame[column]
        if pd.api.types.is_numeric_dtype(values.dtype):
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            return np.array(["" if np.isnan(v) else f"{v:.15g}" for v in numbers], dtype=object)
        return values.astype(object).where(values.notna(), "").astype(str).str.strip().to_numpy(dtype=object)


def _numbers(side: np.ndarray) -> np.ndarray:
    return pd.to_numeric(pd.Series(side, dtype=object), errors="coerce").to_numpy(dtype=float)
