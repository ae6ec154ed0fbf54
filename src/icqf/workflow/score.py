"""Score new participants with a fitted model, from file to table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from icqf.data.parameters import Visit, parameter_error
from icqf.data.questionnaire import Item, Questionnaire
from icqf.estimator import ICQF
from icqf.extensions.longitudinal import LongitudinalICQF
from icqf.extensions.visit_file import is_longitudinal
from icqf.io.codebook import read_codebook
from icqf.io.readers.confounds import as_the_model_knows
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import NOT_IN_CODEBOOK
from icqf.workflow.modelled import (
    DIRECTIONS_UNKNOWN,
    known_items,
    read_for_model,
    require_model_columns,
)
from icqf.workflow.visits import visit_rows

ROWS_AT_A_TIME = 16384


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores by participant id, and what was done to the data on the way.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.workflow import Scored
    >>> scored = Scored(pd.DataFrame({"factor1": [0.2, None]}, index=["P1", "P2"]), notes=(), n_silent=1)
    >>> scored.scores["factor1"].tolist(), scored.n_silent
    ([0.2, nan], 1)
    """

    scores: pd.DataFrame
    notes: tuple[str, ...]
    n_silent: int


def score_file(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
    begin: Callable[[], object] | None = None,
) -> Scored:
    """Score the participants of a file with the model of another.

    Parameters
    ----------
    model : path
        A model file. The ranges, directions and missing codes of its items are used.
    answers : path
        A table with the model's items and confounds.
    codebook : path, optional
        Directions, missing codes and labels, for a model file that holds none, or instead of those it holds.
        An entry of a confound says which of its values is which category of the model.
    dictionary, id, missing_codes, visit
        As in `icqf.io.read_questionnaire`.
    begin : callable, optional
        Called when the files have been read and before the participants are scored.

    Returns
    -------
    Scored
        Participants who answered nothing are kept, with empty scores.

    Examples
    --------
    >>> import tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import StudyOptions, fit_study, score_file, write_results
    >>> answers, codebook = demo_paths()
    >>> asked = {"answers": answers, "codebook": codebook, "n_components": 2, "beta": 0.1, "report": False}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_results(fit_study(StudyOptions.of(asked)), f"{folder}/results")
    ...     scored = score_file(f"{folder}/results/model.icqf", answers)
    >>> scored.scores.shape
    (600, 2)
    """
    if is_longitudinal(model):
        if visit:
            raise parameter_error("visit", " has no meaning for a model of repeated visits; leave it out.")
        given = () if codebook is None else read_codebook(codebook)
        return _score_visits(model, answers, given, dictionary, id, missing_codes, begin)
    read = read_for_model(
        model,
        answers,
        codebook=codebook,
        dictionary=dictionary,
        id=id,
        missing_codes=missing_codes,
        visit=visit,
    )
    if begin is not None:
        begin()
    scores = transform_in_threads(read.model, read.questionnaire)
    silent = int(scores.iloc[:, 0].isna().sum()) if scores.shape[1] else 0
    return Scored(scores, read.notes, silent)


def _score_visits(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    given: tuple[Item, ...],
    dictionary: str | os.PathLike[str] | None,
    id: str | None,
    missing_codes: Iterable[float | str],
    begin: Callable[[], object] | None,
) -> Scored:
    """Score participants by all their visits in the file, with a longitudinal model."""
    fitted = LongitudinalICQF.load(model)
    participant, confounds = id or fitted.participant, list(fitted.confounds)
    table = read_table(answers, dictionary=dictionary, text=[participant])
    require_model_columns(table, [participant], "participant column")
    require_model_columns(table, [fitted.age], "age column")
    require_model_columns(table, fitted.items_, "item")
    require_model_columns(table, confounds, "confound")
    categories = {column.name: column.categories for column in fitted.confound_encoder_.columns}
    table = as_the_model_knows(table, categories, (*given, *table.items, *fitted.codebook_.confounds))
    items = known_items(fitted, given)
    visits = visit_rows(
        table, participant, fitted.age, codebook=items, confounds=confounds, missing_codes=missing_codes
    )
    if begin is not None:
        begin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = fitted.set_params(participant=participant).transform(visits)
    notes = [note for note in visits.notes if not note.startswith(NOT_IN_CODEBOOK)]
    if not given and not fitted.codebook_.items:
        notes.insert(0, DIRECTIONS_UNKNOWN)
    return Scored(scores, tuple(notes), int(scores.iloc[:, 0].isna().sum()))


def transform_in_threads(model: ICQF, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the scores (n, k); participants are independent, so every processor takes some of them."""
    answers = questionnaire.answers
    # All that can be said about the confounds is said here, once for all participants.
    model.confound_encoder_.transform(questionnaire.confounds, n_rows=len(answers))

    def scores_of(start: int) -> np.ndarray:
        rows = np.arange(start, min(start + ROWS_AT_A_TIME, len(answers)))
        return np.asarray(model.transform(questionnaire.take(rows)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        # Without the limit every thread would start threads of its own for its small products.
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(scores_of, range(0, len(answers), ROWS_AT_A_TIME)))
    return pd.DataFrame(np.concatenate(parts), index=answers.index, columns=model.get_feature_names_out())


def model_items(model: str | os.PathLike[str]) -> tuple[ICQF, tuple[Item, ...]]:
    """Load a model and what its file says about the items."""
    fitted = ICQF.load(model)
    return fitted, fitted.codebook_.items
