"""``icqf check``: find problems before a long run."""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.parsing import ManyCommand, options_of, settings
from icqf.cli.terminal import echo, write_data
from icqf.cli.text import typed_names, worded
from icqf.workflow.options import StudyOptions

_MOST_TYPED = 120  # characters of an option to type


@click.command(
    "check",
    short_help="Check a table before a long run.",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Examples:
  icqf check answers.csv --codebook items.csv --confounds age sex
  icqf check answers.sav --json > findings.json""",
)
@settings(StudyOptions, "columns")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, **_: Any) -> None:
    """Show what will be analysed in ANSWERS, and problems that would spoil a fit.

    Finds suspicious codes, items that look reversed, duplicates, missing confounds and more. The exit code is
    1 if something must be fixed.
    """
    from icqf.workflow.check import check_study

    findings = check_study(options_of(ctx, StudyOptions))
    if as_json:
        write_data(findings.to_json(worded) + "\n")
    else:
        echo(listing(findings))
    ctx.exit(1 if findings.must_fix else 0)


def listing(findings: Any) -> str:
    """Return what will be analysed, the findings by severity, and a verdict."""
    from icqf.data.check import TITLES

    parts = [str(findings.overview)]
    reversed_ = [finding for finding in findings.of("looks-reversed") if not finding.fields["reversed"]]
    together = reversed_ if len(reversed_) > 1 else []  # listed as one point
    for severity, title in TITLES.items():
        lines = []
        for finding in findings.shown:
            if finding.severity != severity:
                continue
            if not any(finding is other for other in together):
                lines.append(f"  - {worded(finding)}")
            elif finding is together[0]:
                lines.append(f"  - {_all_reversed(together)}")
        if lines:
            parts.append("\n".join([f"{title}:", *lines]))
    verdict = findings.verdict
    if reversed_ and not findings.must_fix:
        verdict = verdict.removesuffix(".") + "; --reverse auto reverses them all."
    return "\n\n".join([*parts, verdict])


def _all_reversed(findings: list[Any]) -> str:
    """Return all items that look reversed as one point, each with the items it runs against."""
    typed = typed_names("--reverse", [finding.fields["item"] for finding in findings])
    typed = typed if len(typed) <= _MOST_TYPED else "--reverse auto"
    head = f"{len(findings)} items run against others, so they look reversed. If they are, add {typed}:"
    return "\n".join([head, *(f"      {finding.fields['runs']}" for finding in findings)])
