"""The journal of a search: every finished fit is on disk before the next is asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from icqf.errors import InputError
from icqf.jobs.journal import Journal
from icqf.selection.search import Plan, Trial
from icqf.solvers.observations import VisitObservations


def fingerprint(plan: Plan) -> str:
    """What the results depend on: data, folds and settings, but not which numbers of factors are tried."""
    digest = hashlib.sha256()
    problem = plan.problem
    parts = [problem.answers, problem.design, problem.span]
    parts += [part for part in (problem.weights, problem.bounds.loading) if part is not None]
    parts += [] if problem.scaling is None else [problem.scaling.scale]
    if isinstance(problem.observations, VisitObservations):
        parts += [problem.observations.participant, problem.observations.bin]
    for folds in plan.folds:
        parts += [folds.row_block, folds.col_block, folds.fold_of]
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype} {array.shape};".encode())
        digest.update(array.data if array.size else b"")
    settings = {
        "betas": sorted(plan.betas),
        "init": plan.init,
        "thorough": plan.thorough,
        "tol": plan.tol,
        "max_iter": plan.max_iter,
        "declared": plan.given is None,
        "seed": plan.seed,
        "penalty": [problem.penalty.name, problem.gamma],
        "score_max": problem.bounds.score,
        "dtype": str(np.dtype(problem.dtype)),
        "intercept": problem.intercept,
        "partitions": problem.partitions,
    }
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


class SearchJournal(Journal):
    """The journal of a search, its records being trials."""

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        super().__init__(path, identity)
        self.trials: list[Trial] = []
        for number, record in enumerate(self.records, start=2):
            try:
                self.trials.append(Trial(**record))
            except TypeError:
                raise InputError(
                    f"{self.path}: line {number} of the journal is damaged; delete the file to start again."
                ) from None

    def add(self, trials: Iterable[Trial]) -> None:
        """Write finished fits and make sure that they are on disk."""
        self.append(asdict(trial) for trial in trials)
