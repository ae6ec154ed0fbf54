"""From a study's files to a Questionnaire."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.check import FILLED, IDS
from icqf.data.direction import REVERSED, with_reversed
from icqf.data.questionnaire import Draft, Item, Questionnaire, match_names
from icqf.data.settings import parameter_error
from icqf.errors import Advice, InputError, InputWarning, Note, counted, did_you_mean, listed
from icqf.io.codebook import codebook_and_about, merged
from icqf.io.readers.cells import (
    Fault,
    item_numbers,
    raise_fault,
    text_families,
    without_codes,
    words_fault,
    words_note,
)
from icqf.io.readers.confound_columns import confounds_of
from icqf.io.readers.dictionaries import RULED_OUT
from icqf.io.readers.files import read_table
from icqf.io.readers.long_tables import widened
from icqf.io.readers.table import (
    EMPTY,
    Counts,
    Table,
    Tally,
    id_texts,
    item_columns,
    no_items,
    recognised_id,
    require_column,
)
from icqf.io.readers.visit_columns import keep_visit, once_each, repeated_rows
from icqf.io.study_files import AND, KEEP, LOWEST, StudyFiles
from icqf.screening.columns import LeftOut, sentences

Codebook = Sequence[Item] | str | os.PathLike[str] | None
NO_IDS, NOT_IN_CODEBOOK = "no-ids", "not in the codebook"  # codes of notes


def read_questionnaire(
    path: str | os.PathLike[str] | Table, *, codebook: Codebook = None, **roles: Any
) -> Questionnaire:
    """Read a study's file into a questionnaire whose answers are checked against their ranges.

    Parameters
    ----------
    path : path or Table
        CSV, TSV, Excel, Parquet, Arrow (Feather), SPSS, Stata or SAS file, or a table already read.
    codebook : path or sequence of Item, optional
        Names the items and their ranges. None: the file's own description of its columns, or else every
        column that looks like answers, with observed ranges, as the notes report.
    **roles
        The other files and the roles of columns, as in `icqf.io.StudyFiles`: ``dictionary``,
        ``participants``, ``id``, ``confounds``, ``groups``, ``weights``, ``items``, ``subscales``,
        ``missing_codes``, ``reverse`` and ``visit``.

    Returns
    -------
    Questionnaire

    Raises
    ------
    InputError
        The message names file, row and column.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_questionnaire
    >>> paths = demo_paths()
    >>> demo = read_questionnaire(paths.answers, codebook=paths.codebook, confounds=["age", "sex"])
    >>> demo.answers.shape, list(demo.confounds)
    ((600, 119), ['age', 'sex'])
    """
    return study_table(path, codebook=codebook, **roles).questionnaire()


@dataclass(frozen=True, eq=False)
class StudyTable:
    """The content of a study's files: one visit, with columns added from the table of participants.

    `files` defines the roles of columns, and `entries` are those of the codebook, if there is one.
    """

    table: Table
    files: StudyFiles
    entries: tuple[Item, ...] | None = None

    def draft(self, fault: Fault = raise_fault) -> Draft:
        """The answers before checks; errors are passed to `fault`."""
        return assemble(self.table, self.files, self.entries, fault)

    def questionnaire(self) -> Questionnaire:
        """The answers, checked against their ranges."""
        return Questionnaire(**vars(self.draft()))


def study_table(answers: Any, *, codebook: Codebook = None, **roles: Any) -> StudyTable:
    """Read the files that `read_questionnaire` is given."""
    table = answers if isinstance(answers, Table) else None
    path = Path(answers if table is None else table.source)
    if codebook is None or isinstance(codebook, (str, os.PathLike)):
        book, entries = None if codebook is None else Path(codebook), None
    else:
        book, entries = None, tuple(codebook)
    return read_files(StudyFiles(path, codebook=book, **roles), table=table, entries=entries)


def read_files(
    files: StudyFiles,
    *,
    table: Table | None = None,
    entries: tuple[Item, ...] | None = None,
    text: Iterable[str] = (),
    beside: Iterable[str] = (),
    visits: bool = False,
) -> StudyTable:
    """Read a study's files, except for a `table` or `entries` that are given.

    Columns named in `text` are read as text, like ids and groups; columns `beside` those with roles may also
    come from the table of participants. With `visits`, rows are not made unique here (`once_each`).
    """
    table = keep_visit(read_answers(files, text) if table is None else table, files.visit)
    if not visits:
        table = once_each(table, files.id or table.id, files)
    if files.participants is not None:
        others = read_table(files.participants, text=_texts(files, text))
        others = others if files.id is None else with_joined_id(others, files.id)
        table = joined_by_id(table, others, [*files.about_participants, *beside], id=files.id)
    if entries is None:
        entries, about = codebook_and_about(files)
        table = replace(table, about=table.about.updated(about))
    if files.subscales:
        files = replace(files, items=_with_subscales(files, table, entries), subscales=())
    return StudyTable(table, files, entries)


def read_answers(files: StudyFiles, text: Iterable[str] = ()) -> Table:
    """Read the table of answers, with ids, groups and columns in `text` as text."""
    read = read_table(
        files.answers,
        dictionary=files.dictionary,
        text=_texts(files, text),
        header_row=files.header_row,
        sheet=files.sheet,
    )
    return arranged(read, files, text)


def arranged(table: Table, files: StudyFiles, ids: Iterable[str] = ()) -> Table:
    """Return a table with compound ids joined, and one row per participant or visit if a row is one answer.

    `ids` are further columns that may be compound ids.
    """
    for name in filter(None, (files.id, *ids)):
        table = with_joined_id(table, name)
    return widened(table, files.long, files.id, files.doubled)


def _texts(files: StudyFiles, more: Iterable[str]) -> list[str]:
    names = [name for name in (files.id, files.groups, *more) if name]
    return list(dict.fromkeys(part for name in names for part in (name, *name.split(AND))))


def with_joined_id(table: Table, name: str) -> Table:
    """Return the table with a compound id, named after its columns, as a column."""
    parts = name.split(AND)
    if name in table.frame.columns or len(parts) == 1:
        return table
    if not {*parts} & {*table.frame.columns}:
        return table
    for part in parts:
        require_column(table, part, "the id")
    cells = [id_texts(table.frame[part]) for part in parts]
    joined = ["-".join(each) if all(each) else None for each in zip(*cells, strict=True)]
    frame = table.frame.copy(deep=False)
    frame.insert(0, name, pd.Series(joined, dtype=object, index=frame.index))
    structural = None if table.structural is None else table.structural.assign(**{name: False})
    return replace(table, frame=frame, id=name, structural=structural)


def _with_subscales(files: StudyFiles, table: Table, entries: tuple[Item, ...] | None) -> tuple[str, ...]:
    """The names and globs of the items to keep, including those of the chosen subscales."""
    known = table.items if entries is None else entries
    scales = {item.subscale for item in known if item.subscale}
    if not scales:
        source = table.source if files.codebook is None else files.codebook.name
        raise InputError(f"{source}: no item has a subscale, so items cannot be selected by subscale.")
    for name in files.subscales:
        if name not in scales:
            raise InputError(
                f"There is no subscale {name!r}.{did_you_mean(name, scales)} The codebook has "
                f"{listed(sorted(scales), most=12)}."
            )
    return (*files.items, *(item.name for item in known if item.subscale in files.subscales))


def assemble(
    table: Table, files: StudyFiles, entries: tuple[Item, ...] | None = None, fault: Fault = raise_fault
) -> Draft:
    """Combine ids, items, confounds and missing codes; errors are passed to `fault`."""
    id, groups, weights = files.id, files.groups, files.weights
    confounds, items, codes = list(files.confounds), files.items, files.missing_codes
    columns = ((id, "the id"), (groups, "the group"), (weights, "the weight"))
    for name, role in (*columns, *((name, "a confound") for name in confounds)):
        if name is not None:
            require_column(table, name, role)
    identity = id or table.id
    _warn_identifying(table, confounds)
    for name in confounds:
        if name == identity or recognised_id([name]) is not None:
            raise InputError(
                f"{table.source}: the column {name!r} holds participant ids, so it cannot be a confound.",
                code="id-confound",
                column=name,
            )
    table, dropped = _without_empty_rows(table, identity)
    index, id_notes = _ids(table, identity, fault, keep=files.without_id == KEEP)
    roles = dict.fromkeys((identity or "").split(AND), "id") | dict.fromkeys(confounds, "confound")
    roles |= {name: role for name, role in ((weights, "weight"), (groups, "group"), (identity, "id")) if name}
    chosen, left_out = _choose(table, entries, roles, items, fault)
    word_notes: list[str] = []
    if entries is None and not items:
        left_out, word_notes = _answers_in_words(table, left_out, fault)
    others = (column for column in left_out if column.name not in roles and column.reason != "words")
    item_notes = [*sentences(others), *word_notes]
    values, chosen, number_notes = item_numbers(table, chosen, codes, fault, codebook=entries is not None)
    chosen, code_notes = without_codes(values, chosen, codes)
    answers = pd.DataFrame(values, index=index, columns=[item.name for item in chosen], copy=False)
    confound_table, confound_entries, confound_notes = confounds_of(table, confounds, entries)
    structural = (
        None
        if table.structural is None
        else table.structural[[item.name for item in chosen]].set_axis(index, axis=0)
    )
    not_asked = None if structural is None else structural.astype(bool) & answers.isna()
    notes = (*table.notes, *dropped, *id_notes, *item_notes, *number_notes, *code_notes, *confound_notes)
    draft = Draft(
        answers=answers,
        items=chosen,
        confounds=confound_table.set_axis(index, axis=0) if confounds else None,
        groups=None
        if groups is None
        else pd.Series(table.frame[groups].to_numpy(), index=index, name=groups),
        weights=None if weights is None else _weights(table, weights, entries, index),
        notes=notes,
        structural=not_asked,
        source=table.source,
        file_rows=table.rows,
        left_out=left_out,
        confound_entries=confound_entries,
        file_ranges=_declared_by_file(table, chosen, entries),
        about=table.about,
    )
    draft = replace(draft, notes=(*notes, *_range_notes(draft)))
    draft = with_reversed(draft, files.reverse)
    return draft if files.not_asked != LOWEST else _with_lowest(draft, structural)


def _warn_identifying(table: Table, confounds: Iterable[str]) -> None:
    marked = [name for name in confounds if name in table.identifying]
    if marked:
        verb = "is" if len(marked) == 1 else "are"
        warnings.warn(
            InputWarning(
                f"{table.source}: {listed(marked)} {verb} marked as identifying participants in the "
                "dictionary, and categories of confounds are stored in the model file.",
                code="identifying-confound",
                column=marked[0],
                remedy="Leave it out, or use a coarser variable, such as age in years.",
            ),
            stacklevel=2,
        )


def _with_lowest(draft: Draft, codes: pd.DataFrame | None) -> Draft:
    """Fill in the lowest answer to questions that an earlier answer rules out; `codes` as in `Table`."""
    if codes is None or draft.structural is None:
        raise parameter_error(
            "not_asked",
            " says how to count questions that were not asked, but no dictionary says which ones these are; "
            "give one, or leave it out.",
        )
    ruled_out = (codes == RULED_OUT) & draft.structural
    ends = draft.ranges()
    lowest = {item.name: ends.loc[item.name, "max" if item.reverse else "min"] for item in draft.items}
    count, left = int(ruled_out.to_numpy().sum()), int((draft.structural & ~ruled_out).to_numpy().sum())
    text = f"{counted(count, 'answer')} that {'was' if count == 1 else 'were'} not asked for, as an earlier "
    text += "answer rules the question out, counted as the lowest answer."
    if left:
        text += f" {left} more stay missing, as the earlier question was not answered."
    return replace(
        draft,
        answers=draft.answers.mask(ruled_out, pd.Series(lowest), axis=1),
        structural=draft.structural & ~ruled_out,
        notes=(*draft.notes, Note(FILLED, text)),
    )


def _declared_by_file(
    table: Table, chosen: Iterable[Item], entries: tuple[Item, ...] | None
) -> tuple[str, ...]:
    """The items whose range comes from the file's own description, not from a codebook."""
    own = {item.name for item in entries or () if item.declared or item.labels}
    described = table.described
    return tuple(
        item.name
        for item in chosen
        if item.declared and item.name not in own and item.name in described and described[item.name].declared
    )


def _range_notes(draft: Draft) -> list[str]:
    """Notes on observed ranges and reversed items."""
    notes: list[str] = (
        [] if draft.families is None or not draft.families.families else [draft.families.sentence]
    )
    reverse_keyed = [item.name for item in draft.items if item.reverse]
    if reverse_keyed:
        notes.append(Note(REVERSED, f"Reversed because they are reverse-keyed: {listed(reverse_keyed)}."))
    return notes


def _weights(table: Table, name: str, entries: tuple[Item, ...] | None, index: pd.Index) -> pd.Series:
    """Return the survey weights, which must be numbers of at least 0."""
    column = confounds_of(table, [name], entries)[0][name]
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        cell = column.iloc[bad[0]]
        what = "is missing" if pd.isna(cell) else f"is {cell!r}"
        more = f" (and for {bad.size - 1} more)" if bad.size > 1 else ""
        raise InputError(
            f"{table.source}: the weight in column {name!r} {what} for participant "
            f"{str(index[bad[0]])!r}{more}. Weights must be numbers of at least 0.",
            code="weight",
            column=name,
            participant=str(index[bad[0]]),
        )
    return pd.Series(values, index=index, name=name)


def _without_empty_rows(table: Table, identity: str | None) -> tuple[Table, list[str]]:
    if identity is not None and table.frame[identity].notna().all():
        return table, []
    empty = table.frame.isna().all(axis=1).to_numpy()
    if not empty.any():
        return table, []
    first = int(table.rows[int(np.flatnonzero(empty)[0])])
    return table.take(~empty), [Tally((EMPTY,), {(first,): int(empty.sum())}, empty_words)]


def empty_words(counts: Counts) -> str:
    """Return the note on empty rows."""
    (first,) = next(iter(counts))
    return f"Left out {counted(sum(counts.values()), 'empty row')} (the first is row {first})."


def _ids(
    table: Table, identity: str | None, fault: Fault, *, keep: bool = False
) -> tuple[pd.Index, list[str]]:
    """Return the ids and notes; `keep` calls rows without one by their number."""
    if identity is None:
        numbers = range(table.first, table.first + len(table.frame))
        numbered = pd.Index([str(i) for i in numbers], name="participant")
        text = "No id column was named or recognised: participants are numbered from 1 in file order."
        return numbered, [Note(NO_IDS, text)]
    texts: pd.Series = pd.Series(id_texts(table.frame[identity]), dtype=object)
    blank = np.flatnonzero(texts == "")
    notes: list[str] = []
    if keep and blank.size:
        called = f"row {table.rows[blank[0]]}"
        notes.append(f"{counted(blank.size, 'row')} without an id called by the row: {called!r} and so on.")
    elif blank.size:
        row = table.rows[blank[0]]
        more = f" (and {blank.size - 1} more)" if blank.size > 1 else ""
        fault(
            InputError(
                f"{table.source}: row {row}{more} has no id in column {identity!r}.",
                code="missing-id",
                remedy=Advice(
                    "Fill it in, or add {without_id=}; 'keep' calls rows by their number.",
                    without_id="leave-out",
                ),
                row=int(row),
            )
        )
    if blank.size:
        texts.iloc[blank] = [f"row {table.rows[i]}" for i in blank]
    again = np.flatnonzero(texts.duplicated())
    if again.size:
        fault(repeated_rows(table, identity, texts))
        texts.iloc[again] = [f"{texts.iloc[i]} (row {table.rows[i]})" for i in again]
    if table.id == identity:
        notes.append(Note(IDS, f"Column {identity!r} holds the participant ids."))
    return pd.Index(texts, name=identity), notes


def _choose(
    table: Table,
    entries: tuple[Item, ...] | None,
    roles: Mapping[str, str],
    wanted: Sequence[str],
    fault: Fault,
) -> tuple[tuple[Item, ...], tuple[LeftOut, ...]]:
    """Return the items to read with all that is known about them, and the other columns with reasons.

    Columns named by the user or the codebook are items; only otherwise are columns screened.
    """
    described = table.described
    columns = [str(name) for name in table.frame.columns]
    for name in wanted:
        if name in roles:
            raise InputError(
                f"{table.source}: the column {name!r} is named as an item and as id, confound, "
                "group or weight. Choose one."
            )
    reason = {name: LeftOut(name, role) for name, role in roles.items()}
    if entries is not None:
        known = [merged(item, described.get(item.name)) for item in entries if item.name not in roles]
        names = [item.name for item in known]
        kept = set(match_names(wanted, names, table.source) if wanted else names)
        for item in known:
            if item.name in kept and item.name not in columns:
                hint = did_you_mean(item.name, [name for name in columns if name not in set(names)])
                fault(
                    InputError(
                        f"{table.source}: the codebook's item {item.name!r} is not a column of the "
                        f"table.{hint}",
                        code="missing-column",
                        item=item.name,
                    )
                )
        chosen = [item for item in known if item.name in kept and item.name in columns]
        rest = NOT_IN_CODEBOOK
        reason |= {name: LeftOut(name, "not selected") for name in names if name not in kept}
    elif wanted:
        free = [name for name in columns if name not in roles]
        names = match_names(wanted, free, table.source, rather=table.candidates or ())
        chosen, rest = [described.get(name, Item(name)) for name in names], "not selected"
    else:
        recognised = item_columns(table, roles)
        chosen, rest = [described.get(name, Item(name)) for name in recognised.items], ""
        reason |= {column.name: column for column in recognised.left_out}
    if not chosen:
        not_text = {name for name, column in reason.items() if column.reason != "text"}
        for family in text_families(table, leave_out=not_text):
            raise words_fault(family, table.source, codebook=entries is not None)
        raise no_items(table.source, (column for name, column in reason.items() if name not in roles))
    used = {item.name for item in chosen}
    left_out = (reason.get(name, LeftOut(name, rest)) for name in columns if name not in used)
    return tuple(chosen), tuple(left_out)


def _answers_in_words(
    table: Table, left_out: Sequence[LeftOut], fault: Fault
) -> tuple[tuple[LeftOut, ...], list[str]]:
    """Distinguish answers in words from other text, with notes, or an error if they are the majority."""
    texts = {column.name for column in left_out if column.reason == "text"}
    others = [str(name) for name in table.frame.columns if name not in texts]
    n_items = len(table.frame.columns) - len(left_out)
    in_words: set[str] = set()
    notes = []
    for family in text_families(table, leave_out=others) if texts else ():
        in_words |= set(family.items)
        if len(family.items) > n_items:
            fault(words_fault(family, table.source, codebook=False))
        else:
            notes.append(words_note(family))
    return tuple(replace(each, reason="words") if each.name in in_words else each for each in left_out), notes


def joined_by_id(table: Table, other: Table, columns: Iterable[str], *, id: str | None = None) -> Table:
    """Return the table with columns that it lacks, or that are empty, joined from another by participant id.

    A participant who is not in the other table has empty cells. Of several rows of one, as in an export with
    visits, those with nothing in these columns, and those that say the same, do not count.
    """
    own_columns, others = table.frame.columns, other.frame.columns
    wanted = [
        name
        for name in dict.fromkeys(columns)
        if name not in own_columns or (name in others and table.frame[name].isna().all())
    ]
    if not wanted:
        return table
    known = [name for name in wanted if name in other.frame.columns]
    if len(known) < len(wanted):
        absent = next(name for name in wanted if name not in known)
        choices = [*other.frame.columns, *table.frame.columns]
        raise InputError(
            f"{other.source}: there is no column {absent!r} here, nor in {table.source}."
            f"{did_you_mean(absent, choices)}"
        )
    own, theirs = _id_column(table, id), _id_column(other, id)
    lookup = other.frame.set_axis(_ids_of(other, theirs), axis=0)[known]
    present = lookup.index
    if present.has_duplicates:
        lookup = lookup.dropna(how="all")
        lookup = lookup[~lookup.assign(**{"": lookup.index}).duplicated()]
    again = lookup.index[lookup.index.duplicated() & (lookup.index != "")]
    if len(again):
        raise InputError(
            f"{other.source}: the participant {str(again[0])!r} appears in several rows, which differ in "
            f"{listed(known)}. Keep one row per participant."
        )
    ids = _ids_of(table, own)
    matched = ids.isin(present)
    if not matched.any():
        raise InputError(
            f"{other.source}: none of its participants ({listed(present, most=2)}) is in {table.source} "
            f"({listed(ids, most=2)}). Write the ids the same way in both.",
            code="no-shared-participants",
        )
    lookup = lookup[~lookup.index.duplicated()]
    frame = table.frame.assign(**{name: lookup[name].reindex(ids).to_numpy() for name in known})
    lost = int((~matched).sum())
    if lost:
        warnings.warn(
            InputWarning(
                f"{table.source}: {counted(lost, 'participant')} not found in {other.source}, so "
                f"{listed(known)} {'is' if len(known) == 1 else 'are'} missing for them.",
                code="not-beside",
                number=lost,
            ),
            stacklevel=2,
        )
    note = f"{', '.join(known)} added from {other.source} by participant id."
    items = tuple(item for item in other.items if item.name in known)
    return replace(table, frame=frame, items=(*table.items, *items), notes=(*table.notes, note))


def _id_column(table: Table, id: str | None) -> str:
    if id is not None and id in table.frame.columns:
        return id
    if table.id is None:
        raise InputError(
            f"{table.source}: no column of participant ids was recognised, so tables cannot be joined.",
            code="no-id-column",
            remedy=Advice("Name the column with {id}."),
        )
    require_column(table, table.id, "the id")
    return table.id


def _ids_of(table: Table, column: str) -> pd.Index:
    return pd.Index(id_texts(table.frame[column]), dtype=object)
