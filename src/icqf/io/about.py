"""What a study's files state about instrument and sample: a TOML file, and the codebook."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from icqf.data.about import About
from icqf.data.questionnaire import Item
from icqf.errors import InputError, InputWarning
from icqf.io.codebook import items_and_instruments
from icqf.io.readers.descriptions import read_toml
from icqf.io.study_files import StudyFiles


def read_about(path: str | os.PathLike[str]) -> About:
    """Read what is stated about a study: a TOML file with the fields of `icqf.data.About`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.io import read_about
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "study.toml")
    ...     _ = path.write_text('instrument = "SDQ"\\nlanguage = "en"\\nlicence = "cc-by-4.0"')
    ...     read_about(path).licence
    'CC-BY-4.0'
    """
    path = Path(path)
    content = read_toml(path)
    stated = content.get("about", content)
    if not isinstance(stated, dict):
        raise InputError(f"{path.name}: about must be a table, [about].")
    about = About.of(stated, where=path.name)
    for note in about.notes:
        warnings.warn(InputWarning(f"{path.name}: {note}", code="licence"), stacklevel=2)
    return about


def codebook_and_about(files: StudyFiles) -> tuple[tuple[Item, ...] | None, About]:
    """Return the entries of a study's codebook, and what it and the file that describes the study state.

    A codebook states the table [about] of a TOML file, and its instrument if all items have the same.
    """
    entries, about = None, About()
    if files.codebook is not None:
        entries, instruments = items_and_instruments(files.codebook)
        named = {instruments.get(item.name, "") for item in entries}
        about = About.of({"instrument": named.pop()} if len(named) == 1 else {})
        if files.codebook.suffix.lower() == ".toml" and "about" in read_toml(files.codebook):
            about = about.updated(read_about(files.codebook))
    return entries, about if files.about is None else about.updated(read_about(files.about))
