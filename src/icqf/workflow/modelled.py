"""The answers of a file, read as a fitted model knows its items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from icqf.data.parameters import Visit, parameter_error
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.errors import InputError, did_you_mean, listed
from icqf.extensions.longitudinal import LongitudinalICQF
from icqf.io.codebook import read_codebook
from icqf.io.readers.confounds import as_the_model_knows
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import NOT_IN_CODEBOOK, read_questionnaire
from icqf.io.readers.tables import Table, require_column
from icqf.io.readers.visits import keep_visit
from icqf.models.icqf import ICQF
from icqf.models.persistence import described

DIRECTIONS_UNKNOWN = (
    "The model file does not say which items are reversed and which values mean a missing answer, so the "
    "answers are used as they are. Give a codebook if this is wrong."
)


@dataclass(frozen=True, eq=False)
class ModelledAnswers:
    """A model of a file, and the answers of another that has its items: of one questionnaire, or a battery.

    Examples
    --------
    >>> from icqf.workflow import ModelledAnswers
    >>> [name for name in ModelledAnswers.__annotations__]
    ['model', 'questionnaire', 'notes', 'beside', 'files']
    """

    model: Any
    questionnaire: Any
    notes: tuple[str, ...]
    beside: pd.DataFrame | None
    files: tuple[Path, ...]


def read_for_model(
    model: str | os.PathLike[str],
    answers: str | os.PathLike[str] | Table,
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    id: str | None = None,
    groups: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
    beside: Sequence[str] = (),
) -> ModelledAnswers:
    """Read a model, and a file of answers to its items with the ranges, directions and codes of the fit.

    Parameters
    ----------
    model : path
        A model file. The ranges, directions and missing codes of its items are used.
    answers : path or Table
        A table with the model's items and confounds.
    codebook : path, optional
        Directions, missing codes and labels, for a model file that holds none, or instead of those it holds.
        An entry of a confound says which of its values is which category of the model.
    dictionary, id, groups, missing_codes, visit
        As in `icqf.io.read_questionnaire`.
    beside : sequence of str
        Further columns to bring along, such as one that says who belongs to which group.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import demo_paths, load_demo
    >>> from icqf.workflow import read_for_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ICQF(2).fit(load_demo()).save(f"{folder}/model.icqf")
    ...     read = read_for_model(f"{folder}/model.icqf", demo_paths().answers, beside=["site"])
    >>> read.questionnaire.answers.shape, list(read.beside)
    ((600, 119), ['site'])
    """
    fitted = ICQF.load(model)
    given = () if codebook is None else read_codebook(codebook)
    confounds = [column.name for column in fitted.confound_encoder_.columns]
    further = [name for name in beside if name not in confounds]
    texts = [name for name in (id, fitted.codebook_.id, groups, *further) if name]
    whole = answers if isinstance(answers, Table) else read_table(answers, dictionary=dictionary, text=texts)
    table = keep_visit(whole, visit)
    questionnaire = answers_for(
        fitted, table, given=given, id=id, groups=groups, missing_codes=missing_codes, beside=beside
    )
    found = questionnaire.confounds
    if found is not None and further:
        questionnaire = questionnaire.with_confounds(found[confounds] if confounds else None)
    paths = (model, None if isinstance(answers, Table) else answers, codebook, dictionary)
    files = tuple(Path(path) for path in paths if path is not None)
    return ModelledAnswers(
        fitted,
        questionnaire,
        model_notes(fitted, questionnaire.notes, given),
        None if not beside or found is None else found[list(beside)],
        files,
    )


def answers_for(
    model: ICQF,
    table: Table,
    *,
    given: tuple[Item, ...] = (),
    id: str | None = None,
    groups: str | None = None,
    missing_codes: Iterable[float | str] = (),
    beside: Sequence[str] = (),
    items: tuple[Item, ...] | None = None,
) -> Questionnaire:
    """Return the answers of a table to a model's items, with the ranges, directions and codes of the fit.

    Entries of a codebook that are `given` come before those of the model; columns `beside` the model's
    confounds stand among the confounds. `items` are the `known_items`, where these are at hand.
    """
    known = model.codebook_
    items = known_items(model, given) if items is None else items
    if id is None:
        id = known.id if known.id in table.frame.columns else table.id
    categories = {column.name: column.categories for column in model.confound_encoder_.columns}
    confounds = list(categories)
    require_model_columns(table, [item.name for item in items], "item")
    require_model_columns(table, confounds, "confound")
    for name in beside:
        require_column(table, name, "a group")
        if name in {item.name for item in items}:
            raise parameter_error(
                "by", f" names {name!r}, which is an item of the model; name a column of groups, such as sex."
            )
    table = as_the_model_knows(table, categories, (*given, *table.items, *known.confounds))
    read = read_questionnaire(
        table,
        codebook=(*items, *(entry for entry in given if entry.name in beside)),
        id=id,
        confounds=list(dict.fromkeys([*confounds, *beside])),
        groups=groups,
        missing_codes=missing_codes,
    )
    return read.with_notes(_other_directions(known.items, given))


def model_notes(model: ICQF, notes: Iterable[str], given: Sequence[Item]) -> tuple[str, ...]:
    """What to say of answers that were read for a model, with the entries of a codebook that were given."""
    said = [note for note in notes if not note.startswith(NOT_IN_CODEBOOK)]
    return tuple(said if given or model.codebook_.items else [DIRECTIONS_UNKNOWN, *said])


def _other_directions(known: Iterable[Item], given: Iterable[Item]) -> list[str]:
    """What to say where a codebook reverses other items than the fit did."""
    fitted = {item.name: item.reverse for item in known}
    other = [item.name for item in given if fitted.get(item.name, item.reverse) != item.reverse]
    if not other:
        return []
    return [
        f"The codebook and the model disagree about the direction of {listed(other)}. The codebook is "
        "followed; if that is wrong, correct its column 'direction', or leave the codebook out."
    ]


def known_items(model: ICQF | LongitudinalICQF, given: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the model's items: ranges from the model, the rest from the codebook given or stored."""
    names = (Item(str(name)) for name in model.item_range_.index)
    return described(model, StoredCodebook((*names, *model.codebook_.items, *given))).items


def require_model_columns(table: Table, names: Sequence[str], kind: str) -> None:
    """Refuse a table that lacks columns of a model."""
    absent = [name for name in names if name not in table.frame.columns]
    if absent:
        more = f", nor are {len(absent) - 1} more" if len(absent) > 1 else ""
        others = [name for name in table.frame.columns if name not in names]
        raise InputError(
            f"{table.source}: the model's {kind} {absent[0]!r} is no column of the table{more}."
            f"{did_you_mean(absent[0], others)}"
        )
