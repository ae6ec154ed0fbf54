"""Norms by age and sex: a percentile, and whether new participants score lower than it says.

The laws, sizes, studies, seeds and candidates were committed before any of them was run. The method was
developed on other laws (normal scores with other trends, seeds 900 to 905).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gamma, norm
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import SplineTransformer

from icqf.analyses.norms import learn_norms
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_bfi, load_phq9
from icqf.models.icqf import ICQF
from icqf.report.blocks import Block, Grid
from icqf_experiments.calibration.frame import SIMULATED, Statement, from_jobs
from icqf_experiments.calibration.populations import Array

TRENDS, ZEROS, ERRORS, SIZES = (
    ("none", "linear", "curved", "growth"),
    (0.1, 0.5),
    ("normal", "skewed"),
    (300, 1000),
)
LARGE = 5000  # with curved and growth alone
REPEATS, LARGE_REPEATS = 4, 2
WEIGHTED = ("linear", "growth")  # trends of samples in which high scores are three times as likely, n = 1000
PUBLIC: dict[str, tuple[Callable[[], Questionnaire], int]] = {"bfi": (load_bfi, 5), "phq9": (load_phq9, 2)}
SPLITS = 4
NEW = 4000  # new participants of each law, for the errors; the first of them are cases
CASES = 20
PUBLIC_CASES = 150
LIMIT = 3.0  # points
CANDIDATES = ("norms", "age bands", "everybody")
PERCENTILES = np.arange(5, 100, 5)
_LAW = {"linear": 0.7, "curved": 0.45, "growth": 0.9}


def norms_jobs(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All samples: a name, and the arguments of `compared`; a small one to be quick."""
    if quick:
        return {"quick": ("curved", 0.5, "skewed", 300, 0, ""), "quick, phq9": ("phq9", 0.0, "", 0, 0, "")}
    jobs: dict[str, tuple[Any, ...]] = {}
    for trend, zeros, error, n, repeat in product(TRENDS, ZEROS, ERRORS, SIZES, range(REPEATS)):
        jobs[f"{trend}, {zeros:g}, {error}, {n}, {repeat}"] = (trend, zeros, error, n, repeat, "")
    for trend, zeros, error, repeat in product(TRENDS[2:], ZEROS, ERRORS, range(LARGE_REPEATS)):
        jobs[f"{trend}, {zeros:g}, {error}, {LARGE}, {repeat}"] = (trend, zeros, error, LARGE, repeat, "")
    for trend, zeros, repeat in product(WEIGHTED, ZEROS, range(REPEATS)):
        jobs[f"{trend}, {zeros:g}, weighted, {repeat}"] = (trend, zeros, "normal", 1000, repeat, "weighted")
    for trend, zeros in product(TRENDS, ZEROS):
        jobs[f"{trend}, {zeros:g}, quantile regression"] = (trend, zeros, "normal", 1000, 0, "quantiles")
    return jobs | {f"{name}, {at}": (name, 0.0, "", 0, at, "") for name, at in product(PUBLIC, range(SPLITS))}


class Law:
    """Scores between 0 and 1 by age and sex, whose distribution is known."""

    def __init__(self, trend: str, zeros: float, error: str) -> None:
        self.trend, self.skewed = trend, error == "skewed"
        self.shift = -float(self._quantile(zeros)) * 0.6  # about this share has a score of 0

    def _quantile(self, share: float) -> Any:
        return (gamma.ppf(share, 4) - 4) / 2 if self.skewed else norm.ppf(share)

    def _level(self, age: Array, female: Array) -> tuple[Array, Array]:
        x, size = (age - 12) / 12, _LAW.get(self.trend, 0.0)
        shapes = {
            "none": 0 * x,
            "linear": size * x + 0.25 * female,
            "curved": size * np.cos(2 * np.pi * x) + 0.2 * female,
            "growth": size / (1 + np.exp(-10 * (x + 0.15 * female))) - size / 2,
        }
        return self.shift + shapes[self.trend], 0.6 * np.exp(0.5 * x * (self.trend != "none"))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Scores and covariates of `n` participants."""
        age, female = rng.uniform(6, 18, n), rng.integers(0, 2, n)
        mean, spread = self._level(age, female)
        noise = (rng.gamma(4, size=n) - 4) / 2 if self.skewed else rng.normal(size=n)
        scores = np.clip(np.maximum(mean + spread * noise, 0) / 2.2, 0, 1) ** 1.3
        sex = np.where(female, "female", "male")
        return pd.DataFrame({"score": scores.round(6)}), pd.DataFrame({"age": age, "sex": sex})

    def percentiles(self, scores: pd.DataFrame, covariates: pd.DataFrame) -> Array:
        """The true percentiles, counting half of those with the same score."""
        mean, spread = self._level(covariates["age"].to_numpy(), covariates["sex"].eq("female").to_numpy())
        score = scores["score"].to_numpy()
        standard = (2.2 * score ** (1 / 1.3) - mean) / spread
        share = gamma.cdf(2 * standard + 4, 4) if self.skewed else norm.cdf(standard)
        share = np.where(score == 0, share / 2, share)
        return 100 * np.where(score == 1, (share + 1) / 2, share)


def bands(scores: pd.DataFrame, covariates: pd.DataFrame) -> Callable[[pd.DataFrame, pd.DataFrame], Array]:
    """The usual tables: percentiles within four age bands of each sex."""
    edges = covariates["age"].quantile([0.25, 0.5, 0.75]).to_numpy()

    def cell(table: pd.DataFrame) -> Array:
        return np.searchsorted(edges, table["age"]) + 4 * table["sex"].eq("female").to_numpy()

    own = {at: np.sort(scores["score"].to_numpy()[cell(covariates) == at]) for at in range(8)}

    def percentiles(new: pd.DataFrame, at: pd.DataFrame) -> Array:
        places, values = cell(at), new["score"].to_numpy()
        out = np.empty(len(values))
        for place, known in own.items():
            mine = places == place
            sides = [np.searchsorted(known, values[mine], side=side) for side in ("left", "right")]
            out[mine] = 100 * (sides[0] + sides[1]) / 2 / max(len(known), 1)
        return out

    return percentiles


def quantiles(
    scores: pd.DataFrame, covariates: pd.DataFrame
) -> Callable[[pd.DataFrame, pd.DataFrame], Array]:
    """Quantile regression on a cubic spline of age with a curve for each sex, sorted; 19 percentiles."""
    spline = SplineTransformer(n_knots=4, degree=3, include_bias=False).fit(covariates[["age"]])

    def design(table: pd.DataFrame) -> Array:
        basis = spline.transform(table[["age"]])
        female = table["sex"].eq("female").to_numpy()[:, None]
        return np.hstack([basis, female, basis * female])

    X, y = design(covariates), scores["score"].to_numpy()
    fits = [QuantileRegressor(quantile=p / 100, alpha=0).fit(X, y) for p in PERCENTILES]

    def percentiles(new: pd.DataFrame, at: pd.DataFrame) -> Array:
        curves = np.clip(np.sort(np.stack([fit.predict(design(at)) for fit in fits], axis=1), axis=1), 0, 1)
        values, out = new["score"].to_numpy(), np.empty(len(new))
        ends, shares = np.array([0.0, 1.0]), np.array([0.0, *PERCENTILES, 100.0])
        for i, (value, curve) in enumerate(zip(values, curves, strict=True)):
            knots = np.array([ends[0], *curve, ends[1]])
            same = np.abs(knots - value) < 1e-4
            out[i] = (
                (shares[same].min() + shares[same].max()) / 2
                if same.any()
                else np.interp(value, knots, shares)
            )
        return out

    return percentiles


def _norms(
    scores: pd.DataFrame, covariates: pd.DataFrame | None, weights: Array | None = None
) -> tuple[Callable[[pd.DataFrame, pd.DataFrame], Array], float]:
    norms = learn_norms(scores, covariates, sample_weight=weights)
    use = covariates is not None
    error = norms.errors[0]
    return (
        lambda new, at: norms.percentiles(new, at if use else None)["score"].to_numpy(),
        float("nan") if error is None else error,
    )


def compared(trend: str, zeros: float, error: str, n: int, repeat: int, kind: str) -> dict[str, Any]:
    """Errors of every candidate in one sample, and cases: is a new participant below another's score?"""
    if trend in PUBLIC:
        return {"rows": _public(trend, repeat)}
    law, numbers = Law(trend, zeros, error), (TRENDS.index(trend), int(100 * zeros), ERRORS.index(error), n)
    rng = np.random.default_rng([28, *numbers, repeat, len(kind)])
    weights = None
    scores, covariates = law.draw(n if kind != "weighted" else 4 * n, rng)
    if kind == "weighted":
        high = scores["score"] > scores["score"].median()
        chosen = rng.random(len(high)) < np.where(high, 0.375, 0.125)
        weights = np.where(high, 1.0, 3.0)[chosen]
        scores, covariates = scores[chosen].reset_index(drop=True), covariates[chosen].reset_index(drop=True)
    norms, std_error = _norms(scores, covariates, weights)
    candidates = {"norms": norms}
    if kind == "quantiles":
        candidates["quantile regression"] = quantiles(scores, covariates)
    elif kind == "weighted":
        candidates["without weights"] = _norms(scores, covariates)[0]
    else:
        candidates |= {"age bands": bands(scores, covariates), "everybody": _norms(scores, None)[0]}
    new, at = law.draw(NEW, rng)
    true, own = law.percentiles(new, at), norms(new, at)
    judged = np.isfinite(own) & (true >= 5) & (true <= 95)
    about = {"trend": trend, "zeros": zeros, "errors": error, "n": n, "kind": kind}
    rows: list[dict[str, Any]] = []
    for name, candidate in candidates.items():
        off = np.abs(candidate(new, at) - true)[judged]
        place = np.clip(np.rint(true[judged] / 10), 1, 9)
        worst = max(off[place == each].mean() for each in np.unique(place) if (place == each).sum() >= 20)
        figures = {
            "candidate": name,
            "mean_error": off.mean(),
            "worst": worst,
            "high": np.quantile(off, 0.95),
        }
        if name == "norms":
            figures |= {"std_error": std_error, "root": float(np.sqrt((off**2).mean()))}
        rows.append({"said": None, "happened": 0, **_of(SIMULATED), **about, **figures})
    return {"rows": rows + _cases(norms, new[:CASES], at[:CASES], rng, _of(SIMULATED) | about)}


def _of(source: str) -> dict[str, Any]:
    return {"answers": "graded", "source": source}


def _cases(
    norms: Callable[[pd.DataFrame, pd.DataFrame], Array],
    new: pd.DataFrame,
    at: pd.DataFrame,
    rng: np.random.Generator,
    about: dict[str, Any],
) -> list[dict[str, Any]]:
    """Said: the percentile of another participant's score; happened: this participant scores lower."""
    other = new.iloc[rng.permutation(len(new))].set_axis(new.index, axis=0)
    said, own, theirs = norms(other, at) / 100, new["score"].to_numpy(), other["score"].to_numpy()
    lower = np.where(own == theirs, rng.random(len(own)) < 0.5, own < theirs)
    rows = zip(said, lower, strict=True)
    return [{"said": float(p), "happened": int(low), **about} for p, low in rows if np.isfinite(p)]


def _public(name: str, split: int) -> list[dict[str, Any]]:
    """Model and norms from one half of a public study, judged in the other."""
    load, k = PUBLIC[name]
    study, rng = load(), np.random.default_rng([28, split])
    order = rng.permutation(study.n_participants)
    half, rest = study.take(np.sort(order[: len(order) // 2])), study.take(np.sort(order[len(order) // 2 :]))
    model = ICQF(k, n_init=3).fit(half.with_confounds(None))
    first, second = (np.asarray(model.transform(each.with_confounds(None))) for each in (half, rest))
    rows: list[dict[str, Any]] = []
    for r in range(k):
        norms, _ = _norms(pd.DataFrame({"score": first[:, r]}), _covariates(half))
        chosen = np.sort(rng.permutation(len(second))[:PUBLIC_CASES])
        new = pd.DataFrame({"score": second[chosen, r].round(6)})
        at = _covariates(rest).iloc[chosen].reset_index(drop=True)
        rows += _cases(
            norms, new, at, rng, _of(name) | {"n": len(first), "kind": "public", "trend": f"factor {r + 1}"}
        )
    return rows


def _covariates(study: Questionnaire) -> pd.DataFrame:
    return pd.DataFrame(study.confounds).reset_index(drop=True)


def _more(table: pd.DataFrame) -> Sequence[Block]:
    """Errors of all candidates against the truth, by law and size."""
    known = table[table["said"].isna()]
    ours = known[known["candidate"] == "norms"]
    blocks: list[Block] = []
    plain = known[known["kind"].fillna("") == ""]
    groups = {"all": plain} | {f"{t}": plain[plain["trend"] == t] for t in TRENDS}
    groups |= {f"{z:.0%} with a score of 0": plain[plain["zeros"] == z] for z in ZEROS}
    groups |= {f"{e} errors": plain[plain["errors"] == e] for e in ERRORS}
    rows = []
    for (name, part), n in product(groups.items(), (*SIZES, LARGE)):
        mine = part[part["n"] == n]
        if len(mine):
            by = mine.groupby("candidate")[["mean_error", "worst"]].mean().to_dict("index")
            cells = [f"{by[c]['mean_error']:.1f} / {by[c]['worst']:.1f}" for c in CANDIDATES if c in by]
            rows.append([name, str(n), str(len(mine) // len(by)), *cells])
    head = ["law", "participants", "samples", *CANDIDATES]
    blocks.append(
        Grid(
            "Error of percentiles from the 5th to the 95th, in points: mean / mean at the worst percentile",
            head,
            rows,
        )
    )
    thousand = ours[(ours["n"] == 1000)]
    within = (thousand["mean_error"] <= LIMIT).mean()
    laws = thousand.groupby(["trend", "zeros", "errors", "kind"], dropna=False)["mean_error"].mean()
    blocks.append(
        f"At 1000 participants, the mean error is {thousand['mean_error'].mean():.2f} points; it is "
        f"{LIMIT:g} or less in {within:.0%} of {len(thousand)} samples, and on average over samples in "
        f"{(laws <= LIMIT).sum()} of {len(laws)} laws (largest {laws.max():.2f}). The standard error on the "
        f"page is {thousand['std_error'].mean():.1f} points; the root mean squared error is "
        f"{thousand['root'].mean():.1f}."
    )
    others = known[known["kind"].isin(["weighted", "quantiles"])]
    rows = [
        [
            str(kind),
            str(name),
            str(len(part)),
            *(f"{part[c].mean():.1f}" for c in ("mean_error", "worst", "high")),
        ]
        for (kind, name), part in others.groupby(["kind", "candidate"])
    ]
    if rows:
        head = ["samples", "candidate", "n", "mean error", "worst percentile", "95th percentile of errors"]
        blocks.append(Grid("Survey weights, and quantile regression, at 1000 participants", head, rows))
    return blocks


NORMS = Statement(
    "norms",
    "A percentile among participants of the same age and sex",
    f"""Norms by age and sex are learned from simulated samples whose true percentiles are known, and from
    half of a public study. Said: the percentile of a score at a new participant's age and sex. Happened:
    this participant scores lower. In simulations percentiles are also compared with the truth, for {NEW}
    new participants whose true percentile is from 5 to 95, and with other candidates: percentiles within
    four age bands of each sex, one norm for everybody, and quantile regression on splines. The mean error is
    wanted to be {LIMIT:g} points or less at 1000 participants. Weighted samples have three times as many
    high scores as the population.""",
    from_jobs("norms", norms_jobs, compared),
    _more,
)
