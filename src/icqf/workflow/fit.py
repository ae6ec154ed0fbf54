"""Fit a study: choose the number of factors and the penalty, fit, score, and record the provenance."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from icqf.analyses.factor_properties import hidden_fit
from icqf.baselines.retention import RuleTable
from icqf.data.settings import parameter_error
from icqf.data.study import Study
from icqf.data.validate import EmptyRowsWarning
from icqf.engines.choice import engine_of
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import Progress, spread_over
from icqf.errors import Advice, InputError, InputWarning, concerns_users, counted
from icqf.io.provenance import fingerprints_of, versions
from icqf.io.study_files import StudyFiles
from icqf.models.consensus import consensus, replication_chance
from icqf.models.factor_names import refuse_swapped
from icqf.models.icqf import ICQF, scores_of_fit, warned_if_empty
from icqf.models.icqfcv import FEWEST, ICQFCV
from icqf.models.statement import StatedProblem
from icqf.report import Analysis, analyse
from icqf.resampling.folds import units_of
from icqf.resampling.hidden import HiddenFit
from icqf.workflow.naming import suggestions
from icqf.workflow.options import StudyOptions, as_options
from icqf.workflow.read import read_study
from icqf.workflow.select import rules_of_study

Callback = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class StudyFit:
    """A fitted study.

    Parameters
    ----------
    options : StudyOptions
        What was asked for.
    study : Study
        What was read.
    model : ICQF
        The model, fitted to all participants.
    scores : DataFrame of shape (n_participants, k)
        Scores by participant id, empty for those who answered nothing.
    search : ICQFCV or None
        The cross-validation, where there was anything to choose.
    warnings : tuple of Warning
        What the fit had to say.
    started : datetime
        When the run began.
    seconds : float
        How long it took.
    rules : RuleTable or None
        What the rules for the number of factors say, where they were asked.
    hidden : HiddenFit or None
        How well hidden answers are predicted; None where participants or items are too few.
    stated : StatedProblem or None
        The problem that the answers of the questionnaire state.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, fit_study
    >>> answers, codebook = demo_paths()
    >>> asked = {"answers": answers, "codebook": codebook, "n_components": 2, "beta": 0.1}
    >>> fit = fit_study(StudyOptions.of(asked))
    >>> fit.model.loadings_.shape, fit.search is None
    ((119, 2), True)
    """

    options: StudyOptions
    study: Study
    model: ICQF
    scores: pd.DataFrame
    search: ICQFCV | None
    warnings: tuple[Warning, ...]
    started: datetime
    seconds: float
    rules: RuleTable | None = None
    hidden: HiddenFit | None = None
    stated: StatedProblem | None = None

    @cached_property
    def analysis(self) -> Analysis:
        """Everything that is known about the fit: what it worked out itself, and what a report adds."""
        return analyse(
            self.model,
            self.study,
            stated=self.stated,
            scores=self.scores,
            search=self.search,
            rules=self.rules,
            hidden=self.hidden,
            n_bootstrap=self.options.bootstrap,
            n_jobs=self.options.jobs,
            random_state=self.options.seed,
        )


def fit_study(
    options: StudyFiles | str | os.PathLike[str],
    *,
    study: Study | None = None,
    checkpoint: Path | WorkJournal | None = None,
    callback: Callback | None = None,
    **more: Any,
) -> StudyFit:
    """Read, choose, fit and score.

    Parameters
    ----------
    options : StudyOptions or path
        What to do, or the table of answers.
    study : Study, optional
        The data, when they are already read.
    checkpoint : Path, optional
        Journal of the cross-validation.
    callback : callable, optional
        Told about the progress of the cross-validation, or of the fit when there is nothing to choose.
    **more
        Options by name, such as ``codebook="items.csv"``; see `StudyOptions`.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import fit_study
    >>> answers, codebook = demo_paths()
    >>> fit_study(answers, codebook=codebook, n_components=2, beta=0.1).scores.shape
    (600, 2)
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    options = as_options(options, more, StudyOptions)
    _refuse_names(options)
    study = read_study(options) if study is None else study
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        questionnaire, model = study.questionnaire, model_of(options)
        stated = model.state(questionnaire)
        if options.searches:
            search = searcher(options, checkpoint=checkpoint, callback=callback)
            found = search.solve(stated, groups=questionnaire.groups)
            model = search.best_estimator_
            chosen = search.n_components_, search.beta_
        else:
            search, (k,), (beta,) = None, options.n_components, options.beta
            chosen = k, beta
        if search is None or study.everyone is not None:
            model = model_of(options).set_params(n_components=chosen[0], beta=chosen[1], callback=callback)
        if study.everyone is not None:
            values = model.fit(study.everyone).transform(questionnaire)
        else:
            if search is None:
                found = model.solve(stated)
                warned_if_empty(model.keep(stated, found))
            values = scores_of_fit(model, stated, found, questionnaire, None)
        stated = replace(stated, problem=stated.problem.with_beta(float(model.beta)))
        tell = callback or (lambda _: None)
        given: dict[str, Any] = {"groups": questionnaire.groups, "random_state": options.seed}
        with spread_over(engine_of(model.engine), options.jobs) as jobs:
            if options.consensus:
                tell(Progress(0, 0, what="Averaging over resampled participants"))
                model = consensus(model, stated, n_jobs=jobs, **given)
                values = model.transform(questionnaire)
            if options.bootstrap and model.replication_ is None and model.n_participants_ >= FEWEST:
                tell(Progress(0, 0, what="Asking whether another study would find the factors again"))
                replication_chance(model, stated, n_jobs=jobs, **given)
            hidden = None if search is None else search.hidden_
            if hidden is None:
                tell(Progress(0, 0, what="Predicting hidden answers"))
                hidden = predicted_hidden(model, stated, n_jobs=jobs, **given)
        _give_names(model, options.names)
    scores = pd.DataFrame(
        values, index=study.questionnaire.answers.index, columns=model.get_feature_names_out()
    )
    if options.all_rules and callback is not None:
        callback(Progress(0, 0, what="Asking the rules of factor analysis"))
    rules = rules_of_study(study, search=search, seed=options.seed) if options.all_rules else None
    seconds = time.perf_counter() - clock
    told = said(caught)
    return StudyFit(options, study, model, scores, search, told, started, seconds, rules, hidden, stated)


def predicted_hidden(
    model: ICQF, stated: StatedProblem, *, groups: Any, n_jobs: int | None, random_state: int
) -> HiddenFit | None:
    """How well a model of these answers predicts hidden ones, in folds that keep groups and copies whole."""
    units = units_of(stated.problem, groups, stated.kept)
    return hidden_fit(model, stated, groups=units, n_jobs=n_jobs, random_state=random_state)


def _give_names(model: ICQF, names: tuple[str, ...]) -> None:
    """Name the factors as asked; names that go with other factors are left out, with a warning."""
    if not names:
        return
    known = [[said] for said in suggestions(model)]
    try:
        refuse_swapped(names, known, [str(top).split(", ") for top in model.summary().factors["top_items"]])
        model.name_factors(names)
    except InputError as error:
        warnings.warn(
            InputWarning(
                f"The factors were given no names. {error.message}",
                code="not-named",
                remedy=Advice(
                    "Name them after reading, with icqf.workflow.rewrite_results.",
                    typed="Name them after reading, with icqf report.",
                ),
            ),
            stacklevel=2,
        )


def _refuse_names(options: StudyOptions) -> None:
    """Refuse names of factors whose number is another, or is still to be found."""
    if options.names and options.n_components != (len(options.names),):
        number = len(options.names)
        found = ", ".join(map(str, options.n_components)) or "chosen by cross-validation"
        raise parameter_error(
            "names",
            f" holds {counted(number, 'name')}, and the number of factors is {found}.",
            remedy=Advice(
                "Give {n_components=}, or leave the names out until the number is known.", n_components=number
            ),
        )


def select_study(
    options: StudyOptions,
    study: Study,
    *,
    checkpoint: Path | WorkJournal | None = None,
    callback: Callback | None = None,
) -> ICQFCV:
    """Choose the number of factors and β by cross-validation; returns the fitted `ICQFCV`."""
    return searcher(options, checkpoint=checkpoint, callback=callback).fit(study.questionnaire)


def searcher(
    options: StudyOptions, *, checkpoint: Path | WorkJournal | None, callback: Callback | None
) -> ICQFCV:
    """Return the cross-validation that the options ask for."""
    return ICQFCV(
        model_of(options),
        n_components=options.n_components or "auto",
        betas=options.beta or "auto",
        n_splits=options.n_splits,
        n_repeats=options.n_repeats,
        thorough=options.thorough,
        rule=options.rule,
        n_jobs=options.jobs,
        checkpoint=checkpoint,
        callback=callback,
        random_state=options.seed,
    )


def model_of(options: StudyOptions) -> ICQF:
    """Return the model that the options ask for, its number of factors and β left open."""
    engine = engine_of(options.engine, scheduler=options.scheduler)
    return ICQF(random_state=options.seed, engine=engine, **options.model_parameters)


def said(caught: list[warnings.WarningMessage]) -> tuple[Warning, ...]:
    """Return what was warned of, once each; what concerns programmers only is left out."""
    told: dict[str, Warning] = {}
    for each in caught:
        if concerns_users(each.category) and isinstance(each.message, Warning):
            again = issubclass(each.category, EmptyRowsWarning)  # said of the fit, and then of the scores
            told.setdefault("empty rows" if again else str(each.message), each.message)
    return tuple(told.values())


def account_of(fit: StudyFit, *, outputs: list[str]) -> dict[str, Any]:
    """Return the account of a fit as plain values.

    Parameters
    ----------
    fit : StudyFit
        The fitted study.
    outputs : list of str
        Names of the files written.

    Returns
    -------
    dict
        What ``provenance.json`` holds.
    """
    model, search = fit.model, fit.search
    return {
        **run_account(fit.options, fit.started, fit.seconds, fit.study.files),
        "rows": _rows(fit) if fit.study.everyone is None else _rows_of_everyone(fit),
        "items": fit.study.questionnaire.n_items,
        "analysed": fit.study.overview.to_dict(),
        "directions": fit.study.directions.to_dict(),
        "notes": list(fit.study.questionnaire.notes),
        "warnings": anonymous(fit.warnings),
        "model": {
            "n_components": len(model.components_),
            "beta": float(model.beta),
            "chosen_by": "given" if search is None else f"cross-validation, rule {fit.options.rule}",
            **({} if search is None else {"choice": str(search.choice_)}),
            "objective": float(model.objective_),
            "converged": bool(model.converged_),
            "iterations": int(model.n_iter_),
        },
        "outputs": outputs,
    }


def run_account(
    options: StudyOptions, started: datetime, seconds: float, files: Iterable[Path]
) -> dict[str, Any]:
    """Return what every account says of a run: what computed, when, with which options and files."""
    return {
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "seed": options.seed,
        "options": options.shareable(),
        "inputs": fingerprints_of(files),
    }


def anonymous(said: Iterable[Warning]) -> list[str]:
    """Return what was warned of, without the ids and values of participants."""
    return [getattr(each, "fields", {}).get("anonymous", str(each)) for each in said]


def _rows_of_everyone(fit: StudyFit) -> dict[str, Any]:
    """Say how many rows came in and were fitted, where only some of them were held and shown."""
    return {
        "in": fit.study.rows_of_everyone,
        "fitted": int(fit.model.n_participants_),
        "shown": fit.study.questionnaire.n_participants,
    }


def _rows(fit: StudyFit) -> dict[str, Any]:
    """Say how many rows came in, how many were fitted and scored, and why others were not."""
    questionnaire = fit.study.questionnaire
    silent = questionnaire.answers.isna().all(axis=1).to_numpy()
    weights = questionnaire.weights
    unweighted = 0 if weights is None else int(((weights == 0).to_numpy() & ~silent).sum())
    n_rows = questionnaire.n_participants if fit.study.n_rows is None else fit.study.n_rows
    reasons = (
        (n_rows - questionnaire.n_participants, "empty row in the file", "dropped"),
        (int(silent.sum()), "answered nothing", "kept out of the fit, empty scores"),
        (unweighted, "weight 0", "kept out of the fit, scored"),
    )
    return {
        "in": n_rows,
        "fitted": int(fit.model.n_participants_),
        "out": len(fit.scores),
        "scored": int(fit.scores.notna().all(axis=1).sum()),
        "left_out": [{"n": n, "why": why, "then": then} for n, why, then in reasons if n],
    }
