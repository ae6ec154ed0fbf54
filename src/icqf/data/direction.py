"""Reversing items: those that are named, those that run against the others, and what to say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from icqf.data.keying import MOST_ITEMS, Ends, Keying, Suspect, find_reversed
from icqf.data.overview import REVERSED
from icqf.data.questionnaire import Draft, match_names
from icqf.errors import Advice, InputError, InputWarning, counted, listed

AUTO = "auto"
MOST_NAMED = 50
_LOOK_REVERSED = "look reversed but are used as they are"


@dataclass(frozen=True)
class Directions:
    """Which items of a study are reversed and why, and which look reversed but are not.

    Parameters
    ----------
    declared : tuple of str
        Items that are reversed because the codebook or the user says so.
    found : tuple of str
        Items that are reversed because they run against the others.
    unattended : tuple of str
        Items that run against the others and are not reversed.

    Examples
    --------
    >>> from icqf.data.direction import Directions
    >>> from icqf.datasets import load_demo
    >>> Directions.of(load_demo()).declared
    ('q004', 'q006')
    """

    declared: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    unattended: tuple[str, ...] = ()

    @classmethod
    def of(cls, draft: Draft, keying: Keying | None = None) -> Directions:
        """Return the directions of a questionnaire's items; `keying`, where they were compared before."""
        keying = find_reversed(draft, resamples=0) if keying is None else keying
        found = tuple(item.name for item in draft.items if item.name in set(draft.found_reversed))
        declared = tuple(item.name for item in draft.items if item.reverse and item.name not in set(found))
        return cls(declared, found, keying.looks_reversed)

    @property
    def warning(self) -> InputWarning | None:
        """What a reader must know before anything else; None when there is nothing to say."""
        if self.unattended:
            one = len(self.unattended) == 1
            taken = "looks reversed but is taken as it stands" if one else _LOOK_REVERSED
            misses = "it misses the factor it belongs" if one else "they miss the factors they belong"
            return InputWarning(
                f"{counted(len(self.unattended), 'item')} {taken}: "
                f"{listed(self.unattended, most=MOST_NAMED)}. Loadings cannot be negative, so "
                f"{misses} to.",
                code="look-reversed",
                remedy=Advice(
                    f"Add {{reverse=}} to reverse {'it' if one else 'them'}, name {'it' if one else 'those'} "
                    f"with {{reverse}}, or declare {_whose(self.unattended)} direction in a codebook.",
                    reverse=AUTO,
                ),
                items=self.unattended,
            )
        if self.found:
            return InputWarning(
                f"{_reversed_by_finding(self.found)} Confirm this by the wording.",
                code="found-reversed",
                items=self.found,
            )
        return None

    @property
    def sentence(self) -> str:
        """The warning for the reader of a report; empty when there is nothing to say."""
        if self.warning is None:
            return ""
        them = "it" if len(self.unattended) == 1 else "them"
        remedy = (
            f"To reverse {them}, fit again with --reverse auto or with a codebook that declares "
            f"{_whose(self.unattended)} direction."
        )
        return f"{self.warning.message} {remedy}" if self.unattended else self.warning.message

    def to_dict(self) -> dict[str, Any]:
        """Return the directions as plain values, for an account of a fit."""
        return {
            "reversed_as_declared": list(self.declared),
            "reversed_because_they_run_against_the_others": list(self.found),
            "look_reversed_but_are_not": list(self.unattended),
        }


def with_reversed(draft: Draft, wanted: Sequence[str]) -> Draft:
    """Reverse the items named by name or glob, and with ``"auto"`` those that then run against the others.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.data.direction import with_reversed
    >>> from icqf.data.questionnaire import Questionnaire
    >>> draft = with_reversed(Questionnaire.of(pd.DataFrame({"q1": [0, 2], "q2": [1, 0]})), ["q2"])
    >>> draft.items[1].reverse, draft.notes
    (True, ("Reversed at your request: 'q2'.",))
    """
    named = [name for name in wanted if name != AUTO]
    if named:
        names = match_names(named, [item.name for item in draft.items], draft.source)
        draft = _reversing(draft, names, f"Reversed at your request: {listed(names, most=MOST_NAMED)}.")
        draft = replace(draft, asked_reversed=tuple(names))
    if AUTO in wanted:
        if len(draft.items) > MOST_ITEMS:
            raise InputError(
                f"{draft.source}: directions of {len(draft.items)} items cannot be compared, only of up to "
                f"{MOST_ITEMS}.",
                code="too-many-items",
                remedy=Advice("Name the items to reverse with {reverse}, or declare them with {codebook}."),
            )
        found = find_reversed(draft, resamples=0).looks_reversed
        note = (
            f"{REVERSED[-1]}: {listed(found, most=MOST_NAMED)}."
            if found
            else "No item runs against the others; none was reversed."
        )
        draft = replace(_reversing(draft, found, note), found_reversed=found)
    return draft


def remark_on(suspect: Suspect) -> str:
    """Return what a codebook says beside an item that was found to run against the others.

    Examples
    --------
    >>> from icqf.data.keying import Suspect
    >>> print(remark_on(Suspect("q4", "", -0.6, -0.7, -0.5, ("q12", "q20"))))
    Please confirm: runs against 'q12', 'q20' (correlation −0.60, 95 % interval −0.70 to −0.50, found again
    in 100 % of resamples).
    """
    return f"Please confirm: runs against {listed(suspect.against, most=3)} ({suspect.strength})."


def remarks_on_ends(ends: Ends) -> dict[str, str]:
    """Return what a codebook says beside the items of two opposite ends, by item.

    Examples
    --------
    >>> from icqf.data.keying import Ends
    >>> remarks_on_ends(Ends(("happy",), ("sad",), -0.7))["sad"]
    "One of two opposite ends, against 'happy'; reverse one end if both are one scale."
    """
    return {
        name: f"One of two opposite ends, against {listed(other, most=3)}; reverse one end if both are one "
        "scale."
        for own, other in ((ends.one, ends.other), (ends.other, ends.one))
        for name in own
    }


def _whose(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _reversed_by_finding(names: Sequence[str]) -> str:
    runs = "it runs" if len(names) == 1 else "they run"
    were = "was" if len(names) == 1 else "were"
    return (
        f"{counted(len(names), 'item')} {were} reversed because {runs} against the others: "
        f"{listed(names, most=MOST_NAMED)}."
    )


def _reversing(draft: Draft, names: Sequence[str], note: str) -> Draft:
    items = tuple(replace(item, reverse=True) if item.name in set(names) else item for item in draft.items)
    return replace(draft, items=items, notes=(*draft.notes, note))
