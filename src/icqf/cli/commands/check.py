"""``icqf check``: what is wrong before a long run."""

from __future__ import annotations

from typing import Any

import click

from icqf.cli.support.many import ManyCommand
from icqf.cli.support.options import options_of, study_options
from icqf.cli.support.terminal import echo, write_data
from icqf.cli.support.wording import worded


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
@study_options("columns")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, **_: Any) -> None:
    """Show what of ANSWERS will be analysed, and what would spoil a fit.

    Found are suspicious codes, items that look reversed, duplicates, gaps and more.
    Ends with exit code 1 when something must be fixed.
    """
    from icqf.workflow.read import check_study

    findings = check_study(options_of(ctx))
    if as_json:
        write_data(findings.to_json() + "\n")
    else:
        echo(listing(findings))
    ctx.exit(1 if findings.must_fix else 0)


def listing(findings: Any) -> str:
    """Return what will be analysed, the findings in three parts, and a last line that sums up."""
    from icqf.data.overview import unsaid

    titles = {"error": "Must be fixed:", "warning": "Worth a look:", "note": "For your information:"}
    parts = [str(findings.overview)]
    notes = [finding.sentence for finding in findings if finding.code == "reading"]
    shown = set(unsaid(notes, findings.overview))
    for severity, title in titles.items():
        lines = [
            f"  - {worded(finding)}"
            for finding in findings
            if finding.severity == severity and (finding.code != "reading" or finding.sentence in shown)
        ]
        if lines:
            parts.append("\n".join([title, *lines]))
    reversed_ = [finding for finding in findings.of("looks-reversed") if not finding.fields["reversed"]]
    if findings.must_fix:
        verdict = "Fix what must be fixed before fitting."
    elif reversed_:
        verdict = "Before a fit, decide about the items that look reversed; --reverse auto reverses them all."
    else:
        verdict = "Nothing stands in the way of a fit."
    return "\n\n".join([*parts, verdict])
