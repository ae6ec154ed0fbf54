"""Settings as one record: on a command line, in a TOML file, in the app's form and in Python.

Nothing heavy is imported here: the command line shows these defaults in its help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import tomli_w

from icqf.data.parameters import PARAMETERS, Kind, check_parameter, parameter_error, parts_of, path_of
from icqf.errors import Advice, InputError, did_you_mean


@dataclass(frozen=True)
class Option:
    """What an option is: on a command line, in a TOML file, in the app's form and in Python.

    `kind` says what its value may be (None: as the models' parameter of this name), each of them where there
    may be `many`; `take` converts what is more than that, and its error says what is wanted. `usual` is what
    the default does, where the default itself does not tell; `missing` is said where an option without a
    default is not given. Texts of a `file` are paths; values that are `whole` may hold commas; an `argument`
    is typed without its name.
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
    argument: bool = False


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare an option: the field of a record, with its default and what is said about it."""
    return field(default=default, metadata={"option": Option(help, **more)})


def file(default: Any, help: str, **more: Any) -> Any:
    """Declare an option that is a file."""
    return option(default, help, take=path_of, file=True, **more)


def like(kind: type[Settings], name: str, **changes: Any) -> Any:
    """Declare an option as another record does, but for `changes`."""
    (known,) = (each for each in fields(kind) if each.name == name)
    return field(default=known.default, metadata={"option": replace(options_in(kind)[name], **changes)})


def options_in(kind: type[Settings]) -> dict[str, Option]:
    """Return the options of a record by their names."""
    return {each.name: each.metadata["option"] for each in fields(kind)}


@dataclass(frozen=True)
class Settings:
    """The settings of a command: one record for the command line, TOML, the app's forms and Python."""

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
        known = options_in(cls)
        for name, value in values.items():
            if name not in known:
                fault = InputError(f"There is no option {name!r}.{did_you_mean(name, known)}")
                raise fault.at(where) if where else fault
            try:
                taken = _taken(name, value, known[name])
            except InputError as error:
                raise (error.at(where) if where else error) from None
            plain[name] = folder / taken if isinstance(taken, Path) and folder is not None else taken
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
                value = _written(value, folder)
            elif name == "confound_ranges":
                value = {name: [low, high] for name, low, high in value}
            elif name == "visit":
                value = dict(value)
            elif name in ("n_components", "beta", "smoothness") and not value:
                value = "auto"
            elif isinstance(value, tuple):
                value = [_written(each, folder) if isinstance(each, Path) else each for each in value]
            if value is not None and value not in ([], {}):
                plain[name] = value
        return plain

    def to_toml(self, *, folder: Path | None = None) -> str:
        """Return the options as the text of a TOML file; paths are written relative to `folder`."""
        return tomli_w.dumps(self.to_dict(folder=folder))

    def shareable(self) -> dict[str, Any]:
        """Return the options with the names of files instead of their places, which tell who works where."""
        shared = self.to_dict()
        for name, declared in options_in(type(self)).items():
            if declared.file and isinstance(shared.get(name), str):
                shared[name] = Path(shared[name]).name
            elif declared.file and name in shared and declared.many:
                shared[name] = [Path(each).name for each in shared[name]]
        return shared


def number_in(text: str) -> int | float | str:
    """The number that a text from a command line or a form holds; the text itself where it holds none."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _taken(name: str, value: Any, declared: Option) -> Any:
    """Return an option's value in its own type."""
    try:
        if declared.many:
            parts = tuple(_one(name, each, declared) for each in parts_of(value))
            if not parts:
                raise ValueError("one value or several")
            return parts
        return _one(name, value, declared)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        shown = ", ".join(map(repr, parts_of(value)))
        raise parameter_error(name, f" must be {error}, not {shown}.", value=value) from None


def _one(name: str, value: Any, declared: Option) -> Any:
    """Return one value in its own type; the error says what is wanted."""
    if declared.take is not None:
        return declared.take(value)
    if name == "jobs" and value == 0:
        raise ValueError("a number of processes, or -1 for all processors")
    if name == "bootstrap" and value == 1:
        raise ValueError("at least 2 resamples, or 0 for none")
    check_parameter(name, value, {name: declared.kind or PARAMETERS[name]})
    return value


def _written(path: Path, folder: Path | None) -> str:
    return str(path) if folder is None else _relative(path, folder)


def _relative(path: Path, folder: Path) -> str:
    """A path as it is reached from a folder; from outside the home folder, one in it begins with ``~``."""
    path, home = path.absolute(), Path.home()
    if path.is_relative_to(home) and not folder.absolute().is_relative_to(home):
        return (Path("~") / path.relative_to(home)).as_posix()
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return str(path)
