"""What was analysed, the sample, and (on request) the participants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pandas as pd

from icqf.analyses.factor_properties import Counterparts
from icqf.analyses.missingness import MissingAnswers, sensitivity_sentence
from icqf.data.answers import describe_answers, describe_confound, missing_bands
from icqf.data.missing_answers import ALPHA, confound_sentence, count_left_out
from icqf.data.questionnaire import Questionnaire
from icqf.errors import shown_p
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Bar, Block, Bullets, Cell, Column, Details, Grid, Group
from icqf.report.sections import report_section
from icqf.report.words import Report, Values, bar_of


def item_cell(row: Values) -> Cell:
    """The first cell of a row about an item: its wording, and its name in small print."""
    return Cell(item_label(row.name, row.wording, row.reverse), note=row.name if row.wording else "")


def counts_grid(caption: str, what: str, bars: tuple[Values, ...]) -> Grid:
    """Numbers of participants with bars; small counts are not shown."""
    rows = [
        [each.label, words.members(each), Cell(drawing=Bar(each.share or 0)), words.percent(each.share)]
        for each in bars
    ]
    numbers = Column("Participants", numeric=True)
    head = [what, numbers, Column("Share", drawn=True, quiet=True), Column("Share", numeric=True)]
    return Grid(caption, head, rows, kind="bars", scroll=False)


@report_section("analysed", "What was analysed")
def analysed(report: Report) -> list[Block]:
    """Which columns were read, and how: pairs of a heading, empty where it is that before, and a text."""
    rows = [[Cell(head, spoken="and"), text] for head, text in report.analysed.lines]
    return [Grid("", [], rows, kind="plain", scroll=False), *report.analysed.words]


@report_section("sample", "The sample")
def sample(report: Report) -> list[Block]:
    """Who answered, and how each item was answered."""
    values = report.sample
    bands = counts_grid("Missing answers by participant", "Answers missing", values.missing_by_participant)
    parts: list[Block] = [Group([list(values.words), bands])]
    if values.subscales:
        parts.append(f"Subscales: {', '.join(f'{name} ({n})' for name, n in values.subscales)}.")
    scales = bool(values.subscales)
    head = ["Item", *(["Subscale"] if scales else []), Column("Range", numeric=True), "Answers", "Mean", "SD"]
    rows = [
        [
            item_cell(row),
            *([row.subscale] if scales else []),
            f"{row.low:g}–{row.high:g}",
            str(row.n_answered),
            words.number(row.mean),
            words.number(row.sd),
            words.percent(row.floor),
            words.percent(row.ceiling),
            words.percent(row.share_missing, 1),
        ]
        for row in report.items
    ]
    shown = "; reverse-keyed items are shown reversed" if any(row.reverse for row in report.items) else ""
    table = Grid(
        f"How the items were answered{shown}",
        [*head, "Lowest answer", "Highest answer", "Missing"],
        rows,
        kind="sortable",
        label="Table of items",
    )
    parts.append(Details("All items: mean, standard deviation, floor and ceiling, missing answers", [table]))
    if values.notes:
        parts.append(Details("Data preparation", [Bullets(values.notes)]))
    return parts


@report_section("participants", "Participants")
def participants(report: Report) -> list[Block] | None:
    """Each participant's scores, only on request."""
    if report.participants is None:
        return None
    rows = [
        [each.id, str(each.n_answered), *(words.number(value, 3) for value in each.scores)]
        for each in report.participants
    ]
    head = ["Participant", "Answers", *(factor.name for factor in report.model.factors)]
    table = Grid("Scores of every participant", head, rows, kind="sortable", quiet=True)
    return [
        "This section contains data on individual participants. Share it only with those who may see it.",
        Details("Scores of every participant", [table]),
    ]


def sample_values(analysis: Analysis) -> Values:
    """The sample in numbers and sentences; shares of missing answers are among the fitted participants."""
    questionnaire, stated, groups = analysis.questionnaire, analysis.stated, analysis.groups
    limit, kept = analysis.model.smallest_category, stated.kept
    n, m, everyone = stated.problem.n, analysis.answers.shape[1], questionnaire.n_participants
    structural, asked = None, None
    if questionnaire.structural is not None:
        asked = ~questionnaire.structural[kept].to_numpy(dtype=bool)
        structural = float((~asked).mean())
    bands = missing_bands(analysis.answers, asked)
    complete = float(bands["share"].iloc[0])
    left_out, n_asked = count_left_out(analysis.answers.notna().to_numpy(), asked)
    share = left_out / n_asked
    confounds = _confounds(questionnaire.confounds, kept, stated.encoder.smallest_category)
    sentences = [f"{words.count_of(n, 'participant')} answered {words.count_of(m, 'item')}."]
    if everyone > n:
        sentences.append(
            f"{words.count_of(everyone - n, 'further participant')} gave no answers (or had a weight of 0) "
            f"and {'was' if everyone - n == 1 else 'were'} left out."
        )
    every = "every item that they were asked" if structural else "every item"
    sentences.append(
        f"{words.percent(share, 1)} of the answers are missing, and {words.percent(complete)} of the "
        f"participants answered {every}. Missing answers are left out of the fit; nothing is imputed."
        if share
        else "No answer is missing."
    )
    if structural:
        sentences.append(
            f"{words.percent(structural, 1)} of the questions were not asked; they do not count as missing. "
            "The fit treats them as unknown, not as the lowest answer, so the loadings of such items come "
            "only from participants who were asked."
        )
    sentences += [_confound_words(confound, limit) for confound in confounds]
    n_reversed = sum(item.reverse for item in questionnaire.items)
    if n_reversed:
        sentences.append(
            f"{words.count_of(n_reversed, 'reverse-keyed item')} "
            f"{'was' if n_reversed == 1 else 'were'} reversed, so that a high answer always means more of "
            "the problem or trait."
        )
    weighted = stated.problem.weights is not None
    if weighted:
        sentences.append(
            "The model was fitted with sample weights; this description of the sample is unweighted."
        )
    return Values(
        words=tuple(sentences),
        source=questionnaire.source,
        n_participants=everyone,
        n_fitted=n,
        n_items=m,
        n_groups=None if groups is None else int(groups.max()) + 1,
        weighted=weighted,
        share_missing=share,
        share_structural=structural,
        complete=complete,
        missing_by_participant=tuple(
            bar_of(label, number, n, limit=limit)
            for label, number in bands[["label", "n"]].itertuples(index=False)
        ),
        confounds=confounds,
        subscales=tuple(Counter(item.subscale for item in questionnaire.items if item.subscale).items()),
        notes=tuple(questionnaire.notes),
    )


def _confounds(table: pd.DataFrame | None, kept: np.ndarray, limit: int) -> tuple[Values, ...]:
    if table is None:
        return ()
    return tuple(
        _confound(str(name), int(values.isna().sum()), describe_confound(values), limit)
        for name, values in table[kept].items()
    )


def _confound(name: str, n_missing: int, table: pd.Series, limit: int) -> Values:
    """Categories with their counts, or mean, spread and range."""
    confound = Values(name=name, n_missing=n_missing, categories=(), mean=None, sd=None, low=None, high=None)
    if table.name == "n":
        confound.categories = tuple(
            bar_of(label, n, int(table.sum()), limit=limit) for label, n in table.items()
        )
        return confound
    low, high = float(table["low"]), float(table["high"])
    # About a hundredth of the range: ages in whole years, not in digits that identify somebody.
    digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 0
    confound.mean, confound.sd = float(table["mean"]), float(table["sd"])
    confound.low, confound.high = round(low, digits), round(high, digits)
    return confound


def _category(label: str) -> str:
    """A category in a sentence: its label, or its number where no label is known."""
    number = pd.to_numeric(label, errors="coerce")
    return label if np.isnan(number) else f"coded {number:g}"


def _confound_words(confound: Values, limit: int) -> str:
    n = confound.n_missing
    missing = f"fewer than {limit} values" if n < limit else words.count_of(n, "value")
    gap = f" ({missing} missing)" if n else ""
    name = confound.name[:1].upper() + confound.name[1:]
    if confound.mean is not None:
        return (
            f"{name}: {confound.low:g} to {confound.high:g}, mean {words.number(confound.mean, 1)} "
            f"(SD {words.number(confound.sd, 1)}){gap}."
        )
    parts = [
        f"{words.members(bar)} {_category(bar.label)}"
        + ("" if bar.n is None else f" ({words.percent(bar.share)})")
        for bar in confound.categories
    ]
    return f"{name}: {words.joined(parts)}{gap}."


def item_values(analysis: Analysis, fit: pd.DataFrame, names: Mapping[str, str]) -> tuple[Values, ...]:
    """Wording, answers and fit of every item; `fit` is the summary's table, `names` the factors' names."""
    ranges, hidden, rival = analysis.model.item_range_, analysis.hidden, analysis.rival
    structural = analysis.questionnaire.structural
    asked = None if structural is None else ~structural[analysis.stated.kept].to_numpy(dtype=bool)
    answered = describe_answers(analysis.answers, ranges, asked)
    others = rival.items if isinstance(rival, Counterparts) else None
    return tuple(
        Values(
            name=item.name,
            wording=item.wording,
            subscale=item.subscale,
            reverse=item.reverse,
            low=float(ranges["min"].iloc[j]),
            high=float(ranges["max"].iloc[j]),
            n_answered=int(row["n_answered"]),
            **{key: float(row[key]) for key in ("share_missing", "mean", "sd", "floor", "ceiling")},
            strongest=names.get(fit["factor"].iloc[j], ""),
            explained=float(fit["variance_explained"].iloc[j]),
            fit=float(fit["r_squared"].iloc[j]),
            fit_hidden=None if hidden is None else float(hidden.by_item[j]),
            fit_comparison=None if others is None else float(others.iloc[j]),
        )
        for j, (item, (_, row)) in enumerate(
            zip(analysis.questionnaire.items, answered.iterrows(), strict=True)
        )
    )


def participant_values(questionnaire: Questionnaire, scores: pd.DataFrame) -> tuple[Values, ...]:
    """Every participant's id, number of answers and scores (NaN for those who answered nothing)."""
    answers = questionnaire.keyed_answers()
    given = answers.notna().sum(axis=1)
    return tuple(
        Values(id=str(name), n_answered=int(n), scores=tuple(float(value) for value in row))
        for name, n, row in zip(answers.index, given, scores.to_numpy(dtype=float), strict=True)
    )


_MEASURES = ["delta", "congruence", "loading_move", "score_correlation", "score_move"]


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
        scores=words.records(scores[["difference", "p", "p_adjusted"]]),
        sensitivity=words.records(found.sensitivity[_MEASURES]),
    )
