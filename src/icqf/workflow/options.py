"""All that a run needs to know, as one object that a TOML file can hold.

Nothing heavy is imported here: the command line shows these defaults in its help.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from icqf.errors import InputError, did_you_mean

BETAS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.5)
FORMATS = ("csv", "sav", "parquet", "xlsx")
RULES = ("min", "one_se", "stable")
PENALTIES = ("l1", "l2", "l21")
MOST_FACTORS = 1000


@dataclass(frozen=True)
class StudyOptions:
    """The files of a study, the roles of their columns, and how to factorize.

    Parameters
    ----------
    answers : Path
        The table of answers.
    codebook, dictionary : Path or None
        The codebook, and a REDCap data dictionary or BIDS sidecar.
    id, groups, weights : str or None
        Columns of participant ids, of families or sites, and of survey weights.
    confounds : tuple of str
        Columns such as age and sex.
    confound_ranges : tuple of (name, lowest, highest)
        Known ranges of continuous confounds.
    items, subscales : tuple of str
        Items to keep, by name or glob, or by the codebook's subscale; empty keeps all.
    missing_codes : tuple of float or str
        Values that mean "no answer".
    n_components : tuple of int
        Candidates for the number of factors; empty lets the program find them.
    beta : tuple of float
        Candidates for the penalty.
    rule, n_splits, n_repeats
        How cross-validation chooses; not used when one candidate is given for both.
    intercept, missing_confounds, n_init, penalty, tol, max_iter
        As in `icqf.ICQF`.
    seed : int
        The seed of everything random.
    jobs : int
        Processes for cross-validation.
    format : {"csv", "sav", "parquet", "xlsx"}
        Format of the tables that are written.
    report : bool
        Whether a report is written.
    names : tuple of str
        Names of the factors for the report, in their order; empty leaves them numbered.
    bootstrap : int
        Resamples of the participants behind the report's intervals; 0 leaves them out.
    with_participants : bool
        Whether the participants' scores are part of the report.

    Examples
    --------
    >>> from icqf.workflow.options import StudyOptions
    >>> options = StudyOptions.of({"answers": "answers.csv", "n_components": "2-4", "beta": 0.1})
    >>> options.n_components, options.beta, options.searches
    ((2, 3, 4), (0.1,), True)
    """

    answers: Path
    codebook: Path | None = None
    dictionary: Path | None = None
    id: str | None = None
    confounds: tuple[str, ...] = ()
    confound_ranges: tuple[tuple[str, float, float], ...] = ()
    groups: str | None = None
    weights: str | None = None
    items: tuple[str, ...] = ()
    subscales: tuple[str, ...] = ()
    missing_codes: tuple[float | str, ...] = ()
    n_components: tuple[int, ...] = ()
    beta: tuple[float, ...] = BETAS
    rule: str = "min"
    n_splits: int = 10
    n_repeats: int = 1
    intercept: bool = True
    missing_confounds: str = "error"
    n_init: int = 1
    penalty: str = "l1"
    tol: float = 1e-3
    max_iter: int = 500
    seed: int = 0
    jobs: int = 1
    format: str = "csv"
    report: bool = True
    names: tuple[str, ...] = ()
    bootstrap: int = 100
    with_participants: bool = False

    @property
    def searches(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return len(self.n_components) != 1 or len(self.beta) != 1

    @classmethod
    def of(
        cls, values: Mapping[str, Any], *, folder: Path | None = None, where: str = "options"
    ) -> StudyOptions:
        """Make the options from plain values, as they stand in TOML or on a command line.

        Parameters
        ----------
        values : mapping
            Option names and values; a text such as ``"2-16"`` or ``"age=5:21"`` is understood.
        folder : Path, optional
            Where relative paths start; None keeps them as they are.
        where : str
            What the messages name.
        """
        plain: dict[str, Any] = {}
        for name, value in values.items():
            if name not in _TAKE:
                raise InputError(f"{where}: there is no option {name!r}.{did_you_mean(name, _TAKE)}")
            try:
                taken = _TAKE[name](value)
            except (TypeError, ValueError) as error:
                raise InputError(f"{where}: the option {name!r} cannot be {value!r}: {error}.") from None
            if isinstance(taken, Path) and folder is not None:
                taken = folder / taken
            plain[name] = taken
        if "answers" not in plain:
            raise InputError(f"{where}: no file of answers is named.")
        return cls(**plain)

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return the options that differ from None as plain values; paths relative to `folder` when given."""
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Path):
                value = str(value) if folder is None else _relative(value, folder)
            elif field.name == "confound_ranges":
                value = {name: [low, high] for name, low, high in value}
            elif field.name == "n_components" and not value:
                value = "auto"
            elif isinstance(value, tuple):
                value = list(value)
            if value is not None and value not in ([], {}):
                plain[field.name] = value
        return plain

    def to_toml(self, *, folder: Path | None = None) -> str:
        """Return the options as the text of a TOML file; paths are written relative to `folder`."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in self.to_dict(folder=folder).items())


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the options in a TOML file, its relative paths counted from the folder the file is in."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    for name in ("answers", "codebook", "dictionary"):
        if isinstance(values.get(name), str):
            values[name] = str(Path(os.path.normpath(path.parent / values[name])))
    StudyOptions.of({"answers": "-", **values}, where=path.name)
    return values


def counts(value: Any) -> tuple[int, ...]:
    """Return numbers of factors from ``"auto"``, ``8``, ``"2-16"`` or a list of these.

    Examples
    --------
    >>> counts("auto"), counts(8), counts(["2-4", "8"])
    ((), (8,), (2, 3, 4, 8))
    """
    found: set[int] = set()
    parts = _parts(value)
    if [str(part).strip().lower() for part in parts] == ["auto"]:
        return ()
    for part in parts:
        span = re.fullmatch(r"\s*(\d+)\s*(?:(?:-|\.\.|:)\s*(\d+)\s*)?", str(part))
        if isinstance(part, bool) or span is None:
            raise ValueError("give 'auto', a number such as 8, or a range such as 2-16")
        low, high = int(span[1]), int(span[2] or span[1])
        if not 1 <= low <= high <= MOST_FACTORS:
            raise ValueError(f"a number of factors is between 1 and {MOST_FACTORS}, the lower one first")
        found.update(range(low, high + 1))
    if not found:
        raise ValueError("give 'auto', a number such as 8, or a range such as 2-16")
    return tuple(sorted(found))


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("give a name")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(part) for part in _parts(value)))


def _path(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _penalties(value: Any) -> tuple[float, ...]:
    numbers = sorted({_number(part) for part in _parts(value)})
    if not numbers or numbers[0] < 0:
        raise ValueError("give one number or several, none below 0")
    return tuple(numbers)


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number") from None
    if isinstance(value, bool) or not abs(number) < float("inf"):
        raise ValueError(f"{value!r} is not a number")
    return number


def _codes(value: Any) -> tuple[float | str, ...]:
    codes: list[float | str] = []
    for part in _parts(value):
        try:
            codes.append(_number(part))
        except ValueError:
            codes.append(_text(part))
    return tuple(dict.fromkeys(codes))


def _ranges(value: Any) -> tuple[tuple[str, float, float], ...]:
    """``{"age": [5, 21]}``, or a list of texts such as ``"age=5:21"``."""
    if isinstance(value, Mapping):
        pairs = [(str(name), *_parts(ends)) for name, ends in value.items()]
    else:
        pairs = [tuple(re.split(r"[=:]", str(part))) for part in _parts(value)]
    if any(len(pair) != 3 for pair in pairs):
        raise ValueError("give the lowest and the highest value, as in age=5:21")
    ranges = tuple((_text(name), _number(low), _number(high)) for name, low, high in pairs)
    for name, low, high in ranges:
        if not low < high:
            raise ValueError(f"the range of {name!r} must begin with its lower end")
    return ranges


def _whole(least: int) -> Callable[[Any], int]:
    def take(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"give a whole number of at least {least}")
        return value

    return take


def _jobs(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value == 0 or value < -1:
        raise ValueError("give a number of processes, or -1 for all processors")
    return value


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise ValueError("give a number above 0")
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("give true or false")
    return value


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def take(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"choose one of {', '.join(choices)}")
        return str(value)

    return take


_TAKE: dict[str, Callable[[Any], Any]] = {
    "answers": _path,
    "codebook": _path,
    "dictionary": _path,
    "id": _text,
    "confounds": _texts,
    "confound_ranges": _ranges,
    "groups": _text,
    "weights": _text,
    "items": _texts,
    "subscales": _texts,
    "missing_codes": _codes,
    "n_components": counts,
    "beta": _penalties,
    "rule": _one_of(RULES),
    "n_splits": _whole(2),
    "n_repeats": _whole(1),
    "intercept": _flag,
    "missing_confounds": _one_of(("error", "mean")),
    "n_init": _whole(1),
    "penalty": _one_of(PENALTIES),
    "tol": _positive,
    "max_iter": _whole(1),
    "seed": _whole(0),
    "jobs": _jobs,
    "format": _one_of(FORMATS),
    "report": _flag,
    "names": _texts,
    "bootstrap": _whole(0),
    "with_participants": _flag,
}


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return str(path.absolute())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return json.dumps(value)
