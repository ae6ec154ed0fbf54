"""Do smaller samples give the same factors as the whole development set?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.evaluation.fits import SIZES, Callback, failures, fit_parts
from icqf.evaluation.methods import FACTORIZATIONS, Method, resolve
from icqf.evaluation.summaries import summarised
from icqf.evaluation.wilcoxon import compare_methods
from icqf.resampling.matching import agreement, match_factors
from icqf.resampling.splits import FULL

MEASURES = ("pearson", "pearson_optimal", "congruence")


@dataclass(frozen=True, eq=False)
class Stability:
    """What `stability` found.

    Attributes
    ----------
    table : DataFrame
        One row per split, size and method: ``n_training``, ``k_full`` and ``k`` (factors found in the
        development set and in the part), ``beta``, ``pearson`` and ``pearson_sd`` (greedy pairs),
        ``pearson_optimal``, ``congruence``; with true loadings also ``truth`` (greedy Pearson correlation
        with them).
    failures : tuple of str
        Fits that were not possible, and why.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.evaluation import FactorAnalysisMethod, stability
    >>> study = make_cohort("hbn", 200).questionnaire
    >>> found = stability(study, methods=[FactorAnalysisMethod(3)], sizes=[0.8, 0.4], n_splits=1)
    >>> len(found.table), found.failures
    (2, ())
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by size and method."""
        measures = [name for name in (*MEASURES, "truth") if name in self.table]
        return summarised(self.table, ["size", "method"], measures, ["n_training", "k_full", "k"])

    def tests(self, method: str = "ICQF", *, measure: str = "pearson") -> pd.DataFrame:
        """Is a method's agreement better than the others'? See `compare_methods`."""
        return compare_methods(self.table, measure, method=method)


def stability(
    questionnaire: Questionnaire,
    *,
    labels: pd.DataFrame | None = None,
    methods: Sequence[str | Method] = FACTORIZATIONS,
    sizes: Sequence[float] = SIZES,
    n_splits: int = 30,
    random_state: int = 0,
    truth: pd.DataFrame | None = None,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> Stability:
    """Compare the loadings from parts of a study with those from its whole development set.

    In each split a fifth of the participants is put aside; the others are the development set. Each method
    is fitted to it and to parts of it, choosing its number of factors every time, and factors are matched.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study.
    labels : DataFrame (n, labels), optional
        Kept in proportion in all parts, beside the confounds.
    methods : sequence
        Names ("icqf", "l1-nmf", "fa-promax") or `Method` objects, such as ``ICQFMethod((8,), (0.1,))``.
    sizes : sequence of float
        Parts, as shares of the development set, up to 0.8.
    n_splits : int
        How often the study is divided.
    random_state : int
        Seed of the splits and fits.
    truth : DataFrame (n_items, factors), optional
        True loadings of simulated answers, to compare with as well.
    n_jobs : int, optional
        Processes.
    checkpoint : path, optional
        A journal of finished fits, for going on after an interruption; `diagnostic_auc` and `replication`
        of the same study and splits use it too.
    callback : callable, optional
        Told how far the work is.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import ICQFMethod, stability
    >>> found = stability(load_demo(), methods=[ICQFMethod((8,), (0.1,))], sizes=[0.8, 0.2], n_splits=2)
    >>> found.summary()[["size", "method", "n_training", "k"]]
       size method  n_training    k
    0   0.8   ICQF       384.0  8.0
    1   0.2   ICQF        96.0  8.0
    """
    parts = fit_parts(
        questionnaire,
        labels,
        resolve(methods),
        sizes=[*sizes, FULL],
        n_splits=n_splits,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    usable = [part for part in parts if not part.failed]
    whole = {(part.split, part.method): part for part in usable if part.size == FULL}
    rows = []
    for part in usable:
        reference = whole.get((part.split, part.method))
        if part.size == FULL or reference is None:
            continue
        row = {"split": part.split, "size": part.size, "n_training": part.n_training, "method": part.method}
        row |= {"k_full": reference.n_components, "k": part.n_components, "beta": part.beta}
        row |= agreement(reference.factors, part.factors)
        if truth is not None:
            row["truth"] = match_factors(truth, part.factors).mean
        rows.append(row)
    return Stability(pd.DataFrame(rows), failures(parts))
