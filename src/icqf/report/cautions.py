"""What could be wrong with a result, said before how well all went."""

from __future__ import annotations

from icqf.errors import listed
from icqf.report import words
from icqf.report.schema import Count, FitQuality, ItemRow, Report

_MOST_NAMED = 3


def cautions(report: Report) -> list[str]:
    """Sentences on what the reader should doubt, the gravest first; empty where nothing stands out."""
    said = [*report.doubts, *([report.direction] if report.direction else [])]
    if not report.fit.converged and not report.fit.n_averaged:
        said.append("The fit had not converged: allow more iterations before relying on it.")
    if report.fit.no_structure:  # nothing is left to say of single factors
        return [_no_structure(report.fit), *said]
    said += _shaky(report)
    said += at_the_edge(report.count)
    comparison = report.comparison
    if comparison is not None and comparison.apart:
        apart = words.joined(comparison.apart)
        has = "has" if len(comparison.apart) == 1 else "have"
        said.append(
            f"Factor analysis disagrees: {apart} {has} no close counterpart in a factor analysis with the "
            "same number of factors."
        )
    said += _worse_than_means(report.items)
    return said


def _no_structure(fit: FitQuality) -> str:
    return (
        "No structure was found: answers that were hidden from the model are predicted no better than by the "
        f"items' means (R² of hidden answers {words.number(fit.r_squared_hidden)})."
    )


def _shaky(report: Report) -> list[str]:
    """Factors that resamples, or other starts, do not confirm."""
    factors, said = report.model.factors, []
    fragile = [factor.name for factor in factors if factor.replication and factor.replication.fragile]
    if fragile:
        said.append(
            f"Fragile: {words.joined(fragile)}. A second study of this size is more likely than not to miss "
            f"{'it' if len(fragile) == 1 else 'each of them'}."
        )
    judged = [(factor.name, factor.stability.agreement) for factor in factors if factor.stability]
    shaky = [name for name, agreement in judged if agreement < words.STABLE[1][0]]
    if shaky:
        lowest = words.number(min(agreement for _, agreement in judged))
        said.append(
            f"Read with care: {words.joined(shaky)}. {'Its' if len(shaky) == 1 else 'Their'} loadings change "
            f"when the participants are drawn again (lowest agreement {lowest})."
        )
    doubtful = [factor.name for factor in factors if factor.key in report.fit.doubtful]
    if doubtful:
        said.append(
            f"Another start of the fit describes the answers as well without {words.joined(doubtful)}: read "
            "with care."
        )
    return said


def at_the_edge(count: Count) -> list[str]:
    """A choice at the end of what was tried: the best may lie beyond it."""
    said = []
    tried = sorted({each.n_components for each in count.candidates})
    if len(tried) > 1 and count.n_components in (tried[0], tried[-1]):
        said.append(
            f"The number of factors lies at the edge of those tried ({tried[0]} to {tried[-1]}); try others "
            "beyond it before relying on it."
        )
    betas = sorted({each.beta for each in count.candidates})
    if len(betas) > 1 and count.beta == betas[-1]:
        said.append(
            f"The penalty lies at the upper end of those tried (β up to {betas[-1]:g}); try stronger ones "
            "before relying on it."
        )
    return said


def _worse_than_means(items: tuple[ItemRow, ...]) -> list[str]:
    """Items whose hidden answers the model predicts worse than their mean does."""
    worse = [row.name for row in items if row.fit_hidden is not None and row.fit_hidden < 0]
    if not worse:
        return []
    one = len(worse) == 1
    return [
        f"{words.spelled(len(worse)).capitalize()} item{'' if one else 's'} "
        f"({listed(worse, most=_MOST_NAMED)}) {'is' if one else 'are'} not described by the factors: hidden "
        f"answers to {'it' if one else 'them'} are predicted worse than by the item's mean."
    ]
