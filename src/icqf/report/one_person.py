"""A page about one person's answers, to read together: one sheet of A4, in words without jargon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    from icqf.models.icqf import ICQF

LEAST_RAISE = 0.01
RELIABLE = 0.05  # p-value of a change that is called one
MANY = 0.01  # probability of so many unexpected answers that the scores are doubted
WELL = ((0.8, ""), (0.6, "fairly well measured"), (0.0, "roughly measured"))
_NAME = 40


@dataclass(frozen=True)
class _Detail:
    """How much is said, and whether the print is smaller."""

    dense: bool
    name: int  # letters of an area
    about: int  # questions that describe an area
    wording: int  # letters of a question
    each: int  # answers that raise one score
    raising: int  # of them in all
    unexpected: int
    missing: int


# The first with which the page fits on its sheet is used.
_DETAILS = (
    _Detail(False, 40, 2, 72, 3, 20, 5, 6),
    _Detail(False, 40, 2, 72, 2, 12, 4, 6),
    _Detail(True, 40, 2, 72, 3, 20, 5, 6),
    _Detail(True, 40, 1, 60, 2, 12, 4, 4),
    _Detail(True, 32, 1, 48, 1, 8, 3, 3),
    _Detail(True, 24, 0, 40, 1, 5, 2, 2),
)
_SHEET = 755.0  # height of A4 within its margins, in points, less 3 %; the sizes below are those of style.css


def person_page(
    person: Person,
    model: ICQF,
    *,
    percentiles: pd.DataFrame | None = None,
    reference: str = "",
    alike: str = "",
    unknown: str = "",
    visit: str = "",
    before: str = "",
    informant: str = "",
) -> Document:
    """Return the page about one person; it holds that person's answers, and is never part of a report.

    Parameters
    ----------
    person : Person
        From `icqf.analyses.describe_person`.
    model : ICQF
        The model that gave the scores.
    percentiles : DataFrame, optional
        By factor the `percentile`, from 0 to 100, and `low` and `high`, those of the ends of the likely
        range; in the sample that `reference` describes in a sentence.
    alike : str
        What is the same in the people compared with, such as "age (9.4) and sex (male)".
    unknown : str
        Why there are no percentiles.
    visit, before : str
        What the visit is called, and the one before.
    informant : str
        Who filled in the form.

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
    areas = dict(zip(map(str, keys), factor_names(keys, None), strict=True))
    n_items, n_given = len(items), len(items) - len(person.missing)
    called = shortened(person.id, _NAME)
    occasion = f" at visit {shortened(visit, _NAME)}" if visit else ""
    answered = f"{n_given or 'None'} of {count_of(n_items, 'question')} answered{occasion}"
    top = "1 (as much as the questions can show)" if model.score_max == 1 else "higher values"
    if informant:
        answered += f", filled in by: {shortened(informant, _NAME)}"
    private = Span("Private: this page holds one person’s answers.", "strong")
    lead: list[str | Prose] = [Prose([private, " Give it only to those who may see them."])]
    if not n_given:
        lead.append(f"{answered}, so there are no scores.")
        return Document(f"Answers of {called}", lead, [], made_by("icqf person"), kind="sheet")
    lead.append(
        f"{answered}. Each score summarises answers that tend to go together, from 0 (none of it) to {top}. "
        "Scores describe answers; they are not a diagnosis, and no number here says when to worry: that "
        "depends on how much daily life suffers, and for how long. If something worries you, ask the person "
        "who gave you this page, or a doctor; do not wait for a score if somebody is in danger."
    )
    unexpected = person.unexpected
    if unknown:
        percentiles = None
    confounds = joined([column.name for column in model.confound_encoder_.columns])
    footer = (
        f"{made_by('icqf person')} The scores come from a model of the answers of {model.n_participants_} "
        f"people{f', which allows for {confounds}' if confounds else ''}."
    )
    compared = _compared(alike, reference, unknown)
    for detail in _DETAILS:
        names = {key: shortened(name, detail.name) for key, name in areas.items()}
        sections = [
            _profile(person, model, names, items, percentiles, compared, before, detail),
            _raising(person, names, items, detail),
            *([] if unexpected is None else [_unexpected(unexpected, items, n_given, detail)]),
            _left_out(person.missing, items, model, names, detail),
        ]
        if _height([*lead, footer], sections, dense=detail.dense) <= _SHEET:
            break
    kind = "sheet dense" if detail.dense else "sheet"
    return Document(f"Answers of {called}", lead, sections, footer, kind=kind)


def _height(texts: Sequence[str | Prose], sections: Sequence[Section], *, dense: bool) -> float:
    """About how high a printed page is, in points."""
    size, line, cell, row, gap, heading = (
        (7.4, 9.3, 6.8, 7.9, 2.2, 19.0) if dense else (8.6, 11.7, 8.0, 10.1, 3.3, 27.0)
    )
    width = 521.0

    def paragraph(text: str | Prose) -> float:
        letters = len(text) if isinstance(text, str) else 60
        return 3 + line * math.ceil(letters * 0.53 * size / width)

    total = 45 + sum(map(paragraph, texts))
    for section in sections:
        total += heading
        for part in section.parts:
            if isinstance(part, str):
                total += paragraph(part)
            elif isinstance(part, Grid):
                total += 6 + _table_height(part, width / (0.55 * cell), row, gap, dense=dense)
                total += paragraph(part.note) if part.note else 0
    return total


def _table_height(grid: Grid, letters: float, row: float, gap: float, *, dense: bool) -> float:
    """About how high a printed table is, with lines of so many letters."""
    columns = grid.columns
    rows = [[Cell(column.title) for column in columns], *grid.cells]
    drawn = np.array([column.drawn for column in columns])
    natural, least = np.zeros(len(columns)), np.zeros(len(columns))
    for cells in rows:
        for at, (cell, column) in enumerate(zip(cells, columns, strict=True)):
            words = [cell.text] if column.numeric and cells is not rows[0] else cell.text.split()
            natural[at] = max(natural[at], len(cell.text), 0.85 * len(cell.note))
            least[at] = max([least[at], *map(len, words), *(0.85 * len(word) for word in cell.note.split())])
    # as browsers do: each column has its longest word, and the rest is shared by what is missing
    spare = letters * (1 - drawn.sum() * (0.18 if dense else 0.24)) - (least + 2)[~drawn].sum()
    wanted = np.where(drawn, 0.0, natural - least)
    widths = np.where(drawn, letters, least + wanted * max(min(spare / max(wanted.sum(), 1e-9), 1.0), 0.0))
    total = 0.0
    for cells in rows:
        lines = [
            math.ceil(len(each.text) / max(wide, 1)) + math.ceil(0.85 * len(each.note) / max(wide, 1))
            for each, wide in zip(cells, widths, strict=True)
        ]
        total += gap + row * max([1, *lines])
    return total


def _profile(
    person: Person,
    model: ICQF,
    names: dict[str, str],
    items: dict[str, Item],
    percentiles: pd.DataFrame | None,
    compared: str,
    before: str,
    detail: _Detail,
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
        most = min(detail.about, 1 if name == key else 2)  # a name says more than "Factor 1"
        top = strength[strength > 0].nlargest(most)
        about = joined([_meaning(items[item], 32 if detail.dense else 44) for item in top.index])
        row: list[object] = [Cell(name, note=f"such as: {about}" if about else "")]
        bar = Bar(score / highest)
        if known is not None:
            low, high = known.low[key].iloc[0], known.high[key].iloc[0]
            bar = Bar(score / highest, low / highest, high / highest)
        row += [Cell(spoken="no score") if np.isnan(score) else Cell(drawing=bar), number(score)]
        if known is not None:
            known_well, why = known.information[key].iloc[0], known.reasons[key].iloc[0]
            well = next((word for least, word in WELL if known_well >= least), "")
            row.append(Cell(interval(low, high), note=why or well))
        row += [] if percentiles is None else [_percentile(percentiles, key, score)]
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
        text = "A higher score means more of it. “No clear change”: too small to tell from chance."
        if (change["p_value"] < RELIABLE).any():
            text += " “Higher” or “lower”: fewer than 5 of 100 people would differ so much by chance."
        parts.append(text)
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
        "Half of all people are between 25 and 75. “Likely” is for the likely range of the score. "
        f"{reference}"
    ).strip()


def _percentile(found: pd.DataFrame, key: str, score: float) -> object:
    """A percentile with its likely range; of those who have a score of 0, half count as lower."""
    percentile, low, high = found.loc[[key], ["percentile", "low", "high"]].to_numpy(dtype=float)[0]
    if np.isnan(percentile):
        return number(percentile, 0)
    notes = [f"{number(min(2 * percentile, 100), 0)} of 100 have 0"] if score < 0.005 else []
    if not np.isnan(low):
        notes.append(f"likely {number(low, 0)}–{number(high, 0)}")
    return Cell(number(percentile, 0), note="; ".join(notes))


def _highest(person: Person, names: dict[str, str]) -> str:
    """The highest scores in a sentence."""
    found = person.scores.dropna().sort_values(ascending=False, kind="stable")
    highest_scores, known = [], person.intervals
    for key, score in found[found >= 0.1][:2].items():
        ends = (
            "" if known is None else f", likely {interval(known.low[key].iloc[0], known.high[key].iloc[0])}"
        )
        highest_scores.append(f"{names[str(key)]} ({number(score)}{ends})")
    if not highest_scores:
        return "No score reaches 0.1: the answers show little of anything asked about."
    highest = f"Highest {'scores' if len(highest_scores) > 1 else 'score'}: {joined(highest_scores)}."
    if known is None or len(found) == len(highest_scores):
        return highest
    least = min(known.low[key].iloc[0] for key in found.index[: len(highest_scores)])
    if max(known.high[key].iloc[0] for key in found.index[len(highest_scores) :]) <= least:
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


def _raising(person: Person, names: dict[str, str], items: dict[str, Item], detail: _Detail) -> Section:
    """The answers that raise each score most; fewer of each where there are many scores."""
    order = person.scores.sort_values(ascending=False, kind="stable")
    order = order[order > LEAST_RAISE]
    most = detail.raising
    each = max(1, min(detail.each, most // max(len(order), 1)))
    rows: list[Sequence[object]] = []
    example = ""
    for key in order.index[:most]:
        raised = person.raises[key].sort_values(ascending=False, kind="stable")
        for at, (item, amount) in enumerate(raised[raised >= LEAST_RAISE][:each].items()):
            name = Cell(names[key]) if at == 0 else Cell(spoken=names[key])
            entry, given = items[str(item)], person.questionnaire.answers[item].iloc[0]
            rows.append([name, _question(entry, detail.wording), _answer(entry, given), f"+{number(amount)}"])
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
    text = "How much lower the score would be with the answer at the other end of the scale"
    text += f": {example}." if example and not detail.dense else "."
    return Section(heading, [text, Grid(heading, head, rows, quiet=True)])


def _unexpected(found: Unexpected, items: dict[str, Item], n_answers: int, detail: _Detail) -> Section:
    """The answers that people with these scores hardly ever give."""
    heading, n = "Answers that do not fit the rest", len(found.answers)
    usual = f"about {found.by_chance:.0f}" if found.by_chance >= 0.95 else "fewer than one"
    chance = f"Of {count_of(n_answers, 'answer')}, {usual} would be listed here by chance."
    if not n:
        return Section(heading, [f"No answer is surprising, given the others. {chance}"])
    text = (
        "People with these scores hardly ever answer so high or so low: a slip, a misunderstanding, or "
        f"something worth asking about. {chance}"
    )
    if found.probability <= MANY:
        text += (
            f" {spelled(n).capitalize()} are more than chance explains: the scores may not describe this "
            "person well."
        )
    rows = [
        [
            _question(items[item], detail.wording),
            _answer(items[item], answer),
            _answer(items[item], expected, about=True),
        ]
        for item, answer, expected, _ in found.answers[: detail.unexpected].itertuples(index=False)
    ]
    note = f"And {count_of(n - len(rows), 'more answer')}." if n > len(rows) else ""
    grid = Grid(heading, ["Question", "Answer", "Expected from the scores"], rows, note=note, quiet=True)
    return Section(heading, [text, grid])


def _left_out(
    missing: Sequence[str], items: dict[str, Item], model: ICQF, names: dict[str, str], detail: _Detail
) -> Section:
    """What was not answered, with the area that each question says most about."""
    heading = "Questions left out"
    if not missing:
        return Section(heading, ["None: every question was answered."])
    loadings = model.loadings_.loc[list(missing)]
    area = {
        item: f" ({names[str(row.idxmax())]})" if row.max() > 0 and not detail.dense else ""
        for item, row in loadings.iterrows()
    }
    most = detail.missing
    shown = "; ".join(f"{_question(items[name], 60)}{area[name]}" for name in missing[:most])
    rest = f"; and {len(missing) - most} more" if len(missing) > most else ""
    text = (
        f"{len(missing)} of {count_of(len(items), 'question')}: {shown}{rest}. They count neither as high "
        "nor as low; with fewer answers, the likely range is wider."
    )
    return Section(heading, [text])


def _question(item: Item, most: int) -> str:
    return f"“{shortened(item.wording or item.name, most)}”"


def _meaning(item: Item, most: int) -> str:
    """What a high score says about an item: a reversed one adds to it by low answers."""
    return f"the opposite of {_question(item, most)}" if item.reverse else _question(item, most)


def _answer(item: Item, value: float, *, about: bool = False) -> str:
    """An answer in words if it has a label, else as a number within its range."""
    low, high = float(item.min or 0.0), float(item.max or 0.0)
    labels = {code: text for code, text in item.labels if low <= code <= high and text}
    nearest = min(labels, key=lambda code: abs(code - value), default=None)
    if nearest is not None and (about or nearest == value):
        return f"{'about ' if about else ''}{shortened(labels[nearest], 32)} ({plain_number(nearest)})"
    text = f"about {number(value, 1)}" if about else plain_number(value)
    return f"{text} ({plain_number(low)} to {plain_number(high)})"
