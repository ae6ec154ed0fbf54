"""Experiment 1 of the paper: the loadings of ICQF, ℓ1-NMF and factor analysis side by side.

Factor analysis is shown with its own number of factors, and with that of ICQF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icqf.analyses.method_comparison import FactorAnalysisMethod, Fitted, ICQFMethod, fit_part, trained
from icqf.data.settings import FACTORIZATIONS
from icqf.data.study import Study
from icqf.datasets import make_cohort
from icqf.engines.parallel import run_all
from icqf.plotting import loading_heatmap, top_items
from icqf.plotting.loadings import grouped_order, subscales_of
from icqf.report.blocks import Grid, Picture, Prose, Section, Span
from icqf.resampling.matching import match_factors
from icqf.workflow.evaluation import (
    Design,
    about_simulations,
    how_chosen,
    linked,
    present,
    results_page,
)
from icqf_experiments.published import LOADINGS
from icqf_experiments.studies import QUICK_PARTICIPANTS

COHORTS = 10
COHORT_SIZE = 1335


def loadings(studies: Sequence[Study], design: Design) -> Path:
    """Run the experiment on each study, and write tables, figures and the page ``loadings.md``."""
    design.out.mkdir(parents=True, exist_ok=True)
    parts = [_section(study, _fits(study, design), design) for study in studies]
    simulated = [study.name for study in studies if study.truth is not None]
    if simulated:
        parts.append(_recovery_section(recovery(simulated, design), design))
    title = "Loadings: the methods side by side"
    lead = [about_simulations(studies)]
    return results_page(design, "loadings", title, _setting(design), parts, lead=lead)


def _setting(design: Design) -> str:
    return f"""Each method is fitted to all participants of a study: {how_chosen(design)}. Items are in the
    same order in all panels, and the factors of the other methods in the order of the ICQF factors that they
    match."""


def _fits(study: Study, design: Design) -> dict[str, Fitted | str]:
    """Return each method's fit; choices are stored in the journal, and the final fit is repeated."""
    questionnaire, seed = study.questionnaire, design.random_state
    everyone = (np.arange(questionnaire.n_participants), np.array([], int), np.array([], int))
    methods = {method.name: method for method in design.methods(FACTORIZATIONS)}
    found = run_all(
        {
            repr(method): (questionnaire, None, method, everyone, seed)
            for method in methods.values()
            if not method.follows
        },
        fit_part,
        n_jobs=design.n_jobs,
        checkpoint=design.journal(f"loadings-{study.name}"),
        callback=design.callback,
        mixed=True,
    )
    fits: dict[str, Fitted | str] = {}
    for name, method in methods.items():
        chosen = found[repr(methods[method.follows or name])]
        if "failed" in chosen:
            fits[name] = chosen["failed"]
            continue
        k = chosen["n_components"]
        if isinstance(method, ICQFMethod):
            fixed: Any = replace(method, n_components=(k,), betas=(chosen["beta"],))
        else:
            fixed = FactorAnalysisMethod(k, name=name)
        fits[name] = trained(fixed, questionnaire, random_state=seed)
    return fits


def _section(study: Study, fits: Mapping[str, Fitted | str], design: Design) -> Section:
    base = design.out / f"loadings-{study.name}"
    failed = [f"{name}: {fit}" for name, fit in fits.items() if isinstance(fit, str)]
    usable = _in_one_order({name: fit for name, fit in fits.items() if not isinstance(fit, str)})
    rows = []
    for name, fit in usable.items():
        table = fit.factors
        table.to_csv(f"{base}-{_file(name)}.csv", float_format="%.6g")
        values = table.to_numpy()
        row = [name, str(fit.n_components), "" if fit.beta is None else f"{fit.beta:g}"]
        row += [
            f"{np.mean(values == 0):.0%}",
            f"{np.mean(values < 0):.0%}",
            f"{values.min():.2f} to {values.max():.2f}",
        ]
        if study.truth is not None:
            match = match_factors(study.truth, table)
            row += [f"{match.mean:.3f}", f"{match.min:.3f}"]
        rows.append(row)
        _tops(study, name, fit).savefig(f"{base}-{_file(name)}-top.png", dpi=110)
    head = ["method", "k", "β", "loadings that are 0", "below 0", "range"]
    head += ["mean correlation with the truth", "worst factor"] if study.truth is not None else []
    tops: list[str | Span] = ["The ten strongest items of each factor: "]
    for name in usable:
        tops += ["" if len(tops) == 1 else ", ", Span(name, link=f"{base.name}-{_file(name)}-top.png")]
    parts = present(
        " ".join(study.notes),
        Grid("Loadings of each method", head, rows),
        LOADINGS if study.name == "hbn" else "",
        f"Not possible: {'; '.join(failed)}" if failed else "",
        Picture(base.name, _heatmaps(study, usable), "Loadings of the methods"),
        Prose([*tops, "."]),
    )
    return Section(study.described, parts)


def recovery(names: Sequence[str], design: Design) -> pd.DataFrame:
    """Return the correlation with the true loadings in simulated studies of 1 335 participants, by fit."""
    number, size = (1, QUICK_PARTICIPANTS) if design.quick else (COHORTS, COHORT_SIZE)
    methods = design.methods(FACTORIZATIONS)
    how: Any = {"n_jobs": design.n_jobs, "checkpoint": design.journal("recovery"), "mixed": True}
    own = [job for job in product(names, [size], range(number), methods) if not job[-1].follows]
    found = run_all({repr(job): job for job in own}, _recovered, callback=design.callback, **how)
    counts = {(*job[:-1], job[-1].name): found[repr(job)].get("n_components") for job in own}
    others = [
        (*job[:-1], replace(cast(Any, job[-1]), n_components=counts[*job[:-1], job[-1].follows]))
        for job in product(names, [size], range(number), methods)
        if job[-1].follows
    ]
    found |= run_all({repr(job): job for job in others}, _recovered, callback=design.callback, **how)
    return pd.DataFrame(
        [{"study": job[0], "seed": job[2], "method": job[3].name} | found[repr(job)] for job in own + others]
    )


def _recovered(name: str, size: int, seed: int, method: Any) -> dict[str, Any]:
    cohort = make_cohort(name, size, random_state=seed)
    fit = trained(method, cohort.questionnaire, random_state=0)
    if isinstance(fit, str):
        return {"failed": fit}
    match = match_factors(cohort.truth.loadings, fit.factors)
    return {"n_components": fit.n_components, "beta": fit.beta, "mean": match.mean, "worst": match.min}


def _recovery_section(table: pd.DataFrame, design: Design) -> Section:
    table.to_csv(design.out / "loadings-recovery.csv", index=False, float_format="%.6g")
    rows = []
    for (study, method), part in table.groupby(["study", "method"], sort=False):
        counts = part["n_components"]
        rows.append(
            [
                str(study).upper(),
                str(method),
                f"{part['mean'].mean():.3f}",
                f"{part['mean'].min():.3f}",
                f"{part['worst'].min():.3f}",
                f"{counts.median():g} ({counts.min():g}–{counts.max():g})",
            ]
        )
    means = table.groupby(["study", "method"])["mean"].mean().unstack("method")
    closest = "; ".join(f"{str(study).upper()}: {best}" for study, best in means.idxmax(axis=1).items())
    size = QUICK_PARTICIPANTS if design.quick else COHORT_SIZE
    head = ["population", "method", "mean", "lowest study", "lowest factor", "k: median (range)"]
    return Section(
        f"How well the true loadings are found in {size} participants",
        [
            "Eight true factors; Pearson correlation of matched loadings with the true ones; simulated "
            f"studies of each population: {table['seed'].nunique()}.",
            Grid("Correlation with the true loadings", head, rows),
            f"Closest to the truth on average: {closest}.",
            linked("All fits", "loadings-recovery.csv"),
        ],
    )


def _in_one_order(fits: Mapping[str, Fitted]) -> dict[str, Fitted]:
    """Order the factors of the later methods like the matching ones of the first, extra ones last."""
    ordered: dict[str, Fitted] = {}
    for name, fit in fits.items():
        table = fit.factors
        if ordered:
            first = next(iter(ordered.values())).factors
            pairs = match_factors(first, table, method="optimal").pairs.set_index("factor_a")["factor_b"]
            matched = [pairs[column] for column in first.columns if column in pairs]
            rest = [column for column in table.columns if column not in matched]
            table = table[[*matched, *rest]].set_axis(table.columns, axis=1)
        ordered[name] = replace(fit, loadings=table)
    return ordered


def _heatmaps(study: Study, usable: Mapping[str, Fitted]) -> Figure:
    first = next(iter(usable.values())).factors
    items = study.questionnaire.item_table()
    order, _ = grouped_order(subscales_of(first.index, items), first.to_numpy())
    names = [str(first.index[j]) for j in order]
    lines = [_lines(fit) for fit in usable.values()]
    figure = Figure(
        figsize=(max(7.0, 0.105 * len(names) + 2.4), 0.2 * sum(lines) + 1.5 * len(lines)),
        layout="constrained",
    )
    axes = np.atleast_1d(figure.subplots(len(lines), 1, height_ratios=lines))
    for ax, (name, fit) in zip(axes, usable.items(), strict=True):
        more = {"confounds": fit.model.confound_loadings_} if name == "ICQF" else {}
        loading_heatmap(
            fit.factors, **more, ranges=_ranges(name, fit), items=items, form="wide", order=names, ax=ax
        )
        ax.set_title(f"{name}, k = {fit.n_components}", loc="left", fontweight="bold", pad=18)
    return figure


def _lines(fit: Fitted) -> int:
    return fit.n_components + len(getattr(fit.model, "confound_names_", ()))


def _ranges(name: str, fit: Fitted) -> pd.DataFrame | None:
    """Return the answer ranges for ICQF, whose loadings are shown as shares of them, and None otherwise."""
    return fit.model.item_range_ if name == "ICQF" else None


def _tops(study: Study, name: str, fit: Fitted) -> Figure:
    columns = list(fit.factors.columns)
    rows = -(-len(columns) // 2)
    figure = Figure(figsize=(13, 2.5 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for at, column in enumerate(columns):
        top_items(
            fit.factors[column], ranges=_ranges(name, fit), items=study.questionnaire.item_table(),
            title=f"Factor {at + 1}", most=42, ax=axes[at],
        )  # fmt: skip
    for ax in axes[len(columns) :]:
        ax.set_axis_off()
    figure.suptitle(f"{name}: the ten strongest items of each factor", fontweight="bold")
    return figure


def _file(method: str) -> str:
    return method.lower().replace(" ", "-")
