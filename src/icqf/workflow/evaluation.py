"""Evaluate methods on one's own study, as the paper's experiments do on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from icqf.data.confounds import ConfoundEncoder
from icqf.data.parameters import BETAS
from icqf.data.study import Study
from icqf.reproduce.design import Design
from icqf.workflow.options import StudyOptions

Experiment = Callable[[Sequence[Study], Design], Path]


def evaluate_study(
    experiment: Experiment, study: Study, options: StudyOptions, *, out: Path, **design: Any
) -> Path:
    """Run an experiment on a study and return the page that it writes.

    Parameters
    ----------
    experiment : callable
        `icqf.reproduce.stability.stability_experiment`, or another of its kind.
    study : Study
        What was read.
    options : StudyOptions
        Candidates, rule, folds and parameters of ICQF and ℓ1-NMF; seed and processes.
    out : Path
        Folder for tables, figures, the page and the journal.
    **design
        Other fields of `icqf.reproduce.design.Design`.
    """
    parameters = options.model_parameters
    # Once, of everybody: in a part of the study a category may well have few members.
    limit, ranges = parameters.pop("smallest_category"), parameters["confound_ranges"]
    ConfoundEncoder(ranges=ranges, smallest_category=limit).fit(study.questionnaire.confounds)
    planned = Design(
        out,
        betas=options.beta or BETAS,
        rule=options.rule,
        n_folds=options.n_splits,
        n_repeats=options.n_repeats,
        parameters=tuple(parameters.items()),
        random_state=options.seed,
        n_jobs=options.jobs,
        **design,
    )
    if options.n_components:
        planned = replace(planned, n_components=options.n_components)
    return experiment([study], planned)
