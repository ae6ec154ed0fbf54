"""What `icqf plan` predicts beside what happens: fresh simulated studies whose true factors are known.

`python benchmarks/plan_against_truth.py` prints, for pilots of 200 and 800 participants of a simulated
cohort, the share of factors that are found again by the number of participants: predicted from the pilot,
predicted from its model file alone, and in fresh studies drawn from the cohort itself (matched with the
pilot's factors and with the true ones); then the same for a pilot of 300 participants of the bfi, with
studies drawn from the others. It has no limit to reach; docs/planning.md tells its numbers.
"""

from __future__ import annotations

import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from icqf import ICQF
from icqf.analyses import plan
from icqf.datasets import load_bfi, make_cohort
from icqf.models.consensus import best_fits
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.replication import FOUND

SIZES = (75, 150, 300, 600)
REPEATS = 20


def share(reference: np.ndarray, found: np.ndarray) -> float:
    """Share of the factors of a reference that are found again."""
    order, _ = aligned(reference, found)
    return float((np.diag(correlations(reference, found[order])) >= FOUND).mean())


def main() -> None:
    """Print the shares."""
    warnings.simplefilter("ignore")
    models = {
        n: ICQF(8, beta=0.1).fit(make_cohort("hbn", n, random_state=77).questionnaire) for n in (200, 800)
    }
    truth = make_cohort("hbn", 50).truth.loadings.to_numpy().T
    rows = []
    for size in SIZES:
        fresh = []
        for number in range(REPEATS):
            study = make_cohort("hbn", size, random_state=1000 + number).questionnaire
            problem = ICQF(8, beta=0.1).state(study).problem
            fresh.append(best_fits(problem, [(8, 0.1)])[0])
        rows.append({"n": size, "true factors": np.mean([share(truth, each) for each in fresh])})
        for n, model in models.items():
            rows[-1][f"pilot of {n}: happens"] = np.mean([share(model.components_, each) for each in fresh])
    table = pd.DataFrame(rows).set_index("n")
    for n, model in models.items():
        answers = make_cohort("hbn", n, random_state=77).questionnaire
        for name, pilot in (("from its answers", answers), ("from its model", None)):
            predicted = plan(model, pilot, sizes=SIZES, n_repeats=REPEATS)
            table[f"pilot of {n}: {name}"] = predicted.curve["mean"].to_numpy()
    print(table[sorted(table.columns)].T.round(2).to_string())


def real() -> None:
    """Print the shares for real answers: the bfi, with studies of participants who are not in the pilot."""
    whole = load_bfi().with_confounds(None)
    order = np.random.default_rng(0).permutation(len(whole.answers))
    pilot, others = whole.take(np.sort(order[:300])), order[300:]
    model = ICQF(5, beta=0.01).fit(pilot)
    rows = {}
    for size in SIZES:
        studies = [
            whole.take(np.sort(np.random.default_rng([size, number]).choice(others, size, replace=False)))
            for number in range(REPEATS)
        ]
        fits = [best_fits(ICQF(5, beta=0.01).state(each).problem, [(5, 0.01)])[0] for each in studies]
        rows[size] = {"bfi: happens": np.mean([share(model.components_, each) for each in fits])}
    table = pd.DataFrame(rows).T
    for name, answers in (("from its answers", pilot), ("from its model", None)):
        predicted = plan(model, answers, sizes=SIZES, n_repeats=REPEATS)
        table[f"bfi: {name}"] = predicted.curve["mean"].to_numpy()
    print(table.T.round(2).to_string())


if __name__ == "__main__":
    main()
    real()
