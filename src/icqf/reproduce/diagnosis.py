"""Experiment 2 of the paper: how much diagnostic information the scores keep as samples get smaller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icqf.errors import counted
from icqf.evaluation.methods import METHODS
from icqf.evaluation.prediction import DiagnosticAUC, diagnostic_auc
from icqf.plotting import by_sample_size
from icqf.report.markdown import markdown_table, safe
from icqf.reproduce.design import Design
from icqf.reproduce.pages import (
    about_simulations,
    candidates,
    chosen_counts,
    count_cell,
    failures_words,
    in_short,
    made_by,
    share,
    table_of_tests,
    tests_of,
    verdict,
    wide,
    write_page,
)
from icqf.reproduce.studies import NamedStudy

PAPER_COUNTS = {
    "hbn": "The paper reports, on the real study: ICQF 8 → 6, ℓ1-NMF 8 → 3, FA-promax 13 → 18.",
    "abcd": "The paper reports, on the real study: ICQF 7 → 7, ℓ1-NMF 5 → 4, FA-promax 20 → 17.",
}


def diagnosis(studies: Sequence[NamedStudy], design: Design) -> Path:
    """Run the experiment on each study; writes tables, figures and the page ``diagnosis.md``."""
    labelled = [(study, study.known_labels) for study in studies]
    design.out.mkdir(parents=True, exist_ok=True)
    sections, verdicts = [], []
    for study, labels in labelled:
        found = diagnostic_auc(
            study.questionnaire,
            labels,
            methods=design.methods(METHODS),
            sizes=design.sizes,
            **design.running(study.name),
        )
        verdicts.append((study.title, verdict(tests_of(found), "the area")))
        sections += _section(study, found, design)
    page = design.out / "diagnosis.md"
    title = "# Diagnosis: what the scores keep as samples get smaller"
    head = [title, made_by(design, _setting(design)), about_simulations(studies)]
    write_page(page, [*head, *in_short(verdicts), *sections])
    return page


def _setting(design: Design) -> str:
    return f"""{design.n_splits} splits of each study into development and held-out participants (80/20,
    with confounds and labels in proportion); a fifth of the development set for validation; training sets
    of {", ".join(share(size) for size in design.sizes)} of the development set. Factors are learned from
    the training participants alone, k and β by blockwise cross-validation (ICQF, ℓ1-NMF;
    {candidates(design)}) and k by parallel analysis (FA-promax); validation and held-out participants are
    scored with the loadings fixed. For each label a logistic regression (ℓ2, balanced classes, standardised
    scores) is tuned on the validation and judged on the held-out participants, the same ones for every
    method and size. “All items” is what the answers tell without any summary. Tests are one-sided Wilcoxon
    signed-rank tests over splits with a false discovery rate of 0.01. Splits of one study share people, so
    a verdict is about this sample."""


def _section(study: NamedStudy, found: DiagnosticAUC, design: Design) -> list[str]:
    base = design.out / f"diagnosis-{study.name}"
    tests, summary = tests_of(found), found.summary()
    found.table.to_csv(f"{base}.csv", index=False, float_format="%.4g")
    tests.to_csv(f"{base}-tests.csv", index=False, float_format="%.6g")
    ax: Any = by_sample_size(summary, "auc", label="mean AUC")
    ax.set_xlabel("training set, as a share of the development set")
    ax.set_title(study.title, loc="left")
    ax.figure.savefig(f"{base}.png", dpi=150)

    def area(row: Any) -> str:
        return f"{row['auc']:.3f} ({row['low']:.3f}–{row['high']:.3f})"

    counts = chosen_counts(found.table[found.table["beta"].notna() | (found.table["method"] == "FA-promax")])
    return [
        f"## {safe(study.described)}",
        safe(" ".join(study.notes)),
        f"Area under the ROC curve, mean over {counted(found.table['label'].nunique(), 'label')}, with the "
        "95 % interval of its mean over splits:",
        wide(summary, area),
        f"![AUC against the size of the training set]({base.name}.png)",
        table_of_tests(tests),
        f"Number of factors chosen, median and range over splits. {PAPER_COUNTS.get(study.name, '')}".strip(),
        wide(counts, count_cell),
        "Penalty β chosen:",
        wide(chosen_counts(found.table[found.table["beta"].notna()], "beta"), count_cell),
        f"Mean area for each label, trained on {share(max(design.sizes))} and on {share(min(design.sizes))}:",
        _by_label(found, design),
        _label_words(found, base),
        failures_words(found.failures),
        f"All runs: [{base.name}.csv]({base.name}.csv).",
    ]


def _label_words(found: DiagnosticAUC, base: Path) -> str:
    if tests_of(found).empty:
        return ""
    tests = found.tests(each_label=True)
    tests.to_csv(f"{base}-label-tests.csv", index=False, float_format="%.4g")
    lines = []
    for other, part in tests.groupby("against", sort=False):
        better, worse = ((part["verdict"] == word).sum() for word in ("better", "worse"))
        lines.append(f"{other}: better in {better}, worse in {worse} of {len(part)}")
    return (
        "Label by label and size by size, the false discovery rate being over all of these tests, ICQF is, "
        f"against {'; '.join(lines)} ([tests]({base.name}-label-tests.csv))."
    )


def _by_label(found: DiagnosticAUC, design: Design) -> str:
    areas = found.by_label()
    methods = list(dict.fromkeys(found.table["method"]))
    columns = [
        (size, method)
        for size in (max(design.sizes), min(design.sizes))
        for method in methods
        if (size, method) in areas
    ]
    lines = [[str(label), *(f"{areas.loc[label, at]:.2f}" for at in columns)] for label in areas.index]
    return markdown_table(["label", *(f"{method}, {share(size)}" for size, method in columns)], lines)
