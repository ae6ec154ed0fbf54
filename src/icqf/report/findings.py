"""The paragraph for a Results section, from the values of the tree."""

from __future__ import annotations

import math

from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.schema import Factor, Report

_MARKERS = 3


def results_paragraph(report: Report) -> str:
    """What was found, in words and numbers that can be pasted into a paper."""
    view, fit, k = report.model, report.fit, len(report.model.factors)
    confounds = [confound.name for confound in report.sample.confounds]
    beside = f", beside {words.joined(confounds)}," if confounds else ""
    if fit.no_structure:
        what = "a single factor" if k == 1 else f"{words.spelled(k)} factors"
        return (
            f"No structure was found: with {what}{beside} hidden answers were predicted no better than by "
            f"the items' means (R² of hidden answers = {words.number(fit.r_squared_hidden)}). "
            f"{_choice(report)}"
        ).strip()
    factors = "One factor" if k == 1 else f"{words.spelled(k).capitalize()} factors"
    said = [
        f"{factors}{beside} explained {words.percent(view.variance, 1)} of the variance of the answers "
        f"(R² = {words.number(fit.r_squared)}"
        + (
            ""
            if fit.r_squared_hidden is None
            else f"; R² of hidden answers = {words.number(fit.r_squared_hidden)}"
        )
        + ").",
        _choice(report),
        *(_factor(report, factor) for factor in view.factors),
        _stability(report),
        _comparison(report),
        _scores(report),
    ]
    return " ".join(part for part in said if part)


def _choice(report: Report) -> str:
    count = report.count
    if not count.candidates:
        return ""
    again = dict(count.shares).get(count.n_components, 0.0)
    said = (
        f"This number of factors (with β = {count.beta:g}) was chosen by cross-validation, and would have "
        f"been chosen again in {words.percent(again)} of redrawn folds"
    )
    if count.parallel is not None:
        same = "the same number" if count.parallel == count.n_components else str(count.parallel)
        return f"{said}; parallel analysis suggested {same}."
    return f"{said}."


def _factor(report: Report, factor: Factor) -> str:
    by_name = {row.name: row for row in report.items}
    markers = []
    for each in factor.top[:_MARKERS]:
        row = by_name[each.item]
        markers.append(f"“{item_label(row.name, row.wording, row.reverse)}” ({words.number(each.value)})")
    if not markers:
        return (
            f"{factor.name} ({words.percent(factor.variance, 1)} of the variance) moved no item noticeably."
        )
    measured = report.psychometrics
    scale = next((row for row in measured.scales if row.key == factor.key), None) if measured else None
    reliable = ""
    if scale is not None:
        omega = "" if math.isnan(scale.omega) else f" and ω = {words.number(scale.omega)}"
        those = f"the {scale.n_items} items that load most on it"
        reliable = f"; α = {words.number(scale.alpha)}{omega} for {those}"
    return (
        f"{factor.name} ({words.percent(factor.variance, 1)} of the variance, "
        f"{words.count_of(factor.n_items, 'item')}{reliable}) loaded most on {words.joined(markers)}."
    )


def _stability(report: Report) -> str:
    agreements = [factor.stability.agreement for factor in report.model.factors if factor.stability]
    if not agreements:
        return ""
    low, high = words.number(min(agreements)), words.number(max(agreements))
    span = f"was {low}" if low == high else f"ranged from {low} to {high}"
    said = f"The mean correlation of loadings with those of resampled participants {span}"
    chances = [factor.replication for factor in report.model.factors if factor.replication]
    if chances:
        lasting = sum(not each.fragile for each in chances)
        said += (
            f"; {lasting} of {words.count_of(len(chances), 'factor')} "
            f"{'is' if lasting == 1 else 'are'} expected to be found again by a study of the same size"
        )
    return f"{said}."


def _comparison(report: Report) -> str:
    comparison = report.comparison
    if comparison is None or not comparison.pairs:
        return ""
    k, apart = len(comparison.pairs), comparison.apart
    if not apart:
        found = "the factor" if k == 1 else f"all {k} factors"
        return f"Factor analysis with as many factors had close counterparts (r ≥ 0.8) of {found}."
    return (
        f"Factor analysis with as many factors had close counterparts (r ≥ 0.8) of {k - len(apart)} of {k} "
        f"factors, not of {words.joined(apart)}."
    )


def _scores(report: Report) -> str:
    if len(report.scores.factors) < 2:
        return ""
    return (
        f"{words.percent(report.scores.several)} of the participants had a score of "
        f"{report.scores.threshold:g} or more on two or more factors."
    )
