"""Missing answers: what leaving out depends on, and how far results depend on the answers left out."""

from __future__ import annotations

from icqf.analyses.missingness import MissingAnswers, sensitivity_sentence
from icqf.data.missing_answers import ALPHA, confound_sentence
from icqf.errors import shown_p
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Details, Grid
from icqf.report.section import report_section
from icqf.report.words import Report, Values

_MEASURES = ("delta", "congruence", "loading_move", "score_correlation", "score_move")


@report_section("missing", "Missing answers")
def missing(report: Report) -> list[Block] | None:
    """Whether leaving out depends on scores and confounds, and what the answers could have changed."""
    values = report.missing
    if values is None:
        return None
    names = [factor.name for factor in report.model.factors]
    rows = [
        [
            f"{_signed(row.delta, 2)} SD" if row.delta else "as expected",
            words.number(row.congruence, 3),
            words.percent(row.loading_move, 1),
            words.number(row.score_correlation, 3),
            words.number(row.score_move, 3),
        ]
        for row in values.sensitivity
    ]
    head = [
        *("Missing answers", "Lowest congruence of loadings", "Largest move of a loading (of its range)"),
        *("Lowest correlation of scores", "Mean move of scores"),
    ]
    table = Grid(
        "Refits with missing answers higher or lower than the model expects; scores move for those who left "
        "something out",
        head,
        rows,
        label="What missing answers could change",
    )
    moved = Details("Refits with the missing answers higher or lower", [table, *_note(values)])
    return [*values.words, *_by_score(values, names), values.verdict, moved]


def _signed(value: float, digits: int) -> str:
    return ("+" if value > 0 else "") + words.number(value, digits)


def _by_score(values: Values, names: list[str]) -> list[Block]:
    """What the comparison of pairs found; the table of factors is folded away."""
    if not values.scores:
        return ["Too few participants differ in how much they left out to compare their scores."]
    clear = [at for at, row in enumerate(values.scores) if row.p_adjusted <= ALPHA]
    how = (
        f"{words.count_of(values.n_pairs, 'pair')} of participants, of whom one left out more, were compared "
        "on the items that both answered (sign-flip test of Wilcoxon's signed ranks, adjusted for the number "
        "of factors)."
    )
    if clear:
        parts = []
        for at in clear:
            row = values.scores[at]
            side = "higher" if row.difference > 0 else "lower"
            p = shown_p(row.p_adjusted, equals="= ")
            parts.append(f"{words.number(abs(row.difference))} {side} on {names[at]} (p {p})")
        finding = (
            f"Leaving out depends on scores: participants who left out more score {words.joined(parts)}, so "
            "answers are not missing at random."
        )
    else:
        p = shown_p(min(row.p_adjusted for row in values.scores), equals="= ")
        finding = f"No sign that leaving out depends on scores (p {p})."
    rows = [
        [name, _signed(row.difference, 3), shown_p(row.p), shown_p(row.p_adjusted)]
        for name, row in zip(names, values.scores, strict=True)
    ]
    head = ["Factor", "Mean difference", "p", "p, adjusted"]
    grid = Grid("Scores of those who left out more, minus those who left out less", head, rows, scroll=False)
    return [f"{finding} {how}", Details("Scores and leaving out, by factor", [grid])]


def _note(values: Values) -> list[Block]:
    sentence = (
        "Each missing answer was filled in with the one that the model expects, moved by that many standard "
        "deviations of the item's answers within its range, and the model was refitted from its solution "
        "with the same penalties. The fit that this report describes uses no filled-in answer. What people "
        "would have answered cannot be known from the data."
    )
    if values.n_refitted < values.n_fitted:
        part = f"{words.whole(values.n_refitted)} participants drawn at random"
        sentence += f" To save time, the refits are of {part}."
    return [sentence]


def missing_values(analysis: Analysis) -> Values | None:
    """Counts, tests and refits; None where nothing is said about missing answers."""
    found: MissingAnswers | None = analysis.missing
    if found is None:
        return None
    n, limit = analysis.stated.problem.n, analysis.model.smallest_category
    few = found.n_participants < limit
    who = f"fewer than {limit}" if few else words.whole(found.n_participants)
    share, weighted = found.n_missing / found.n_asked, analysis.stated.problem.weights is not None
    aside = "" if analysis.questionnaire.structural is None else "; items that were not asked do not count"
    sentences = [
        f"{who.capitalize()} of {words.whole(n)} participants left something out: "
        f"{words.percent(share, 1)} of the answers are missing{aside}."
    ]
    if len(found.confounds):
        grouped = analysis.questionnaire.groups is not None
        sentences.append(confound_sentence(found.confounds, grouped=grouped, weighted=weighted))
    if weighted:
        sentences.append("Whether leaving out depends on scores is tested without survey weights, too.")
    scores = found.scores.iloc[:0] if found.n_pairs < limit else found.scores
    return Values(
        words=tuple(sentences),
        verdict=sensitivity_sentence(found),
        n_pairs=0 if found.n_pairs < limit else found.n_pairs,
        n_refitted=found.n_refitted,
        n_fitted=n,
        robust_up_to=-1.0 if found.robust_up_to is None else found.robust_up_to,
        scores=tuple(
            Values(
                difference=float(row["difference"]), p=float(row["p"]), p_adjusted=float(row["p_adjusted"])
            )
            for row in scores.to_dict("records")
        ),
        sensitivity=tuple(
            Values(**{name: float(row[name]) for name in _MEASURES})
            for row in found.sensitivity.to_dict("records")
        ),
    )
