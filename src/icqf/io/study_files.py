"""A study's files and the roles of their columns: one record for every command, the app and Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from icqf.data.settings import Settings, codes_of, file, one_text, option, texts, visit_pairs

FILES = ("answers", "codebook", "dictionary", "participants")
_NAMES = ("confounds", "items", "subscales", "reverse")


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
        REDCap data dictionary (CSV) or BIDS sidecar (JSON).
    participants : path, optional
        Table with confounds, groups or weights by participant id, if `answers` lacks them.
    id : str, optional
        Column of participant ids. None: a column with a usual name; without one, participants are numbered.
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
    codebook: Path | None = file(None, "Codebook of the items: CSV, Excel or TOML.")
    dictionary: Path | None = file(None, "REDCap data dictionary (CSV) or BIDS sidecar (JSON).")
    participants: Path | None = file(
        None, "Table with confounds, groups or weights by participant id, where ANSWERS lacks them."
    )
    id: str | None = option(
        None,
        "Column of participant ids.",
        take=one_text,
        metavar="COLUMN",
        usual="recognised by name",
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

    def __post_init__(self) -> None:
        values: dict[str, Any] = {name: _each(getattr(self, name)) for name in (*_NAMES, "missing_codes")}
        values |= {"visit": visit_pairs(self.visit)}
        values |= {name: Path(path) for name in FILES if (path := getattr(self, name)) is not None}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file that is read, including a BIDS sidecar."""
        sidecar = None if self.dictionary is not None else sidecar_of(self.answers)
        files = (self.answers, self.codebook, self.dictionary, self.participants, sidecar)
        return tuple(path for path in files if path is not None)

    @property
    def about_participants(self) -> tuple[str, ...]:
        """The columns that describe participants: confounds, groups and weights."""
        return (*self.confounds, *(name for name in (self.groups, self.weights) if name))


def sidecar_of(path: Path) -> Path | None:
    """The JSON file next to a ``.tsv`` that describes its columns, if there is one."""
    sidecar = path.with_suffix(".json")
    return sidecar if path.suffix.lower() == ".tsv" and sidecar.is_file() else None


def _each(values: str | Iterable[Any] | None) -> tuple[Any, ...]:
    return (values,) if isinstance(values, str) else tuple(values or ())
