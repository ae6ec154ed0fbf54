"""How well the model describes the answers, hidden answers, and each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from icqf.models.multistart import AS_WELL, COUNTERPART, doubtful_factors, n_reached
from icqf.models.summary import Summary, default_names
from icqf.plotting import convergence
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Bar, Block, Cell, Column, Details, Grid
from icqf.report.sections import report_section
from icqf.report.sections.sample import item_cell
from icqf.report.svg import drawn
from icqf.report.words import Report, Values
from icqf.resampling.replication import no_factor_replicates


@report_section("fit", "How well each item is described", title="Fit of each item")
def fit(report: Report) -> list[Block]:
    """The variance explained of every item, and whether the fit converged."""
    values = report.fit
    parts: list[Block] = [*values.words, Details("All items: variance explained and R²", [_items(report)])]
    if values.trace:
        trace = pd.DataFrame({"step": values.trace})
        figure = drawn(
            "convergence",
            lambda ax: convergence(trace, tol=values.tol, ax=ax),
            "Largest move of a loading in each iteration",
            "The fit ends when no loading would move by more than the tolerance.",
            size=(4.7, 2.6),
        )
        sentence = (
            f"{words.count_of(values.n_iter, 'iteration')}; at the end no score would move by more than "
            f"{values.score_step:.2g} and no loading by more than {values.loading_step:.2g} of its item's "
            f"range (tolerance {values.tol:g})."
        )
        if values.drift is not None:
            sentence += (
                " Small steps of single numbers do not rule out a flat valley: after all factors had "
                "exchanged about a twentieth of their loadings, the fit came back to within "
                f"{words.percent(values.drift, 1)} of the items' ranges."
            )
        parts.append(Details("Convergence", [figure, sentence]))
    return parts


def _items(report: Report) -> Grid:
    hidden = report.fit.n_splits
    compared = report.comparison is not None and bool(report.comparison.pairs)
    rows = []
    for row in report.items:
        explained = row.explained if row.explained > 0 else 0
        cells = [item_cell(row), row.strongest, Cell(drawing=Bar(explained))]
        shares = [row.explained, row.fit, *([row.fit_hidden] if hidden else [])]
        shares += [row.fit_comparison] if compared else []
        rows.append([*cells, *map(words.percent, shares)])
    held_out = (
        f" (hidden answers by {hidden}-fold cross-validation; negative if the item's mean predicts better)"
        if hidden
        else ""
    )
    caption = (
        "Share of each item's variance explained by factors and confounds, and R²: the reduction in squared "
        f"error relative to the item's mean{held_out}"
    )
    head = [
        *("Item", Column("Strongest factor", numeric=False), Column("Explained", drawn=True, quiet=True)),
        *("Explained", "R²", *(["R² of hidden answers"] if hidden else [])),
        *(["R² of factor analysis"] if compared else []),
    ]
    return Grid(caption, head, rows, kind="sortable", label="Fit of the items")


def fit_values(analysis: Analysis, summary: Summary) -> Values:
    """R² of seen and hidden answers relative to the items' means, convergence and starts.

    `no_structure` says why no replicable structure was found; it is empty where one was.
    """
    model, hidden = analysis.model, analysis.hidden
    keys = dict(zip(model.factor_names_, default_names(len(model.components_)), strict=True))
    return Values(
        r_squared=float(summary.r_squared),
        r_squared_hidden=None if hidden is None else hidden.overall,
        n_splits=None if hidden is None else hidden.n_splits,
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        objective=float(model.objective_),
        tol=float(model.tol),
        score_step=float(model.certificate_.score_step),
        loading_step=float(model.certificate_.loading_step),
        drift=model.certificate_.drift,
        trace=tuple(model.trace_["step"].tolist()) if "step" in model.trace_ else (),
        **start_values(model.starts_, keys),
        n_averaged=model.n_averaged_,
        no_structure=_no_structure(analysis),
        words=(),
    )


def _no_structure(analysis: Analysis) -> str:
    hidden = analysis.hidden
    if hidden is not None and hidden.no_better_than_means:
        return (
            "answers that were hidden from the model are predicted no better than by the items' means (R² of "
            f"hidden answers {words.number(hidden.overall)})"
        )
    return no_factor_replicates(analysis.model.replication_)


def start_values(starts: pd.DataFrame, keys: Mapping[str, str]) -> dict[str, Any]:
    """Starts with their lowest agreement, and keys of factors that an equally good start does not have."""
    return {
        "n_reached": n_reached(starts),
        "starts": words.records(
            starts[["start", "objective", "converged"]]
            .assign(agreement=starts.iloc[:, 4:].min(axis=1))
            .rename(columns={"start": "name"})
        ),
        "doubtful": tuple(keys[name] for name in doubtful_factors(starts)),
    }


def fit_words(values: Values, variance: float, names: Mapping[str, str]) -> list[str]:
    """How well the model describes the answers; `names` are the factors' by key."""
    sentences = [
        f"The model explains {words.percent(variance, 1)} of the variance of the answers; the shares of "
        "factors and confounds add up to this, for each item and overall.",
        f"Its squared error is {words.percent(values.r_squared, 1)} smaller than that of the items' means "
        "(R²)."
        + (
            ""
            if values.r_squared_hidden is None
            else f" For hidden answers, R² is {words.percent(values.r_squared_hidden, 1)}; it is usually "
            "lower there, because a fit also describes some of the noise in the answers it has seen."
        ),
    ]
    iterations = words.count_of(values.n_iter, "iteration")
    if values.n_averaged:
        sentences.append(
            f"The loadings are averages over {values.n_averaged} fits to resampled participants; scores were "
            "then estimated under the constraints. Averaged loadings fit these answers slightly less well "
            "than the best fit, but replicate more often in small samples."
        )
    elif not values.converged and values.drift and max(values.score_step, values.loading_step) <= values.tol:
        sentences.append(
            "The answers do not determine the loadings: others that differ by up to "
            f"{words.percent(values.drift, 1)} of an item's range describe them as well."
        )
    elif values.converged:
        sentences.append(f"The fit converged after {iterations}.")
    else:
        sentences.append(f"The fit had not converged after {iterations}; allow more before relying on it.")
    return sentences + start_words(values, names)


def start_words(values: Values, names: Mapping[str, str]) -> list[str]:
    """Whether fits from other starts agree with the best one; `names` are the factors' by key."""
    if len(values.starts) < 2:
        return []
    others = [start for start in values.starts if start.agreement < COUNTERPART]
    number = words.count_of(len(values.starts), "start")
    if not others:
        lowest = words.at_least(min(start.agreement for start in values.starts))
        return [
            f"The fit was run from {number}, and all of them ended with the same factors (correlation of "
            f"loadings {lowest})."
        ]
    reached = f", which {words.spelled(values.n_reached)} of them reached" if values.n_reached else ""
    kept = f"The fit was run from {number}, and the best one was kept{reached}."
    if values.doubtful:
        them = "this factor" if len(values.doubtful) == 1 else "these factors"
        return [
            f"{kept} At least one other describes the answers as well (objective within "
            f"{words.percent(AS_WELL, 1)}) without a counterpart of "
            f"{words.joined([names[key] for key in values.doubtful])}: the answers do not determine {them}, "
            "so interpret with care."
        ]
    lowest_other = min(start.objective for start in others)
    excess = lowest_other / min(start.objective for start in values.starts) - 1
    return [
        f"{kept} {words.spelled(len(others)).capitalize()} of them ended with other factors and a worse fit "
        f"(objective higher by {words.percent(excess, 2)} or more)."
    ]
