"""Choose the number of factors: all rules on a study, and the error curve of a results folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from icqf.baselines.retention import RULES, RuleTable, every_rule
from icqf.data.study import Study
from icqf.engines.progress import Progress
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.write import write_table
from icqf.models.icqfcv import ICQFCV
from icqf.workflow.naming import provenance_in


@dataclass(frozen=True)
class TriedNumber:
    """A number of factors tried by a search, with its best penalty."""

    n_components: int
    beta: float
    error: float
    standard_error: float
    chosen: bool


def tried_numbers(folder: str | os.PathLike[str]) -> tuple[TriedNumber, ...]:
    """Return the numbers of factors tried by the search of a results folder; empty without a search."""
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
            remedy="Fit again, or restore the file.",
        ) from None


def rules_of_study(
    study: Study,
    *,
    search: ICQFCV | None = None,
    seed: int = 0,
    callback: Callable[[Progress], object] | None = None,
) -> RuleTable:
    """Apply every rule for the number of factors, the cross-validation first if there was one.

    Constant items are left out. If no rule can use the answers, the table contains the reason instead of
    numbers, so that a long run does not fail at the end.
    """
    answers = study.questionnaire.keyed_answers()
    try:
        rules = every_rule(answers.loc[:, answers.nunique() > 1], random_state=seed, callback=callback)
    except InputError as error:
        rules = RuleTable((), (("Rules of factor analysis", str(error)),))
    return rules if search is None else rules.with_first(search.count_)


def rule_seconds(n: int, m: int) -> dict[str, float]:
    """Return what the rules take with answers of n participants to m items, by stage of `every_rule`."""
    size = n * m / 1e6
    slow = {
        "Parallel analysis": 0.1 + 5 * size,
        "NEST": 0.1 + 30 * size,
        "Comparison data": 0.4 + 0.75 * size * m,
    }
    return {
        f"Rule of factor analysis: {name}": slow.get(name, 0.1 + size) for name in RULES if RULES[name].run
    }


def write_rules(rules: RuleTable, path: Path, *, format: str | None = None) -> None:
    """Write the table of the rules to `path`, and their curves to a JSON file of the same name."""
    write_table(rules.table, path, format=format)
    text = json.dumps(rules.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path.with_suffix(".json"), (text + "\n").encode())
