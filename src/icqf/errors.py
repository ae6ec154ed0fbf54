"""What is said to users: errors and warnings with a code and fields, and the small words of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Self

LONGEST_WORD = 300  # characters; a path may be that long
LONGEST_MESSAGE = 2000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD},}}")


class Worded(Exception):
    """A message in two parts, what was found and what to do about it, which are kept as data as well.

    Parameters
    ----------
    message : str
        What was found, and where.
    code : str
        The kind of finding. A front end other than Python words the remedy from `code` and `fields`, so that
        the command line names its own options.
    remedy : str
        What to do about it, in the words of Python.
    **fields
        What the message says, as data: item, value, participant and the like.
    """

    def __init__(self, message: str, *, code: str = "", remedy: str = "", **fields: Any) -> None:
        message, remedy = readable(message), readable(remedy)
        super().__init__(f"{message} {remedy}" if remedy else message)
        self.message, self.code, self.remedy, self.fields = message, code, remedy, fields

    def at(self, place: str) -> Self:
        """Return the same with the place in front of its message: a file, or a row of one."""
        return type(self)(f"{place}: {self.message}", code=self.code, remedy=self.remedy, **self.fields)


class InputError(Worded, ValueError):
    """A file, table or option that cannot be used; the message says where, what was found and what to do.

    Examples
    --------
    >>> from icqf.errors import InputError
    >>> remedy = "Correct the row."
    >>> raise InputError("answers.csv: row 3 has 5 cells, the header 4.", code="ragged", remedy=remedy, row=3)
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: answers.csv: row 3 has 5 cells, the header 4. Correct the row.
    """


class InputWarning(Worded, UserWarning):
    """Something about the data or options of a fit that its user should know.

    Where the message names participants, the field `anonymous` says the same without ids or values of theirs,
    for files that may be shared.
    """


def did_you_mean(name: str, choices: Iterable[object]) -> str:
    """Return ``" Did you mean 'age'?"`` for the nearest choice, or an empty string.

    Examples
    --------
    >>> did_you_mean("agee", ["sex", "age"])
    " Did you mean 'age'?"
    >>> did_you_mean("income", ["sex", "age"])
    ''
    """
    lower = {str(choice).lower(): str(choice) for choice in choices}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def counted(n: int, what: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "item"), counted(2, "item")
    ('1 item', '2 items')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def shown_share(share: float) -> str:
    """A share as a percentage with one digit.

    Examples
    --------
    >>> shown_share(0.1234), shown_share(-1e-17)
    ('12.3%', '0.0%')
    """
    return f"{round(share, 3) + 0.0:.1%}"  # no "-0.0%"


def shown_p(p: float, level: float = 0.05, *, equals: str = "") -> str:
    """A p-value to three decimals, or to as many as show on which side of the level it lies.

    What is printed is then what is judged: 0.0504, which is above 0.05, does not read 0.050.

    Examples
    --------
    >>> shown_p(0.0421), shown_p(0.0504), shown_p(0.05), shown_p(0.0496), shown_p(0.0002)
    ('0.042', '0.0504', '0.050', '0.0496', '< 0.001')
    >>> f"p {shown_p(0.0421, equals='= ')}", f"p {shown_p(0.0002, equals='= ')}"
    ('p = 0.042', 'p < 0.001')
    """
    if p < 0.001:
        return "< 0.001"
    digits = 3
    while digits < 9 and abs(round(p, digits) - level) < 1e-9 < abs(p - level):
        digits += 1
    return f"{equals}{p:.{digits}f}"


def short(name: str, *, most: int = 48) -> str:
    """Return a name that is a whole question with its middle left out, as its end tells it from others.

    Examples
    --------
    >>> short("q1"), short("In the last two weeks, how often were you bothered by [Little interest]")
    ('q1', 'In the last two weeks…hered by [Little interest]')
    """
    head = most // 2 - 3
    return name if len(name) <= most else f"{name[:head]}…{name[head + 1 - most :]}"


def readable(text: str) -> str:
    """A sentence in which words that nobody would read lack their middle, as does the whole where it is long.

    Names and values come from files, where they may be of any length.

    Examples
    --------
    >>> len(readable("The column " + "x" * 10**6 + " is empty.")) < 200
    True
    """
    if len(text) <= LONGEST_WORD:
        return text
    text = _LONG_WORD.sub(lambda word: short(word[0], most=100), short(text, most=20 * LONGEST_MESSAGE))
    return short(text, most=LONGEST_MESSAGE)


def shortened(text: str, most: int) -> str:
    """A text cut at the end of a word, with an ellipsis where it was cut.

    Examples
    --------
    >>> shortened("Lies awake thinking about tomorrow", 20)
    'Lies awake thinking…'
    """
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > most // 2 else cut).rstrip(" ,;:") + "…"


def listed(names: Iterable[object], *, most: int = 5) -> str:
    """Join names for a sentence, cutting a long list short.

    Examples
    --------
    >>> listed(["q1", "q2", "q3"], most=2)
    "'q1', 'q2' and 1 more"
    """
    texts = [repr(short(str(name))) for name in names]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")


def concerns_users(category: type[Warning]) -> bool:
    """Return whether a warning is about a study's data rather than about code.

    Examples
    --------
    >>> concerns_users(UserWarning), concerns_users(DeprecationWarning)
    (True, False)
    """
    return issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning)
