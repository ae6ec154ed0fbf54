"""All that a run needs to know, as one object that a TOML file can hold."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from icqf.data.parameters import (
    BETAS,
    Flag,
    Number,
    OneOf,
    bins_of,
    counts,
    one_text,
    penalties,
    ranges_of,
    starts,
    texts,
)
from icqf.data.settings import option
from icqf.errors import InputError, short
from icqf.io.formats import WRITABLE
from icqf.io.study_files import FILES, StudyFiles


@dataclass(frozen=True)
class StudyOptions(StudyFiles):
    """The files of a study, the roles of their columns (`icqf.io.StudyFiles`), and how to factorize.

    Candidates for the number of factors and the penalty that are empty are found by the program; nothing is
    searched where one of each is given.

    Parameters
    ----------
    answers, codebook, dictionary, participants, id, confounds, groups, weights, items, subscales, \
missing_codes, reverse, visit
        As in `icqf.io.StudyFiles`.
    **options
        See ``icqf fit --help``; `StudyOptions.of` takes them as they stand in a TOML file.

    Examples
    --------
    >>> from icqf.workflow import StudyOptions
    >>> options = StudyOptions.of({"answers": "answers.csv", "n_components": "2-4", "beta": 0.1})
    >>> options.n_components, options.beta, options.searches
    ((2, 3, 4), (0.1,), True)
    """

    confound_ranges: tuple[tuple[str, float, float], ...] = option(
        (),
        "Known ranges, such as age=5:21.",
        take=ranges_of,
        metavar="NAME=LOW:HIGH",
        label="Known ranges of confounds",
    )
    n_components: tuple[int, ...] = option(
        (),
        "Number of factors; several, or a range such as 2-16, are compared.",
        take=counts,
        metavar="K",
        usual="auto",
        label="Number of factors",
    )
    beta: tuple[float, ...] = option(
        (),
        "Penalty; several are compared. If none is given, more follow while the strongest is best.",
        take=penalties,
        metavar="NUMBER",
        usual=" ".join(f"{beta:g}" for beta in BETAS),
        label="Penalty β",
    )
    n_meta: tuple[int, ...] = option(
        (),
        "Number of meta-factors; several, or a range, are compared.",
        take=counts,
        metavar="K",
        usual="auto",
    )
    meta_beta: tuple[float, ...] = option(
        (),
        "Penalty of the second stage.",
        take=lambda value: penalties(value, "meta_beta"),
        metavar="NUMBER",
        usual="auto",
    )
    rule: str = option("min", "How cross-validation chooses.", label="Rule of the choice")
    n_splits: int = option(10, "Number of folds of cross-validation.", label="Folds")
    n_repeats: int = option(1, "Number of repeats, each with new folds.", label="Repeats")
    thorough: bool = option(
        False,
        "Compare fits from two starts: for many factors or noisy answers; takes half as long again.",
        label="Two starts",
    )
    item_weight: str = option(
        "range",
        "How items of different ranges count: alike by range, by variance, or point for point.",
        kind=OneOf(("range", "variance", "none")),  # TOML has no None
        label="Weight of items",
    )
    intercept: bool = option(True, "Column of ones beside the confounds.", label="Intercept")
    missing_confounds: str = option(
        "error", "Refuse a missing confound, or use the sample mean.", label="Missing confounds"
    )
    smallest_category: int = option(
        20, "Fewest participants in a category of a confound; 1 allows all.", label="Smallest category"
    )
    n_init: int | str = option(
        "auto", "Number of starts; the best one is kept.", take=starts, metavar="NUMBER|auto", label="Starts"
    )
    penalty: str = option("l1", "Kind of penalty.", label="Kind of penalty")
    tol: float = option(1e-3, "Tolerance at which a fit counts as settled.", label="Tolerance")
    max_iter: int = option(500, "Maximum number of iterations.", label="Iterations")
    seed: int = option(0, "Seed of all random numbers.", label="Seed")
    jobs: int = option(
        1, "Processes; -1 uses all processors.", kind=Number(least=-1, whole=True), label="Processes"
    )
    engine: str = option(
        "local", "Where the iterations run: this machine's processors, a Dask cluster, or a GPU."
    )
    scheduler: str | None = option(
        None,
        "Scheduler of the Dask cluster, such as tcp://10.0.0.5:8786; for --engine dask.",
        take=one_text,
        metavar="ADDRESS",
    )
    consensus: bool = option(
        False, "Average the loadings over fits to resampled participants.", kind=Flag(), label="Consensus"
    )
    format: str = option("csv", "Format of the tables.", kind=OneOf(WRITABLE), label="Tables")
    report: bool = option(True, "Write report.html.", kind=Flag())
    figures: bool = option(
        True,
        "Also write the report's figures and tables as files for a paper.",
        kind=Flag(),
        label="Figures",
    )
    all_rules: bool = option(
        False,
        "Also show what seven rules of factor analysis say (seconds to minutes).",
        kind=Flag(),
        label="All rules",
    )
    names: tuple[str, ...] = option((), "Names of the factors, in their order.", take=texts)
    bootstrap: int = option(
        100,
        "Resamples behind the report's intervals.",
        kind=Number(least=0, whole=True),
        label="Resamples",
    )
    with_participants: bool = option(
        False,
        "Include the participants' scores in the report.",
        kind=Flag(),
        label="Participants in the report",
    )

    @property
    def searches(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return len(self.n_components) != 1 or len(self.beta) != 1

    @property
    def model_parameters(self) -> dict[str, Any]:
        """The parameters of `icqf.ICQF`, other than k and β and those that the data give."""
        return {
            "confound_ranges": {name: (low, high) for name, low, high in self.confound_ranges} or None,
            "item_weight": None if self.item_weight == "none" else self.item_weight,
            "intercept": self.intercept,
            "n_init": self.n_init,
            "penalty": self.penalty,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "missing_confounds": self.missing_confounds,
            "smallest_category": self.smallest_category,
        }


@dataclass(frozen=True)
class LongitudinalOptions(StudyOptions):
    """The options of a study of repeated visits: those of `StudyOptions`, and how visits become age bins.

    Parameters
    ----------
    age : str or None
        Column of ages or visits; None recognises it.
    bins : tuple
        Empty for automatic bins; else their number, their edges, or the visits in order.
    binning, within_bin, weigh_nonresponse
        As in `icqf.extensions.LongitudinalICQF`.
    smoothness : tuple of float
        Candidates for the smoothness; empty tries the usual ones.
    permutations : int
        Shuffles behind the test of change with age; 0 leaves it out.

    Examples
    --------
    >>> from icqf.workflow import LongitudinalOptions
    >>> LongitudinalOptions.of({"answers": "visits.csv", "age": "age", "bins": [5, 10, 21]}).bins
    (5.0, 10.0, 21.0)
    """

    age: str | None = option(
        None, "Column of ages or visits.", take=str, metavar="COLUMN", usual="recognised by name"
    )
    bins: tuple[Any, ...] = option(
        (),
        "Edges of the age bins, their number, or the visits in order.",
        take=bins_of,
        metavar="EDGE",
        usual="auto",
    )
    binning: str = option("quantile", "Bins with as many visits each, or equally wide.")
    within_bin: str = option("mean", "What becomes of several visits of one participant in one bin.")
    smoothness: tuple[float, ...] = option(
        (),
        "How strongly neighbouring bins are drawn together; several are compared.",
        take=lambda value: penalties(value, "smoothness"),
        metavar="NUMBER",
        usual="0 1 10 100 1000",
    )
    weigh_nonresponse: bool = option(False, "Let participants with open answers count as much as the others.")
    permutations: int = option(
        199,
        "Shuffles behind the test of change with age; 0 leaves it out.",
        kind=Number(least=0, whole=True),
    )
    beta: tuple[float, ...] = option(
        (), "Penalty; several are compared.", take=penalties, metavar="NUMBER", usual="0.01 0.1 0.5"
    )
    n_splits: int = option(5, "Number of folds of cross-validation.")
    rule: str = option("min", "How cross-validation chooses.", kind=OneOf(("min", "one_se")))

    @property
    def searches(self) -> bool:
        return super().searches or len(self.smoothness) != 1


Options = TypeVar("Options", bound=StudyOptions)


def as_options(
    given: StudyFiles | str | os.PathLike[str], more: Mapping[str, Any], kind: type[Options]
) -> Options:
    """The options, with more of them by name; or those of a table of answers, all by name."""
    if isinstance(given, kind) and not more:
        return given
    known = given.to_dict() if isinstance(given, StudyFiles) else {"answers": Path(given)}
    return kind.of({**known, **{name: value for name, value in more.items() if value is not None}})


def read_config(path: str | os.PathLike[str], kind: type[StudyOptions] | None = None) -> dict[str, Any]:
    """Read the options in a TOML file, its relative paths counted from the folder the file is in.

    `kind` is that of the command; its options are those that the file may hold.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    except RecursionError:
        raise InputError(f"{path.name}: this is not valid TOML (nested too deeply).") from None
    for name in FILES:
        if isinstance(values.get(name), str):
            try:
                place = os.path.normpath(path.parent / Path(values[name]).expanduser())
            except RuntimeError:
                place = ""
            if not place or "\0" in place:
                raise InputError(
                    f"{path.name}: {name} is {short(values[name])!r}, which is not a path on this "
                    "computer. Write the path of the file."
                )
            values[name] = place
    (kind or StudyOptions).of({"answers": "-", **values}, where=path.name)
    return values
