"""What a study's files state about instrument and sample: a TOML file, and the codebook."""

from __future__ import annotations

import os
import tomllib
import warnings
from pathlib import Path
from typing import Any

from icqf.data.about import About
from icqf.errors import InputError, InputWarning
from icqf.io.codebook import entries_of
from icqf.io.readers.table import require_file
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
    content = _toml(path)
    stated = content.get("about", content)
    if not isinstance(stated, dict):
        raise InputError(f"{path.name}: about must be a table, [about].")
    about = About.of(stated, where=path.name)
    for note in about.notes:
        warnings.warn(InputWarning(f"{path.name}: {note}", code="licence"), stacklevel=2)
    return about


def about_codebook(path: Path) -> About:
    """What a codebook states: the table [about] of a TOML file, or else its one instrument."""
    stated = _toml(path).get("about") if path.suffix.lower() == ".toml" else None
    about = About() if stated is None else read_about(path)
    if not about.instrument:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # read_codebook gives these
            named = {str(entry.get("instrument", "")) for _, entry in entries_of(path)}
        about = About.of({"instrument": named.pop()} if len(named) == 1 else {}).updated(about)
    return about


def about_of(files: StudyFiles) -> About:
    """What a study's codebook states, and the file that describes the study, which takes precedence."""
    about = About() if files.codebook is None else about_codebook(files.codebook)
    return about if files.about is None else about.updated(read_about(files.about))


def _toml(path: Path) -> dict[str, Any]:
    require_file(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
