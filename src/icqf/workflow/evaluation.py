"""Evaluate methods on studies: how much is run, where it is kept, and how it is done on one's own study."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from icqf.analyses.methods import FACTORS, METHODS, FactorAnalysisMethod, ICQFMethod, Method
from icqf.data.confounds import ConfoundEncoder
from icqf.data.parameters import BETAS, TRAINING_SHARES
from icqf.data.study import Study
from icqf.engines.parallel import Progress
from icqf.workflow.account import run_account
from icqf.workflow.folders import shared_folder
from icqf.workflow.options import StabilityOptions

QUICK_PARTICIPANTS = 400


@dataclass(frozen=True)
class Design:
    """How an experiment is run. The defaults are the paper's.

    `names` are the methods to run, all that suit the experiment where it is empty; `parameters` are further
    ones of `icqf.ICQF`; the folder `out` also holds the journals of finished fits, which experiments share.
    """

    out: Path
    n_splits: int = 30
    sizes: tuple[float, ...] = TRAINING_SHARES
    n_components: tuple[int, ...] | Literal["auto"] = FACTORS
    betas: tuple[float, ...] = BETAS
    rule: str = "min"
    parameters: tuple[tuple[str, Any], ...] = ()
    n_folds: int = 10
    n_repeats: int = 1
    random_state: int = 0
    n_jobs: int | None = None
    callback: Callable[[Progress], object] | None = None
    command: str = ""
    names: tuple[str, ...] = ()
    quick: bool = False

    def quickly(self) -> Design:
        """The same with few splits, sizes and candidates: minutes, to see that it works."""
        return replace(
            self,
            n_splits=min(3, self.n_splits),
            sizes=(0.8, 0.2),
            n_components=(4, 6, 8, 10),
            betas=(0.1, 0.5),
            n_folds=5,
            quick=True,
        )

    def methods(self, names: Collection[str]) -> tuple[Method, ...]:
        """The methods of these names that are to run, with this design's candidates."""
        icqf = ICQFMethod(
            self.n_components,
            self.betas,
            self.n_folds,
            n_repeats=self.n_repeats,
            rule=self.rule,
            parameters=self.parameters,
        )
        made: dict[str, Method] = METHODS | {
            "icqf": icqf,
            "l1-nmf": replace(icqf, bounded=False, name="l1-NMF"),
            "fa-promax": FactorAnalysisMethod(n_iter=5) if self.quick else METHODS["fa-promax"],
        }
        return tuple(made[name] for name in names if name in (self.names or names))

    def running(self, study: str) -> dict[str, Any]:
        """Arguments for the functions of `icqf.analyses`."""
        return {
            "n_splits": self.n_splits,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
            "checkpoint": self.journal(study),
            "callback": self.callback,
        }

    def journal(self, study: str) -> Path:
        """The journal of a study's fits."""
        return self.out / f"fits-{study}{'-quick' if self.quick else ''}.journal"


Experiment = Callable[[Sequence[Study], Design], Path]


def evaluate_study(
    experiment: Experiment, study: Study, options: StabilityOptions, *, tool: str, out: Path, **design: Any
) -> Path:
    """Run an experiment, such as `stability_experiment`, on a study, and return the page that it writes.

    `tool` is the command whose results these are, `design` further fields of `Design`.
    """
    parameters = options.model_parameters
    # Once, of everybody: in a part of the study a category may well have few members.
    limit, ranges = parameters.pop("smallest_category"), parameters["confound_ranges"]
    ConfoundEncoder(ranges=ranges, smallest_category=limit).fit(study.questionnaire.confounds)
    planned = Design(
        out,
        n_components=options.n_components or "auto",
        betas=options.beta or BETAS,
        n_splits=options.splits,
        sizes=options.sizes,
        names=options.methods,
        rule=options.rule,
        n_folds=options.n_splits,
        n_repeats=options.n_repeats,
        parameters=tuple(parameters.items()),
        random_state=options.seed,
        n_jobs=options.jobs,
        **design,
    )
    started, clock = datetime.now(UTC), time.perf_counter()

    def account() -> dict[str, Any]:
        return run_account(options, started, time.perf_counter() - clock, study.files)

    with shared_folder(out, tool, account, inputs=study.files):
        return experiment([study], planned)
