"""How much of what clinicians say do the scores keep?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, listed
from icqf.evaluation.fits import SIZES, Callback, failures, fit_parts
from icqf.evaluation.methods import METHODS, Method, resolve
from icqf.evaluation.summaries import bands
from icqf.evaluation.wilcoxon import compare_methods
from icqf.resampling.splits import FULL


@dataclass(frozen=True, eq=False)
class DiagnosticAUC:
    """What `diagnostic_auc` found.

    Attributes
    ----------
    table : DataFrame
        One row per split, size, method and label: ``n_training``, ``n_components``, ``beta`` and ``auc``, the
        area under the ROC curve in the held-out participants.
    failures : tuple of str
        Fits that were not possible, and why.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.evaluation import diagnostic_auc
    >>> cohort = make_cohort("hbn", 200)
    >>> diagnoses = cohort.diagnoses[["adhd"]]
    >>> study, sums = cohort.questionnaire, ["subscales"]
    >>> found = diagnostic_auc(study, diagnoses, methods=sums, sizes=[0.8], n_splits=2)
    >>> found.table["method"].unique().tolist()
    ['subscale sums']
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
        """Is a method's area larger than the others'? See `compare_methods`."""
        if each_label:
            return compare_methods(self.table, "auc", method=method, by=("size", "label"))
        return compare_methods(self.over_labels(), "auc", method=method)


def diagnostic_auc(
    questionnaire: Questionnaire,
    labels: pd.DataFrame,
    *,
    methods: Sequence[str | Method] = tuple(METHODS),
    sizes: Sequence[float] = SIZES,
    n_splits: int = 30,
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> DiagnosticAUC:
    """Measure how well the scores of each method predict diagnoses in participants kept apart from all fits.

    In each split a fifth of the participants is held out, and a fifth of the others is for validation, with
    confounds and labels in proportion. A method is fitted to parts of the rest alone; validation and held-out
    participants are scored with what it learned. For each label a logistic regression with an ℓ2 penalty and
    balanced classes is trained on the training scores, its penalty chosen in the validation participants, and
    judged in the held-out participants, who are the same for every method and size.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study. Every item's answer range must be declared: an observed one would depend on held-out
        participants.
    labels : DataFrame (n, labels)
        1, 0, or missing, indexed by participant.
    methods : sequence
        Names ("icqf", "l1-nmf", "fa-promax", "subscales", "items") or `Method` objects.
    sizes : sequence of float
        Training sets, as shares of the development set (all but the held-out participants), up to 0.8.
    n_splits, random_state, n_jobs, checkpoint, callback
        As for `stability`.

    Returns
    -------
    DiagnosticAUC

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.evaluation import ICQFMethod, diagnostic_auc
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
            f"The answer range of {listed(open_ended, most=3)} is not declared, and what is observed would "
            "tell of held-out participants; declare min and max in the codebook."
        )
    if FULL in sizes:
        raise InputError("The whole development set leaves nobody for validation; give sizes up to 0.8.")
    parts = fit_parts(
        questionnaire,
        labels,
        resolve(methods),
        sizes=sizes,
        n_splits=n_splits,
        random_state=random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    rows = [
        {
            "split": part.split,
            "size": part.size,
            "n_training": part.n_training,
            "method": part.method,
            "n_components": part.n_components,
            "beta": part.beta,
            "label": label,
            "auc": auc,
        }
        for part in parts
        for label, auc in part.auc.items()
    ]
    return DiagnosticAUC(pd.DataFrame(rows), failures(parts))
