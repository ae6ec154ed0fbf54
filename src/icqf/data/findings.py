"""Findings: what was found in a table, as sentences and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from icqf.data.overview import Overview, unsaid
from icqf.errors import InputError, readable

SEVERITIES = ("error", "warning", "note")
TITLES = {"error": "Must be fixed", "warning": "Worth a look", "note": "For your information"}


@dataclass(frozen=True)
class Finding:
    """One thing found: how serious it is, of which kind, where, what it is, and what to do about it.

    Examples
    --------
    >>> from icqf.data import Finding
    >>> finding = Finding("error", "empty-item", "No participant answered 'q1'.", item="q1")
    >>> finding.severity, finding.item
    ('error', 'q1')
    """

    severity: str
    code: str
    message: str
    item: str | None = None
    row: str | None = None
    remedy: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The message and the remedy, in the words of Python."""
        return readable(f"{self.message} {self.remedy}".rstrip())

    @classmethod
    def of(cls, fault: InputError, *, severity: str = "error", code: str | None = None) -> Finding:
        """Return a fault as a finding."""
        item = fault.fields.get("item", fault.fields.get("confound"))
        row = fault.fields.get("row")
        row = fault.fields.get("participant", row)
        place = None if row is None else str(row)
        return cls(severity, code or fault.code, fault.message, item, place, fault.remedy, fault.fields)


@dataclass(frozen=True)
class Findings:
    """All that `check` found, the serious things first, and what will be analysed.

    Examples
    --------
    >>> from icqf.data.findings import Finding, Findings
    >>> findings = Findings((Finding("error", "empty-item", "Nobody answered 'q1'.", item="q1"),))
    >>> findings.must_fix, len(findings)
    (True, 1)
    >>> print(findings)
    error    empty-item       Nobody answered 'q1'.
    """

    findings: tuple[Finding, ...]
    overview: Overview | None = None

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        return "\n".join(f"{f.severity:<8} {f.code:<16} {f.sentence}" for f in self) or "Nothing was found."

    @property
    def must_fix(self) -> bool:
        """Whether anything must be fixed before a fit."""
        return any(finding.severity == "error" for finding in self)

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings without notes of the reader that the overview says already."""
        if self.overview is None:
            return self.findings
        fresh = set(unsaid([each.sentence for each in self.of("reading")], self.overview))
        return tuple(each for each in self if each.code != "reading" or each.sentence in fresh)

    @property
    def verdict(self) -> str:
        """Whether a fit is possible, in one sentence."""
        if self.must_fix:
            return "Fix what must be fixed before fitting."
        if any(not finding.fields["reversed"] for finding in self.of("looks-reversed")):
            return "Before a fit, decide about the items that look reversed."
        if any(finding.severity == "warning" for finding in self):
            return "A fit is possible; look at the points above first."
        return "Nothing stands in the way of a fit."

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self if finding.code == code)

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a table: severity, code, sentence, item and row."""
        columns = ["severity", "code", "sentence", "item", "row"]
        return pd.DataFrame([[getattr(f, name) for name in columns] for f in self], columns=columns)

    def to_json(self) -> str:
        """Return the findings as JSON: ``{"overview": ..., "must_fix": ..., "findings": [...]}``."""
        overview = None if self.overview is None else self.overview.to_dict()
        findings = self.to_frame().to_dict("records")
        content = {"overview": overview, "must_fix": self.must_fix, "findings": findings}
        return json.dumps(content, indent=2, ensure_ascii=False)
