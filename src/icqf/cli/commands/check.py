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
    """List what would spoil a fit of ANSWERS: suspicious codes, reversed items, duplicates, gaps.

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
    """Return the findings in three parts, one sentence per line, and a last line that sums up."""
    titles = {"error": "Must be fixed:", "warning": "Worth a look:", "note": "For your information:"}
    parts = []
    for severity, title in titles.items():
        lines = [f"  - {worded(finding)}" for finding in findings if finding.severity == severity]
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
