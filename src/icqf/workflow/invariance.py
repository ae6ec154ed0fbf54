"""Compare groups of a study: a model and a file of answers give tables, a figure and a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from matplotlib.figure import Figure

from icqf.analyses.measurement_invariance import (
    ALIKE,
    ALPHA,
    FITTING,
    MATCHING,
    PERMUTING,
    RESAMPLING,
    Invariance,
    invariance,
)
from icqf.engines.progress import Progress, Stages
from icqf.errors import InputError, counted, shown_p
from icqf.io.write import write_table
from icqf.plotting import group_loadings
from icqf.plotting.style import default_settings, factor_names
from icqf.report.blocks import Block, Bullets, Grid, Picture, Prose, Section, Span
from icqf.report.document import Document, made_by, write_document
from icqf.workflow.new_answers import ModelledAnswers
from icqf.workflow.results_folder import DECIMALS, write_tool_folder

_SHOWN = 14


def compare_groups(
    read: ModelledAnswers,
    by: str,
    *,
    checkpoint: Path | None = None,
    callback: Callable[[Progress], object] | None = None,
    **parameters: Any,
) -> Invariance:
    """Compare the factors of the groups in a column of `read.extra`."""
    if read.extra is None:
        raise InputError(f"The column {by!r} was not read.")
    stages = Stages(callback, _expected_seconds(read, **parameters))
    how: dict[str, Any] = {"checkpoint": checkpoint, "callback": stages, **parameters}
    return invariance(read.model, read.questionnaire, by=read.extra[by], **how)


def _expected_seconds(
    read: ModelledAnswers,
    *,
    n_permutations: int = 999,
    n_resamples: int = 100,
    n_jobs: int | None = None,
    **_: Any,
) -> dict[str, float]:
    """Return the stages of a comparison, and what each takes on one processor."""
    n, m = read.questionnaire.answers.shape
    one, many = n * m / 1e6 * (len(read.model.components_) + 3), min(effective_n_jobs(n_jobs), 8)
    return {
        FITTING: 0.2 + 0.2 * one,
        MATCHING: 0.05 * one,
        PERMUTING: (0.2 + n_permutations / 1000 * 6 * one) / many,
        RESAMPLING: 0.3 + (0.2 + n_resamples / 100 * 3.5 * one) / many,
    }


def write_groups(
    result: Invariance,
    folder: str | os.PathLike[str],
    *,
    read: ModelledAnswers,
    command: str = "",
    **how: Any,
) -> list[str]:
    """Write a comparison of groups: tables, a figure and a page; `how` is for `write_tool_folder`."""
    wordings = {item.name: item.wording for item in read.questionnaire.items}

    def write(place: Path) -> None:
        for name in ("factors", "items", "loadings", "levels"):
            write_table(getattr(result, name), place / f"{name}.csv", decimals=DECIMALS)
        write_document(place / "groups.html", groups_page(result, wordings, command))

    found = {
        "verdict": result.verdict,
        "groups": result.sizes,
        "overlap": round(result.overlap, DECIMALS),
        "sentences": [result.hypothesis, *result.sentences],
    }
    return write_tool_folder(folder, "invariance", write, read.files, found, read.notes, **how)


def groups_page(result: Invariance, wordings: Mapping[str, str], command: str = "") -> Document:
    """Return the page of a comparison of groups."""
    shown = dict(zip(result.factors.index, factor_names(result.factors.index, None), strict=True))
    groups = ", ".join(f"{name} ({n})" for name, n in result.sizes.items())
    lead = [
        f"Groups: {groups}. {result.n_permutations} permutations, {result.n_resamples} resamples.",
        *result.sentences,
    ]
    sections = [
        _question_section(result),
        _factors_section(result, shown),
        _items_section(result, shown, wordings),
    ]
    return Document(
        f"Are the factors the same? Groups of {result.by}", lead, sections, footer=made_by(command)
    )


def _question_section(result: Invariance) -> Section:
    """The hypothesis, and what the words of the page mean."""
    legend = Bullets(
        [
            Prose([
                Span("different", "strong"), ": at equal scores, some items rise more steeply "
                f"with the factor in one group than in another, more than in permuted groups (p ≤ {ALPHA:g}, "
                "allowing for the number of factors).",
            ]),
            Prose([
                Span("same", "strong"), ": no such difference was found, and the groups' loadings have a "
                f"congruence of at least {ALIKE:g}. This does not prove that they are equal.",
            ]),
            Prose([
                Span("similar", "strong"), ": no such difference was found, but the congruence is lower, so "
                "one may have been missed.",
            ]),
            Prose([
                Span("overlap", "strong"), f" of the groups: {100 * result.overlap:.0f} %. It is 100 % where "
                "groups have the same scores and 0 % where they have none in common; the less overlap, "
                "the fewer participants are compared.",
            ]),
        ]
    )  # fmt: skip
    return Section("What is tested", [result.hypothesis, legend])


def _factors_section(result: Invariance, shown: Mapping[Any, str]) -> Section:
    rows = [
        [
            shown[name],
            row["verdict"],
            shown_p(row["p"], ALPHA) if result.tested else "–",
            f"{row['congruence']:.3f}",
            f"{row['found']:.2f}",
        ]
        for name, row in result.factors.iterrows()
    ]
    note = Prose([
        Span("Found in every group", "strong"), ": the lowest correlation with the common factor if each "
        "group is fitted separately.",
    ])  # fmt: skip
    head = ["factor", "verdict", "p", "congruence", "found in every group"]
    return Section("Factors", [Grid("Each factor in the groups", head, rows), note])


def _items_section(result: Invariance, shown: Mapping[Any, str], wordings: Mapping[str, str]) -> Section:
    parts: list[Block] = [Picture("groups", _figure(result, wordings), "The loadings that differ most")]
    if result.tested:
        parts += [_loading_grid(result, shown, wordings), _level_grid(result, wordings)]
    parts.append(
        "Loadings of each group are compared on the common factor's scale. All of them, with their 95 % "
        "intervals, are in loadings.csv, every item's tests in items.csv, and the level of every group in "
        "levels.csv. Reversed items are counted from their highest answer, so that higher is always more of "
        "what the factor measures."
    )
    return Section("Items", parts)


def _loading_grid(result: Invariance, shown: Mapping[Any, str], wordings: Mapping[str, str]) -> Block:
    part = result.items[result.items["flagged"]].sort_values("p", kind="stable")
    if part.empty:
        return "No items load differently (false discovery rate of 5 %)."
    rows = [
        [
            *(str(name), wordings.get(str(name), ""), shown[row["factor"]]),
            *(f"{row['difference']:.2f}", shown_p(row["q"], ALPHA)),
        ]
        for name, row in part.iterrows()
    ]
    caption = f"{counted(len(part), 'item')} that load differently (false discovery rate of 5 %)"
    return Grid(caption, ["item", "wording", "factor", "difference in points", "q"], rows)


def _level_grid(result: Invariance, wordings: Mapping[str, str]) -> Block:
    part = result.items[result.items["level_flagged"]].sort_values("level_p", kind="stable")
    if part.empty:
        return "No items are answered higher or lower at equal scores (false discovery rate of 5 %)."
    rows = [
        [
            *(result.marked(str(name)), wordings.get(str(name), "")),
            f"{row['level_difference']:+.2f}".replace("-", "−"),
            *(str(row["level_higher"]), shown_p(row["level_q"], ALPHA)),
        ]
        for name, row in part.iterrows()
    ]
    answered = "is answered" if len(part) == 1 else "are answered"
    caption = (
        f"{counted(len(part), 'item')} that {answered} higher or lower at equal scores (false discovery rate "
        "of 5 %)"
    )
    return Grid(caption, ["item", "wording", f"points, {result.level_sign}", "higher in", "q"], rows)


def _figure(result: Invariance, wordings: Mapping[str, str]) -> Figure:
    with default_settings():
        figure = Figure(figsize=(8.2, 1.4 + 0.36 * min(_SHOWN, len(result.items))), layout="constrained")
        group_loadings(
            *(result.loadings, result.items),
            most=_SHOWN, wordings=wordings, by=result.by, ax=figure.add_subplot(),
        )  # fmt: skip
    return figure
