"""Tables in files that are fitted without being held whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.parts import AnswersInParts, SomeAnswers, is_dask_array
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.readers.questionnaires import id_texts
from icqf.io.readers.repeats import hashed_ids, repeated_id
from icqf.io.readers.streams import Stream, open_stream
from icqf.io.readers.tables import recognised_id


def in_parts(X: Any, confounds: Any = None) -> tuple[AnswersInParts | None, Any]:
    """What is to be read in parts, and the confounds that are still to be added; None for anything else.

    Files, folders and datasets of Arrow are read in parts, and so are arrays that are mapped from a file or
    made by dask. Of a file, `confounds` may be the names of columns.
    """
    if isinstance(X, AnswersInParts):
        return X, confounds
    if is_dask_array(X):
        return AnswersInParts.of_blocks(X), confounds
    if isinstance(X, np.memmap):
        return AnswersInParts.of_array(X), confounds
    if isinstance(X, (str, os.PathLike)) or hasattr(X, "get_fragments"):
        names = [confounds] if isinstance(confounds, str) else confounds
        named = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        return parts_of_stream(open_stream(X), names if named else ()), None if named else confounds
    return None, confounds


def parts_of_stream(stream: Stream, confounds: Sequence[str] = ()) -> AnswersInParts:
    """The table of a stream: some columns are confounds, one may hold ids, and all others are items."""
    for name in confounds:
        if name not in stream.names:
            raise InputError(
                f"{stream.source}: the confound {name!r} is no column of the table."
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
