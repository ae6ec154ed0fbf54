"""Codebooks of openpsychometrics.org: a text with a line per column, and the answers in sentences between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from icqf.errors import InputError
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.descriptions import plain_text, read_text
from icqf.io.readers.dictionaries import Dictionary, Field, applied
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table
from icqf.screening.answer_words import means_no_answer
from icqf.screening.column_names import named_kind, stem

# As in X1<tab>I worry about things, or "X1" : "I worry about things."
_ENTRY = re.compile(r"\"?(?P<name>[A-Za-z]\w*)(?P<star>\*?)\"?(?:\t+| {2,}|(?<=\") ?: ?(?=\"))(?P<text>\S.*)")
_OPTION = re.compile(r"(?<![\w.])(-?\d+)\s*=\s*")
_MISSED = re.compile(r"missed|none chosen|nothing (chosen|selected)|not (chosen|selected)", re.IGNORECASE)
_INVERTED = re.compile(r"\*.*(invert|revers)|(invert|revers).*\*", re.IGNORECASE)
_FEWEST_ENTRIES, _FEWEST_WORDS, _FEWEST_ALIKE = 3, 5, 3
ANSWER, BESIDE = "A", ("E", "I", "_E", "_I")  # what follows an item's name: answer, time and position


@dataclass(frozen=True)
class _Block:
    """Lines that describe columns one after another, and the sentences before and after them."""

    entries: tuple[tuple[int, str, bool, str], ...]  # line, name, whether it has an asterisk, text
    before: int
    after: int


def is_codebook(path: Path, head: str) -> bool:
    """Whether a text has sentences, and lines with a name, a tab and a description."""
    lines = [line for line in head.splitlines() if line.strip()]
    named = sum("\t" in line and _ENTRY.fullmatch(line.rstrip()) is not None for line in lines)
    sentences = any("\t" not in line and len(line.split()) >= _FEWEST_WORDS for line in lines)
    text = path.suffix.lower() in (".txt", ".md", "") and lines and "\t" not in lines[0]
    return bool(text) and sentences and named >= _FEWEST_ENTRIES


def apply_codebook(table: Table, path: Path) -> Table:
    """Add wordings, ranges, labels, values of missed answers, and the stated direction.

    The answers to a block of questions are those in the sentence before it, or else after it; a question of
    its own has them in its line. An answer called ``missed`` is a missing code. Questions with an asterisk
    are reversed if a sentence says so. A question ``Q1`` may be the column ``Q1A``, beside its time ``Q1E``
    and position ``Q1I``.
    """
    text = read_text(path)
    starred = any(_INVERTED.search(part) for part in re.split(r"\n\s*\n", text))
    described = list(_described(text))
    if not described:
        raise InputError(f"{path.name}: no line describes a column, as in 'Q1<tab>I worry about things.'")
    series = Counter(stem(name) for _, name, _, _, _, own in described if own and stem(name) != name)
    fields, beside = [], []
    for line, name, star, wording, options, own in described:
        codes = [code for code, label in options.items() if _MISSED.match(label) or means_no_answer(label)]
        item = labelled_item(name, wording, options, codes)
        asked = (
            item.declared and named_kind(name) is None and (not own or series[stem(name)] >= _FEWEST_ALIKE)
        )
        item = replace(item, reverse=star and starred)
        fields.append(Field(item, asked, other_names=(name + ANSWER,), place=f"line {line}"))
        beside += [name + ending for ending in BESIDE]
    found = applied(table, Dictionary(tuple(fields)), path)
    names = [name for name in beside if name in table.frame.columns and name not in found.described]
    return replace(found, metadata=(*found.metadata, *names))


def _described(text: str) -> Iterator[tuple[int, str, bool, str, Mapping[float, str], bool]]:
    """Each column's line, name, asterisk, wording and answers, and whether these are in its own line."""
    blocks, sentences = _blocks(text)
    options = [_options(sentence) for sentence in sentences]
    used: set[int] = set()
    for block in blocks:
        here = next((at for at in (block.before, block.after) if at not in used and len(options[at]) > 1), -1)
        used.add(here)
        for number, name, star, line in block.entries:
            own = _options(line)
            wording = _OPTION.split(line)[0] if len(own) > 1 else line
            known = own if len(own) > 1 else options[here] if here >= 0 else {}
            yield number, name, star, plain_text(wording).strip(' ",;:('), known, len(own) > 1


def _blocks(text: str) -> tuple[list[_Block], list[str]]:
    """The blocks of lines that describe columns, and the sentences around them."""
    blocks: list[_Block] = []
    sentences = [""]
    entries: list[tuple[int, str, bool, str]] = []
    for number, line in enumerate([*text.splitlines(), "."], start=1):
        found = _ENTRY.fullmatch(line.rstrip())
        if found is not None:
            entries.append((number, found["name"], bool(found["star"]), found["text"].strip()))
        elif line.strip() and entries:
            blocks.append(_Block(tuple(entries), len(sentences) - 1, len(sentences)))
            entries, sentences = [], [*sentences, line]
        elif line.strip():
            sentences[-1] += f"\n{line}"
    return blocks, sentences


def _options(text: str) -> dict[float, str]:
    """The answers in a text such as ``1=Disagree, 3=Neutral, 5=Agree (0=missed)``."""
    text = re.sub(r"(-?\d+) +(?:is +)?labell?ed +(?:as +)?", r"\1=", text)
    found = list(_OPTION.finditer(text))
    options: dict[float, str] = {}
    for at, match in enumerate(found):
        last = at + 1 == len(found)
        label = text[match.end() : len(text) if last else found[at + 1].start()].split("\n")[0]
        depth = accumulate((sign == "(") - (sign == ")") for sign in label)
        label = label[: next((at for at, open in enumerate(depth) if open < 0), len(label))]
        label = label.split(". ")[0] if last else re.sub(r"[\s,;(]+(and|or)?[\s,;(]*$", "", label)
        options.setdefault(float(match[1]), plain_text(label).strip(' ",;.('))
    return options


OPENPSYCHOMETRICS = DictionaryFormat("a codebook of openpsychometrics.org", is_codebook, apply_codebook)
