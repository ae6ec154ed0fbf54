"""All that a run needs to know, as one object that a TOML file can hold.

Nothing heavy is imported here: the command line shows these defaults in its help.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import tomli_w

from icqf.data.parameters import (
    PARAMETERS,
    Flag,
    Kind,
    Number,
    OneOf,
    check_parameter,
    parameter_error,
    visit_pairs,
)
from icqf.errors import InputError, did_you_mean, short
from icqf.io.formats import WRITABLE

MOST_FACTORS = 1000
ITEM_WEIGHTS = ("range", "variance", "none")  # TOML has no None


@dataclass(frozen=True)
class StudyOptions:
    """The files of a study, the roles of their columns, and how to factorize.

    Parameters
    ----------
    answers : Path
        The table of answers.
    codebook, dictionary : Path or None
        The codebook, and a REDCap data dictionary or BIDS sidecar.
    participants : Path or None
        A table with one row per participant, from which confounds, groups and weights are taken by
        participant id where the table of answers does not have them.
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
    reverse : tuple of str
        Items to reverse besides those of the codebook, by name or glob; "auto" reverses those that run
        against the others.
    visit : tuple of (column, value)
        The visit to keep of a file with several rows per participant.
    n_components : tuple of int
        Candidates for the number of factors; empty lets the program find them.
    beta : tuple of float
        Candidates for the penalty; empty tries the usual ones, and stronger ones while the strongest is best.
    rule, n_splits, n_repeats, thorough
        How cross-validation chooses; not used when one candidate is given for both.
    n_meta, meta_beta
        Candidates for the number of meta-factors of a battery, and for their penalty.
    item_weight : {"range", "variance", "none"}
        How items of different ranges count beside each other.
    intercept, missing_confounds, smallest_category, n_init, penalty, tol, max_iter
        As in `icqf.ICQF`.
    seed : int
        The seed of everything random.
    jobs : int
        Processes for cross-validation.
    engine : {"local", "dask", "torch"}
        Where the iterations run; see `icqf.ICQF`.
    scheduler : str, optional
        The address of a Dask cluster's scheduler, such as ``"tcp://10.0.0.5:8786"``, for the engine "dask".
    format : {"csv", "parquet", "xlsx", "sav"}
        Format of the tables that are written.
    consensus : bool
        Whether the loadings are averaged over fits to resampled participants; see `icqf.consensus`.
    report : bool
        Whether a report is written.
    figures : bool
        Whether the report's figures and tables are also written as files of their own.
    all_rules : bool
        Whether the rules of factor analysis for the number of factors are run and shown as well.
    names : tuple of str
        Names of the factors, in their order; empty leaves them numbered.
    bootstrap : int
        Resamples of the participants behind the report's intervals; 0 leaves them out.
    with_participants : bool
        Whether the participants' scores are part of the report.

    Examples
    --------
    >>> from icqf.workflow import StudyOptions
    >>> options = StudyOptions.of({"answers": "answers.csv", "n_components": "2-4", "beta": 0.1})
    >>> options.n_components, options.beta, options.searches
    ((2, 3, 4), (0.1,), True)
    """

    answers: Path
    codebook: Path | None = None
    dictionary: Path | None = None
    participants: Path | None = None
    id: str | None = None
    confounds: tuple[str, ...] = ()
    confound_ranges: tuple[tuple[str, float, float], ...] = ()
    groups: str | None = None
    weights: str | None = None
    items: tuple[str, ...] = ()
    subscales: tuple[str, ...] = ()
    missing_codes: tuple[float | str, ...] = ()
    reverse: tuple[str, ...] = ()
    visit: tuple[tuple[str, str], ...] = ()
    n_components: tuple[int, ...] = ()
    beta: tuple[float, ...] = ()
    n_meta: tuple[int, ...] = ()
    meta_beta: tuple[float, ...] = ()
    rule: str = "min"
    n_splits: int = 10
    n_repeats: int = 1
    thorough: bool = False
    item_weight: str = "range"
    intercept: bool = True
    missing_confounds: str = "error"
    smallest_category: int = 20
    n_init: int | str = "auto"
    penalty: str = "l1"
    tol: float = 1e-3
    max_iter: int = 500
    seed: int = 0
    jobs: int = 1
    engine: str = "local"
    scheduler: str | None = None
    consensus: bool = False
    format: str = "csv"
    report: bool = True
    figures: bool = True
    all_rules: bool = False
    names: tuple[str, ...] = ()
    bootstrap: int = 100
    with_participants: bool = False

    @property
    def searches(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return len(self.n_components) != 1 or len(self.beta) != 1

    @property
    def model_parameters(self) -> dict[str, Any]:
        """The parameters of `icqf.ICQF`, other than k and β and those that the data give."""
        return {
            "confound_ranges": {name: (low, high) for name, low, high in self.confound_ranges} or None,
            "item_weight": None if self.item_weight == "none" else self.item_weight,
            "intercept": self.intercept,
            "n_init": self.n_init,
            "penalty": self.penalty,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "missing_confounds": self.missing_confounds,
            "smallest_category": self.smallest_category,
        }

    @classmethod
    def kinds(cls) -> Mapping[str, Kind]:
        """What further options may be, by name; for options of a command of its own."""
        return {}

    @classmethod
    def takers(cls) -> Mapping[str, Callable[[Any], Any]]:
        """How further options that are more than one checked value are taken, by name."""
        return {}

    @classmethod
    def of(cls, values: Mapping[str, Any], *, folder: Path | None = None, where: str = "") -> Self:
        """Make the options from plain values, as they stand in TOML or on a command line.

        Parameters
        ----------
        values : mapping
            Option names and values; a text such as ``"2-16"`` or ``"age=5:21"`` is understood.
        folder : Path, optional
            Where relative paths start; None keeps them as they are.
        where : str
            The file that messages name; empty for none.
        """
        plain: dict[str, Any] = {}
        names = [field.name for field in fields(cls)]
        for name, value in values.items():
            if name not in names:
                fault = InputError(f"There is no option {name!r}.{did_you_mean(name, names)}")
                raise fault.at(where) if where else fault
            try:
                taken = _taken(name, value, {**KINDS, **cls.kinds()}, {**_TAKE, **cls.takers()})
            except InputError as error:
                raise (error.at(where) if where else error) from None
            plain[name] = folder / taken if isinstance(taken, Path) and folder is not None else taken
        if "answers" not in plain:
            raise InputError("No file of answers is named.")
        return cls(**plain)

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return the options that are not None as plain values; paths relative to `folder` when given."""
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Path):
                value = str(value) if folder is None else _relative(value, folder)
            elif field.name == "confound_ranges":
                value = {name: [low, high] for name, low, high in value}
            elif field.name == "visit":
                value = dict(value)
            elif field.name in ("n_components", "beta", "smoothness") and not value:
                value = "auto"
            elif isinstance(value, tuple):
                value = list(value)
            if value is not None and value not in ([], {}):
                plain[field.name] = value
        return plain

    def to_toml(self, *, folder: Path | None = None) -> str:
        """Return the options as the text of a TOML file; paths are written relative to `folder`."""
        return tomli_w.dumps(self.to_dict(folder=folder))


def read_config(path: str | os.PathLike[str], kind: type[StudyOptions] | None = None) -> dict[str, Any]:
    """Read the options in a TOML file, its relative paths counted from the folder the file is in.

    `kind` is that of the command; its options are those that the file may hold.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    except RecursionError:
        raise InputError(f"{path.name}: this is not valid TOML (nested too deeply).") from None
    for name in FILES:
        if isinstance(values.get(name), str):
            try:
                place = os.path.normpath(path.parent / Path(values[name]).expanduser())
            except RuntimeError:
                place = ""
            if not place or "\0" in place:
                raise InputError(
                    f"{path.name}: {name} is {short(values[name])!r}, which is not a path on this "
                    "computer. Write the path of the file."
                )
            values[name] = place
    (kind or StudyOptions).of({"answers": "-", **values}, where=path.name)
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
            raise ValueError("'auto', a number such as 8, or a range such as 2-16")
        low, high = int(span[1]), int(span[2] or span[1])
        if not 1 <= low <= high <= MOST_FACTORS:
            raise ValueError(f"a number between 1 and {MOST_FACTORS}, or a range with the lower end first")
        found.update(range(low, high + 1))
    if not found:
        raise ValueError("'auto', a number such as 8, or a range such as 2-16")
    return tuple(sorted(found))


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a name")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(part) for part in _parts(value)))


def _path(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _number(value: Any) -> float | None:
    """Return a finite number, which the command line gives as text; None for anything else."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if number is not None and math.isfinite(number) else None


def penalties(value: Any, name: str = "beta") -> tuple[float, ...]:
    """Return the strengths of a penalty from ``"auto"`` (none), a number, a text or a list of these.

    Examples
    --------
    >>> penalties("auto"), penalties(["0.5", 0.1])
    ((), (0.1, 0.5))
    """
    found = set()
    if [str(part).strip().lower() for part in _parts(value)] == ["auto"]:
        return ()
    for part in _parts(value):
        number = _number(part)
        given = part if number is None or not isinstance(part, str) else number
        check_parameter(name, given, {name: PARAMETERS["beta"]})
        found.add(float(part))
    if not found:
        raise ValueError("one number or several")
    return tuple(sorted(found))


def _starts(value: Any) -> int | str:
    number = int(value) if isinstance(value, str) and value.strip().isdigit() else value
    check_parameter("n_init", number)
    taken: int | str = number
    return taken


def _codes(value: Any) -> tuple[float | str, ...]:
    codes = [(part, _number(part)) for part in _parts(value)]
    return tuple(dict.fromkeys(_text(part) if number is None else number for part, number in codes))


def _ranges(value: Any) -> tuple[tuple[str, float, float], ...]:
    """``{"age": [5, 21]}``, or a list of texts such as ``"age=5:21"``."""
    if isinstance(value, Mapping):
        pairs = [(str(name), *_parts(ends)) for name, ends in value.items()]
    else:
        pairs = [tuple(re.split(r"[=:]", str(part))) for part in _parts(value)]
    ranges = []
    for name, *ends in pairs:
        numbers = [_number(end) for end in ends]
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            raise ValueError("a name with its lowest and highest value, as in age=5:21")
        if not numbers[0] < numbers[1]:
            raise ValueError(f"such that the range of {name!r} begins with its lower end")
        ranges.append((_text(name), numbers[0], numbers[1]))
    return tuple(ranges)


FILES = ("answers", "codebook", "dictionary", "participants")
KINDS: dict[str, Kind] = PARAMETERS | {
    "item_weight": OneOf(ITEM_WEIGHTS),
    "bootstrap": Number(least=0, whole=True),
    "jobs": Number(least=-1, whole=True),
    "format": OneOf(WRITABLE),
    "consensus": Flag(),
    "report": Flag(),
    "figures": Flag(),
    "all_rules": Flag(),
    "with_participants": Flag(),
}
# Options that are more than one checked value; a text that says what is wanted is what they raise.
_TAKE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(FILES, _path),
    **dict.fromkeys(("id", "groups", "weights", "scheduler"), _text),
    **dict.fromkeys(("confounds", "items", "subscales", "reverse", "names"), _texts),
    "confound_ranges": _ranges,
    "missing_codes": _codes,
    "visit": visit_pairs,
    **dict.fromkeys(("n_components", "n_meta"), counts),
    "beta": penalties,
    "meta_beta": lambda value: penalties(value, "meta_beta"),
    "n_init": _starts,
}


def _taken(
    name: str, value: Any, kinds: Mapping[str, Kind], takers: Mapping[str, Callable[[Any], Any]]
) -> Any:
    """Return an option's value in its own type."""
    if name in takers:
        try:
            return takers[name](value)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            wanted = str(error)
    elif name == "jobs" and value == 0:
        wanted = "a number of processes, or -1 for all processors"
    elif name == "bootstrap" and value == 1:
        wanted = "at least 2 resamples, or 0 for none"
    else:
        check_parameter(name, value, kinds)
        return value
    shown = ", ".join(map(repr, _parts(value)))
    raise parameter_error(name, f" must be {wanted}, not {shown}.", value=value)


def _relative(path: Path, folder: Path) -> str:
    """A path as it is reached from a folder; from outside the home folder, one in it begins with ``~``."""
    path, home = path.absolute(), Path.home()
    if path.is_relative_to(home) and not folder.absolute().is_relative_to(home):
        return (Path("~") / path.relative_to(home)).as_posix()
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return str(path)
