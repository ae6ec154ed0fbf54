"""The preregistered plan: how the analysis deviates from it, and what was found of what was expected."""

from __future__ import annotations

from icqf.report.blocks import Block, Bullets, Details, Grid, Prose, Span
from icqf.report.section import report_section
from icqf.report.words import Report, Values

_AGREES = {True: "as expected", False: "not as expected", None: "not shown"}
_LIMITS = (
    "Settings, codebook, items and numbers were compared with the plan by the program. What is written there "
    "in words, such as hypotheses and exclusions made before the file was read, is for readers to compare.",
    "The checksum shows that the plan is the one that was registered if the registration states the same; it "
    "does not show when the plan was made, or that nobody had seen the data. For the date, there is the time "
    "stamp of the registry.",
)


@report_section("preregistration", "Preregistered plan")
def preregistration(report: Report) -> list[Block] | None:
    """Deviations from the plan, and what was expected."""
    values = report.preregistration
    return None if values is None else preregistration_blocks(values)


def preregistration_blocks(values: Values) -> list[Block]:
    """The plan, the deviations from it, what was expected and found, and what this shows."""
    frozen = (
        f" The plan “{values.title}” was frozen on {values.frozen} with icqf {values.version} "
        f"({values.file}). About existing data it states: “{values.decisions.existing_data}.”"
    )
    blocks: list[Block] = [Prose([Span(values.headline, "strong"), frozen])]
    if values.deviations:
        rows = [[d.what, d.planned, d.done, d.reason or "no reason is given"] for d in values.deviations]
        blocks.append(Grid("Deviations from the plan", ["What", "Planned", "Done", "Reason"], rows))
    if values.declared:
        blocks += ["Declared by the authors:", Bullets(values.declared)]
    if values.found:
        rows = [[row.expected, row.found, _AGREES[row.agrees]] for row in values.found]
        blocks.append(Grid("Expected and found", ["Expected", "Found", "Agreement"], rows))
    decisions = [
        Prose([Span(f"{name.replace('_', ' ').capitalize()}:", "strong"), f" {text}"])
        for name, text in vars(values.decisions).items()
    ]
    checksum = Prose(["SHA-256 checksum of the plan: ", Span(values.sha256, "code")])
    return [
        *blocks,
        f"{values.participants} Planned exclusions: “{values.decisions.data_exclusion}”",
        Details("The decisions of the plan", [Bullets(decisions)]),
        Details("What this shows", [*_LIMITS, checksum]),
    ]
