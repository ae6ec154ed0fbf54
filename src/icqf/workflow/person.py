"""Pages about single persons: a model and a file of answers give one page each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.analyses.norms import Norms
from icqf.analyses.person import Person, UsualAnswers, describe_person
from icqf.data.questionnaire import Questionnaire
from icqf.engines.progress import Progress
from icqf.errors import Advice, InputError, and_more, did_you_mean, listed
from icqf.io.atomic import write_bytes
from icqf.io.readers.questionnaires import read_answers
from icqf.io.readers.table import id_texts, join_notes
from icqf.io.readers.visit_columns import visit_columns, visits_in
from icqf.models.icqf import ICQF
from icqf.report.document import FORMATS, Document
from icqf.report.one_person import person_page
from icqf.report.words import joined
from icqf.workflow.new_answers import ModelReader, files_for_model, given_with, load_model, model_file
from icqf.workflow.options import PersonOptions
from icqf.workflow.results_folder import refuse_file, safe_name, tool_of, write_tool_folder

HTML = ".html"


@dataclass(frozen=True, eq=False)
class Visit:
    """The answers at one visit, and columns beside them: those of norms and of who answered.

    Without visits, it has no name.
    """

    name: str
    answers: Questionnaire
    beside: pd.DataFrame | None

    def only(self, id: str) -> Visit:
        """The visit of one person."""
        rows = np.flatnonzero(self.answers.answers.index == id)
        return Visit(
            self.name, self.answers.take(rows), None if self.beside is None else self.beside.iloc[rows]
        )


@dataclass(frozen=True, eq=False)
class People:
    """A model, the answers of persons at their visits in order of time, and norms if there are any."""

    model: ICQF
    visits: Sequence[Visit]
    norms: Norms | None
    informant: str  # who answered, or the column that says so
    notes: tuple[str, ...]
    files: tuple[Path, ...]

    @cached_property
    def ids(self) -> list[str]:
        """Everybody, in the order of the file."""
        return list(dict.fromkeys(str(id) for visit in self.visits for id in visit.answers.answers.index))

    @cached_property
    def usual(self) -> UsualAnswers | None:
        """What the model's simulated participants answer, simulated once for all persons."""
        return None if self.model.score_distribution_ is None else UsualAnswers.of(self.model)

    def require(self, ids: Sequence[str]) -> None:
        """Refuse ids that are not in the file."""
        strange = [id for id in ids if id not in set(self.ids)]
        if strange:
            source = self.visits[0].answers.source
            raise InputError(
                f"{source}: no participant has the id {strange[0]!r}{and_more(len(strange))}."
                f"{did_you_mean(strange[0], self.ids)}",
                code="no-participant",
                participant=strange[0],
            )

    def page(self, id: str) -> Document:
        """The page about the last visit of one person, with the change since the one before."""
        mine = [visit.only(id) for visit in self.visits if id in visit.answers.answers.index]
        now, before = mine[-1], mine[-2] if len(mine) > 1 else None
        person = describe_person(
            self.model, now.answers, before=None if before is None else before.answers, usual=self.usual
        )
        more: dict[str, Any] = {"visit": now.name, "before": "" if before is None else before.name}
        beside = pd.DataFrame(index=now.answers.answers.index) if now.beside is None else now.beside
        more["informant"] = self.informant
        if self.informant in beside:
            informant = beside[self.informant].iloc[0]
            more["informant"] = "" if pd.isna(informant) else str(informant)
        if self.norms is not None:
            own = beside[list(self.norms.by)]
            more |= {
                "unknown": str(self.norms.reasons(own, 1).iloc[0]),
                "percentiles": _percentiles(person, self.norms, own),
                "reference": self.norms.reference,
                "alike": _alike(own),
            }
        return person_page(person, self.model, **more)


def _percentiles(person: Person, norms: Norms, covariates: pd.DataFrame) -> pd.DataFrame:
    """The percentiles of a person's scores, and of the ends of their likely ranges."""
    known = person.intervals
    ends = [person.scores * np.nan] * 2 if known is None else [known.low.iloc[0], known.high.iloc[0]]
    found = {}
    for name, scores in zip(("percentile", "low", "high"), (person.scores, *ends), strict=True):
        shown = scores.astype(float).round(2)  # a score that is shown as 0 has the percentile of 0
        found[name] = norms.percentiles(shown.to_frame().T.set_axis(covariates.index), covariates).iloc[0]
    return pd.DataFrame(found)


def _alike(covariates: pd.DataFrame) -> str:
    """The covariates of one person in words, such as "age (9.4) and sex (male)"."""
    if covariates.isna().to_numpy().any():
        return ""
    parts = []
    for name, value in covariates.iloc[0].items():
        size = pd.to_numeric(value, errors="coerce")
        parts.append(f"{name} ({value if pd.isna(size) else format(float(size), 'g')})")
    return joined(parts)


def read_people(options: PersonOptions) -> People:
    """Read a model, or that of a results folder, the answers of a file by visit, and norms."""
    place = model_file(options.model)
    model = load_model(place)
    if not isinstance(model, ICQF):
        raise InputError(
            f"{place}: a person’s page needs the model of one questionnaire.",
            code="other-model",
            remedy="Give a model of icqf fit.",
        )
    norms = None if options.norms is None else Norms.load(options.norms).for_model(model)
    files = files_for_model(options.files, {})
    reader = ModelReader(model, files, *given_with(files), () if norms is None else norms.by)
    visits, notes = _visits(reader, options.visit_column, options.informant)
    paths = (place, *files.paths, *(() if options.norms is None else (options.norms,)))
    return People(model, visits, norms, options.informant, reader.notes(join_notes(notes)), paths)


def _visits(
    reader: ModelReader, column: str | None, informant: str
) -> tuple[list[Visit], list[tuple[str, ...]]]:
    """The visits in a file in order of time, and notes; one without a name if ids do not repeat."""
    known, files = reader.model.codebook_.id, reader.files
    table = read_answers(files, [*reader.texts, *([informant] if informant else [])])
    if informant in table.frame.columns:
        reader = replace(reader, extra=tuple(dict.fromkeys([*reader.extra, informant])))
    identity = files.id or (known if known in table.frame.columns else table.id)
    if column is None and not files.visit and identity is not None and identity in table.frame.columns:
        ids = pd.Series(id_texts(table.frame[identity]), dtype=object)
        columns = visit_columns(table.frame, identity, ids) if ids.duplicated().any() else ()
        column = columns[0] if len(columns) == 1 else None
    if column is None:
        read = reader.whole(table)
        return [Visit("", *reader.apart(read))], [read.notes]
    visits, notes = [], []
    for value in visits_in(table, column):
        read = replace(reader, files=replace(files, visit=(*files.visit, (column, value)))).whole(table)
        visits.append(Visit(value, *reader.apart(read)))
        notes.append(tuple(note for note in read.notes if not note.startswith("Kept ")))
    names = listed([visit.name for visit in visits], most=12)
    return visits, [*notes, (f"Visits by {column!r}, in this order: {names}; each page shows the last.",)]


def file_names(ids: Sequence[str]) -> dict[str, str]:
    """A safe file name for every id; no two are alike, whatever the file system."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for id in ids:
        own = id.replace("/", "_").replace(chr(92), "_").strip(" .")
        name = safe_name(f"{own or 'participant'}{HTML}", otherwise="participant")
        name = name if name.endswith(HTML) else f"participant{HTML}"  # nothing of the id was left
        stem, n = name.removesuffix(HTML), 1
        while name.casefold() in taken:
            n += 1
            name = f"{stem}-{n}{HTML}"
        taken.add(name.casefold())
        names[id] = name
    return names


def write_people(
    options: PersonOptions,
    out: Path | None = None,
    *,
    force: bool = False,
    config: Path | None = None,
    begin: Callable[[People], object] | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> tuple[Path, int]:
    """Write the page of one person to a file, or those of several to a folder.

    Returns the file or folder, and the number of pages. Without `out`, one person's file is named after the
    id, and the folder of several is ``persons``. `begin` is called with the `People` that were read.
    """
    if not options.who and not options.all:
        raise InputError(
            "No participant is named.",
            code="not-given",
            remedy=Advice("Give at least one id.", typed="Name one or more with --id, or add --all."),
        )
    started, people = datetime.now(UTC), read_people(options)
    people.require(options.who)
    ids = people.ids if options.all else list(options.who)
    names = file_names(ids)
    if begin is not None:
        begin(people)
    single = len(ids) == 1 and not options.all and (out is None or (out.suffix != "" and not out.is_dir()))
    if single:
        place = out or Path(names[ids[0]])
        _refuse_results(place)
        ending = place.suffix.lower()
        if ending not in FORMATS:
            raise InputError(f"{place}: pages are written as {', '.join(FORMATS)}; use one of these endings.")
        refuse_file(place, force=force, inputs=(*people.files, config))
        content = FORMATS[ending](people.page(ids[0]))
        write_bytes(place, content if isinstance(content, bytes) else content.encode())
        return place, 1
    folder = out or Path("persons")
    _refuse_results(folder)

    def write(place: Path) -> None:
        for at, id in enumerate(ids, start=1):
            (place / names[id]).write_text(people.page(id).as_html(), encoding="utf-8", newline="\n")
            if callback is not None:
                callback(Progress(at, len(ids)))

    shared = {name: value for name, value in options.shareable().items() if name != "who"}
    how: dict[str, Any] = {"options": shared, "started": started, "force": force, "config": config}
    write_tool_folder(folder, "person", write, people.files, {"pages": len(ids)}, people.notes, **how)
    return folder, len(ids)


def _refuse_results(place: Path) -> None:
    """Refuse a place inside a folder of results: those are shared, and a person's page must not be."""
    for folder in {*place.absolute().parents, *place.resolve().parents}:
        tool = tool_of(folder)
        if tool and tool != "person":
            raise InputError(
                f"{place}: the folder {folder.name!r} contains results of icqf {tool}, which may be shared; "
                "a person’s page must not be.",
                code="in-results",
                remedy="Choose another place.",
            )
