"""From a fitted model to a report: the library works out tables, and sections put them into words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from icqf.baselines import RuleTable, parallel_analysis
from icqf.data.confounds import ConfoundEncoder
from icqf.data.describe import describe_answers, describe_confound, missing_bands
from icqf.data.direction import Directions
from icqf.data.doubts import doubts_about
from icqf.data.duplicates import together
from icqf.data.overview import Overview
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.rows import refuse_other_rows
from icqf.errors import InputError, counted
from icqf.estimator import ICQF
from icqf.evaluation import (
    Counterparts,
    Psychometry,
    describe_scores,
    factor_analysis_counterparts,
    factor_lineage,
    psychometrics,
)
from icqf.evaluation.hidden import FOLDS, hidden_fit
from icqf.naming import checked_names, default_names, shown_names, suggested_names, top_places
from icqf.report.compose import with_words
from icqf.report.factors import LoadingTables, confound_sentences, factor_links, model_view
from icqf.report.methods import methods_section
from icqf.report.psychometric import psychometric_section
from icqf.report.psychometric_parts import Psychometrics
from icqf.report.quality import SearchTables, comparison_section, count_section, fit_section
from icqf.report.sample import confound_summary, item_rows, participant_rows, sample_section
from icqf.report.schema import Analysed, ConfoundSummary, ModelView, Report
from icqf.report.scores import scores_section
from icqf.resampling.bootstrap import Resamples, bootstrap
from icqf.resampling.dealing import units_of
from icqf.resampling.hidden import HiddenFit
from icqf.summary import Summary

REPLICATION_WORDS = (
    "The replication probability is the chance that an independent study of the same size, fitted with as "
    "many factors, has a factor whose loadings correlate at least 0.8 with this one. It is predicted from "
    "fits to resampled participants that were started afresh, by a curve learned from other studies; factors "
    "with a chance below one half are marked as fragile."
)
RANDOM_SETS = 20  # of parallel analysis


def build_report(
    model: ICQF,
    questionnaire: Questionnaire,
    *,
    search: Any = None,
    rules: RuleTable | None = None,
    names: Sequence[str] | Mapping[str, str] | None = None,
    n_bootstrap: int = 100,
    with_participants: bool = False,
    compare: bool = True,
    sample_weight: Any = None,
    scores: pd.DataFrame | None = None,
    title: str | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    other_models: Sequence[ICQF] = (),
    overview: Overview | None = None,
    sampled: bool = False,
    hidden: HiddenFit | None = None,
) -> Report:
    """Collect everything a report says about a fitted model.

    Parameters
    ----------
    model : fitted ICQF
    questionnaire : Questionnaire
        The answers the model was fitted to (``model.fit(questionnaire.keyed_answers(), ...)``).
    search : fitted ICQFCV, optional
        The cross-validation that chose the model.
    rules : RuleTable, optional
        What every rule for the number of factors says (`icqf.baselines.every_rule`), to be shown as a table.
    names : sequence or mapping, optional
        Names of the factors: one per factor, or by their own names (``{"factor1": "Worry"}``).
    n_bootstrap : int
        Number of resamples behind the intervals and the stability; 0 leaves these out.
    with_participants : bool
        Whether each participant's scores are part of the report. They are not unless asked for.
    compare : bool
        Whether the answers are also factor-analysed, and hidden answers predicted.
    sample_weight : array (n,), optional
        The weights the model was fitted with.
    scores : DataFrame (n, k), optional
        The participants' scores, where they are already solved for (``model.transform``).
    title : str, optional
        Title of the report; the file's name by default.
    n_jobs : int, optional
        Processes for resamples; the report does not depend on it.
    random_state : int
        Seed of resamples and folds.
    other_models : sequence of fitted ICQF
        Fits of the same answers with other numbers of factors, to look at beside this one.
    overview : Overview, optional
        What was analysed, where more is known of it than the questionnaire says.
    sampled : bool
        Whether the questionnaire is of some of the participants that the model was fitted to.
    hidden : HiddenFit, optional
        How well hidden answers are predicted, where that is known already; otherwise it is worked out.

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
        shown = _shown_names(model, questionnaire.items, names)
        by_key = dict(zip(model.get_feature_names_out(), shown, strict=True))
        answers, k = questionnaire.keyed_answers(), len(model.components_)
        stated = model.state(questionnaire, sample_weight=sample_weight)
        problem, kept = stated.problem, stated.kept
        if problem.n != model.n_participants_ and not (sampled and problem.n < model.n_participants_):
            raise InputError(
                f"The model was fitted to {counted(model.n_participants_, 'participant')}, but {problem.n} "
                "of these have answers; give the questionnaire (and sample_weight) that it was fitted to."
            )
        refuse_other_rows(answers, scores=scores)
        if scores is None:
            values = np.asarray(model.transform(questionnaire), dtype=float)
            scores = pd.DataFrame(values, index=answers.index, columns=model.get_feature_names_out())
        groups = _group_numbers(questionnaire.groups, kept)
        bootstrap_rng, parallel_rng = (np.random.default_rng([random_state, part]) for part in (0, 2))
        units = together(groups, units_of(problem, None, kept))
        options: dict[str, Any] = {"groups": units, "n_jobs": n_jobs}
        resamples = rival = measured = None
        parallel, curve = None, None
        if n_bootstrap:
            solution = np.concatenate([model.components_, model.confound_components_])
            start = scores.to_numpy(dtype=float)[kept].T
            resamples = bootstrap(
                *(problem, start, solution),
                n_resamples=n_bootstrap,
                engine=model.engine,
                rng=bootstrap_rng,
                **options,
            )
        if compare:
            if hidden is None:
                hidden = hidden_fit(model, stated, random_state=random_state, **options)
            rival = _rival(model, answers[kept])
            measured = _psychometrics(model, questionnaire, kept, scores, n_bootstrap, bootstrap_rng)
            parallel, curve = _parallel(answers[kept], parallel_rng)

    summary, tried = model.summary(), _search(search)
    top = model.score_max or 1.0
    items = questionnaire.items
    views = [_view(model, shown, items, resamples)]
    views += [_view(other, _shown_names(other, items, None), items, None) for other in other_models]
    answered = describe_answers(answers[kept], model.item_range_)
    sample = sample_section(
        questionnaire,
        answered,
        missing_bands(answers[kept]),
        _confounds(questionnaire.confounds, kept, stated.encoder),
        n_fitted=problem.n,
        n_groups=None if groups is None else int(groups.max()) + 1,
        weighted=sample_weight is not None,
        share_structural=_structural(questionnaire, kept),
        limit=model.smallest_category,
    )
    distribution = scores_section(
        describe_scores(scores, top=top), shown, top=top, limit=model.smallest_category
    )
    count = count_section(k, float(model.beta), tried, parallel, curve, rules)
    confounds = [column.name for column in model.confound_encoder_.columns]
    n_splits = None if hidden is None else FOLDS
    analysed = _analysed(Overview.of(questionnaire) if overview is None else overview)
    report = Report(
        title=title or _title(questionnaire.source, found=hidden is None or not hidden.no_better_than_means),
        doubts=tuple(str(doubt.fields["anonymous"]) for doubt in doubts_about(questionnaire)),
        direction=Directions.of(questionnaire).sentence,
        analysed=analysed,
        sample=sample,
        items=item_rows(
            questionnaire,
            answered,
            model.item_range_,
            summary.items,
            by_key,
            hidden=None if hidden is None else hidden.by_item,
            rival=rival.items if isinstance(rival, Counterparts) else None,
        ),
        count=count,
        models=tuple(views),
        splits=factor_links(factor_lineage([each.weighted_loadings_ for each in (model, *other_models)]))
        if other_models
        else (),
        bootstrap=n_bootstrap,
        bootstrap_words=_bootstrap_words(n_bootstrap, grouped=groups is not None),
        replication_words=REPLICATION_WORDS if model.replication_ is not None else "",
        scores=distribution,
        fit=fit_section(
            r_squared=float(summary.r_squared),
            hidden=hidden,
            n_splits=n_splits,
            converged=bool(model.converged_),
            n_iter=int(model.n_iter_),
            objective=float(model.objective_),
            tol=float(model.tol),
            score_step=float(model.certificate_.score_step),
            loading_step=float(model.certificate_.loading_step),
            trace=model.trace_["step"].tolist() if "step" in model.trace_ else [],
            starts=model.starts_,
            keys=dict(zip(model.factor_names_, default_names(k), strict=True)),
            n_averaged=model.n_averaged_,
        ),
        comparison=None
        if rival is None
        else comparison_section(rival, by_key, r_squared=float(summary.r_squared)),
        methods=methods_section(
            k,
            model.get_params(deep=False),
            model.item_range_,
            confounds,
            sample,
            search=tried,
            n_bootstrap=n_bootstrap,
            compared=rival is not None,
            folds=n_splits,
            seed=random_state,
            n_starts=len(model.starts_),
            n_averaged=model.n_averaged_,
            analysed=analysed.lines,
            reliable=measured is not None,
        ),
        psychometrics=None if measured is None else _psychometric(measured, summary, shown, rival),
        participants=participant_rows(answers, scores) if with_participants else None,
    )
    return with_words(report)


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
                "or their names or order differ; give the questionnaire that the model was fitted to."
            )


def _analysed(overview: Overview) -> Analysed:
    return Analysed(overview.all_lines, (overview.widths,) if overview.widths else ())


def _title(source: str, *, found: bool) -> str:
    if not found:
        return f"No structure found in {source}" if source else "No structure found"
    return f"Factors behind {source}" if source else "Questionnaire factors"


def _group_numbers(groups: pd.Series | None, kept: np.ndarray) -> np.ndarray | None:
    """Number of each participant's group; a participant without one is a group of one."""
    if groups is None:
        return None
    numbers = pd.factorize(groups[kept].map(str, na_action="ignore"), sort=True)[0]
    alone = numbers < 0
    numbers[alone] = numbers.max(initial=-1) + 1 + np.arange(alone.sum())
    return numbers


def _rival(model: ICQF, answers: pd.DataFrame) -> Counterparts | str:
    """The factor analysis, or why it could not be run."""
    try:
        return factor_analysis_counterparts(model.weighted_loadings_, answers, item_scale=model.item_scale_)
    except InputError as error:
        return str(error)


def _psychometrics(
    model: ICQF,
    questionnaire: Questionnaire,
    kept: np.ndarray,
    scores: pd.DataFrame,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> Psychometry | None:
    """Reliability and item statistics; None where the answers do not allow them."""
    confounds = questionnaire.confounds
    try:
        return psychometrics(
            model,
            questionnaire.keyed_answers()[kept],
            items=questionnaire.items,
            confounds=None if confounds is None else confounds[kept],
            scores=scores.to_numpy(dtype=float)[kept],
            n_resamples=min(n_bootstrap, 100),
            random_state=rng,
        )
    except InputError:
        return None


def _psychometric(
    found: Psychometry, summary: Summary, names: list[str], rival: Counterparts | str | None
) -> Psychometrics:
    keys = default_names(len(names))
    if not isinstance(rival, Counterparts):
        return psychometric_section(found, summary, names, keys)
    return psychometric_section(
        found, summary, names, keys, fa_loadings=rival.loadings, fa_communalities=rival.communalities
    )


def _parallel(answers: pd.DataFrame, rng: np.random.Generator) -> tuple[int | None, pd.DataFrame | None]:
    """What parallel analysis keeps, and the eigenvalues behind it; None where it cannot be run."""
    try:
        found = parallel_analysis(answers.loc[:, answers.std() > 0], n_iter=RANDOM_SETS, random_state=rng)
    except InputError:
        return None, None
    return found.n_components, found.curve.head(max(10, int(1.5 * found.n_components) + 2))


def _search(search: Any) -> SearchTables | None:
    if search is None:
        return None
    shares = {int(k): float(share) for k, share in search.choice_.by_k().items()}
    return SearchTables(
        search.errors_, shares, search.stability_, search.rule, search.n_splits, search.n_repeats
    )


def _spans(model: ICQF) -> np.ndarray:
    return (model.item_range_["max"] - model.item_range_["min"]).to_numpy()


def _shown_names(
    model: ICQF, items: Sequence[Item], names: Sequence[str] | Mapping[str, str] | None
) -> list[str]:
    """What factors are called: the names given or those of the model, else a number with a suggestion."""
    own = model.factor_names_ if names is None else checked_names(model.factor_names_, names)
    return shown_names(own, suggested_names(model.loadings_.div(_spans(model), axis=0), items))


def _view(model: ICQF, names: Sequence[str], items: Sequence[Item], resamples: Resamples | None) -> ModelView:
    points = model.loadings_.join(model.confound_loadings_)
    span = _spans(model)
    shares = points.div(span, axis=0)
    low = high = stability = None
    if resamples is not None:
        bound = span if model.loading_max == "item_range" else None
        low, high = (
            pd.DataFrame(end.T, index=points.index, columns=points.columns)
            for end in resamples.interval(points.to_numpy().T, bound)
        )
        stability = resamples.factors([top_places(shares[key]) for key in model.loadings_], span)
    return model_view(
        LoadingTables(points, shares, low, high),
        model.summary(),
        names,
        items,
        confound_sentences(model.confound_encoder_.columns, model.confound_names_),
        beta=float(model.beta),
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        stability=stability,
        replication=model.replication_,
        n_resamples=0 if resamples is None else len(resamples.loadings),
    )


def _confounds(
    table: pd.DataFrame | None, kept: np.ndarray, encoder: ConfoundEncoder
) -> list[ConfoundSummary]:
    if table is None:
        return []
    return [
        confound_summary(
            str(name),
            int(values.isna().sum()),
            describe_confound(values),
            limit=encoder.smallest_category,
        )
        for name, values in table[kept].items()
    ]


def _structural(questionnaire: Questionnaire, kept: np.ndarray) -> float | None:
    if questionnaire.structural is None:
        return None
    return float(questionnaire.structural[kept].to_numpy(dtype=bool).mean())


def _bootstrap_words(n: int, *, grouped: bool) -> str:
    if n == 0:
        return "The sample was not resampled, so there are no intervals and no statements about stability."
    who = "groups of participants (families or sites)" if grouped else "participants"
    return (
        f"95% intervals extend 1.96 standard errors in each direction; the standard errors come from {n} "
        f"fits to {who} drawn again with replacement. Every such fit starts from the fitted factors: the "
        "intervals show how these factors vary with the sample, not whether another start would find "
        "other factors."
    )
