"""Small files that people write: texts in any encoding, JSON, TOML, and wordings without markup."""

from __future__ import annotations

import html
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from icqf.errors import InputError
from icqf.io.readers.delimited import as_utf8
from icqf.io.readers.table import require_file

_LARGEST = 2**24  # bytes of a file that describes items


def read_text(path: Path) -> str:
    """Return the text of a small file, whatever its encoding."""
    require_file(path)
    if path.stat().st_size > _LARGEST:
        raise InputError(
            f"{path.name}: the file has {path.stat().st_size / 2**20:.0f} MB; a description of items has at "
            f"most {_LARGEST // 2**20} MB. Is it the table of answers?"
        )
    return as_utf8(path.read_bytes(), path.name)[0].decode("utf-8-sig")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            again = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path.name}: the name {again!r} occurs twice in one object. Keep one.")
        return entries

    text = read_text(path)
    try:
        content = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise InputError(f"{path.name}: the JSON is nested too deeply to describe items.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path.name}: this is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except InputError:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise InputError(f"{path.name}: this is not valid JSON ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path.name}: this must be a JSON object with one entry per column.")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, as any editor saves it."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None


def plain_text(text: object) -> str:
    """Return a text on one line, without HTML."""
    return " ".join(html.unescape(re.sub(r"<[^<>]+>", " ", str(text))).split())
