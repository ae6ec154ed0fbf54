"""Learn a crosswalk: answers to two questionnaires give a file that predicts one, a table and a page."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.analyses.crosswalk import DIFFERENT, LEVEL, LINKABLE, WEAK, Crosswalk, learn_crosswalk
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import options_in
from icqf.errors import Advice, InputError, counted, did_you_mean, is_note, listed, shown_p
from icqf.io.readers.questionnaires import NOT_IN_CODEBOOK
from icqf.io.study_files import StudyFiles
from icqf.io.write import write_table
from icqf.report.blocks import Block, Bullets, Grid, Section
from icqf.report.document import Document, made_by, write_document
from icqf.report.words import number
from icqf.workflow.new_answers import read_for_model
from icqf.workflow.norms import informed_scores
from icqf.workflow.options import CrosswalkOptions, StudyOptions
from icqf.workflow.read import InstrumentFile, find_instruments
from icqf.workflow.results_folder import write_tool_folder

FILE = "crosswalk.icqf"
KEYED = 0.25  # by which single answers correlate more than their sum, if directions are wrong
_SIDE_BY_SIDE = 3  # parts of the table on the page
_METHODS = {
    "answers": "the crosswalk, from all answers",
    "sum": "regression on the sum",
    "rank": "same rank (equipercentile)",
}


@dataclass(frozen=True, eq=False)
class BothAnswered:
    """The answers to both questionnaires, scores of the second, and columns to compare by."""

    names: tuple[str, str]
    source: Questionnaire
    target: Questionnaire
    scores: pd.DataFrame | None
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def read_both(options: CrosswalkOptions) -> BothAnswered:
    """Read the answers to both questionnaires."""
    study = options.study
    one = _part(replace(study, confounds=options.by), options.from_)
    other = _part(replace(study, groups=None), options.to)
    if one.name == other.name:
        raise InputError(
            f"Both questionnaires are called {one.name!r}.",
            code="same-name",
            remedy="Name two different ones, or give one of the codebooks another name.",
        )
    _, first = one.read()
    source, scores, files = first.questionnaire, None, [*first.files]
    _, second = other.read()
    if options.model is None:
        target, notes = second.questionnaire, second.questionnaire.notes
        files += second.files
    else:
        own = replace(other.options, items=(), reverse=())
        of_model = StudyFiles(**{name: vars(own)[name] for name in options_in(StudyFiles)})
        read = read_for_model(options.model, of_model)
        target, notes = read.questionnaire, read.notes
        _require_items_of(
            options.model, [item.name for item in target.items], second.questionnaire, other.name
        )
        scores = informed_scores(read.model, target)
        files += read.files
    both = [item.name for item in source.items if _same_column(item.name, source, target)]
    shared = [f"Both questionnaires contain {listed(both)}, so part of the target is known exactly."]
    told = [(one.name, source.notes), (other.name, notes)]
    said = [f"{name}: {note}" for name, own in told for note in own if not is_note(note, NOT_IN_CODEBOOK)]
    said += shared[: len(both)]
    return BothAnswered((one.name, other.name), source, target, scores, (*said,), (*dict.fromkeys(files),))


def _require_items_of(model: Path, items: list[str], named: Questionnaire, name: str) -> None:
    """Refuse a model of another questionnaire than the one that is named."""
    known = {item.name for item in named.items}
    others = [item for item in items if item not in known]
    if 2 * len(others) > len(items):
        raise InputError(
            f"{model}: this is a model of {listed(items, most=3)}, but the items of {name!r} are "
            f"{listed([item.name for item in named.items], most=3)}.",
            code="other-model",
            remedy=f"Give the results of icqf fit for {name!r}, or name the model's questionnaire.",
        )


def _same_column(name: str, source: Questionnaire, target: Questionnaire) -> bool:
    """Whether an item is in both questionnaires, with the same answers."""
    if name not in target.answers:
        return False
    both = source.answers[[name]].join(target.answers[name], rsuffix=" of the target").dropna()
    return len(both) > 0 and bool((both.iloc[:, 0] == both.iloc[:, 1]).all())


def _part(study: StudyOptions, given: str) -> InstrumentFile:
    """A questionnaire that was named, or whose codebook or pattern of items was given."""
    path = Path(given)
    if path.is_file():
        if study.answers.is_dir():
            raise InputError(
                f"{given}: this is a file, but {study.answers} is a folder.",
                code="codebook-of-folder",
                remedy="Name the questionnaires after their files in the folder, without ending.",
            )
        return InstrumentFile(path.stem, replace(study, codebook=path))
    if "*" in given:
        return InstrumentFile(given.strip("*").strip("_.- ") or "all", replace(study, items=(given,)))
    several = study.answers.is_dir() or study.codebook is not None
    found = {each.name: each for each in find_instruments(study)} if several else {}
    if given not in found:
        known = f" The questionnaires are {listed(found, most=12)}." if found else ""
        raise InputError(
            f"There is no questionnaire and no codebook {given!r}.{did_you_mean(given, found)}{known}",
            code="no-instrument",
            remedy=Advice(
                "Give a file in a folder of answers, an instrument in {codebook}, a codebook, or a pattern "
                "of items such as 'phq*'."
            ),
        )
    return found[given]


def crosswalk_of(both: BothAnswered, options: CrosswalkOptions) -> Crosswalk:
    """Learn the crosswalk."""
    return learn_crosswalk(
        both.source,
        both.target,
        names=both.names,
        scores=both.scores,
        by=both.source.confounds if options.by else None,
    )


def write_crosswalk_folder(
    made: Crosswalk, folder: str | os.PathLike[str], *, both: BothAnswered, command: str = "", **how: Any
) -> list[str]:
    """Write the crosswalk, its table, how near held-out predictions came, and a page to print.

    `how` is for `write_tool_folder`.
    """

    def write(place: Path) -> None:
        made.save(place / FILE)
        write_table(made.table(), place / "table.csv", decimals=1)
        write_table(pd.DataFrame(made.evidence).set_index("score"), place / "evidence.csv")
        write_document(
            place / "crosswalk.html", crosswalk_page(made, command), formats=(".html", ".md", ".docx")
        )

    result = {"evidence": list(made.evidence), "groups": list(made.groups), "sentences": verdicts(made)}
    return write_tool_folder(folder, "crosswalk", write, both.files, result, both.notes, **how)


def verdicts(made: Crosswalk) -> list[str]:
    """How near predictions come, and whether the two questionnaires may be linked, in words."""
    rows = {each["method"]: each for each in made.evidence if each["score"] == made.scores[0]}
    own, plain = rows["answers"], rows["sum"]
    r, one, other = own["correlation"], made.source, made.target
    gone = int(100 - 100 * np.sqrt(1 - min(abs(made.correlation), 1) ** 2))
    said = [
        f"For held-out participants, the sum of {other} was predicted from {one} with a correlation "
        f"of {r:.2f} ({plain['correlation']:.2f} by regression on the sum) and a mean error of "
        f"{own['error']:.1f} points (without {one}: {own['usual_error']:.1f}). The {LEVEL:.0%} intervals, "
        f"{own['width']:.1f} points wide on average, contained {own['held']:.0%} of their sums."
    ]
    if made.link is not None:
        said.append(
            f"The sums correlate {made.correlation:.3f}: enough to link them (from {LINKABLE:g}, half of the "
            "uncertainty about a participant is gone)."
        )
    else:
        said.append(
            f"The sums correlate {made.correlation:.3f}, too little to link them: that removes {gone}% of "
            f"the uncertainty about a participant, and linking needs {LINKABLE:g}, which removes half. There "
            "are predictions with intervals, but no linked scores."
        )
    if r > plain["correlation"] + KEYED and r >= WEAK:
        said.append(
            f"All answers together predict {other} far better than their sum does, as they do if items of "
            f"{one} are worded in the opposite direction and not reversed. Check the directions in the "
            "codebook: the table, which uses the sum, depends on them."
        )
    if r < WEAK:
        said.append(
            f"{one} says little about {other}: predictions are hardly better than the mean of all "
            "participants."
        )
    for each in made.groups:
        if each["rmsd"] >= DIFFERENT and each["p"] < 0.05:
            errors = ", ".join(f"{group} {_signed(value)}" for group, value in each["errors"].items())
            said.append(
                f"Predictions err differently by {each['column']} (RMSD {each['rmsd']:.2f} SD, p "
                f"{shown_p(each['p'], equals='= ')}; mean error: {errors}). The groups need crosswalks of "
                "their own."
            )
    return said


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"  # no "-0.0"


def crosswalk_page(made: Crosswalk, command: str = "") -> Document:
    """The page of a crosswalk: what it is worth, the table, and how to use it."""
    one, other, table = made.source, made.target, made.table()
    lead = verdicts(made)
    linked = "linked" in table
    rows = [
        [f"{at:g}", f"{row['predicted']:.1f}", f"{row['low']:.4g} to {row['high']:.4g}"]
        + ([f"{row['linked']:.1f}"] if linked else [])
        for at, row in zip(table.index, table.to_dict("records"), strict=True)
    ]
    head = [one, f"{other}, predicted", f"{LEVEL:.0%} interval", *(["same rank"] if linked else [])]
    size = -(-len(rows) // _SIDE_BY_SIDE)
    rows += [[""] * len(head)] * (size * _SIDE_BY_SIDE - len(rows))
    abreast = [[cell for row in rows[at::size] for cell in row] for at in range(size)]
    grid = Grid(f"{other} from {one}", head * _SIDE_BY_SIDE, abreast, quiet=True)
    sections = [
        Section(
            f"Sum of {other} from the sum of {one}",
            [
                f"About {made.n_participants} participants answered both. Sums that few of them reached are "
                f"left out.{_counted_reversed(made)}",
                grid,
            ],
        ),
        Section("How to use it", [_legend(made)]),
        Section("Participants who were held out", _evidence(made)),
    ]
    return Document(f"{other} from {one}", lead[:2], sections, footer=made_by(command), cautions=lead[2:])


def _counted_reversed(made: Crosswalk) -> str:
    """How to add up the answers by hand, where that is not plain."""
    n = sum(item.reverse for item in made.items)
    if not n:
        return ""
    low, high = made.item_range_.sum()
    return (
        f" Before adding up, reverse the {counted(n, 'reverse-keyed item')} of {made.source} (lowest plus "
        f"highest answer, minus the answer); the sum is then between {low:g} and {high:g}."
    )


def _legend(made: Crosswalk) -> Bullets:
    entries = [
        "A predicted sum is the mean of participants with such answers. It is for single participants, and "
        "nearer to the middle than measured sums (regression to the mean): predicted sums vary less, and "
        "fewer of them are above a cut-off. Do not count cases with them.",
        f"The interval contains the sum of {made.target} for {LEVEL:.0%} of participants with such answers.",
        f"The table uses the sum of {made.source} alone. icqf score uses all answers, and some may be "
        "missing.",
        "All of this holds for people like those who answered both. Others may differ.",
    ]
    if made.link is not None:
        entries.insert(
            1,
            f"The sum of {made.target} with the same rank (equipercentile linking) varies as measured sums "
            "do. It is for comparing groups or distributions, not for one participant.",
        )
    return Bullets(entries)


def _evidence(made: Crosswalk) -> list[Block]:
    rows = [
        [
            each["score"].removeprefix(f"{made.target}_"),
            _METHODS[each["method"]],
            f"{each['correlation']:.2f}",
            number(each["error"]),
            *("–" if each[name] is None else f"{each[name]:.0%}" for name in _HELD),
        ]
        for each in made.evidence
    ]
    head = [
        "score",
        "method",
        "correlation",
        "mean error",
        "in the interval",
        "low third",
        "middle",
        "high third",
    ]
    note = (
        f"In the interval: the share of held-out participants whose score was in the {LEVEL:.0%} interval, "
        "of all and by predicted score. Correlations are within folds."
    )
    parts: list[Block] = [Grid("How near predictions came", head, rows, note=note)]
    if made.groups:
        groups = [
            [
                each["column"],
                "; ".join(f"{group}: {_signed(value)}" for group, value in each["errors"].items()),
                f"{each['rmsd']:.3f}",
                shown_p(each["p"]),
            ]
            for each in made.groups
        ]
        note = (
            "RMSD: distance of the groups' predictions from those for all, in standard deviations; from "
            f"{DIFFERENT:g}, with p < 0.05, groups need crosswalks of their own."
        )
        parts.append(Grid("By group", ["column", "mean error", "RMSD", "p"], groups, note=note))
    return parts


_HELD = ("held", "held_low", "held_middle", "held_high")
