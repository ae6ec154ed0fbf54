"""Every rule for the number of factors, on a study."""

from __future__ import annotations

import json
from pathlib import Path

from icqf.baselines.rules import RuleTable, every_rule
from icqf.data.study import Study
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.write import write_table
from icqf.models.icqfcv import ICQFCV


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
