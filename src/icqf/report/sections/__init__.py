"""The sections of the report of a fit: each is one function, with its key, its heading and its place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icqf.errors import InputError
from icqf.registry import Registry
from icqf.report.blocks import Block, Section
from icqf.report.words import Report


@dataclass(frozen=True, eq=False)
class ReportSection:
    """A section of the report: a function from the report to its blocks, or None to leave it out.

    Examples
    --------
    >>> from icqf.report import report_section
    >>> @report_section("size", "Size of the study", after="sample")
    ... def size(report):
    ...     kept = report.keep("size", lambda analysis: {"n": len(analysis.scores)})
    ...     return kept and [f"{kept.n} participants have scores."]
    >>> size.key, size.after
    ('size', 'sample')
    """

    key: str  # id on the page, and name in report.json
    heading: str
    make: Callable[[Report], Sequence[Block] | None]
    title: str = ""  # in the navigation of the page; the heading by default
    after: str = ""  # key of the section that it follows; the last one by default

    def section(self, report: Report) -> Section | None:
        """The section of this report."""
        parts = self.make(report)
        if not parts:
            return None
        own = self.key in SECTIONS.own or hasattr(report, self.key)  # its values are the report's
        return Section(self.heading, list(parts), self.key, self.title or self.heading, {} if own else None)


def report_section(
    key: str, heading: str, *, title: str = "", after: str = ""
) -> Callable[[Callable[[Report], Sequence[Block] | None]], ReportSection]:
    """Make a function a section of the report; see `ReportSection`.

    Examples
    --------
    >>> from icqf.report import report_section
    >>> report_section("note", "A note")(lambda report: ["All is well."]).heading
    'A note'
    """
    return lambda make: ReportSection(key, heading, make, title, after)


_OWN = {
    "preregistration": "methods", "factors": "factors", "count": "number_of_factors",
    "loadings": "factors", "confounds": "factors", "scores": "scores", "general": "scores",
    "psychometrics": "psychometrics", "fit": "fit", "comparison": "psychometrics", "analysed": "sample",
    "sample": "sample", "missing": "sample", "methods": "methods", "participants": "sample",
}  # fmt: skip

# Our sections in order; other packages add theirs with an entry point of this group.
SECTIONS = Registry(
    "icqf.sections",
    {key: f"icqf.report.sections.{module}:{key}" for key, module in _OWN.items()},
    "a section of the report (icqf.report.ReportSection)",
    "icqf.report.sections:ReportSection",
)


def sections_of(report: Report) -> list[Section]:
    """All sections of a report; one of another package that fails is replaced by the error message."""
    order = [SECTIONS.load(key) for key in SECTIONS.own]
    for name in SECTIONS.added():
        try:
            added = SECTIONS.load(name)
        except InputError as error:
            warnings.warn(str(error), stacklevel=2)
            continue
        keys = [each.key for each in order]
        order.insert(keys.index(added.after) + 1 if added.after in keys else len(order), added)
    sections = []
    for each in order:
        try:
            section = each.section(report)
        except Exception as error:
            if each.key in SECTIONS.own:
                raise
            message = f"This section could not be made ({type(error).__name__}: {error})."
            section = Section(each.heading, [message], each.key, each.title or each.heading)
        if section is not None:
            sections.append(section)
    return sections
