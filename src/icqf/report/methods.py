"""The paragraph for a Methods section, with everything needed to repeat the analysis."""

from __future__ import annotations

from typing import Any

from icqf.estimator import ICQF
from icqf.io.provenance import versions
from icqf.report import words
from icqf.report.tree import Methods, Sample

CITATION = (
    "Lam, Pereira, Mahony, Raznahan (2026). Interpretable factorization of clinical questionnaires to "
    "identify "
    "latent factors of psychopathology. Transactions on Machine Learning Research."
)
HORN = "Horn (1965). A rationale and test for the number of factors in factor analysis. Psychometrika 30, "
"179–185."
_PENALTIES = {"l1": "an ℓ1", "l2": "a ridge", "l21": "a group (ℓ2,1)"}
_PARAMETERS = (
    *("penalty", "score_max", "loading_max", "reconstruction_max", "intercept", "missing_confounds"),
    *("solver", "init", "n_init", "tol", "max_iter", "dtype"),
)


def describe_methods(
    model: ICQF,
    sample: Sample,
    *,
    search: Any,
    n_bootstrap: int,
    compared: bool,
    folds: int | None,
    seed: int,
) -> Methods:
    """Say what was done."""
    found = versions()
    parts = [
        _data(model, sample),
        _model(model),
        _confounds(model),
        _choice(model, search),
        _resampling(sample, n_bootstrap, folds),
        (
            "For comparison, exploratory factor analysis (minimum residual extraction, promax rotation) "
            "with the same "
            "number of factors was run on the same answers, and the number of factors was also judged by "
            "parallel "
            "analysis (Horn, 1965)."
            if compared
            else ""
        ),
        f"Analyses were run with icqf {found['icqf']} (Python {found['python']}, NumPy {found['numpy']}, "
        f"SciPy "
        f"{found['scipy']}), random seed {_seed(model, seed)}.",
    ]
    return Methods(
        paragraph=" ".join(part for part in parts if part),
        references=(CITATION, HORN) if compared else (CITATION,),
        settings=_settings(model, search, n_bootstrap, folds),
        versions=tuple(found.items()),
        seed=_seed(model, seed),
    )


def _data(model: ICQF, sample: Sample) -> str:
    gap = (
        f"; {words.percent(sample.share_missing, 1)} of the answers were missing"
        if sample.share_missing
        else ""
    )
    weight = " Sample weights were used." if sample.weighted else ""
    return (
        f"Answers of {words.count_of(sample.n_fitted, 'participant')} to "
        f"{words.count_of(sample.n_items, 'item')} "
        f"({_range(model)}{gap}) were analysed with Interpretability Constrained Questionnaire "
        f"Factorization (ICQF; "
        f"Lam et al., 2026).{weight}"
    )


def _range(model: ICQF) -> str:
    ends = {(float(low), float(high)) for low, high in model.item_range_.to_numpy()}
    if len(ends) == 1:
        ((low, high),) = ends
        return f"answers from {low:g} to {high:g}"
    return f"answer ranges between {min(low for low, _ in ends):g} and {max(high for _, high in ends):g}"


def _model(model: ICQF) -> str:
    bounds = []
    if model.score_max is not None:
        bounds.append(f"scores between 0 and {model.score_max:g}")
    if model.loading_max == "item_range":
        bounds.append("loadings between 0 and the width of the item's answer range")
    else:
        bounds.append("non-negative loadings")
    if model.reconstruction_max == "item_range":
        bounds.append("reconstructed answers inside the range")
    return (
        f"The model describes answers as sums of factors with {words.joined(bounds)}, and has "
        f"{_PENALTIES[model.penalty]} penalty on scores and loadings (β = {model.beta:g}). Missing answers "
        f"were left out "
        "of the loss and not imputed."
    )


def _confounds(model: ICQF) -> str:
    names = [column.name for column in model.confound_encoder_.columns]
    if not names:
        return "No confounds were included; the model has an intercept." if model.intercept else ""
    verb = "was" if len(names) == 1 else "were"
    kind = "a confound" if len(names) == 1 else "confounds"
    beside = " beside an intercept" if model.intercept else ""
    return f"{words.joined(names).capitalize()} {verb} included as {kind}{beside}."


def _choice(model: ICQF, search: Any) -> str:
    k = len(model.components_)
    if search is None:
        return f"The number of factors (k = {k}) and the penalty were set in advance."
    ks = sorted(int(value) for value in search.errors_["n_components"].unique())
    betas = sorted(float(value) for value in search.errors_["beta"].unique())
    rule = {
        "min": "the lowest mean squared error of hidden answers",
        "one_se": "the fewest factors within one standard error of the lowest mean squared error of hidden "
        "answers",
        "stable": "the best agreement between halves of the sample among numbers of factors within one "
        "standard error "
        "of the lowest mean squared error of hidden answers",
    }[search.rule]
    repeats = f", repeated {search.n_repeats} times" if search.n_repeats > 1 else ""
    return (
        f"The number of factors (k = {k}) and the penalty were chosen by {search.n_splits}-fold blockwise "
        f"cross-validation{repeats} over {words.number(len(ks), 0)} numbers of factors ({ks[0]} to "
        f"{ks[-1]}) and β in "
        f"{{{', '.join(f'{beta:g}' for beta in betas)}}}, taking {rule}."
    )


def _resampling(sample: Sample, n_bootstrap: int, folds: int | None) -> str:
    said = []
    if n_bootstrap:
        who = "participants" if sample.n_groups is None else "groups (families or sites)"
        said.append(
            f"95% intervals of loadings are normal intervals with standard errors from {n_bootstrap} "
            f"bootstrap resamples of {who}; each "
            "fit was started from the full-sample solution and its factors were matched to it by the "
            "correlation of "
            "loadings."
        )
    if folds:
        said.append(
            f"The fit of each item was also estimated on hidden answers by {folds}-fold blockwise "
            f"cross-validation at "
            "the chosen settings."
        )
    return " ".join(said)


def _seed(model: ICQF, seed: int) -> str:
    own = model.random_state
    return str(seed) if own is None or own == seed else f"{own} (fit) and {seed} (resampling)"


def _settings(model: ICQF, search: Any, n_bootstrap: int, folds: int | None) -> tuple[tuple[str, str], ...]:
    rows = [("n_components", str(len(model.components_))), ("beta", f"{model.beta:g}")]
    for name in _PARAMETERS:
        value = getattr(model, name)
        plain = value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
        rows.append((name, f"{plain:g}" if isinstance(plain, float) else str(plain)))
    if search is not None:
        rows += [
            (
                "cross-validation",
                f"{search.n_splits} folds, {search.n_repeats} repeat(s), rule {search.rule}",
            ),
            (
                "numbers of factors tried",
                ", ".join(str(k) for k in sorted(search.errors_["n_components"].unique())),
            ),
            ("penalties tried", ", ".join(f"{beta:g}" for beta in sorted(search.errors_["beta"].unique()))),
        ]
    rows.append(("bootstrap resamples", str(n_bootstrap)))
    if folds:
        rows.append(("folds for the fit of items", str(folds)))
    return tuple(rows)
