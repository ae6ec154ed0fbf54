"""Methods and Results to paste into a paper, with everything needed to repeat the analysis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from icqf.data.check import CODEBOOK, FAMILY, FILE, Overview
from icqf.data.settings import PENALTIES, RULES
from icqf.io.provenance import versions
from icqf.plotting.style import item_label
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Block, Bullets, Details, Grid, Group, Prose, Section, Span
from icqf.report.sections import report_section
from icqf.report.sections.number_of_factors import in_other_samples
from icqf.report.sections.psychometrics import without_counterpart
from icqf.report.words import Report, Values
from icqf.resampling.replication import NOT_REPLICABLE
from icqf.screening.column_names import folded

CITATION = (
    "Lam, Pereira, Mahony, Raznahan (2026). Interpretable factorization of clinical questionnaires to "
    "identify latent factors of psychopathology. Transactions on Machine Learning Research."
)
_HORN = (
    "Horn (1965). A rationale and test for the number of factors in factor analysis. Psychometrika, 30(2), "
    "179–185."
)
_PARAMETERS = (
    *("item_weight", "penalty", "score_max", "loading_max", "reconstruction_max", "intercept"),
    *("missing_confounds", "loading_beta", "solver", "rho", "stop", "init", "n_init", "tol", "max_iter"),
    "dtype",
)
_MARKERS = 3
_RUNS_NAMED = 6  # runs of items, such as q1–q9, up to which those of a range are named
_FROM = {
    CODEBOOK: "declared",
    FILE: "from the labels of the file",
    FAMILY: "the lowest and highest answer that occurs among them",
}
_BY = {
    "codebook": "as declared in the codebook",
    "hand": "as set by the authors",
    "assistant": "because they ran against the other items",
}


@report_section("methods", "Methods and Results for a paper", title="Methods")
def methods(report: Report) -> list[Block]:
    """Paragraphs for a paper, references, and all settings."""
    values = report.methods
    settings = [*values.settings, ("seed", values.seed)]
    tables = [
        Grid("Settings", ["Setting", "Value"], settings, scroll=False),
        Grid("Versions", ["Package", "Version"], values.versions, scroll=False),
    ]
    return [
        Section("Methods", [Prose([values.paragraph], "quote")]),
        Section("Results", [Prose([report.results], "quote")]),
        Section("References", [Bullets(values.references, "references")]),
        Details("Settings, versions and seed", [Group(tables)]),
    ]


def method_values(analysis: Analysis, sample: Values, plan: Values | None = None) -> Values:
    """The Methods paragraph with its references, settings, versions and seed."""
    model, search, hidden = analysis.model, analysis.search, analysis.hidden
    k, parameters, ranges = len(model.components_), model.get_params(deep=False), model.item_range_
    folds = None if hidden is None else hidden.n_splits
    installed, own, seed = versions(), parameters["random_state"], analysis.seed
    seeds = str(seed) if own is None or own == seed else f"{own} (fit) and {seed} (resampling)"
    compared, confounds = analysis.rival is not None, model.confound_encoder_.columns
    parts = [
        _data(ranges, sample),
        _reading(analysis.study.overview),
        _model(parameters, len(model.starts_)),
        _average(model.n_averaged_),
        _item_weight(parameters["item_weight"], ranges),
        _confounds([column.name for column in confounds], intercept=parameters["intercept"]),
        _choice(k, search),
        _resampling(sample, analysis.n_bootstrap, folds),
        (
            "For comparison, exploratory factor analysis (minimum residual extraction, promax rotation) with "
            "the same number of factors was run on the same answers, and the number of factors was also "
            "assessed by parallel analysis (Horn, 1965)."
            if compared
            else ""
        ),
        (
            f"Reliability of the items of each factor{' and subscale' * bool(sample.subscales)} was "
            "estimated by Cronbach's α (Feldt's interval) and McDonald's ω (total, one factor by "
            "minimum residuals)."
            if analysis.psychometry is not None
            else ""
        ),
        f"Analyses were run with icqf {installed['icqf']} (Python {installed['python']}, NumPy "
        f"{installed['numpy']}, SciPy {installed['scipy']}), random seed {seeds}.",
        "" if plan is None else plan.sentence,
    ]
    return Values(
        paragraph=" ".join(part for part in parts if part),
        references=(CITATION, _HORN) if compared else (CITATION,),
        settings=_settings(k, parameters, search, analysis.n_bootstrap, folds),
        versions=tuple(installed.items()),
        seed=seeds,
    )


def _reading(overview: Overview) -> str:
    """Where ranges came from, and which items were reversed."""
    ranges, sentences = [], []
    for shared in overview.ranges:
        some = folded(shared.items, most=len(shared.items))
        which = some if some.count(",") < _RUNS_NAMED else words.count_of(len(shared.items), "item")
        whole = "" if len(overview.ranges) == 1 else f" for {which}"
        ranges.append(f"{shared.low:g} to {shared.high:g}{whole} ({_FROM[shared.source]})")
    if ranges:
        sentences.append(f"Answer ranges: {'; '.join(ranges)}.")
    reversed_items = [f"{folded(names, most=len(names))} ({_BY[who]})" for who, names in overview.reversed]
    if reversed_items:
        sentences.append(f"Reversed items: {'; '.join(reversed_items)}.")
    return " ".join(sentences)


def _data(ranges: pd.DataFrame, sample: Values) -> str:
    share = sample.share_missing
    gap = f"; {words.percent(share, 1)} of answers missing" if share else ""
    ends = {(float(low), float(high)) for low, high in ranges.to_numpy()}
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    span = f"answer range{'s within' if len(ends) > 1 else ''} {low:g} to {high:g}"
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
    beta, named = parameters["beta"], PENALTIES.load(parameters["penalty"]).description
    own = parameters.get("loading_beta")
    if own is not None and own != beta:
        penalty = f"with {named} on scores (β = {beta:g}) and on loadings (β = {own:g})"
    else:
        penalty = (
            f"with {named} on scores and loadings (β = {beta:g})" if beta else "without a penalty (β = 0)"
        )
    return (
        f"The model describes answers as sums of factors with {words.joined(bounds)}, {penalty}. "
        f"Missing answers were excluded from the loss, not imputed.{_solver(parameters)}{_starts(n_starts)}"
    )


def _solver(parameters: Mapping[str, Any]) -> str:
    if parameters["solver"] != "admm":
        return ""
    until = f"the iterations ended at a relative change of the objective below {parameters['tol']:g}"
    return (
        f" It was fitted by the alternating direction method of multipliers (ADMM; ρ = {parameters['rho']:g})"
        f"{f'; {until}' if parameters.get('stop') == 'objective' else ''}."
    )


def _starts(n_starts: int) -> str:
    if n_starts < 2:
        return ""
    return (
        f" The model was fitted from {words.count_of(n_starts, 'start')} (non-negative SVD, rotated SVD and "
        "random), and the fit with the lowest objective was kept."
    )


def _average(n_averaged: int) -> str:
    if not n_averaged:
        return ""
    return (
        f"Loadings are averages over fits to {n_averaged} bootstrap resamples of the participants, whose "
        "factors were matched by the correlation of loadings; scores were then estimated under the "
        "constraints."
    )


def _item_weight(item_weight: Any, ranges: pd.DataFrame) -> str:
    equal = (ranges["max"] - ranges["min"]).nunique() == 1
    if item_weight is None or (equal and isinstance(item_weight, str) and item_weight == "range"):
        wide = "Errors were summed in the items' own units, so that items with wide ranges count more."
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
    return f"{listed[:1].upper()}{listed[1:]} {kind}{', with an intercept' if intercept else ''}."


def _choice(k: int, search: Any) -> str:
    if search is None:
        return f"The number of factors (k = {k}) and the penalty were set in advance."
    ks, betas = _tried(search)
    repeats = _divisions(search)
    raced = isinstance(search.n_repeats, str)
    again = (
        f", repeated {repeats} times{' for the candidates close to the best' * raced}" if repeats > 1 else ""
    )
    return (
        f"The number of factors (k = {k}) and the penalty were chosen by {search.n_splits}-fold blockwise "
        f"cross-validation{again} over {words.count_of(len(ks), 'number')} of factors ({ks[0]} to {ks[-1]}) "
        f"and β in {{{', '.join(f'{beta:g}' for beta in betas)}}}; the chosen number of factors "
        f"{RULES.load(search.rule).description}."
    )


def _divisions(search: Any) -> int:
    """In how many divisions into folds the best candidates were fitted."""
    return int(search.cv_results_["repeat"].nunique())


def _tried(search: Any) -> tuple[list[int], list[float]]:
    """The numbers of factors and the penalties that were tried."""
    errors = search.errors_
    return sorted({int(k) for k in errors["n_components"]}), sorted({float(beta) for beta in errors["beta"]})


def _resampling(sample: Values, n_bootstrap: int, folds: int | None) -> str:
    sentences = []
    if n_bootstrap:
        who = "participants" if sample.n_groups is None else "groups (families or sites)"
        sentences.append(
            f"95% intervals of loadings are normal intervals with standard errors from {n_bootstrap} "
            f"bootstrap resamples of {who}; each fit was started from the full-sample solution, and its "
            "factors were matched to that solution by the correlation of loadings."
        )
    if folds:
        sentences.append(
            f"The fit to each item was also estimated from hidden answers by {folds}-fold blockwise "
            "cross-validation at the chosen settings."
        )
    return " ".join(sentences)


def _settings(
    k: int, parameters: Mapping[str, Any], search: Any, n_bootstrap: int, folds: int | None
) -> tuple[tuple[str, str], ...]:
    rows = [("n_components", str(k)), ("beta", f"{parameters['beta']:g}")]
    for name in _PARAMETERS:
        value = parameters[name]
        plain = value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
        rows.append((name, f"{plain:g}" if isinstance(plain, float) else str(plain)))
    if search is not None:
        ks, betas = _tried(search)
        divided = words.count_of(_divisions(search), "division")
        design = f"{search.n_splits} folds, {divided}, rule {search.rule}"
        rows += [
            ("cross-validation", design),
            ("numbers of factors tried", ", ".join(map(str, ks))),
            ("penalties tried", ", ".join(f"{beta:g}" for beta in betas)),
        ]
    rows.append(("bootstrap resamples", str(n_bootstrap)))
    if folds:
        rows.append(("folds for the fit of items", str(folds)))
    return tuple(rows)


def results_paragraph(report: Report) -> str:
    """The Results paragraph."""
    view, fit, k = report.model, report.fit, len(report.model.factors)
    confounds = [confound.name for confound in report.sample.confounds]
    together = f", together with {words.joined(confounds)}," if confounds else ""
    if fit.no_structure:
        what = "a single factor" if k == 1 else f"{words.spelled(k)} factors"
        return f"{NOT_REPLICABLE}: with {what}{together}, {fit.no_structure}. {_chosen(report)}".strip()
    factors = "One factor" if k == 1 else f"{words.spelled(k).capitalize()} factors"
    sentences = [
        f"{factors}{together} explained {words.percent(view.variance, 1)} of the variance of the answers "
        f"(R² = {words.number(fit.r_squared)}"
        + (
            ""
            if fit.r_squared_hidden is None
            else f"; R² of hidden answers = {words.number(fit.r_squared_hidden)}"
        )
        + ").",
        _chosen(report),
        *(_factor(report, factor) for factor in view.factors),
        _stable(report),
        _compared(report),
        _several(report),
    ]
    return " ".join(part for part in sentences if part)


def _chosen(report: Report) -> str:
    count = report.count
    if not count.candidates:
        return ""
    sentence = f"This number of factors was chosen by cross-validation; {in_other_samples(count)}"
    if count.parallel is not None:
        same = "the same number" if count.parallel == count.n_components else str(count.parallel)
        return f"{sentence}; parallel analysis suggested {same}."
    return f"{sentence}."


def _factor(report: Report, factor: Values) -> str:
    by_name = {row.name: row for row in report.items}
    markers = []
    for each in factor.top[:_MARKERS]:
        row = by_name[each.item]
        markers.append(f"“{item_label(row.name, row.wording, row.reverse)}” ({words.number(each.value)})")
    share = f"{factor.name} explained {words.percent(factor.variance, 1)} of the variance"
    if not markers:
        return f"{share}, with no noticeable loading."
    measured = report.psychometrics
    scale = next((row for row in measured.scales if row.key == factor.key), None) if measured else None
    reliable = ""
    if scale is not None:
        omega = "" if math.isnan(scale.omega) else f" and ω = {words.number(scale.omega)}"
        those = f"the {scale.n_items} items that load most on this factor"
        reliable = f"; α = {words.number(scale.alpha)}{omega} for the sum of {those}"
    return (
        f"{share} ({words.count_of(factor.n_items, 'item')}{reliable}), with its highest loadings on "
        f"{words.joined(markers)}."
    )


def _stable(report: Report) -> str:
    agreements = [factor.stability.agreement for factor in report.model.factors if factor.stability]
    if not agreements:
        return ""
    low, high = words.number(min(agreements)), words.number(max(agreements))
    span = f"was {low}" if low == high else f"ranged from {low} to {high}"
    sentence = f"The mean correlation of loadings with those of resampled participants {span}"
    chances = [factor.replication for factor in report.model.factors if factor.replication]
    if chances:
        lasting = sum(not each.fragile for each in chances)
        sentence += (
            f"; {lasting} of {words.count_of(len(chances), 'factor')} "
            f"{'has' if lasting == 1 else 'have'} a replication probability of one half or more"
        )
    return f"{sentence}."


def _compared(report: Report) -> str:
    comparison = report.comparison
    if comparison is None or not comparison.pairs:
        return ""
    k, without = len(comparison.pairs), without_counterpart(comparison)
    if not without:
        matched = "the factor" if k == 1 else f"all {k} factors"
    else:
        matched = f"{k - len(without)} of {k} factors, but not for {words.joined(without)}"
    return f"Factor analysis with the same number of factors had close counterparts (r ≥ 0.8) for {matched}."


def _several(report: Report) -> str:
    if len(report.scores.factors) < 2:
        return ""
    return (
        f"{words.percent(report.scores.several)} of the participants had a score of "
        f"{report.scores.threshold:g} or more on two or more factors."
    )


_AGREES = {True: "as expected", False: "not as expected", None: "not shown"}
_LIMITS = (
    "Settings, codebook, items and numbers were compared with the plan by the program. What is written there "
    "in words, such as hypotheses and exclusions made before the file was read, is for readers to compare.",
    "The checksum shows that the plan is the one that was registered if the registration states the same; it "
    "does not show when the plan was made, or that nobody had seen the data. For the date, there is the time "
    "stamp of the registry.",
)


@report_section("preregistration", "Preregistered plan")
def preregistration(report: Report) -> list[Block] | None:
    """Deviations from the plan, and what was expected."""
    values = report.preregistration
    return None if values is None else preregistration_blocks(values)


def preregistration_blocks(values: Values) -> list[Block]:
    """The plan, the deviations from it, what was expected and found, and what this shows."""
    frozen = (
        f" The plan “{values.title}” was frozen on {values.frozen} with icqf {values.version} "
        f"({values.file}). About existing data it states: “{values.decisions.existing_data}.”"
    )
    blocks: list[Block] = [Prose([Span(values.headline, "strong"), frozen])]
    if values.deviations:
        rows = [[d.what, d.planned, d.done, d.reason or "no reason is given"] for d in values.deviations]
        blocks.append(Grid("Deviations from the plan", ["What", "Planned", "Done", "Reason"], rows))
    if values.declared:
        blocks += ["Declared by the authors:", Bullets(values.declared)]
    if values.found:
        rows = [[row.expected, row.found, _AGREES[row.agrees]] for row in values.found]
        blocks.append(Grid("Expected and found", ["Expected", "Found", "Agreement"], rows))
    decisions = [
        Prose([Span(f"{name.replace('_', ' ').capitalize()}:", "strong"), f" {text}"])
        for name, text in vars(values.decisions).items()
    ]
    checksum = Prose(["SHA-256 checksum of the plan: ", Span(values.sha256, "code")])
    return [
        *blocks,
        f"{values.participants} Planned exclusions: “{values.decisions.data_exclusion}”",
        Details("The decisions of the plan", [Bullets(decisions)]),
        Details("What this shows", [*_LIMITS, checksum]),
    ]
