"""The studies that the paper's experiments are repeated on: simulated, public, or one's own exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Questionnaire
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
from icqf.evaluation.fits import FEWEST_CASES, answered
from icqf.io.readers.studies import read_abcd, read_hbn

READERS = {"hbn": read_hbn, "abcd": read_abcd}


@dataclass(frozen=True, eq=False)
class NamedStudy:
    """A study with what an experiment needs.

    Attributes
    ----------
    name, title : str
        Short name, for files, and a title to read.
    questionnaire : Questionnaire
    labels : DataFrame or None
        Diagnoses or other labels by participant.
    truth : DataFrame or None
        The true loadings, where the answers were simulated.
    notes : tuple of str
        Whom and what was left out.
    """

    name: str
    title: str
    questionnaire: Questionnaire
    labels: pd.DataFrame | None = None
    truth: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def known_labels(self) -> pd.DataFrame:
        """The labels; an error for a study without any."""
        if self.labels is None or not self.labels.shape[1]:
            raise InputError(f"{self.title} has no labels to predict; choose a study that has diagnoses.")
        return self.labels

    @property
    def described(self) -> str:
        """The study's title and sizes."""
        n, m = self.questionnaire.answers.shape
        labels = "" if self.labels is None else f", {counted(self.labels.shape[1], 'label')}"
        return f"{self.title}: {f'{n:,}'.replace(',', ' ')} participants, {m} items{labels}"


def load_study(name: str, *, files: Sequence[Path] = (), most: int | None = None) -> NamedStudy:
    """Load a study by name.

    Parameters
    ----------
    name : {"hbn", "abcd", "help", "phq9", "bfi", "msq"}
        The first two are simulated, unless `files` are given.
    files : sequence of Path
        Exports of the real HBN or ABCD study.
    most : int, optional
        Take this many participants only, for a quick look.

    Examples
    --------
    >>> from icqf.reproduce.studies import load_study
    >>> load_study("abcd", most=2000).described
    'ABCD (simulated): 2 000 participants, 119 items, 11 labels'
    """
    if name not in STUDIES:
        raise InputError(
            f"There is no study {name!r}.{did_you_mean(name, STUDIES)} Choose from {listed(STUDIES, most=9)}."
        )
    study = _real(name, files) if files else STUDIES[name]()
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
    return NamedStudy(study.name, study.title, questionnaire, labels, study.truth, notes)


def _complete(questionnaire: Questionnaire) -> tuple[Questionnaire, tuple[str, ...]]:
    """Leave out participants whose confounds are not known, and say so."""
    if questionnaire.confounds is None:
        return questionnaire, ()
    known = questionnaire.confounds.notna().all(axis=1).to_numpy()
    if known.all():
        return questionnaire, ()
    names = " or ".join(map(str, questionnaire.confounds))
    note = f"{counted(int((~known).sum()), 'participant')} without {names} left out."
    return questionnaire.take(np.flatnonzero(known)), (note,)


def own_study(questionnaire: Questionnaire, labels: Sequence[str]) -> NamedStudy:
    """Return a study of one's own, its labels having been read beside the confounds."""
    beside = questionnaire.confounds
    known = None if beside is None or not labels else beside[list(labels)]
    rest = None if beside is None else beside.drop(columns=list(labels))
    if rest is not None and not rest.shape[1]:
        rest = None
    name = "study-labelled" if labels else "study"
    return NamedStudy(name, questionnaire.source, replace(questionnaire, confounds=rest), known)


def _real(name: str, files: Sequence[Path]) -> NamedStudy:
    study = READERS[name](*files)
    return NamedStudy(name, name.upper(), study.questionnaire, study.diagnoses)


def _simulated(name: str) -> NamedStudy:
    cohort = make_cohort(name)
    title = f"{name.upper()} (simulated)"
    return NamedStudy(name, title, cohort.questionnaire, cohort.diagnoses, cohort.truth.loadings)


STUDIES: dict[str, Callable[[], NamedStudy]] = {
    "hbn": lambda: _simulated("hbn"),
    "abcd": lambda: _simulated("abcd"),
    "help": lambda: NamedStudy("help", "HELP (CES-D and InDUC)", load_help(), load_help_labels()),
    "phq9": lambda: NamedStudy("phq9", "NHANES PHQ-9", load_phq9(), load_phq9_labels()),
    "bfi": lambda: NamedStudy("bfi", "bfi (personality)", load_bfi()),
    "msq": lambda: NamedStudy("msq", "msq (mood words)", load_msq()),
}
