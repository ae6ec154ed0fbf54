"""The options of each command, as one record that can be stored in a TOML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from icqf.data.about import About
from icqf.data.settings import (
    ADAPTIVE_WIDTH,
    BETAS,
    FACTORIZATIONS,
    PARAMETERS,
    PREDICTORS,
    SAMPLE_SIZES,
    TRAINING_SHARES,
    Flag,
    Number,
    OneOf,
    Settings,
    bins_of,
    counts,
    counts_by_name,
    file,
    like,
    number_in,
    number_or_auto,
    number_or_path,
    one_text,
    option,
    options_in,
    parameter_error,
    parts_of,
    path_of,
    penalties,
    ranges_of,
    texts,
)
from icqf.errors import Advice, InputError, short
from icqf.io.formats import WRITABLE
from icqf.io.study_files import StudyFiles

SEED = "Seed of all random numbers."
JOBS = "Processes; -1 uses all processors where that saves time."
_ABOUT_JOBS = {"kind": Number(least=-1, whole=True), "label": "Processes"}


@dataclass(frozen=True)
class StudyOptions(StudyFiles):
    """The files of a study, the roles of their columns (`icqf.io.StudyFiles`), and how to factorize.

    Without candidates for the number of factors or the penalty, the program finds them; with one of each,
    nothing is searched.

    Parameters
    ----------
    answers, codebook, dictionary, participants, id, confounds, groups, weights, items, subscales, \
missing_codes, reverse, visit
        As in `icqf.io.StudyFiles`.
    **options
        See ``icqf fit --help``; `StudyOptions.of` accepts them as in a TOML file.

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
        "Penalty; several are compared. On auto, stronger penalties are tried until none improves.",
        take=penalties,
        metavar="NUMBER",
        usual=" ".join(f"{beta:g}" for beta in BETAS),
        label="Penalty β",
    )
    n_meta: tuple[int, ...] = option(
        (),
        "Number of meta-factors; several, or a range, are compared. Without one set, it may be 0.",
        take=counts,
        metavar="K",
        usual="auto",
        label="Number of meta-factors",
    )
    meta_beta: tuple[float, ...] = option(
        (),
        "Penalty of the second stage; several are compared.",
        take=lambda value: penalties(value, "meta_beta"),
        metavar="NUMBER",
        usual="0.01 0.05 0.1",
        label="Penalty of the second stage",
    )
    loading_beta: float | None = option(
        None,
        "Penalty of the loadings, if it is not that of the scores.",
        metavar="NUMBER",
        usual="that of --beta",
    )
    paper: bool = option(
        False,
        "Use the paper's settings, to reproduce it: ADMM, its stopping rule, one start, raw points, and all "
        "bounds in cross-validation (slow).",
        kind=Flag(),
    )
    rule: str = option("min", "Selection rule of cross-validation.", label="Selection rule")
    n_splits: int = option(10, "Number of folds of cross-validation.", label="Folds")
    n_repeats: int | Literal["auto"] = option(
        "auto",
        "Number of divisions into folds; auto: as many as it takes, for those still in the running.",
        take=lambda value: number_or_auto(value, "n_repeats"),
        metavar="NUMBER|auto",
        label="Divisions into folds",
    )
    thorough: bool = option(
        False,
        "Compare fits from two starts, for many factors or noisy answers; takes 50 % longer.",
        label="Two starts",
    )
    item_weight: str = option(
        "range",
        "Weights of items: equal after scaling by range or by variance, or none (raw points).",
        kind=OneOf(("range", "variance", "none")),  # TOML has no None
        label="Weight of items",
    )
    intercept: bool = option(True, "Include an intercept.", label="Intercept")
    missing_confounds: str = option(
        "error", "Refuse a missing confound, or use the sample mean.", label="Missing confounds"
    )
    smallest_category: int = option(
        20, "Fewest participants in a category of a confound; 1 allows all.", label="Smallest category"
    )
    n_init: int | str = option(
        "auto",
        "Number of starts; the best one is kept.",
        take=lambda value: number_or_auto(value, "n_init"),
        metavar="NUMBER|auto",
        label="Starts",
    )
    penalty: str = option("l1", "Kind of penalty.", label="Kind of penalty")
    tol: float = option(1e-3, "Tolerance at which a fit counts as converged.", label="Tolerance")
    max_iter: int = option(500, "Maximum number of iterations.", label="Iterations")
    seed: int = option(0, SEED, label="Seed")
    jobs: int = option(-1, JOBS, **_ABOUT_JOBS)
    engine: str = option(
        "local", "Where the iterations run: this computer's processors, a Dask cluster, or a GPU."
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
        True, "Also write the report's figures and tables as files for a paper.", kind=Flag(), label="Figures"
    )
    all_rules: bool = option(
        False,
        "Also apply seven rules of factor analysis (seconds to minutes).",
        kind=Flag(),
        label="All rules",
    )
    names: tuple[str, ...] = option((), "Names of the factors, in order.", take=texts, whole=True)
    bootstrap: int = option(
        100,
        "Number of resamples for the report's intervals.",
        kind=Number(least=0, whole=True),
        label="Resamples",
    )
    with_participants: bool = option(
        False,
        "Include the participants' scores in the report.",
        kind=Flag(),
        label="Participants in the report",
    )

    plan: Path | None = file(
        None, "Plan that icqf preregister froze: its options and codebook are used, deviations are reported."
    )
    deviation: tuple[str, ...] = option(
        (),
        "Deviations from the plan in words; 'confounds: sex was not recorded' gives the reason of a listed "
        "one.",
        take=texts,
        metavar="TEXT",
        whole=True,
    )

    @classmethod
    def of(cls, values: Mapping[str, Any], *, folder: Path | None = None, where: str = "") -> Self:
        """Make the options from plain values, after those of a preregistered plan."""
        if values.get("plan"):
            if cls is not StudyOptions:
                raise no_plan_here(where)
            values = _after_the_plan(values, folder or Path())
        elif values.get("deviation"):
            remedy = Advice("Name the plan with {plan}.")
            raise parameter_error("deviation", " is for a fit with a preregistered plan.", remedy=remedy)
        return super().of(values, folder=folder, where=where)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file that is read, including a BIDS sidecar and a preregistered plan."""
        return (*super().paths, *(() if self.plan is None else (self.plan,)))

    @property
    def searches(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return len(self.n_components) != 1 or len(self.beta) != 1

    @property
    def model_parameters(self) -> dict[str, Any]:
        """The parameters of `icqf.ICQF`, other than k and β and those derived from the data."""
        names = ("intercept", "n_init", "penalty", "tol", "max_iter", "loading_beta", "missing_confounds")
        return {name: getattr(self, name) for name in (*names, "smallest_category")} | {
            "confound_ranges": {name: (low, high) for name, low, high in self.confound_ranges} or None,
            "item_weight": None if self.item_weight == "none" else self.item_weight,
        }

    def parameters_without_paper(self, what: str) -> dict[str, Any]:
        """The same for an analysis that has neither the paper's settings nor two penalties."""
        for name in ("paper", "loading_beta"):
            if getattr(self, name):
                raise parameter_error(name, f" is not available for {what}; leave it out.")
        return {name: value for name, value in self.model_parameters.items() if name != "loading_beta"}


@dataclass(frozen=True)
class LongitudinalOptions(StudyOptions):
    """The options of a study of repeated visits: those of `StudyOptions`, and how visits become age bins."""

    age: str | None = option(
        None,
        "Column of ages or visits.",
        take=str,
        metavar="COLUMN",
        usual="recognised by name",
        label="Column of ages or visits",
    )
    bins: tuple[Any, ...] = option(
        (),
        "Edges of the age bins, their number, or the visits in order.",
        take=bins_of,
        metavar="EDGE",
        usual="auto",
        label="Age bins",
    )
    binning: str = option(
        "quantile", "Bins with equally many visits, or equally wide bins.", label="Bins of equal"
    )
    within_bin: str = option(
        "mean",
        "How several visits of a participant in one bin are combined.",
        label="Several visits in one bin",
    )
    smoothness: tuple[float, ...] = option(
        (),
        "Penalty on differences of loadings between neighbouring visits; inf: constant loadings.",
        take=lambda value: penalties(value, "smoothness"),
        metavar="NUMBER",
        usual="inf 100 10 1 0.1 0.01",
        label="Smoothness over visits",
    )
    weigh_nonresponse: bool = option(
        False,
        "Give participants with missing answers the same weight as others.",
        label="Equal weight despite missing answers",
    )
    permutations: int = option(
        999,
        "Number of permutations in the test whether loadings differ between visits; 0 omits the test.",
        kind=Number(least=0, whole=True),
        label="Permutations",
    )
    n_splits: int = option(5, "Number of folds of cross-validation.", label="Folds")

    @property
    def searches(self) -> bool:
        return super().searches or len(self.smoothness) != 1


@dataclass(frozen=True)
class MetaOptions(StudyOptions):
    """The options of ``icqf meta``: those of `StudyOptions`, for all instruments of a battery."""

    n_components: tuple[Any, ...] = like(
        StudyOptions,
        "n_components",
        help="Number of factors of the instruments, or of each by name, such as mood=2 sleep=3-5; several "
        "are compared.",
        take=counts_by_name,
        metavar="[NAME=]K",
    )
    compare: bool = option(
        True,
        "Compare with one flat factorization of all items, on hidden answers.",
        kind=Flag(),
        label="Compare with one flat model",
    )


@dataclass(frozen=True)
class PlanOptions(StudyOptions):
    """The options of ``icqf plan``: a model file, or a pilot study with its options, and which sizes."""

    sizes: tuple[int, ...] = option(
        SAMPLE_SIZES,
        "Numbers of participants to try.",
        kind=Number(least=1, whole=True),
        many=True,
        label="Numbers of participants",
    )
    repeats: int = option(
        20,
        "Pairs of studies of each size.",
        kind=Number(least=1, whole=True),
        label="Pairs of studies of each size",
    )

    OF_PLANNING: ClassVar[tuple[str, ...]] = ("answers", "sizes", "repeats", "seed", "jobs")

    @property
    def from_model(self) -> bool:
        """Whether studies are simulated from a model, its file or results, not subsamples of a pilot."""
        return self.answers.suffix.lower() == ".icqf" or (self.answers / "model.icqf").is_file()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `icqf.analyses.plan`, other than model and answers."""
        return {
            "sizes": self.sizes,
            "n_repeats": self.repeats,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }

    def shareable(self) -> dict[str, Any]:
        shared = super().shareable()
        return {name: shared[name] for name in self.OF_PLANNING} if self.from_model else shared


@dataclass(frozen=True)
class StabilityOptions(StudyOptions):
    """The options of ``icqf stability``: a study, and how it is repeatedly split."""

    labels: tuple[str, ...] = option(
        (),
        "Columns of diagnoses (1 and 0) to keep in proportion in all parts.",
        take=texts,
        metavar="COLUMN",
        label="Diagnoses, kept in proportion",
    )
    methods: tuple[str, ...] = option(
        FACTORIZATIONS,
        f"Methods to compare: {', '.join(FACTORIZATIONS)}.",
        kind=OneOf(FACTORIZATIONS),
        many=True,
        label="Methods",
    )
    n_components: tuple[int, ...] = like(
        StudyOptions,
        "n_components",
        help="Candidate numbers of factors, such as 2-16, or one fixed number. By default, those around the "
        "number suggested by parallel analysis.",
    )
    beta: tuple[float, ...] = like(StudyOptions, "beta", help="Candidate penalties.")
    sizes: tuple[float, ...] = option(
        TRAINING_SHARES,
        "Training sets, as shares of the development set.",
        kind=Number(above=0, most=0.8),
        many=True,
        metavar="SHARE",
        label="Sizes of the parts",
    )
    splits: int = option(
        3,
        "Number of random splits: a few for a first impression, 30 for a publication.",
        kind=Number(least=1, whole=True),
        label="Random splits",
    )


@dataclass(frozen=True, kw_only=True)
class DiagnosisOptions(StabilityOptions):
    """The options of ``icqf diagnosis``: those of `StabilityOptions`, and the diagnoses to predict."""

    labels: tuple[str, ...] = like(
        StabilityOptions,
        "labels",
        default=MISSING,
        help="Columns of diagnoses, coded 1 and 0; empty if unknown.",
        missing="No column of diagnoses is given.",
        label="Diagnoses",
    )
    methods: tuple[str, ...] = like(
        StabilityOptions,
        "methods",
        default=PREDICTORS,
        help=f"Methods to compare: {', '.join(PREDICTORS)}.",
        kind=OneOf(PREDICTORS),
    )


@dataclass(frozen=True, kw_only=True)
class ModelledOptions(Settings):
    """A model, a file of answers to its items, and how that file is read."""

    model: Path = file(
        MISSING, "The model file, or its results folder.", argument=True, missing="No model is given."
    )
    answers: Path = like(StudyFiles, "answers", label="Another file of answers")
    codebook: Path | None = like(
        StudyFiles, "codebook", help="Directions, missing codes and labels, instead of the model file's."
    )
    dictionary: Path | None = like(StudyFiles, "dictionary")
    participants: Path | None = like(StudyFiles, "participants")
    id: str | None = like(StudyFiles, "id", usual="that of the fit", label="Column of participant ids")
    missing_codes: tuple[float | str, ...] = like(
        StudyFiles,
        "missing_codes",
        help="Further values that mean no answer.",
        label="Further values that mean no answer",
    )
    visit: tuple[tuple[str, str], ...] = like(StudyFiles, "visit")
    doubled: str | None = like(StudyFiles, "doubled")
    without_id: str | None = like(StudyFiles, "without_id")
    not_asked: str = like(StudyFiles, "not_asked")
    header_row: int | None = like(StudyFiles, "header_row")
    sheet: str | None = like(StudyFiles, "sheet")
    long: tuple[str, ...] = like(StudyFiles, "long")

    @property
    def files(self) -> StudyFiles:
        """The files and column roles of the new answers, for `icqf.workflow.new_answers.read_for_model`."""
        own = vars(self)
        return StudyFiles(**{name: own[name] for name in options_in(StudyFiles) if name in own})


@dataclass(frozen=True)
class ScoreColumns:
    """What is written besides each score.

    Parameters
    ----------
    intervals : bool
        The ends of its interval, and its information.
    level : float
        Probability of the intervals.
    visit_column : str, optional
        Column of visits: one row per participant and visit.
    change : bool
        The change since a participant's first visit.

    Examples
    --------
    >>> from icqf.workflow import ScoreColumns
    >>> ScoreColumns(level=0.95).level
    0.95
    """

    intervals: bool = True
    level: float = 0.9
    visit_column: str | None = None
    change: bool = False

    def __post_init__(self) -> None:
        if self.change and self.visit_column is None:
            raise InputError(
                "A change is one between visits, and no column of visits is given.",
                code="no-visit-column",
                remedy=Advice("Add {visit_column=}.", visit_column="time"),
            )


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ModelledOptions):
    """The options of ``icqf score``."""

    intervals: bool = option(True, "Write intervals and information.", kind=Flag())
    level: float = option(0.9, "Probability of the intervals.", kind=Number(least=0.5, most=0.999))
    visit_column: str | None = option(
        None, "Column of visits: one row per participant and visit.", take=one_text, metavar="COLUMN"
    )
    change: bool = option(
        False, "Change since a participant's first visit: difference, interval, probability.", kind=Flag()
    )
    format: str | None = option(None, "", kind=OneOf(WRITABLE), usual="by the ending of --out")
    norms: Path | None = file(None, "Norms file of the model (icqf norms): adds percentiles and T-scores.")

    @property
    def columns(self) -> ScoreColumns:
        """What is written besides each score."""
        return ScoreColumns(self.intervals, self.level, self.visit_column, self.change)


@dataclass(frozen=True, kw_only=True)
class DescribeOptions(About):
    """The options of ``icqf describe``: a model file, and the fields of `icqf.data.About`."""

    model: Path = like(ModelledOptions, "model")
    about: Path | None = file(None, "TOML file with these fields.")


@dataclass(frozen=True, kw_only=True)
class NormsOptions(Settings):
    """The options of ``icqf norms``."""

    results: Path = file(
        MISSING, "The results folder, or a model file.", argument=True, missing="No results are given."
    )
    answers: Path | None = file(
        None, "Answers of the reference sample.", argument=True, label="Answers of another reference sample"
    )
    by: tuple[str, ...] = option(
        (),
        "Columns such as age and sex; without them, one norm for all.",
        take=texts,
        metavar="COLUMN",
        label="Separately by",
    )
    sample: str = option(
        "",
        "Who the reference sample is, in a few words.",
        take=one_text,
        metavar="TEXT",
        label="Who the reference sample is",
    )
    codebook: Path | None = like(ModelledOptions, "codebook")
    dictionary: Path | None = like(StudyFiles, "dictionary")
    participants: Path | None = like(StudyFiles, "participants")
    id: str | None = like(ModelledOptions, "id")
    missing_codes: tuple[float | str, ...] = like(ModelledOptions, "missing_codes")
    visit: tuple[tuple[str, str], ...] = like(StudyFiles, "visit")
    doubled: str | None = like(StudyFiles, "doubled")
    without_id: str | None = like(StudyFiles, "without_id")
    not_asked: str = like(StudyFiles, "not_asked")
    header_row: int | None = like(StudyFiles, "header_row")
    sheet: str | None = like(StudyFiles, "sheet")
    long: tuple[str, ...] = like(StudyFiles, "long")
    weights: str | None = like(StudyFiles, "weights", usual="those of the fit")

    @property
    def roles(self) -> dict[str, Any]:
        """Files and columns that were given, other than the answers."""
        own = vars(self)
        return {name: own[name] for name in options_in(StudyFiles) if name in own and name != "answers"}

    @property
    def files(self) -> StudyFiles:
        """The files and column roles of the reference sample in `answers`."""
        return StudyFiles(Path(self.answers or ""), **self.roles)


@dataclass(frozen=True, kw_only=True)
class CrosswalkOptions(Settings):
    """The options of ``icqf crosswalk``."""

    answers: Path = like(
        StudyFiles, "answers", help="The answers to both: a table, or a folder with one file for each."
    )
    from_: str = option(
        MISSING,
        "Questionnaire that new participants have answered: its name, codebook, or items ('bdi*').",
        take=one_text,
        metavar="NAME|FILE|PATTERN",
        missing="No questionnaire to start from is given.",
    )
    to: str = option(
        MISSING,
        "Questionnaire whose scores are predicted: its name, codebook, or items ('phq*').",
        take=one_text,
        metavar="NAME|FILE|PATTERN",
        missing="No questionnaire to predict is given.",
    )
    model: Path | None = file(
        None, "Model of the predicted questionnaire (icqf fit): its factors are predicted as well."
    )
    by: tuple[str, ...] = option(
        (),
        "Columns such as sex and age, in which predictions are compared.",
        take=texts,
        metavar="COLUMN",
    )
    codebook: Path | None = like(StudyFiles, "codebook")
    dictionary: Path | None = like(StudyFiles, "dictionary")
    participants: Path | None = like(StudyFiles, "participants")
    id: str | None = like(StudyFiles, "id")
    groups: str | None = like(StudyFiles, "groups")
    missing_codes: tuple[float | str, ...] = like(StudyFiles, "missing_codes")
    reverse: tuple[str, ...] = like(StudyFiles, "reverse")
    visit: tuple[tuple[str, str], ...] = like(StudyFiles, "visit")
    doubled: str | None = like(StudyFiles, "doubled")
    without_id: str | None = like(StudyFiles, "without_id")
    header_row: int | None = like(StudyFiles, "header_row")
    sheet: str | None = like(StudyFiles, "sheet")
    long: tuple[str, ...] = like(StudyFiles, "long")

    @property
    def study(self) -> StudyOptions:
        """The files and column roles, for the readers of a study or battery."""
        own = vars(self)
        return StudyOptions(**{name: own[name] for name in options_in(StudyFiles) if name in own})


@dataclass(frozen=True, kw_only=True)
class PersonOptions(ModelledOptions):
    """The options of ``icqf person``; `id` is the column of ids, and `who` are the ids."""

    who: tuple[str, ...] = option(
        (), "Participants, by their ids.", take=texts, metavar="ID", whole=True, label="Participant"
    )
    all: bool = option(False, "Write the pages of all participants.", kind=Flag())
    visit_column: str | None = option(
        None,
        "Column of visits, of which the last is shown, with the change since the one before.",
        take=one_text,
        metavar="COLUMN",
        usual="recognised by name or values",
        label="Column of visits",
    )
    norms: Path | None = like(
        ScoreOptions,
        "norms",
        help="Norms file of the model (icqf norms): adds percentiles.",
        label="Percentiles from norms",
    )
    informant: str = option(
        "",
        "Who filled in the form, such as mother, or the column that says so.",
        take=one_text,
        metavar="TEXT",
        label="Who filled in the form",
    )


@dataclass(frozen=True, kw_only=True)
class InvarianceOptions(ModelledOptions):
    """The options of ``icqf invariance``."""

    by: str = option(
        MISSING,
        "Column of groups.",
        take=one_text,
        metavar="COLUMN",
        missing="No column of groups is given.",
        label="Column of groups",
    )
    groups: str | None = like(
        StudyFiles,
        "groups",
        help="Column of families or classes, which are permuted whole.",
        label="Families or classes, permuted whole",
    )
    weights: str | None = like(StudyFiles, "weights")
    bands: int = option(
        8,
        "Bands of the propensity within which groups are permuted.",
        kind=PARAMETERS["n_bands"],
        label="Bands of the propensity",
    )
    permutations: int = option(
        999, "Number of permutations.", kind=PARAMETERS["n_permutations"], label="Permutations"
    )
    bootstrap: int = option(
        100,
        "Number of resamples of each group for the intervals.",
        kind=PARAMETERS["n_resamples"],
        label="Resamples",
    )
    seed: int = option(0, SEED, label="Seed")
    jobs: int = option(-1, JOBS, **_ABOUT_JOBS)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `icqf.analyses.invariance`, other than model, answers and groups."""
        return {
            "n_bands": self.bands,
            "n_permutations": self.permutations,
            "n_resamples": self.bootstrap,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


@dataclass(frozen=True, kw_only=True)
class ShortFormOptions(ModelledOptions):
    """The options of ``icqf shortform``."""

    max_items: int | None = option(
        None,
        "Length of the form.",
        usual="20, or half of the items if fewer than 40",
        label="Number of items",
    )
    correlation: float | None = option(
        None, "Sufficient mean correlation with the full form.", label="Sufficient correlation"
    )
    keep: tuple[str, ...] = option(
        (),
        "Items that must be included, by name or pattern.",
        take=texts,
        metavar="ITEM",
        label="Items that must be in",
    )
    drop: tuple[str, ...] = option(
        (), "Items that must be excluded.", take=texts, metavar="ITEM", label="Items that must be out"
    )
    minutes: float | Path | None = option(
        None,
        "Minutes an item takes, or a table: item, minutes.",
        take=number_or_path,
        metavar="NUMBER|FILE",
        file=True,
        label="Minutes per item",
    )
    max_minutes: float | None = option(
        None, "Maximum duration of the form in minutes.", label="Longest duration in minutes"
    )
    groups: str | None = like(
        StudyFiles,
        "groups",
        help="Column of families or sites, which are held out together.",
        label="Families or sites, kept together",
    )
    title: str = option(
        "Questionnaire", "Heading of the page to fill in.", take=one_text, label="Heading of the form"
    )
    adaptive_width: float = option(
        ADAPTIVE_WIDTH,
        "Width of every interval at which the page stops, if it asks one question at a time.",
        label="Width at which it stops asking",
    )
    seed: int = option(0, "Seed of the folds and simulated participants.", label="Seed")
    jobs: int = option(-1, JOBS, **_ABOUT_JOBS)


@dataclass(frozen=True)
class PoolOptions(Settings):
    """The options of ``icqf pool``: the model files of the sites."""

    models: tuple[Path, ...] = file(
        MISSING, "The model files.", argument=True, many=True, missing="No model files are given."
    )


@dataclass(frozen=True, kw_only=True)
class PreregistrationOptions(StudyOptions):
    """The options of ``icqf preregister``: those of ``icqf fit`` that are planned, without answers.

    Examples
    --------
    >>> from icqf.workflow import PreregistrationOptions
    >>> options = PreregistrationOptions.of({"codebook": "items.csv", "n_components": 5, "beta": 0.1})
    >>> options.planned["n_components"], options.planned["intercept"], options.planned["groups"]
    ([5], True, '')
    """

    answers: Path = file(Path("-"), "Not read: a plan is made before the answers are seen.")
    codebook: Path | None = like(
        StudyFiles, "codebook", default=MISSING, missing="No codebook is given: a plan names its items."
    )
    decisions: Path | None = file(None, "TOML file with the answers to the questions that --template writes.")

    @property
    def planned(self) -> dict[str, Any]:
        """The planned options as plain values; an empty text or list for none."""
        given, own = self.to_dict(), vars(self)
        return {name: given.get(name, "" if own[name] is None else []) for name in planned_names()}


# How files are laid out, how work is done, and how it is shown: no decisions about the analysis.
_NOT_PLANNED = (
    *("id", "header_row", "sheet", "long", "jobs", "engine", "scheduler", "format", "report", "figures"),
    *("with_participants", "names", "n_meta", "meta_beta", "deviation"),
)


def planned_names() -> list[str]:
    """The options of a fit that a preregistered plan contains: none that are files."""
    declared = options_in(StudyOptions).items()
    return [name for name, each in declared if not each.file and name not in _NOT_PLANNED]


def no_plan_here(where: str = "") -> InputError:
    """Return the error for a preregistered plan given to a command other than ``icqf fit``."""
    error = parameter_error("plan", " is for icqf fit and has no effect here; leave it out.")
    return error.at(where) if where else error


def _after_the_plan(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the options of a plan, with the given ones in their place; an empty text or list means none."""
    from icqf.io.preregistration import read_preregistration

    plan = read_preregistration(folder / path_of(values["plan"]))
    unknown = [name for name in plan.options if name not in planned_names()]
    if unknown:
        raise InputError(
            f"{plan.source}: the plan sets {unknown[0]!r}, which this version of icqf does not know.",
            code="newer-plan",
            remedy=f"Install icqf {plan.version}, with which the plan was made.",
        )
    try:
        StudyOptions.of({"answers": "-"} | {name: v for name, v in plan.options.items() if _is_set(v)})
    except InputError as error:
        raise error.at(plan.source) from None
    merged = {**plan.options, **values}
    return {name: value for name, value in merged.items() if name not in plan.options or _is_set(value)}


def _is_set(value: Any) -> bool:
    return value not in ("", [], (), {}, [""], ("",))


Options = TypeVar("Options", bound=StudyOptions)


def as_options(
    given: StudyFiles | str | os.PathLike[str], more: Mapping[str, Any], kind: type[Options]
) -> Options:
    """Return options updated by name; or, for a table of answers, its options by name."""
    if isinstance(given, kind) and not more:
        return given
    known = given.to_dict() if isinstance(given, StudyFiles) else {"answers": Path(given)}
    if isinstance(given, StudyOptions) and given.plan is not None:
        known = dict.fromkeys(planned_names(), "") | known
    return kind.of({**known, **{name: value for name, value in more.items() if value is not None}})


def read_config(path: str | os.PathLike[str], kind: type[Settings] = StudyOptions) -> dict[str, Any]:
    """Read the options in a TOML file; relative paths are relative to the folder of the file.

    `kind` is the record of the command, whose options the file may contain.
    """
    from icqf.io.readers.descriptions import read_toml

    path = Path(path)
    values = read_toml(path)
    if "preregistration" in values and "sha256" in values:
        raise InputError(
            f"{path.name}: this is a preregistered plan, not a file of options.",
            code="plan-as-config",
            remedy=Advice("Give it to icqf fit with {plan}."),
        )
    known = options_in(kind)
    for name, value in values.items():
        if name in known and known[name].file:
            parts = [_place(path, name, each) for each in parts_of(value)]
            values[name] = parts if isinstance(value, list) else parts[0]
    given = {each.name: "-" for each in fields(kind) if each.default is MISSING}
    kind.of({**given, **values}, where=path.name)
    return values


def _place(config: Path, name: str, text: Any) -> Any:
    """Return a path in a TOML file relative to the file's folder; a number is returned unchanged."""
    if not isinstance(text, str) or (name == "minutes" and not isinstance(number_in(text), str)):
        return text
    try:
        place = os.path.normpath(config.parent / Path(text).expanduser())
    except RuntimeError:
        place = ""
    if not place or "\0" in place:
        raise InputError(
            f"{config.name}: {name} is {short(text)!r}, which is not a valid path. Give the path of the file."
        )
    return place
