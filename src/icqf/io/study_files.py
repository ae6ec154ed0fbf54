"""A study's files and the roles of their columns: one record for every command, the app and Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from icqf.data.settings import OneOf, Settings, codes_of, file, one_text, option, parts_of, texts, visit_pairs
from icqf.errors import InputError
from icqf.io.dictionary_formats import dictionary_at

ROW_NAMES = "rowname"  # what a first column without a name is called, as in R's tibble
FILES = ("answers", "codebook", "dictionary", "participants")
DOUBLED = ("first", "last", "leave-out")
LEAVE_OUT, KEEP = WITHOUT_ID = ("leave-out", "keep")
MISSING_ANSWER, LOWEST = NOT_ASKED = ("missing", "lowest")
AND = " + "  # between the columns of a compound id
_NAMES = ("confounds", "items", "subscales", "reverse")


def id_name(value: Any) -> str:
    """The name of a column of ids, or of several that are joined; an empty text means row names."""
    parts = [ROW_NAMES if part == "" else one_text(part) for part in parts_of(value)]
    if not parts:
        raise ValueError("a name, or several")
    return AND.join(dict.fromkeys(parts))


def long_columns(value: Any) -> tuple[str, ...]:
    """The names of the columns of items and of answers, or ``("no",)``."""
    names = texts(value) if value else ()
    if names and names != ("no",) and len(names) != 2:
        raise ValueError("the columns of items and of answers, as in item answer, or no")
    return names


def row_number(value: Any) -> int:
    """The number of a row, counted from 1."""
    if isinstance(value, bool) or not str(value).strip().isdecimal() or int(value) < 1:
        raise ValueError("a whole number of at least 1")
    return int(value)


@dataclass(frozen=True)
class StudyFiles(Settings):
    """A study's files, and the roles of their columns.

    Parameters
    ----------
    answers : path
        CSV, TSV, Excel, Parquet, Arrow (Feather), SPSS, Stata or SAS file.
    codebook : path, optional
        Names the items and their ranges. None: the file's own description of its columns, or else every
        column that looks like answers, with observed ranges, as the notes report.
    dictionary : path, optional
        Description of the columns: of REDCap (CSV or project XML), NDA, ABCD or LORIS, a BIDS sidecar (JSON),
        a ReproSchema activity or protocol (a file or its folder), or a codebook of openpsychometrics.org
        (text). One that is given as `codebook` becomes the dictionary.
    participants : path, optional
        Table with confounds, groups or weights by participant id, if `answers` lacks them.
    about : path, optional
        TOML file that describes instrument and sample, with licence and citation (`icqf.data.About`).
    id : str or iterable of str, optional
        Column of participant ids, or several that together are one; an empty text for a first column without
        a name. None: a column with a usual name; without one, participants are numbered.
    confounds : str or iterable of str
        Columns such as age and sex.
    groups : str, optional
        Column of families or sites.
    weights : str, optional
        Column of survey weights.
    items : str or iterable of str
        Names or globs of the items to keep; none: all.
    subscales : str or iterable of str
        Items to keep, by the codebook's subscale.
    missing_codes : iterable of float or str
        Values that mean "no answer" in every item whose declared range does not include them.
    reverse : str or iterable of str
        Names or globs of items to reverse in addition to those that the codebook declares; ``"auto"``
        reverses those that run against the others, and a note names them.
    visit : pair or mapping of column to value, optional
        The visit to keep of a file with several rows per participant, such as ``("wave", "1")``.
    doubled : {"first", "last", "leave-out"}, optional
        Which of several rows of one participant at one visit to use; None refuses them.
    without_id : {"leave-out", "keep"}, optional
        What to do with rows without an id: leave them out, or call them by their row; None refuses them.
    not_asked : {"missing", "lowest"}
        How to count an empty answer to a question that an earlier answer rules out, by the dictionary's
        branching logic: as missing, or as the lowest answer ("no", "never").
    long : pair of str, optional
        Columns of the items and of the answers, if each row is one answer. Empty: recognised by their names;
        ``("no",)``: no row is one answer.
    header_row : int, optional
        Row with the names of the columns, counted from 1, of text and Excel files; None recognises it.
    sheet : str, optional
        Name or number of the sheet of a workbook; None: the first that looks like a table.

    Examples
    --------
    >>> from icqf.io import StudyFiles
    >>> files = StudyFiles("answers.csv", id="pid", confounds=["age", "sex"], visit={"wave": 1})
    >>> files.answers.name, files.confounds, files.visit
    ('answers.csv', ('age', 'sex'), (('wave', '1'),))
    """

    answers: Path = file(
        MISSING, "The table of answers.", argument=True, missing="No file of answers is named."
    )
    codebook: Path | None = file(None, "Codebook of the items: CSV, Excel or TOML; or a dictionary.")
    dictionary: Path | None = file(
        None, "Description of the columns: REDCap, NDA, ABCD, LORIS, BIDS, ReproSchema, openpsychometrics."
    )
    participants: Path | None = file(
        None, "Table with confounds, groups or weights by participant id, where ANSWERS lacks them."
    )
    about: Path | None = file(
        None, "Description of instrument and sample, with licence and citation: TOML.", label="Description"
    )
    id: str | None = option(
        None,
        "Column of participant ids, or several that together are one; '' for a column without a name.",
        take=id_name,
        metavar="COLUMN",
        usual="recognised by name",
        joined=True,
        whole=True,
        label="Participant ids",
    )
    confounds: tuple[str, ...] = option(
        (), "Columns such as age and sex.", take=texts, metavar="COLUMN", label="Confounds"
    )
    groups: str | None = option(
        None,
        "Column of families or sites, which folds never split.",
        take=one_text,
        metavar="COLUMN",
        label="Families or sites, kept together",
    )
    weights: str | None = option(
        None, "Column of survey weights.", take=one_text, metavar="COLUMN", label="Survey weights"
    )
    items: tuple[str, ...] = option((), "Items to keep, by name or pattern such as 'q0*'.", take=texts)
    subscales: tuple[str, ...] = option((), "Items to keep, by the codebook's subscale.", take=texts)
    missing_codes: tuple[float | str, ...] = option(
        (), "Values that mean no answer.", take=codes_of, metavar="VALUE", label="Values that mean no answer"
    )
    reverse: tuple[str, ...] = option(
        (),
        "Items to reverse, by name or pattern; auto: those that run against the others.",
        take=texts,
        metavar="ITEM",
    )
    visit: tuple[tuple[str, str], ...] = option(
        (),
        "Visit to keep of a file with several rows per participant, such as wave=1; may be repeated.",
        take=visit_pairs,
        metavar="COLUMN=VALUE",
        label="Visit to keep, where a participant has several rows",
    )
    doubled: str | None = option(
        None,
        "Which of several rows of one participant at one visit to use.",
        kind=OneOf(DOUBLED),
        usual="none: such rows are refused",
        label="Doubled rows",
    )
    without_id: str | None = option(
        None,
        "What to do with rows that have no id: leave them out, or call them by their row.",
        kind=OneOf(WITHOUT_ID),
        usual="none: such rows are refused",
        label="Rows without an id",
    )
    not_asked: str = option(
        MISSING_ANSWER,
        "Questions ruled out by an earlier answer: missing, or the lowest answer (no, never).",
        kind=OneOf(NOT_ASKED),
        label="Questions that were not asked because of an earlier answer",
    )
    long: tuple[str, ...] = option(
        (),
        "Columns of items and of answers, if each row is one answer; no: it is not.",
        take=long_columns,
        metavar="COLUMN",
        usual="recognised by name",
        label="Columns of items and answers, where each row is one answer",
    )
    header_row: int | None = option(
        None,
        "Row with the names of the columns, of text and Excel files.",
        take=row_number,
        metavar="ROW",
        usual="recognised",
        label="Row with the names of the columns",
    )
    sheet: str | None = option(
        None,
        "Sheet of a workbook, by name or number.",
        take=lambda value: one_text(str(value)),
        metavar="SHEET",
        usual="the first that looks like a table",
        label="Sheet of the workbook",
    )

    def __post_init__(self) -> None:
        values: dict[str, Any] = {name: _each(getattr(self, name)) for name in (*_NAMES, "missing_codes")}
        values |= {"visit": visit_pairs(self.visit), "long": long_columns(self.long)}
        values |= {} if self.id is None else {"id": id_name(self.id)}
        files = {name: getattr(self, name) for name in (*FILES, "about")}
        values |= {name: Path(path) for name, path in files.items() if path is not None}
        values |= _as_dictionary(values) | _of_dataset(self.answers, values, self.about_participants)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file that is read, including a BIDS sidecar."""
        sidecar = None if self.dictionary is not None else sidecar_of(self.answers)
        files = (self.answers, self.codebook, self.dictionary, self.participants, self.about, sidecar)
        return tuple(path for path in files if path is not None)

    @property
    def arrangement(self) -> dict[str, Any]:
        """The options that say how the table of answers is read, apart from the roles of its columns."""
        names = ("dictionary", "id", "visit", "doubled", "without_id", "long", "header_row", "sheet")
        return {name: getattr(self, name) for name in names}

    @property
    def arranged(self) -> bool:
        """Whether the table must be read whole to be arranged: a chosen header, long rows, doubled rows."""
        chosen = (self.header_row, self.sheet, self.doubled, self.without_id, self.long)
        return any(chosen) or AND in (self.id or "")

    @property
    def about_participants(self) -> tuple[str, ...]:
        """The columns that describe participants: confounds, groups and weights."""
        return (*self.confounds, *(name for name in (self.groups, self.weights) if name))


def _as_dictionary(files: Mapping[str, Any]) -> dict[str, Any]:
    """A codebook that is a dictionary of the field, which describes all columns, as the dictionary."""
    kind = dictionary_at(files["codebook"]) if "codebook" in files else None
    if kind is None:
        return {}
    if "dictionary" in files:
        raise InputError(
            f"{files['codebook'].name}: this is {kind.what}, and {files['dictionary'].name} is given as "
            "another one. Give one of the two."
        )
    return {"dictionary": files["codebook"], "codebook": None}


def _of_dataset(answers: Path, files: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """The participants of a BIDS dataset, if something about them is wanted."""
    place = Path(answers).absolute().parent
    table = place.parent / "participants.tsv"
    found = place.name == "phenotype" and "participants" not in files and any(wanted) and table.is_file()
    return {"participants": table} if found else {}


def sidecar_of(path: Path) -> Path | None:
    """The JSON file next to a ``.tsv`` that describes its columns, if there is one."""
    sidecar = path.with_suffix(".json")
    return sidecar if path.suffix.lower() == ".tsv" and sidecar.is_file() else None


def _each(values: str | Iterable[Any] | None) -> tuple[Any, ...]:
    return (values,) if isinstance(values, str) else tuple(values or ())
