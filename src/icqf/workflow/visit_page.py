"""The page and the figures about a longitudinal model."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from icqf.errors import counted
from icqf.plotting.loadings import loading_courses
from icqf.plotting.style import default_settings

FOCUSED = 0.6  # of a factor's squared loadings in one bin

if TYPE_CHECKING:
    import pandas as pd

    from icqf.workflow.visits import VisitsFit


@default_settings()
def visit_figures(fit: VisitsFit, place: Path) -> dict[str, Path]:
    """Draw a figure for each factor into `place`; the files by factor."""
    pictures = {}
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
        pictures[factor] = place / f"{factor}.png"
        ax.figure.savefig(pictures[factor], dpi=130, bbox_inches="tight")  # type: ignore[union-attr]
    return pictures


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


def visit_page(fit: VisitsFit, pictures: dict[str, Path]) -> str:
    """The page: what was analysed, what is missing and why, and each factor's course over age."""
    environment = Environment(
        loader=PackageLoader("icqf.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    band = "Bands are 95 % intervals from resampled participants." if "low" in fit.courses else ""
    star = "Items with a star change with age by themselves." if fit.changes is not None else ""
    return environment.get_template("visits.html").render(
        title=f"{fit.study.title or 'Visits'}: loadings over {fit.model.age}",
        gaps_said=gap_sentence(fit.model.gaps_),
        gaps=fit.model.gaps_.reset_index().to_dict("records"),
        choice_said=" ".join([choice_sentence(fit), *focus_sentences(fit)]),
        changes=[] if fit.changes is None else str(fit.changes).splitlines(),
        n_permutations=0 if fit.changes is None else fit.changes.n_permutations,
        figures_said=" ".join(part for part in (band, star) if part),
        figures=[
            {
                "alt": f"Loadings of the strongest items of {factor} over {fit.model.age}",
                "png": base64.b64encode(path.read_bytes()).decode(),
            }
            for factor, path in pictures.items()
        ],
        notes=[*fit.study.questionnaire.notes, *(str(each) for each in fit.warnings)],
    )
