"""Experiment 2 of the paper: how well scores predict diagnoses as samples get smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from icqf.analyses.method_comparison import METHODS, DiagnosticAUC, diagnostic_auc
from icqf.data.settings import FACTORIZATIONS, PREDICTORS
from icqf.data.study import Study
from icqf.errors import counted
from icqf.plotting import by_sample_size
from icqf.report.blocks import Block, Grid, Picture, Prose, Span
from icqf.workflow.evaluation import (
    Design,
    about_tests,
    chosen_counts,
    count_cell,
    how_chosen,
    on_each_study,
    share,
    table_of_tests,
    tests_of,
    wide,
)


def diagnosis(
    studies: Sequence[Study], design: Design, *, published: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Run the experiment on each study, and write tables, figures and the page ``diagnosis.md``.

    `published` has a sentence for each study with the numbers of factors that a paper reports.
    """
    labels = {study.name: study.known_labels for study in studies}  # checked before anything is written
    return on_each_study(
        studies,
        design,
        lambda study: diagnostic_auc(
            study.questionnaire,
            labels[study.name],
            methods=design.methods(METHODS),
            sizes=design.sizes,
            **design.run_parameters(study.name),
        ),
        partial(_section, sizes=design.sizes, published=published),
        name="diagnosis",
        title="Diagnosis: how well scores predict as samples get smaller",
        setting=_setting(design),
        measure="the area",
    )


def _setting(design: Design) -> str:
    without_items = design.names and "items" not in design.names
    all_items = "" if without_items else "“All items” uses the answers themselves."
    splits = "One split" if design.n_splits == 1 else f"{design.n_splits} splits"
    chosen = how_chosen(design, joined=" and ") or "if there are any"
    return f"""{splits} of each study into development and held-out participants (80/20, with confounds and
    labels in proportion); a fifth of the development set for validation; training sets of
    {", ".join(share(size) for size in design.sizes)} of the development set. Factors are learned from the
    training participants only, {chosen}; validation and held-out participants are scored with fixed
    loadings. For each label, a logistic regression (ℓ2, balanced classes, standardised scores) is tuned on
    the validation participants and evaluated on the held-out ones, the same for every method and size.
    {all_items} {about_tests(design)}"""


def _section(
    study: Study, result: DiagnosticAUC, base: Path, *, sizes: Sequence[float], published: Mapping[str, str]
) -> list[Block]:
    summary, both = result.summary(), (max(sizes), min(sizes))
    result.table.to_csv(f"{base}.csv", index=False, float_format="%.4g")
    ax: Any = by_sample_size(summary, "auc", label="mean AUC")
    ax.set_xlabel("training set, as a share of the development set")
    ax.set_title(study.title, loc="left")

    def area(row: Any) -> str:
        return f"{row['auc']:.3f} ({row['low']:.3f}–{row['high']:.3f})"

    without_factors = [METHODS[name].name for name in PREDICTORS if name not in FACTORIZATIONS]
    counts = chosen_counts(result.table[~result.table["method"].isin(without_factors)])
    labels = counted(result.table["label"].nunique(), "label")
    return [
        wide(
            f"Area under the ROC curve, mean over {labels}, with the 95 % interval of its mean over splits",
            summary,
            area,
        ),
        Picture(base.name, ax.figure, "AUC against the size of the training set"),
        table_of_tests(tests_of(result)),
        published.get(study.name, ""),
        wide("Number of factors chosen, median and range over splits", counts, count_cell),
        wide(
            "Penalty β chosen", chosen_counts(result.table[result.table["beta"].notna()], "beta"), count_cell
        ),
        _by_label(result, both),
        _label_words(result, base),
    ]


def _label_words(result: DiagnosticAUC, base: Path) -> Block:
    if tests_of(result).empty:
        return ""
    tests = result.tests(each_label=True)
    tests.to_csv(f"{base}-label-tests.csv", index=False, float_format="%.4g")
    lines = []
    for other, part in tests.groupby("against", sort=False):
        better, worse = ((part["verdict"] == word).sum() for word in ("better", "worse"))
        lines.append(f"{other}: better in {better}, worse in {worse} of {len(part)}")
    return Prose(
        [
            "For each label and size, with the false discovery rate over all of these tests, ICQF compared "
            f"with {'; '.join(lines)} (",
            Span("tests", link=f"{base.name}-label-tests.csv"),
            ").",
        ]
    )


def _by_label(result: DiagnosticAUC, sizes: Sequence[float]) -> Grid:
    areas = result.by_label()
    methods = list(dict.fromkeys(result.table["method"]))
    columns = [(size, method) for size in sizes for method in methods if (size, method) in areas]
    lines = [[str(label), *(f"{areas.loc[label, at]:.2f}" for at in columns)] for label in areas.index]
    caption = f"Mean area for each label, trained on {share(sizes[0])} and on {share(sizes[1])}"
    return Grid(caption, ["label", *(f"{method}, {share(size)}" for size, method in columns)], lines)
