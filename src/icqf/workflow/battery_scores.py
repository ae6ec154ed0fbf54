"""Score new participants with the model of a battery, from whichever instruments there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from icqf.data.battery import Battery
from icqf.data.parameters import Visit
from icqf.data.questionnaire import Questionnaire
from icqf.errors import Advice, InputError, listed
from icqf.extensions.meta import MetaICQF
from icqf.io.codebook import read_codebook
from icqf.io.readers.beside import joined_by_id
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import NO_IDS, NOT_IN_CODEBOOK
from icqf.io.readers.tables import Table
from icqf.io.readers.visits import keep_visit
from icqf.models.icqf import ICQF
from icqf.workflow.battery import find_instruments
from icqf.workflow.modelled import ModelledAnswers, answers_for
from icqf.workflow.options import StudyOptions
from icqf.workflow.score import Scored


def score_battery(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    participants: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
    begin: Callable[[], object] | None = None,
) -> Scored:
    """Score the participants of a folder of instruments, or of one wide table.

    Parameters
    ----------
    model : path
        A file that `MetaICQF.save` wrote.
    answers : path
        A folder with a file for any of the model's instruments, named after it; or a table with the items of
        any. An instrument that is not there is missing.
    codebook, dictionary, id, missing_codes, visit, begin
        As in `icqf.workflow.score_file`.
    participants : path, optional
        Table of the model's confounds by participant id; ``participants.csv`` of a folder is found.

    Returns
    -------
    Scored
        Scores of the meta-factors, and those of the instruments' factors beside them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.extensions import MetaICQF
    >>> from icqf.workflow import score_battery
    >>> battery = make_battery(n=80, n_items=(6, 6), n_factors=2, n_meta=2, random_state=0).battery
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery).save(f"{folder}/meta.icqf")
    ...     new = pathlib.Path(folder, "new")
    ...     new.mkdir()
    ...     battery.instruments["B"].answers.head(5).to_csv(new / "B.csv")
    ...     list(score_battery(f"{folder}/meta.icqf", new).scores)[:3]
    ['meta1', 'meta2', 'A: factor1']
    """
    read = read_for_battery(
        model,
        answers,
        codebook=codebook,
        dictionary=dictionary,
        participants=participants,
        id=id,
        missing_codes=missing_codes,
        visit=visit,
    )
    if begin is not None:
        begin()
    fitted, battery, notes = read.model, read.questionnaire, list(read.notes)
    factors = fitted.factor_scores(battery)
    scores = pd.concat([fitted.transform(battery), factors], axis=1)
    silent = int((~battery.answered.any(axis=1)).sum())
    absent = [name for name in fitted.instruments_ if name not in battery.instruments]
    if absent:
        notes.append(f"Scored without {listed(absent, most=12)}, which are not there.")
    return Scored(scores, tuple(notes), silent)


def read_for_battery(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str],
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    participants: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
) -> ModelledAnswers:
    """Read the model of a battery, and the answers to any of its instruments; see `score_battery`."""
    fitted = MetaICQF.load(model)
    place = Path(answers)
    given = () if codebook is None else read_codebook(codebook)
    notes: list[str] = []
    beside = None if participants is None else Path(participants)
    sources: Mapping[str, Path | Table]
    if place.is_dir():
        sources, found = _in_folder(fitted, place, id, notes)
        beside = beside or found
    else:
        sources = dict(
            _in_table(
                fitted, keep_visit(read_table(place, dictionary=dictionary, text=[id] if id else ()), visit)
            )
        )
    instruments: dict[str, Questionnaire] = {}
    for name, source in sources.items():
        own = fitted.instruments_[name]
        table = (
            source
            if isinstance(source, Table)
            else keep_visit(read_table(source, dictionary=dictionary, text=_ids(own, id)), visit)
        )
        if beside is not None:
            confounds = [column.name for column in own.confound_encoder_.columns]
            table = joined_by_id(table, read_table(beside, text=_ids(own, id)), confounds, id=id)
        questionnaire = answers_for(own, table, given=given, id=id, missing_codes=missing_codes)
        if len(sources) > 1 and place.is_dir() and NO_IDS in questionnaire.notes:
            raise InputError(
                f"{questionnaire.source}: no column of participant ids is recognised, so instrument "
                f"{name!r} cannot be "
                "joined to the others.",
                code="no-id-column",
                remedy=Advice("Name the column with {id}; it must be called the same in all files."),
            )
        instruments[name] = questionnaire
        notes += [f"{name}: {note}" for note in questionnaire.notes if not note.startswith(NOT_IN_CODEBOOK)]
    return ModelledAnswers(fitted, Battery(instruments), tuple(dict.fromkeys(notes)), None, (Path(model),))


def _ids(model: ICQF, id: str | None) -> list[str]:
    return [name for name in (id, model.codebook_.id) if name]


def _in_folder(
    model: MetaICQF, folder: Path, id: str | None, notes: list[str]
) -> tuple[dict[str, Path], Path | None]:
    """The files of the model's instruments, and the table of participants."""
    confounds = ("any",)  # so that a table of participants is looked for
    files = find_instruments(StudyOptions(folder, id=id, confounds=confounds))
    mine = {each.name: each.options.answers for each in files if each.name in model.instruments_}
    if not mine:
        raise InputError(
            f"{folder}: no file is named after an instrument of the model "
            f"({listed(model.instruments_, most=12)}); the "
            f"folder has {listed(each.name for each in files)}."
        )
    others = [each.name for each in files if each.name not in mine]
    if others:
        notes.append(f"Not used, as the model has no such instruments: {listed(others)}.")
    return mine, files[0].options.participants


def _in_table(model: MetaICQF, table: Table) -> Iterator[tuple[str, Table]]:
    """The table for each instrument that it holds any item of."""
    columns = {str(name) for name in table.frame.columns}
    present = [
        name
        for name, own in model.instruments_.items()
        if columns & {str(item) for item in own.item_range_.index}
    ]
    if not present:
        raise InputError(
            f"{table.source}: no column is an item of the model's instruments "
            f"({listed(model.instruments_, most=12)})."
        )
    yield from ((name, table) for name in present)
