"""A folder of results with the account of where they come from, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from icqf.io.atomic import new_folder, write_bytes
from icqf.io.provenance import fingerprints_of, versions
from icqf.workflow.contents import ACCOUNT, files_in
from icqf.workflow.places import refuse_existing, refuse_shared


def write_folder(
    folder: Path,
    tool: str,
    write: Callable[[Path], None],
    account: Callable[[list[str]], Mapping[str, Any]],
    *,
    force: bool = False,
    inputs: Iterable[Path | None] = (),
) -> list[str]:
    """Write a folder of results, which afterwards holds all of them or is as it was.

    Parameters
    ----------
    folder : Path
        Where. An existing folder of results is replaced only with `force`, and only if they are of the same
        `tool`; any other folder that holds something is refused.
    tool : str
        The command whose results these are.
    write : callable
        Writes the files into the folder that it is given.
    account : callable
        Gives the content of ``provenance.json``, from the names of all files.
    force : bool
        Whether to replace earlier results.
    inputs : iterable of Path
        What is read; a folder that holds any of it is refused.

    Returns
    -------
    list of str
        Names of the files.
    """
    inputs = tuple(inputs)
    refuse_existing(folder, tool, force=force, inputs=inputs)
    with new_folder(folder) as place:
        write(place)
        names = sorted([*(path.name for path in place.iterdir()), ACCOUNT])
        outputs = sorted([*files_in(place), ACCOUNT])
        (place / ACCOUNT).write_text(_text(tool, account(outputs)), encoding="utf-8")
        refuse_existing(folder, tool, force=force, inputs=inputs)
    return names


@contextmanager
def shared_folder(
    folder: Path,
    tool: str,
    account: Callable[[], Mapping[str, Any]],
    *,
    inputs: Iterable[Path | None] = (),
) -> Iterator[None]:
    """Mark a folder as that of results that are written one by one, and give their account at the end.

    Parameters
    ----------
    folder, tool, inputs
        As in `write_folder`. A folder of the same `tool` is continued.
    account : callable
        Gives the content of ``provenance.json`` but for the names of the files.
    """
    refuse_shared(folder, tool, inputs=inputs)
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / ACCOUNT, _text(tool, {"program": "icqf", "outputs": [ACCOUNT]}).encode())
    yield
    outputs = sorted({*(name for name in files_in(folder) if "/" not in name), ACCOUNT})
    write_bytes(folder / ACCOUNT, _text(tool, {**account(), "outputs": outputs}).encode())


def _text(tool: str, account: Mapping[str, Any]) -> str:
    """The account as JSON; the tool by which its results are known stands where every reader finds it."""
    known = {"program": "icqf", "tool": tool}
    return (
        json.dumps(known | {k: v for k, v in account.items() if k not in known}, indent=2, ensure_ascii=False)
        + "\n"
    )


def tool_account(
    *,
    files: Iterable[Path],
    options: Mapping[str, Any],
    started: datetime,
    notes: Iterable[str] = (),
    result: Mapping[str, Any],
) -> Callable[[list[str]], dict[str, Any]]:
    """Return what gives the account of a tool's results; no participant, folder or user is named in it."""

    def account(outputs: list[str]) -> dict[str, Any]:
        return {
            "versions": versions(),
            "started": started.isoformat(timespec="seconds"),
            "options": dict(options),
            "inputs": fingerprints_of(files),
            "notes": list(notes),
            "result": dict(result),
            "outputs": outputs,
        }

    return account
