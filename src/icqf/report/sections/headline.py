"""The top of the page: cautions, and the report in a few sentences."""

from __future__ import annotations

from icqf.errors import listed
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.sections.number_of_factors import at_the_edge
from icqf.report.sections.psychometrics import without_counterpart
from icqf.report.words import Report, Values
from icqf.resampling.replication import NOT_REPLICABLE

_MOST_NAMED = 3


def cautions(report: Report) -> list[str]:
    """Sentences on what the reader should doubt, the gravest first."""
    sentences = [*report.doubts, *([report.direction] if report.direction else [])]
    if not report.fit.converged and not report.fit.n_averaged:
        sentences.append("The fit had not converged: allow more iterations before relying on it.")
    if report.fit.no_structure:
        return [f"{NOT_REPLICABLE}: {report.fit.no_structure}.", *sentences]
    sentences += _unstable(report)
    sentences += at_the_edge(report.count)
    comparison = report.comparison
    without = without_counterpart(comparison) if comparison is not None else []
    if without:
        has = "has" if len(without) == 1 else "have"
        sentences.append(
            f"Factor analysis disagrees: {words.joined(without)} {has} no close counterpart in a factor "
            "analysis with the same number of factors."
        )
    sentences += [*_unpredicted_tops(report), *_worse_than_means(report.items)]
    return sentences


def _unpredicted_tops(report: Report) -> list[str]:
    """Advice on factors whose top item is predicted worse than by its mean."""
    worse = {row.name: row for row in report.items if row.fit_hidden is not None and row.fit_hidden < 0}
    sentences = []
    for factor in report.model.factors:
        row = worse.get(factor.top[0].item) if factor.top else None
        if row is not None:
            label, fit = item_label(row.name, row.wording, row.reverse), words.number(row.fit_hidden)
            sentences.append(
                f"The top item of {factor.name}, {label}, is not predicted from the other answers (R² of "
                f"hidden answers {fit}): the scores may largely repeat this one answer. Before you interpret "
                "the factor, fit again without this item or with a stronger penalty, and see "
                "whether the other items still form it."
            )
    return sentences


def _unstable(report: Report) -> list[str]:
    """Factors that resamples, or other starts, do not confirm."""
    factors, sentences = report.model.factors, []
    fragile = [factor.name for factor in factors if factor.replication and factor.replication.fragile]
    if fragile:
        sentences.append(
            f"Fragile: {words.joined(fragile)}. Another study like this one, fitted with as many factors, is "
            f"more likely than not to miss {'it' if len(fragile) == 1 else 'each of them'}."
        )
    judged = [(factor.name, factor.stability.agreement) for factor in factors if factor.stability]
    shaky = [name for name, agreement in judged if agreement < words.STABLE[1][0]]
    if shaky:
        lowest = words.number(min(agreement for _, agreement in judged))
        sentences.append(
            f"Interpret with care: {words.joined(shaky)}. {'Its' if len(shaky) == 1 else 'Their'} loadings "
            f"vary across resamples (lowest agreement {lowest})."
        )
    doubtful = [factor.name for factor in factors if factor.key in report.fit.doubtful]
    if doubtful:
        sentences.append(
            f"Interpret with care: {words.joined(doubtful)}. A fit from another start describes the answers "
            f"as well without {'it' if len(doubtful) == 1 else 'them'}."
        )
    return sentences


def _worse_than_means(items: tuple[Values, ...]) -> list[str]:
    """Items whose hidden answers the model predicts worse than their mean does."""
    worse = [row.name for row in items if row.fit_hidden is not None and row.fit_hidden < 0]
    if not worse:
        return []
    one = len(worse) == 1
    return [
        f"{words.spelled(len(worse)).capitalize()} item{'' if one else 's'} "
        f"({listed(worse, most=_MOST_NAMED)}) {'is' if one else 'are'} not described by the factors: the "
        f"model predicts hidden answers to {'it' if one else 'them'} worse than the item's mean does."
    ]


def headline(report: Report) -> list[str]:
    """The report in a few sentences."""
    registered = report.preregistration
    return [*([] if registered is None else [registered.headline]), *_results(report)]


def _results(report: Report) -> list[str]:
    k, fit, scores = len(report.model.factors), report.fit, report.scores
    if fit.no_structure:
        return _unstructured(report)
    confounds = [confound.name for confound in report.sample.confounds]
    together = f", together with {words.joined(confounds)}," if confounds else ""
    describe, explain = ("describes", "explains") if k == 1 else ("describe", "explain")
    sentences = [
        f"{words.spelled(k).capitalize()} factor{'' if k == 1 else 's'}{together} {describe} the answers of "
        f"{words.count_of(report.sample.n_fitted, 'participant')} to "
        f"{words.count_of(report.sample.n_items, 'item')} and {explain} "
        f"{words.percent(report.model.variance)} of their variance."
        + (
            ""
            if fit.r_squared_hidden is None
            else " For answers hidden from the model, its squared error is "
            f"{words.percent(fit.r_squared_hidden)} smaller than that of the items' means."
        ),
        report.count.words[0],
    ]
    agreements = [factor.stability.agreement for factor in report.model.factors if factor.stability]
    if agreements and min(agreements) >= words.STABLE[1][0]:
        sentences.append(
            f"{'The factor is' if k == 1 else 'All factors are'} stable when participants are resampled "
            f"(agreement of loadings {words.at_least(min(agreements))})."
        )
    if k > 1:
        none = scores.n_present[0]
        few = words.percent(none.share) if none.n is not None else words.members(none)
        sentences.append(
            f"{words.percent(scores.several)} of the participants have two or more factors (a score of "
            f"{scores.threshold:g} or more), and {few} have none."
        )
    return sentences


def _unstructured(report: Report) -> list[str]:
    """The headline where no replicable structure was found."""
    k = len(report.model.factors)
    fitted = "The factor below was" if k == 1 else f"The {words.spelled(k)} factors below were"
    return [
        f"{fitted} fitted to the answers of {words.count_of(report.sample.n_fitted, 'participant')} to "
        f"{words.count_of(report.sample.n_items, 'item')}. {NOT_REPLICABLE}: do not interpret "
        f"{'it' if k == 1 else 'them'}.",
        report.count.words[0],
    ]
