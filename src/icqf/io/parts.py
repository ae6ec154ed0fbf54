"""Tables in files that are fitted without being held whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.tables import AnswersInParts, SomeAnswers
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.readers.questionnaires import id_texts
from icqf.io.readers.repeats import hashed_ids, repeated_id
from icqf.io.readers.streams import open_stream
from icqf.io.readers.tables import recognised_id


def parts_of_file(source: Any, confounds: Sequence[str] = ()) -> AnswersInParts:
    """The table of a file, folder or dataset: confounds, ids where a column holds them, and items."""
    stream = open_stream(source)
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
