"""What does not prevent a fit, but its reader must know before anything else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from icqf.data.duplicates import copied_sheets
from icqf.data.end_codes import end_codes
from icqf.data.findings import Finding
from icqf.data.questionnaire import Draft
from icqf.data.scales import number
from icqf.errors import Advice, counted, listed


def doubts_about(draft: Draft, values: np.ndarray | None = None) -> tuple[Finding, ...]:
    """Return values that seem to mean no answer, and participants who seem to be there several times.

    `values` are the answers as numbers, where the caller has them already. The field `anonymous` of each
    finding says it without ids, for a report that may be shared.

    Examples
    --------
    >>> from icqf.data.doubts import doubts_about
    >>> from icqf.datasets import load_demo
    >>> doubts_about(load_demo())
    ()
    """
    if values is None:
        values = draft.answers.to_numpy(dtype=float, na_value=np.nan)
    return (*_end_codes(draft, values), *_copied_participants(draft, values))


def _end_codes(draft: Draft, values: np.ndarray) -> Iterator[Finding]:
    """Report a rare value just beyond a scale that is complete without it, once for all items with it."""
    families = () if draft.families is None else draft.families.families
    names = [item.name for item in draft.items]
    declared = {item.name for item in draft.items if item.declared}
    for found in end_codes(values, names, families):
        if declared.intersection(found.family):
            continue
        value = number(found.value)
        others = [j for j, name in enumerate(names) if name not in set(found.family)]
        shared = bool((values[:, others] == found.value).any())
        remedy = (
            f"Other items have {value} as an answer: if it means no answer here, declare it in a codebook."
            if shared
            else Advice(
                "If it does, add {missing_codes=}; if not, declare the items' range in a codebook.",
                missing_codes=[found.value],
            )
        )
        anonymous = f"{found.sentence} If it does, declare it as a missing code and fit again."
        fields = {"value": found.value, "count": found.count, "items": found.items, "shared": shared}
        fields |= {"family": found.family, "source": draft.source, "anonymous": anonymous}
        yield Finding("warning", "end-code", found.sentence, found.items[0], remedy=remedy, fields=fields)


def _copied_participants(draft: Draft, values: np.ndarray) -> Iterator[Finding]:
    """Report participants with the same answers as somebody else, in one finding."""
    sheets = copied_sheets(values, ~np.isnan(values))
    if sheets is None:
        return
    counts = np.bincount(sheets)
    again = draft.answers.index[counts[sheets] > 1]
    n, different = len(again), int((counts > 1).sum())
    who = (
        f"{n} of {len(sheets)} participants gave exactly the same answers as somebody else "
        f"({counted(different, 'different answer sheet')}), which chance does not explain"
    )
    remedy = (
        "If participants were entered more than once, delete the copies. Folds, halves and resamples keep "
        "copies together, so that they do not make factors look more certain."
    )
    fields = {"count": n, "sheets": different, "anonymous": f"{who}. {remedy}"}
    text = f"{who}: {listed(again)}."
    yield Finding("warning", "same-answers", text, row=str(again[0]), remedy=remedy, fields=fields)
