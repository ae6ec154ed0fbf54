"""What can be done about a finding: changes of the options, for whoever would rather press than type."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from icqf.data.check import Finding, Findings
from icqf.errors import counted, short
from icqf.screening.ranges import number
from icqf.workflow.options import StudyOptions

_CODES = ("outside-range", "suspicious-code", "far-answer", "text")
_NEEDLESS = ("empty-item", "constant-item", "nearly-empty", "copied-item", "wide-range", "few-answers")
_OF_CONFOUNDS = (
    *("confound-gaps", "constant-confound", "many-categories", "missing-confound", "small-category"),
    *("lone-confound", "confound-categories", "stray-text", "id-confound"),
)
_MOST_VISITS = 6  # that are offered to be kept


@dataclass(frozen=True)
class Remedy:
    """One thing to do about a finding."""

    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    codebook: bool = False

    @property
    def key(self) -> str:
        """A short name by which a page can ask for this remedy."""
        return hashlib.sha256(f"{self.label}{dict(self.changes)!r}".encode()).hexdigest()[:16]

    def applied(self, options: StudyOptions) -> StudyOptions:
        """Return the options with the changes."""
        return replace(options, **self.changes)


def remedies_of(finding: Finding, findings: Findings, options: StudyOptions) -> tuple[Remedy, ...]:
    """Return what can be done about a finding by changing the options; empty where nothing can."""
    fields = finding.fields
    items = () if findings.overview is None else findings.overview.items
    if finding.item is not None and finding.item in options.confounds:
        return tuple(_about_confound(finding, options))
    offered: list[Remedy] = []
    if finding.code in _CODES and "value" in fields and not fields.get("answer"):
        value = fields["value"]
        codes = tuple(dict.fromkeys([*options.missing_codes, value]))
        offered.append(Remedy(f"Read {number(value)} as missing", {"missing_codes": codes}))
    if finding.code == "end-code":
        value = number(fields["value"])
        if fields["shared"]:
            offered.append(Remedy(f"Read {value} as missing in these items, by a codebook", codebook=True))
        else:
            codes = tuple(dict.fromkeys([*options.missing_codes, fields["value"]]))
            offered.append(Remedy(f"Read {value} as missing", {"missing_codes": codes}))
    if finding.code == "looks-reversed" and not fields["reversed"]:
        offered.append(_reversing([fields["item"]], options))
    if finding.code == "two-ends":
        offered += [_reversing(fields[end], options) for end in ("one", "other")]
    if finding.code == "duplicate-id":
        for visit in fields.get("visits", ())[:_MOST_VISITS]:
            shown = " and ".join(f"{column} {value or 'empty'}" for column, value in visit)
            offered.append(Remedy(f"Keep the visit with {shown}", {"visit": visit}))
    if finding.code == "dictionary" and options.codebook is not None and options.dictionary is None:
        changes = {"dictionary": options.codebook, "codebook": None}
        offered.append(Remedy("Read it as a REDCap dictionary", changes))
    if finding.code == "text-answers" and not fields["codebook"]:
        does = f"Use the order {fields['order']}" if fields["labels"] else "List the words in a codebook"
        offered.append(Remedy(does, codebook=True))
    named = tuple(fields.get("items", ())) or ((finding.item,) if finding.item else ())
    alone = finding.code in _CODES and ("item" in fields or "items" in fields)  # not one of many
    if (alone or finding.code in _NEEDLESS) and named and set(named) < set(items):
        offered.append(_without(named, items))
    return tuple(offered)


def reversing_all(findings: Findings, options: StudyOptions) -> Remedy | None:
    """Return the remedy for all items that look reversed; None where there are fewer than two."""
    names = [
        finding.fields["item"]
        for finding in findings.of("looks-reversed")
        if not finding.fields["reversed"] and finding.fields["item"] not in options.reverse
    ]
    return _reversing(names, options) if len(names) > 1 else None


def _reversing(names: Iterable[str], options: StudyOptions) -> Remedy:
    names = list(names)
    shown = ", ".join(map(short, names)) if len(names) <= 4 else f"all {counted(len(names), 'item')}"
    return Remedy(f"Reverse {shown}", {"reverse": tuple(dict.fromkeys([*options.reverse, *names]))})


def _without(names: Iterable[str], items: Iterable[str]) -> Remedy:
    names = list(names)
    shown = short(names[0]) if len(names) == 1 else counted(len(names), "item")
    kept = tuple(name for name in items if name not in names)
    return Remedy(f"Leave {shown} out", {"items": kept, "subscales": ()})


def _about_confound(finding: Finding, options: StudyOptions) -> Iterable[Remedy]:
    if finding.code in ("confound-gaps", "missing-confound"):
        yield Remedy("Use the sample mean where it is missing", {"missing_confounds": "mean"})
    if finding.code in (*_OF_CONFOUNDS, "suspicious-code"):
        others = tuple(name for name in options.confounds if name != finding.item)
        ranges = tuple(each for each in options.confound_ranges if each[0] != finding.item)
        label = f"Do without the confound {short(str(finding.item))}"
        yield Remedy(label, {"confounds": others, "confound_ranges": ranges})
