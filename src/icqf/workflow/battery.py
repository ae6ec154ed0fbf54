"""The instruments of a battery: one file each in a folder, or one wide table that a codebook divides."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from icqf.data.questionnaire import Questionnaire
from icqf.data.study import Study
from icqf.errors import Advice, InputError, has_note, listed
from icqf.io.codebook import items_and_instruments, read_instruments
from icqf.io.formats import READERS
from icqf.io.readers.questionnaires import NO_IDS, read_answers
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import stream_of, study_from

CODEBOOK = re.compile(r"(?:(?P<stem>.+)[._ -])?codebook", re.IGNORECASE)
PARTICIPANTS = "participants"
_OWN = (".journal", ".csv", ".html", ".md", ".png")  # endings of the files beside the instruments' folders


@dataclass(frozen=True)
class InstrumentFile:
    """One instrument of a battery, as it will be read."""

    name: str
    options: StudyOptions

    def read(self) -> tuple[StudyOptions, Study]:
        """Read the instrument, and return its own options with it; anything wrong is an `InputError`.

        Of several numbers of factors to try, those that it has too few items or participants for are left
        out.
        """
        options, table, entries = self.options, None, None
        if options.codebook is not None and not options.items and options.answers.is_file():
            entries, instruments = items_and_instruments(options.codebook)
            if instruments:
                mine = tuple(item for item, name in instruments.items() if name == self.name)
            else:
                stream = stream_of(options)
                table = None if stream is not None else read_answers(options)
                columns = {*(() if stream is None else stream.names), *(() if table is None else table.frame)}
                mine = tuple(item.name for item in entries if item.name in columns)
            if mine and (instruments or len(mine) < len(entries)):  # others are described as well
                options = replace(options, items=mine)
        study = study_from(options, table=table, entries=entries)
        most = min(study.questionnaire.answers.shape)
        if len(options.n_components) > 1 and options.n_components[0] <= most:
            options = replace(options, n_components=tuple(k for k in options.n_components if k <= most))
        return options, study


def find_instruments(options: StudyOptions) -> list[InstrumentFile]:
    """Find the instruments of a battery."""
    place = options.answers
    if not place.exists():
        raise InputError(f"{place}: there is no such file or folder.")
    return _in_folder(place, options) if place.is_dir() else _in_table(place, options)


def _in_table(path: Path, options: StudyOptions) -> list[InstrumentFile]:
    if options.codebook is None:
        raise InputError(
            f"{path.name}: this is one table, and nothing says which instrument an item belongs to.",
            code="no-instruments",
            remedy=Advice(
                "Add {codebook} with a column 'instrument', or name a folder with one file for each "
                "instrument."
            ),
        )
    members = read_instruments(options.codebook)
    names = list(dict.fromkeys(members.values()))
    if not names:
        raise InputError(
            f"{options.codebook.name}: no item says which instrument it belongs to. Add a column "
            f"'instrument'."
        )
    _refuse_alike(names)
    return [
        InstrumentFile(
            name, replace(options, items=tuple(item for item, other in members.items() if other == name))
        )
        for name in names
    ]


def _in_folder(folder: Path, options: StudyOptions) -> list[InstrumentFile]:
    named = {path.resolve() for path in (options.codebook, options.dictionary, options.participants) if path}
    tables = tuple(READERS)
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (*tables, ".toml")
        and not path.name.startswith((".", "~"))
        and path.resolve() not in named
    )
    codebooks: dict[str, Path] = {}
    participants, answers = options.participants, []
    for path in files:
        match = CODEBOOK.fullmatch(path.stem)
        if match:
            codebooks[(match["stem"] or "").lower()] = path
        elif path.stem.lower() == PARTICIPANTS:
            participants = participants or path
        elif path.suffix.lower() in tables:
            answers.append(path)
    if not answers:
        raise InputError(
            f"{folder}: the folder holds no table of answers. Put one file per instrument into it, such as "
            f"mood.csv; "
            f"the endings that are read are {', '.join(tables)}."
        )
    names = [path.stem for path in answers]
    twice = [path for path in answers if names.count(path.stem) > 1]
    if twice:
        raise InputError(
            f"{folder}: several files are called {twice[0].stem!r} "
            f"({listed(path.name for path in twice)}). Each "
            "instrument has one file; move the others."
        )
    _refuse_alike(names)
    shared = options.codebook or codebooks.get("")
    return [
        InstrumentFile(
            path.stem,
            replace(
                options,
                answers=path,
                codebook=codebooks.get(path.stem.lower(), shared),
                participants=participants if options.confounds or options.groups or options.weights else None,
            ),
        )
        for path in answers
    ]


def require_ids(name: str, questionnaire: Questionnaire) -> None:
    """Refuse an instrument whose participants are only numbered, which cannot be joined to the others."""
    if has_note(questionnaire.notes, NO_IDS):
        raise InputError(
            f"{questionnaire.source}: no column of participant ids is recognised, so instrument {name!r} "
            "cannot be joined to the others.",
            code="no-id-column",
            remedy=Advice("Name the column with {id}; it must be called the same in all files."),
        )


def folder_name(instrument: str) -> str:
    """The folder of an instrument's results: its name, with what a file system may refuse replaced."""
    return re.sub(r"[^\w.-]+", "_", instrument).strip("._") or "instrument"


def _refuse_alike(names: list[str]) -> None:
    """Refuse instruments whose folders of results would be the same, capital letters aside."""
    folders = [folder_name(name).lower() for name in names]
    for name, folder in zip(names, folders, strict=True):
        alike = [other for other, its in zip(names, folders, strict=True) if its == folder and other != name]
        if alike:
            raise InputError(
                f"The instruments {name!r} and {alike[0]!r} would share the folder {folder!r}; rename one "
                f"of them."
            )
        if folder in ("summary", "meta") or folder.endswith(_OWN):
            raise InputError(
                f"An instrument cannot be called {name!r}, which is a file of the results; rename it."
            )
