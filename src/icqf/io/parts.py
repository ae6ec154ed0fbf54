"""Tables in files that are fitted without being held whole, and ids that stand twice in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.frames import AnswersInParts, SomeAnswers
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.readers.questionnaires import id_texts
from icqf.io.readers.streams import Stream, open_stream
from icqf.io.readers.table import recognised_id


def parts_of_file(source: Any, confounds: Sequence[str] = ()) -> AnswersInParts:
    """The table of a file, folder or dataset: confounds, ids where a column holds them, and items."""
    stream = open_stream(source)
    for name in confounds:
        if name not in stream.names:
            raise InputError(
                f"{stream.source}: the confound {name!r} is not a column of the table."
                f"{did_you_mean(name, stream.names)} It has {listed(stream.names)}."
            )
    id = recognised_id(stream.names)
    items = [name for name in stream.names if name not in confounds and name != id]
    if not items:
        raise InputError(f"{stream.source}: no column is left that could be an item.")

    def parts() -> Iterator[SomeAnswers]:
        ids: list[np.ndarray] = []
        for batch in stream.batches([*items, *confounds, *([] if id is None else [id])]):
            answers = pd.DataFrame(batch.matrix(items), columns=items, index=batch.rows)
            beside = batch.frame[list(confounds)].set_axis(batch.rows) if confounds else None
            if id is not None:
                ids.append(hashed_ids(pd.Index(id_texts(batch.frame[id]))))
            yield SomeAnswers(answers, beside, batch.source)
        fault = repeated_id(stream, ids, str(id))
        if fault is not None:
            raise fault

    return AnswersInParts(parts)


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
