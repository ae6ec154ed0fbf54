"""A study: one data collection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from icqf.data.check import Finding, Overview, doubts_about
from icqf.data.direction import Directions, Keying, find_reversed
from icqf.data.frames import AnswersInParts
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError, counted


@dataclass(frozen=True, eq=False)
class Study:
    """One data collection: its questionnaire, the participants' labels, and its files.

    Parameters
    ----------
    questionnaire : Questionnaire
        Answers, items, confounds, groups and weights.
    labels : DataFrame of shape (n_participants, n_labels) or None
        Diagnoses or other labels by participant: 1, 0 or NaN (not known).
    name, title : str
        Short name, for files, and a title for readers (default: the file name).
    truth : DataFrame or None
        The true loadings, where the answers were simulated.
    notes : tuple of str
        Which participants and labels were left out.
    files : tuple of Path
        The files that were read.
    n_rows : int or None
        Rows in the file of answers, empty ones included.
    everyone : AnswersInParts or None
        All participants, if they are too many for memory and the questionnaire holds only some.
    rows_of_everyone : int
        Rows in their file.

    Examples
    --------
    >>> from icqf.data.study import Study
    >>> from icqf.datasets import load_demo
    >>> Study(load_demo(), title="Demo").described
    'Demo: 600 participants, 119 items'
    """

    questionnaire: Questionnaire
    labels: pd.DataFrame | None = None
    name: str = "study"
    title: str = ""
    truth: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    n_rows: int | None = None
    everyone: AnswersInParts | None = None
    rows_of_everyone: int = 0

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items with the ranges used, including observed ones."""
        return self.questionnaire.with_observed_ranges().items

    @cached_property
    def keying(self) -> Keying:
        """The items that run against the others."""
        return find_reversed(self.questionnaire, resamples=0)

    @property
    def directions(self) -> Directions:
        """Which items are reversed, and which look as if they should be."""
        return Directions.of(self.questionnaire, self.keying)

    @cached_property
    def doubts(self) -> tuple[Finding, ...]:
        """Findings that do not prevent a fit but that its reader must know first."""
        return doubts_about(self.questionnaire)

    @cached_property
    def overview(self) -> Overview:
        """Items, ranges, directions, columns left out, and participants."""
        return Overview.of(self.questionnaire, n_rows=self.n_rows)

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
        title = self.title or self.questionnaire.source
        return f"{title}: {f'{n:,}'.replace(',', ' ')} participants, {m} items{labels}"
