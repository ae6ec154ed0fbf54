"""The analysis of a fitted model, computed once; pages, tables and figures are views of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from icqf.analyses import factor_analysis_counterparts, general_factor, missing_answers, psychometrics
from icqf.analyses.factor_properties import Counterparts, GeneralFactor, Psychometry, hidden_fit
from icqf.analyses.missingness import MissingAnswers
from icqf.baselines.retention import FactorCount, RuleTable
from icqf.data.answers import together
from icqf.data.frames import refuse_other_rows
from icqf.data.questionnaire import Questionnaire
from icqf.data.study import Study
from icqf.engines.progress import Progress
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError, counted
from icqf.models.icqf import ICQF
from icqf.models.search import parallel_count
from icqf.models.statement import StatedProblem
from icqf.resampling.bootstrap import Resamples, resampling
from icqf.resampling.folds import units_of
from icqf.resampling.hidden import HiddenFit

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Analysis:
    """A fitted model with its answers and everything computed from them.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> found = analyse(ICQF(2).fit(demo), demo, n_bootstrap=5)
    >>> found.n_bootstrap, found.parallel.method, found.hidden.n_splits
    (5, 'Parallel analysis', 10)
    """

    model: ICQF  # fitted
    study: Study  # answers, with directions, doubts and overview
    stated: StatedProblem
    scores: pd.DataFrame  # (n_participants, k)
    search: Any = None  # the ICQFCV that chose the model
    rules: RuleTable | None = None  # all rules for the number of factors
    parallel: FactorCount | None = None  # parallel analysis; None where it is not possible
    hidden: HiddenFit | None = None  # prediction of hidden answers
    resamples: Resamples | None = None  # fits to resampled participants
    rival: Counterparts | str | None = None  # the factor analysis, or why it failed
    psychometry: Psychometry | None = None  # reliability and item statistics
    missing: MissingAnswers | None = None  # what leaving out depends on; None if hardly any answer is missing
    general: GeneralFactor | str | None = None  # what factors have in common, or why that is not known
    other_models: tuple[ICQF, ...] = ()  # fits with other numbers of factors
    seed: int = 0  # of resamples and folds

    @property
    def questionnaire(self) -> Questionnaire:
        """The answers as read."""
        return self.study.questionnaire

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers of the fitted participants, reverse-keyed items reversed."""
        return self.questionnaire.keyed_answers()[self.stated.kept]

    @cached_property
    def groups(self) -> Array | None:
        """Group number of each fitted participant; one without a group is a group of one."""
        if self.questionnaire.groups is None:
            return None
        named = self.questionnaire.groups[self.stated.kept].map(str, na_action="ignore")
        numbers = pd.factorize(named, sort=True)[0]
        alone = numbers < 0
        numbers[alone] = numbers.max(initial=-1) + 1 + np.arange(alone.sum())
        return numbers

    @property
    def n_bootstrap(self) -> int:
        """Number of resamples."""
        return 0 if self.resamples is None else len(self.resamples.loadings)


@one_blas_thread()
def analyse(
    model: ICQF,
    study: Study | Questionnaire,
    *,
    stated: StatedProblem | None = None,
    scores: pd.DataFrame | None = None,
    search: Any = None,
    rules: RuleTable | None = None,
    hidden: HiddenFit | None = None,
    other_models: Sequence[ICQF] = (),
    n_bootstrap: int = 100,
    compare: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    callback: Callable[[Progress], object] | None = None,
) -> Analysis:
    """Compute what a report contains; what is given is not computed again.

    Parameters
    ----------
    study : Study or Questionnaire
        The answers that the model was fitted to (``model.fit(questionnaire)``).
    stated : StatedProblem, optional
        The problem that it was fitted to (`ICQF.state`), needed if weights are not the questionnaire's own.
    scores : DataFrame (n, k), optional
        The participants' scores, if already computed (``model.transform``).
    search : fitted ICQFCV, optional
        The cross-validation that chose the model.
    rules : RuleTable, optional
        All rules for the number of factors (`icqf.baselines.every_rule`), shown as a table.
    hidden : HiddenFit, optional
        Prediction of hidden answers; by default that of the search, or computed.
    other_models : sequence of fitted ICQF
        Fits of the same answers with other numbers of factors, for comparison.
    n_bootstrap : int
        Number of resamples for intervals and stability; 0 for none.
    compare : bool
        Whether to compute a factor analysis, reliability, the prediction of hidden answers, a general factor,
        and what missing answers could change.
    n_jobs : int, optional
        Processes for resamples; the result does not depend on it.
    random_state : int
        Seed of resamples and folds.
    callback : callable, optional
        Called before each stage.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> report = report_of(analyse(ICQF(2).fit(demo), demo, n_bootstrap=20), names=["Home", "School"])
    >>> report.model.factors[0].stability.agreement > 0.9
    True
    """
    study = study if isinstance(study, Study) else Study(study)
    questionnaire = study.questionnaire
    _check(model, questionnaire, n_bootstrap, other_models)
    refuse_other_rows(questionnaire.answers, scores=scores)
    with warnings.catch_warnings(action="ignore"):  # the fit has already warned
        if stated is None:
            stated = model.state(questionnaire)
        _check_participants(model, stated.problem.n, sampled=study.everyone is not None)
        if scores is None:
            values = np.asarray(model.transform(questionnaire), dtype=float)
            names = model.get_feature_names_out()
            scores = pd.DataFrame(values, index=questionnaire.answers.index, columns=names)
    known = Analysis(model, study, stated, scores, search, rules, other_models=tuple(other_models))
    problem, kept = stated.problem, stated.kept
    units = together(known.groups, units_of(problem, None, kept))
    rng, parallel_rng = (np.random.default_rng([random_state, part]) for part in (0, 2))
    rival = psychometry = parallel = missing = general = None
    resampled: Any = nullcontext(lambda: None)
    if callback is not None:
        callback(Progress(0, 0, what="Resampling participants, describing items"))
    if n_bootstrap:
        resampled = resampling(
            problem,
            scores.to_numpy(dtype=float)[kept].T,
            np.concatenate([model.components_, model.confound_components_]),
            n_resamples=n_bootstrap,
            groups=units,
            n_jobs=n_jobs,
            engine=model.engine,
            rng=rng,
        )
    with resampled as found:  # other processes fit the resamples meanwhile
        if compare:
            if hidden is None:
                hidden = getattr(search, "hidden_", None)
            if hidden is None:
                hidden = hidden_fit(model, stated, groups=units, n_jobs=n_jobs, random_state=random_state)
            rival = _rival(known)
            psychometry = _psychometry(known, n_bootstrap, rng)
            parallel = _parallel(known, parallel_rng)
            missing = missing_answers(
                model, questionnaire, stated=stated, scores=scores, random_state=random_state
            )
            general = _general(known)
        resamples = found()
    return replace(
        known, parallel=parallel, hidden=hidden, resamples=resamples, rival=rival, psychometry=psychometry,
        missing=missing, general=general, seed=random_state,
    )  # fmt: skip


def _check(model: ICQF, questionnaire: Questionnaire, n_bootstrap: int, others: Sequence[ICQF]) -> None:
    if n_bootstrap < 0 or n_bootstrap == 1:
        raise InputError(f"n_bootstrap is {n_bootstrap}; give 0 for none, or at least 2 resamples.")
    for each in (model, *others):
        check_is_fitted(each)
        fitted = getattr(each, "feature_names_in_", None)
        items = [item.name for item in questionnaire.items]
        if each.n_features_in_ != len(items) or (fitted is not None and [*map(str, fitted)] != items):
            raise InputError(
                f"The model has {counted(each.n_features_in_, 'item')} and the questionnaire {len(items)}, "
                "or their names or order differ; give the questionnaire that the model was fitted to."
            )


def _check_participants(model: ICQF, n: int, *, sampled: bool) -> None:
    """Refuse answers of participants other than those of the fit, or a sample of them."""
    if n != model.n_participants_ and not (sampled and n < model.n_participants_):
        raise InputError(
            f"The model was fitted to {counted(model.n_participants_, 'participant')}, but {n} of these have "
            "answers; give the questionnaire that it was fitted to (and, with other weights, stated)."
        )


def _rival(known: Analysis) -> Counterparts | str:
    """The factor analysis, or why it failed."""
    model = known.model
    try:
        with warnings.catch_warnings(action="ignore"):  # its warnings do not concern the model
            return factor_analysis_counterparts(
                model.weighted_loadings_, known.answers, item_scale=model.item_scale_
            )
    except InputError as error:
        return str(error)


def _general(known: Analysis) -> GeneralFactor | str:
    """What the factors have in common, or why there is nothing to say."""
    try:
        return general_factor(
            known.model, known.questionnaire, stated=known.stated, scores=known.scores, search=known.search
        )
    except InputError as error:
        return str(error)


def _psychometry(known: Analysis, n_bootstrap: int, rng: np.random.Generator) -> Psychometry | None:
    """Reliability and item statistics; None where the answers do not allow them."""
    kept, confounds = known.stated.kept, known.questionnaire.confounds
    try:
        with warnings.catch_warnings(action="ignore"):  # of items that nobody answered, or everybody alike
            return psychometrics(
                known.model,
                known.answers,
                items=known.questionnaire.items,
                confounds=None if confounds is None else confounds[kept],
                scores=known.scores.to_numpy(dtype=float)[kept],
                n_resamples=min(n_bootstrap, 100),
                random_state=rng,
            )
    except InputError:
        return None


def _parallel(known: Analysis, rng: np.random.Generator) -> FactorCount | None:
    """Parallel analysis: that of the search, that of the rules, or a new one."""
    searched: FactorCount | None = getattr(known.search, "parallel_", None)
    if searched is not None:
        return searched
    for count in () if known.rules is None else known.rules.counts:
        if count.method == "Parallel analysis":
            return count
    try:
        return parallel_count(known.stated.problem, rng)
    except InputError:
        return None
