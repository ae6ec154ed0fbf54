"""Sentences that name factors: worked out from the tree alone, so that factors can be named afresh later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icqf.models.multistart import AS_WELL, COUNTERPART
from icqf.models.names import checked_names
from icqf.report import words
from icqf.report.cautions import cautions
from icqf.report.findings import results_paragraph
from icqf.report.schema import CLOSE, Comparison, FactorScores, FitQuality, ItemRow, Pair, Report, Scores


def with_words(report: Report) -> Report:
    """The report with every sentence that mentions a factor, made from its values and names."""
    named = {factor.key: factor.name for factor in report.model.factors}
    report = replace(
        report,
        scores=replace(report.scores, words=tuple(_scores(report.scores))),
        fit=replace(report.fit, words=tuple(_fit(report.fit, report.model.variance, named))),
        comparison=None
        if report.comparison is None
        else replace(report.comparison, words=tuple(_comparison(report.comparison))),
    )
    return replace(
        report,
        cautions=tuple(cautions(report)),
        headline=tuple(_headline(report)),
        results=results_paragraph(report),
    )


def renamed(report: Report, names: Sequence[str]) -> Report:
    """The same report with other names of its factors, in tables and sentences.

    Parameters
    ----------
    report : Report
    names : sequence of str
        One name per factor, in their order.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, renamed, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> [factor.name for factor in renamed(report, ["Home", "School"]).model.factors]
    ['Home', 'School']
    """
    old = [factor.name for factor in report.model.factors]
    new = dict(zip(old, checked_names(old, names), strict=True))

    def item(row: ItemRow) -> ItemRow:
        return replace(row, strongest=new.get(row.strongest, row.strongest))

    def scores(factor: FactorScores) -> FactorScores:
        return replace(factor, name=new[factor.name])

    def pair(each: Pair) -> Pair:
        return replace(each, factor=new[each.factor])

    view, comparison = report.model, report.comparison
    factors = tuple(replace(factor, name=new[factor.name]) for factor in view.factors)
    if comparison is not None:
        comparison = replace(comparison, pairs=tuple(map(pair, comparison.pairs)))
    measured = report.psychometrics
    if measured is not None:
        by_key = {factor.key: factor.name for factor in factors}
        measured = replace(
            measured,
            scales=tuple(replace(row, name=by_key.get(row.key, row.name)) for row in measured.scales),
            variance=tuple(replace(row, name=by_key.get(row.key, row.name)) for row in measured.variance),
        )
    return with_words(
        replace(
            report,
            psychometrics=measured,
            models=(replace(view, factors=factors), *report.models[1:]),
            items=tuple(map(item, report.items)),
            scores=replace(report.scores, factors=tuple(map(scores, report.scores.factors))),
            comparison=comparison,
        )
    )


def at_least(value: float) -> str:
    """A correlation that others are not below; nothing is above 1.

    Examples
    --------
    >>> at_least(0.934), at_least(0.999)
    ('0.93 or higher', '1.00')
    """
    text = words.number(value)
    return text if text == "1.00" else f"{text} or higher"


def _headline(report: Report) -> list[str]:
    """The report in a few sentences."""
    k, fit, scores = len(report.model.factors), report.fit, report.scores
    if fit.no_structure:
        return _no_structure(report)
    confounds = [confound.name for confound in report.sample.confounds]
    beside = f", together with {words.joined(confounds)}," if confounds else ""
    describe, explain = ("describes", "explains") if k == 1 else ("describe", "explain")
    said = [
        f"{words.spelled(k).capitalize()} factor{'' if k == 1 else 's'}{beside} {describe} the answers of "
        f"{words.count_of(report.sample.n_fitted, 'participant')} to "
        f"{words.count_of(report.sample.n_items, 'item')} and {explain} "
        f"{words.percent(report.model.variance)} of the variance of the answers."
        + (
            ""
            if fit.r_squared_hidden is None
            else f" Answers that were hidden from the model are predicted with "
            f"{words.percent(fit.r_squared_hidden)} less squared error than by the items' means."
        ),
        report.count.words[0],
    ]
    agreements = [factor.stability.agreement for factor in report.model.factors if factor.stability]
    if agreements and min(agreements) >= words.STABLE[1][0]:
        said.append(
            f"{'The factor stays' if k == 1 else 'All factors stay'} much the same when the participants "
            f"are drawn again (agreement of loadings {at_least(min(agreements))})."
        )
    if k > 1:
        none = scores.n_present[0]
        few = words.percent(none.share) if none.n is not None else words.members(none)
        said.append(
            f"{words.percent(scores.several)} of the participants have two or more factors, and {few} have "
            f"none (a score of {scores.threshold:g} or more counts as having a factor)."
        )
    return said


def _no_structure(report: Report) -> list[str]:
    """What is said of factors that predict hidden answers no better than the items' means do."""
    k = len(report.model.factors)
    fitted = "The factor below was" if k == 1 else f"The {words.spelled(k)} factors below were"
    return [
        f"{fitted} fitted to the answers of {words.count_of(report.sample.n_fitted, 'participant')} to "
        f"{words.count_of(report.sample.n_items, 'item')}. {'It' if k == 1 else 'They'} cannot be told from "
        f"chance: do not interpret {'it' if k == 1 else 'them'}.",
        report.count.words[0],
    ]


def _scores(scores: Scores) -> list[str]:
    said = [
        f"A score runs from 0 (none of the factor) to {scores.top:g} (all of it). For a participant with a "
        f"score of {scores.top:g}, the factor's loadings are added in full to the expected answers."
    ]
    k = len(scores.factors)
    if k == 1:
        return said
    common = max(scores.factors, key=lambda factor: factor.present)
    rare = min(scores.factors, key=lambda factor: factor.present)
    said.append(
        f"The median participant has {words.spelled(scores.median_present)} of the {words.spelled(k)} "
        f"factors (a score of {scores.threshold:g} or more). The most common is {common.name} "
        f"({words.percent(common.present)} of the participants), the rarest {rare.name} "
        f"({words.percent(rare.present)})."
    )
    off = np.array(scores.correlations)[~np.eye(k, dtype=bool)]
    if np.isfinite(off).any():
        said.append(
            f"Scores of different factors correlate between {words.number(float(np.nanmin(off)))} and "
            f"{words.number(float(np.nanmax(off)))}. These are correlations of the scores in this sample, "
            "not the factor correlations of a factor analysis."
        )
    return said


def _fit(fit: FitQuality, variance: float, names: dict[str, str]) -> list[str]:
    said = [
        f"The model explains {words.percent(variance, 1)} of the variance of the answers it was fitted to: "
        "the shares of factors and confounds add up to this, for every item and for all of them together.",
        f"Its squared error is {words.percent(fit.r_squared, 1)} smaller than that of the items' means (R²)."
        + (
            ""
            if fit.r_squared_hidden is None
            else f" For answers that were hidden from it, R² is {words.percent(fit.r_squared_hidden, 1)}; it "
            "is usually lower there, because a fit also describes what is chance in the answers it has seen."
        ),
    ]
    iterations = words.count_of(fit.n_iter, "iteration")
    if fit.n_averaged:
        said.append(
            f"The loadings are averages over {fit.n_averaged} fits to resampled participants, and the scores "
            "were solved for under the constraints. Averages describe these answers a little less closely "
            "than the best fit does; in small samples another study finds them again more often."
        )
    elif fit.converged:
        said.append(f"The fit converged after {iterations}.")
    else:
        said.append(f"The fit had not converged after {iterations}: allow more before relying on it.")
    return said + start_words(fit, names)


def start_words(fit: FitQuality, names: dict[str, str]) -> list[str]:
    """How far fits from other starts agree with the kept one; `names` are the factors' by key."""
    if len(fit.starts) < 2:
        return []
    others = [start for start in fit.starts if start.agreement < COUNTERPART]
    number = words.count_of(len(fit.starts), "start")
    if not others:
        lowest = at_least(min(start.agreement for start in fit.starts))
        return [
            f"The fit was run from {number}, and all of them ended with the same factors (correlation of "
            f"loadings {lowest})."
        ]
    kept = f"The fit was run from {number}, and the best one was kept."
    if fit.doubtful:
        them = "this factor" if len(fit.doubtful) == 1 else "these factors"
        return [
            f"{kept} At least one other describes the answers as well (objective within "
            f"{words.percent(AS_WELL, 1)}) without a counterpart of "
            f"{words.joined([names[key] for key in fit.doubtful])}: the answers do not settle {them}, so "
            "read with care."
        ]
    lowest_other = min(start.objective for start in others)
    apart = lowest_other / min(start.objective for start in fit.starts) - 1
    return [
        f"{kept} {words.spelled(len(others)).capitalize()} of them ended with other factors that describe "
        f"the answers less well (objective higher by {words.percent(apart, 2)} or more)."
    ]


def _comparison(comparison: Comparison) -> list[str]:
    if comparison.failed:
        return [f"Factor analysis of the same answers could not be run: {comparison.failed}"]
    k, apart = comparison.n_components, comparison.apart
    if not apart:
        extent = "the factor." if k == 1 else f"all {k} factors."
    elif k == 1:
        extent = "none."
    else:
        extent = f"{k - len(apart)} of the {k} factors, but not for {words.joined(apart)}."
    here = words.percent(comparison.r_squared_here)
    return [
        "With the same number of factors, factor analysis finds a close counterpart (correlation of loadings "
        f"{CLOSE} or more) for {extent}",
        f"Its squared error is {words.percent(comparison.r_squared)} smaller than that of the items' means "
        f"in this sample (R²); that of this model is {here} smaller, with confounds and within all bounds.",
        f"{words.percent(comparison.negative)} of its loadings are negative; this model has no negative "
        "loadings, so that a factor only ever adds to answers. "
        f"{words.percent(comparison.small_here)} of this model's loadings are close to zero (below a tenth "
        f"of the factor's largest), against {words.percent(comparison.small)} there.",
    ]
