"""Commands about results: report, figures, scores of new participants, norms, persons, pooling, cards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryFile
from typing import Any

import click

from icqf.cli.job import job, job_options, say, show_notes, typed
from icqf.cli.parsing import FILE, NamesOption, command, is_typed, options_of, refuse_typed, settings
from icqf.cli.terminal import echo, write_data
from icqf.data.about import About
from icqf.data.settings import options_in
from icqf.workflow.options import DescribeOptions, NormsOptions, PersonOptions, PoolOptions, ScoreOptions


@command(
    "Name the factors, and rewrite the report.",
    """icqf report results --names "Low mood" "Temper" "Worry"
    icqf report results --names factor2="Temper"
    icqf report results --save-as report.docx
    icqf report results          (after editing the column "name" of results/factors.csv)""",
)
@click.argument("results", type=FILE)
@click.option(
    "--names",
    cls=NamesOption,
    help="Names of the factors in order, or some of them as factor2=NAME."
    "  [default: those in the table of factors]",
)
@click.option(
    "--save-as",
    type=FILE,
    help="Another file for the whole report: .docx (Word), .tex, .txt, .md, .html or .json.",
)
@click.option("--force", is_flag=True, help="Replace an existing file of --save-as.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def report(results: Path, names: tuple[str, ...], save_as: Path | None, force: bool, quiet: bool) -> None:
    """Rewrite the report, tables, figures and model in the folder RESULTS, with names for the factors.

    Nothing is refitted. The names appear in the report, scores, loadings and the model file, and so in the
    scores of new participants.
    """
    from icqf.cli.text import model_text
    from icqf.models.icqf import ICQF
    from icqf.workflow.naming import check_report_file, rewrite_results, save_report

    pairs = [name.split("=", 1) for name in names]
    new_names: dict[str, str] | list[str] | None = list(names) or None
    if names and all(len(pair) == 2 for pair in pairs):
        new_names = {old.strip(): new.strip() for old, new in pairs}
    if save_as is not None:
        check_report_file(results, save_as, force=force)
    done = rewrite_results(results, names=new_names)
    if save_as is not None and done.report is not None:
        save_report(done.report, save_as)
    if quiet:
        return
    echo(f"Names of the factors: {', '.join(done.names)}.\n")
    model = ICQF.load(results / "model.icqf")
    echo(model_text(model, model.codebook_.items, top=5) + "\n")
    if done.report is None:
        echo("The fit wrote no report (--no-report), so only tables and model were rewritten.")
    echo(f"Written to {results}: {', '.join(done.files)}")
    if save_as is not None:
        echo(f"The whole report is in {save_as}.")


@command(
    "One figure of results, as a file for a paper.",
    """icqf plot results                                  (lists the figures)
    icqf plot results heatmap --out fig2.pdf
    icqf plot results top-items --items 8 --columns 2 --out fig3.svg
    icqf plot results scores --out fig4.png --dpi 600""",
)
@click.argument("results", type=FILE)
@click.argument("figure", required=False)
@click.option("--out", type=FILE, help="File to write: svg, pdf, png, eps or tif.  [default: FIGURE.pdf]")
@click.option(
    "--columns",
    type=click.IntRange(1, 2),
    help="Width in columns of a journal: 85 or 178 mm.  [default: by figure]",
)
@click.option("--items", type=click.IntRange(1, 30), default=5, help="Items of each factor (top-items).")
@click.option("--factor", metavar="NAME", help="Show only this factor (top-items).")
@click.option("--dpi", type=click.IntRange(50, 2400), default=300, help="Dots per inch of png and tif.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def plot(
    ctx: click.Context,
    results: Path,
    figure: str | None,
    out: Path | None,
    columns: int | None,
    items: int,
    factor: str | None,
    dpi: int,
    force: bool,
    quiet: bool,
) -> None:
    """Draw FIGURE from the folder RESULTS at the size a journal prints it. Nothing is refitted.

    Without FIGURE, list the available figures.
    """
    from icqf.workflow.naming import figures_of, plot_results

    if figure is None:
        echo("\n".join(figures_of(results)))
        return
    if figure != "top-items":
        refuse_typed(ctx, ("items", "factor"), "is for the figure top-items and has no effect here.")
    place = Path(f"{figure}.pdf") if out is None else out
    plot_results(results, figure, place, columns=columns, items=items, factor=factor, dpi=dpi, force=force)
    if not quiet:
        echo(f"Written to {place}.", err=True)


_AT_A_TIME = 2**20


@command(
    "Scores of new participants from a model.",
    """icqf score results new.csv --out scores.csv
    icqf score results/model.icqf new.sav > scores.csv
    icqf score results new.csv --norms norms/norms.icqf-norms --out scores.csv
    icqf score results cohort.parquet --out scores.parquet
    icqf score results visits.csv --visit-column time --change --out change.csv""",
)
@settings(ScoreOptions)
@click.option("--out", type=FILE, help="Table to write.  [default: CSV on standard output]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and scores without --out.")
@click.pass_context
def score(ctx: click.Context, out: Path | None, force: bool, quiet: bool, **_: Any) -> None:
    """Score the participants in ANSWERS with a fitted MODEL: a model file, or the folder of its results.

    The table needs the model's items and confounds, under the same names. Ranges, directions and missing
    codes are those of the fit. Participants who answered nothing are included, with empty scores.

    Each score (mood) comes with its 90 % interval (mood_low, mood_high) and its information
    (mood_information): the reliability for the answers given, from 0 to 1. A score about which the answers
    say next to nothing is left empty; the last column (missing) says which scores are missing and why.

    With --visit-column, ANSWERS has several rows per participant, and so have the scores. With --change, each
    is followed by the change since the participant's first visit: the difference (mood_change), its interval
    (_low, _high), the probability of a change, and a p-value, which is below 0.05 for a reliable change.

    CSV, Parquet and Arrow files may be of any size: they are read, scored and written in batches. A folder of
    Parquet files with the same columns is treated as one table.

    With the model of a battery (icqf meta), ANSWERS is a folder with files of any of its instruments, or a
    table with their items; absent instruments are treated as missing.

    With --norms, the table needs the columns that the norms are by, and participants for whom one of them is
    missing or outside the reference sample have no percentiles. With --change, every visit is compared with
    people of the age at that visit.
    """
    from icqf.workflow.results_folder import refuse_table
    from icqf.workflow.score import write_scores

    options = options_of(ctx, ScoreOptions)
    form, config = options.format, ctx.params["config"]

    def begin() -> None:
        if out is not None:
            inputs = (options.model, *options.files.paths, options.norms, config)
            refuse_table(out, force=force, format=form, inputs=inputs)

    with TemporaryFile() as spool:
        place = spool if out is None else out
        how: dict[str, Any] = {"format": form, "norms": options.norms, "columns": options.columns}
        done = write_scores(options.model, options.files, place, begin=begin, **how)
        say(done.notes, quiet=quiet)
        if out is None:
            spool.seek(0)
            while lines := spool.readlines(_AT_A_TIME):
                write_data(b"".join(lines).decode())
            return
    if not quiet:
        silent = f" ({done.n_silent} without answers, whose scores are empty)" if done.n_silent else ""
        echo(f"Scores of {done.n_participants} participants{silent} are in {out}.", err=True)


@command(
    "Percentiles of scores by age and sex.",
    """icqf norms results --by age sex
    icqf norms results community.csv --by age sex --weights w --sample "adults in Ohio, 2024"
    icqf score results/model.icqf new.csv --norms norms/norms.icqf-norms --out scores.csv""",
)
@settings(NormsOptions)
@job_options("norms", out_help="Folder for norms file, table and page.", without=["resume"])
@click.pass_context
def norms(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Learn norms from a reference sample: the percentile of each score among participants alike.

    RESULTS is the folder that icqf fit wrote, or a model file. The reference sample is that of the fit, or
    the participants in ANSWERS; survey weights of the fit, or --weights, are respected. Writes a norms file
    for icqf score --norms, which works with this model only and holds nothing about single participants, a
    table of scores at percentiles, and a page with percentile curves. Norms are learned from a random nine
    tenths of the sample, so that the norms of two samples tell little of a participant who is only in one.

    Nothing is extrapolated: the youngest and oldest few are left out, and categories with fewer than 20
    participants are merged into "other".
    """
    from icqf.engines.progress import Progress
    from icqf.workflow.norms import accuracy, codes, norms_of, read_reference, write_norms_folder
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, NormsOptions)
    reference = read_reference(options)
    read = reference.read
    if dry_run:
        show_notes([*read.notes, f"{read.questionnaire.n_participants} participants."])
        return
    refuse_existing(out, "norms", force=force, inputs=(*read.files, ctx.params["config"]))
    say(read.notes, quiet=quiet)
    with job(ctx, out, what="Learning norms", unit="factors", journal=False) as meter:
        meter(Progress(0, 0, what="Scoring the sample and learning its norms"))
        norms = norms_of(reference, options)
        meter(Progress(0, 0, what="Writing the page"))
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_norms_folder(norms, out, reference=reference, force=force, **about)
    if quiet:
        return
    echo(norms.reference)
    echo(accuracy(norms))
    for each in codes(norms):
        echo(f"Note: {each}")
    echo(f"\nNorms file, table and page are in {out}/: {', '.join(written)}")


@command(
    "A page about one person's answers.",
    """icqf person results/model.icqf answers.csv --id P017 --out p017.html
    icqf person results visits.csv --id P017 --visit-column time
    icqf person results answers.csv --id P017 --informant mother
    icqf person results answers.csv --id P017 P021 --out persons
    icqf person results answers.csv --all --norms norms/norms.icqf-norms --out persons""",
)
@settings(PersonOptions, without=["id", "who"])
@click.option(
    "--id", "who", cls=NamesOption, type=click.UNPROCESSED, metavar="ID", help="Participants, by their ids."
)
@click.option(
    "--id-column", "id", metavar="COLUMN", help="Column of participant ids.  [default: that of the fit]"
)
@job_options(
    None,
    out_help="File (.html, .docx, .md) for one person, else a folder.  [default: ID.html, or persons]",
    without=["resume", "dry_run"],
)
@click.pass_context
def person(ctx: click.Context, out: Path | None, force: bool, quiet: bool, **_: Any) -> None:
    """Write a page about one person in ANSWERS, from a fitted MODEL or its results folder.

    The page fits on one sheet of A4 and is written for clinicians, patients and parents: each score with its
    likely range, the answers that raise it, answers that do not fit the rest, questions left out and, if the
    person has several visits, the change since the visit before. With --norms, it adds percentiles, each with
    its likely range; with --informant, it says who filled in the form.

    The page holds one person's answers: it is not written into a folder of results. It needs no connection.
    """
    from icqf.workflow.person import write_people

    options = options_of(ctx, PersonOptions)
    with job(ctx, out or Path("persons"), what="Writing pages", unit="pages", journal=False) as meter:
        place, n = write_people(
            options,
            out,
            force=force,
            config=ctx.params["config"],
            begin=lambda people: say(people.notes, quiet=quiet),
            callback=meter,
        )
    if not quiet:
        what, keep = ("The page is", "It holds") if n == 1 else (f"{n} pages are", "They hold")
        echo(f"{what} in {place}. {keep} personal answers: keep safe, and share with care.", err=True)


@command(
    "Match the factors of two studies.",
    """icqf compare study1/model.icqf study2/model.icqf --out pairs.csv""",
)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--method", type=click.Choice(["greedy", "optimal"]), default="greedy", help="How pairs are formed."
)
@click.option(
    "--similarity",
    type=click.Choice(["pearson", "congruence"]),
    default="pearson",
    help="Similarity by which pairs are formed.",
)
@click.option("--out", type=FILE, help="Table of the pairs: .csv, .sav, .parquet or .xlsx.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def compare(first: Path, second: Path, method: str, similarity: str, out: Path | None, force: bool) -> None:
    """Pair the factors of two models by their loadings on the items they share."""
    from icqf.io import write_table
    from icqf.workflow.pool import compare_models
    from icqf.workflow.results_folder import refuse_table

    if out is not None:
        refuse_table(out, force=force, inputs=(first, second))
    pair = compare_models(first, second, method=method, similarity=similarity)  # type: ignore[arg-type]
    say(pair.notes)
    echo(pair.match)
    if out is not None:
        write_table(pair.match.pairs, out)
        echo(f"The pairs are in {out}.", err=True)


@command(
    "One model from the models of several hospitals.",
    """icqf fit answers.csv --config config.toml --out results        (at each hospital)
    icqf pool a.icqf b.icqf c.icqf --out pooled.icqf
    icqf score pooled.icqf new.csv --out scores.csv""",
)
@settings(PoolOptions)
@job_options(
    "pooled.icqf",
    out_help="Model file; table and page are written next to it.",
    without=["resume", "dry_run", "progress"],
)
@click.pass_context
def pool(ctx: click.Context, out: Path, force: bool, quiet: bool, **_: Any) -> None:
    """Pool MODELS that several sites fitted to their own participants with the same settings.

    Factors are matched and loadings averaged, weighted by participants. The page shows how well the sites
    agree on each factor, and which site differs. The pooled model scores participants of any site.
    """
    from icqf.workflow.pool import lead, pool_models, refuse_pooled, shown_factors, write_pooled

    models = options_of(ctx, PoolOptions).models
    config = () if ctx.params["config"] is None else (ctx.params["config"],)
    refuse_pooled(out, force=force, inputs=(*models, *config))
    pooled = pool_models(models)
    written = write_pooled(pooled, out, force=force, inputs=models)
    if quiet:
        return
    echo(lead(pooled))
    echo("\n" + shown_factors(pooled).rename_axis(None).to_string(float_format="{:.2f}".format))
    say(pooled.notes)
    echo(f"\nWritten: {', '.join(map(str, written))}")


@command(
    "State a model's sample, licence and citation.",
    """icqf describe results --licence CC-BY-4.0 --sample "outpatients of two clinics in Ohio, 2021"
    icqf describe results/model.icqf --about study.toml
    icqf describe results --contact ''""",
)
@settings(DescribeOptions, without=["config"])
@click.pass_context
def describe(ctx: click.Context, **_: Any) -> None:
    """Write into MODEL what only people know about it, and list what is not stated.

    MODEL is a model file or a results folder. Nothing is refitted, and scores stay the same. An empty text
    takes a statement back. icqf show prints the card of the model.
    """
    from icqf.workflow.describe import describe_model

    options = options_of(ctx, DescribeOptions)
    given = {name: getattr(options, name) for name in options_in(About) if is_typed(ctx, name)}
    about = describe_model(options.model, about=options.about, **given)
    say(about.notes)
    for name, text in vars(about).items():
        label = name.replace("_", " ")
        echo(f"{label[:1].upper()}{label[1:]}: {text or 'not stated'}")


@command(
    "A model's card: sample, factors, limits, licence.",
    """icqf show results
    icqf show results/model.icqf --all
    icqf show results --markdown > MODEL_CARD.md""",
)
@click.argument("model", type=FILE)
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.option("--all", "everything", is_flag=True, help="Show all loadings, items by factors and confounds.")
@click.option("--norms", type=FILE, help="Norms file of the model: adds its reference sample.")
@click.option("--markdown", is_flag=True, help="Write Markdown, for GitHub, OSF and others.")
@click.option("--front-matter", is_flag=True, help="The same, with the YAML that Hugging Face reads.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def show(
    model: Path,
    top: int,
    everything: bool,
    norms: Path | None,
    markdown: bool,
    front_matter: bool,
    as_json: bool,
) -> None:
    """Show who MODEL was fitted to and how, its factors, what it must not be used for, and its licence.

    MODEL is a model file or a results folder. All of it comes from the model file; what only people know is
    stated with icqf describe. Loadings are in points of the questionnaire. For a battery (icqf meta), the
    meta-factors are shown as well.
    """
    from icqf.models.meta import MetaICQF
    from icqf.report.card import front_matter as yaml
    from icqf.workflow.describe import card_of
    from icqf.workflow.new_answers import load_model

    card = card_of(model, top=top, norms=norms)
    if as_json:
        write_data(card.as_json())
        return
    if markdown or front_matter:
        write_data((yaml(card) if front_matter else "") + card.as_markdown())
        return
    echo(card.as_text(get_terminal_size((100, 24)).columns).rstrip())
    if (card.data or {})["not_stated"]:
        echo("State what is not stated with icqf describe.")
    if not everything:
        return
    fitted = load_model(model)
    battery = isinstance(fitted, MetaICQF)
    for table in (fitted.loadings_, fitted.item_loadings_ if battery else fitted.confound_loadings_):
        echo("\n" + table.to_string(float_format="{:.2f}".format))
