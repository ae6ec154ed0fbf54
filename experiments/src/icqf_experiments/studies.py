"""The studies of the paper's experiments: simulated, public, or real exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from icqf.analyses.method_comparison import FEWEST_CASES, answered
from icqf.data.questionnaire import Questionnaire
from icqf.data.study import Study
from icqf.datasets import (
    load_bfi,
    load_help,
    load_help_labels,
    load_msq,
    load_phq9,
    load_phq9_labels,
    make_cohort,
)
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf_experiments.exports import read_abcd, read_hbn

READERS = {"hbn": read_hbn, "abcd": read_abcd}
QUICK_PARTICIPANTS = 400  # of a study in a quick run


def load_study(name: str, *, files: Sequence[Path] = (), most: int | None = None) -> Study:
    """Load a study by name, or some of its participants; HBN and ABCD are simulated without `files`.

    Examples
    --------
    >>> from icqf_experiments.studies import load_study
    >>> load_study("abcd", most=2000).described
    'ABCD (simulated): 2 000 participants, 119 items, 11 labels'
    """
    if name not in STUDIES:
        raise InputError(
            f"There is no study {name!r}.{did_you_mean(name, STUDIES)} Choose from {listed(STUDIES, most=9)}."
        )
    study = READERS[name](*files) if files else STUDIES[name]()
    questionnaire, notes = _complete(answered(study.questionnaire))
    if most is not None and most < questionnaire.n_participants:
        chosen = np.random.default_rng(0).permutation(questionnaire.n_participants)[:most]
        questionnaire = questionnaire.take(np.sort(chosen))
    labels = study.labels
    if labels is not None:
        labels = labels.reindex(questionnaire.answers.index)
        enough = (labels == 1).sum().ge(FEWEST_CASES) & (labels == 0).sum().ge(FEWEST_CASES)
        rare = list(labels.columns[~enough])
        if rare:
            notes += (
                f"Labels with fewer than {FEWEST_CASES} cases or controls left out: {', '.join(rare)}.",
            )
        labels = labels.loc[:, enough]
    return replace(study, questionnaire=questionnaire, labels=labels, notes=notes)


def _complete(questionnaire: Questionnaire) -> tuple[Questionnaire, tuple[str, ...]]:
    """Leave out participants with missing confounds, with a note."""
    if questionnaire.confounds is None:
        return questionnaire, ()
    known = questionnaire.confounds.notna().all(axis=1).to_numpy()
    if known.all():
        return questionnaire, ()
    names = " or ".join(map(str, questionnaire.confounds))
    note = f"{counted(int((~known).sum()), 'participant')} without {names} left out."
    return questionnaire.take(np.flatnonzero(known)), (note,)


def _simulated(name: str) -> Study:
    cohort = make_cohort(name)
    title = f"{name.upper()} (simulated)"
    return Study(cohort.questionnaire, cohort.diagnoses, name, title, cohort.truth.loadings)


STUDIES: dict[str, Callable[[], Study]] = {
    "hbn": lambda: _simulated("hbn"),
    "abcd": lambda: _simulated("abcd"),
    "help": lambda: Study(load_help(), load_help_labels(), "help", "HELP (CES-D and InDUC)"),
    "phq9": lambda: Study(load_phq9(), load_phq9_labels(), "phq9", "NHANES PHQ-9"),
    "bfi": lambda: Study(load_bfi(), name="bfi", title="bfi (personality)"),
    "msq": lambda: Study(load_msq(), name="msq", title="msq (mood words)"),
}
