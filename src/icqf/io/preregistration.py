"""A preregistered plan: one text file, frozen by a checksum of its own text."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from icqf import __version__
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.codebook import entry_of, item_of

FORMAT = 1
_SUM = re.compile(r'^sha256 = "([0-9a-f]{64})"$', re.MULTILINE)
_HEAD = """\
# A preregistered analysis plan, frozen by icqf. To use it: icqf fit ANSWERS --plan THIS_FILE
# Do not edit it: the checksum belongs to its text, and icqf refuses an edited plan.
# The same checksum, without icqf: grep -v '^sha256 = ' THIS_FILE | sha256sum
"""


@dataclass(frozen=True)
class Preregistration:
    """A plan that was frozen before the data were seen.

    Parameters
    ----------
    decisions : mapping of str to str
        Answers to the questions of the registration.
    expected : mapping
        What is expected of the results, as far as a program can check it.
    options : mapping
        The planned options of ``icqf fit``, with all defaults; an empty text or list stands for none.
    items : tuple of Item
        The content of the codebook.
    codebook : str
        Name of its file.
    made : str
        Date and time by the clock of the computer that froze the plan.
    version : str
        The version of icqf.

    Examples
    --------
    >>> from icqf.io import Preregistration
    >>> Preregistration({"title": "Moods"}, {}, {}, (), "items.csv", "2026-11-02T09:30:00+00:00").day
    '2 November 2026'
    """

    decisions: Mapping[str, str]
    expected: Mapping[str, Any]
    options: Mapping[str, Any]
    items: tuple[Item, ...]
    codebook: str
    made: str
    version: str = __version__
    source: str = ""  # name of its file
    text: str = ""

    @property
    def day(self) -> str:
        """The date in words."""
        date = datetime.fromisoformat(self.made)
        return f"{date.day} {_MONTHS[date.month - 1]} {date.year}"

    @property
    def sha256(self) -> str:
        """The checksum of its text."""
        return checksum(self.text)


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)


def checksum(text: str) -> str:
    """Return the SHA-256 of a plan's text, without the line that states it.

    The ends of lines may have been changed, as by git or an editor on Windows.
    """
    lines = [line for line in _plain(text).split("\n") if not _SUM.fullmatch(line)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain(text: str) -> str:
    """Return a text with plain ends of lines, one of them at its end."""
    return _unix(text).rstrip("\n") + "\n"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def frozen(plan: Preregistration, comments: Mapping[str, str]) -> Preregistration:
    """Return the plan with its text, in which comments explain the options by their names."""
    about = {"preregistration": FORMAT, "icqf": plan.version, "made": plan.made, "codebook": plan.codebook}
    options = [f"# {comments[name]}\n{name} = {_inline(value)}\n" for name, value in plan.options.items()]
    expected = [f"{name} = {_inline(value)}\n" for name, value in plan.expected.items()]
    items = [f"\n[[item]]\n{tomli_w.dumps(entry_of(item))}" for item in plan.items]
    decisions = {name: _unix(text) for name, text in plan.decisions.items()}
    told = tomli_w.dumps({"decisions": decisions}, multiline_strings=True)
    parts = (
        *(_HEAD, tomli_w.dumps(about), "\n", told, "\n[expected]\n", *expected),
        *("\n[options]\n", *options, *items),
    )
    text = _plain("".join(parts))
    first, rest = text[: len(_HEAD)], text[len(_HEAD) :]
    text = f'{first}sha256 = "{checksum(text)}"\n{rest}'
    return replace(plan, decisions=decisions, text=text)


def _inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_inline(part)}' for key, part in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def read_preregistration(path: str | os.PathLike[str]) -> Preregistration:
    """Read a plan that ``icqf preregister`` wrote; one that was edited is refused.

    Parameters
    ----------
    path : path

    Raises
    ------
    InputError
        If the file is not a plan, was changed after it was frozen, or was made by a newer version of icqf.

    Examples
    --------
    >>> from icqf.io import read_preregistration
    >>> read_preregistration("nowhere.toml")
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: nowhere.toml: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is {'a folder, not a file' if path.is_dir() else 'no such file'}.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _not_a_plan(path, "it is not text in UTF-8") from None
    text = _plain(text)
    stated, found = _SUM.findall(text), checksum(text)
    if not stated:
        raise _not_a_plan(path, "it states no checksum")
    if stated != [found]:
        raise InputError(
            f"{path.name}: the plan was changed after it was frozen: it states the checksum "
            f"{stated[0][:12]}…, but its text has {found[:12]}….",
            code="altered-plan",
            remedy="Use the file that was registered; what is done differently is given as options of the "
            "fit, which lists it as a deviation.",
        )
    try:
        content = tomllib.loads(text)
        made = content["preregistration"], str(content["icqf"])
    except (tomllib.TOMLDecodeError, KeyError, RecursionError) as error:
        raise _not_a_plan(path, str(error)) from None
    if made[0] != FORMAT:
        raise InputError(
            f"{path.name}: the plan was made with icqf {made[1]}, in a format that icqf {__version__} does "
            "not know.",
            code="newer-plan",
            remedy="Install the version that the plan names.",
        )
    try:
        entries = enumerate(content.get("item", []), 1)
        plan = Preregistration(
            decisions=dict(content["decisions"]),
            expected=dict(content["expected"]),
            options=dict(content["options"]),
            items=tuple(item_of(entry, f"{path.name}: item {i}") for i, entry in entries),
            codebook=str(content["codebook"]),
            made=str(content["made"]),
            version=made[1],
            source=path.name,
            text=text,
        )
        plan.day  # noqa: B018  fails where it is not a date
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise _not_a_plan(path, f"{type(error).__name__}: {error}") from None
    return plan


def _not_a_plan(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name}: this is not a plan that icqf preregister froze ({why}).",
        code="not-a-plan",
        remedy="Give the .toml file that the command wrote.",
    )
