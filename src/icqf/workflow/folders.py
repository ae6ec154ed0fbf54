"""A folder of results with the account of where they come from, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from icqf.io.atomic import new_folder
from icqf.io.provenance import fingerprints_of, versions
from icqf.workflow.contents import ACCOUNT, files_in
from icqf.workflow.places import refuse_existing


def write_folder(
    folder: Path,
    write: Callable[[Path], None],
    account: Callable[[list[str]], Mapping[str, Any]],
    *,
    force: bool = False,
) -> list[str]:
    """Write a folder of results, which afterwards holds all of them or is as it was.

    Parameters
    ----------
    folder : Path
        Where. An existing folder of results is replaced only with `force`; any other folder that holds
        something is refused.
    write : callable
        Writes the files into the folder that it is given.
    account : callable
        Gives the content of ``provenance.json``, from the names of all files.
    force : bool
        Whether to replace earlier results.

    Returns
    -------
    list of str
        Names of the files.
    """
    refuse_existing(folder, force=force)
    with new_folder(folder) as place:
        write(place)
        names = sorted([*(path.name for path in place.iterdir()), ACCOUNT])
        outputs = sorted([*files_in(place), ACCOUNT])
        text = json.dumps(account(outputs), indent=2, ensure_ascii=False)
        (place / ACCOUNT).write_text(text + "\n", encoding="utf-8")
        refuse_existing(folder, force=force)
    return names


def tool_account(
    tool: str,
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
            "program": "icqf",
            "tool": tool,
            "versions": versions(),
            "started": started.isoformat(timespec="seconds"),
            "options": dict(options),
            "inputs": fingerprints_of(files),
            "notes": list(notes),
            "result": dict(result),
            "outputs": outputs,
        }

    return account
