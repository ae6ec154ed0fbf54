"""The journal of a search: every finished fit is on disk before the next is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict

from icqf.jobs.journal import WorkJournal
from icqf.selection.search import Trial

_WORK = "search"


class SearchJournal:
    """The trials of one search in a journal, which other searches and other work may share.

    Parameters
    ----------
    checkpoint : path or WorkJournal
        Where it is kept, or the journal that is open already.
    identity : str
        Fingerprint of the search's plan; a journal of other searches alone is refused.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | WorkJournal, identity: str) -> None:
        journal = checkpoint if isinstance(checkpoint, WorkJournal) else WorkJournal(checkpoint)
        journal.recognise(_WORK, [identity])
        self.trials: list[Trial] = []
        self._journal, self._identity = journal, identity
        for number, record in enumerate(journal.records, start=2):
            try:
                if record["key"] == identity:
                    self.trials.append(Trial(**record["result"]))
            except (TypeError, KeyError):
                raise journal.damaged(number) from None

    def add(self, trials: Iterable[Trial]) -> None:
        """Write finished fits and make sure that they are on disk."""
        common = {"work": _WORK, "key": self._identity}
        self._journal.append({**common, "result": asdict(trial)} for trial in trials)
