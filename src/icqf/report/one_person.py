"""A page about one person's answers, to read together: one sheet of A4, in words without jargon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.errors import shortened
from icqf.plotting.style import factor_names
from icqf.report.blocks import Bar, Block, Cell, Column, Grid, Prose, Section, Span
from icqf.report.document import Document, made_by
from icqf.report.words import count_of, interval, joined, number, spelled
from icqf.screening.missing_codes import number as plain_number

if TYPE_CHECKING:
    from icqf.analyses.person import Person, Unexpected
    from icqf.models.base import FittedModel

LEAST_RAISE = 0.01
RELIABLE = 0.05  # p-value of a change that is called one
MANY = 0.01  # probability of so many unexpected answers that the scores are doubted
WELL = ((0.8, ""), (0.6, "fairly well measured"), (0.0, "roughly measured"))
_MOST_ROWS, _MOST_EACH, _MOST_UNEXPECTED, _MOST_MISSING = 20, 3, 5, 6
_WORDING, _NAME = 72, 40
_MANY_AREAS = 8  # above which the print is smaller


def person_page(
    person: Person,
    model: FittedModel,
    *,
    percentiles: pd.Series | None = None,
    reference: str = "",
    alike: str = "",
    unknown: str = "",
    visit: str = "",
    before: str = "",
) -> Document:
    """Return the page about one person; it holds that person's answers, and is never part of a report.

    Parameters
    ----------
    person : Person
        From `icqf.analyses.describe_person`.
    model : ICQF
        The model that gave the scores.
    percentiles : Series, optional
        By factor, from 0 to 100, in the sample that `reference` describes in a sentence.
    alike : str
        What is the same in the people compared with, such as "age (9.4) and sex (male)".
    unknown : str
        Why there are no percentiles.
    visit, before : str
        What the visit is called, and the one before.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import describe_person
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import person_page
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2).fit(demo)
    >>> page = person_page(describe_person(model, demo.take([7])), model)
    >>> page.title, len(page.sections)
    ('Answers of C0008', 4)
    """
    items = {item.name: item for item in person.questionnaire.items}
    keys = model.get_feature_names_out()
    shown = zip(keys, factor_names(keys, None), strict=True)
    names = {str(key): shortened(name, _NAME) for key, name in shown}
    n_items, n_given = len(items), len(items) - len(person.missing)
    called = shortened(person.id, _NAME)
    occasion = f" at visit {shortened(visit, _NAME)}" if visit else ""
    answered = f"{n_given or 'None'} of {count_of(n_items, 'question')} answered{occasion}"
    top = "1 (as much as the questions can show)" if model.score_max == 1 else "higher values"
    private = Span("Private: this page holds one person’s answers.", "strong")
    lead: list[str | Prose] = [Prose([private, " Give it only to those who may see them."])]
    if not n_given:
        lead.append(f"{answered}, so there are no scores.")
        return Document(f"Answers of {called}", lead, [], made_by("icqf person"), kind="sheet")
    lead.append(
        f"{answered}. Each score summarises answers that tend to go together, from 0 (none of it) to {top}. "
        "Scores describe answers; they are not a diagnosis. If something here worries you, ask "
        "the person who gave you this page."
    )
    unexpected = person.unexpected
    if unknown:
        percentiles = None
    sections = [
        _profile(person, model, names, items, percentiles, _compared(alike, reference, unknown), before),
        _raising(person, names, items),
        *([] if unexpected is None else [_unexpected(unexpected, items, n_given)]),
        _left_out(person.missing, items, model, names),
    ]
    confounds = joined([column.name for column in model.confound_encoder_.columns])
    footer = (
        f"{made_by('icqf person')} The scores come from a model of the answers of {model.n_participants_} "
        f"people{f', which allows for {confounds}' if confounds else ''}."
    )
    kind = "sheet dense" if len(names) > _MANY_AREAS else "sheet"
    return Document(f"Answers of {called}", lead, sections, footer, kind=kind)


def _profile(
    person: Person,
    model: FittedModel,
    names: dict[str, str],
    items: dict[str, Item],
    percentiles: pd.Series | None,
    compared: str,
    before: str,
) -> Section:
    """The scores, with all that is known about each."""
    found, known, change = person.scores, person.intervals, person.change
    highs = found if known is None else known.high.iloc[0]
    highest = model.score_max or max([1e-9, *found.dropna(), *highs.dropna()])
    head: list[object] = ["Area", Column("Score as a bar", drawn=True, quiet=True)]
    head.append(Column("Score", numeric=True))
    head += [] if known is None else [Column("Likely range", numeric=True)]
    head += [] if percentiles is None else [Column("Percentile", numeric=True)]
    head += [] if change is None else [f"Since visit {shortened(before, 24)}" if before else "Change"]
    rows = []
    for key, name in names.items():
        score, strength = found[key], model.loadings_[key].div(np.ptp(model.item_range_, axis=1))
        top = strength[strength > 0].nlargest(1 if name == key else 2)  # a name says more than "Factor 1"
        about = joined([_question(items[item], 32 if len(names) > _MANY_AREAS else 44) for item in top.index])
        row: list[object] = [Cell(name, note=f"such as: {about}" if about else "")]
        bar = Bar(score / highest)
        if known is not None:
            low, high = known.low[key].iloc[0], known.high[key].iloc[0]
            bar = Bar(score / highest, low / highest, high / highest)
        row += [Cell(spoken="no score") if np.isnan(score) else Cell(drawing=bar), number(score)]
        if known is not None:
            told, why = known.information[key].iloc[0], known.reasons[key].iloc[0]
            well = next((word for least, word in WELL if told >= least), "")
            row.append(Cell(interval(low, high), note=why or well))
        row += [] if percentiles is None else [_percentile(percentiles.get(key, np.nan), score)]
        row += [] if change is None else [_changed(change, key, score)]
        rows.append(row)
    parts: list[Block] = [_highest(person, names), Grid("Scores", head, rows, quiet=True)]
    if known is None:
        parts.append("How sure these scores are is unknown: the model was fitted to too few people.")
    else:
        parts.append(
            "Likely range (a thin line where scores are drawn): no questionnaire measures exactly; "
            f"ranges like these hold the true score of {known.level * 100:.0f} in 100 people."
        )
    parts.append(compared)
    if change is not None:
        told = "A higher score means more of it. “No clear change”: too small to tell from chance."
        if (change["p_value"] < RELIABLE).any():
            told += " “Higher” or “lower”: fewer than 5 of 100 people would differ so much by chance."
        parts.append(told)
    return Section("Scores", parts)


def _compared(alike: str, reference: str, unknown: str) -> str:
    """What a percentile means, and who the others are; or why there is none."""
    if unknown:
        return f"The scores are not compared with those of other people: {unknown}. {reference}"
    if not reference:
        return "The scores are not compared with those of other people: without norms, none is “normal”."
    others = f"people of the same {alike}" if alike else "comparable people"
    return (
        f"Percentile: of 100 {others}, this many score lower; those with the same score count half. "
        f"Half of all people are between 25 and 75. {reference}"
    ).strip()


def _percentile(percentile: float, score: float) -> object:
    """A percentile; that of a score of 0 is half of the share of people who have it."""
    if score >= 0.005 or np.isnan(percentile):
        return number(percentile, 0)
    return Cell(number(percentile, 0), note=f"{number(min(2 * percentile, 100), 0)} of 100 have 0")


def _highest(person: Person, names: dict[str, str]) -> str:
    """The highest scores in a sentence."""
    found = person.scores.dropna().sort_values(ascending=False, kind="stable")
    told, known = [], person.intervals
    for key, score in found[found >= 0.1][:2].items():
        ends = (
            "" if known is None else f", likely {interval(known.low[key].iloc[0], known.high[key].iloc[0])}"
        )
        told.append(f"{names[str(key)]} ({number(score)}{ends})")
    if not told:
        return "No score reaches 0.1: the answers show little of anything asked about."
    highest = f"Highest {'scores' if len(told) > 1 else 'score'}: {joined(told)}."
    if known is None or len(found) == len(told):
        return highest
    least = min(known.low[key].iloc[0] for key in found.index[: len(told)])
    if max(known.high[key].iloc[0] for key in found.index[len(told) :]) <= least:
        return highest
    return f"{highest} Likely ranges of others overlap with these, so the order is not certain."


def _changed(change: pd.DataFrame, key: str, score: float) -> str:
    numbers = change.loc[key, ["difference", "p_value"]].to_numpy(dtype=float)
    difference, p_value = float(numbers[0]), float(numbers[1])
    if np.isnan(difference):
        return "–"
    course = f"({number(score - difference)} → {number(score)})"
    if p_value >= RELIABLE:
        return f"no clear change {course}"
    return f"▲ higher {course}" if difference > 0 else f"▼ lower {course}"


def _raising(person: Person, names: dict[str, str], items: dict[str, Item]) -> Section:
    """The answers that raise each score most; fewer of each where there are many scores."""
    order = person.scores.sort_values(ascending=False, kind="stable")
    order = order[order > LEAST_RAISE]
    most = max(6, _MOST_ROWS - len(names))
    each = max(1, min(_MOST_EACH, most // max(len(order), 1)))
    rows: list[Sequence[object]] = []
    example = ""
    for key in order.index[:most]:
        raised = person.raises[key].sort_values(ascending=False, kind="stable")
        for at, (item, amount) in enumerate(raised[raised >= LEAST_RAISE][:each].items()):
            name = Cell(names[key]) if at == 0 else Cell(spoken=names[key])
            entry, given = items[str(item)], person.questionnaire.answers[item].iloc[0]
            rows.append([name, _question(entry), _answer(entry, given), f"+{number(amount)}"])
            opposite = _answer(entry, float((entry.max if entry.reverse else entry.min) or 0.0))
            example = example or (
                f"with “{opposite}” for {_question(entry, 44)}, {names[key]} would be "
                f"{number(person.scores[key] - amount)} instead of {number(person.scores[key])}"
            )
        if not raised.max() >= LEAST_RAISE:
            rows.append([names[key], "no single answer, but many together", "", "–"])
    heading = "Answers that raise the scores most"
    if not rows:
        return Section(heading, ["No score is above 0."])
    head = ["Area", "Question", "Answer", Column("Raises the score by", numeric=True)]
    told = "How much lower the score would be with the answer at the other end of the scale"
    told += f": {example}." if example and len(names) <= _MANY_AREAS else "."
    return Section(heading, [told, Grid(heading, head, rows, quiet=True)])


def _unexpected(found: Unexpected, items: dict[str, Item], n_answers: int) -> Section:
    """The answers that people with these scores hardly ever give."""
    heading, n = "Answers that do not fit the rest", len(found.answers)
    usual = f"about {found.by_chance:.0f}" if found.by_chance >= 0.95 else "fewer than one"
    chance = f"Of {count_of(n_answers, 'answer')}, {usual} would be listed here by chance."
    if not n:
        return Section(heading, [f"No answer is surprising, given the others. {chance}"])
    told = (
        "People with these scores hardly ever answer so high or so low: a slip, a misunderstanding, or "
        f"something worth asking about. {chance}"
    )
    if found.probability <= MANY:
        told += (
            f" {spelled(n).capitalize()} are more than chance explains: the scores may not describe this "
            "person well."
        )
    rows = [
        [_question(items[item]), _answer(items[item], answer), _answer(items[item], expected, about=True)]
        for item, answer, expected, _ in found.answers[:_MOST_UNEXPECTED].itertuples(index=False)
    ]
    note = f"And {count_of(n - len(rows), 'more answer')}." if n > len(rows) else ""
    grid = Grid(heading, ["Question", "Answer", "Expected from the scores"], rows, note=note, quiet=True)
    return Section(heading, [told, grid])


def _left_out(
    missing: Sequence[str], items: dict[str, Item], model: FittedModel, names: dict[str, str]
) -> Section:
    """What was not answered, with the area that each question says most about."""
    heading = "Questions left out"
    if not missing:
        return Section(heading, ["None: every question was answered."])
    loadings = model.loadings_.loc[list(missing)]
    area = {
        item: f" ({names[str(row.idxmax())]})" if row.max() > 0 and len(names) <= _MANY_AREAS else ""
        for item, row in loadings.iterrows()
    }
    shown = "; ".join(f"{_question(items[name], 60)}{area[name]}" for name in missing[:_MOST_MISSING])
    rest = f"; and {len(missing) - _MOST_MISSING} more" if len(missing) > _MOST_MISSING else ""
    told = (
        f"{len(missing)} of {count_of(len(items), 'question')}: {shown}{rest}. They count neither as high "
        "nor as low; with fewer answers, the likely range is wider."
    )
    return Section(heading, [told])


def _question(item: Item, most: int = _WORDING) -> str:
    return f"“{shortened(item.wording or item.name, most)}”"


def _answer(item: Item, value: float, *, about: bool = False) -> str:
    """An answer in words if it has a label, else as a number within its range."""
    low, high = float(item.min or 0.0), float(item.max or 0.0)
    labels = {code: text for code, text in item.labels if low <= code <= high and text}
    nearest = min(labels, key=lambda code: abs(code - value), default=None)
    if nearest is not None and (about or nearest == value):
        return f"{'about ' if about else ''}{shortened(labels[nearest], 32)} ({plain_number(nearest)})"
    text = f"about {number(value, 1)}" if about else plain_number(value)
    return f"{text} ({plain_number(low)} to {plain_number(high)})"
