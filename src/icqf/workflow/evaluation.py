"""Compare methods on studies: the design of an experiment, and its page."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import pandas as pd
from joblib import effective_n_jobs

from icqf import __version__
from icqf.analyses.method_comparison import (
    ALPHA,
    FACTORS,
    METHODS,
    DiagnosticAUC,
    FactorAnalysisMethod,
    ICQFMethod,
    Method,
    Replication,
    Stability,
    bands,
    diagnostic_auc,
    stability,
)
from icqf.data.confounds import ConfoundEncoder
from icqf.data.settings import BETAS, FACTORIZATIONS, PREDICTORS, TRAINING_SHARES
from icqf.data.study import Study
from icqf.engines.progress import Progress, Stages
from icqf.errors import counted, joined, shown_p
from icqf.plotting import by_sample_size
from icqf.report.blocks import Block, Bullets, Grid, Picture, Prose, Section, Span
from icqf.report.document import Document, write_document
from icqf.workflow.fit import expected_seconds, run_provenance
from icqf.workflow.options import StabilityOptions
from icqf.workflow.results_folder import shared_folder


@dataclass(frozen=True)
class Design:
    """The design of an experiment; the defaults are the paper's.

    `names` are the methods to run, empty for all that suit the experiment; `parameters` are those of
    `icqf.ICQF`; the folder `out` also contains the journals of fits, which experiments share. `command` and
    `commit` are named on the page.
    """

    out: Path
    n_splits: int = 30
    sizes: tuple[float, ...] = TRAINING_SHARES
    n_components: tuple[int, ...] | Literal["auto"] = FACTORS
    betas: tuple[float, ...] = BETAS
    rule: str = "min"
    parameters: tuple[tuple[str, Any], ...] = ()
    n_folds: int = 10
    n_repeats: Literal["auto"] | int = 1
    random_state: int = 0
    n_jobs: int | None = None
    callback: Callable[[Progress], object] | None = None
    command: str = ""
    commit: str = ""
    names: tuple[str, ...] = ()
    quick: bool = False

    def quickly(self) -> Design:
        """Return a design with few splits, sizes and candidates, for a trial of minutes."""
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
        """Return those of the named methods that are run, with this design's candidates."""
        icqf = ICQFMethod(
            self.n_components,
            self.betas,
            self.n_folds,
            n_repeats=self.n_repeats,
            rule=self.rule,
            parameters=self.parameters,
        )
        methods: dict[str, Method] = METHODS | {
            "icqf": icqf,
            "l1-nmf": replace(icqf, bounded=False, name="l1-NMF"),
            "fa-promax": FactorAnalysisMethod(n_iter=5) if self.quick else METHODS["fa-promax"],
        }
        return tuple(methods[name] for name in names if name in (self.names or names))

    def run_parameters(self, study: str) -> dict[str, Any]:
        """Return the arguments for the functions of `icqf.analyses`."""
        return {
            "n_splits": self.n_splits,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
            "checkpoint": self.journal(study),
            "callback": self.callback,
        }

    def journal(self, study: str) -> Path:
        """Return the journal of a study's fits."""
        return self.out / f"fits-{study}{'-quick' if self.quick else ''}.journal"


Experiment = Callable[[Sequence[Study], Design], Path]


def evaluate_study(
    experiment: Experiment,
    study: Study,
    options: StabilityOptions,
    *,
    tool: str,
    out: Path,
    callback: Callable[[Progress], object] | None = None,
    **design: Any,
) -> Path:
    """Run an experiment, such as `stability_experiment`, on a study, and return its page.

    The page is written after the first split and again after more of them, so that there is something to read
    while the others are fitted, or if they are not. `tool` is the command; `design` has further fields of
    `Design`.
    """
    parameters = options.parameters_without_paper("a comparison of methods")
    # Checked once, for all participants: in a part of the study, a category may have few members.
    limit, ranges = parameters.pop("smallest_category"), parameters["confound_ranges"]
    ConfoundEncoder(ranges=ranges, smallest_category=limit).fit(study.questionnaire.confounds)
    stages = Stages(callback, {COMPARING: _expected_seconds(options, study)})
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
        callback=stages,
        **design,
    )
    stages.begin(COMPARING)
    started, clock = datetime.now(UTC), time.perf_counter()

    def provenance() -> dict[str, Any]:
        return run_provenance(options, started, time.perf_counter() - clock, study.files)

    with shared_folder(out, tool, provenance, inputs=study.files):
        for number in first_looks(options.splits):
            page = experiment([study], _with_splits(planned, number))
    return page


COMPARING = "Comparing methods"


def _expected_seconds(options: StabilityOptions, study: Study) -> float:
    """Return what all fits of all splits take on one processor."""
    n, m = study.questionnaire.answers.shape
    searches = len({"icqf", "l1-nmf"} & {*options.methods})
    once = sum(
        searches * next(iter(expected_seconds(options, round(0.8 * n * size), m).values()))
        + 0.15 * (len(options.methods) - searches)
        for size in (*options.sizes, 1.0)
    )
    return options.splits * once / min(effective_n_jobs(options.jobs), 8)


def first_looks(splits: int) -> list[int]:
    """Return after how many splits a page is written."""
    return [number for number in (1, 3, 10, 30, 100, 300) if number < splits] + [splits]


def _with_splits(design: Design, number: int) -> Design:
    """Return a design with so many splits, whose progress counts those of the whole design."""
    callback, times = design.callback, design.n_splits / number
    if callback is None:
        return replace(design, n_splits=number)

    def of_all(progress: Progress) -> None:
        callback(replace(progress, total=round(progress.total * times)))

    return replace(design, n_splits=number, callback=of_all)


Found = TypeVar("Found", bound=DiagnosticAUC | Stability)
WORDS = {"better": "ICQF better", "worse": "ICQF worse"}  # other verdicts are shown unchanged


def share(size: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * size:g} %"


def with_spread(mean: float, spread: float) -> str:
    """Return a mean with its standard deviation over splits, if there were several."""
    return f"{mean:.3f}" + (f" ({spread:.3f})" if spread == spread else "")


def prose(text: str) -> str:
    """Return a paragraph written over several lines of code as one line."""
    return " ".join(text.split())


def linked(text: str, *files: str) -> Prose:
    """Return a sentence that ends with links to files in the folder of the page."""
    links: list[str | Span] = []
    for file in files:
        links += [", " if links else "", Span(file, link=file)]
    return Prose([f"{text}: ", *links, "."])


def results_page(
    design: Design, name: str, title: str, setting: str, parts: Iterable[Block], *, lead: Iterable[str] = ()
) -> Path:
    """Write the page of an experiment as HTML and Markdown, and return the path of the Markdown.

    `setting` follows the command in the first paragraph, then `lead`; `parts` are sections, or blocks of a
    section called "Results". Empty paragraphs are left out.
    """
    quick = "This is a quick run with few splits, candidates and participants: a trial, not a result."
    what = prose(f"{setting} {quick * design.quick}")
    version = f"icqf {__version__}{f', commit {design.commit}' * bool(design.commit)}"
    first = Prose(["Made by ", Span(design.command, "code"), f" with {version}. {what}"])
    blocks = list(parts)
    loose = present(*(block for block in blocks if not isinstance(block, Section)))
    sections = [Section("Results", loose)] if loose else []
    sections += [block for block in blocks if isinstance(block, Section)]
    page = Document(title, [first, *(each for each in lead if each)], sections)
    return write_document(design.out / f"{name}.md", page, formats=(".md", ".html"))[0]


def present(*blocks: Block) -> list[Block]:
    """Return the blocks without empty paragraphs."""
    return [block for block in blocks if block]


def candidates(design: Design) -> str:
    """Return the candidates of cross-validation in words."""
    ks, betas = design.n_components, ", ".join(f"{beta:g}" for beta in design.betas)
    if ks == "auto":
        return f"k around the number that parallel analysis suggests, β from {betas}"
    whole = len(ks) > 2 and list(ks) == list(range(ks[0], ks[-1] + 1))
    factors = f"{ks[0]} to {ks[-1]}" if whole else ", ".join(map(str, ks))
    return f"k from {factors}, β from {betas}"


def how_chosen(design: Design, *, joined: str = ", ") -> str:
    """Return how the methods choose their number of factors."""
    runs = design.names or FACTORIZATIONS
    crossed = [title for name, title in (("icqf", "ICQF"), ("l1-nmf", "ℓ1-NMF")) if name in runs]
    parts = [f"k and β by blockwise cross-validation ({', '.join(crossed)}; {candidates(design)})"] * bool(
        crossed
    )
    parts += [
        "k by parallel analysis on common factors, which takes more factors than Horn's on principal "
        "components (FA-promax)"
    ] * ("fa-promax" in runs)
    parts += ["k of ICQF in the same participants (FA-promax same k)"] * ("fa-promax-same-k" in runs)
    return joined.join(parts)


def about_tests(design: Design, what: str = "this sample") -> str:
    """Return how methods are compared; empty for a single method or split."""
    if len(design.names) == 1 or design.n_splits == 1:
        return ""
    return (
        "Tests are one-sided Wilcoxon signed-rank tests over splits with a false discovery rate of 0.01; "
        f"splits of one study share participants, so a verdict is about {what}."
        + " Fewer than 7 splits are too few for them; for a publication, use 30."
        * (design.n_splits < 7)
    )


def in_each_split(design: Design) -> str:
    """Return the beginning of a sentence about splits."""
    return "In one split" if design.n_splits == 1 else f"In each of {design.n_splits} splits"


def about_simulations(studies: Iterable[Study]) -> str:
    """Return a caution about simulated studies, if there are any."""
    if all(study.truth is None for study in studies):
        return ""
    return prose(
        """Note that the simulated studies have non-negative loadings, grouped by subscale, and scores between
        0 and 1: the structure that ICQF assumes, and that subscale sums know in advance."""
    )


def in_short(verdicts: Iterable[tuple[str, str]]) -> Section:
    """Return a summary with one line per study."""
    lines = [Prose([Span(f"{title}.", "strong"), f" {text}"]) for title, text in verdicts]
    return Section("Summary", [Bullets(lines)])


def on_each_study(
    studies: Sequence[Study],
    design: Design,
    work: Callable[[Study], Found],
    section: Callable[[Study, Found, Path], list[Block]],
    *,
    name: str,
    title: str,
    setting: str,
    measure: str,
) -> Path:
    """Run an experiment on each study and write its page: methods, verdicts, and one section per study.

    `section` receives the path for the study's tables and figures, without an ending.
    """
    design.out.mkdir(parents=True, exist_ok=True)
    sections, verdicts = [], []
    for study in studies:
        found = work(study)
        base, tests = design.out / f"{name}-{study.name}", tests_of(found)
        tests.to_csv(f"{base}-tests.csv", index=False, float_format="%.6g")
        verdicts.append((study.title, verdict(tests, measure)))
        parts = present(
            " ".join(study.notes),
            *section(study, found, base),
            failures_words(found.failures),
            linked("All runs", f"{base.name}.csv"),
        )
        sections.append(Section(study.described, parts))
    lead = [about_simulations(studies)]
    return results_page(design, name, title, setting, [in_short(verdicts), *sections], lead=lead)


def wide(caption: str, summary: pd.DataFrame, cell: Callable[[Any], str]) -> Grid:
    """Return a table of methods by sizes; `cell` turns a row of the summary into text."""
    sizes = list(dict.fromkeys(summary["size"]))
    lines = []
    for name, mine in summary.set_index("size").groupby("method", sort=False):
        lines.append([str(name), *(cell(mine.loc[size]) if size in mine.index else "" for size in sizes)])
    titles = [share(size) if isinstance(size, float) else str(size) for size in sizes]
    return Grid(caption, ["method", *titles], lines)


def tests_of(found: DiagnosticAUC | Stability | Replication) -> pd.DataFrame:
    """Return the tests of ICQF against the other methods; empty if ICQF was not run."""
    if "ICQF" in set(found.table["method"]):
        return found.tests()
    return pd.DataFrame(columns=["size", "against", "difference", "q_better", "q_worse", "verdict"])


def table_of_tests(tests: pd.DataFrame) -> Block:
    """Return the table of differences with adjusted p-values; empty if there are none."""
    if tests.empty:
        return ""
    lines = [
        [
            share(row["size"]),
            row["against"],
            f"{row['difference']:+.3f}",
            shown_p(row["q_better"], ALPHA),
            shown_p(row["q_worse"], ALPHA),
            WORDS.get(row["verdict"], row["verdict"]),
        ]
        for row in tests.to_dict("records")
    ]
    head = ["training set", "against", "mean difference", "q (ICQF better)", "q (ICQF worse)", "verdict"]
    return Grid("ICQF against the other methods", head, lines)


def verdict(tests: pd.DataFrame, what: str) -> str:
    """Return in words where ICQF is better, the same or worse, and by how much.

    Examples
    --------
    >>> rows = {"size": [0.8, 0.2], "against": "FA", "difference": [0.0123, 0.02], "verdict": "better"}
    >>> verdict(pd.DataFrame(rows), "the area")
    'The area is better with ICQF than with FA (at 80 %, 20 %; by 0.012–0.020).'
    """
    if tests.empty:
        return "There is nothing to compare ICQF with."
    sentences = []
    for word, phrase in (
        ("better", f"{what} is better with ICQF than with"),
        ("no difference", "no difference was found from"),
        ("too few splits", "the splits are too few to test ICQF against"),
        ("worse", f"{what} is worse with ICQF than with"),
    ):
        found = tests[tests["verdict"] == word].groupby("against", sort=False)
        places = [_place(str(other), part, sized=tests["size"].nunique() > 1) for other, part in found]
        if places:
            sentences.append(f"{phrase} {joined(places)}")
    text = "; ".join(sentences)
    return text[:1].upper() + text[1:] + "."


def _place(other: str, part: pd.DataFrame, *, sized: bool) -> str:
    details = [f"at {', '.join(map(share, part['size']))}"] if sized else []
    if part["verdict"].iloc[0] in WORDS:
        amounts = sorted({f"{abs(value):.3f}" for value in part["difference"]})
        details.append(f"by {'–'.join(dict.fromkeys([amounts[0], amounts[-1]]))}")
    return f"{other} ({'; '.join(details)})" if details else other


def chosen_counts(table: pd.DataFrame, column: str = "n_components") -> pd.DataFrame:
    """Return median, minimum and maximum of the chosen values by method and size."""
    one = table.drop_duplicates(["split", "size", "method"])
    counts = one.groupby(["method", "size"], sort=False)[column].agg(["median", "min", "max"])
    return counts.reset_index()


def count_cell(row: Any) -> str:
    """Return a median with its range."""
    if row["min"] == row["max"]:
        return f"{row['median']:g}"
    return f"{row['median']:g} ({row['min']:g}–{row['max']:g})"


def failures_words(failures: Sequence[str]) -> str:
    """Return what could not be fitted, if anything."""
    if not failures:
        return ""
    number = "One fit was" if len(failures) == 1 else f"{len(failures)} fits were"
    return f"{number} not possible and left out: {failures[0]}{' (the first)' * (len(failures) > 1)}"


Published = Mapping[str, Mapping[str, Mapping[float, float]]]


def stability_experiment(
    studies: Sequence[Study], design: Design, *, published: Published = MappingProxyType({})
) -> Path:
    """Run the experiment on each study, and write tables, figures and the page ``stability.md``.

    `published` has a paper's correlations by study, method and size.
    """
    return on_each_study(
        studies,
        design,
        lambda study: stability(
            study.questionnaire,
            labels=study.labels,
            methods=design.methods(FACTORIZATIONS),
            sizes=design.sizes,
            truth=study.truth,
            **design.run_parameters(study.name),
        ),
        partial(_stability_section, published=published),
        name="stability",
        title="Stability: do smaller samples give the same factors?",
        setting=_stability_setting(design),
        measure="the agreement",
    )


def _stability_setting(design: Design) -> str:
    return f"""{in_each_split(design)}, every method is fitted to the whole development set (80
    % of the participants) and to parts of it ({", ".join(share(size) for size in design.sizes)}), choosing
    its number of factors each time: {how_chosen(design)}. Loadings of a part are matched with those of
    the whole, greedily by Pearson's correlation over min(k, k′) pairs as in the paper; also shown are the
    assignment with the largest sum of correlations, and Tucker's congruence. Matching over min(k, k′)
    favours methods that find fewer factors, so compare the numbers of factors too. {about_tests(design)}"""


def _stability_section(study: Study, result: Stability, base: Path, *, published: Published) -> list[Block]:
    summary = result.summary()
    result.table.to_csv(f"{base}.csv", index=False, float_format="%.6g")
    label = "mean correlation of loadings"
    ax: Any = by_sample_size(bands(result.table, "pearson"), "pearson", label=label)
    ax.set_xlabel("part, as a share of the development set")
    ax.set_title(study.title, loc="left")
    paper = published.get(study.name, {})

    def greedy(row: Any) -> str:
        theirs = paper.get(row["method"], {}).get(float(row.name))
        text = with_spread(row["pearson"], row["pearson_spread"])
        return text + (f" [{theirs:.2f}]" if theirs is not None else "")

    caption = "Mean correlation of matched loadings, greedy (standard deviation over splits)"
    parts: list[Block] = [
        wide(f"{caption}; in square brackets the paper's Table 2" if paper else caption, summary, greedy),
        Picture(base.name, ax.figure, "Agreement against the size of the sample"),
        table_of_tests(tests_of(result)),
        wide(
            "With the best assignment / by Tucker's congruence",
            summary,
            lambda row: f"{row['pearson_optimal']:.3f} / {row['congruence']:.3f}",
        ),
        _counts(result),
    ]
    if study.truth is not None:
        parts += [
            wide(
                "Correlation with the true loadings of the simulation",
                summary,
                lambda row: with_spread(row["truth"], row["truth_spread"]),
            ),
            _closest(summary),
        ]
    return parts


def _closest(summary: pd.DataFrame) -> str:
    best = summary.loc[summary.groupby("size", sort=False)["truth"].idxmax()]
    places = [
        f"{method} at {', '.join(share(size) for size in part['size'])}"
        for method, part in best.groupby("method", sort=False)
    ]
    return f"Closest to the truth: {'; '.join(places)}."


def _counts(result: Stability) -> Grid:
    whole = result.table.assign(size="whole").rename(columns={"k_full": "n_components"})
    parts = result.table.rename(columns={"k": "n_components"})
    counts = pd.concat([chosen_counts(whole), chosen_counts(parts)])
    caption = "Number of factors in the parts, median and range over splits (first: whole development set)"
    return wide(caption, counts, count_cell)


def diagnosis(
    studies: Sequence[Study], design: Design, *, published: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Run the experiment on each study, and write tables, figures and the page ``diagnosis.md``.

    `published` has a sentence for each study with the numbers of factors that a paper reports.
    """
    labels = {study.name: study.known_labels for study in studies}  # checked before anything is written
    return on_each_study(
        studies,
        design,
        lambda study: diagnostic_auc(
            study.questionnaire,
            labels[study.name],
            methods=design.methods(METHODS),
            sizes=design.sizes,
            **design.run_parameters(study.name),
        ),
        partial(_diagnosis_section, sizes=design.sizes, published=published),
        name="diagnosis",
        title="Diagnosis: how well scores predict as samples get smaller",
        setting=_diagnosis_setting(design),
        measure="the area",
    )


def _diagnosis_setting(design: Design) -> str:
    without_items = design.names and "items" not in design.names
    all_items = "" if without_items else "“All items” uses the answers themselves."
    splits = "One split" if design.n_splits == 1 else f"{design.n_splits} splits"
    chosen = how_chosen(design, joined=" and ") or "if there are any"
    return f"""{splits} of each study into development and held-out participants (80/20, with confounds and
    labels in proportion); a fifth of the development set for validation; training sets of
    {", ".join(share(size) for size in design.sizes)} of the development set. Factors are learned from the
    training participants only, {chosen}; validation and held-out participants are scored with fixed
    loadings. For each label, a logistic regression (ℓ2, balanced classes, standardised scores) is tuned on
    the validation participants and evaluated on the held-out ones, the same for every method and size.
    {all_items} {about_tests(design)}"""


def _diagnosis_section(
    study: Study, result: DiagnosticAUC, base: Path, *, sizes: Sequence[float], published: Mapping[str, str]
) -> list[Block]:
    summary, both = result.summary(), (max(sizes), min(sizes))
    result.table.to_csv(f"{base}.csv", index=False, float_format="%.4g")
    ax: Any = by_sample_size(summary, "auc", label="mean AUC")
    ax.set_xlabel("training set, as a share of the development set")
    ax.set_title(study.title, loc="left")

    def area(row: Any) -> str:
        return f"{row['auc']:.3f} ({row['low']:.3f}–{row['high']:.3f})"

    without_factors = [METHODS[name].name for name in PREDICTORS if name not in FACTORIZATIONS]
    counts = chosen_counts(result.table[~result.table["method"].isin(without_factors)])
    labels = counted(result.table["label"].nunique(), "label")
    return [
        wide(
            f"Area under the ROC curve, mean over {labels}, with the 95 % interval of its mean over splits",
            summary,
            area,
        ),
        Picture(base.name, ax.figure, "AUC against the size of the training set"),
        table_of_tests(tests_of(result)),
        published.get(study.name, ""),
        wide("Number of factors chosen, median and range over splits", counts, count_cell),
        wide(
            "Penalty β chosen", chosen_counts(result.table[result.table["beta"].notna()], "beta"), count_cell
        ),
        _by_label(result, both),
        _label_words(result, base),
    ]


def _label_words(result: DiagnosticAUC, base: Path) -> Block:
    if tests_of(result).empty:
        return ""
    tests = result.tests(each_label=True)
    tests.to_csv(f"{base}-label-tests.csv", index=False, float_format="%.4g")
    lines = []
    for other, part in tests.groupby("against", sort=False):
        better, worse = ((part["verdict"] == word).sum() for word in ("better", "worse"))
        lines.append(f"{other}: better in {better}, worse in {worse} of {len(part)}")
    return Prose(
        [
            "For each label and size, with the false discovery rate over all of these tests, ICQF compared "
            f"with {'; '.join(lines)} (",
            Span("tests", link=f"{base.name}-label-tests.csv"),
            ").",
        ]
    )


def _by_label(result: DiagnosticAUC, sizes: Sequence[float]) -> Grid:
    areas = result.by_label()
    methods = list(dict.fromkeys(result.table["method"]))
    columns = [(size, method) for size in sizes for method in methods if (size, method) in areas]
    lines = [[str(label), *(f"{areas.loc[label, at]:.2f}" for at in columns)] for label in areas.index]
    caption = f"Mean area for each label, trained on {share(sizes[0])} and on {share(sizes[1])}"
    return Grid(caption, ["label", *(f"{method}, {share(size)}" for size, method in columns)], lines)
