"""``icqf reproduce``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.job import job, job_options, typed
from icqf.cli.parsing import ManyCommand, ManyOption
from icqf.cli.terminal import echo
from icqf.data.settings import PREDICTORS

if TYPE_CHECKING:
    import pandas as pd

    from icqf.data.study import Study
    from icqf.workflow.evaluation import Design

FILE = click.Path(path_type=Path)
STUDIES = ("hbn", "abcd", "help", "phq9", "bfi", "msq")
Command = Callable[..., Any]

JOBS = click.option("--jobs", type=int, help="Processes to use.")
QUICK = click.option("--quick", is_flag=True, help="Few splits, candidates and participants: minutes.")
SEED = click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), help="Seed of everything random.")
GROUND = click.option(
    "--ground",
    "grounds",
    cls=ManyOption,
    metavar="NAME",
    help="Only these studies, such as bfi; all public and simulated ones by default.",
)


@click.group(
    "reproduce",
    short_help="Repeat an experiment of the paper.",
    epilog="""\b
Examples:
  icqf reproduce table1 --jobs 2
  icqf reproduce diagnosis --study hbn --jobs 2
  icqf reproduce diagnosis --study hbn --hbn CBCL.csv Demos.csv Diagnosis.csv --jobs 2
  icqf reproduce replication --quick""",
)
def command() -> None:
    """Repeat an experiment of the paper; results are tables, figures and a page of text.

    table1 uses synthetic questionnaires. The others use studies: hbn and abcd are simulated unless you give
    the files of the real ones, which are available on application; help, phq9, bfi and msq are public and
    come with other packages. Finished fits are stored in the results folder, so that an interrupted run
    continues.
    """


def _experiment(
    name: str, short_help: str, *options: Command, out: str = "reproduced", epilog: str | None = None
) -> Callable[[Command], click.Command]:
    """Add an experiment: a command with these options and those of a job."""
    usual = job_options(out, without=["force", "dry_run"])

    def decorate(work: Command) -> click.Command:
        for add in reversed((*options, usual)):
            work = add(work)
        return command.command(
            name,
            short_help=short_help,
            cls=ManyCommand,
            context_settings={"show_default": True},
            epilog=epilog,
        )(click.pass_context(work))

    return decorate


def _run(
    ctx: click.Context,
    options: dict[str, Any],
    work: Callable[[Design], Path],
    *,
    what: str = "Experiment",
    unit: str = "fits",
    parts: Iterable[str] | None = None,
) -> None:
    """Run an experiment, record what its page was made with, and print the page.

    `parts` are the studies or statements that were run, if these have a table, and so a record, of their own.
    """
    from icqf.workflow.evaluation import Design
    from icqf_experiments.made_with import commit, record

    with job(ctx, options["out"], what=what, unit=unit, journal=False, folder=True) as meter:
        design = Design(
            options["out"],
            n_splits=options.get("splits", 1),
            random_state=options.get("seed", 0),
            n_jobs=options.get("jobs"),
            names=tuple(options.get("methods", ())),
            parameters=(("engine", options["engine"]),) if options.get("engine", "local") != "local" else (),
            callback=meter,
            command=typed(ctx),
            commit=commit(),
        )
        page = work(design.quickly() if options.get("quick") else design)
        made = [page.stem] if parts is None else [f"{page.stem}-{part}" for part in parts]
        for table in made:
            record(design.out, table, command=design.command, made_with=design.commit)
    if not options["quiet"]:
        echo(page.read_text(encoding="utf-8"))
        echo(f"Written to {options['out']}: {page.name}, tables and figures.", err=True)


def _known(names: Sequence[str], choices: Any, what: str) -> None:
    """Refuse a name that is not among the choices."""
    from icqf.errors import InputError, did_you_mean

    for name in names:
        if name not in choices:
            raise InputError(f"There is no {what} {name!r}.{did_you_mean(name, choices)}")


@_experiment(
    "table1",
    "Which scheme finds the number of factors (Table 1).",
    click.option(
        "--datasets", default=30, type=click.IntRange(1), help="Synthetic data sets for each noise."
    ),
    click.option(
        "--noise",
        cls=ManyOption,
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        default=(0.1, 0.2, 0.3, 0.4, 0.5),
        help="Shares of noisy answers.",
    ),
    click.option("--factors", default=10, type=click.IntRange(2), help="True number of factors."),
    click.option("--missing", default=0.0, type=click.FloatRange(0, 0.9), help="Share of missing answers."),
    click.option("--confounds", is_flag=True, help="Let age and sex influence some items."),
    click.option("--thorough", is_flag=True, help="Cross-validate fits from two starts."),
    click.option("--paper", is_flag=True, help="Fit ICQF as the authors' program does (ICQF.paper)."),
    click.option("--scheme", "schemes", multiple=True, help='Only these rows, such as "ICQF (BCV)".'),
    JOBS,
    out="table1",
    epilog="""\b
Example:
  icqf reproduce table1 --datasets 30 --noise 0.1 0.3 --jobs 2 --out table1""",
)
def table1_command(ctx: click.Context, **options: Any) -> None:
    """Which scheme finds the number of factors: all eleven rows, with the paper's numbers."""
    from icqf_experiments import table1

    _known(options["schemes"], table1.PAPER, "scheme")
    table_design = table1.Table1Design(
        datasets=options["datasets"],
        noise=tuple(options["noise"]),
        k=options["factors"],
        missing=options["missing"],
        confounded=options["confounds"],
        thorough=options["thorough"],
        paper=options["paper"],
        rows=options["schemes"] or tuple(table1.PAPER),
    )

    def work(design: Design) -> Path:
        design.out.mkdir(parents=True, exist_ok=True)
        journal = design.out / "table1.journal"
        how: dict[str, Any] = {"n_jobs": design.n_jobs, "checkpoint": journal, "callback": design.callback}
        return table1.table1_page(table1.table1(table_design, **how), table_design, design)

    _run(ctx, options, work)


# --- on whole studies -------------------------------------------------------------------------------------


def _study_options(default: Sequence[str]) -> list[Command]:
    return [
        click.option(
            "--study",
            "studies",
            cls=ManyOption,
            metavar="NAME",
            type=click.Choice(STUDIES),
            default=tuple(default),
            help=f"Studies: {', '.join(STUDIES)}.",
        ),
        click.option(
            "--hbn", cls=ManyOption, metavar="FILE", type=FILE, help="The real HBN: its CSV exports."
        ),
        click.option(
            "--abcd", cls=ManyOption, metavar="FILE", type=FILE, help="The real ABCD: its text files."
        ),
        click.option(
            "--methods",
            cls=ManyOption,
            metavar="NAME",
            type=click.Choice(PREDICTORS),
            help="Only these methods.  [default: those of the experiment]",
        ),
        QUICK,
        click.option(
            "--engine",
            type=click.Choice(("local", "torch")),
            default="local",
            help="Where ICQF and ℓ1-NMF are fitted: this computer's processors, or a GPU.",
        ),
        click.option("--splits", default=30, type=click.IntRange(1), help="Number of random splits."),
        SEED,
        JOBS,
    ]


def _on_studies(
    ctx: click.Context,
    options: dict[str, Any],
    work: Callable[[list[Study], Design], Path],
    *,
    apart: bool = True,
) -> None:
    """Load the studies and run an experiment on them, on each of them apart or on all together."""
    from icqf_experiments.studies import QUICK_PARTICIPANTS, load_study

    files = {"hbn": options["hbn"], "abcd": options["abcd"]}
    for name, paths in files.items():
        if paths and name not in options["studies"]:
            raise click.UsageError(f"--{name} gives files, but --study does not include {name}.", ctx)
    most = QUICK_PARTICIPANTS if options["quick"] else None
    studies = [load_study(name, files=files.get(name, ()), most=most) for name in options["studies"]]
    _run(ctx, options, partial(work, studies), parts=options["studies"] if apart else None)


@_experiment("loadings", "Loadings of the methods side by side (experiment 1).", *_study_options(["hbn"]))
def loadings_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 1: loadings of ICQF, ℓ1-NMF and factor analysis side by side, with their chosen k.

    Factor analysis is shown with its own number of factors, and with that of ICQF.
    """
    from icqf_experiments.loadings import loadings

    _on_studies(ctx, options, loadings)


@_experiment("diagnosis", "How well scores predict diagnoses (experiment 2).", *_study_options(["hbn"]))
def diagnosis_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 2: how well scores predict diagnoses as training sets get smaller."""
    from icqf.workflow.evaluation import diagnosis
    from icqf_experiments.published import DIAGNOSIS

    _on_studies(ctx, options, partial(diagnosis, published=DIAGNOSIS))


@_experiment(
    "stability", "Whether smaller samples give the same factors (experiment 3).", *_study_options(["hbn"])
)
def stability_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 3: do smaller samples give the same factors? The first rows of the paper's Table 2."""
    from icqf.workflow.evaluation import stability_experiment
    from icqf_experiments.published import STABILITY

    _on_studies(ctx, options, partial(stability_experiment, published=STABILITY))


@_experiment(
    "replication",
    "Whether two studies give the same factors (experiment 3).",
    *_study_options(["hbn", "abcd"]),
)
def replication_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 3: do two studies give the same factors? The last row of the paper's Table 2."""
    from icqf_experiments.replication import replication_experiment

    if len(options["studies"]) != 2:
        raise click.UsageError("Give two studies to compare.", ctx)
    _on_studies(ctx, options, replication_experiment, apart=False)


@_experiment(
    "questionnaires",
    "The paper's table of 21 questionnaires (appendix).",
    click.option(
        "--hbn",
        cls=ManyOption,
        metavar="FILE",
        type=FILE,
        help="Exports of HBN; questionnaires not in them are simulated.",
    ),
    QUICK,
    SEED,
    JOBS,
)
def questionnaires_command(ctx: click.Context, **options: Any) -> None:
    """Search and fit the 21 questionnaires of the paper's appendix, and compare with the paper's k and β.

    Without files of the Healthy Brain Network all are simulated with the paper's numbers of items and
    factors.
    """
    from icqf.workflow.batch import run_batch
    from icqf.workflow.options import StudyOptions
    from icqf_experiments.questionnaires import questionnaires

    def work(design: Design) -> Path:
        def fit_all(values: dict[str, Any], out: Path) -> tuple[pd.DataFrame, dict[str, Exception]]:
            title = "of the paper's appendix"
            journal = out.with_name(f"{out.name}.journal")
            done = run_batch(
                StudyOptions.of(values), out, checkpoint=journal, callback=design.callback, title=title
            )
            journal.unlink(missing_ok=True)
            return done.table, done.failures

        return questionnaires(design, fit_all, files=options["hbn"])

    _run(ctx, options, work)


# --- on independent parts of studies ----------------------------------------------------------------------


def _on_parts(ctx: click.Context, options: dict[str, Any], write: Command) -> None:
    """Fit all parts that are not in the journal, and write a page about them."""
    from icqf_experiments.fit_parts import collect
    from icqf_experiments.split_studies import studies_named

    grounds = studies_named(options["grounds"])

    def work(design: Design) -> Path:
        design.out.mkdir(parents=True, exist_ok=True)
        journal = design.out / "parts.journal"
        parts = collect(grounds, checkpoint=journal, n_jobs=design.n_jobs, callback=design.callback)
        page: Path = write(grounds, parts, design)
        return page

    _run(ctx, options, work, what="Parts of studies", unit="parts")


@_experiment("selection", "Which rule chooses factors that a second study confirms.", GROUND, JOBS)
def selection_command(ctx: click.Context, **options: Any) -> None:
    """Which rule chooses a number of factors that a second study confirms, on parts of many studies.

    Needs R with its package psychTools, for most of the studies.
    """
    from icqf_experiments.selection import selection_page

    _on_parts(ctx, options, selection_page)


@_experiment(
    "calibration",
    "How sure are we when we say so: what was said, and what happened.",
    click.option(
        "--statement",
        "statements",
        cls=ManyOption,
        metavar="NAME",
        help="Only these statements; others come from their tables in the folder, where they are.",
    ),
    click.option("--tables", is_flag=True, help="Run nothing: write the page from the tables in the folder."),
    QUICK,
    JOBS,
)
def calibration_command(ctx: click.Context, **options: Any) -> None:
    """How sure are we when we say so: reliability tables of every statement that has a probability.

    Uses simulated questionnaires and public studies from other packages, each left out of what it judges.
    """
    from icqf_experiments.calibration import STATEMENTS
    from icqf_experiments.calibration.frame import calibration_page

    _known(options["statements"], STATEMENTS, "statement")
    if options["tables"] and options["statements"]:
        raise click.UsageError("--tables runs nothing: leave out --statement.", ctx)
    names = () if options["tables"] else options["statements"] or tuple(STATEMENTS)
    work = partial(calibration_page, STATEMENTS.values(), names)
    _run(ctx, options, work, what="Calibration", unit="pairs", parts=names)


@_experiment("consensus", "When averaging over resamples helps.", GROUND, JOBS)
def consensus_command(ctx: click.Context, **options: Any) -> None:
    """When loadings averaged over resamples replicate better than those of one fit.

    Uses the same fits as selection. Needs R with its package psychTools, for most of the studies.
    """
    from icqf_experiments.consensus import consensus_page

    _on_parts(ctx, options, consensus_page)


@_experiment(
    "reading",
    "What is read from public files without a codebook.",
    click.option("--file", "names", cls=ManyOption, metavar="NAME", help="Only these files, such as bfi."),
)
def reading_command(ctx: click.Context, **options: Any) -> None:
    """What is read from public files without a codebook: items, ranges, reversed items, factors."""
    from icqf_experiments.novice import novice_files
    from icqf_experiments.reading import reading_page

    files = {file.name: file for file in novice_files()}
    _known(options["names"], files, "file")
    _run(ctx, options, partial(reading_page, [files[name] for name in options["names"] or files]))


@_experiment("weights", "How items of different ranges should count.", QUICK, JOBS)
def weights_command(ctx: click.Context, **options: Any) -> None:
    """How items of different ranges should count: by range, by variance, point for point.

    Uses mixed questionnaires, public ones from other packages and simulated ones with known factors.
    """
    from icqf_experiments.weights import weights_page

    _run(ctx, options, weights_page)
