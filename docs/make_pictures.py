"""Draws the pictures of the README and of the pages: `python docs/make_pictures.py`, or those named after it.

The picture of the report is a screenshot by Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.decomposition import NMF, PCA

from icqf import ICQF, ICQFCV, plotting
from icqf.analyses import invariance, learn_norms, plan, shortform
from icqf.baselines import FactorAnalysis, parallel_analysis
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_bfi, load_demo, load_help_battery, load_phq9, make_cohort
from icqf.models import MetaICQF
from icqf.workflow.demo import run_demo

IMAGES = Path(__file__).parent / "images"


def draw_loadings() -> None:
    study = load_demo()
    model = ICQF(8, beta=0.1, item_range=study.ranges()).fit(study.keyed_answers(), confounds=study.confounds)
    ax = plotting.loading_heatmap(
        model.loadings_,
        confounds=model.confound_loadings_,
        ranges=model.item_range_,
        items=study.item_table(),
        form="wide",
    )
    ax.figure.savefig(IMAGES / "loadings.png", dpi=110, bbox_inches="tight")


def draw_short_form() -> None:
    cohort = make_cohort("hbn").questionnaire
    form = shortform(ICQF(8, beta=0.1).fit(cohort), cohort, max_items=25)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    plotting.short_form_curve(form.curve, ax=figure.add_subplot())
    figure.savefig(IMAGES / "shortform.png", dpi=110)


def draw_three_levels() -> None:
    battery = load_help_battery()
    one = ICQFCV(n_components=range(1, 7), betas=[0.1, 0.5], n_splits=5, random_state=0)
    meta = MetaICQF(one, meta_estimator=ICQF(3, beta=0.05, item_weight="variance")).fit(battery)
    names = ["Distress", "Drinking", "No support"]
    ax = plotting.three_levels(meta.loadings_, meta.top_items(), names=names)
    ax.figure.savefig(IMAGES / "three-levels.png", dpi=110)


def draw_groups() -> None:
    bfi = load_bfi()
    asked = bfi.with_confounds(None)
    found = invariance(ICQF(5, beta=0.1).fit(asked), asked, by=bfi.confounds["sex"])
    figure = Figure(figsize=(7.4, 4.6), layout="constrained")
    plotting.group_loadings(found.loadings, found.items, most=10, ax=figure.add_subplot())
    figure.savefig(IMAGES / "groups.png", dpi=110)


def draw_plan() -> None:
    pilot = load_bfi().with_confounds(None).take(np.arange(0, 2800, 7))
    planned = plan(ICQF(5, beta=0.1).fit(pilot), pilot, sizes=(50, 75, 100, 150, 200, 300, 400, 600, 800))
    print(planned.sentence)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    plotting.found_again(planned.curve, ax=figure.add_subplot())
    figure.savefig(IMAGES / "plan.png", dpi=110)


def draw_report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_demo("children", Path(folder, "demo"))
        page = Path(folder, "demo", "results", "report.html")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        options += ["--disable-background-networking", "--window-size=1200,1500"]
        shot = f"--screenshot={IMAGES / 'report.png'}"
        subprocess.run(["chromium", *options, f"--user-data-dir={folder}/b", shot, page.as_uri()], check=True)


def four_methods(study: Questionnaire) -> dict[str, pd.DataFrame]:
    """Loadings of the same answers by four methods, with the number of factors that ICQF chooses.

    None is told of the subscales; factor analysis is also shown with the number of parallel analysis.
    """
    answers = study.keyed_answers().astype(float).dropna()
    counted = answers - study.ranges()["min"].to_numpy()
    standardised = (answers - answers.mean()) / answers.std()
    chosen = ICQFCV(ICQF(item_range=study.ranges()), random_state=0).fit(answers)
    k = chosen.n_components_
    own = {kind: parallel_analysis(answers, kind=kind, random_state=0).n_components for kind in ("fa", "pc")}
    print(f"ICQF: {k} factors, β {chosen.beta_:g}; parallel analysis: {own['fa']} (fa), {own['pc']} (pc)")
    found = {
        "ICQF": chosen.best_estimator_.loadings_.to_numpy(),
        **{f"factor analysis, {n}": FactorAnalysis(n).fit(answers).loadings_ for n in (k, own["fa"])},
        "PCA": PCA(k).fit(standardised).components_.T,
        "NMF": NMF(k, init="nndsvda", max_iter=2000, random_state=0).fit(counted).components_.T,
    }
    return {name: pd.DataFrame(table, index=answers.columns) for name, table in found.items()}


def draw_four_methods() -> None:
    """The picture of docs/compared.md, and the numbers that it quotes."""
    study = load_bfi()
    scales = np.array([item.subscale for item in study.items])
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    for at, (name, table) in enumerate(four_methods(study).items()):
        values = table.to_numpy() / np.abs(table.to_numpy()).max(axis=0)
        strongest = np.abs(values).argmax(axis=1)
        # each factor stands where the subscale of most of its strongest items does
        order = sorted(range(values.shape[1]), key=lambda r: np.abs(values[:, r]).argmax())
        ax = figure.add_subplot(1, 5, at + 1)
        shown = pd.DataFrame(values[:, order], index=table.index)
        plotting.loading_heatmap(shown, bar=False, order=list(table.index), ax=ax)
        ax.set_title(name, fontsize=10, pad=14)
        k = values.shape[1]
        ax.set_xticks(np.arange(k) + 0.5, [str(r + 1) for r in range(k)], rotation=0)
        own = sum(np.bincount(strongest[scales == scale]).max() for scale in dict.fromkeys(scales))
        small = (np.abs(values) < 0.1).mean()
        shares = f"negative {(values < 0).mean():.0%}, near zero {small:.0%}"
        print(f"{name}: {shares}, with their subscale {own} of 25")
    figure.savefig(IMAGES / "four-methods.png", dpi=110)


def draw_norms() -> None:
    """Norms of the PHQ-9's sum score: smooth curves, and percentiles of the sample in bands of ten years."""
    study = load_phq9()
    sums = pd.DataFrame({"sum": 9 * study.keyed_answers().mean(axis=1, skipna=False)})
    covariates = pd.DataFrame(study.confounds)
    norms = learn_norms(sums, covariates, by=["age", "sex"], sample="US adults, NHANES 2017-2018, unweighted")
    print(norms.reference, norms.errors)
    shown = (50, 75, 90, 95)
    places = norms.places(60)
    table = places.assign(**{f"p{each}": norms.score_at(each, places)["sum"] for each in shown})
    figure = Figure(figsize=(8.6, 3.8), layout="constrained")
    plotting.percentile_curves(table, across="age", panels=list(table["sex"]), figure=figure)
    decade = covariates["age"] // 10
    for ax, sex in zip(figure.axes, dict.fromkeys(table["sex"]), strict=True):
        mine = covariates["sex"].eq(sex) & sums["sum"].notna()
        bands = sums["sum"][mine].groupby(decade[mine])
        for each in shown:
            ages = covariates["age"][mine].groupby(decade[mine]).mean()
            ax.plot(ages, bands.quantile(each / 100), "o", markersize=4, color="#D55E00")
    figure.axes[0].set_ylabel("PHQ-9 sum score")
    figure.savefig(IMAGES / "norms.png", dpi=110)


PICTURES = {
    "loadings": draw_loadings,
    "report": draw_report,
    "four-methods": draw_four_methods,
    "shortform": draw_short_form,
    "three-levels": draw_three_levels,
    "groups": draw_groups,
    "plan": draw_plan,
    "norms": draw_norms,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
