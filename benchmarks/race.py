"""Does giving up hopeless candidates early change the choice? The race against all candidates in all folds.

Each case is a study with a seed. The default search (`n_repeats="auto"`) races; the same candidates are then
fitted in every fold of as many divisions as the race needed, with the same rules for further candidates at
the edge. Counted is how often both choose the same number of factors, and the same number and penalty, by
the rules "min" and "one_se", with an exact 95 % interval; what share of the fits the race needs; and how
often the choices are alike where all candidates that the race tried, which may be more, are fitted in all
folds.

Simulated studies (four forms of answers; pure noise, and 2, 4 and 6 weak, middle and strong factors; 150 and
500 participants), the paper's synthetic questionnaires, and 400 participants of each public study with two
seeds, in random order. `SEED` is that of the run that is reported; rules are chosen with other seeds
(`python benchmarks/race.py SEED`). Grid and seeds were committed before the run.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import binomtest

from icqf import ICQF
from icqf.data.settings import BETAS
from icqf.datasets import make_synthetic
from icqf.models.search import Plan, Race, as_table, blocks_of, first_candidates, suggested_count
from icqf.models.selection_rules import Evidence, choose
from icqf.resampling import tolerances
from icqf.resampling.folds import folds_of
from icqf_experiments.calibration.populations import FORMS, PUBLIC, SIGNALS, Population, public_study

RULES = ("min", "one_se")
SEED = 5200  # of the reported run
FACTORS, SIZES, SEEDS = (2, 4, 6), (150, 500), 1
NOISES, SYNTHETIC_SEEDS = (0.1, 0.3, 0.5), 2
MOST, PUBLIC_SEEDS = 400, 2
DIVISIONS = 10  # at most, as in a search


class Known:
    """Finished fits, which race and full search share."""

    def __init__(self) -> None:
        self.trials: list[Any] = []

    def add(self, trials: Any) -> None:
        self.trials.extend(trials)


def cases(first: int) -> Iterator[tuple[str, Any, dict[str, Any], int]]:
    """Kind, answers, settings of the model, and seed of the search."""
    for at, form in enumerate(FORMS):
        for signal in SIGNALS:
            for k in (1,) if signal == "none" else FACTORS:
                for n in SIZES:
                    for seed in range(SEEDS):
                        law = Population(signal, form, k, max(16, 8 * k), 0.05, first + 10 * seed + at)
                        yield f"simulated, {signal}", law.draw(n, first + seed), {}, first + seed
    for noise in NOISES:
        for k in (4, 10):
            for seed in range(SYNTHETIC_SEEDS):
                answers = make_synthetic(200, 50, k, noise=noise, random_state=first + seed).answers
                yield "paper's synthetic", answers, {"item_range": (0, 100)}, first + seed
    for name in PUBLIC:
        study = public_study(name)
        for seed in range(PUBLIC_SEEDS):
            order = np.random.default_rng([first, seed]).permutation(study.n_participants)[:MOST]
            yield "public", study.take(np.sort(order)), {}, first + seed


def plan_of(answers: Any, settings: dict[str, Any], seed: int) -> Plan:
    """The plan of the default search."""
    stated = ICQF(**settings).state(answers)
    problem = stated.problem.with_confounds_in_order()
    items = np.argsort(np.array(stated.items)) if stated.named else None
    folds = (
        folds_of(problem, items=items, rng=np.random.default_rng([seed, 0, at])) for at in range(DIVISIONS)
    )
    settled = {"tol": tolerances.SEARCH, "max_iter": 500, "seed": seed, "given": stated.given}
    return Plan(problem.with_beta(0.0), tuple(folds), BETAS, "nndsvd", **settled)


def compared(plan: Plan, rule: str, known: Known) -> dict[str, Any]:
    """What the race and the full search choose, and how many fits each needs."""
    ks = first_candidates(plan.problem, suggested_count(plan.problem, plan.seed))
    how: dict[str, Any] = {"journal": known, "n_jobs": 1, "callback": None}
    race = Race(plan, ks, widen=True, strengthen=True, **how)
    raced = race.run(rule)
    divisions = 1 + max(trial.repeat for trial in raced)
    plan = replace(plan, folds=plan.folds[:divisions])
    full = Race(plan, ks, widen=True, strengthen=True, **how).run_all()
    plan = replace(plan, betas=race.plan.betas)
    alike = Race(plan, list(race.tried), widen=False, strengthen=False, **how).run_all()
    choices = [
        choose(Evidence(as_table(each), blocks_of(each)).table(), rule) for each in (raced, full, alike)
    ]
    return {"choices": choices, "divisions": divisions, "fits": (len(raced), len(full))}


def main() -> None:
    """Print every case in which the choices differ, and the shares."""
    warnings.simplefilter("ignore")
    first, clock = int(sys.argv[1]) if len(sys.argv) > 1 else SEED, time.process_time()
    counts: dict[str, Counter[str]] = {}
    every = list(cases(first))
    order = np.random.default_rng(first).permutation(len(every))
    for done, (kind, answers, settings, seed) in enumerate((every[at] for at in order), start=1):
        plan, known = plan_of(answers, settings, seed), Known()
        for rule in RULES:
            found = compared(plan, rule, known)
            (k, beta), (full_k, full_beta), alike = found["choices"]
            if (k, beta) != (full_k, full_beta):
                n, m = plan.problem.n, plan.problem.m
                print(f"  {kind}, {n} × {m}, seed {seed}, {rule}: {found}", flush=True)
            for name in (f"{kind}, {rule}", f"all, {rule}"):
                each = counts.setdefault(name, Counter())
                each["cases"] += 1
                each["k"] += k == full_k
                each["both"] += (k, beta) == (full_k, full_beta)
                each["alike"] += (k, beta) == alike
                each["fits"], each["all"] = each["fits"] + found["fits"][0], each["all"] + found["fits"][1]
        if done % 20 == 0:
            show(counts)
    show(counts)
    print(f"{time.process_time() - clock:.0f} s of processor time")


def show(counts: dict[str, Counter[str]]) -> None:
    """Print the shares so far."""
    print(
        f"\n{'':32}{'cases':>6}{'same k':>8}{'same k and β':>14}{'95 % intervals':>34}{'fits':>7}{'alike':>8}"
    )
    for name, each in sorted(counts.items()):
        n = each["cases"]
        intervals = [binomtest(each[what], n).proportion_ci(method="exact") for what in ("k", "both")]
        shown = "   ".join(f"{low:.4f} to {high:.4f}" for low, high in intervals)
        share = each["fits"] / each["all"]
        print(
            f"{name:32}{n:>6}{each['k'] / n:>8.4f}{each['both'] / n:>14.4f}  {shown}{share:>7.2f}", flush=True
        )


if __name__ == "__main__":
    main()
