"""The paragraph for a Methods section, with everything needed to repeat the analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from icqf.core.penalties import PENALTIES
from icqf.io.provenance import versions
from icqf.report import words
from icqf.report.quality import SearchTables
from icqf.report.schema import Methods, Sample
from icqf.selection.rules import RULES

CITATION = (
    "Lam, Pereira, Mahony, Raznahan (2026). Interpretable factorization of clinical questionnaires to "
    "identify latent factors of psychopathology. Transactions on Machine Learning Research."
)
HORN = (
    "Horn (1965). A rationale and test for the number of factors in factor analysis. Psychometrika, 30(2), "
    "179–185."
)
_PARAMETERS = (
    *("item_weight", "penalty", "score_max", "loading_max", "reconstruction_max", "intercept"),
    *("missing_confounds", "solver", "init", "n_init", "tol", "max_iter", "dtype"),
)


def methods_section(
    k: int,
    parameters: Mapping[str, Any],
    ranges: pd.DataFrame,
    confounds: Sequence[str],
    sample: Sample,
    *,
    search: SearchTables | None,
    n_bootstrap: int,
    compared: bool,
    folds: int | None,
    seed: int,
    n_starts: int,
    n_averaged: int,
    analysed: Sequence[tuple[str, str]] = (),
    reliable: bool = False,
) -> Methods:
    """Say what was done; `parameters` are those of the model (``model.get_params()``).

    `n_starts` says from how many starts it was fitted, `n_averaged` over how many resamples it was averaged.
    """
    found = versions()
    own = parameters["random_state"]
    seeds = str(seed) if own is None or own == seed else f"{own} (fit) and {seed} (resampling)"
    parts = [
        _data(ranges, sample),
        _reading(dict(analysed)),
        _model(parameters, n_starts),
        _average(n_averaged),
        _item_weight(parameters["item_weight"], ranges),
        _confounds(confounds, intercept=parameters["intercept"]),
        _choice(k, search),
        _resampling(sample, n_bootstrap, folds),
        (
            "For comparison, exploratory factor analysis (minimum residual extraction, promax rotation) with "
            "the same number of factors was run on the same answers, and the number of factors was also "
            "assessed by parallel analysis (Horn, 1965)."
            if compared
            else ""
        ),
        (
            "Reliability of the items of each factor and subscale was described by Cronbach's α (interval of "
            "Feldt) and McDonald's ω (total, one factor by minimum residuals)."
            if reliable
            else ""
        ),
        f"Analyses were run with icqf {found['icqf']} (Python {found['python']}, NumPy {found['numpy']}, "
        f"SciPy {found['scipy']}), random seed {seeds}.",
    ]
    return Methods(
        paragraph=" ".join(part for part in parts if part),
        references=(CITATION, HORN) if compared else (CITATION,),
        settings=_settings(k, parameters, search, n_bootstrap, folds),
        versions=tuple(found.items()),
        seed=seeds,
    )


def _reading(analysed: Mapping[str, str]) -> str:
    """Where ranges came from, and which items were reversed."""
    said = []
    if "Ranges" in analysed:
        said.append(f"Answer ranges: {analysed['Ranges']}.")
    if "Reversed" in analysed:
        said.append(f"Reversed before the fit: {analysed['Reversed']}.")
    return " ".join(said)


def _data(ranges: pd.DataFrame, sample: Sample) -> str:
    share = sample.share_missing
    gap = f"; {words.percent(share, 1)} of the answers were missing" if share else ""
    ends = {(float(low), float(high)) for low, high in ranges.to_numpy()}
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    span = (
        f"answers from {low:g} to {high:g}"
        if len(ends) == 1
        else f"answer ranges between {low:g} and {high:g}"
    )
    weight = " Sample weights were used." if sample.weighted else ""
    return (
        f"Answers of {words.count_of(sample.n_fitted, 'participant')} to "
        f"{words.count_of(sample.n_items, 'item')} ({span}{gap}) were analysed with Interpretability "
        f"Constrained Questionnaire Factorization (ICQF; Lam et al., 2026).{weight}"
    )


def _model(parameters: Mapping[str, Any], n_starts: int) -> str:
    bounds = []
    if parameters["score_max"] is not None:
        bounds.append(f"scores between 0 and {parameters['score_max']:g}")
    if parameters["loading_max"] == "item_range":
        bounds.append("loadings between 0 and the width of the item's answer range")
    else:
        bounds.append("non-negative loadings")
    if parameters["reconstruction_max"] == "item_range":
        bounds.append("reconstructed answers within the answer range")
    beta, named = parameters["beta"], PENALTIES[parameters["penalty"]].description
    penalty = f"with {named} on scores and loadings (β = {beta:g})" if beta else "without a penalty (β = 0)"
    return (
        f"The model describes answers as sums of factors with {words.joined(bounds)}, {penalty}. "
        f"Missing answers were left out of the loss and not imputed.{_starts(n_starts)}"
    )


def _starts(n_starts: int) -> str:
    if n_starts < 2:
        return ""
    return (
        f" The fit was run from {words.count_of(n_starts, 'start')} (non-negative and rotated singular "
        "vectors, and random numbers), and the one with the lowest objective was kept."
    )


def _average(n_averaged: int) -> str:
    if not n_averaged:
        return ""
    return (
        f"Loadings are averages over fits to {n_averaged} bootstrap resamples of the participants, whose "
        "factors were matched by the correlation of loadings; scores were then solved for under the "
        "constraints."
    )


def _item_weight(item_weight: Any, ranges: pd.DataFrame) -> str:
    equal = (ranges["max"] - ranges["min"]).nunique() == 1
    if item_weight is None or (equal and isinstance(item_weight, str) and item_weight == "range"):
        wide = "Errors were added up in the items' own units, so that items with wide ranges count more."
        return "" if equal else wide
    kinds = {
        "range": "each item's answers and loadings were divided by the width of its answer range",
        "variance": "each item's answers and loadings were divided by the standard deviation of its "
        "answers (by a tenth of its answer range where that is more)",
    }
    how = kinds.get(item_weight) if isinstance(item_weight, str) else None
    how = how or "items were weighted by numbers given in advance"
    return f"For the fit, {how}, up to a common factor; loadings are reported in each item's own units."


def _confounds(names: Sequence[str], *, intercept: bool) -> str:
    if not names:
        return "No confounds were included; the model has an intercept." if intercept else ""
    kind = "was included as a confound" if len(names) == 1 else "were included as confounds"
    listed = words.joined(names)
    return f"{listed[:1].upper()}{listed[1:]} {kind}{' alongside an intercept' if intercept else ''}."


def _choice(k: int, search: SearchTables | None) -> str:
    if search is None:
        return f"The number of factors (k = {k}) and the penalty were set in advance."
    ks, repeats = search.tried, search.n_repeats
    again = f", repeated {repeats} times" if repeats > 1 else ""
    return (
        f"The number of factors (k = {k}) and the penalty were chosen by {search.n_splits}-fold blockwise "
        f"cross-validation{again} over {words.count_of(len(ks), 'number')} of factors ({ks[0]} to {ks[-1]}) "
        f"and β in {{{', '.join(f'{beta:g}' for beta in search.penalties)}}}, taking "
        f"the number of factors that {RULES[search.rule].description}."
    )


def _resampling(sample: Sample, n_bootstrap: int, folds: int | None) -> str:
    said = []
    if n_bootstrap:
        who = "participants" if sample.n_groups is None else "groups (families or sites)"
        said.append(
            f"95% intervals of loadings are normal intervals with standard errors from {n_bootstrap} "
            f"bootstrap resamples of {who}; each fit was started from the full-sample solution, and its "
            "factors were matched to that solution by the correlation of loadings."
        )
    if folds:
        said.append(
            f"The fit of each item was also estimated on hidden answers by {folds}-fold blockwise "
            "cross-validation at the chosen settings."
        )
    return " ".join(said)


def _settings(
    k: int, parameters: Mapping[str, Any], search: SearchTables | None, n_bootstrap: int, folds: int | None
) -> tuple[tuple[str, str], ...]:
    rows = [("n_components", str(k)), ("beta", f"{parameters['beta']:g}")]
    for name in _PARAMETERS:
        value = parameters[name]
        plain = value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
        rows.append((name, f"{plain:g}" if isinstance(plain, float) else str(plain)))
    if search is not None:
        design = f"{search.n_splits} folds, {words.count_of(search.n_repeats, 'repeat')}, rule {search.rule}"
        rows += [
            ("cross-validation", design),
            ("numbers of factors tried", ", ".join(map(str, search.tried))),
            ("penalties tried", ", ".join(f"{beta:g}" for beta in search.penalties)),
        ]
    rows.append(("bootstrap resamples", str(n_bootstrap)))
    if folds:
        rows.append(("folds for the fit of items", str(folds)))
    return tuple(rows)
