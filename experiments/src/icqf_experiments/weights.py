"""How items of different ranges should count: all weights, by replication and hidden answers.

Studies, weights, numbers of factors and what is compared were settled before the full run. `LOOKED_AT` names
the studies that were looked at before. "range" stays the default unless another weighting has lower hidden
errors in all three units and finds at least as many factors of several items again, at the own and at fixed
numbers of factors, in public and in simulated studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets import load_bfi, load_help, load_help_battery, load_msq, load_phq9
from icqf.datasets.real import PHQ9, nhanes_table
from icqf.engines.parallel import run_all
from icqf.models.icqf import ICQF
from icqf.report.blocks import Grid, Section
from icqf.resampling.bootstrap import best_fits
from icqf.resampling.hidden import predict_hidden
from icqf.resampling.replication import FOUND
from icqf.workflow.evaluation import Design, linked, prose, results_page
from icqf_experiments.fit_parts import found_again
from icqf_experiments.split_studies import SplitStudy

Array = NDArray[Any]
FACTORS = (2, 3, 4, 5, 6, 8)
BETA = 0.1
SIZE = 350  # participants in a part, at most; halves where there are fewer
PARTS = 4
FOLDS = 5
SEVERAL = 2.0  # items that carry a factor, at least; factors of one item are found again by themselves
UNITS = ("points", "ranges", "deviations")  # in which errors on hidden answers are compared
QUICK = ("simulated, a fifth, in all factors",)
QUICK_FACTORS = (2, 4)
PUBLIC_MIXED, SIMULATED_MIXED, ONE_RANGE = "public, mixed", "simulated, mixed", "public, one range"
LOOKED_AT = ("HELP", "SF-36", "NHANES, a fifth", "NHANES, half", "bfi, a fifth", "bfi, half", "bfi", "phq9")

# --- weights ----------------------------------------------------------------------------------------------

Weight = Callable[[Questionnaire], Any]


def by_scale(study: Questionnaire) -> list[float]:
    """One weight for all items of one range: the inverse root of their mean variance."""
    spans = _spans(study)
    variance = np.nanvar(study.keyed_answers().to_numpy(dtype=float), axis=0)
    means = {span: max(float(variance[spans == span].mean()), (0.1 * span) ** 2) for span in np.unique(spans)}
    return [1 / np.sqrt(means[span]) for span in spans]


# Each is told a study; weights that are learned are learned from another part than they are used in.
WEIGHTS: Mapping[str, Weight] = {
    "range": lambda study: "range",
    "point for point": lambda study: None,
    "variance": lambda study: "variance",
    "variance by range": by_scale,
}
OWN_UNITS = {
    "range": "ranges",
    "point for point": "points",
    "variance": "deviations",
    "variance by range": "deviations",
}
CHOSEN = "lowest hidden error"  # the weights that predict hidden answers best, in standard deviations

# --- studies ----------------------------------------------------------------------------------------------

YES_NO = (
    *("HaveSeriousDifficultyConcentrating", "HaveSeriousDifficultyWalking", "TakeMedicationForDepression"),
    *("HaveSeriousDifficultyHearing", "HaveSeriousDifficultySeeing", "HaveDifficultyDressingOrBathing"),
    *("HaveDifficultyDoingErrandsAlone", "TakeMedicationForTheseFeelings"),
    *("EverToldDoctorHadTroubleSleeping", "ExperienceConfusionmemoryProblems", "EverBeenToldYouHaveAsthma"),
    *("DoctorEverSaidYouHadArthritis", "EverToldYouHadHeartAttack", "EverToldYouHadAStroke"),
)
OFTEN = ("HowOftenDoYouFeelWorriedOrAnxious", "HowOftenDoYouFeelDepressed")
SLEEPY, HEALTH = "HowOftenFeelOverlySleepyDuringDay", "GeneralHealthCondition"


def _study(table: pd.DataFrame, highest: Mapping[str, float]) -> Questionnaire:
    """A study of items from 0 on; participants who answered fewer than half are left out."""
    values = table[list(highest)].astype(float)
    values = values[values.notna().mean(axis=1) > 0.5]
    index = pd.Index([str(i) for i in range(1, len(values) + 1)], name="participant")
    items = tuple(Item(name, min=0.0, max=float(top)) for name, top in highest.items())
    return Questionnaire(values.set_axis(index, axis=0), items)


def _from_zero(study: Questionnaire) -> tuple[pd.DataFrame, dict[str, float]]:
    low = pd.Series({item.name: item.min for item in study.items}, dtype=float)
    return study.keyed_answers() - low, dict(zip(low.index, _spans(study), strict=True))


def _spans(study: Questionnaire) -> Array:
    return np.array([float(item.max or 0) - float(item.min or 0) for item in study.items])


def _instruments(*names: str) -> Questionnaire:
    parts = [_from_zero(load_help_battery().instruments[name]) for name in names]
    highest = {name: top for _, tops in parts for name, top in tops.items()}
    return _study(pd.concat([table for table, _ in parts], axis=1), highest)


def _nhanes(yes_no: Sequence[str]) -> Questionnaire:
    table = nhanes_table(["AgeInYearsAtScreening", *PHQ9, *OFTEN, SLEEPY, HEALTH, *YES_NO])
    table = table[table["AgeInYearsAtScreening"] >= 20].reset_index(drop=True)
    sleepy = {"Never": 0, "Rarely": 1, "Sometimes": 2, "Often": 3, "Almost always": 4}
    health = {"Excellent": 0, "Very good": 1, "Good": 2, "Fair": 3, "Poor": 4}
    table[SLEEPY] = table[SLEEPY].str.extract(rf"^({'|'.join(sleepy)})")[0].map(sleepy)
    table[HEALTH] = table[HEALTH].str.extract(rf"^({'|'.join(health)})")[0].map(health)
    highest = dict.fromkeys(PHQ9, 3.0) | dict.fromkeys((*OFTEN, SLEEPY, HEALTH), 4.0)
    return _study(table, highest | dict.fromkeys(yes_no, 1.0))


def _with_yes_no(load: Callable[[], Questionnaire], every: int) -> Questionnaire:
    """The same study, had every second or fifth item been answered with yes or no."""
    table, highest = _from_zero(load())
    for name in list(highest)[::every]:
        table[name] = (table[name] > highest[name] / 2).astype(float).where(table[name].notna())
        highest[name] = 1.0
    return _study(table, highest)


def _plain(load: Callable[[], Questionnaire]) -> Questionnaire:
    return _study(*_from_zero(load()))


def simulated(share: float, own: bool, rare: bool, seed: int = 0) -> tuple[Questionnaire, Array]:
    """700 participants, 40 items from 0 to 4 of which a share is yes/no, and the loadings (4, 40).

    The yes/no items belong to all factors, or are the last ones, which belong to a factor of their `own`;
    their answers split evenly or are rarely yes.
    """
    rng = np.random.default_rng([seed, round(10 * share), own, rare])
    n, m, k = 700, 40, 4
    scores = rng.random((n, k)) * (rng.random((n, k)) < 0.6)
    belongs = np.arange(m) * k // m if own else np.arange(m) % k
    loadings = np.zeros((m, k))
    loadings[np.arange(m), belongs] = rng.uniform(0.4, 1, m)
    crossed = rng.random(m) < 0.2
    loadings[crossed, (belongs[crossed] + 1) % k] = rng.uniform(0.2, 0.4, int(crossed.sum()))
    responses = scores @ loadings.T + rng.normal(0, 0.25, (n, m))
    last, spread = np.arange(m) >= m - round(share * m), np.arange(m) // k % round(1 / share) == 0
    yes_no = last if own else spread
    answers = np.clip(np.rint(4 * responses), 0, 4)
    answers[:, yes_no] = responses[:, yes_no] > (0.6 if rare else 0.3)
    names = [f"q{j + 1}" for j in range(m)]
    highest = dict(zip(names, np.where(yes_no, 1.0, 4.0), strict=True))
    return _study(pd.DataFrame(answers, columns=names), highest), loadings.T


Load = Callable[[], Questionnaire]
MIXED: Mapping[str, Load] = {
    "HELP": lambda: _plain(load_help),
    "SF-36": lambda: _instruments("SF-36"),
    "HELP battery": lambda: _instruments("SF-36", "CES-D", "InDUC", "PSS friends", "PSS family", "SOCRATES"),
    "CES-D, PSS": lambda: _instruments("CES-D", "PSS friends", "PSS family"),
    "NHANES, a fifth": lambda: _nhanes(YES_NO[:3]),
    "NHANES, half": lambda: _nhanes(YES_NO),
    "bfi, a fifth": lambda: _with_yes_no(load_bfi, 5),
    "bfi, half": lambda: _with_yes_no(load_bfi, 2),
    "msq, a fifth": lambda: _with_yes_no(load_msq, 5),
    "msq, half": lambda: _with_yes_no(load_msq, 2),
}
SIMULATED: Mapping[str, tuple[float, bool, bool]] = {
    f"simulated, {words}, {'their own factor' if own else 'in all factors'}{', rare' * rare}": (
        share,
        own,
        rare,
    )
    for (words, share), own, rare in product((("a fifth", 0.2), ("half", 0.5)), (False, True), (False, True))
}
# One range: range, point for point and variance by range are the same.
EQUAL: Mapping[str, Load] = {
    "bfi": lambda: _plain(load_bfi),
    "msq": lambda: _plain(load_msq),
    "phq9": lambda: _plain(load_phq9),
}


def parts_of(study: Questionnaire) -> list[Questionnaire]:
    """Independent parts: participants in random order, cut."""
    size = min(SIZE, study.n_participants // 2)
    return SplitStudy("", lambda: study, size, min(PARTS, study.n_participants // size)).parts()


# --- fits -------------------------------------------------------------------------------------------------


def fitted(study: Questionnaire, weight: Any, factors: Sequence[int]) -> dict[str, Any]:
    """Loadings in points, and squared errors on hidden answers and of the item's mean, for each k."""
    weight = np.array(weight) if isinstance(weight, list) else weight
    problem = ICQF(1, beta=BETA, item_weight=weight).state(study).problem
    scale = np.ones(problem.m) if problem.scaling is None else problem.scaling.scale
    loadings = [each[:k] / scale for k, each in zip(factors, best_fits(problem, [(k, BETA) for k in factors]),
                                                   strict=True)]  # fmt: skip
    hidden = [predict_hidden(problem, k, n_splits=FOLDS, rng=np.random.default_rng(0)) for k in factors]
    return {
        "loadings": [each.round(6).tolist() for each in loadings],
        "sse": [(each.sse.sum(axis=0) / scale**2).tolist() for each in hidden],
        "sst": [(each.sst.sum(axis=0) / scale**2).tolist() for each in hidden],
    }


def carried_by(loadings: Array) -> Array:
    """How many items carry each factor: (Σ q²)² / Σ q⁴."""
    squares = loadings**2
    return np.asarray(squares.sum(axis=1) ** 2 / np.maximum((squares**2).sum(axis=1), 1e-12))


def rows_of(
    study: str,
    weight: str,
    fits: Sequence[dict[str, Any]],
    spans: Array,
    truth: Array | None,
    factors: Sequence[int],
) -> list[dict[str, Any]]:
    """What is compared, for each number of factors: means over parts, and over pairs of parts."""
    rows = []
    yes_no = spans == spans.min()
    for at, k in enumerate(factors):
        sse, sst = (np.array([fit[name][at] for fit in fits]) for name in ("sse", "sst"))
        ranged = [np.array(fit["loadings"][at]) / spans for fit in fits]
        several = [carried_by(each) >= SEVERAL for each in ranged]
        pairs = list(combinations(range(len(fits)), 2))
        again = [(found_again(ranged[a], ranged[b]), several[a]) for a, b in pairs]
        again += [(found_again(ranged[b], ranged[a]), several[b]) for a, b in pairs]
        squares = [each**2 for each in ranged]
        row = {
            "study": study,
            "weight": weight,
            "k": k,
            "points": float(sse.sum() / sst.sum()),
            "ranges": float((sse / spans**2).sum() / (sst / spans**2).sum()),
            "deviations": float(np.mean(sse.sum(axis=0) / np.maximum(sst.sum(axis=0), 1e-12))),
            "agreement": float(np.mean([r.mean() for r, _ in again])),
            "found": float(np.mean([(r >= FOUND).mean() for r, _ in again])),
            "several_found": float(np.mean([((r >= FOUND) & own).mean() for r, own in again])),
            "single": float(np.mean([(~own).mean() for own in several])),
            "on_yes_no": float(np.mean([each[:, yes_no].sum() / max(each.sum(), 1e-12) for each in squares])),
        }
        if truth is not None and k >= len(truth):
            right = [found_again(truth, each) for each in ranged]
            row |= {"recovered": float(np.mean([(r >= FOUND).mean() for r in right]))}
        rows.append(row)
    return rows


def compared(design: Design) -> pd.DataFrame:
    """All studies with all weights."""
    loads: dict[str, tuple[str, Callable[[], tuple[Questionnaire, Array | None]]]] = {}
    for name, load in MIXED.items():
        loads[name] = (PUBLIC_MIXED, partial(_without_truth, load))
    for name, about in SIMULATED.items():
        loads[name] = (SIMULATED_MIXED, partial(simulated, *about))
    for name, load in EQUAL.items():
        loads[name] = (ONE_RANGE, partial(_without_truth, load))
    if design.quick:
        loads = {name: loads[name] for name in QUICK}
    factors = QUICK_FACTORS if design.quick else FACTORS
    jobs: dict[str, tuple[Any, ...]] = {}
    known: dict[str, tuple[str, Array, Array | None, int]] = {}
    for name, (kind, made) in loads.items():
        study, truth = made()
        parts = parts_of(study)
        known[name] = (kind, _spans(study), truth, len(parts))
        for at, part in enumerate(parts):
            for weight, told in WEIGHTS.items():
                jobs[f"{name}; {weight}; {at}"] = (part, told(parts[at - 1]), factors)
    found = run_all(
        jobs,
        fitted,
        n_jobs=design.n_jobs,
        checkpoint=design.journal("weights"),
        callback=design.callback,
        mixed=True,
    )
    rows = []
    for name, (kind, spans, truth, n_parts) in known.items():
        for weight in WEIGHTS:
            fits = [found[f"{name}; {weight}; {at}"] for at in range(n_parts)]
            rows += [{"kind": kind, **row} for row in rows_of(name, weight, fits, spans, truth, factors)]
    return pd.DataFrame(rows)


def _without_truth(load: Load) -> tuple[Questionnaire, None]:
    return load(), None


# --- the page ---------------------------------------------------------------------------------------------


def own_k(table: pd.DataFrame) -> pd.DataFrame:
    """Of each study and weight, the row of the k with the lowest hidden error in the weight's own units."""
    own = np.array([row[OWN_UNITS[row["weight"]]] for row in table.to_dict("records")])
    best = table.assign(own=own).groupby(["study", "weight"], sort=False)["own"].idxmin()
    return table.loc[best]


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    """Of each study, the weights with the lowest hidden error at their own k, as a further candidate."""
    best = own_k(table)
    picked = best.loc[best.groupby("study", sort=False)["deviations"].idxmin()]
    rows = table.merge(picked[["study", "weight"]], on=["study", "weight"])
    return rows.assign(weight=CHOSEN)


MEASURES = {
    **{f"{unit}": f"hidden error, {unit}" for unit in UNITS},
    "agreement": "agreement",
    "found": "found again",
    "several_found": "found again, several items",
    "single": "factors of one item",
    "on_yes_no": "on the narrowest items",
    "recovered": "true factors found",
}


def weights_page(design: Design) -> Path:
    """Run all comparisons; writes the table ``weights.csv`` and the page ``weights.md``."""
    design.out.mkdir(parents=True, exist_ok=True)
    table = compared(design)
    table.to_csv(design.out / "weights.csv", index=False, float_format="%.6g")
    own = own_k(table)
    own_chosen = own.loc[own.groupby("study", sort=False)["deviations"].idxmin()].assign(weight=CHOSEN)
    every = pd.concat([table, chosen(table)])
    return results_page(
        design,
        "weights",
        "How items of different ranges should count",
        _SETTING,
        [
            Section("In short", [verdict(pd.concat([own, own_chosen]), every), why(table)]),
            Section(
                "At the number of factors that predicts hidden answers best",
                [_means(pd.concat([own, own_chosen]), "weight"), _wins(own)],
            ),
            Section("At fixed numbers of factors", [_means(every, "weight"), _by_k(every)]),
            Section("Every study, at its own number of factors", [_studies(own)]),
            linked("All numbers", "weights.csv"),
        ],
    )


def verdict(own: pd.DataFrame, fixed: pd.DataFrame) -> Grid:
    """How often each candidate keeps up with "range" in what decides: means over mixed studies."""
    rows = []
    for weight in (*WEIGHTS, CHOSEN):
        if weight == "range":
            continue
        lower = again = number = 0
        for table, kind in product((own, fixed), (PUBLIC_MIXED, SIMULATED_MIXED)):
            mine = _decisive(table, kind, weight)
            usual = _decisive(table, kind, "range")
            lower += sum(mine[unit] < usual[unit] for unit in UNITS)
            again += mine["share"] >= usual["share"]
            number += mine["number"] >= usual["number"]
        rows.append([weight, f"{lower} of 12", f"{again} of 4", f"{number} of 4"])
    head = ["weights", "lower hidden error", "as large a share found again", "as many found again"]
    note = (
        "Compared with range: three units, own and fixed numbers of factors, public and simulated mixed "
        "studies; found again are factors of several items. Range stays the default unless another one keeps "
        "up everywhere, at no higher cost; the last one needs a search for each weighting"
    )
    return Grid(note, head, rows)


def _decisive(table: pd.DataFrame, kind: str, weight: str) -> dict[str, float]:
    part = table[(table["kind"] == kind) & (table["weight"] == weight)]
    share = part["several_found"].to_numpy(dtype=float)
    values = {unit: part[unit].to_numpy(dtype=float) for unit in UNITS}
    values |= {"share": share, "number": share * part["k"].to_numpy(dtype=float)}
    return {name: round(float(each.mean()), 3) if len(each) else 0.0 for name, each in values.items()}


def why(table: pd.DataFrame) -> str:
    """What range does to yes/no items."""
    fifth = table[table["study"].str.contains("a fifth")]

    def mean(name: str, weight: str, k: int | None = None) -> float:
        own = fifth[(fifth["weight"] == weight) & ((fifth["k"] == k) | (k is None))]
        return float(own[name].to_numpy(dtype=float).mean())

    least, most = int(fifth["k"].min()), int(fifth["k"].max())
    return prose(
        f"""Why range loses at few factors and seems to win at many: an answer of yes or no uses the whole
        range, a graded answer seldom does. Counted by range, the fifth of the items that are yes/no therefore
        draws {mean("on_yes_no", "range"):.0%} of the squared loadings
        ({mean("on_yes_no", "variance"):.0%} by variance). Of {least} factors
        {mean("single", "range", least):.0%} are carried by one item, of {most} factors
        {mean("single", "range", most):.0%}; such a factor is found again in every study, and says nothing
        but that the item is there."""
    )


_SETTING = f"""Mixed questionnaires are cut into independent parts of up to {SIZE} participants, which are
fitted with items weighted in four ways: alike by range, point for point, by each item's variance, and by
the mean variance of all items with the same range. Hidden answers ({FOLDS} folds) are predicted by
fits that do not see them; the error is relative to that of the item's mean, and is given in points,
in ranges and in standard deviations of the items, because each weighting is best in units of its
own. A factor is found again when its loadings, in ranges, correlate {FOUND} or more with its
counterpart in another part. A factor that one item carries (fewer than {SEVERAL:g} items by (Σ q²)²
/ Σ q⁴) is found again almost by itself, so those that several items carry are also counted alone.
Simulated studies have four known factors. "{CHOSEN}" takes, in each study, the weights whose hidden
error in standard deviations is lowest. Looked at before the studies, weights and measures were
settled: {", ".join(LOOKED_AT)}."""


def _cells(part: pd.DataFrame) -> list[str]:
    means = part.reindex(columns=list(MEASURES)).mean()
    return ["–" if np.isnan(mean) else f"{mean:.3f}" for mean in means]


def _means(table: pd.DataFrame, by: str) -> Grid:
    rows = []
    for (kind, name), part in table.groupby(["kind", by], sort=False):
        rows.append([str(kind), str(name), f"{part['k'].mean():.1f}", *_cells(part)])
    return Grid("Means over studies", ["studies", "weights", "k", *MEASURES.values()], rows)


def _by_k(table: pd.DataFrame) -> Grid:
    mixed = table[table["kind"] != ONE_RANGE]
    rows = []
    for k in sorted(set(mixed["k"])):
        for weight, part in mixed[mixed["k"] == k].groupby("weight", sort=False):
            rows.append([str(k), str(weight), *_cells(part)])
    return Grid("Mixed studies by number of factors", ["k", "weights", *MEASURES.values()], rows)


def _wins(own: pd.DataFrame) -> Grid:
    """In how many mixed studies each weighting is best, ties counted for all."""
    mixed = own[own["kind"] != ONE_RANGE]
    rows = []
    for name, title in MEASURES.items():
        if name in ("single", "on_yes_no") or name not in mixed:
            continue
        values = mixed.pivot(index="study", columns="weight", values=name).round(3).dropna()
        best = values.min(axis=1) if name in UNITS else values.max(axis=1)
        wins = values.eq(best, axis=0).sum()
        rows.append([title, str(len(values)), *(str(int(wins[weight])) for weight in WEIGHTS)])
    return Grid("In how many mixed studies each is best", ["by", "studies", *WEIGHTS], rows)


def _studies(own: pd.DataFrame) -> Grid:
    rows = [
        [str(study), str(weight), str(int(part["k"].iloc[0])), *_cells(part)]
        for (study, weight), part in own.groupby(["study", "weight"], sort=False)
    ]
    return Grid("", ["study", "weights", "k", *MEASURES.values()], rows)
