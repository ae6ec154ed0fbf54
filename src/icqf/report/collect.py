"""From a fitted model and its questionnaire to the tree that a report shows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, counted
from icqf.estimator import ICQF
from icqf.plotting.style import factor_names
from icqf.report import words
from icqf.report.compare import eigenvalues, with_factor_analysis
from icqf.report.describe import describe_items, describe_sample, participants
from icqf.report.methods import describe_methods
from icqf.report.people import describe_people
from icqf.report.tree import Agreement, Candidate, Count, Fit, Report
from icqf.report.views import factor_splits, model_view
from icqf.resampling.bootstrap import bootstrap, predict_hidden
from icqf.summary import Summary

FOLDS = 10


def build_report(
    model: ICQF,
    questionnaire: Questionnaire,
    *,
    search: Any = None,
    names: Sequence[str] | Mapping[str, str] | None = None,
    n_bootstrap: int = 100,
    with_participants: bool = False,
    compare: bool = True,
    sample_weight: Any = None,
    title: str | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    other_models: Sequence[ICQF] = (),
) -> Report:
    """Collect everything a report says about a fitted model.

    Parameters
    ----------
    model : fitted ICQF
    questionnaire : Questionnaire
        The answers the model was fitted to (``model.fit(questionnaire.keyed_answers(), ...)``).
    search : fitted ICQFCV, optional
        The cross-validation that chose the model.
    names : sequence or mapping, optional
        Names of the factors: one a factor, or by their own names (``{"factor1": "Worry"}``).
    n_bootstrap : int
        Resamples behind the intervals and the stability; 0 leaves them out.
    with_participants : bool
        Whether the participants' scores are part of the report. They are not unless asked for.
    compare : bool
        Whether the answers are also described by factor analysis, and hidden answers predicted.
    sample_weight : array (n,), optional
        The weights the model was fitted with.
    title : str, optional
        Title of the report; the file's name by default.
    n_jobs : int, optional
        Processes for resamples; the report does not depend on it.
    random_state : int
        Seed of resamples and folds.
    other_models : sequence of fitted ICQF
        Fits of the same answers with other numbers of factors, to look at beside this one.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import build_report
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = build_report(model, demo, names=["Home", "School"], n_bootstrap=20)
    >>> [factor.name for factor in report.model.factors]
    ['Home', 'School']
    >>> report.model.factors[0].stability.agreement > 0.9
    True
    """
    _check(model, questionnaire, n_bootstrap, other_models)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say about the data was said when it was fitted
        return _build(
            model,
            questionnaire,
            search,
            factor_names(model.get_feature_names_out(), names),
            n_bootstrap,
            with_participants,
            compare,
            sample_weight,
            title,
            n_jobs,
            random_state,
            other_models,
        )


def _build(
    model: ICQF,
    questionnaire: Questionnaire,
    search: Any,
    names: list[str],
    n_bootstrap: int,
    with_participants: bool,
    compare: bool,
    sample_weight: Any,
    title: str | None,
    n_jobs: int | None,
    random_state: int,
    other_models: Sequence[ICQF],
) -> Report:
    answers, k = questionnaire.keyed_answers(), len(model.components_)
    stated = model.state(answers, confounds=questionnaire.confounds, sample_weight=sample_weight)
    problem, kept = stated.problem, stated.kept
    if problem.n != model.n_participants_:
        raise InputError(
            f"The model was fitted to {counted(model.n_participants_, 'participant')}, but {problem.n} of "
            f"these "
            "have answers; give the questionnaire (and sample_weight) that the model was fitted to."
        )
    groups = _group_numbers(questionnaire, kept)
    scores = np.asarray(model.transform(answers, confounds=questionnaire.confounds), dtype=float)
    summary = model.summary()
    random = [np.random.default_rng([random_state, part]) for part in range(3)]

    resamples = None
    if n_bootstrap:
        solution = np.concatenate([model.components_, model.confound_components_])
        resamples = bootstrap(
            problem,
            scores[kept].T,
            solution,
            n_resamples=n_bootstrap,
            groups=groups,
            n_jobs=n_jobs,
            rng=random[0],
        )
    hidden = None
    if compare and min(problem.n, problem.m) >= FOLDS:
        init = model.init if isinstance(model.init, str) else "nndsvd"
        hidden = predict_hidden(
            problem, k, init=init, n_splits=FOLDS, groups=groups, n_jobs=n_jobs, rng=random[1]
        )
    comparison, rival = with_factor_analysis(model, answers[kept], names) if compare else (None, None)
    parallel = eigenvalues(answers[kept], random[2]) if compare else None

    subscales = {item.name: item.subscale for item in questionnaire.items}
    views = [model_view(model, summary, names, subscales, resamples)]
    for other in other_models:
        own = factor_names(other.get_feature_names_out(), None)
        views.append(model_view(other, other.summary(), own, subscales, None))
    people = describe_people(scores[~np.isnan(scores).any(axis=1)], names, top=model.score_max or 1.0)
    chosen, count = _count(model, search, parallel)
    sample = describe_sample(questionnaire, answers, kept, weighted=sample_weight is not None, groups=groups)
    shown = title or (
        f"Factors behind {questionnaire.source}" if questionnaire.source else "Questionnaire factors"
    )
    return Report(
        title=shown,
        headline=words.headline(
            n=model.n_participants_,
            m=problem.m,
            k=k,
            confounds=[column.name for column in model.confound_encoder_.columns],
            variance=summary.variance_explained,
            hidden=None if hidden is None else hidden.overall,
            chosen=chosen,
            factors=views[0].factors,
            n_present=people.n_present,
            threshold=people.threshold,
        ),
        sample=sample,
        items=describe_items(
            questionnaire, answers[kept], model, summary, names,
            hidden=None if hidden is None else hidden.by_item, rival=rival,
        ),
        count=count,
        models=tuple(views),
        splits=factor_splits([model, *other_models]),
        bootstrap=n_bootstrap,
        bootstrap_words=_bootstrap_words(n_bootstrap, groups is not None),
        people=people,
        fit=_fit(model, summary, None if hidden is None else hidden.overall),
        comparison=comparison,
        methods=describe_methods(
            model, sample, search=search, n_bootstrap=n_bootstrap, compared=comparison is not None,
            folds=None if hidden is None else FOLDS, seed=random_state,
        ),
        participants=participants(answers, scores) if with_participants else None,
    )  # fmt: skip


def _check(model: ICQF, questionnaire: Questionnaire, n_bootstrap: int, others: Sequence[ICQF]) -> None:
    if n_bootstrap < 0 or n_bootstrap == 1:
        raise InputError(f"n_bootstrap is {n_bootstrap}; give 0 for none, or at least 2 resamples.")
    for each in (model, *others):
        check_is_fitted(each)
        named = getattr(each, "feature_names_in_", None)
        own = None if named is None else [str(name) for name in named]
        asked = [item.name for item in questionnaire.items]
        if each.n_features_in_ != len(asked) or (own is not None and own != asked):
            raise InputError(
                f"The model has {counted(each.n_features_in_, 'item')} and the questionnaire {len(asked)}, "
                f"or their "
                "names or order differ; give the questionnaire that the model was fitted to."
            )


def _group_numbers(questionnaire: Questionnaire, kept: np.ndarray) -> np.ndarray | None:
    """Number of each participant's group; who has none is a group alone."""
    if questionnaire.groups is None:
        return None
    labels = questionnaire.groups[kept]
    own = [
        f"group {label}" if label == label and label is not None else f"row {at}"
        for at, label in enumerate(labels)
    ]
    return np.unique(np.array(own), return_inverse=True)[1]


def _count(model: ICQF, search: Any, parallel: Any) -> tuple[str, Count]:
    k, beta = len(model.components_), float(model.beta)
    lead, said = words.count_words(search, None if parallel is None else parallel[0], k)
    candidates: tuple[Candidate, ...] = ()
    shares: tuple[tuple[int, float], ...] = ()
    halves: tuple[Agreement, ...] = ()
    if search is not None:
        candidates = tuple(
            Candidate(int(row[0]), float(row[1]), float(row[2]), float(row[3]), (row[0], row[1]) == (k, beta))
            for row in search.errors_[["n_components", "beta", "error", "standard_error"]].itertuples(
                index=False
            )
        )
        shares = tuple((int(number), float(share)) for number, share in search.choice_.by_k().items())
        if search.stability_ is not None:
            table = search.stability_[["n_components", "agreement", "low", "high"]]
            halves = tuple(
                Agreement(int(row[0]), *map(float, row[1:])) for row in table.itertuples(index=False)
            )
    return lead, Count(
        words=said,
        n_components=k,
        beta=beta,
        chosen_by="given" if search is None else f"cross-validation, rule {search.rule}",
        candidates=candidates,
        shares=shares,
        halves=halves,
        parallel=None if parallel is None else parallel[0],
        eigenvalues=() if parallel is None else parallel[1],
    )


def _bootstrap_words(n: int, grouped: bool) -> str:
    if n == 0:
        return "The sample was not resampled, so there are no intervals and nothing is said about stability."
    who = "groups of participants (families or sites)" if grouped else "participants"
    return (
        f"95% intervals reach 1.96 standard errors each way; the standard errors come from {n} fits to {who} "
        "drawn again with replacement. Every such fit starts from the fitted factors: the intervals show how "
        "these factors move with the sample, not whether another start would find other factors."
    )


def _fit(model: ICQF, summary: Summary, hidden: float | None) -> Fit:
    said = [
        f"The model explains {words.percent(summary.variance_explained, 1)} of the variance of the answers "
        f"it "
        "was fitted to."
    ]
    if hidden is not None:
        said.append(
            f"It predicts {words.percent(hidden, 1)} of the variance of answers that were hidden from it, "
            f"better "
            "than the item's mean by that share. The first number is higher as a rule: a fit also describes "
            "what is chance in the answers it has seen."
        )
    said.append(
        f"The fit settled after {counted(model.n_iter_, 'iteration')}."
        if model.converged_
        else f"The fit had not settled after {counted(model.n_iter_, 'iteration')}: allow more before "
        f"relying on it."
    )
    trace = model.trace_["step"].tolist() if "step" in model.trace_ else []
    return Fit(
        words=tuple(said),
        variance=float(summary.variance_explained),
        variance_hidden=hidden,
        n_splits=None if hidden is None else FOLDS,
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        objective=float(model.objective_),
        tol=float(model.tol),
        score_step=float(model.certificate_.score_step),
        loading_step=float(model.certificate_.loading_step),
        trace=tuple(float(step) for step in trace),
    )
