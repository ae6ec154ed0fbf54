"""How well each number of factors predicted hidden answers, from a folder of results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from icqf.errors import InputError
from icqf.io.formats import WRITABLE
from icqf.io.readers.files import read_table
from icqf.models.selection_rules import best_by_k, error_table
from icqf.workflow.naming import account_in


@dataclass(frozen=True)
class TriedNumber:
    """A number of factors that a search tried, with the penalty that was best for it."""

    n_components: int
    beta: float
    error: float
    standard_error: float
    chosen: bool


def tried_numbers(folder: str | os.PathLike[str]) -> tuple[TriedNumber, ...]:
    """Return every number of factors that the search behind a folder of results tried; empty without one."""
    folder = Path(folder)
    model = account_in(folder)["model"]
    found = [path for form in WRITABLE if (path := folder / f"cv.{form}").is_file()]
    if not found:
        return ()
    try:
        trials = read_table(found[0]).frame.astype({"n_components": int})
        best = best_by_k(error_table(trials)).reset_index()
        return tuple(
            TriedNumber(
                int(row["n_components"]),
                float(row["beta"]),
                float(row["error"]),
                float(row["standard_error"]),
                int(row["n_components"]) == model["n_components"],
            )
            for row in best.to_dict("records")
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise InputError(
            f"{found[0].name}: this is not the table of a search.",
            code="no-results",
            remedy="Fit again, or put the file back as it was.",
        ) from None
