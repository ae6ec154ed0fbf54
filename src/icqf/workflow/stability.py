"""Experiment 3 of the paper, first part: do smaller samples give the same factors?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from icqf.analyses.method_comparison import Stability, bands, stability
from icqf.data.settings import FACTORIZATIONS
from icqf.data.study import Study
from icqf.plotting import by_sample_size
from icqf.report.blocks import Block, Grid, Picture
from icqf.workflow.evaluation import (
    Design,
    about_tests,
    chosen_counts,
    count_cell,
    how_chosen,
    in_each_split,
    on_each_study,
    share,
    table_of_tests,
    tests_of,
    wide,
    with_spread,
)

Published = Mapping[str, Mapping[str, Mapping[float, float]]]


def stability_experiment(
    studies: Sequence[Study], design: Design, *, published: Published = MappingProxyType({})
) -> Path:
    """Run the experiment on each study, and write tables, figures and the page ``stability.md``.

    `published` has a paper's correlations by study, method and size.
    """
    return on_each_study(
        studies,
        design,
        lambda study: stability(
            study.questionnaire,
            labels=study.labels,
            methods=design.methods(FACTORIZATIONS),
            sizes=design.sizes,
            truth=study.truth,
            **design.run_parameters(study.name),
        ),
        partial(_section, published=published),
        name="stability",
        title="Stability: do smaller samples give the same factors?",
        setting=_setting(design),
        measure="the agreement",
    )


def _setting(design: Design) -> str:
    return f"""{in_each_split(design)}, every method is fitted to the whole development set (80
    % of the participants) and to parts of it ({", ".join(share(size) for size in design.sizes)}), choosing
    its number of factors each time: {how_chosen(design)}. Loadings of a part are matched with those of
    the whole, greedily by Pearson's correlation over min(k, k′) pairs as in the paper; also shown are the
    assignment with the largest sum of correlations, and Tucker's congruence. Matching over min(k, k′)
    favours methods that find fewer factors, so compare the numbers of factors too. {about_tests(design)}"""


def _section(study: Study, result: Stability, base: Path, *, published: Published) -> list[Block]:
    summary = result.summary()
    result.table.to_csv(f"{base}.csv", index=False, float_format="%.6g")
    label = "mean correlation of loadings"
    ax: Any = by_sample_size(bands(result.table, "pearson"), "pearson", label=label)
    ax.set_xlabel("part, as a share of the development set")
    ax.set_title(study.title, loc="left")
    paper = published.get(study.name, {})

    def greedy(row: Any) -> str:
        theirs = paper.get(row["method"], {}).get(float(row.name))
        text = with_spread(row["pearson"], row["pearson_spread"], 3)
        return text + (f" [{theirs:.2f}]" if theirs is not None else "")

    caption = "Mean correlation of matched loadings, greedy (standard deviation over splits)"
    parts: list[Block] = [
        wide(f"{caption}; in square brackets the paper's Table 2" if paper else caption, summary, greedy),
        Picture(base.name, ax.figure, "Agreement against the size of the sample"),
        table_of_tests(tests_of(result)),
        wide(
            "With the best assignment / by Tucker's congruence",
            summary,
            lambda row: f"{row['pearson_optimal']:.3f} / {row['congruence']:.3f}",
        ),
        _counts(result),
    ]
    if study.truth is not None:
        parts += [
            wide(
                "Correlation with the true loadings of the simulation",
                summary,
                lambda row: with_spread(row["truth"], row["truth_spread"], 3),
            ),
            _closest(summary),
        ]
    return parts


def _closest(summary: pd.DataFrame) -> str:
    best = summary.loc[summary.groupby("size", sort=False)["truth"].idxmax()]
    places = [
        f"{method} at {', '.join(share(size) for size in part['size'])}"
        for method, part in best.groupby("method", sort=False)
    ]
    return f"Closest to the truth: {'; '.join(places)}."


def _counts(result: Stability) -> Grid:
    whole = result.table.assign(size="whole").rename(columns={"k_full": "n_components"})
    parts = result.table.rename(columns={"k": "n_components"})
    counts = pd.concat([chosen_counts(whole), chosen_counts(parts)])
    caption = "Number of factors in the parts, median and range over splits (first: whole development set)"
    return wide(caption, counts, count_cell)
