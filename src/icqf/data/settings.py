"""Settings as one record: on a command line, in a TOML file, in the app's form and in Python.

Nothing heavy is imported here: the command line shows these defaults in its help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import tomli_w

from icqf.data.parameters import PARAMETERS, Kind, check_parameter, parameter_error, parts_of
from icqf.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Option:
    """What an option is: on a command line, in a TOML file, in the app's form and in Python.

    Parameters
    ----------
    help : str
        What it means, in one sentence.
    kind : Number, OneOf or Flag, optional
        What its value may be; None is as for the models' parameter of this name.
    take : callable, optional
        How a value that is more than that is taken; its error says what is wanted.
    metavar : str
        What a value is called in the help.
    usual : str
        What the default does, where the default itself does not tell.
    label : str
        What forms call it.
    """

    help: str
    kind: Kind | None = None
    take: Callable[[Any], Any] | None = None
    metavar: str = ""
    usual: str = ""
    label: str = ""


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare an option: the field of a record, with its default and what is said about it."""
    return field(default=default, metadata={"option": Option(help, **more)})


def options_in(kind: type[Settings]) -> dict[str, Option]:
    """Return the options of a record by their names."""
    return {each.name: each.metadata["option"] for each in fields(kind)}


@dataclass(frozen=True)
class Settings:
    """A frozen record whose fields are options, made from plain values and written as TOML."""

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
        if "answers" in known and "answers" not in plain:
            raise InputError("No file of answers is named.")
        return cls(**plain)

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return the options that are not None as plain values; paths relative to `folder` when given."""
        plain: dict[str, Any] = {}
        for name in options_in(type(self)):
            value = getattr(self, name)
            if isinstance(value, Path):
                value = str(value) if folder is None else _relative(value, folder)
            elif name == "confound_ranges":
                value = {name: [low, high] for name, low, high in value}
            elif name == "visit":
                value = dict(value)
            elif name in ("n_components", "beta", "smoothness") and not value:
                value = "auto"
            elif isinstance(value, tuple):
                value = list(value)
            if value is not None and value not in ([], {}):
                plain[name] = value
        return plain

    def to_toml(self, *, folder: Path | None = None) -> str:
        """Return the options as the text of a TOML file; paths are written relative to `folder`."""
        return tomli_w.dumps(self.to_dict(folder=folder))


def _taken(name: str, value: Any, declared: Option) -> Any:
    """Return an option's value in its own type."""
    if declared.take is not None:
        try:
            return declared.take(value)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            wanted = str(error)
    elif name == "jobs" and value == 0:
        wanted = "a number of processes, or -1 for all processors"
    elif name == "bootstrap" and value == 1:
        wanted = "at least 2 resamples, or 0 for none"
    else:
        check_parameter(name, value, {name: declared.kind or PARAMETERS[name]})
        return value
    shown = ", ".join(map(repr, parts_of(value)))
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
