"""Messages to users: errors and warnings with a code and fields, and helpers that word them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

LONGEST_WORD = 300  # characters; a path may be that long
LONGEST_MESSAGE = 2000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD},}}")
_MARKED = re.compile(r"\{(\w*)(=?)\}")


@dataclass(frozen=True)
class Setting:
    """A parameter named in a remedy, with the value to give it; its text is Python."""

    name: str
    value: Any = None
    assigned: bool = False  # False: only named, without a value

    def __str__(self) -> str:
        return f"{self.name}={_in_python(self.value)}" if self.assigned else self.name


def _in_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr(dict(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_python, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)


class Advice(str):
    """A remedy with placeholders for settings, which Python, the command line and the app write differently.

    As a string it is worded for Python. `typed` is the remedy on the command line, where it differs.
    """

    parts: tuple[str | Setting, ...]
    typed: str | Advice
    _arguments: tuple[tuple[str, ...], dict[str, Any]]

    def __new__(cls, template: str, *texts: str, typed: str | Advice = "", **values: Any) -> Self:
        inserted = iter(texts)
        pieces = _MARKED.split(template)
        parts: list[str | Setting] = [pieces[0]]
        for name, assigned, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            parts += [Setting(name, values.get(name), bool(assigned)) if name else next(inserted), text]
        self = super().__new__(cls, "".join(map(str, parts)))
        self.parts, self.typed = tuple(parts), typed
        self._arguments = (template, *texts), {**values, "typed": typed}
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        return self._arguments

    def written(self, write: Callable[[Setting], str], *, typed: bool = False) -> str:
        """Return the sentence with its settings worded by `write`; `typed` for the command line."""
        if typed and self.typed:
            return self.typed.written(write) if isinstance(self.typed, Advice) else self.typed
        return "".join(write(part) if isinstance(part, Setting) else part for part in self.parts)


class Note(str):
    """A sentence about what was done to the data, with a code for programs.

    Examples
    --------
    >>> has_note([Note("no-ids", "Participants are numbered.")], "no-ids")
    True
    """

    code: str

    def __new__(cls, code: str, text: str) -> Self:
        self = super().__new__(cls, text)
        self.code = code
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.code, str(self)


def is_note(note: str, *codes: str) -> bool:
    """Whether a note is of one of these kinds."""
    return getattr(note, "code", None) in codes


def has_note(notes: Iterable[str], *codes: str) -> bool:
    """Whether one of the notes is of one of these kinds."""
    return any(is_note(note, *codes) for note in notes)


def codebook_command(source: str) -> str:
    """Return the command that drafts a codebook for a file."""
    return shlex.join(["icqf", "codebook", source, "--out", "items.csv"])


def sentence(notice: Any, write: Callable[[Setting], str] = str, *, typed: bool = False) -> str:
    """Return the text of an error, warning or finding, with its settings worded by `write`.

    A parameter at the start of the message counts as a setting, unless a file name precedes it.
    """
    if not hasattr(notice, "message"):
        return readable(str(notice))
    message, remedy, fields = notice.message, notice.remedy, notice.fields
    name, complaint = fields.get("name", ""), fields.get("complaint", "")
    if complaint and message == readable(f"{name}{complaint}") and write is not str:
        message = f"{write(Setting(name))} {complaint.lstrip('= ')}"
    advice = remedy.written(write, typed=typed) if isinstance(remedy, Advice) else remedy
    return readable(f"{message} {advice}".rstrip())


class Worded(Exception):
    """A message in two parts, what was found and what to do about it, with the same as data.

    Parameters
    ----------
    message : str
        What was found, and where.
    code : str
        The kind of finding.
    remedy : str or Advice
        What to do about it; an `Advice` where it names parameters, which other interfaces call differently.
    **fields
        The contents of the message as data: item, value, participant and so on.
    """

    def __init__(self, message: str, *, code: str = "", remedy: str = "", **fields: Any) -> None:
        message, text = readable(message), readable(str(remedy))
        super().__init__(f"{message} {text}" if text else message)
        remedy = remedy if isinstance(remedy, Advice) else text
        self.message, self.code, self.remedy, self.fields = message, code, remedy, fields

    def at(self, place: str, **fields: Any) -> Self:
        """Return the same message preceded by a place: a file, or a row of one."""
        more = self.fields | fields
        return type(self)(f"{place}: {self.message}", code=self.code, remedy=self.remedy, **more)


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

    Where the message names participants, the field `anonymous` is the same message without their ids and
    values, for files that may be shared.
    """


def did_you_mean(name: str, choices: Iterable[object]) -> str:
    """Return ``" Did you mean 'age'?"`` for the nearest choice, or an empty string."""
    lower = {str(choice).lower(): str(choice) for choice in choices}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def counted(n: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def shown_share(share: float) -> str:
    """A share as a percentage with one digit."""
    return f"{round(share, 3) + 0.0:.1%}"  # no "-0.0%"


def shown_p(p: float, level: float = 0.05, *, equals: str = "") -> str:
    """A p-value to three decimals, or to as many as show on which side of the level it lies (0.0504)."""
    if p < 0.001:
        return "< 0.001"
    digits = 3
    while digits < 9 and abs(round(p, digits) - level) < 1e-9 < abs(p - level):
        digits += 1
    return f"{equals}{p:.{digits}f}"


def short(name: str, *, most: int = 48) -> str:
    """Shorten a long name in the middle, since its end distinguishes it from others."""
    head = most // 2 - 3
    return name if len(name) <= most else f"{name[:head]}…{name[head + 1 - most :]}"


def readable(text: str) -> str:
    """Shorten very long words, and a very long text, in the middle; names from files may have any length."""
    if len(text) <= LONGEST_WORD:
        return text
    text = _LONG_WORD.sub(lambda word: short(word[0], most=100), short(text, most=20 * LONGEST_MESSAGE))
    return short(text, most=LONGEST_MESSAGE)


def shortened(text: str, most: int) -> str:
    """A text cut at the end of a word, with an ellipsis where it was cut."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > most // 2 else cut).rstrip(" ,;:") + "…"


def listed(names: Iterable[object], *, most: int = 5) -> str:
    """Join names for a sentence, cutting a long list short."""
    texts = [repr(short(str(name))) for name in names]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")


def joined(parts: Sequence[str]) -> str:
    """Texts as a list in a sentence.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def and_more(count: int) -> str:
    """Return ``", and 3 more"`` for 4 cases of which the first is named, or an empty string."""
    return f", and {count - 1} more" if count > 1 else ""


def concerns_users(category: type[Warning]) -> bool:
    """Return whether a warning is about a study's data rather than about code."""
    return issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning)
