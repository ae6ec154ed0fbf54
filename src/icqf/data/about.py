"""What only people know about a model: its instrument, its sample, its licence and how to cite it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Self

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from icqf.data.settings import Settings, option

LONGEST = 2000  # characters of a text
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_JOINERS = "\u200c\u200d"  # part of words in Persian and Indian scripts
_USUAL_LICENCES = (
    *("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0"),
    *("CC-BY-NC-ND-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "MIT", "Apache-2.0", "BSD-3-Clause"),
)


def plain_words(value: Any) -> str:
    """A text in one line, without control characters and marks that turn the direction of writing."""
    if not isinstance(value, str):
        raise ValueError("a text")
    kept = "".join(
        c
        for c in unicodedata.normalize("NFC", " ".join(value.split()))
        if c in _JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )
    if len(kept) > LONGEST:
        raise ValueError(f"a text of at most {LONGEST} characters")
    return kept


def language_tag(value: Any) -> str:
    """A language as a tag; empty for none."""
    tag = plain_words(value)
    if tag and not _LANGUAGE.fullmatch(tag):
        raise ValueError("a language tag such as en, de or pt-BR")
    first, *others = tag.split("-")
    return "-".join([first.lower(), *others])


def spdx(licence: str) -> str:
    """The SPDX identifier of a licence that is written like one; empty if there is none.

    Examples
    --------
    >>> spdx("cc by 4.0"), spdx("mit"), spdx("free for research")
    ('CC-BY-4.0', 'MIT', '')
    """
    for text in (licence, re.sub(r"[\s-]+", "-", licence.strip())):
        try:
            return str(canonicalize_license_expression(text))
        except InvalidLicenseExpression:
            continue
    return ""


def licence_words(value: Any) -> str:
    """A licence by its SPDX identifier if it has one, else in words."""
    words = plain_words(value)
    return spdx(words) or words


@dataclass(frozen=True)
class About(Settings):
    """What only people know about a model; an empty text is not stated.

    Texts are in one line, without control characters. Licences that have an SPDX identifier are written as
    it. The licence of the model does not cover the instrument, which may have terms of its own.

    Parameters
    ----------
    instrument, instrument_version, instrument_licence : str
        Name, version and terms of use of the questionnaire.
    language : str
        Language of its items, as a tag such as ``"en"`` or ``"pt-BR"``.
    sample : str
        Who was studied, when, where, and how they were recruited.
    licence : str
        Licence of the model file.
    citation : str
        How to cite the model.
    contact : str
        Whom to ask.

    Examples
    --------
    >>> from icqf.data import About
    >>> about = About.of({"instrument": "SDQ", "language": "en", "licence": "cc-by-4.0"})
    >>> about.licence, about.absent
    ('CC-BY-4.0', ('instrument_version', 'instrument_licence', 'sample', 'citation', 'contact'))
    """

    instrument: str = option("", "Name of the questionnaire.", take=plain_words, metavar="TEXT")
    instrument_version: str = option(
        "", "Its version, such as 'parent form, 2001'.", take=plain_words, metavar="TEXT"
    )
    instrument_licence: str = option(
        "",
        "Its terms of use, which the model's licence does not cover.",
        take=licence_words,
        metavar="LICENCE",
    )
    language: str = option(
        "", "Language of the items, such as en, de or pt-BR.", take=language_tag, metavar="TAG"
    )
    sample: str = option(
        "", "Who was studied, when, where, and how they were recruited.", take=plain_words, metavar="TEXT"
    )
    licence: str = option(
        "",
        "Licence of the model; an SPDX identifier such as CC-BY-4.0 is recognised.",
        take=licence_words,
        metavar="LICENCE",
    )
    citation: str = option("", "How to cite the model.", take=plain_words, metavar="TEXT")
    contact: str = option("", "Whom to ask about it.", take=plain_words, metavar="TEXT")

    def __bool__(self) -> bool:
        return any(vars(self).values())

    @property
    def absent(self) -> tuple[str, ...]:
        """The fields that are not stated."""
        return tuple(name for name, text in vars(self).items() if not text)

    def updated(self, other: About) -> Self:
        """These statements, replaced by those that the other one makes."""
        return replace(self, **{name: text for name, text in vars(other).items() if text})

    def changed(self, values: Mapping[str, Any]) -> Self:
        """These statements with other values by name; an empty text takes one back."""
        given = About.of(values)
        return replace(self, **{name: getattr(given, name) for name in values})

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about licences without an SPDX identifier."""
        notes = []
        for name in ("licence", "instrument_licence"):
            text = getattr(self, name)
            if text and not spdx(text):
                usual = {each.lower(): each for each in _USUAL_LICENCES}
                near = get_close_matches(text.lower().replace(" ", "-"), usual, n=1, cutoff=0.7)
                meant = f" Did you mean {usual[near[0]]}?" if near else ""
                what = name.replace("_", " ")
                notes.append(f"The {what} {text!r} has no SPDX identifier and is kept as a text.{meant}")
        return tuple(notes)

    def differences(self, other: About) -> tuple[str, ...]:
        """How instrument, version and language differ from those of new answers, where both are stated."""
        found = []
        for name in ("instrument", "instrument_version", "language"):
            own, its = getattr(self, name), getattr(other, name)
            if own and its and not _same(own, its, tag=name == "language"):
                found.append(f"{name.replace('instrument_', '')} {own!r}, and these answers are of {its!r}")
        return tuple(found)


NOT_STATED = About()


def _same(one: str, other: str, *, tag: bool) -> bool:
    """Whether two texts name the same thing; en and en-GB are one language unless regions differ."""
    one, other = (" ".join(re.findall(r"\w+", text.casefold())) for text in (one, other))
    return one == other or (tag and (one.startswith(f"{other} ") or other.startswith(f"{one} ")))
