"""Short forms of 1 335 participants x 119 items: 25 items, judged by participants who did not choose them.

Beside the search stand as many items with the largest loadings, and a plain genetic algorithm on the same
simulated participants. All are judged by the same held-out third, and by a second simulated study, which had
no part in the model, either.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from _measure import heading, report, run_script
from icqf import ICQF
from icqf.analyses import shortform
from icqf.analyses.short_forms import (
    ModelRecovery,
    SimulatedRecovery,
    correlation_by_row,
    divided,
    top_loading,
)
from icqf.datasets import make_cohort

ITEMS = 25
SECONDS = 60.0
POPULATION, GENERATIONS, MUTATION = 60, 150, 0.08


def genetic(recovery: SimulatedRecovery, rng: np.random.Generator) -> list[int]:
    """The best form of a genetic algorithm: pairs share items, some items change, the better half stays."""
    m = len(recovery.items)
    penalty, top = recovery.problem.penalty, recovery.problem.bounds.score

    def fitness(form: np.ndarray) -> float:
        Q = recovery.loadings[:, form]
        pull, scores = Q @ recovery.left[form], np.zeros_like(recovery.wanted)
        scores = penalty.sweep(scores, Q @ Q.T, pull, top, scale=1.0, sweeps=25, xp=np)
        return float(correlation_by_row(scores, recovery.wanted).mean())

    forms = [rng.choice(m, ITEMS, replace=False) for _ in range(POPULATION)]
    values = [fitness(form) for form in forms]
    for _ in range(GENERATIONS):
        best = np.argsort(values)[::-1][: POPULATION // 2]
        children = []
        for _ in range(POPULATION - len(best)):
            one, other = rng.choice(best, 2, replace=False)
            child = rng.choice(np.union1d(forms[one], forms[other]), ITEMS, replace=False)
            changed = rng.random(ITEMS) < MUTATION
            child[changed] = rng.choice(np.setdiff1d(np.arange(m), child), int(changed.sum()), replace=False)
            children.append(child)
        forms = [forms[at] for at in best] + children
        values = [values[at] for at in best] + [fitness(child) for child in children]
    return [int(item) for item in forms[int(np.argmax(values))]]


def main() -> None:
    """Print the ratios."""
    heading(f"{ITEMS} of 119 items, 1 335 participants, one thread")
    study, other = (make_cohort("hbn", random_state=seed).questionnaire for seed in (0, 1))
    model = ICQF(8, beta=0.1).fit(study)
    clock = time.perf_counter()
    form = shortform(model, study, max_items=ITEMS)
    spent = time.perf_counter() - clock
    everyone, elsewhere = ModelRecovery.of(model, study), ModelRecovery.of(model, other)
    rng = np.random.default_rng(np.random.RandomState(0).randint(2**31 - 1))  # as in the function
    choosing, held_out = (everyone.take(rows) for rows in divided(everyone, study.groups, rng))
    clock = time.perf_counter()
    forms = {
        "search": [everyone.items.index(name) for name in form.items],
        "largest loadings": list(top_loading(everyone.shares, ITEMS)),
        "genetic": genetic(choosing.simulated(rng), np.random.default_rng(0)),
    }
    print(f"  the search took {spent:.1f} s, the genetic algorithm {time.perf_counter() - clock:.1f} s")
    found = {}
    for name, items in forms.items():
        for place, who in (("held out", held_out), ("another study", elsewhere)):
            r = who.accuracies(items)
            found[name, place] = r.mean()
            print(f"  {name:<17} {place:<14} mean {r.mean():.3f}, worst factor {r.min():.3f}")
    inside = []
    short, full = elsewhere.exact(forms["search"]), elsewhere.wanted
    for r, name in enumerate(model.get_feature_names_out()):
        band = form.bands[form.bands["factor"] == name]
        low, high = (np.interp(short[r], band["score"], band[end]) for end in ("low", "high"))
        inside.append(((full[r] - short[r] >= low - 1e-9) & (full[r] - short[r] <= high + 1e-9)).mean())
    print(f"  bands of nine in ten hold {np.mean(inside):.1%} of another study")
    never = (form.curve["top_loading"] / form.curve["accuracy"]).max()
    report("0.9 against the mean correlation, held out", 0.9 / found["search", "held out"], 1.0)
    report("0.9 against that of the worst factor", 0.9 / form.worst[1], 1.0)
    report("0.9 against the mean correlation in another study", 0.9 / found["search", "another study"], 1.0)
    report(f"largest loadings against the search, worst of {ITEMS} lengths", float(never), 1.0)
    report("genetic against the search", found["genetic", "held out"] / found["search", "held out"], 1.005)
    report(f"time against {SECONDS:g} s", spent / SECONDS, 1.0)


if __name__ == "__main__":
    run_script(main)
