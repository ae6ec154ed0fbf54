"""Methods compared over splits: stability in samples, replication in another study, predicted diagnoses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from icqf.analyses.methods import METHODS, Callback, Method, failures, fit_parts, resolve
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import FACTORIZATIONS, TRAINING_SHARES
from icqf.errors import InputError, listed
from icqf.resampling.folds import FULL
from icqf.resampling.matching import agreement, match_factors


def over_splits(
    table: pd.DataFrame, by: list[str], measures: Sequence[str], medians: Sequence[str]
) -> pd.DataFrame:
    """Means and standard deviations of measures over splits, and medians of counts."""
    grouped = table.groupby(by, sort=False)
    columns = {}
    for name in table.columns:
        if name in medians:
            columns[name] = grouped[name].median()
        elif name in measures:
            columns[name] = grouped[name].mean()
            columns[f"{name}_spread"] = grouped[name].std()
    return pd.DataFrame(columns).reset_index()


def bands(table: pd.DataFrame, value: str, *, level: float = 0.95) -> pd.DataFrame:
    """The mean of a value for each method and size, with its t interval (from 3 values on).

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": "ICQF", "size": 0.2, "auc": [0.70, 0.72, 0.74]})
    >>> bands(table, "auc").round(3)
      method  size   auc   low  high
    0   ICQF   0.2  0.72  0.67  0.77
    """
    rows = []
    for (method, size), values in table.groupby(["method", "size"], sort=False)[value]:
        n, mean = len(values), float(values.mean())
        half = float(stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 2 else 0.0
        rows.append({"method": method, "size": size, value: mean, "low": mean - half, "high": mean + half})
    return pd.DataFrame(rows)


ALPHA = 0.01


def compare_methods(
    table: pd.DataFrame,
    value: str,
    *,
    method: str = "ICQF",
    by: Sequence[str] = ("size",),
    alpha: float = ALPHA,
) -> pd.DataFrame:
    """Test one method against each other one, split by split.

    One-sided Wilcoxon signed-rank tests in both directions; the p-values of each direction are adjusted for
    the false discovery rate (Benjamini and Hochberg).

    Parameters
    ----------
    table : DataFrame
        Columns ``split``, ``method``, `value`, and those of `by`.
    value : str
        What is compared; more is better.
    method : str
        The method to test.
    by : sequence of str
        A separate test for each value of these columns.
    alpha : float
        False discovery rate below which a difference counts.

    Returns
    -------
    DataFrame
        Columns of `by`, ``against``, ``n_splits``, ``difference`` (mean), ``p_better``, ``p_worse``,
        ``q_better``, ``q_worse`` (adjusted) and ``verdict`` (better, worse, no difference, too few splits).

    Notes
    -----
    Splits of one study share most of their participants: the tests show whether a difference is systematic in
    this sample, not whether it would hold in another.

    Examples
    --------
    >>> import pandas as pd
    >>> fa = pd.DataFrame({"split": range(12), "method": "FA", "auc": 0.7, "size": 0.8})
    >>> table = pd.concat([fa.assign(method="ICQF", auc=0.72), fa])
    >>> compare_methods(table, "auc")[["against", "difference", "verdict"]].round(3)
      against  difference verdict
    0      FA        0.02  better
    """
    names = list(dict.fromkeys(table["method"]))
    if method not in names:
        raise InputError(f"There is no method {method!r} in the table; it has {listed(names)}.")
    rows = []
    for level, part in table.groupby(list(by), sort=False):
        wide = part.pivot_table(index="split", columns="method", values=value)
        for other in names:
            if other == method or other not in wide or method not in wide:
                continue
            gain = (wide[method] - wide[other]).dropna().to_numpy()
            rows.append(
                dict(zip(by, level, strict=True))
                | {"against": other, "n_splits": len(gain), "difference": float(gain.mean())}
                | {"p_better": _one_sided(gain), "p_worse": _one_sided(-gain)}
            )
    tests = pd.DataFrame(rows, columns=[*by, "against", "n_splits", "difference", "p_better", "p_worse"])
    for side in ("better", "worse"):
        tests[f"q_{side}"] = stats.false_discovery_control(tests[f"p_{side}"]) if len(tests) else []
    tests["verdict"] = np.select(
        [tests["q_better"] <= alpha, tests["q_worse"] <= alpha, 0.5 ** tests["n_splits"] > alpha],
        ["better", "worse", "too few splits"],
        "no difference",
    )
    return tests


def _one_sided(gain: np.ndarray) -> float:
    """p-value of the hypothesis that gains are not above 0."""
    if not len(gain) or not np.any(gain):
        return 1.0
    with warnings.catch_warnings(action="ignore"):  # few splits with ties
        return float(stats.wilcoxon(gain, alternative="greater").pvalue)


MEASURES = ("pearson", "pearson_optimal", "congruence")


@dataclass(frozen=True, eq=False)
class Stability:
    """Agreement of factors from parts of a study with those of the whole; see `stability`.

    Attributes
    ----------
    table : DataFrame
        One row per split, size and method: ``n_training``, ``k_full`` and ``k`` (factors in the development
        set and in the part), ``beta``, ``pearson`` and ``pearson_sd`` (greedy pairs), ``pearson_optimal``,
        ``congruence``, and ``truth`` (greedy Pearson correlation with true loadings, if given).
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by size and method."""
        measures = [name for name in (*MEASURES, "truth") if name in self.table]
        return over_splits(self.table, ["size", "method"], measures, ["n_training", "k_full", "k"])

    def tests(self, method: str = "ICQF", *, measure: str = "pearson") -> pd.DataFrame:
        """Tests of a method's agreement against the others'; see `compare_methods`."""
        return compare_methods(self.table, measure, method=method)


def stability(
    questionnaire: Questionnaire,
    *,
    labels: pd.DataFrame | None = None,
    methods: Sequence[str | Method] = FACTORIZATIONS,
    sizes: Sequence[float] = TRAINING_SHARES,
    n_splits: int = 30,
    random_state: int = 0,
    truth: pd.DataFrame | None = None,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> Stability:
    """Compare the loadings from parts of a study with those from its whole development set.

    In each split a fifth of the participants is held out; the others are the development set. Each method is
    fitted to it and to parts of it, choosing its number of factors each time, and factors are matched.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study.
    labels : DataFrame (n, labels), optional
        Labels to balance over all parts, in addition to the confounds.
    methods : sequence
        Names ("icqf", "l1-nmf", "fa-promax", "fa-promax-same-k") or `Method` objects, such as
        ``ICQFMethod((8,), (0.1,))``.
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
        Journal from which an interrupted run continues; shared with `diagnostic_auc` and `replication` of the
        same study and splits.
    callback : callable, optional
        Called with the progress.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import ICQFMethod, stability
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> found = stability(demo, methods=[ICQFMethod((3,), (0.1,))], sizes=[0.8, 0.2], n_splits=2)
    >>> found.summary()[["size", "method", "n_training", "k"]]
       size method  n_training    k
    0   0.8   ICQF       384.0  3.0
    1   0.2   ICQF        96.0  3.0
    """
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    parts = fit_parts(
        questionnaire, labels, resolve(methods), sizes=[*sizes, FULL], checkpoint=checkpoint, **how
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


@dataclass(frozen=True, eq=False)
class Replication:
    """Agreement of the factors of two studies; see `replication`.

    Attributes
    ----------
    table : DataFrame
        One row per split and method: ``k_a`` and ``k_b`` (factors found in each study), ``pearson`` and
        ``pearson_sd`` (greedy pairs), ``pearson_optimal``, ``congruence``.
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by method."""
        return over_splits(self.table, ["method"], (*MEASURES, "pearson_sd"), ["k_a", "k_b"])

    def tests(self, method: str = "ICQF", *, measure: str = "pearson") -> pd.DataFrame:
        """Tests of a method's agreement against the others'; see `compare_methods`."""
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
        Labels of their participants, balanced over all parts.
    methods, n_splits, random_state, n_jobs, callback
        As for `stability`.
    checkpoints : pair of paths
        A journal for each study.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.analyses import ICQFMethod, replication
    >>> a, b = (make_cohort(name, 200).questionnaire for name in ("hbn", "abcd"))
    >>> replication(a, b, methods=[ICQFMethod((4,), (0.1,))], n_splits=2).table[["split", "k_a", "k_b"]]
       split  k_a  k_b
    0      0    4    4
    1      1    4    4
    """
    chosen = resolve(methods)
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    sides = [
        fit_parts(study, known, chosen, sizes=[FULL], checkpoint=checkpoint, **how)
        for study, known, checkpoint in zip((a, b), labels, checkpoints, strict=True)
    ]
    second = {(part.split, part.method): part for part in sides[1] if not part.failed}
    rows = []
    for part in sides[0]:
        other = second.get((part.split, part.method))
        if other is None or part.failed:
            continue
        row = {"split": part.split, "method": part.method}
        row |= {"k_a": part.n_components, "k_b": other.n_components}
        rows.append(row | agreement(part.factors, other.factors))
    return Replication(pd.DataFrame(rows), failures([*sides[0], *sides[1]]))


@dataclass(frozen=True, eq=False)
class DiagnosticAUC:
    """Prediction of diagnoses from scores; see `diagnostic_auc`.

    Attributes
    ----------
    table : DataFrame
        One row per split, size, method and label: ``n_training``, ``n_components``, ``beta`` and ``auc``, the
        area under the ROC curve in the held-out participants.
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def over_labels(self) -> pd.DataFrame:
        """Mean area over the labels, one row per split, size and method."""
        keys = ["split", "size", "n_training", "method", "n_components", "beta"]
        return self.table.groupby(keys, sort=False, dropna=False)["auc"].mean().reset_index()

    def summary(self) -> pd.DataFrame:
        """Mean area with its 95 % interval over splits, and the median number of factors."""
        means = self.over_labels()
        counts = means.groupby(["method", "size"], sort=False)[["n_training", "n_components"]].median()
        return bands(means, "auc").merge(counts.reset_index(), on=["method", "size"])

    def by_label(self) -> pd.DataFrame:
        """Mean area of each label (rows) by size and method (columns)."""
        return self.table.pivot_table(
            index="label", columns=["size", "method"], values="auc", sort=False, observed=True
        )

    def tests(self, method: str = "ICQF", *, each_label: bool = False) -> pd.DataFrame:
        """Tests of a method's area against the others'; see `compare_methods`."""
        if each_label:
            return compare_methods(self.table, "auc", method=method, by=("size", "label"))
        return compare_methods(self.over_labels(), "auc", method=method)


def diagnostic_auc(
    questionnaire: Questionnaire,
    labels: pd.DataFrame,
    *,
    methods: Sequence[str | Method] = tuple(METHODS),
    sizes: Sequence[float] = TRAINING_SHARES,
    n_splits: int = 30,
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> DiagnosticAUC:
    """Measure how well the scores of each method predict diagnoses in held-out participants.

    In each split a fifth of the participants is held out, and a fifth of the others is for validation,
    balanced for confounds and labels. A method is fitted to parts of the rest, and scores the others. For
    each label a logistic regression with an ℓ2 penalty and balanced classes is trained on the training
    scores, with the penalty chosen in the validation participants, and evaluated in the held-out ones.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study. Every item's answer range must be declared.
    labels : DataFrame (n, labels)
        1, 0, or missing, indexed by participant.
    methods : sequence
        Names (those of `stability`, "subscales", "items") or `Method` objects.
    sizes : sequence of float
        Training sets, as shares of the development set (all but the held-out participants), up to 0.8.
    n_splits, random_state, n_jobs, checkpoint, callback
        As for `stability`.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.analyses import ICQFMethod, diagnostic_auc
    >>> cohort = make_cohort("hbn", 300)
    >>> methods = [ICQFMethod((8,), (0.1,)), "subscales"]
    >>> labels = cohort.diagnoses[["adhd"]]
    >>> found = diagnostic_auc(cohort.questionnaire, labels, methods=methods, sizes=[0.8], n_splits=2)
    >>> found.table[["split", "method", "label", "n_components"]]
       split         method label  n_components
    0      0           ICQF  adhd             8
    1      0  subscale sums  adhd             8
    2      1           ICQF  adhd             8
    3      1  subscale sums  adhd             8
    """
    open_ended = [item.name for item in questionnaire.items if not item.declared]
    if open_ended:
        raise InputError(
            f"The answer range of {listed(open_ended, most=3)} is not declared, and the observed range would "
            "depend on held-out participants; declare min and max in the codebook."
        )
    if FULL in sizes:
        raise InputError("The whole development set leaves nobody for validation; give sizes up to 0.8.")
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    parts = fit_parts(questionnaire, labels, resolve(methods), sizes=sizes, checkpoint=checkpoint, **how)
    own = ("split", "size", "n_training", "method", "n_components", "beta")
    rows = [
        {name: getattr(part, name) for name in own} | {"label": label, "auc": auc}
        for part in parts
        for label, auc in part.auc.items()
    ]
    return DiagnosticAUC(pd.DataFrame(rows), failures(parts))
