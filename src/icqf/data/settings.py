"""Parameters with their limits, and settings as one record for command line, TOML, app and Python.

Nothing heavy is imported here, as the help of the command line needs it.
"""

from __future__ import annotations

import math
import numbers
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w

from icqf.errors import Advice, InputError, did_you_mean
from icqf.registry import Registry

LARGEST = 1e9  # squares of larger parameters overflow single precision
ENGINES = Registry(
    "icqf.engines",
    {
        "local": "icqf.engines.local:LOCAL",
        "dask": "icqf.engines.dask:DASK",
        "torch": "icqf.engines.torch:TORCH",
    },
    "an icqf.engines.base.Engine",
    "icqf.engines.base:Engine",
)
PENALTIES = Registry(
    "icqf.penalties",
    {"l1": "icqf.core.penalties:L1", "l2": "icqf.core.penalties:L2", "l21": "icqf.core.penalties:L21"},
    "a subclass of icqf.core.penalties.Penalty",
    "icqf.core.penalties:Penalty",
)
RULES = Registry(
    "icqf.rules",
    {
        "min": "icqf.models.selection_rules:MIN",
        "one_se": "icqf.models.selection_rules:ONE_SE",
        "stable": "icqf.models.selection_rules:STABLE",
        "replicable": "icqf.models.selection_rules:REPLICABLE",
    },
    "an icqf.models.selection_rules.SelectionRule",
    "icqf.models.selection_rules:SelectionRule",
)
MOST_FACTORS = 1000
# Defaults shown in the help of the command line.
SAMPLE_SIZES = (50, 100, 150, 200, 300, 400, 600, 800, 1200)  # of studies that are planned
TRAINING_SHARES = (0.8, 0.6, 0.4, 0.2)  # training sets, as shares of the development set
FACTORIZATIONS = ("icqf", "l1-nmf", "fa-promax", "fa-promax-same-k")
PREDICTORS = (*FACTORIZATIONS, "subscales", "items")
BETAS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Number:
    """A number of at least `least` or above `above`, at most `most`, or one of the values in `or_else`."""

    least: float | None = None
    above: float | None = None
    most: float = 1e100  # products of larger numbers overflow
    whole: bool = False
    or_else: tuple[Any, ...] = ()

    def complaint(self, value: Any) -> str:
        """Return what is wrong with a value, to follow the parameter's name; or an empty string."""
        if value is None or isinstance(value, str):
            right = value in self.or_else
        else:
            kind = numbers.Integral if self.whole else numbers.Real
            right = isinstance(value, kind) and not isinstance(value, bool) and value <= self.most
            right &= not right or (self.least is None or value >= self.least)
            right &= not right or (self.above is None or value > self.above)
        wanted = "a whole number" if self.whole else "a number"
        limit = f" above {self.above:g}" if self.least is None else f" of at least {self.least:g}"
        if not right and isinstance(value, numbers.Real) and not value <= self.most and value < math.inf:
            limit = f" of at most {self.most if self.whole else format(self.most, 'g')}"
        return "" if right else f" must be {wanted}{limit}, not {value!r}."


@dataclass(frozen=True)
class OneOf:
    """One of a few values, or of the names in a registry."""

    choices: tuple[Any, ...] | Registry

    def complaint(self, value: Any) -> str:
        """Return what is wrong with a value, to follow the parameter's name; or an empty string."""
        if value in self.choices:
            return ""
        return f"={value!r} is not known; choose one of {', '.join(map(repr, self.choices))}."


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def complaint(self, value: Any) -> str:
        """Return what is wrong with a value, to follow the parameter's name; or an empty string."""
        return "" if isinstance(value, bool) else f" must be true or false, not {value!r}."


Kind = Number | OneOf | Flag

ADAPTIVE_WIDTH = 0.3  # of intervals of scores between 0 and 1, at which an adaptive form stops asking

PARAMETERS: dict[str, Kind] = {
    "n_components": Number(least=1, whole=True, or_else=(None,)),
    "beta": Number(least=0.0, most=LARGEST),
    "meta_beta": Number(least=0.0, most=LARGEST),
    "loading_beta": Number(least=0.0, most=LARGEST, or_else=(None,)),
    "smoothness": Number(least=0.0, most=math.inf),
    "item_weight": OneOf(("range", "variance", None)),
    "intercept": Flag(),
    "n_init": Number(least=1, whole=True, or_else=("auto",)),
    "penalty": OneOf(PENALTIES),
    "score_max": Number(above=0.0, most=LARGEST, or_else=(None,)),
    "loading_max": Number(above=0.0, most=LARGEST, or_else=(None, "item_range")),
    "reconstruction_max": OneOf(("item_range", None)),
    "solver": OneOf(("fast", "admm")),
    "engine": OneOf(ENGINES),
    "inner": OneOf(("cd", "fista", "admm", "sweep")),
    "rho": Number(above=0.0, most=LARGEST, or_else=("adaptive",)),
    "tol": Number(above=0.0),
    "stop": OneOf(("certificate", "objective")),
    "max_iter": Number(least=1, whole=True),
    "search": OneOf(("fast", "estimator")),
    "init": OneOf(("nndsvd", "rotated", "random")),
    "missing_confounds": OneOf(("error", "mean")),
    "smallest_category": Number(least=0, whole=True),
    "dtype": OneOf(("auto", "float32", "float64")),
    "rule": OneOf(RULES),
    "n_splits": Number(least=2, whole=True),
    "n_repeats": Number(least=1, whole=True),
    "max_items": Number(least=1, whole=True),
    "correlation": Number(above=0.0, most=1.0),
    "width": Number(above=0.0, most=LARGEST),
    "adaptive_width": Number(above=0.0, most=LARGEST),
    "minutes": Number(above=0.0, most=1e6),
    "max_minutes": Number(above=0.0, most=1e6),
    "thorough": Flag(),
    "n_bands": Number(least=2, most=100, whole=True),
    "n_permutations": Number(least=19, most=1e6, whole=True),
    "n_resamples": Number(least=2, most=1e6, whole=True),
    "seed": Number(least=0, most=2**32 - 1, whole=True),
    "binning": OneOf(("quantile", "width")),
    "within_bin": OneOf(("mean", "first", "last")),
    "weigh_nonresponse": Flag(),
}


Visit = Mapping[str, Any] | Sequence[Any] | str | None


def visit_pairs(visit: Visit) -> tuple[tuple[str, str], ...]:
    """Return the columns and values that define a visit, from a mapping, a pair, or texts like ``wave=1``."""
    if visit is None:
        return ()
    if isinstance(visit, Mapping):
        parts: list[Any] = list(visit.items())
    elif isinstance(visit, (list, tuple)):
        plain = [part for part in visit if not isinstance(part, (list, tuple))]
        parts = [tuple(visit)] if len(visit) == len(plain) == 2 and "=" not in str(visit[0]) else list(visit)
    else:
        parts = [visit]
    pairs: dict[str, str] = {}
    for part in parts:
        paired = isinstance(part, (list, tuple)) and len(part) == 2
        column, *value = part.split("=", 1) if isinstance(part, str) else part if paired else ("",)
        if not value or not str(column).strip():
            raise parameter_error("visit", f" must be a column and its value, as in wave=1, not {part!r}.")
        name, cell = str(column).strip(), value[0]
        if name in pairs:
            raise parameter_error("visit", f" names the column {name!r} twice; choose one visit.")
        whole = isinstance(cell, float) and cell.is_integer()
        pairs[name] = "" if cell is None else str(int(cell) if whole else cell).strip()
    return tuple(pairs.items())


def counts(value: Any) -> tuple[int, ...]:
    """Return numbers of factors from ``"auto"``, ``8``, ``"2-16"`` or a list of these."""
    accepted = "'auto', a number such as 8, or a range such as 2-16"
    numbers: set[int] = set()
    parts = parts_of(value)
    if [str(part).strip().lower() for part in parts] == ["auto"]:
        return ()
    for part in parts:
        span = re.fullmatch(r"\s*(\d+)\s*(?:(?:-|\.\.|:)\s*(\d+)\s*)?", str(part))
        if isinstance(part, bool) or span is None:
            raise ValueError(accepted)
        low, high = int(span[1]), int(span[2] or span[1])
        if not 1 <= low <= high <= MOST_FACTORS:
            raise ValueError(f"a number between 1 and {MOST_FACTORS}, or a range with the lower end first")
        numbers.update(range(low, high + 1))
    if not numbers:
        raise ValueError(accepted)
    return tuple(sorted(numbers))


def counts_by_name(value: Any) -> tuple[Any, ...]:
    """Return numbers of factors as `counts` does, or by instrument: ``{"mood": 2}``, ``"mood=2"``."""
    if isinstance(value, Mapping):
        parts: list[Any] = [f"{name}={given}" for name, given in value.items()]
    else:
        parts = parts_of(value)
    named = [part for part in parts if isinstance(part, str) and "=" in part]
    if not named:
        return counts(value)
    found: dict[str, str] = {}
    for part in named:
        name, _, given = part.rpartition("=")
        counts(given)
        if not name.strip() or name.strip() in found:
            raise ValueError("each instrument once with its number of factors, as in mood=2 sleep=3-5")
        found[name.strip()] = given.strip()
    others = [part for part in parts if part not in named]
    return (*(f"{name}={given}" for name, given in found.items()), *(counts(others) if others else ()))


def counts_of(value: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """The numbers of factors of one instrument, from what `counts_by_name` returned; empty for auto."""
    for part in value:
        if isinstance(part, str) and part.rpartition("=")[0] == name:
            return counts(part.rpartition("=")[2])
    return tuple(part for part in value if not isinstance(part, str))


def parts_of(value: Any) -> list[Any]:
    """Return the values of an option that may have several, as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def one_text(value: Any) -> str:
    """Return a name, which must not be empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a name")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return names, each once."""
    return tuple(dict.fromkeys(one_text(part) for part in parts_of(value)))


def path_of(value: Any) -> Path:
    """Return a path from its text."""
    return value if isinstance(value, Path) else Path(one_text(value))


def number_or_path(value: Any) -> float | Path:
    """Return a number, or else a path."""
    number = _number(value)
    return path_of(value) if number is None else number


def _number(value: Any) -> float | None:
    """Return a finite number, possibly given as text; None for anything else."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if number is not None and math.isfinite(number) else None


def penalties(value: Any, name: str = "beta") -> tuple[float, ...]:
    """Return the strengths of a penalty from ``"auto"`` (none), a number, a text or a list of these."""
    strengths = set()
    if [str(part).strip().lower() for part in parts_of(value)] == ["auto"]:
        return ()
    for part in parts_of(value):
        number = math.inf if str(part).strip().lower() == "inf" else _number(part)
        given = part if number is None or not isinstance(part, str) else number
        check_parameter(name, given, {name: PARAMETERS[name]})
        strengths.add(float(part))
    if not strengths:
        raise ValueError("one number or several")
    return tuple(sorted(strengths))


def number_or_auto(value: Any, name: str) -> int | Literal["auto"]:
    """Return a whole number, or "auto"."""
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    number = int(value) if isinstance(value, str) and value.strip().isdigit() else value
    check_parameter(name, number)
    taken: int = number
    return taken


def codes_of(value: Any) -> tuple[float | str, ...]:
    """Return values that mean "no answer", as numbers where possible."""
    codes = [(part, _number(part)) for part in parts_of(value)]
    return tuple(dict.fromkeys(one_text(part) if number is None else number for part, number in codes))


def ranges_of(value: Any) -> tuple[tuple[str, float, float], ...]:
    """Return ranges from ``{"age": [5, 21]}``, or a list of texts such as ``"age=5:21"``."""
    if isinstance(value, Mapping):
        pairs = [(str(name), *parts_of(ends)) for name, ends in value.items()]
    else:
        pairs = [tuple(re.split(r"[=:]", str(part))) for part in parts_of(value)]
    ranges = []
    for name, *ends in pairs:
        numbers = [_number(end) for end in ends]
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            raise ValueError("a name with its lowest and highest value, as in age=5:21")
        if not numbers[0] < numbers[1]:
            raise ValueError(f"a range of {name!r} with the lower end first")
        ranges.append((one_text(name), numbers[0], numbers[1]))
    return tuple(ranges)


def bins_of(value: Any) -> tuple[Any, ...]:
    """Return bins from ``"auto"``, a number, edges, or visits in their order."""
    parts = [str(part).strip() for part in parts_of(value)]
    if [part.lower() for part in parts] == ["auto"]:
        return ()
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(parts) == 1:
        if not numbers or not numbers[0].is_integer() or numbers[0] < 2:
            raise ValueError("'auto', a number of bins, their edges, or the visits in their order")
        return (int(numbers[0]),)
    return tuple(numbers or parts)


def choices_of(name: str) -> tuple[Any, ...]:
    """Return the values that a parameter may have."""
    kind = PARAMETERS[name]
    return tuple(kind.choices) if isinstance(kind, OneOf) else ()


def check_parameter(name: str, value: Any, kinds: Mapping[str, Kind] = PARAMETERS) -> None:
    """Refuse a value that the parameter of this name cannot have."""
    complaint = kinds[name].complaint(value)
    if complaint:
        raise parameter_error(name, complaint, value=value)


def parameter_error(name: str, complaint: str, **fields: Any) -> InputError:
    """Return the error about a parameter; the complaint follows its name (``--name`` on the command line)."""
    return InputError(name + complaint, code="parameter", name=name, complaint=complaint, **fields)


def check_parameters(model: Any) -> None:
    """Refuse invalid parameters of a model, and warn where ADMM may not converge."""
    from icqf.core.acceleration import SMALLEST_RHO

    for name, value in model.get_params(deep=False).items():
        if name == "dtype":
            check_parameter(name, _dtype_name(value))
        elif name == "item_weight" and not isinstance(value, (str, type(None))):
            continue  # an array, which is checked against the items
        elif name == "engine" and hasattr(value, "participants"):
            continue  # a custom engine
        elif name in PARAMETERS and (name != "init" or isinstance(value, str)):
            check_parameter(name, value)
    if model.solver == "admm" and model.inner != "cd" and PENALTIES.load(model.penalty).rounds > 1:
        raise InputError(f"penalty={model.penalty!r} needs inner='cd', not inner={model.inner!r}.")
    if model.solver == "admm" and model.rho != "adaptive" and model.rho < SMALLEST_RHO:
        warnings.warn(
            f"rho={model.rho:g} is below √2, where ADMM is not known to converge; use rho=3.0.", stacklevel=4
        )


def _dtype_name(dtype: Any) -> Any:
    import numpy as np

    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype


def given_start(init: Any, kept: Any, *shapes: tuple[int, int]) -> tuple[Any, Any]:
    """Check the scores and loadings of a start given as arrays.

    The scores may be those of all participants of the table; only those `kept` are fitted.
    """
    import numpy as np

    wanted = (
        f"init must be a name or two arrays of the shapes {shapes[0]} (scores) and {shapes[1]} (loadings)"
    )
    try:
        scores, loadings = (np.asarray(part, dtype=float) for part in init)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, not {type(init).__name__}.") from None
    if len(scores) == len(kept) and scores.ndim == 2:
        scores = scores[kept]
    if (scores.shape, loadings.shape) != shapes:
        raise InputError(f"{wanted}; it has {scores.shape} and {loadings.shape}.")
    if not all(np.isfinite(array).all() and (array >= 0).all() for array in (scores, loadings)):
        raise InputError("init must not hold negative, infinite or missing numbers.")
    return scores, loadings


@dataclass(frozen=True)
class Option:
    """The declaration of an option for the command line, TOML files, the app's forms and Python.

    `kind` limits its value, or each of `many` values (None: that of the models' parameter of this name);
    `take` converts other values, and its error says what is accepted. `usual` describes the default where the
    value does not; `missing` is the message if an option without a default is not given. A `file` is a path;
    `whole` values may contain commas; several words are `joined` to one value; an `argument` is typed without
    its name.
    """

    help: str = ""
    kind: Kind | None = None
    take: Callable[[Any], Any] | None = None
    metavar: str = ""
    usual: str = ""
    label: str = ""
    missing: str = ""
    many: bool = False
    file: bool = False
    whole: bool = False
    joined: bool = False
    argument: bool = False


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare an option: the field of a record, with its default and help."""
    return field(default=default, metadata={"option": Option(help, **more)})


def file(default: Any, help: str, **more: Any) -> Any:
    """Declare an option that is a file."""
    return option(default, help, take=path_of, file=True, **more)


def like(record: type[Settings], name: str, /, *, default: Any = None, **changes: Any) -> Any:
    """Declare an option as another record does, with `changes`; None keeps its default."""
    (known,) = (each for each in fields(record) if each.name == name)
    return field(
        default=known.default if default is None else default,
        metadata={"option": replace(options_in(record)[name], **changes)},
    )


def options_in(kind: type[Settings]) -> dict[str, Option]:
    """Return the options of a record by their names."""
    return {each.name: each.metadata["option"] for each in fields(kind)}


@dataclass(frozen=True)
class Settings:
    """The settings of a command: one record for the command line, TOML, the app's forms and Python."""

    @classmethod
    def of(cls, values: Mapping[str, Any], *, folder: Path | None = None, where: str = "") -> Self:
        """Make the options from plain values, as in TOML or on a command line, such as ``"2-16"``.

        Relative paths start at `folder`, if it is given; `where` is the file that messages name.
        """
        plain: dict[str, Any] = {}
        known = options_in(cls)
        for name, value in values.items():
            if name not in known:
                fault = InputError(f"There is no option {name!r}.{did_you_mean(name, known)}")
                raise fault.at(where) if where else fault
            try:
                converted = _convert(name, value, known[name])
            except InputError as error:
                raise (error.at(where) if where else error) from None
            is_path = isinstance(converted, Path) and folder is not None
            plain[name] = folder / converted if is_path else converted
        for each in fields(cls):
            if each.default is MISSING and each.name not in plain:
                remedy = "" if known[each.name].argument else Advice(f"Add {{{each.name}}}.")
                raise InputError(known[each.name].missing, code="not-given", remedy=remedy, name=each.name)
        return cls(**plain)

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return the options that are not None as plain values; paths relative to `folder` when given."""
        plain: dict[str, Any] = {}
        for name in options_in(type(self)):
            value = getattr(self, name)
            if isinstance(value, Path):
                value = _path_text(value, folder)
            elif name == "confound_ranges":
                value = {name: [low, high] for name, low, high in value}
            elif name == "visit":
                value = dict(value)
            elif name in ("n_components", "beta", "smoothness") and not value:
                value = "auto"
            elif isinstance(value, tuple):
                value = [_path_text(each, folder) if isinstance(each, Path) else each for each in value]
            if value is not None and value not in ([], {}, ""):
                plain[name] = value
        return plain

    def to_toml(self, *, folder: Path | None = None) -> str:
        """Return the options as the text of a TOML file; paths are written relative to `folder`."""
        return tomli_w.dumps(self.to_dict(folder=folder))

    def shareable(self) -> dict[str, Any]:
        """Return the options with file names instead of paths, which may be private."""
        shared = self.to_dict()
        for name, declared in options_in(type(self)).items():
            if declared.file and isinstance(shared.get(name), str):
                shared[name] = Path(shared[name]).name
            elif declared.file and name in shared and declared.many:
                shared[name] = [Path(each).name for each in shared[name]]
        return shared


def number_in(text: str) -> int | float | str:
    """Convert a text from a command line or form to a number, if it is one."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _convert(name: str, value: Any, declared: Option) -> Any:
    """Return an option's value in its own type."""
    try:
        if declared.many:
            parts = tuple(_convert_one(name, each, declared) for each in parts_of(value))
            if not parts:
                raise ValueError("one value or several")
            return parts
        return _convert_one(name, value, declared)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        shown = ", ".join(map(repr, parts_of(value)))
        raise parameter_error(name, f" must be {error}, not {shown}.", value=value) from None


def _convert_one(name: str, value: Any, declared: Option) -> Any:
    """Return one value in its own type; the error names what is accepted."""
    if declared.take is not None:
        return declared.take(value)
    if name == "jobs" and value == 0:
        raise ValueError("a number of processes, or -1 for all processors")
    if name == "bootstrap" and value == 1:
        raise ValueError("at least 2 resamples, or 0 for none")
    check_parameter(name, value, {name: declared.kind or PARAMETERS[name]})
    return value


def _path_text(path: Path, folder: Path | None) -> str:
    """A path relative to a folder; one in the home folder begins with ``~`` if the other is outside."""
    if folder is None:
        return str(path)
    path, home = path.absolute(), Path.home()
    if path.is_relative_to(home) and not folder.absolute().is_relative_to(home):
        return (Path("~") / path.relative_to(home)).as_posix()
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return str(path)
