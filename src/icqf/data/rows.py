"""Row labels: tables that are given together are about the same participants, in the same order."""

from __future__ import annotations

from typing import Any

import pandas as pd

from icqf.data.questionnaire import Draft
from icqf.errors import InputError

_LABELLED = (pd.DataFrame, pd.Series)


def refuse_other_rows(answers: Any, *, to: str = "answers", **beside: Any) -> None:
    """Refuse pandas tables whose row labels are not those of the answers, in their order.

    They are not brought into that order: labels that differ show that something went wrong before, and only
    who made the tables can say what. Arrays, lists and tables without labels go by position.

    Parameters
    ----------
    answers : table, array or Questionnaire
    to : str
        What `answers` is called in the message.
    **beside : table, column, array or None
        What is given with the answers, under its name.

    Examples
    --------
    >>> answers = pd.DataFrame({"q1": [0, 1], "q2": [2, 2]})
    >>> refuse_other_rows(answers, groups=pd.Series(["a", "b"]), sample_weight=[1, 2])
    >>> refuse_other_rows(answers, groups=pd.Series(["b", "a"], index=[1, 0]))
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: Row 1 of the answers is labelled 0, and row 1 of groups 1: the rows of both must \
have the same labels in the same order. Use groups.loc[answers.index], or groups.to_numpy() if the rows \
belong together as they stand.
    """
    if isinstance(answers, Draft):
        answers = answers.answers
    if not isinstance(answers, _LABELLED):
        return
    for name, table in beside.items():
        if not isinstance(table, _LABELLED) or len(table) != len(answers):
            continue
        if table.index.equals(answers.index):
            continue
        both = zip(answers.index, table.index, strict=True)
        for row, (ours, theirs) in enumerate(both, start=1):
            if ours != theirs:
                raise InputError(
                    f"Row {row} of the {to} is labelled {ours!r}, and row {row} of {name} {theirs!r}: the "
                    f"rows of both must have the same labels in the same order. Use {name}.loc[{to}.index], "
                    f"or {name}.to_numpy() if the rows belong together as they stand.",
                    code="other-rows",
                    name=name,
                )
