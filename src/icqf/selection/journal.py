"""The journal of a search: every finished fit is on disk before the next is asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from icqf.errors import InputError
from icqf.selection.search import Plan, Trial

FORMAT = "icqf-search"


def fingerprint(plan: Plan) -> str:
    """What the results depend on: data, folds and settings, but not which numbers of factors are tried."""
    digest = hashlib.sha256()
    problem = plan.problem
    parts = [problem.answers, problem.design, problem.span]
    parts += [part for part in (problem.weights, problem.bounds.loading) if part is not None]
    for folds in plan.folds:
        parts += [folds.row_block, folds.col_block, folds.fold_of]
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype} {array.shape};".encode())
        digest.update(array.data if array.size else b"")
    settings = {
        "betas": sorted(plan.betas),
        "init": plan.init,
        "tol": plan.tol,
        "max_iter": plan.max_iter,
        "spectrum": plan.k_max,
        "declared": plan.given is None,
        "seed": plan.seed,
        "penalty": [problem.penalty.kind, problem.penalty.gamma],
        "score_max": problem.bounds.score,
        "dtype": str(np.dtype(problem.dtype)),
        "intercept": problem.intercept,
        "partitions": problem.partitions,
    }
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


class Journal:
    """A file of finished fits, a line each, after a first line that says what they belong to.

    A line that was cut off by a crash is dropped when the journal is opened again.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path = Path(path)
        self.trials: list[Trial] = []
        if self.path.is_dir():
            raise InputError(f"{self.path}: the checkpoint must be a file, but this is a folder.")
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            if content and not _header_line(identity).startswith(content):
                raise InputError(
                    f"{self.path}: this file is not the journal of a search; choose another checkpoint."
                )
            self._replace(_header_line(identity))
            return
        header, *lines = whole.splitlines()
        self._check_header(header, identity)
        for number, line in enumerate(lines, start=2):
            try:
                self.trials.append(Trial(**json.loads(line)))
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
            raise InputError(
                f"{self.path}: this file is not the journal of a search; choose another checkpoint."
            )
        if header.get("identity") != identity:
            raise InputError(
                f"{self.path}: this journal belongs to other data or other settings (answers, confounds, "
                "folds, betas, seed or options differ). Delete it to start again, or choose another "
                "checkpoint."
            )

    def append(self, trials: Iterable[Trial]) -> None:
        """Write finished fits and make sure that they are on disk."""
        lines = "".join(json.dumps(asdict(trial)) + "\n" for trial in trials).encode()
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
