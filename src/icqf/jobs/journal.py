"""A journal: finished work, a line each, on disk before more is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from icqf.errors import InputError

FORMAT = "icqf-search"


class Journal:
    """A file of finished records, a line of JSON each, after a first line that says what they belong to.

    A line that was cut off by a crash is dropped when the journal is opened again.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []
        if self.path.is_dir():
            raise InputError(f"{self.path}: the checkpoint must be a file, but this is a folder.")
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            if content and not _header_line(identity).startswith(content):
                raise InputError(f"{self.path}: this file is not a journal; choose another checkpoint.")
            self._replace(_header_line(identity))
            return
        header, *lines = whole.splitlines()
        self._check_header(header, identity)
        for number, line in enumerate(lines, start=2):
            try:
                self.records.append(dict(json.loads(line)))
            except (ValueError, TypeError):
                raise InputError(
                    f"{self.path}: line {number} of the journal is damaged; delete the file to start again."
                ) from None
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))

    def _check_header(self, line: bytes, identity: str) -> None:
        try:
            header: Any = json.loads(line)
        except ValueError:
            header = None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise InputError(f"{self.path}: this file is not a journal; choose another checkpoint.")
        if header.get("identity") != identity:
            raise InputError(
                f"{self.path}: this journal belongs to other data or other settings (answers, confounds, "
                "folds, betas, seed or options differ). Delete it to start again, or choose another "
                "checkpoint."
            )

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write finished records and make sure that they are on disk."""
        lines = "".join(json.dumps(record) + "\n" for record in records).encode()
        try:
            with open(self.path, "ab") as stream:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise InputError(
                f"{self.path}: the journal could not be written ({error.strerror}). What is finished is "
                "kept; make room and run again to go on."
            ) from None

    def _replace(self, content: bytes) -> None:
        try:
            with open(self.path, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: the journal cannot be created ({error.strerror}).") from None


def _header_line(identity: str) -> bytes:
    return json.dumps({"format": FORMAT, "identity": identity}).encode() + b"\n"
