"""Crosswalks: whether intervals hold the other questionnaire's score, and how near predictions come."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from icqf.analyses.crosswalk import DIFFERENT, LEVEL, LINKABLE, Link, learn_crosswalk
from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets import load_help_battery, make_battery
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.split_studies import PUBLISHED, psychtools_table

SIZES = (200, 800)  # learners
HIGHEST = {"graded": 3, "yes/no": 1}
SHARED = (0.0, 0.5, 1.0)  # share of participants for whom the two have anything in common
FIRST_SEED, SPLITS = 8100, 3
MOST, NEW, SHOWN = 1000, 2000, 60  # learners and held-out participants at most, and those in the table
FACTORS = 2  # of the target, in public studies
TAI_REVERSED = ("pleasant", "rested", "calm", "happy", "secure", "decisive", "content", "steady")
_NEUROTICISM = (2, 4, 7, 9, 11, 14, 16, 19, 21, 23, 26, 28, 31, 33, 35, 38, 40, 43, 45, 47, 50, 52, 55, 57)
EPI_NEUROTICISM = [f"V{number}" for number in _NEUROTICISM]  # 1 is yes, 2 is no
# Negative affect of the PANAS, without the three words that are in the SAI
NEGATIVE_AFFECT = ["afraid", "ashamed", "distressed", "guilty", "hostile", "irritable", "scared"]
PUBLIC = ("SF-36 to CES-D", "SAI to TAI", "MSQ to SAI", "EPI to TAI", "PANAS to SAI")


def pair_of(name: str) -> tuple[Questionnaire, Questionnaire, pd.DataFrame | None]:
    """Two questionnaires of a public study that the same people answered, and columns of groups."""
    if name == "SF-36 to CES-D":
        parts = load_help_battery().instruments
        source, target = parts["SF-36"], parts["CES-D"]
        return source, target, None if source.confounds is None else source.confounds[["sex"]]
    tai = (
        _state("tai", TAI_REVERSED, (1, 4))
        if name.endswith("TAI")
        else _state("sai", PUBLISHED["sai"], (1, 4))
    )
    if name == "SAI to TAI":
        return _state("sai", PUBLISHED["sai"], (1, 4)), tai, None
    if name == "EPI to TAI":
        return _state("epiR", EPI_NEUROTICISM, (1, 2), EPI_NEUROTICISM), tai, None
    if name == "PANAS to SAI":
        return _state("msqR", (), (0, 3), NEGATIVE_AFFECT), tai, None
    others = [item.name for item in tai.items]  # adjectives that are not in the SAI
    return _state("msqR", (), (0, 3), _adjectives(others)), tai, None


def _adjectives(others: list[str]) -> list[str]:
    table = psychtools_table("msqR")
    known = table.columns[: table.columns.get_loc("Extraversion")]
    answered = table.loc[table["time"] == 1, known].notna().mean() > 0.9
    return [name for name in known if name not in others and answered[name]]


def _state(name: str, reversed_: Any, ends: tuple[int, int], items: list[str] | None = None) -> Questionnaire:
    """The first visit of a table of psychTools, by study and id."""
    table = psychtools_table(name)
    table = table[(table["time"] == 1) & table["id"].notna()]
    ids = table["study"].str.lower() + "-" + table["id"].astype(int).astype(str)
    answers = table[items or table.columns.drop(["study", "time", "id"])].set_axis(ids)
    answers = answers[~ids.duplicated(keep=False).to_numpy()].astype(float)
    answers = answers.where((answers >= ends[0]) & (answers <= ends[1]))
    low, high = ends
    known = tuple(Item(str(c), min=low, max=high, reverse=c in reversed_) for c in answers)
    return Questionnaire(answers, known)


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies: a name, and the arguments of `judged`."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (answers, n, shared, split) in enumerate(product(HIGHEST, SIZES, SHARED, range(SPLITS))):
        jobs[f"{answers}, {n}, shared {shared:g}, {split}"] = (answers, n, shared, FIRST_SEED + number)
    if quick:
        return dict(list(jobs.items())[:1])
    public = {
        f"{name}, {split}": (name, 0, 1.0, FIRST_SEED + split)
        for name, split in product(PUBLIC, range(SPLITS))
    }
    return jobs | public


def judged(kind: str, n: int, shared: float, seed: int) -> dict[str, Any]:
    """Learn from half of the participants, and predict the others."""
    rng, groups = np.random.default_rng(seed), None
    if kind in HIGHEST:
        made = make_battery(
            n + 1000,
            n_items=(20, 9),
            n_meta=2,
            absent=0.0,
            own=0.6,
            shared=shared,
            noise=0.3,
            highest=(HIGHEST[kind],),
            random_state=seed,
        )
        source, target = made.battery.instruments.values()
    else:
        source, target, groups = pair_of(kind)
        both = source.answers.index.intersection(target.answers.index)
        source, target = (each.take(each.answers.index.get_indexer(both)) for each in (source, target))
        n = min(len(both) // 2, MOST)
    order = rng.permutation(len(source.answers))
    learners, others = order[:n], order[n : n + NEW]
    if groups is None:
        groups = pd.DataFrame({"at random": rng.integers(0, 2, len(order))}, index=source.answers.index)
    scores = None
    if kind not in HIGHEST:
        with warnings.catch_warnings(action="ignore"):
            model = ICQF(FACTORS, random_state=0).fit(target.take(learners).with_confounds(None))
            values = np.asarray(model.transform(target.with_confounds(None)))
        scores = pd.DataFrame(values, target.answers.index, ["factor1", "factor2"])
    known = source.take(learners), target.take(learners)
    found = learn_crosswalk(*known, names=("a", "b"), scores=scores, by=groups)
    return {"rows": list(_cases(found, source.take(others), target.take(others), scores, kind, n, shared))}


def _cases(
    found: Any,
    source: Questionnaire,
    target: Questionnaire,
    scores: pd.DataFrame | None,
    kind: str,
    n: int,
    shared: float,
) -> Iterator[dict[str, Any]]:
    predicted = found.predict(source, LEVEL)
    sums = source.keyed_answers().sum(axis=1, skipna=False)
    low, width = (
        np.array(each) for each in (source.ranges()["min"], source.ranges()["max"] - source.ranges()["min"])
    )
    (plain,) = found.by_sum.predict(((sums - low.sum()) / width.sum()).to_numpy()[:, None], LEVEL)
    truth = {found.scores[0]: target.keyed_answers().sum(axis=1, skipna=False)}
    if scores is not None:
        truth |= {f"b_{name}": each.loc[target.answers.index] for name, each in scores.items()}
    about = {
        "answers": kind if kind in HIGHEST else ("yes/no" if kind.startswith("EPI") else "graded"),
        "source": SIMULATED if kind in HIGHEST else kind,
        "participants": n,
        "shared": shared,
        "linkable": int(found.correlation >= LINKABLE),
        "different": int(any(g["rmsd"] >= DIFFERENT and g["p"] < 0.05 for g in found.groups)),
    }
    stated = {row["score"]: row["correlation"] for row in found.evidence if row["method"] == "answers"}
    for name, y in truth.items():
        own = name == found.scores[0]
        value, low_end, high_end = (predicted[f"{name}{end}"] for end in ("", "_low", "_high"))
        known = y.notna() & value.notna() & sums.notna()
        inside = ((low_end <= y + 1e-9) & (y <= high_end + 1e-9))[known]
        third = pd.qcut(value[known].rank(method="first"), 3, labels=["low", "middle", "high"])
        numbers = {
            "correlation": _correlation(value[known], y[known]),
            "stated": stated[name],
            "by_sum": _correlation(plain.value[known], y[known]) if own else np.nan,
            "error": float((value - y)[known].abs().mean()),
            "error_by_sum": float(np.abs(plain.value - y)[known].mean())
            if name == found.scores[0]
            else np.nan,
            "spread": float(y[known].std()),
            "held_all": float(inside.mean()),
            "held_by_sum": float(((plain.low <= y) & (y <= plain.high))[known].mean()) if own else np.nan,
        }
        if own:
            at = np.linspace(low.sum(), (low + width).sum(), 201)
            numbers["error_by_rank"] = float(np.abs(_linked(source, target, at, sums) - y)[known].mean())
        for place in range(min(SHOWN, int(known.sum()))):
            yield {
                "said": LEVEL,
                "happened": int(inside.iloc[place]),
                **about,
                "score": "sum" if own else "factor",
                "third": str(third.iloc[place]),
                **({key: round(x, 4) for key, x in numbers.items()} if place == 0 else {}),
            }


def _linked(source: Questionnaire, target: Questionnaire, at: Any, sums: pd.Series) -> Any:
    """Equipercentile linking by the held-out participants' own distributions, which favours it."""
    y = target.keyed_answers().sum(axis=1, skipna=False)
    known = sums.notna() & y.notna()
    ends = (float(target.ranges()["min"].sum()), float(target.ranges()["max"].sum()), True)
    return Link.of(sums[known].to_numpy(), y[known].to_numpy(), at, ends)(sums.to_numpy())


def _correlation(one: Any, other: Any) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.std(one) > 1e-9 else 0.0


def cases(design: Design) -> pd.DataFrame:
    """One row per held-out participant and score."""
    return run_cases(design, "crosswalk", jobs_of(quick=design.quick), judged)


def more(table: pd.DataFrame) -> Iterator[Block]:
    """How near predictions came, beside regression on sums and equipercentile linking."""
    first = table.dropna(subset="correlation")
    rows = []
    for key, part in first.groupby(["source", "answers", "participants", "shared", "score"], sort=False):
        means = part[_SHOWN].mean()
        rows.append(
            [*(f"{each:g}" if isinstance(each, float) else str(each) for each in key), str(len(part))]
            + ["–" if np.isnan(x) else f"{x:.2f}" for x in means]
        )
    head = ["study", "answers", "learners", "shared", "score", "splits", *_SHOWN_AS]
    yield Grid("Held-out participants: how near predictions came (means over splits)", head, rows)
    by_third = [
        [str(score), str(third), str(len(part)), f"{part['happened'].mean():.3f}"]
        for (score, third), part in table.groupby(["score", "third"])
    ]
    yield Grid("Intervals by predicted score", ["score", "third", "n", "held"], by_third)
    alarms = first[(first["score"] == "sum") & (first["source"] != "SF-36 to CES-D")]
    yield (
        f"Groups drawn at random were called different in {int(alarms['different'].sum())} of {len(alarms)} "
        "crosswalks."
    )


_SHOWN = [
    *("correlation", "stated", "by_sum", "error", "error_by_sum", "error_by_rank", "spread"),
    *("held_all", "held_by_sum"),
]
_SHOWN_AS = [
    *("r", "r stated", "r, regression on sum", "mean error", "of regression on sum", "of same rank"),
    *("SD of the score", "held", "held, regression on sum"),
]

CROSSWALK = Statement(
    "crosswalk",
    "Scores of another questionnaire",
    f"""Said: the sum, or a factor's score, of the other questionnaire lies in the crosswalk's
    {LEVEL:.0%} interval. Happened: it did, for participants who were not in the study that the crosswalk was
    learned from. Simulated batteries of 20 and 9 items, where a share of the participants has something in
    common to both, with 200 and 800 learners; and five pairs of public studies, of which half (at most
    {MOST}) are learners, in {SPLITS} splits each: SF-36 to CES-D (HELP), state to trait anxiety (SAI, TAI),
    yes/no items of neuroticism to trait anxiety (EPI, TAI), negative affect to state anxiety (PANAS, SAI),
    all keyed as in their manuals, and all mood adjectives to state anxiety (MSQ, SAI), whose sum means
    nothing because pleasant ones are not reversed. The method was chosen on other studies
    (benchmarks/crosswalk_candidates.py). Of each study and score, {SHOWN} held-out participants are in the
    table.""",
    cases,
    lambda table: list(more(table)),
)
