"""The journal of a search: every finished fit is on disk before the next is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict

from icqf.errors import InputError
from icqf.jobs.journal import Journal
from icqf.selection.search import Trial


class SearchJournal(Journal):
    """The journal of a search, its records being trials; those of another plan are refused."""

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
