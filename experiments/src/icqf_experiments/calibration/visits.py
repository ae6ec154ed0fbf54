"""Do loadings change between visits: how often that is said where they do not, and where they do.

The kinds of studies, their number and seeds were committed before any of them was run. Development used the
seeds from 10 000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from icqf.datasets import load_help_visits
from icqf.models import LongitudinalICQF, LongitudinalICQFCV
from icqf.models.longitudinal import LEVEL
from icqf.report.blocks import Block, Grid
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases

N_STUDIES = {"same": 15, "levels": 40, "differ": 6}  # of each simulated kind, graded and yes/no
N_REAL = 5  # of each kind, of the visits of HELP
FIRST_SEED = 2000
N_PERMUTATIONS = 99
N_ITEMS, N_VISITS, K, TOP = 12, 4, 2, 4
PROMISED = 0.06
# Where the loadings are constant: "severity" is how far scores rise until the last visit, in standard
# deviations (with 2.5 more than half of them are at their highest), "levels" by how much of the range half
# of the items rise whatever the scores.
SAME: Mapping[str, Mapping[str, float]] = {
    "nothing changes": {},
    "scores rise": {"severity": 1.0},
    "scores rise to the end of the range": {"severity": 2.5},
    "100 participants": {"n": 100},
    "half of the visits missing": {"seen": 0.5, "unanswered": 0.1},
    "100 participants, half of the visits missing, scores rise": {"n": 100, "seen": 0.5, "severity": 1.0},
}
LEVELS: Mapping[str, Mapping[str, float]] = {
    "half of the items rise at equal scores": {"levels": 0.25},
    "half of the items rise at equal scores, and scores rise": {"levels": 0.25, "severity": 1.0},
}
DIFFER: Mapping[str, Mapping[str, float]] = {
    "a sixth of the items move to the other factor": {"drift": 1 / 6},
    "a third of the items move": {"drift": 1 / 3},
    "a third move, and scores rise": {"drift": 1 / 3, "severity": 1.0},
    "a third move, 100 participants": {"drift": 1 / 3, "n": 100},
    "other factors at the last visit": {"drift": 1.0},
}


def simulated_visits(
    seed: int,
    *,
    yes_no: bool,
    n: float = 250,
    seen: float = 0.75,
    unanswered: float = 0.02,
    severity: float = 0.0,
    levels: float = 0.0,
    drift: float = 0.0,
) -> pd.DataFrame:
    """Visits of participants whose scores have a lasting and a passing part.

    With `drift`, that share of the items moves in equal steps from one factor to the other until the last
    visit; with 1, half of the items of each factor move, at the last visit alone.
    """
    rng = np.random.default_rng([seed, 27])
    number, share = int(n), np.linspace(0, 1, N_VISITS)
    own = rng.permutation(N_ITEMS) % K
    early = np.zeros((K, N_ITEMS))
    early[own, np.arange(N_ITEMS)] = rng.uniform(0.5, 1, N_ITEMS)
    moves = rng.permutation(N_ITEMS) < round((0.5 if drift == 1 else drift) * N_ITEMS)
    late = np.where(moves, early[::-1], early)
    pace = (share == 1).astype(float) if drift == 1 else share
    loadings = early + pace[:, None, None] * (late - early)
    who, when = np.nonzero(rng.random((number, N_VISITS)) < seen)
    lasting, passing = rng.normal(size=(number, K)), rng.normal(size=(len(who), K))
    z = np.sqrt(0.6) * lasting[who] + np.sqrt(0.4) * passing + severity * share[when, None]
    scores = np.clip(0.35 + 0.3 * z, 0, 1)
    clean = np.einsum("vk,vkj->vj", scores, loadings[when])
    clean += levels * share[when, None] * (np.arange(N_ITEMS) % 2)
    noisy = clean + rng.normal(0, 0.18, clean.shape)
    answers = (noisy > 0.4).astype(float) if yes_no else np.clip(np.rint(TOP * noisy), 0, TOP)
    answers[rng.random(answers.shape) < unanswered] = np.nan
    table = pd.DataFrame(answers, columns=[f"q{j + 1:02d}" for j in range(N_ITEMS)])
    table.insert(0, "participant", [f"P{i + 1:04d}" for i in who])
    table.insert(1, "visit", when)
    return table


def rearranged_help(seed: int, *, by_level: bool) -> pd.DataFrame:
    """HELP with each patient's visits in random order, or in that of their level: loadings are constant.

    By their level, participants grow worse from visit to visit, and their answers differ in nothing else.
    """
    visits = load_help_visits()
    answers = visits.keyed_answers().reset_index(drop=True)
    who, when = np.asarray(visits.groups), np.asarray(visits.confounds)[:, 0]
    rng = np.random.default_rng([seed, 28])
    level = answers.mean(axis=1).to_numpy() if by_level else np.zeros(len(answers))
    source = np.lexsort((rng.random(len(who)), level, who))
    target = np.lexsort((when, who))
    moved = np.empty(len(who), dtype=float)
    moved[source] = when[target]
    return answers.assign(participant=who, visit=moved)


def judged(kind: str, place: str, seed: int, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    """What is said about the loadings of one study.

    Change is said where the test and cross-validation agree. The test takes less time and is made first:
    where it finds nothing, cross-validation cannot change the answer, and is left out.
    """
    make = simulated_visits if place == SIMULATED else rearranged_help
    visits = make(seed, **settings)
    highest = {SIMULATED: 1 if settings.get("yes_no") else TOP}.get(place, 3)
    model = LongitudinalICQF(age="visit", item_range=(0, highest), n_init=1, random_state=seed)
    search = LongitudinalICQFCV(
        model, n_components=K, betas=[0.1], n_repeats=1, n_permutations=N_PERMUTATIONS, random_state=seed
    )
    constant = clone(search).set_params(smoothness=[]).fit(visits).best_estimator_
    test = constant.changes(visits, n_permutations=N_PERMUTATIONS)
    tested = bool(test.factors["changes"].any())
    best = search.fit(visits).best_estimator_ if tested else constant
    differ = best.smoothness < np.inf
    found = {
        **row,
        "kind": kind,
        "happened": int(differ),
        "smoothness": best.smoothness if differ else None,
        "test_differs": int(tested),
        "levels": int(test.levels["changes"].sum()),
        "same_factors": int(best.same_factors_["same"].all()),
        "converged": int(best.model_.converged_),
    }
    return {"rows": [found]}


def cases(design: Design) -> pd.DataFrame:
    """One row per study."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for truth, kinds in (("same", SAME), ("levels", LEVELS), ("differ", DIFFER)):
        said = None if truth == "differ" else LEVEL
        for kind, settings in kinds.items():
            for yes_no in (False, True):
                answers = "yes/no" if yes_no else "graded"
                row = {"said": said, "answers": answers, "source": SIMULATED, "truth": truth}
                for seed in range(FIRST_SEED, FIRST_SEED + (1 if design.quick else N_STUDIES[truth])):
                    jobs[f"{kind}, {answers}, {seed}"] = (
                        kind,
                        SIMULATED,
                        seed,
                        {**settings, "yes_no": yes_no},
                        row,
                    )
    row = {"said": LEVEL, "answers": "graded", "source": "HELP", "truth": "same"}
    for kind, by_level in (("visits in random order", False), ("visits in the order of level", True)):
        for seed in range(FIRST_SEED, FIRST_SEED + (1 if design.quick else N_REAL)):
            jobs[f"{kind}, HELP, {seed}"] = (kind, "HELP", seed, {"by_level": by_level}, row)
    return run_cases(design, "visits", jobs, judged)


def more(table: pd.DataFrame) -> Sequence[Block]:
    """False change by kind of study, and how often true change is found."""
    head = [
        "studies",
        "answers",
        "n",
        "said to differ",
        "by the test alone",
        "levels of items said to differ",
        "other factors",
        "settled",
    ]
    blocks = []
    for truth, title in (
        ("same", f"The loadings are constant: change is said (promised: in at most {PROMISED:.0%})"),
        ("levels", "The loadings are constant, but some items are answered higher at equal scores"),
        ("differ", "The loadings differ: change is said"),
    ):
        rows = []
        own = table[table["truth"] == truth]
        for (kind, answers), part in own.groupby(["kind", "answers"], sort=False):
            rows.append([str(kind), str(answers), str(len(part)), *_shares(part)])
        rows.append(["all", "", str(len(own)), *_shares(own)])
        blocks.append(Grid(title, head, rows))
    return blocks


def _shares(part: pd.DataFrame) -> list[str]:
    shares = [
        part["happened"].mean(),
        part["test_differs"].mean(),
        (part["levels"] > 0).mean(),
        1 - part["same_factors"].mean(),
        part["converged"].mean(),
    ]
    return [f"{share:.1%}" for share in shares]


VISITS = Statement(
    "visits",
    "Loadings that differ between visits",
    f"""`icqf longitudinal` says that loadings differ between visits only where a model that lets them
predicts hidden answers better by more than one standard error, and items also rise more or less steeply with
the scores at some visits, by more than chance (q ≤ {LEVEL}). Where the loadings are constant this should be
said in at most {PROMISED:.0%} of studies; said is therefore {LEVEL}, and what happened is that change was
said. Simulated: {N_ITEMS} items, {N_VISITS} visits, {K} factors (given), β = 0.1 (given), 250 participants of
whom three in four came to each visit, unless noted; scores have a lasting and a passing part. Items that rise
at equal scores do so in equal steps, by a quarter of their range until the last visit: a change of level,
which the same test reports separately, item by item. Public: the visits of HELP, each patient's put in random
order, or in the order of their mean answer, so that the loadings are constant for certain. The last table is
not part of the promise: there loadings do differ, and change should be said.""",
    cases,
    more,
)
