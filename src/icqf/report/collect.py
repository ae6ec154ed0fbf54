"""From an analysis to a report: sections put into words what was worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from icqf.baselines import FactorCount
from icqf.data.check import Overview
from icqf.data.confounds import ConfoundEncoder
from icqf.data.describe import describe_answers, describe_confound, missing_bands
from icqf.data.questionnaire import Item, Questionnaire
from icqf.evaluation import Counterparts, describe_scores, factor_lineage
from icqf.models.icqf import ICQF
from icqf.models.names import checked_names, default_names, shown_names, suggested_names, top_places
from icqf.models.summary import Summary
from icqf.report.analysis import Analysis
from icqf.report.compose import with_words
from icqf.report.factors import LoadingTables, confound_sentences, factor_links, model_view
from icqf.report.methods import methods_section
from icqf.report.psychometric import psychometric_section
from icqf.report.psychometric_parts import Psychometrics
from icqf.report.quality import SearchTables, comparison_section, count_section, fit_section
from icqf.report.sample import confound_summary, item_rows, participant_rows, sample_section
from icqf.report.schema import (
    Analysed,
    ConfoundSummary,
    FactorLink,
    FitQuality,
    Methods,
    ModelView,
    Report,
    Sample,
    Scores,
)
from icqf.report.scores import scores_section
from icqf.resampling.bootstrap import Resamples

REPLICATION_WORDS = (
    "The replication probability is the chance that an independent study of the same size, fitted with as "
    "many factors, has a factor whose loadings correlate at least 0.8 with this one. It is predicted from "
    "fits to resampled participants that were started afresh, by a curve learned from other studies; factors "
    "with a chance below one half are marked as fragile."
)


def report_of(
    analysis: Analysis,
    *,
    names: Sequence[str] | Mapping[str, str] | None = None,
    title: str | None = None,
    with_participants: bool = False,
) -> Report:
    """Put an analysis into the words and tables of a report; nothing is worked out here.

    Parameters
    ----------
    analysis : Analysis
        What `analyse` worked out about a fitted model.
    names : sequence or mapping, optional
        Names of the factors: one per factor, or by their own names (``{"factor1": "Worry"}``).
    title : str, optional
        Title of the report; the file's name by default.
    with_participants : bool
        Whether each participant's scores are part of the report. They are not unless asked for.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> analysis = analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False)
    >>> [factor.name for factor in report_of(analysis, names=["Home", "School"]).model.factors]
    ['Home', 'School']
    """
    model, questionnaire, study = analysis.model, analysis.questionnaire, analysis.study
    shown = _shown_names(model, questionnaire.items, names)
    by_key = dict(zip(model.get_feature_names_out(), shown, strict=True))
    summary, k = model.summary(), len(model.components_)
    answered = describe_answers(analysis.answers, model.item_range_)
    sample = _sample(analysis, answered)
    hidden, rival = analysis.hidden, analysis.rival
    found = hidden is None or not hidden.no_better_than_means
    report = Report(
        title=title or _title(questionnaire.source, found=found),
        doubts=tuple(str(doubt.fields["anonymous"]) for doubt in study.doubts),
        direction=study.directions.sentence,
        analysed=_analysed(study.overview),
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
        count=count_section(
            k, float(model.beta), _search(analysis.search), *_eigenvalues(analysis.parallel), analysis.rules
        ),
        models=_views(analysis, shown),
        splits=_splits(analysis),
        bootstrap=analysis.n_bootstrap,
        bootstrap_words=_bootstrap_words(analysis.n_bootstrap, grouped=analysis.groups is not None),
        replication_words=REPLICATION_WORDS if model.replication_ is not None else "",
        scores=_scores(analysis, shown),
        fit=_fit(analysis, summary),
        comparison=None
        if rival is None
        else comparison_section(rival, by_key, r_squared=float(summary.r_squared)),
        methods=_methods(analysis, sample),
        psychometrics=_psychometric(analysis, summary, shown),
        participants=participant_rows(questionnaire.keyed_answers(), analysis.scores)
        if with_participants
        else None,
    )
    return with_words(report)


def _sample(analysis: Analysis, answered: pd.DataFrame) -> Sample:
    questionnaire, stated, groups = analysis.questionnaire, analysis.stated, analysis.groups
    return sample_section(
        questionnaire,
        answered,
        missing_bands(analysis.answers),
        _confounds(questionnaire.confounds, stated.kept, stated.encoder),
        n_fitted=stated.problem.n,
        n_groups=None if groups is None else int(groups.max()) + 1,
        weighted=stated.problem.weights is not None,
        share_structural=_structural(questionnaire, stated.kept),
        limit=analysis.model.smallest_category,
    )


def _scores(analysis: Analysis, shown: list[str]) -> Scores:
    model, top = analysis.model, analysis.model.score_max or 1.0
    described = describe_scores(analysis.scores, top=top)
    return scores_section(described, shown, top=top, limit=model.smallest_category)


def _views(analysis: Analysis, shown: list[str]) -> tuple[ModelView, ...]:
    items = analysis.questionnaire.items
    others = (_view(other, _shown_names(other, items, None), items, None) for other in analysis.other_models)
    return (_view(analysis.model, shown, items, analysis.resamples), *others)


def _splits(analysis: Analysis) -> tuple[FactorLink, ...]:
    if not analysis.other_models:
        return ()
    models = (analysis.model, *analysis.other_models)
    return factor_links(factor_lineage([each.weighted_loadings_ for each in models]))


def _fit(analysis: Analysis, summary: Summary) -> FitQuality:
    model, hidden = analysis.model, analysis.hidden
    return fit_section(
        r_squared=float(summary.r_squared),
        hidden=hidden,
        n_splits=None if hidden is None else hidden.n_splits,
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        objective=float(model.objective_),
        tol=float(model.tol),
        score_step=float(model.certificate_.score_step),
        loading_step=float(model.certificate_.loading_step),
        trace=model.trace_["step"].tolist() if "step" in model.trace_ else [],
        starts=model.starts_,
        keys=dict(zip(model.factor_names_, default_names(len(model.components_)), strict=True)),
        n_averaged=model.n_averaged_,
    )


def _methods(analysis: Analysis, sample: Sample) -> Methods:
    model, hidden = analysis.model, analysis.hidden
    return methods_section(
        len(model.components_),
        model.get_params(deep=False),
        model.item_range_,
        [column.name for column in model.confound_encoder_.columns],
        sample,
        search=_search(analysis.search),
        n_bootstrap=analysis.n_bootstrap,
        compared=analysis.rival is not None,
        folds=None if hidden is None else hidden.n_splits,
        seed=analysis.seed,
        n_starts=len(model.starts_),
        n_averaged=model.n_averaged_,
        analysed=_analysed(analysis.study.overview).lines,
        reliable=analysis.psychometry is not None,
    )


def _analysed(overview: Overview) -> Analysed:
    return Analysed(overview.all_lines, (overview.widths,) if overview.widths else ())


def _title(source: str, *, found: bool) -> str:
    if not found:
        return f"No structure found in {source}" if source else "No structure found"
    return f"Factors behind {source}" if source else "Questionnaire factors"


def _psychometric(analysis: Analysis, summary: Summary, names: list[str]) -> Psychometrics | None:
    if analysis.psychometry is None:
        return None
    keys, rival = default_names(len(names)), analysis.rival
    if not isinstance(rival, Counterparts):
        return psychometric_section(analysis.psychometry, summary, names, keys)
    return psychometric_section(
        *(analysis.psychometry, summary, names, keys),
        fa_loadings=rival.loadings,
        fa_communalities=rival.communalities,
    )


def _eigenvalues(found: FactorCount | None) -> tuple[int | None, pd.DataFrame | None]:
    """What parallel analysis keeps, and the first of the eigenvalues behind it."""
    if found is None:
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
