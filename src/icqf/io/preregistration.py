"""A preregistered plan: its questions, their answers, and a text file frozen by its own checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from icqf import __version__
from icqf.data.questionnaire import Item, match_names
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.io.codebook import entry_of, item_of
from icqf.io.readers.descriptions import read_toml

FORMAT = 1
_SUM = re.compile(r'^sha256 = "([0-9a-f]{64})"\n', re.MULTILINE)
_HEAD = """\
# A preregistered analysis plan, frozen by icqf. To use it: icqf fit ANSWERS --plan THIS_FILE
# Do not edit it: the checksum belongs to its text, and icqf refuses an edited plan.
# The same checksum, without icqf: grep -v '^sha256 = ' THIS_FILE | sha256sum
"""
_QUESTION = re.compile(r"^# ([^:\n]+?)( \*)?: (?:[^\n]+\n#)*[^\n]*\n(\w+) = '''$", re.MULTILINE)


class Question(NamedTuple):
    """A question of OSF's form, or a part of one: its page and heading there, and whether it is required."""

    key: str
    page: str
    heading: str
    needed: bool


def template() -> str:
    """Return the questions of "OSF Preregistration", version 3, as a TOML file to fill in.

    Examples
    --------
    >>> from icqf.io.preregistration import template
    >>> "hypotheses = \'\'\'" in template()
    True
    """
    return (files("icqf.io") / "preregistration_questions.toml").read_text(encoding="utf-8")


def _questions() -> tuple[Question, ...]:
    """The questions of the template, in its order; two may share a heading."""
    pages = re.split(r"^# --- (.+) ---$", template(), flags=re.MULTILINE)[1:]
    return tuple(
        Question(key, page, heading, bool(star))
        for page, text in zip(pages[::2], pages[1::2], strict=True)
        for heading, star, key in _QUESTION.findall(text)
    )


QUESTIONS = _questions()
EXISTING_DATA = tuple(re.findall(r"^#   (Registration .+)$", template(), re.MULTILINE))
CREATION, ANALYSED = EXISTING_DATA[0], EXISTING_DATA[-1]
_CHECKED = ("participants", "n_factors", "same_factor", "replication")


def read_decisions(path: Path, items: Sequence[Item]) -> tuple[dict[str, str], dict[str, Any]]:
    """Read the filled-in template: answers to the questions, and what is expected."""
    content = read_toml(path)
    expected = content.pop("expected", {})
    return _checked_answers(path.name, content), _checked_expectations(path.name, expected, items)


def _checked_answers(source: str, given: Mapping[str, Any]) -> dict[str, str]:
    """The answers to the questions, in their order; refused where one is unknown or lacking."""
    keys = [question.key for question in QUESTIONS]
    for name, value in given.items():
        if name not in keys:
            hint = did_you_mean(name, keys)
            raise InputError(f"{source}: {name!r} is not a question of the registration.{hint}")
        if not isinstance(value, str):
            raise InputError(f"{source}: the answer to {name!r} must be a text in quotation marks.")
        if re.search("^sha256 = ", _unix(value), re.MULTILINE):
            raise InputError(
                f"{source}: a line of the answer to {name!r} begins with 'sha256 = ', as only the plan's "
                "checksum does. Begin it with another word."
            )
    answers = {name: given.get(name, "").strip() for name in keys}
    empty = [question.key for question in QUESTIONS if question.needed and not answers[question.key]]
    if empty:
        raise InputError(
            f"{source}: {counted(len(empty), 'question')} without an answer: {listed(empty, most=20)}.",
            code="unanswered",
            remedy="Answer each, if only by saying that nothing is planned.",
        )
    known = [each for each in EXISTING_DATA if each.lower() == answers["existing_data"].rstrip(".").lower()]
    if not known:
        raise InputError(
            f"{source}: existing_data must be one of the five sentences of OSF's form.",
            code="existing-data",
            remedy=f"Copy one of these: {'; '.join(EXISTING_DATA)}.",
        )
    answers["existing_data"] = known[0]
    return {name: text for name, text in answers.items() if text}


def _checked_expectations(source: str, given: Any, items: Sequence[Item]) -> dict[str, Any]:
    """What is expected of the results, with the names of items for patterns."""
    if not isinstance(given, dict):
        raise InputError(f"{source}: [expected] must be a table with {', '.join(_CHECKED)}.")
    expected = dict(given)
    for name, value in given.items():
        if name not in _CHECKED:
            hint = did_you_mean(name, _CHECKED)
            raise InputError(f"{source}: {name!r} is not something that is checked.{hint}")
        try:
            if name == "same_factor":
                expected[name] = _groups(value, [item.name for item in items], source)
            else:
                (_share if name == "replication" else span)(value)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{source}: {name} under [expected] must be {error}, not {value!r}.") from None
    return expected


def _groups(value: Any, names: list[str], source: str) -> list[list[str]]:
    """Groups of items, by name or pattern."""
    lists = isinstance(value, list) and all(isinstance(group, list) and group for group in value)
    if not (lists and value and all(isinstance(name, str) for group in value for name in group)):
        raise ValueError('lists of items, as in [["A1", "A2"], ["N1", "N2"]]')
    groups = [match_names(group, names, source) for group in value]
    if any(len(group) < 2 for group in groups):
        raise ValueError("lists of two items or more")
    if len({name for group in groups for name in group}) < sum(map(len, groups)):
        raise ValueError("lists that have no item in common")
    return groups


def _share(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("a number above 0, and at most 1")


def span(value: Any) -> tuple[int, int]:
    """Return the ends of a number or a range such as "300-350"."""
    ends = str(value).replace("–", "-").split("-")
    if isinstance(value, bool) or len(ends) > 2 or not all(end.strip().isdecimal() for end in ends):
        raise ValueError('a whole number or a range such as "300-350"')
    low, high = int(ends[0]), int(ends[-1])
    if not 1 <= low <= high:
        raise ValueError("a number above 0, or a range with the lower end first")
    return low, high


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
        return f"{date.day} {date:%B %Y}"

    @property
    def seconds(self) -> float:
        """The date as seconds since 1970, to compare with those of files."""
        return datetime.fromisoformat(self.made).timestamp()

    @property
    def sha256(self) -> str:
        """The checksum of its text without the line that states it; ends of lines may have been changed."""
        return hashlib.sha256(_SUM.sub("", _plain(self.text)).encode()).hexdigest()


def _plain(text: str) -> str:
    """Return a text with plain ends of lines, one of them at its end."""
    return _unix(text).rstrip("\n") + "\n"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def frozen(plan: Preregistration, comments: Mapping[str, str]) -> Preregistration:
    """Return the plan with its text, in which comments explain the options by their names."""
    about = {"preregistration": FORMAT, "icqf": plan.version, "made": plan.made, "codebook": plan.codebook}
    decisions = {name: _unix(text) for name, text in plan.decisions.items()}
    parts = (
        *(tomli_w.dumps(about), "\n", tomli_w.dumps({"decisions": decisions}, multiline_strings=True)),
        *("\n[expected]\n", *(f"{name} = {_inline(value)}\n" for name, value in plan.expected.items())),
        *("\n[options]\n", *(f"# {comments[k]}\n{k} = {_inline(v)}\n" for k, v in plan.options.items())),
        *(f"\n[[item]]\n{tomli_w.dumps(entry_of(item))}" for item in plan.items),
    )
    rest = _plain("".join(parts))
    plan = replace(plan, decisions=decisions, text=_HEAD + rest)
    return replace(plan, text=f'{_HEAD}sha256 = "{plan.sha256}"\n{rest}')


def _inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_inline(part)}' for key, part in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def read_preregistration(path: str | os.PathLike[str]) -> Preregistration:
    """Read a plan that ``icqf preregister`` wrote; one that was edited is refused.

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
        text = _plain(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _not_a_plan(path, "it is not text in UTF-8") from None
    plan = Preregistration({}, {}, {}, (), "", "", source=path.name, text=text)
    stated, found = _SUM.findall(text), plan.sha256
    if not stated:
        raise _not_a_plan(path, "it states no checksum")
    if stated != [found]:
        differs = f"it states the checksum {stated[0][:12]}…, but its text has {found[:12]}…"
        raise InputError(
            f"{path.name}: the plan was changed after it was frozen: {differs}."
            if len(stated) == 1
            else f"{path.name}: the plan was changed after it was frozen: it states the checksum twice.",
            code="altered-plan",
            remedy="Use the file that was registered; what is done differently is given as options of the "
            "fit, which lists it as a deviation.",
        )
    try:
        content = tomllib.loads(text)
        if content["preregistration"] != FORMAT:
            raise InputError(
                f"{path.name}: the plan was made with icqf {content['icqf']}, in a format that icqf "
                f"{__version__} does not know.",
                code="newer-plan",
                remedy="Install the version that the plan names.",
            )
        if content.get("sha256") != found:
            raise ValueError("its checksum is not at its top")
        entries = enumerate(content["item"], 1)
        items = tuple(item_of(entry, f"{path.name}: item {i}") for i, entry in entries)
        plan = replace(
            plan,
            decisions=_checked_answers(path.name, content["decisions"]),
            expected=_checked_expectations(path.name, content["expected"], items),
            options=dict(content["options"]),
            items=items,
            codebook=str(content["codebook"]),
            made=str(content["made"]),
            version=str(content["icqf"]),
        )
        plan.seconds  # noqa: B018  fails where it is not a date
    except InputError:
        raise
    except KeyError as error:
        raise _not_a_plan(path, f"it has no {error.args[0]!r}") from None
    except (TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise _not_a_plan(path, str(error)) from None
    return plan


def _not_a_plan(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name}: this is not a plan that icqf preregister froze ({why}).",
        code="not-a-plan",
        remedy="Give the .toml file that the command wrote.",
    )
