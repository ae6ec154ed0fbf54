"""Branching logic: which questions were asked, by the conditions in a dictionary.

The language is REDCap's (``[smokes] = '1' and [drugs(3)] <> ''``), or that of NDA and ABCD, in which names
have no brackets (``smokes == 1 && age > 12``). Conditions are parsed here and never run as code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.screening.answer_words import plain
from icqf.screening.missing_codes import number

LONGEST = 20_000  # characters of a condition
DEEPEST = 60  # brackets within brackets
_TOKEN = re.compile(
    r"\s*(?:(?P<field>(?:\[[^\[\]]*\])+)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<sign><>|!=|<=|>=|==|=|<|>)|(?P<join>&&|\|\||!)|(?P<bracket>[(),])|(?P<sum>[-+*/])"
    r"|(?P<word>[A-Za-z_]\w*))"
)
_FIELD = re.compile(r"\[\s*(\w+)\s*(?:\(\s*(-?\w+)\s*\))?\s*\]")
_COMMENT = re.compile(r"^\s*(//|#).*$", re.MULTILINE)
_QUOTES = str.maketrans("‘’“”\u00a0\n\r\t", "''\"\"    ")
_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "=": np.equal,
    "==": np.equal,
    "<>": np.not_equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ADD = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


class NotUnderstood(ValueError):
    """The condition uses something that cannot be evaluated; the message completes "because it …"."""


@dataclass(frozen=True)
class Condition:
    """A parsed condition: the columns it reads, and its tree of operations."""

    columns: frozenset[str]
    tree: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Truth:
    """For each row, whether a condition holds, and whether no further answer could change that."""

    holds: np.ndarray
    sure: np.ndarray


def parse(condition: str) -> Condition:
    """Parse a condition; where no name is in brackets, names without brackets are columns."""
    if len(condition) > LONGEST:
        raise NotUnderstood(f"has {len(condition)} characters")
    text = html.unescape(_COMMENT.sub("", condition)).translate(_QUOTES).strip()
    return _Parser(text, bare="[" not in text).parse()


def in_circles(conditions: Mapping[str, Condition]) -> set[str]:
    """Return the columns whose conditions refer to themselves, directly or by way of others."""
    uses = _uses(conditions)
    users: dict[str, set[str]] = {name: set() for name in uses}
    for name, others in uses.items():
        for other in others:
            users[other].add(name)
    left, ends = {*uses}, [*uses]
    while ends:  # leave out what refers to nothing, and what nothing refers to
        name = ends.pop()
        if name in left and not (uses[name] and users[name]):
            left.discard(name)
            for other in uses[name]:
                users[other].discard(name)
            for other in users[name]:
                uses[other].discard(name)
            ends += [*uses[name], *users[name]]
    return left


def _uses(conditions: Mapping[str, Condition]) -> dict[str, set[str]]:
    """The conditional columns that each condition refers to."""
    return {name: {*condition.columns} & conditions.keys() for name, condition in conditions.items()}


def box_column(name: str, code: str) -> str:
    """Return the column of one box of a checkbox question."""
    return f"{name}___{code.strip().replace('-', '_').lower()}"


class _Parser:
    def __init__(self, text: str, bare: bool) -> None:
        self.bare, self.at, self.depth = bare, 0, 0
        self.columns: set[str] = set()
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise NotUnderstood(f"has {text[place : place + 20].strip()!r}, which is not part of it")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()

    def parse(self) -> Condition:
        tree = self._either()
        if self.at < len(self.tokens):
            raise NotUnderstood(f"goes on with {self.tokens[self.at][1]!r} where it should end")
        return Condition(frozenset(self.columns), tree)

    def _next(self, *words: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][1].lower() in words:
            self.at += 1
            return True
        return False

    def _either(self) -> tuple[object, ...]:
        parts = [self._both()]
        while self._next("or", "||"):
            parts.append(self._both())
        return ("or", *parts) if len(parts) > 1 else parts[0]

    def _both(self) -> tuple[object, ...]:
        parts = [self._one()]
        while self._next("and", "&&"):
            parts.append(self._one())
        return ("and", *parts) if len(parts) > 1 else parts[0]

    def _one(self) -> tuple[object, ...]:
        negated = False
        while self._next("not", "!"):
            negated = not negated
        part = self._bracket() or self._comparison()
        return ("not", part) if negated else part

    def _bracket(self) -> tuple[object, ...] | None:
        """A condition in brackets; None if the bracket is one of a sum."""
        before = self.at
        if not self._next("("):
            return None
        self._deeper()
        part = self._either()
        self.depth -= 1
        if not self._next(")"):
            raise NotUnderstood("has a bracket that is not closed")
        if part[0] == "value" and self.at < len(self.tokens) and self.tokens[self.at][0] in ("sign", "sum"):
            self.at = before
            return None
        return part

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise NotUnderstood(f"has more than {DEEPEST} brackets within one another")

    def _comparison(self) -> tuple[object, ...]:
        left = self._sum()
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "sign":
            if self.depth:
                return ("value", left)
            raise NotUnderstood("has a field without a comparison")
        sign = self.tokens[self.at][1]
        self.at += 1
        return ("compare", sign, left, self._sum())

    def _sum(self) -> tuple[object, ...]:
        left = self._product()
        while self.at < len(self.tokens) and self.tokens[self.at][1] in ("+", "-"):
            sign = self.tokens[self.at][1]
            self.at += 1
            left = ("add", sign, left, self._product())
        return left

    def _product(self) -> tuple[object, ...]:
        left = self._operand()
        while self.at < len(self.tokens) and self.tokens[self.at][1] in ("*", "/"):
            sign = self.tokens[self.at][1]
            self.at += 1
            left = ("add", sign, left, self._operand())
        return left

    def _operand(self) -> tuple[object, ...]:
        if self.at >= len(self.tokens):
            raise NotUnderstood("ends early")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "field":
            return self._field(token)
        if kind in ("text", "number"):
            return ("text", token.strip("'\""))
        if token in ("-", "+"):
            return ("add", token, ("text", "0"), self._operand())
        if token == "(":
            self._deeper()
            inside = self._sum()
            self.depth -= 1
            if not self._next(")"):
                raise NotUnderstood("has a bracket that is not closed")
            return inside
        if kind == "word" and self.at < len(self.tokens) and self.tokens[self.at][1] == "(":
            raise NotUnderstood(f"uses the function {token}()")
        if kind == "word" and self.bare:
            self.columns.add(token)
            return ("field", token)
        raise NotUnderstood(f"has {token!r} where a field or a value should be")

    def _field(self, token: str) -> tuple[object, ...]:
        parts = token[1:-1].split("][")
        if len(parts) > 1:
            raise NotUnderstood(f"refers to another event or instance ({token})")
        match = _FIELD.fullmatch(token)
        if match is None:
            raise NotUnderstood(f"uses the smart variable {token}")
        column = box_column(match[1], match[2]) if match[2] else match[1]
        self.columns.add(column)
        return ("field", column)


@dataclass
class Branching:
    """The conditions of a table's columns, evaluated on its rows; none may refer to itself (`in_circles`).

    A question that was not asked because an earlier answer rules it out is told from one whose earlier
    question was itself left unanswered.
    """

    frame: pd.DataFrame
    items: Mapping[str, Item]
    conditions: Mapping[str, Condition]
    _values: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _truths: dict[str, Truth | NotUnderstood] = field(default_factory=dict)

    def truths(self) -> dict[str, Truth | NotUnderstood]:
        """Return whether each question was asked, for each row, or why that cannot be evaluated."""
        known: dict[Condition, Truth | NotUnderstood] = {}  # many questions have the same condition
        for name in TopologicalSorter(_uses(self.conditions)).static_order():
            condition = self.conditions[name]
            if condition not in known:
                try:
                    known[condition] = self._condition(condition.tree)
                except NotUnderstood as error:
                    known[condition] = error
            self._truths[name] = known[condition]
        return self._truths

    def _condition(self, tree: tuple[object, ...]) -> Truth:
        kind, *parts = tree
        if kind == "not":
            inner = self._condition(_tree(parts[0]))
            return Truth(~inner.holds, inner.sure)
        if kind == "value":
            raise NotUnderstood("has a field without a comparison")
        if kind == "compare":
            return self._compared(str(parts[0]), _tree(parts[1]), _tree(parts[2]))
        decides = kind == "or"  # one part that holds decides "or", one that does not decides "and"
        every = [self._condition(_tree(part)) for part in parts]
        holds = np.any([each.holds for each in every], axis=0)
        if kind == "and":
            holds = np.all([each.holds for each in every], axis=0)
        decided = np.any([each.sure & (each.holds == decides) for each in every], axis=0)
        return Truth(holds, decided | np.all([each.sure for each in every], axis=0))

    def _compared(self, sign: str, left: tuple[object, ...], right: tuple[object, ...]) -> Truth:
        (one, one_known), (other, other_known) = self._operand(left), self._operand(right)
        one_number, other_number = _numbers(one), _numbers(other)
        both = ~np.isnan(one_number) & ~np.isnan(other_number)
        holds = both & _COMPARE[sign](one_number, other_number)
        if sign in ("=", "==", "<>", "!="):
            holds = np.where(both, holds, _COMPARE[sign](one, other).astype(bool))
        return Truth(holds, one_known & other_known)

    def _operand(self, tree: tuple[object, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Texts of an operand, and where they are known."""
        kind, *parts = tree
        n = len(self.frame)
        if kind == "text":
            return np.full(n, str(parts[0]).strip(), dtype=object), np.full(n, True)
        if kind == "field":
            return self._column(str(parts[0]))
        one, one_known = self._operand(_tree(parts[1]))
        other, other_known = self._operand(_tree(parts[2]))
        with np.errstate(all="ignore"):
            total = _ADD[str(parts[0])](_numbers(one), _numbers(other))
        texts = np.array([number(value) if np.isfinite(value) else "" for value in total], dtype=object)
        return texts, one_known & other_known

    def _column(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self.frame.columns:
            raise NotUnderstood(f"refers to {name!r}, which is not a column")
        if name not in self._values:
            self._values[name] = self._texts(name)
        texts, answered = self._values[name]
        asked = self._truths.get(name)
        return texts, answered | (~asked.holds & asked.sure) if isinstance(asked, Truth) else answered

    def _texts(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A column's cells as texts, answers in words as their values, and where there is an answer."""
        item, cells = self.items.get(name, Item(name)), self.frame[name]
        words = {plain(text): number(value) for value, text in item.labels if text}
        silent = {"", *(number(code) for code in item.missing_codes)}
        places, different = pd.factorize(cells)  # writes each different cell once; -1 are empty ones
        texts = [number(cell).strip() for cell in different.tolist()]
        texts = [words.get(plain(text), text) if _word(text) else text for text in texts] + [""]
        answered = np.array([text not in silent for text in texts])
        return np.array(texts, dtype=object)[places], answered[places]


def _tree(part: object) -> tuple[object, ...]:
    if not isinstance(part, tuple):
        raise TypeError(part)
    return part


def _word(text: str) -> bool:
    return bool(text) and bool(pd.isna(pd.to_numeric(text, errors="coerce")))


def _numbers(texts: np.ndarray) -> np.ndarray:
    return pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=float)
