"""Do two studies give the same factors?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.evaluation.across_samples import MEASURES
from icqf.evaluation.fits import Callback, failures, fit_parts
from icqf.evaluation.methods import FACTORIZATIONS, Method, resolve
from icqf.evaluation.summaries import summarised
from icqf.evaluation.wilcoxon import compare_methods
from icqf.resampling.matching import agreement
from icqf.resampling.splits import FULL


@dataclass(frozen=True, eq=False)
class Replication:
    """What `replication` found.

    Attributes
    ----------
    table : DataFrame
        One row per split and method: ``k_a`` and ``k_b`` (factors found in each study), ``pearson`` and
        ``pearson_sd`` (greedy pairs), ``pearson_optimal``, ``congruence``.
    failures : tuple of str
        Fits that were not possible, and why.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.evaluation import FactorAnalysisMethod, replication
    >>> hbn, abcd = (make_cohort(name, 200).questionnaire for name in ("hbn", "abcd"))
    >>> found = replication(hbn, abcd, methods=[FactorAnalysisMethod(3)], n_splits=1)
    >>> found.table[["method", "k_a", "k_b"]].to_numpy().tolist()
    [['FA-promax', 3, 3]]
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by method."""
        return summarised(self.table, ["method"], (*MEASURES, "pearson_sd"), ["k_a", "k_b"])

    def tests(self, method: str = "ICQF", *, measure: str = "pearson") -> pd.DataFrame:
        """Is a method's agreement better than the others'? See `compare_methods`."""
        return compare_methods(self.table.assign(size=FULL), measure, method=method)


def replication(
    a: Questionnaire,
    b: Questionnaire,
    *,
    labels: tuple[pd.DataFrame | None, pd.DataFrame | None] = (None, None),
    methods: Sequence[str | Method] = FACTORIZATIONS,
    n_splits: int = 30,
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoints: tuple[str | Path | None, str | Path | None] = (None, None),
    callback: Callback | None = None,
) -> Replication:
    """Compare the loadings that methods find in the development sets of two studies.

    Each method chooses its number of factors in each study; factors are matched on the items that the two
    questionnaires share, by name.

    Parameters
    ----------
    a, b : Questionnaire
        The studies.
    labels : pair of DataFrame
        Labels of their participants, kept in proportion in all parts.
    methods, n_splits, random_state, n_jobs, callback
        As for `stability`.
    checkpoints : pair of paths
        A journal for each study.

    Returns
    -------
    Replication

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.evaluation import ICQFMethod, replication
    >>> a, b = (make_cohort(name, 200).questionnaire for name in ("hbn", "abcd"))
    >>> replication(a, b, methods=[ICQFMethod((4,), (0.1,))], n_splits=2).table[["split", "k_a", "k_b"]]
       split  k_a  k_b
    0      0    4    4
    1      1    4    4
    """
    chosen = resolve(methods)
    sides = [
        fit_parts(
            study,
            known,
            chosen,
            sizes=[FULL],
            n_splits=n_splits,
            random_state=random_state,
            n_jobs=n_jobs,
            checkpoint=checkpoint,
            callback=callback,
        )
        for study, known, checkpoint in zip((a, b), labels, checkpoints, strict=True)
    ]
    second = {(part.split, part.method): part for part in sides[1] if not part.failed}
    rows = []
    for part in sides[0]:
        other = second.get((part.split, part.method))
        if other is None or part.failed:
            continue
        row = {
            "split": part.split,
            "method": part.method,
            "k_a": part.n_components,
            "k_b": other.n_components,
        }
        rows.append(row | agreement(part.factors, other.factors))
    return Replication(pd.DataFrame(rows), failures([*sides[0], *sides[1]]))
