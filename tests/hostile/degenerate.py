"""Degenerate tables through every public call: finite numbers or an InputError, and no warning of others."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hostile.tally import Hang, Tally, in_short, time_limit
from icqf import ICQF, ICQFCV, InputError, consensus
from icqf.analyses import FactorAnalysisMethod, ICQFMethod, describe_scores, stability
from icqf.baselines import (
    FactorAnalysis,
    bartlett_sphericity,
    bic_factor_analysis,
    comparison_data,
    empirical_kaiser,
    every_rule,
    hull_method,
    item_moments,
    kmo,
    nest,
    parallel_analysis,
    velicer_map,
)
from icqf.data.questionnaire import Questionnaire
from icqf.errors import concerns_users
from icqf.models import L1NMF
from icqf.report import analyse, as_html, as_json, as_markdown, report_of

SECONDS = 60
RANGE = (0, 3)


# --- tables -----------------------------------------------------------------------------------------------


def plain(n: int = 30, m: int = 6, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    level = rng.random((n, 2))
    answers = np.clip(np.rint(level[:, np.arange(m) % 2] * 3 + rng.normal(0, 0.5, (n, m))), 0, 3)
    return pd.DataFrame(answers, columns=[f"q{j}" for j in range(m)], index=[f"P{i}" for i in range(n)])


def never_together() -> pd.DataFrame:
    table = plain()
    table.loc[table.index[::2], "q0"] = np.nan
    table.loc[table.index[1::2], "q1"] = np.nan
    return table


def mostly_missing() -> pd.DataFrame:
    table = plain()
    return table.mask(np.random.default_rng(0).random(table.shape) < 0.9)


def one_varies() -> pd.DataFrame:
    table = plain() * 0 + 1
    return table.assign(q3=plain()["q3"])


def one_column_missing() -> pd.DataFrame:
    return plain().assign(q2=np.nan)


def one_answer() -> pd.DataFrame:
    table = plain() * np.nan
    table.iloc[3, 2] = 2.0
    return table


def same_twice() -> pd.DataFrame:
    table = plain()
    return table.set_axis([*table.columns[:-1], "q0"], axis=1)


def shuffled() -> pd.DataFrame:
    return plain().sample(frac=1, random_state=3)


Scenario = tuple[Callable[[], Any], dict[str, Any]]
# Each with the settings of a model; "weights" are the participants'.
SCENARIOS: dict[str, Scenario] = {
    "a plain table": (plain, {}),
    "no rows": (lambda: plain().iloc[:0], {}),
    "no columns": (lambda: plain().iloc[:, :0], {}),
    "one row": (lambda: plain().iloc[:1], {}),
    "two rows": (lambda: plain().iloc[:2], {}),
    "one item": (lambda: plain()[["q0"]], {}),
    "two items": (lambda: plain()[["q0", "q1"]], {}),
    "fewer participants than items": (lambda: plain(5, 12), {}),
    "all missing": (lambda: plain() * np.nan, {}),
    "one answer in all": (one_answer, {}),
    "an item nobody answered": (one_column_missing, {}),
    "constant": (lambda: plain() * 0 + 1, {}),
    "all zero": (lambda: plain() * 0, {}),
    "all highest": (lambda: plain() * 0 + 3, {}),
    "one item that varies": (one_varies, {}),
    "all participants alike": (lambda: plain().assign(**plain().iloc[0].to_dict()), {}),
    "90 % missing": (mostly_missing, {}),
    "two items never together": (never_together, {}),
    "items alike": (lambda: pd.DataFrame({f"q{j}": plain()["q0"] for j in range(6)}), {}),
    "a column twice": (same_twice, {}),
    "an unsorted index": (shuffled, {}),
    "an id twice": (lambda: plain().set_axis(["P0"] * 30), {}),
    "whole numbers as objects": (lambda: plain().astype(object), {}),
    "pandas' missing integers": (lambda: plain().astype("Int64").mask(plain() > 2), {}),
    "texts": (lambda: plain().astype(str), {}),
    "an infinite answer": (lambda: plain().replace(3.0, np.inf), {}),
    "an array of three dimensions": (lambda: plain().to_numpy()[None], {}),
    "ranges of 1e8": (lambda: plain() * 1e8, {"item_range": (0, 3e8)}),
    "ranges of 1e150": (lambda: plain() * 1e150, {"item_range": (0, 3e150)}),
    "ranges of 1e-8": (lambda: plain() * 1e-8, {"item_range": (0, 3e-8)}),
    "ranges far from 0": (lambda: plain() + 1e8, {"item_range": (1e8, 1e8 + 3)}),
    "ranges not declared": (plain, {"item_range": None}),
    "weights of 1e300": (plain, {"weights": np.full(30, 1e300)}),
    "weights of 1e-300": (plain, {"weights": np.full(30, 1e-300)}),
    "one weight for all": (plain, {"weights": np.eye(30)[0]}),
    "weights of 0": (plain, {"weights": np.zeros(30)}),
    "beta 1e308": (plain, {"beta": 1e308}),
    "beta 1e10": (plain, {"beta": 1e10}),
    "beta 0": (plain, {"beta": 0.0}),
    "beta 1e-320": (plain, {"beta": 1e-320}),
}


# --- calls; each returns numbers that must be finite ------------------------------------------------------


def fitted(
    table: Any, cls: type[ICQF] = ICQF, *, n_components: int = 2, weights: Any = None, **settings: Any
):
    settings = {"item_range": RANGE, "random_state": 0, "n_init": 1} | settings
    return cls(n_components, **settings).fit(table, sample_weight=weights)


def numbers_of(model: ICQF) -> list[Any]:
    return [model.components_, model.confound_components_, model.objective_, model.item_range_.to_numpy()]


def fit(table, **settings):
    return numbers_of(fitted(table, n_init="auto", **settings))


def fit_one_factor(table, **settings):
    return numbers_of(fitted(table, n_components=1, **settings))


def fit_slowly(table, **settings):
    return numbers_of(fitted(table, solver="admm", max_iter=100, **settings))


def fit_transform(table, weights=None, **settings):
    settings = {"item_range": RANGE} | settings
    return scored(ICQF(2, **settings).fit_transform(table, sample_weight=weights), table)


def transform(table, **settings):
    return scored(fitted(table, **settings).transform(table), table)


def transform_others(table, weights=None, **settings):
    """The table as new participants of a model of a plain one."""
    return scored(fitted(plain(), **settings).transform(table), table)


def scored(scores, table):
    """Scores are finite but for participants who answered nothing."""
    silent = frame_of(table).isna().all(axis=1).to_numpy()
    return [np.asarray(scores)[~silent]]


def summary(table, **settings):
    found = fitted(table, **settings).summary()
    return [found.factors["variance_explained"].to_numpy(), str(found)]


def score(table, weights=None, **settings):
    return [fitted(table, weights=weights, **settings).score(table, sample_weight=weights)]


def save_and_load(table, **settings):
    model = fitted(table, **settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.icqf")
        model.save(path)
        return numbers_of(ICQF.load(path))


def choose(table, weights=None, **settings):
    settings.pop("beta", None)
    model = ICQF(**({"item_range": RANGE} | settings))
    search = ICQFCV(model, n_components=[1, 2], betas=[0.1], n_splits=3, random_state=0)
    search.fit(table, sample_weight=weights)
    return [*numbers_of(search.best_estimator_), search.errors_["error"].to_numpy()]


def choose_by_itself(table, weights=None, **settings):
    settings.pop("beta", None)
    model = ICQF(**({"item_range": RANGE} | settings))
    search = ICQFCV(model, betas=[0.1], n_splits=3, random_state=0).fit(table, sample_weight=weights)
    return numbers_of(search.best_estimator_)


def average(table, weights=None, **settings):
    model = fitted(table, weights=weights, **settings)
    return numbers_of(consensus(model, table, sample_weight=weights, n_resamples=3))


def by_comparison_data(table, **_):
    found = comparison_data(table, n_samples=3, n_population=200, random_state=0)
    return [found.n_components, found.curve["rmsr"].to_numpy()]


def by_every_rule(table, **_):
    found = every_rule(table, n_iter=2)
    return [json.dumps(found.to_dict(), allow_nan=False), *(count.n_components for count in found.counts)]


def report(table, weights=None, **settings):
    model = fitted(table, weights=weights, **settings)
    low_high = tuple(model.item_range_.to_numpy()[0])
    questionnaire = Questionnaire.of(frame_of(table), item_range=low_high)
    found = report_of(
        analyse(model, questionnaire, n_bootstrap=3, stated=model.state(questionnaire, sample_weight=weights))
    )
    return [as_html(found), as_markdown(found), as_json(found)]


def own_l1nmf(table, weights=None, **settings):
    return numbers_of(fitted(table, L1NMF, weights=weights, **settings))


def own_factor_analysis(table, **_):
    model = FactorAnalysis(1).fit(table)
    return [model.loadings_, model.uniquenesses_, scored(model.transform(table), table)[0]]


def own_stability(table, weights=None, **settings):
    ends = settings.get("item_range", RANGE)
    questionnaire = Questionnaire.of(frame_of(table), item_range=ends)
    found = stability(questionnaire, methods=[ICQFMethod((2,), (0.1,))], sizes=[0.8], n_splits=1)
    return [found.table.select_dtypes(float).fillna(0).to_numpy(), str(found.failures)]


def stability_of_analysis(table, weights=None, **settings):
    questionnaire = Questionnaire.of(frame_of(table), item_range=settings.get("item_range", RANGE))
    found = stability(questionnaire, methods=[FactorAnalysisMethod(1)], sizes=[0.8], n_splits=1)
    return [found.table.select_dtypes(float).fillna(0).to_numpy(), str(found.failures)]


def scores_described(table, **settings):
    model = fitted(table, **settings)
    scores = pd.DataFrame(model.transform(table), columns=model.get_feature_names_out())
    return [str(describe_scores(scores))]


def keyed(table, **_):
    Questionnaire.of(frame_of(table)).keyed_answers()
    return []


def frame_of(table):
    """What a questionnaire is made of: always a table."""
    return pd.DataFrame(table if np.ndim(table) == 2 else np.asarray(table)[0])


def array_of(table):
    return frame_of(table).to_numpy(dtype=float, na_value=np.nan)


CALLS: dict[str, Callable[..., list[Any]]] = {
    "ICQF.fit": fit,
    "ICQF.fit, one factor": fit_one_factor,
    "ICQF.fit, admm": fit_slowly,
    "fit_transform": fit_transform,
    "transform": transform,
    "transform of others": transform_others,
    "summary": summary,
    "score": score,
    "save and load": save_and_load,
    "ICQFCV": choose,
    "ICQFCV, auto": choose_by_itself,
    "consensus": average,
    "analyse": report,
    "L1NMF": own_l1nmf,
    "FactorAnalysis": own_factor_analysis,
    "parallel_analysis": lambda table, **_: [parallel_analysis(table, n_iter=3, random_state=0).n_components],
    "velicer_map": lambda table, **_: [velicer_map(table).n_components],
    "bic_factor_analysis": lambda table, **_: [bic_factor_analysis(table).n_components],
    "empirical_kaiser": lambda table, **_: [empirical_kaiser(table).n_components],
    "hull_method": lambda table, **_: [hull_method(table, n_iter=3, random_state=0).n_components],
    "nest": lambda table, **_: [nest(table, n_iter=3, random_state=0).n_components],
    "comparison_data": by_comparison_data,
    "every_rule": by_every_rule,
    "item_moments": lambda table, **_: [item_moments(array_of(table)).mean],
    "kmo": lambda table, **_: [str(kmo(item_moments(array_of(table)).correlation))],
    "bartlett_sphericity": lambda table, **_: [
        str(bartlett_sphericity(item_moments(array_of(table)).correlation, len(table)))
    ],
    "stability": own_stability,
    "stability of factor analysis": stability_of_analysis,
    "describe_scores": scores_described,
    "Questionnaire": keyed,
}
# Calls that know neither settings nor weights; with those of a plain table they would repeat themselves.
OF_ANSWERS = {
    *("FactorAnalysis", "parallel_analysis", "velicer_map", "bic_factor_analysis", "empirical_kaiser"),
    *("hull_method", "nest", "comparison_data", "every_rule", "item_moments", "kmo", "bartlett_sphericity"),
    "Questionnaire",
}


def run(scenarios: list[str] | None = None, calls: list[str] | None = None) -> Tally:
    tally = Tally("degenerate tables")
    for name in scenarios or SCENARIOS:
        make, settings = SCENARIOS[name]
        known = OF_ANSWERS if settings and make is plain else set()
        for call in calls or [call for call in CALLS if call not in known]:
            outcome, text = one(CALLS[call], make(), settings)
            tally.add(outcome, f"{name}, {call}: {text}")
    return tally


def one(call: Callable[..., list[Any]], table: Any, settings: dict[str, Any]) -> tuple[str, str]:
    with warnings.catch_warnings(record=True, action="always") as said:
        try:
            with time_limit(SECONDS):
                found = call(table, **settings)
        except InputError as error:
            return ("refused", "") if str(error).strip() else ("no message", "")
        except Hang as error:
            return "hang", str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            return "foreign exception", in_short(error)
    foreign = [warning for warning in said if not concerns_users(warning.category)]
    if foreign:
        return "leaked warning", f"{foreign[0].category.__name__}: {foreign[0].message}"[:160]
    finite = all(isinstance(part, str) or np.isfinite(np.asarray(part, dtype=float)).all() for part in found)
    return ("answered" if finite else "not finite"), ""
