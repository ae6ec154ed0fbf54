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
_INVERTED = re.compile("invert|revers", re.IGNORECASE)
_VOCABULARY = re.compile(r"VCL\d+")  # words checked as known, some of them invented: no answers on a scale
_FEWEST_ENTRIES, _FEWEST_WORDS, _FEWEST_ALIKE = 3, 5, 3
ANSWER, BESIDE = "A", ("E", "I", "_E", "_I")  # what follows an item's name: answer, time and position


@dataclass(frozen=True)
class _Block:
    """Lines that describe columns one after another, and where they are among the paragraphs of text."""

    entries: tuple[tuple[int, str, bool, str], ...]  # line, name, whether it has an asterisk, text
    before: range  # the paragraphs between the block before and this one
    end: int  # the first paragraph after it


def is_codebook(path: Path, head: str) -> bool:
    """Whether a text has sentences, and lines with a name, a tab and a description."""
    lines = [line for line in head.splitlines() if line.strip()]
    entries = (_ENTRY.fullmatch(line.rstrip()) for line in lines if "\t" in line)
    named = sum(entry is not None and "\t" not in entry["text"] for entry in entries)
    sentences = any("\t" not in line and len(line.split()) >= _FEWEST_WORDS for line in lines)
    text = path.suffix.lower() in (".txt", ".md", "") and lines and "\t" not in lines[0]
    return bool(text) and sentences and named >= _FEWEST_ENTRIES


def apply_codebook(table: Table, path: Path) -> Table:
    """Add wordings, ranges, labels, values of missed answers, and the stated direction.

    The answers to a block of questions are those in the nearest paragraph before it, or else after it; a
    question of its own has them in its line. Where questions are numbered, other lines of the block, such as
    a time, are none. An answer called ``missed`` is a missing code. Questions with an asterisk are reversed
    if a sentence says so. A question ``Q1`` may be the column ``Q1A``, beside its time ``Q1E`` and position
    ``Q1I``.
    """
    text = read_text(path)
    starred = any("*" in line and _INVERTED.search(line) for line in text.splitlines())
    described = list(_described(text))
    if not described:
        raise InputError(f"{path.name}: no line describes a column, as in 'Q1<tab>I worry about things.'")
    series = Counter(stem(name) for _, name, _, _, _, own in described if own and stem(name) != name)
    fields, beside = [], []
    for line, name, star, wording, options, own in described:
        codes = [code for code, label in options.items() if _MISSED.match(label) or means_no_answer(label)]
        item = labelled_item(name, wording, options, codes)
        other = named_kind(name) is not None or _VOCABULARY.fullmatch(name) is not None
        asked = item.declared and not other and (not own or series[stem(name)] >= _FEWEST_ALIKE)
        item = replace(item, reverse=star and starred)
        fields.append(Field(item, asked, other_names=(name + ANSWER,), place=f"line {line}"))
        beside += [name + ending for ending in BESIDE]
    found = applied(table, Dictionary(tuple(fields)), path)
    names = [name for name in beside if name in table.frame.columns and name not in found.described]
    return replace(found, metadata=(*found.metadata, *names))


def _described(text: str) -> Iterator[tuple[int, str, bool, str, Mapping[float, str], bool]]:
    """Each column's line, name, asterisk, wording and answers, and whether these are in its own line."""
    blocks, paragraphs = _blocks(text)
    options = [_options(paragraph) for paragraph in paragraphs]
    used: set[int] = set()
    for block, end in zip(blocks, [*(each.end for each in blocks[1:]), len(options)], strict=True):
        numbered = any(stem(name) != name for _, name, _, _ in block.entries)
        near = (*reversed(block.before), *(range(block.end, end) if numbered else ()))
        here = next((at for at in near if at not in used and len(options[at]) > 1), -1)
        used.add(here)
        for number, name, star, line in block.entries:
            own = _options(line)
            wording = _OPTION.split(line)[0] if len(own) > 1 else line
            shared = options[here] if here >= 0 and (stem(name) != name or not numbered) else {}
            known = own if len(own) > 1 else shared
            yield number, name, star, plain_text(wording).strip(' ",;:('), known, len(own) > 1


def _blocks(text: str) -> tuple[list[_Block], list[str]]:
    """The blocks of lines that describe columns, and the paragraphs around them."""
    blocks: list[_Block] = []
    paragraphs: list[str] = []
    entries: list[tuple[int, str, bool, str]] = []
    first, blank = 0, True
    for number, line in enumerate([*text.splitlines(), "."], start=1):
        found = _ENTRY.fullmatch(line.rstrip())
        if found is not None:
            entries.append((number, found["name"], bool(found["star"]), found["text"].strip()))
        elif line.strip() and entries:
            blocks.append(_Block(tuple(entries), range(first, len(paragraphs)), len(paragraphs)))
            entries, first = [], len(paragraphs)
            paragraphs.append(line)
        elif line.strip() and paragraphs and (not blank or _OPTION.match(line.strip())):
            paragraphs[-1] += f"\n{line}"
        elif line.strip():
            paragraphs.append(line)
        blank = not line.strip()
    return blocks, paragraphs


def _options(text: str) -> dict[float, str]:
    """The answers in a text such as ``1=Disagree, 3=Neutral, 5=Agree (0=missed)``."""
    text = re.sub(r"(?<!\d)(-?\d+) +(?:is +)?labell?ed +(?:as +)?", r"\1=", text)
    found = list(_OPTION.finditer(text))
    options: dict[float, str] = {}
    for at, match in enumerate(found):
        last = at + 1 == len(found)
        label = text[match.end() : len(text) if last else found[at + 1].start()].split("\n")[0]
        depth = accumulate((sign == "(") - (sign == ")") for sign in label)
        label = label[: next((at for at, open in enumerate(depth) if open < 0), len(label))]
        label = label.split(". ")[0] if last else re.sub(r"[\s,;(](and|or)$", "", label.rstrip(" \t,;("))
        options.setdefault(float(match[1]), plain_text(label).strip(' ",;.('))
    return options


OPENPSYCHOMETRICS = DictionaryFormat("a codebook of openpsychometrics.org", is_codebook, apply_codebook)
