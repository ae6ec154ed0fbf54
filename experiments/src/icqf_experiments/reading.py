"""Are public files read as a careful colleague would, when nobody says what their columns are?"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from icqf.data.direction import find_reversed
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, listed
from icqf.io.codebook import suggest_codebook, write_codebook
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.models import ICQFCV
from icqf.models.icqf import ICQF
from icqf.report.blocks import Bullets, Grid, Prose, Section, Span
from icqf.workflow.evaluation import Design, linked, prose, results_page
from icqf_experiments.novice import NoviceFile

# What the program read before it knew two more rules, so that the last three files are not quite unseen.
FIRST_READING = """At the first reading, HELP's column of the drug of choice was taken as an item, six
    other columns of gss_spending and one of gss_abortion were too, and the column pid of the latter
    passed for ids. Two rules were then added: columns with a scale of their own beside a questionnaire
    are left out, and a column of few values holds no ids. Nothing was changed for ESS10NO, whose three
    questions have fewer columns of their own kind than its other answers have."""
STRONGEST = 5
MOST_MISSES = 8


@dataclass(frozen=True, eq=False)
class FileReading:
    """What became of one file.

    Attributes
    ----------
    file : NoviceFile
    study, keyed : Questionnaire
        What was read, without and with the keying assistant.
    steps : tuple of str
        What the program asked for on the way, and was given.
    columns : int
        Columns of the file.
    """

    file: NoviceFile
    study: Questionnaire
    keyed: Questionnaire
    steps: tuple[str, ...]
    columns: int

    @property
    def taken(self) -> tuple[str, ...]:
        """The items taken."""
        return tuple(item.name for item in self.study.items)

    @property
    def reversed_items(self) -> tuple[str, ...]:
        """The items that the assistant reversed."""
        return tuple(item.name for item in self.keyed.items if item.reverse)

    @property
    def ranges(self) -> dict[tuple[float, float], int]:
        """How many of the true items were given which range."""
        table = self.study.ranges()
        there = table.loc[[name for name in self.file.items if name in table.index]]
        pairs = [(float(low), float(high)) for low, high in there.to_numpy()]
        return {pair: pairs.count(pair) for pair in dict.fromkeys(pairs)}


def read_as_a_newcomer(file: NoviceFile) -> FileReading:
    """Read a file without codebook, doing what the program asks for where it asks."""
    table = file.table()
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"{file.name}.csv"
        table.to_csv(path, index=False)
        asked: dict[str, Any] = {"path": path}
        steps: list[str] = []
        for _ in range(4):
            try:
                study = read_questionnaire(**asked)
                break
            except InputError as error:
                asked, step = _answered(error, asked)
                steps.append(step)
        else:
            raise InputError(f"{file.name}: the messages did not lead to a fit.")
        keyed = read_questionnaire(**asked, reverse=["auto"])
    return FileReading(file, study, keyed, tuple(steps), table.shape[1])


def _answered(error: InputError, asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Do what a message asks for."""
    if error.code == "text-answers" and "codebook" not in asked:
        path = asked["path"].with_name("items.csv")
        write_codebook(suggest_codebook(read_table(asked["path"])).items, path)
        return {**asked, "codebook": path}, "the codebook that `icqf codebook` proposes"
    if error.code == "duplicate-id":
        # Rows that differ in nothing but the occasion are not what these files hold: number them.
        frame = pd.read_csv(asked["path"], low_memory=False)
        name = re.search(r"in column '([^']+)'", str(error))
        if name is not None:
            frame.drop(columns=name[1]).to_csv(asked["path"], index=False)
            return asked, f"the column {name[1]} deleted, as its ids repeat"
    if error.code == "suspicious-code" and "value" in error.fields:
        codes = [*asked.get("missing_codes", []), error.fields["value"]]
        return {**asked, "missing_codes": codes}, f"--missing-codes {error.fields['value']:g}"
    raise error


@dataclass(frozen=True)
class FittedReading:
    """A fit of what was read: k by cross-validation, and how many factors are of one published scale."""

    k: int
    clean: int | None


def fitted(study: Questionnaire, file: NoviceFile) -> FittedReading:
    """Choose k, fit, and count the factors whose strongest items come from one published scale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = ICQFCV(ICQF(), random_state=0).fit(study)
    return FittedReading(search.n_components_, _clean(search.best_estimator_, file))


def _clean(model: ICQF, file: NoviceFile) -> int | None:
    if not file.scales:
        return None
    scale_of = {item: scale for scale, items in file.scales.items() for item in items}
    span = model.item_range_["max"] - model.item_range_["min"]
    shares = model.loadings_.div(span, axis=0)
    return sum(
        len({scale_of.get(str(item), "") for item in shares[factor].nlargest(STRONGEST).index}) == 1
        for factor in shares.columns
    )


def reading_page(files: Sequence[NoviceFile], design: Design) -> Path:
    """Read and fit every file; writes the table and the page ``reading.md``."""
    design.out.mkdir(parents=True, exist_ok=True)
    rows, details = [], []
    for file in files:
        reading = read_as_a_newcomer(file)
        plain, keyed = fitted(reading.study, file), fitted(reading.keyed, file)
        rows.append(_row(reading, plain, keyed))
        details.append(_detail(reading))
    table = pd.DataFrame(rows)
    table.to_csv(design.out / "reading.csv", index=False)
    return results_page(
        design,
        "reading",
        "Files without a codebook",
        _setting(),
        [
            Grid("Each file", list(table.columns), table.to_numpy(dtype=str).tolist()),
            prose(FIRST_READING),
            linked("The table", "reading.csv"),
            Section("File by file", [Bullets(details)]),
        ],
    )


def _row(reading: FileReading, plain: FittedReading, keyed: FittedReading) -> dict[str, str]:
    file = reading.file
    right = [name for name in reading.taken if name in set(file.items)]
    wrong = len(reading.taken) - len(right)
    fits = reading.ranges == {(float(a), float(b)): n for (a, b), n in file.ranges.items()}
    key = "no published key"
    if file.reversed_items is not None:
        hit = set(reading.reversed_items) & set(file.reversed_items)
        key = f"{len(hit)} of {len(file.reversed_items)}"
        wrongly = len(reading.reversed_items) - len(hit)
        key += f", {wrongly} wrongly" if wrongly else ""
    return {
        "file": file.title,
        "columns": str(reading.columns),
        "items taken": f"{len(right)} of {len(file.items)}" + (f", {wrong} others" if wrong else ""),
        "ranges": "right" if fits else listed(_range_words(reading.ranges), most=4),
        "reversed items found": key,
        "factors, as it stands": _factors(plain),
        "factors, --reverse auto": _factors(keyed),
    }


def _factors(fit: FittedReading) -> str:
    return str(fit.k) if fit.clean is None else f"{fit.k} ({fit.clean} of one scale)"


def _range_words(ranges: dict[tuple[float, float], int]) -> Iterable[str]:
    return (f"{low:g} to {high:g} for {n}" for (low, high), n in ranges.items())


def _detail(reading: FileReading) -> Prose:
    file = reading.file
    missed = [name for name in file.items if name not in set(reading.taken)]
    others = [name for name in reading.taken if name not in set(file.items)]
    sentences = [
        f"Given on request: {listed(reading.steps)}." if reading.steps else "Read at once.",
        f"Items missed: {listed(missed, most=MOST_MISSES)}." if missed else "",
        f"Taken as items, though they are none: {listed(others, most=MOST_MISSES)}." if others else "",
    ]
    if file.reversed_items is not None:
        wrongly = sorted(set(reading.reversed_items) - set(file.reversed_items))
        unseen = sorted(set(file.reversed_items) - set(reading.reversed_items))
        sentences += [
            f"Reversed wrongly: {listed(wrongly, most=MOST_MISSES)}." if wrongly else "",
            f"Reversed items not found: {listed(unseen, most=MOST_MISSES)}." if unseen else "",
        ]
    found = find_reversed(reading.study, resamples=0)
    sentences += [ends.sentence for ends in found.ends]
    return Prose([Span(f"{file.title}.", "strong"), " " + " ".join(filter(None, sentences))])


def _setting() -> str:
    return """Each collection is written as the CSV file that a newcomer would have, with every column it
    comes with, and read without a codebook; where the program asks for something, it is given. The number of
    factors is chosen by cross-validation (lowest error), with the items as they stand and with --reverse
    auto; a factor is of one scale when its five strongest items are. The last three collections were chosen
    by their descriptions before their answers were looked at."""
