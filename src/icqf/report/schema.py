"""What a report says, as one tree of plain values; HTML, Markdown and JSON are three views of it.

Sentences are part of the tree, so that all three say the same words. Shares are between 0 and 1. A number
that does not exist (the fit of an item that everyone answered alike) is NaN, and null in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

from icqf.report.psychometric_parts import Psychometrics

CLOSE = 0.8  # correlation of loadings from which two factors are counterparts


@dataclass(frozen=True)
class Bin:
    """One bar of a histogram: its label, and how many participants are in it.

    A number of participants so small that it might tell who they are is None, and so is its share; there are
    then fewer than `below`.
    """

    label: str
    n: int | None
    share: float | None
    below: int = 0

    @classmethod
    def of(cls, label: object, n: int, total: int, *, limit: int) -> Bin:
        """A bar that shows its number unless that is above 0 and below `limit`."""
        if 0 < n < limit:
            return cls(str(label), None, None, limit)
        return cls(str(label), int(n), int(n) / max(total, 1))


@dataclass(frozen=True)
class ConfoundSummary:
    """One confound of the sample: categories with their counts, or mean, spread and range."""

    name: str
    n_missing: int
    categories: tuple[Bin, ...] = ()
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ItemRow:
    """One item: what it asks, how it was answered, and how well the model describes it.

    `fit` is the share of its variance explained in this sample, `fit_hidden` the same for answers that the
    model had not seen, `fit_comparison` that of the factor analysis in this sample.
    """

    name: str
    wording: str
    subscale: str
    reverse: bool
    low: float
    high: float
    n_answered: int
    share_missing: float
    mean: float
    sd: float
    floor: float
    ceiling: float
    strongest: str
    explained: float
    fit: float
    fit_hidden: float | None = None
    fit_comparison: float | None = None


@dataclass(frozen=True)
class Sample:
    """Who answered what."""

    words: tuple[str, ...]
    source: str
    n_participants: int
    n_fitted: int
    n_items: int
    n_groups: int | None
    weighted: bool
    share_missing: float
    share_structural: float | None
    complete: float
    missing_by_participant: tuple[Bin, ...]
    confounds: tuple[ConfoundSummary, ...]
    subscales: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """One number of factors and penalty that was tried."""

    n_components: int
    beta: float
    error: float
    standard_error: float
    chosen: bool


@dataclass(frozen=True)
class Agreement:
    """How well the factors of two halves of the sample agree."""

    n_components: int
    agreement: float
    low: float
    high: float


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue of the answers beside that of unrelated answers."""

    factor: int
    observed: float
    unrelated: float


@dataclass(frozen=True)
class RuleRow:
    """What one rule for the number of factors says; no number where it could not be run."""

    rule: str
    n_components: int | None
    reason: str
    counts: str
    reference: str


@dataclass(frozen=True)
class Count:
    """How many factors there are, and how certain that is."""

    words: tuple[str, ...]
    n_components: int
    beta: float
    chosen_by: str
    candidates: tuple[Candidate, ...] = ()
    shares: tuple[tuple[int, float], ...] = ()
    halves: tuple[Agreement, ...] = ()
    parallel: int | None = None
    eigenvalues: tuple[Eigenvalue, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    rules_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loading:
    """How much a factor or confound moves one item: in points, as a share of its range, and an interval."""

    item: str
    value: float
    share: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FactorStability:
    """A factor when the sample is drawn again.

    `agreement` is the mean correlation of its loadings with those of the matching factor of each resample,
    `low` the fifth percentile; `top_kept` of its `n_top` top items are among the top ones of a resample.
    """

    agreement: float
    low: float
    n_top: int
    top_kept: float
    words: str


@dataclass(frozen=True)
class FactorReplication:
    """How likely an independent study of the same size finds a factor again, from resamples fitted afresh."""

    agreement: float
    low: float
    high: float
    chance: float
    fragile: bool
    words: str


@dataclass(frozen=True)
class Factor:
    """One factor: `key` is its number, `suggested` what its items suggest to call it."""

    key: str
    name: str
    suggested: str
    theme: str
    variance: float
    n_items: int
    loadings: tuple[Loading, ...]
    top: tuple[Loading, ...]
    stability: FactorStability | None = None
    replication: FactorReplication | None = None


@dataclass(frozen=True)
class Confound:
    """The answering pattern that goes with one confound column, and its share of the variance."""

    name: str
    words: str
    variance: float
    loadings: tuple[Loading, ...]
    top: tuple[Loading, ...]


@dataclass(frozen=True)
class ModelView:
    """One fitted model: the one the report is about, or another number of factors beside it.

    `variance`, the share of the answers' variance that it explains, is the sum over factors and confounds.
    """

    n_components: int
    beta: float
    variance: float
    converged: bool
    n_iter: int
    factors: tuple[Factor, ...]
    confounds: tuple[Confound, ...]


@dataclass(frozen=True)
class FactorLink:
    """A factor of one model and a factor of the next larger model that resembles it."""

    k: int
    factor: int
    next_k: int
    next_factor: int
    correlation: float


@dataclass(frozen=True)
class FactorScores:
    """How one factor's scores are distributed over the participants."""

    name: str
    mean: float
    median: float
    sd: float
    none: float
    present: float
    high: float
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class Scores:
    """The participants' scores, taken together."""

    threshold: float
    top: float
    n_scored: int
    factors: tuple[FactorScores, ...]
    n_present: tuple[Bin, ...]
    median_present: int
    several: float
    correlations: tuple[tuple[float, ...], ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Start:
    """A start of the fit: `agreement` is the lowest correlation of a kept factor with its counterpart."""

    name: str
    objective: float
    converged: bool
    agreement: float


@dataclass(frozen=True)
class FitQuality:
    """How well the model describes answers it was fitted to, and answers hidden from it.

    `r_squared` and `r_squared_hidden` say how much smaller its squared error is than that of the
    items' means; `no_structure` says that hidden answers are predicted no better than by these means, by more
    than one standard error. `doubtful` are the keys of factors without which another start describes the
    answers as well, and `n_averaged` is the number of fits whose loadings were averaged, 0 for a single fit.
    """

    r_squared: float
    r_squared_hidden: float | None
    n_splits: int | None
    converged: bool
    n_iter: int
    objective: float
    tol: float
    score_step: float
    loading_step: float
    trace: tuple[float, ...]
    starts: tuple[Start, ...]
    doubtful: tuple[str, ...] = ()
    n_averaged: int = 0
    no_structure: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A factor and its counterpart in the factor analysis."""

    factor: str
    other: str
    correlation: float


@dataclass(frozen=True)
class Comparison:
    """The same answers by factor analysis; `failed` is the reason why it could not be run."""

    method: str
    n_components: int
    failed: str = ""
    pairs: tuple[Pair, ...] = ()
    matrix: tuple[tuple[float, ...], ...] = ()
    r_squared: float | None = None
    r_squared_here: float | None = None
    negative: float | None = None
    small: float | None = None
    small_here: float | None = None
    words: tuple[str, ...] = ()

    @property
    def apart(self) -> tuple[str, ...]:
        """Names of the factors without a close counterpart."""
        return tuple(pair.factor for pair in self.pairs if pair.correlation < CLOSE)


@dataclass(frozen=True)
class Methods:
    """How it was done: a paragraph to paste, its references, settings, versions and the seed."""

    paragraph: str
    references: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    seed: str


@dataclass(frozen=True)
class Participant:
    """One participant's scores; only in the report when asked for."""

    id: str
    n_answered: int
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Analysed:
    """What was analysed: pairs of a heading and a text, and what is worth knowing about the ranges.

    A heading that is empty continues the one before.
    """

    lines: tuple[tuple[str, str], ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything a report says.

    `models` begins with the model the report is about; others are there for comparison. `bootstrap` is the
    number of resamples behind the intervals, 0 when there are none. `cautions` say what could be wrong;
    of them, `doubts` concern the answers as they were read, and `direction` the direction of items.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False), title="The demo")
    >>> report.sample.n_participants, len(report.models[0].factors)
    (600, 2)
    """

    title: str
    doubts: tuple[str, ...]
    direction: str
    analysed: Analysed
    sample: Sample
    items: tuple[ItemRow, ...]
    count: Count
    models: tuple[ModelView, ...]
    splits: tuple[FactorLink, ...]
    bootstrap: int
    bootstrap_words: str
    replication_words: str
    scores: Scores
    fit: FitQuality
    comparison: Comparison | None
    methods: Methods
    psychometrics: Psychometrics | None = None
    participants: tuple[Participant, ...] | None = None
    cautions: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    results: str = ""

    @property
    def model(self) -> ModelView:
        """The model the report is about."""
        return self.models[0]
