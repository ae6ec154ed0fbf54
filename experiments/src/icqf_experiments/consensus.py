"""When does averaging over resamples help? Plain and averaged loadings compared between parts of studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Questionnaire
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.models.consensus import N_RESAMPLES
from icqf.models.icqf import ICQF
from icqf.models.selection_rules import best_by_k, best_row
from icqf.report.blocks import Grid, Section
from icqf.resampling.bootstrap import averaged_loadings
from icqf.resampling.folds import drawn_counts
from icqf.resampling.replication import FOUND
from icqf.workflow.evaluation import Design, results_page
from icqf_experiments.fit_parts import FittedPart, found_again
from icqf_experiments.split_studies import SplitStudy

Array = NDArray[Any]
FIXED = 5
SIZES = (0, 250, 400, 700, 1500, 10**9)  # participants in a part


def compare_averages(
    grounds: Sequence[SplitStudy],
    parts: Sequence[FittedPart],
    *,
    checkpoint: Path | None = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> pd.DataFrame:
    """Average the fits of every part, with the number of factors that predicts best and with five.

    Returns one row per split study and choice of k, with the mean correlation of factors with their
    counterparts in other parts, and the share found again, for plain and averaged loadings.
    """
    jobs: dict[str, tuple[Any, ...]] = {}
    for ground in grounds:
        mine = [part for part in parts if part.ground == ground.name]
        for answers, part in zip(ground.parts(), mine, strict=True):
            fits = [_plain(part, k) for k in _numbers(part)]
            jobs[f"{ground.name}/{part.number}"] = (answers, fits, N_RESAMPLES)
    results = run_all(jobs, _averages, n_jobs=n_jobs, checkpoint=checkpoint, callback=callback, mixed=True)
    rows = []
    for ground in grounds:
        mine = [part for part in parts if part.ground == ground.name]
        averages = [results[f"{ground.name}/{part.number}"]["loadings"] for part in mine]
        for at, how in enumerate(("min", f"k = {FIXED}")):
            plain = [_plain(part, _numbers(part)[at])[1] for part in mine]
            mean = [np.array(each[at]) for each in averages]
            rows.append(
                {
                    "ground": ground.name,
                    "choice": how,
                    "n": mine[0].n,
                    "m": mine[0].m,
                    "k": np.mean([len(each) for each in plain]),
                    **_between(plain, "plain"),
                    **_between(mean, "averaged"),
                }
            )
    return pd.DataFrame(rows)


def consensus_page(grounds: Sequence[SplitStudy], parts: Sequence[FittedPart], design: Design) -> Path:
    """Average the fits of all parts, and write the table and the page ``consensus.md``."""
    journal = design.out / "averages.journal"
    table = compare_averages(
        grounds, parts, checkpoint=journal, n_jobs=design.n_jobs, callback=design.callback
    )
    table.to_csv(design.out / "consensus.csv", index=False, float_format="%.6g")
    sizes = pd.cut(table["n"], list(SIZES))
    weak = pd.cut(table["plain"], [-1, 0.7, 0.8, 0.9, 0.95, 1])
    rows = [
        [*(row["ground"], row["choice"], str(row["n"]), str(row["m"]), f"{row['k']:.1f}"), *_cells(row)]
        for row in table.to_dict("records")
    ]
    return results_page(
        design,
        "consensus",
        "When averaging over resamples helps",
        _setting(),
        [
            Section("By the size of the sample", [_means(table, sizes, "participants")]),
            Section("By the agreement of plain fits", [_means(table, weak, "agreement of plain fits")]),
            Section("Every study", [Grid("", ["study", "k by", "n", "items", "k", *_HEADS], rows)]),
        ],
    )


_HEADS = ("agreement, plain", "averaged", "found again, plain", "averaged")


def _cells(row: dict[Any, Any]) -> list[str]:
    return [f"{row[name]:.3f}" for name in ("plain", "averaged", "plain_found", "averaged_found")]


def _means(table: pd.DataFrame, by: pd.Series, title: str) -> Grid:
    means = table.groupby(by, observed=True)[["plain", "averaged", "plain_found", "averaged_found"]]
    counts = means.size()
    return Grid(
        f"Plain and averaged fits by {title}",
        [title, "settings", *_HEADS],
        [
            [span_words(span), str(counts[span]), *_cells(row)]
            for span, row in zip(counts.index, means.mean().to_dict("records"), strict=True)
        ],
    )


def _numbers(part: FittedPart) -> tuple[int, int]:
    return best_row(part.errors)[0], min(FIXED, len(part.loadings))


def _plain(part: FittedPart, k: int) -> tuple[float, Array]:
    """Return the penalty and the loadings of a part's fit with k factors."""
    best = best_by_k(part.errors)
    return float(best.loc[best["n_components"] == k, "beta"].iloc[0]), part.loadings[k - 1]


def _averages(
    answers: Questionnaire, fits: Sequence[tuple[float, Array]], n_resamples: int
) -> dict[str, Any]:
    problem = ICQF(1).state(answers).problem
    rng = np.random.default_rng(2)
    draws = [drawn_counts(problem.n, None, rng) for _ in range(n_resamples)]
    means = [
        averaged_loadings(problem, loadings, beta, draws=draws)[: len(loadings)] for beta, loadings in fits
    ]
    return {"loadings": [mean.round(6).tolist() for mean in means]}


def _between(loadings: Sequence[Array], name: str) -> dict[str, float]:
    values = np.concatenate([found_again(a, b) for a, b in permutations(loadings, 2)])
    return {name: float(values.mean()), f"{name}_found": float((values >= FOUND).mean())}


def _setting() -> str:
    return f"""Every study is split into independent parts. In each part, the model is fitted as usual, and
    its loadings are averaged over {N_RESAMPLES} fits to resampled participants (`icqf fit --consensus`). A
    factor of one part is compared with its counterpart in another by the correlation of loadings; it counts
    as found again from {FOUND} on. The number of factors is the one that predicts best in each part, or
    five."""


def span_words(span: Any) -> str:
    """Return an interval of `pandas.cut` in words; limits at or below 0 or above a billion are omitted.

    Examples
    --------
    >>> import pandas as pd
    >>> [span_words(pd.Interval(*ends)) for ends in ((0, 2), (2, 5), (5, float("inf")))]
    ['up to 2', '2 to 5', 'above 5']
    """
    if span.left <= 0:
        return f"up to {span.right:g}"
    return f"above {span.left:g}" if span.right >= 1e9 else f"{span.left:g} to {span.right:g}"
