"""Ids that stand twice in a table that is read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.errors import InputError
from icqf.io.readers.questionnaires import id_texts
from icqf.io.readers.streams import Stream


def hashed_ids(index: pd.Index) -> np.ndarray:
    """Eight bytes for each id, by which it is known again in another batch."""
    return pd.util.hash_array(index.to_numpy(dtype=object))


def repeated_id(stream: Stream, ids: Sequence[np.ndarray], name: str) -> InputError | None:
    """What is to be said of an id that stands in two batches, after a second look at the ids that may.

    `ids` are those of all batches (`hashed_ids`), and `name` is their column.
    """
    every = np.sort(np.concatenate(ids)) if ids else np.empty(0, dtype=np.uint64)
    suspects = np.unique(every[1:][every[1:] == every[:-1]])
    if not len(suspects):
        return None
    seen: dict[str, str] = {}
    first: tuple[str, str, str] | None = None
    again = 0
    for batch in stream.batches([name]):
        texts = np.array(id_texts(batch.frame[name]), dtype=object)
        for place in np.flatnonzero(np.isin(pd.util.hash_array(texts), suspects)):
            text, where = texts[place], f"{batch.source}, row {batch.rows[place]}"
            if text in seen:
                again += 1
                first = first or (text, seen[text], where)
            seen.setdefault(text, where)
    if first is None:
        return None
    more = f", and {again - 1} more rows repeat an id" if again > 1 else ""
    return InputError(
        f"{stream.source}: the id {first[0]!r} in column {name!r} stands twice ({first[1]}, "
        f"and {first[2]}){more}.",
        code="duplicate-id",
        remedy="Keep one row per participant.",
        participant=first[0],
    )
