"""The page about a longitudinal model."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from matplotlib.figure import Figure

from icqf.errors import counted
from icqf.plotting.loadings import loading_courses
from icqf.plotting.style import default_settings
from icqf.report.blocks import Block, Bullets, Grid, Picture, Section
from icqf.report.document import Document, made_by

FOCUSED = 0.6  # of a factor's squared loadings in one bin
_GAPS = {
    "bin": "Bin",
    "seen": "Seen",
    "not_seen": "Not seen",
    "asked": "Answers asked for",
    "unanswered": "Left open",
}

if TYPE_CHECKING:
    import pandas as pd

    from icqf.workflow.longitudinal import VisitsFit


def gap_sentence(gaps: pd.DataFrame) -> str:
    """Say how much is missing by design and how much by non-response."""
    participants = int(gaps["seen"].iloc[0] + gaps["not_seen"].iloc[0])
    possible = participants * len(gaps)
    visits, asked, unanswered = (int(gaps[name].sum()) for name in ("seen", "asked", "unanswered"))
    return (
        f"{counted(participants, 'participant')} in {counted(len(gaps), 'bin')}: {visits} of {possible} "
        f"possible visits took place (the other {1 - visits / possible:.0%} are gaps by design or drop-out), "
        f"and {unanswered} of the {asked} answers asked for at those visits were left open "
        f"({unanswered / asked:.1%}, gaps by non-response)."
    )


def choice_sentence(fit: VisitsFit) -> str:
    """Say what was chosen, and what it says about age."""
    model, search = fit.model, fit.search
    k = len(model.model_.components_)
    chosen = f"{counted(k, 'factor')}, beta {model.beta:g}, smoothness {model.smoothness:g}"
    if search is None:
        return f"Fitted with your settings: {chosen}."
    said = f"Chosen by cross-validation: {chosen}."
    table = search.errors_
    own = table[(table["n_components"] == k) & (table["beta"] == model.beta)].sort_values("smoothness")
    if len(own) > 1:
        pairs = zip(own["smoothness"], own["error"], strict=True)
        errors = ", ".join(f"{value:g}: {error:.4g}" for value, error in pairs)
        said += f" Error on hidden answers by smoothness: {errors}."
        if model.smoothness == own["smoothness"].max():
            said += " The strongest predicts best: to let loadings change with age does not help."
        elif model.smoothness == 0:
            said += " Bins that stand by themselves predict best; narrower ones may do better still."
    return said


def focus_sentences(fit: VisitsFit) -> list[str]:
    """Name the factors that lie in one bin rather than in all."""
    said = []
    for factor, shares in fit.model.focus_.iterrows():
        if shares.max() > FOCUSED:
            said.append(
                f"{factor} lies mostly in one bin ({shares.idxmax()}: {shares.max():.0%}): it tells how "
                f"participants were at that {fit.model.age}, not something that lasts. A stronger "
                "smoothness looks for what lasts."
            )
    return said


def visit_page(fit: VisitsFit) -> Document:
    """The page: what was analysed, what is missing and why, and each factor's course over age."""
    gaps = fit.model.gaps_.reset_index()
    rows = [[str(row[name]) for name in _GAPS] for row in gaps.to_dict("records")]
    seen = Grid(
        "Who was seen when: gaps by design or drop-out (not seen) and gaps by non-response (seen, left open)",
        list(_GAPS.values()),
        rows,
    )
    sections = [
        Section(
            "Visits and answers",
            [
                seen,
                " ".join([choice_sentence(fit), *focus_sentences(fit)]),
                "Every participant has one score per factor, from 0 to 1, for all visits together. A loading "
                "is what a factor adds to an item's answer at an age, on the item's own range.",
            ],
        ),
        *_changes_section(fit),
        _courses_section(fit),
    ]
    notes = [*fit.study.questionnaire.notes, *(str(each) for each in fit.warnings)]
    if notes:
        sections.append(Section("Notes", [Bullets(notes)]))
    title = f"{fit.study.title or 'Visits'}: loadings over {fit.model.age}"
    return Document(title, [gap_sentence(fit.model.gaps_)], sections, footer=made_by("icqf longitudinal"))


def _changes_section(fit: VisitsFit) -> list[Section]:
    if fit.changes is None:
        return []
    method = (
        f"Each participant's visits were shuffled over the ages seen {fit.changes.n_permutations} times. q "
        "is the p-value corrected for the number of factors (Benjamini–Hochberg), and a change counts where "
        "q is at most 0.05; the same holds for items. Where all loadings of a factor rise or fall in "
        "proportion, "
        "it may be the participants who have more or less of it: answers cannot tell the two apart."
    )
    return [Section("Do the loadings change with age?", [method, Bullets(str(fit.changes).splitlines())])]


@default_settings()
def _courses_section(fit: VisitsFit) -> Section:
    band = "Bands are 95 % intervals from resampled participants." if "low" in fit.courses else ""
    star = "Items with a star change with age by themselves." if fit.changes is not None else ""
    legend = " ".join(part for part in (band, star) if part)
    parts: list[Block] = [legend] if legend else []
    for factor in map(str, fit.model.get_feature_names_out()):
        ax = loading_courses(
            fit.courses,
            factor,
            ranges=fit.model.item_range_,
            items=fit.study.questionnaire.item_table(),
            changes=None if fit.changes is None else fit.changes.items,
            names=fit.options.names or None,
            age=fit.model.age,
        )
        caption = f"Loadings of the strongest items of {factor} over {fit.model.age}"
        parts.append(Picture(factor, cast(Figure, ax.figure), caption))
    return Section("Loadings over age", parts)
