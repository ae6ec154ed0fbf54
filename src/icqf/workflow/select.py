"""Choosing the number of factors: every rule on a study, and the error curve of a results folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from icqf.baselines.retention import RuleTable, every_rule
from icqf.data.study import Study
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.write import write_table
from icqf.models.icqfcv import ICQFCV
from icqf.workflow.naming import provenance_in


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
    model = provenance_in(Path(folder))["model"]
    try:
        return tuple(
            TriedNumber(
                int(row["n_components"]),
                float(row["beta"]),
                float(row["error"]),
                float(row["standard_error"]),
                int(row["n_components"]) == model["n_components"],
            )
            for row in model.get("tried", ())
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            "provenance.json: this does not describe a search.",
            code="no-results",
            remedy="Fit again, or put the file back as it was.",
        ) from None


def rules_of_study(study: Study, *, search: ICQFCV | None = None, seed: int = 0) -> RuleTable:
    """Ask every rule how many factors a study has, the cross-validation first where there was one.

    Items that everybody answered alike correlate with nothing and are left out. Answers that no rule can use
    give a table without numbers that says why, so that they do not end a run that is otherwise done.
    """
    answers = study.questionnaire.keyed_answers()
    try:
        found = every_rule(answers.loc[:, answers.nunique() > 1], random_state=seed)
    except InputError as error:
        found = RuleTable((), (("Rules of factor analysis", str(error)),))
    return found if search is None else found.with_first(search.count_)


def write_rules(found: RuleTable, path: Path, *, format: str | None = None) -> None:
    """Write the table of the rules to `path`, and the curves behind it as JSON beside it."""
    write_table(found.table, path, format=format)
    text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path.with_suffix(".json"), (text + "\n").encode())
