"""Fit a study: choose the number of factors and the penalty, fit, score, and record the provenance."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import effective_n_jobs

from icqf.analyses.factor_properties import hidden_fit
from icqf.baselines.retention import RULES, RuleTable, every_rule
from icqf.data.settings import BETAS, parameter_error
from icqf.data.study import Study
from icqf.data.validate import EmptyRowsWarning
from icqf.engines.choice import engine_of
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import spread_over
from icqf.engines.progress import Progress, Stages
from icqf.errors import Advice, InputError, InputWarning, concerns_users, counted
from icqf.io.atomic import write_bytes
from icqf.io.preregistration import read_preregistration
from icqf.io.provenance import fingerprints_of, versions
from icqf.io.study_files import StudyFiles
from icqf.io.write import write_table
from icqf.models.consensus import consensus, replication_probability
from icqf.models.icqf import ICQF, scores_of_fit, warned_if_empty
from icqf.models.icqfcv import FEWEST, ICQFCV
from icqf.models.selection_rules import best_by_k
from icqf.models.statement import StatedProblem
from icqf.models.summary import refuse_swapped
from icqf.report import Analysis, Document, Section, analyse, report_of
from icqf.report.sections.methods import preregistration_blocks
from icqf.report.words import frozen
from icqf.resampling.folds import units_of
from icqf.resampling.hidden import HiddenFit
from icqf.workflow.deviations import Compared, compared
from icqf.workflow.naming import suggestions, write_named
from icqf.workflow.options import ScoreColumns, StudyOptions, as_options
from icqf.workflow.read import jobs_for, read_study
from icqf.workflow.results_folder import DECIMALS, write_folder

Callback = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class StudyFit:
    """A fitted study: the model of all participants, their scores by id, and what else was asked for.

    `search` is None if there was nothing to choose, `hidden` (how well hidden answers are predicted) if
    participants or items are too few, `rules` and `compared` unless they were requested. `stages` tells a
    callback what is being done.
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
    stages: Stages = field(default_factory=Stages)
    compared: Compared | None = None

    @cached_property
    def analysis(self) -> Analysis:
        """All results of the fit, including those computed for a report."""
        return analyse(
            self.model,
            self.study,
            stated=self.stated,
            scores=self.scores,
            search=self.search,
            rules=self.rules,
            hidden=self.hidden,
            n_bootstrap=self.options.bootstrap,
            n_jobs=jobs_for(self.options, self.study.questionnaire),
            random_state=self.options.seed,
            callback=self.stages,
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
        The options, or the table of answers.
    study : Study, optional
        The data, if already read.
    checkpoint : Path, optional
        Journal of the cross-validation.
    callback : callable, optional
        Called with the progress of every stage (`icqf.engines.Progress`), also while results are written.
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
    plan = None if options.plan is None else read_preregistration(options.plan)
    study = read_study(options) if study is None else study
    jobs: int | None = jobs_for(options, study.questionnaire)
    shape = study.questionnaire.answers.shape
    stages = Stages(callback, expected_seconds(options, *shape, jobs=jobs))
    stages.begin("Cross-validation" if options.searches else "Fitting")
    with warnings.catch_warnings(record=True, action="always") as caught:
        questionnaire, model = study.questionnaire, model_of(options)
        stated = model.state(questionnaire)
        if options.searches:
            search = searcher(options, jobs, checkpoint=checkpoint, callback=stages)
            solution = search.solve(stated, groups=questionnaire.groups)
            model = search.best_estimator_
            chosen = search.n_components_, search.beta_
        else:
            search, (k,), (beta,) = None, options.n_components, options.beta
            chosen = k, beta
        if search is None or study.everyone is not None:
            model = model_of(options).set_params(n_components=chosen[0], beta=chosen[1], callback=stages)
        if study.everyone is not None:
            values = model.fit(study.everyone).transform(questionnaire)
        else:
            if search is None:
                solution = model.solve(stated)
                warned_if_empty(model.keep(stated, solution))
            values = scores_of_fit(model, stated, solution, questionnaire, None)
        stated = replace(stated, problem=stated.problem.with_beta(float(model.beta)))
        stages.expect(expected_seconds(options, *shape, jobs=jobs, k=len(model.components_)))
        common: dict[str, Any] = {"groups": questionnaire.groups, "random_state": options.seed}
        with spread_over(engine_of(model.engine), jobs) as jobs:
            if options.consensus:
                stages.begin("Averaging over resampled participants")
                model = consensus(model, stated, n_jobs=jobs, **common)
                values = model.transform(questionnaire)
            units = units_of(stated.problem, questionnaire.groups, stated.kept)
            many = model.n_participants_ >= FEWEST and (units is None or units.max() > 0)
            if options.bootstrap and model.replication_ is None and many:
                stages.begin("Estimating replication")
                replication_probability(model, stated, n_jobs=jobs, **common)
            hidden = None if search is None else search.hidden_
            if hidden is None:
                stages.begin("Predicting hidden answers")
                hidden = predicted_hidden(model, stated, n_jobs=jobs, **common)
        _name_factors(model, options.names)
    record = model.record_ if search is None else model.record_.chosen_by(search)
    model.record_ = record.with_hidden(hidden)
    followed = None if plan is None else compared(plan, options, study, model)
    if followed is not None:
        model.record_ = replace(model.record_, plan=followed.sentence)
    scores = pd.DataFrame(
        values, index=study.questionnaire.answers.index, columns=model.get_feature_names_out()
    )
    rules = None
    if options.all_rules:
        rules = rules_of_study(study, search=search, seed=options.seed, callback=stages)
    seconds, messages = time.perf_counter() - clock, user_warnings(caught)
    return StudyFit(
        *(options, study, model, scores, search, messages, started, seconds, rules, hidden, stated, stages),
        compared=followed,
    )


def expected_seconds(
    options: StudyOptions, n: int, m: int, *, jobs: int | None = 1, k: int = 6
) -> dict[str, float]:
    """Return the stages of a fit and the writing of its results, with what each takes on one processor.

    Measured on an ordinary computer with 300 x 30 to 5 000 x 120 answers; what matters is their proportion,
    as the speed of this computer is seen from the stages that are over.
    """
    size, many = n * m / 1e6, min(effective_n_jobs(jobs), 8)
    one, stages = size * (k + 3), {}
    if options.searches:
        counts = options.n_components or range(1, 11)
        divisions = options.n_splits * (1 if isinstance(options.n_repeats, str) else options.n_repeats)
        fits = sum(count + 3 for count in counts) * len(options.beta or BETAS) * divisions
        stages["Cross-validation"] = 0.3 + (1 + options.thorough) * (0.7 + 8 * size) * fits / 6800 / many
        stages["Fitting the choice"] = 0.2 + 0.05 * one
    else:
        stages["Fitting"] = 0.2 + 0.05 * one
    if options.consensus:
        stages["Averaging over resampled participants"] = 0.5 + 0.2 * one / many
    if options.bootstrap:
        stages["Estimating replication"] = 0.2 + 0.06 * one / many
    if not options.searches:
        stages["Predicting hidden answers"] = 0.2 + 0.1 * one / many
    if options.all_rules:
        stages |= rule_seconds(n, m)
    if options.report:
        resampling = options.bootstrap / 100 * (0.5 + 0.12 * one / many)
        stages["Resampling participants, describing items"] = resampling + 0.3 + 1.2 * size
        stages["Writing the report, tables and figures"] = 0.8 + options.figures * (0.3 + 0.15 * k) / many
    return stages | ({} if options.report else {"Writing the tables": 0.3})


def predicted_hidden(
    model: ICQF, stated: StatedProblem, *, groups: Any, n_jobs: int | None, random_state: int
) -> HiddenFit | None:
    """Measure how well hidden answers are predicted, in folds that keep groups and duplicates together."""
    units = units_of(stated.problem, groups, stated.kept)
    return hidden_fit(model, stated, groups=units, n_jobs=n_jobs, random_state=random_state)


def _name_factors(model: ICQF, names: tuple[str, ...]) -> None:
    """Name the factors; names that seem to belong to other factors are dropped with a warning."""
    if not names:
        return
    known = [[name] for name in suggestions(model)]
    try:
        refuse_swapped(names, known, [str(top).split(", ") for top in model.summary().factors["top_items"]])
        model.name_factors(names)
    except InputError as error:
        warnings.warn(
            InputWarning(
                f"The factors were not named. {error.message}",
                code="not-named",
                remedy=Advice(
                    "Name them after reading, with icqf.workflow.rewrite_results.",
                    typed="Name them after reading, with icqf report.",
                ),
            ),
            stacklevel=2,
        )


def _refuse_names(options: StudyOptions) -> None:
    """Refuse names if the number of factors differs or is not fixed."""
    if options.names and options.n_components != (len(options.names),):
        number = len(options.names)
        factors = ", ".join(map(str, options.n_components)) or "chosen by cross-validation"
        raise parameter_error(
            "names",
            f" has {counted(number, 'name')}, but the number of factors is {factors}.",
            remedy=Advice(
                "Set {n_components=}, or omit the names until the number is known.", n_components=number
            ),
        )


def select_study(
    options: StudyOptions,
    study: Study,
    *,
    checkpoint: Path | WorkJournal | None = None,
    callback: Callback | None = None,
) -> ICQFCV:
    """Choose the number of factors and β by cross-validation."""
    jobs = jobs_for(options, study.questionnaire)
    return searcher(options, jobs, checkpoint=checkpoint, callback=callback).fit(study.questionnaire)


def searcher(
    options: StudyOptions,
    jobs: int | None,
    *,
    checkpoint: Path | WorkJournal | None,
    callback: Callback | None,
) -> ICQFCV:
    """Return the cross-validation described by the options, in so many processes."""
    how: dict[str, Any] = {
        "betas": options.beta or "auto",
        "n_splits": options.n_splits,
        "n_repeats": options.n_repeats,
        "thorough": options.thorough,
        "rule": options.rule,
    }
    return (ICQFCV.paper if options.paper else ICQFCV)(
        model_of(options),
        n_components=options.n_components or "auto",
        **(_changed(how, ICQFCV()) if options.paper else how),
        n_jobs=jobs,
        checkpoint=checkpoint,
        callback=callback,
        random_state=options.seed,
    )


def model_of(options: StudyOptions) -> ICQF:
    """Return the model described by the options, without number of factors and β."""
    engine, how = engine_of(options.engine, scheduler=options.scheduler), options.model_parameters
    if options.paper:
        return ICQF.paper(random_state=options.seed, engine=engine, **_changed(how, ICQF()))
    return ICQF(random_state=options.seed, engine=engine, **how)


def _changed(settings: Mapping[str, Any], usual: Any) -> dict[str, Any]:
    """Return the settings that are not the usual ones."""
    return {name: value for name, value in settings.items() if value != getattr(usual, name)}


def user_warnings(caught: list[warnings.WarningMessage]) -> tuple[Warning, ...]:
    """Return the warnings that concern users, each once."""
    messages: dict[str, Warning] = {}
    for each in caught:
        if concerns_users(each.category) and isinstance(each.message, Warning):
            empty = issubclass(each.category, EmptyRowsWarning)  # raised by the fit, and by the scores
            messages.setdefault("empty rows" if empty else str(each.message), each.message)
    return tuple(messages.values())


def provenance_of(fit: StudyFit, *, outputs: list[str]) -> dict[str, Any]:
    """Return the content of ``provenance.json`` for a fit; `outputs` are the files written."""
    model, search = fit.model, fit.search
    return {
        **run_provenance(fit.options, fit.started, fit.seconds, fit.study.files),
        **({} if fit.compared is None else {"preregistration": fit.compared.to_dict()}),
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
            **({} if search is None else _choice(search)),
            "objective": float(model.objective_),
            "converged": bool(model.converged_),
            "iterations": int(model.n_iter_),
        },
        "outputs": outputs,
    }


def _choice(search: ICQFCV) -> dict[str, Any]:
    """How sure the search is of its choice, and every number of factors that it tried."""
    columns = ["n_components", "beta", "error", "standard_error"]
    return {
        "choice": str(search.sample_choice_),
        "choice_in_other_folds": str(search.choice_),
        "tried": best_by_k(search.errors_)[columns].to_dict("records"),
    }


def run_provenance(
    options: StudyOptions, started: datetime, seconds: float, files: Iterable[Path]
) -> dict[str, Any]:
    """Return the provenance common to all runs: versions, time, options and files."""
    return {
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "seed": options.seed,
        "options": options.shareable(),
        "inputs": fingerprints_of(files),
    }


def anonymous(messages: Iterable[Warning]) -> list[str]:
    """Return warnings without ids and values of participants."""
    return [getattr(each, "fields", {}).get("anonymous", str(each)) for each in messages]


def _rows_of_everyone(fit: StudyFit) -> dict[str, Any]:
    """Count the rows read, fitted and shown, for a table read in parts."""
    return {
        "in": fit.study.rows_of_everyone,
        "fitted": int(fit.model.n_participants_),
        "shown": fit.study.questionnaire.n_participants,
    }


def _rows(fit: StudyFit) -> dict[str, Any]:
    """Count the rows read, fitted and scored, with the reasons for the others."""
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


def rules_of_study(
    study: Study,
    *,
    search: ICQFCV | None = None,
    seed: int = 0,
    callback: Callable[[Progress], object] | None = None,
) -> RuleTable:
    """Apply every rule for the number of factors, the cross-validation first if there was one.

    Constant items are left out. If no rule can use the answers, the table contains the reason instead of
    numbers, so that a long run does not fail at the end.
    """
    answers = study.questionnaire.keyed_answers()
    try:
        rules = every_rule(answers.loc[:, answers.nunique() > 1], random_state=seed, callback=callback)
    except InputError as error:
        rules = RuleTable((), (("Rules of factor analysis", str(error)),))
    return rules if search is None else rules.with_first(search.count_)


def rule_seconds(n: int, m: int) -> dict[str, float]:
    """Return what the rules take with answers of n participants to m items, by stage of `every_rule`."""
    size = n * m / 1e6
    slow = {
        "Parallel analysis": 0.1 + 5 * size,
        "NEST": 0.1 + 30 * size,
        "Comparison data": 0.4 + 0.75 * size * m,
    }
    return {
        f"Rule of factor analysis: {name}": slow.get(name, 0.1 + size) for name in RULES if RULES[name].run
    }


def write_rules(rules: RuleTable, path: Path) -> None:
    """Write the table of the rules to `path`, and their curves to a JSON file of the same name."""
    write_table(rules.table, path)
    text = json.dumps(rules.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path.with_suffix(".json"), (text + "\n").encode())


PLAN = "preregistration.toml"


def write_results(
    fit: StudyFit, folder: str | os.PathLike[str], *, tool: str = "fit", force: bool = False
) -> list[str]:
    """Write all results of a fit into `folder`, and return the names of the files.

    If anything fails, the folder is unchanged. An existing results folder is replaced only with `force`, and
    only if its results are of the same `tool`, the command; any other folder that is not empty is refused.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import fit_study, write_results
    >>> answers, codebook = demo_paths()
    >>> fit = fit_study(answers, codebook=codebook, n_components=2, beta=0.1, report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_results(fit, f"{folder}/results")
    >>> "scores.csv" in names, "model.icqf" in names
    (True, True)
    """
    target = Path(folder)

    def write(place: Path) -> None:
        for writer in WRITERS:
            writer(fit, place, target)

    return write_folder(
        *(target, tool, write),
        lambda names: provenance_of(fit, outputs=names),
        force=force,
        inputs=fit.study.files,
    )


def _tables(fit: StudyFit, place: Path, folder: Path) -> None:
    form = fit.options.format
    if fit.study.everyone is None:
        write_table(fit.scores, place / f"scores.{form}", decimals=DECIMALS)
    confounds = fit.model.confound_loadings_.rename_axis("item")
    write_table(confounds, place / f"confound_loadings.{form}", decimals=DECIMALS)
    if fit.search is not None:
        write_table(fit.search.cv_results_, place / f"cv.{form}")
    if fit.rules is not None:
        write_rules(fit.rules, place / f"rules.{form}")


def _config(fit: StudyFit, place: Path, folder: Path) -> None:
    head, options = "# Repeat this run with: icqf fit --config config.toml --out NEW_FOLDER\n", fit.options
    if fit.compared is not None:
        plan = fit.compared.plan
        options = replace(options, plan=folder / PLAN)
        dropped = [name for name in plan.options if name not in options.to_dict()]
        head += "".join(f'{name} = ""\n' for name in dropped if plan.options[name] not in ("", []))
        (place / PLAN).write_text(plan.text, encoding="utf-8", newline="\n")
        values = frozen(fit.compared.to_dict())
        page = Document("Deviations from the plan", [], [Section("The plan", preregistration_blocks(values))])
        (place / "deviations.md").write_text(page.as_markdown(), encoding="utf-8")
    (place / "config.toml").write_text(head + options.to_toml(folder=folder), encoding="utf-8")


def _named(fit: StudyFit, place: Path, folder: Path) -> None:
    options, analysis = fit.options, fit.analysis if fit.options.report else None
    fit.stages.begin("Writing the report, tables and figures" if options.report else "Writing the tables")
    report = None
    if analysis is not None:
        followed = None if fit.compared is None else fit.compared.to_dict()
        how: dict[str, Any] = {"with_participants": options.with_participants, "preregistration": followed}
        report = report_of(analysis, **how)
    jobs = jobs_for(options, fit.study.questionnaire)
    write_named(place, fit.model, report, format=options.format, figures=options.figures, n_jobs=jobs)


def _scores_of_everyone(fit: StudyFit, place: Path, folder: Path) -> None:
    """Write the scores of a table read in parts to a Parquet file, in batches."""
    if fit.study.everyone is None:
        return
    from icqf.workflow.score import write_scores  # with the models of visits and batteries

    options = fit.options
    write_scores(
        place / "model.icqf",
        options.answers,
        place / "scores.parquet",
        id=options.id,
        missing_codes=options.missing_codes,
        columns=ScoreColumns(intervals=False),
    )


# All outputs; a new one is another function of (fit, place, folder).
WRITERS: list[Callable[[StudyFit, Path, Path], None]] = [*(_tables, _named, _scores_of_everyone, _config)]
