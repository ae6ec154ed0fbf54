"""Branching logic: which questions were asked, by the conditions in a dictionary.

The language is REDCap's (``[smokes] = '1' and [drugs(3)] <> ''``), or that of NDA and ABCD, in which names
have no brackets (``smokes == 1 && age > 12``). A condition becomes a syntax tree of Python, of which only
logic, comparisons and arithmetic are evaluated here; it is never run as code.
"""

from __future__ import annotations

import ast
import html
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from icqf.data.questionnaire import Item
from icqf.errors import shortened
from icqf.screening.answer_words import plain
from icqf.screening.missing_codes import number

LONGEST = 20_000  # characters of a condition
DEEPEST = 60  # brackets within brackets
_TOKEN = re.compile(
    r"\s*(?:(?P<field>(?:\[[^\[\]]*\])+)|(?P<value>'[^']*'|\"[^\"]*\"|\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<sign><>|!=|<=|>=|==|&&|\|\||[=<>!(),+*/-]|(?:and|or|not)\b)"
    r"|(?P<function>[A-Za-z_]\w*(?=\s*\())|(?P<word>[A-Za-z_]\w*))",
    re.IGNORECASE,
)
_SIGNS = {"=": "==", "<>": "!=", "&&": "and", "||": "or", "!": "not"}  # in Python
_FIELD = re.compile(r"\[\s*(\w+)\s*(?:\(\s*(-?\w+)\s*\))?\s*\]")
_EVENT = "redcap_event_name"  # the column that the smart variable [event-name] reads
_UNIQUE_EVENT = r"\w+_arm_\d+\w?"
_COMMENT = re.compile(r"^\s*(//|#).*$", re.MULTILINE)
_QUOTES = str.maketrans("‘’“”\u00a0\n\r\t", "''\"\"    ")
_COMPARE: dict[type[ast.cmpop], Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_ADD: dict[type[ast.operator] | type[ast.unaryop], Callable[..., np.ndarray]] = {
    **{ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide},
    **{ast.UAdd: np.positive, ast.USub: np.negative},
}
_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "sum": lambda *cells: np.nansum(cells, axis=0),
    "mean": lambda *cells: np.nanmean(cells, axis=0),
    "min": lambda *cells: np.nanmin(cells, axis=0),
    "max": lambda *cells: np.nanmax(cells, axis=0),
}
_INCOMPLETE = "is not a complete condition"


class NotUnderstood(ValueError):
    """The condition uses something that cannot be evaluated; the message completes "because it …"."""


@dataclass(frozen=True)
class Condition:
    """A parsed condition: the columns it reads, and its expression in Python, in which these begin with _."""

    columns: frozenset[str]
    expression: str
    tree: ast.expr = field(compare=False)


@dataclass(frozen=True, eq=False)
class Truth:
    """For each row, whether a condition holds, and whether no further answer could change that."""

    holds: np.ndarray
    sure: np.ndarray


def parse(condition: str, names: Mapping[str, str] | None = None) -> Condition:
    """Parse a condition; where no name is in brackets, names without brackets are columns.

    `names` are the columns by the names that conditions may have for them, in lower case.
    """
    names = names or {}
    if len(condition) > LONGEST:
        raise NotUnderstood(f"has {len(condition)} characters")
    text = html.unescape(_COMMENT.sub("", condition)).translate(_QUOTES).strip()
    bare = "[" not in text
    words: list[str] = []
    columns: set[str] = set()
    place = depth = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstood(f"has {text[place : place + 20].strip()!r}, which is not part of it")
        kind, place = str(match.lastgroup), match.end()
        word = match[kind]
        if kind == "field" or (kind == "word" and bare):
            column = _column(word) if kind == "field" else word
            column = names.get(column.casefold(), column)
            columns.add(column)
            word = f"_{column}"
        elif kind == "word":
            raise NotUnderstood(f"has {word!r} where a field or a value should be")
        elif kind == "value":
            word = f"({word.strip(chr(39) + chr(34))!r})"  # two in a row are not one text
        elif kind == "function" and word.lower() not in _FUNCTIONS:
            raise NotUnderstood(f"uses the function {word}()")
        depth += (word == "(") - (word == ")")
        if depth > DEEPEST:
            raise NotUnderstood(f"has more than {DEEPEST} brackets within one another")
        words.append(word if word[0] in "_('" else _SIGNS.get(word, word.lower()))
    if depth > 0:
        raise NotUnderstood("has a bracket that is not closed")
    expression = " ".join(words)
    try:
        return Condition(frozenset(columns), expression, ast.parse(expression, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise NotUnderstood(_INCOMPLETE) from None


def _column(token: str) -> str:
    """The column of a field in brackets."""
    if "][" in token:
        raise NotUnderstood(f"refers to another event or instance ({shortened(token, 60)})")
    if token[1:-1].strip().lower() == "event-name":
        return _EVENT
    match = _FIELD.fullmatch(token)
    if match is None:
        raise NotUnderstood(f"uses the smart variable {shortened(token, 60)}")
    return box_column(match[1], match[2]) if match[2] else match[1]


def in_circles(conditions: Mapping[str, Condition]) -> set[str]:
    """Return the columns whose conditions refer to themselves, directly or by way of others."""
    place = {name: at for at, name in enumerate(conditions)}
    pairs = [(place[name], place[other]) for name, used in _uses(conditions).items() for other in used]
    if not pairs:
        return set()
    graph = coo_array((np.ones(len(pairs)), np.transpose(pairs)), shape=(len(place), len(place)))
    group = connected_components(graph, connection="strong")[1]
    several = np.bincount(group)[group] > 1
    itself = {at for at, other in pairs if at == other}
    return {name for name, at in place.items() if several[at] or at in itself}


def _uses(conditions: Mapping[str, Condition]) -> dict[str, set[str]]:
    """The conditional columns that each condition refers to."""
    return {name: {*condition.columns} & conditions.keys() for name, condition in conditions.items()}


def box_column(name: str, code: str) -> str:
    """Return the column of one box of a checkbox question."""
    return f"{name}___{code.strip().replace('-', '_').lower()}"


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
                except RecursionError:
                    known[condition] = NotUnderstood("has too many parts within one another")
            self._truths[name] = known[condition]
        return self._truths

    def _condition(self, node: ast.expr) -> Truth:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                truth = self._condition(inner)
                return Truth(~truth.holds, truth.sure)
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                return self._compared(type(sign), left, right)
            case ast.BoolOp(op=op, values=parts):
                every = [self._condition(part) for part in parts]
                holds, sure = (np.stack([getattr(t, at) for t in every]) for at in ("holds", "sure"))
                decides = isinstance(op, ast.Or)  # one part that holds decides "or"; one that does not, "and"
                decided = (sure & (holds == decides)).any(axis=0)
                true = (np.any if decides else np.all)(holds, axis=0)
                return Truth(np.asarray(true), decided | sure.all(axis=0))
            case ast.Name() | ast.Constant():
                raise NotUnderstood("has a field without a comparison")
        raise NotUnderstood(_INCOMPLETE)

    def _compared(self, sign: type[ast.cmpop], left: ast.expr, right: ast.expr) -> Truth:
        (one, one_known), (other, other_known) = self._operand(left), self._operand(right)
        one_number, other_number = _numbers(one), _numbers(other)
        both = ~np.isnan(one_number) & ~np.isnan(other_number)
        holds = both & _COMPARE[sign](one_number, other_number)
        if sign in (ast.Eq, ast.NotEq):
            holds = np.where(both, holds, _COMPARE[sign](one, other).astype(bool))
        return Truth(holds, one_known & other_known)

    def _operand(self, node: ast.expr) -> tuple[np.ndarray, np.ndarray]:
        """Texts of an operand, and where they are known."""
        combine: Callable[..., np.ndarray] | None = None
        parts: list[ast.expr] = []
        match node:
            case ast.Constant(value=text):
                return np.full(len(self.frame), str(text).strip(), dtype=object), np.full(
                    len(self.frame), True
                )
            case ast.Name(id=name) if name.startswith("_"):
                return self._column(name[1:])
            case ast.BinOp(left=left, op=op, right=right):
                combine, parts = _ADD.get(type(op)), [left, right]
            case ast.UnaryOp(op=sign, operand=inner):
                combine, parts = _ADD.get(type(sign)), [inner]
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as parts):
                combine = _FUNCTIONS.get(name)
        if combine is None:
            raise NotUnderstood(_INCOMPLETE)
        texts, known = zip(*map(self._operand, parts), strict=True)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nothing but empty cells
            total = combine(*map(_numbers, texts))
        words = np.array([number(value) if np.isfinite(value) else "" for value in total], dtype=object)
        return words, np.all(known, axis=0)

    def _column(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self.frame.columns:
            raise NotUnderstood(f"refers to {name!r}, which is not a column")
        if name == _EVENT and not self.frame[name].dropna().astype(str).str.fullmatch(_UNIQUE_EVENT).all():
            raise NotUnderstood("refers to events by names that the table does not use")
        texts, answered = self._texts(name)
        asked = self._truths.get(name)
        return texts, answered | (~asked.holds & asked.sure) if isinstance(asked, Truth) else answered

    def answered(self, name: str) -> np.ndarray:
        """Where a column holds an answer, neither nothing nor a missing code."""
        return self._texts(name)[1]

    def _texts(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A column's cells as texts, answers in words as their values, and where there is an answer."""
        if name in self._values:
            return self._values[name]
        item, cells = self.items.get(name, Item(name)), self.frame[name]
        words = {plain(text): number(value) for value, text in item.labels if text}
        silent = {"", *(number(code) for code in item.missing_codes)}
        places, different = pd.factorize(cells)  # writes each different cell once; -1 are empty ones
        texts = [number(cell).strip() for cell in different.tolist()]
        texts = [words.get(plain(text), text) if _word(text) else text for text in texts] + [""]
        answered = np.array([text not in silent for text in texts])
        self._values[name] = np.array(texts, dtype=object)[places], answered[places]
        return self._values[name]


def _word(text: str) -> bool:
    return bool(text) and bool(pd.isna(pd.to_numeric(text, errors="coerce")))


def _numbers(texts: np.ndarray) -> np.ndarray:
    return pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=float)
