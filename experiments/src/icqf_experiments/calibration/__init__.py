"""How sure are we when we say so: for each statement of the package, what was said and what happened.

A statement is one small module with one `Statement`, listed in `STATEMENTS`:

- ``name``: a short one, which also names its table, ``calibration-NAME.csv``.
- ``title``: heading on the page.
- ``setting``: what is said, what counts as happened, and in which studies and simulations.
- ``cases(design)``: one row per case, as a DataFrame with the columns ``said`` (a probability; empty where
  nothing is said, for `more` alone), ``happened`` (0 or 1), ``answers`` ("graded" or "yes/no") and
  ``source`` ("simulated", or the name of a public study); any further columns are kept. `run_cases` runs a
  dict of jobs with the journal and processes of the design. With ``design.quick`` it must take seconds.
- ``more(table)``: further blocks of the section, made from the table of cases alone.

Grids, studies and seeds are constants of the statement's module, committed before a full run. A study must
be left out of whatever learns what is said about it. The reliability tables, their bins (`frame.BINS`), the
Brier score and the verdicts are the same for all statements.
"""

from __future__ import annotations

from collections.abc import Mapping

from icqf_experiments.calibration.batteries import BATTERIES
from icqf_experiments.calibration.crosswalk import CROSSWALK
from icqf_experiments.calibration.frame import Statement
from icqf_experiments.calibration.groups import GROUPS
from icqf_experiments.calibration.intervals import INTERVALS
from icqf_experiments.calibration.missing import MISSING
from icqf_experiments.calibration.norms import NORMS
from icqf_experiments.calibration.number_of_factors import SAMPLES, SEEDS
from icqf_experiments.calibration.planning import ANSWERS, MODEL
from icqf_experiments.calibration.replication import REPLICATION
from icqf_experiments.calibration.scores import CHANGE, SCORES
from icqf_experiments.calibration.short_forms import SHORT_FORMS
from icqf_experiments.calibration.starts import SETTLED, STARTS
from icqf_experiments.calibration.visits import VISITS

STATEMENTS: Mapping[str, Statement] = {
    each.name: each
    for each in (
        REPLICATION,
        SEEDS,
        SAMPLES,
        ANSWERS,
        MODEL,
        STARTS,
        SETTLED,
        INTERVALS,
        SCORES,
        CHANGE,
        SHORT_FORMS,
        BATTERIES,
        VISITS,
        GROUPS,
        NORMS,
        MISSING,
        CROSSWALK,
    )
}
