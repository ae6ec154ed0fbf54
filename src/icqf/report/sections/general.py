"""A general factor: what all factors have in common, and what that does and does not mean."""

from __future__ import annotations

import math

from icqf.analyses.factor_properties import GeneralFactor
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Details, Grid
from icqf.report.section import report_section
from icqf.report.words import Report, Values

_MEANING = (
    "None of this shows that a general factor (“p”) causes the answers. Scores cannot be negative, and many "
    "are 0: participants without problems score 0 on every factor and those with many problems on several, "
    "which is enough to make scores correlate. Habits of answering, such as agreeing with everything, do the "
    "same. The factors of this model are free to correlate, and it needs no general factor to describe them."
)


@report_section("general", "A general factor", title="General factor")
def general(report: Report) -> list[Block] | None:
    """Correlations of scores, one factor instead of several, and ω hierarchical."""
    values = report.general
    if values is None:
        return None
    if not values.factors:
        return list(values.words)
    rows = [
        [factor.name, words.number(row.with_others), words.number(row.with_one)]
        for factor, row in zip(report.model.factors, values.factors, strict=True)
    ]
    head = ["Factor", "Correlation with the other scores (mean)", "Correlation with the score of one factor"]
    caption = "Correlation of each score with the others, and with that of a model with one factor"
    grid = Grid(caption, head, rows, label="General factor", scroll=False)
    return [*values.words, _MEANING, Details("Each score and the others", [grid])]


def general_values(analysis: Analysis) -> Values | None:
    """The general factor in numbers and sentences; None where it was not computed."""
    found = analysis.general
    if found is None:
        return None
    if isinstance(found, str):
        return Values(words=(found,), factors=())
    hierarchy, more = found.hierarchy, {}
    if hierarchy is not None:
        more = {name: getattr(hierarchy, name) for name in ("omega_hierarchical", "omega_total", "common")}
    return Values(
        words=tuple(_sentences(found)),
        factors=tuple(
            Values(with_others=float(row["with_others"]), with_one=float(row["with_one"]))
            for row in found.factors.to_dict("records")
        ),
        mean=found.mean,
        variance=found.variance,
        variance_one=found.variance_one,
        **more,
    )


def _sentences(found: GeneralFactor) -> list[str]:
    k = len(found.factors)
    spread = f" on average ({words.number(found.low)} to {words.number(found.high)})" if k > 2 else ""
    share = found.variance_one / found.variance if found.variance > 0 else math.nan
    one = (
        f"A model with one factor and the same penalties explains {words.percent(found.variance_one)} of the "
        f"variance, {words.percent(share)} of what the {words.spelled(k)} factors explain "
        f"({words.percent(found.variance)})."
    )
    if math.isfinite(found.error_one) and math.isfinite(found.error):
        more = found.error_one / found.error - 1
        than = f"{words.percent(abs(more), 1)} {'larger' if more > 0 else 'smaller'}"
        one += f" Its cross-validated error is {than} than that of {words.spelled(k)} factors."
    sentences = [f"Scores of different factors correlate {words.number(found.mean)}{spread}.", one]
    if found.hierarchy is None:
        sentences.append(f"ω hierarchical is not defined here. {found.reason}")
        return sentences
    hierarchy = found.hierarchy
    sentences.append(
        "In a factor analysis with as many factors (minimum residual, oblimin; Schmid-Leiman), a general "
        f"factor accounts for {words.percent(hierarchy.common)} of the variance that the factors explain. "
        f"ω hierarchical is {words.number(hierarchy.omega_hierarchical)}: that share of the variance of a "
        "total score is due to the general factor, and "
        f"{words.number(hierarchy.omega_total)} to all factors together (ω total). Both grow with the number "
        "of items, and describe a total score, not the scores of this model."
    )
    return sentences
