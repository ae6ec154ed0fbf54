"""Commands about several groups, visits or questionnaires."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from icqf.cli.job import end_dry_run, job, job_options, say, show_notes, typed
from icqf.cli.parsing import command, options_of, settings
from icqf.cli.terminal import echo
from icqf.cli.text import meta_text, worded
from icqf.errors import counted, shown_p
from icqf.workflow.options import (
    CrosswalkOptions,
    InvarianceOptions,
    LongitudinalOptions,
    MetaOptions,
    StudyOptions,
)


@command(
    "Whether factors are the same in every group.",
    """icqf invariance results/model.icqf answers.csv --by sex
    icqf invariance results/model.icqf answers.csv --by site --out sites""",
)
@settings(InvarianceOptions)
@job_options("groups", out_help="Folder for tables, figure and page.")
@click.pass_context
def invariance(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Compare the factors of MODEL between groups of the participants in ANSWERS.

    The model is refitted to all participants and to each group. Factors are rated same, similar or different
    by comparing participants with the same scores; items that load differently, or are answered higher or
    lower at equal scores, are listed, and all loadings are written with their intervals.
    """
    from icqf.workflow.invariance import compare_groups, write_groups
    from icqf.workflow.new_answers import read_for_model
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, InvarianceOptions)
    by = options.by
    read = read_for_model(options.model, options.files, extra=[by], refitted=True)
    if dry_run:
        sizes = () if read.extra is None else read.extra[by].value_counts().items()
        show_notes([*read.notes, *(f"{by} {group}: {counted(n, 'participant')}." for group, n in sizes)])
        return
    refuse_existing(out, "invariance", force=force, inputs=(*read.files, ctx.params["config"]))
    with job(ctx, out, what="Comparing groups", unit="parts") as meter:
        say(read.notes, quiet=quiet)
        result = compare_groups(read, by, checkpoint=meter.journal, callback=meter, **options.parameters)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_groups(result, out, read=read, force=force, **about)
    if quiet:
        return
    echo(result.factors.to_string(float_format="{:.3f}".format, na_rep="–"))
    levels = result.items[result.items["level_flagged"]].sort_values("level_p", kind="stable")
    if len(levels):
        echo(f"\nItems answered higher or lower at equal scores, in points ({result.level_sign}):")
        names = {"level_difference": "difference", "level_higher": "higher", "level_q": "q"}
        shown = {"difference": "{:+.2f}".format, "q": shown_p}
        table = levels[list(names)].rename(index=result.marked, columns=names)
        echo(table.to_string(formatters=shown))
    for sentence in (result.hypothesis, *result.sentences):
        echo(f"\n{sentence}")
    echo(f"\nTables, figure and page are in {out}/: {', '.join(written)}")


NOT_FOR_VISITS = ("groups", "weights", "visit", "penalty", "thorough", "with_participants")


@command(
    "Repeated visits: one set of factors, scores at every visit.",
    """icqf longitudinal visits.csv --id child_id --age age --codebook items.csv --out results
    icqf longitudinal visits.csv --age month --n-components 3 --beta 0.1 --smoothness inf
    icqf longitudinal visits.csv --age age --bins 5 8 11 14 18""",
)
@settings(
    LongitudinalOptions,
    *("columns", "about", "candidates", "model", "visits", "format", "report"),
    without=NOT_FOR_VISITS,
)
@job_options("results")
@click.pass_context
def longitudinal(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Factorize the visits in ANSWERS, one row per visit, and score every visit.

    The first question is whether the factors are the same at every visit. Loadings are constant unless
    cross-validation and a test both say that they differ. With one --smoothness (inf: constant loadings), the
    fit uses it, and only the test is run. The number of factors and the penalty are chosen by
    cross-validation unless set.
    """
    from icqf.workflow.longitudinal import (
        answer_sentences,
        choice_sentence,
        fit_visits,
        gap_sentence,
        read_visits,
        write_visits,
    )
    from icqf.workflow.results_folder import refuse_results

    options = options_of(ctx, LongitudinalOptions)
    study = read_visits(options)
    if dry_run:
        n, m = study.questionnaire.answers.shape
        show_notes([f"{n} visits, {m} items.", *study.questionnaire.notes])
        return
    files = (*study.files, ctx.params["config"])
    refuse_results(
        *(out, "longitudinal", study.questionnaire), format=options.format, force=force, inputs=files
    )
    with job(ctx, out, journal=options.searches) as meter:
        say(study.questionnaire.notes, quiet=quiet)
        fit = fit_visits(options, study=study, checkpoint=meter.journal, callback=meter)
        names = write_visits(fit, out, force=force)
    if quiet:
        return
    say(fit.warnings)
    echo(gap_sentence(fit.model.gaps_))
    echo("\n".join([choice_sentence(fit), *answer_sentences(fit)]))
    echo(f"\nResults are in {out}{'/' if out.suffix == '' else ''}: {', '.join(names)}")


SOME_FAILED = 1


@command(
    "A report for every questionnaire of a study.",
    """icqf batch study/ --out results
    icqf batch study/ --confounds age sex --out results
    icqf batch wide.csv --codebook items.csv --out results""",
)
@settings(StudyOptions, "columns", "candidates", "paper", "model", "format", "report", without=("names",))
@job_options("results")
@click.pass_context
def batch(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Fit every questionnaire in ANSWERS: a folder with one file each, or a wide table with a codebook.

    In a folder, NAME_codebook.csv is the codebook of NAME.csv, codebook.csv that of all others, and
    participants.csv contains confounds by id. In a wide table, the codebook's column "instrument" assigns the
    items. Files that cannot be used are listed with the reason, and the others are fitted. Run again, the
    command fits what has changed and keeps the rest; --force starts again, also with other settings. The exit
    code is 1 if a questionnaire could not be fitted.
    """
    from icqf.workflow.batch import read_instruments, run_batch
    from icqf.workflow.results_folder import refuse_shared

    options = options_of(ctx, StudyOptions)
    if dry_run:
        for name, study in read_instruments(options).items():
            echo(f"{name}: {worded(study) if isinstance(study, Exception) else study.overview}")
        end_dry_run()
        return
    refuse_shared(out, "batch", inputs=(ctx.params["config"],))
    with job(ctx, out, journal=options.searches, folder=True) as meter:
        done = run_batch(options, out, force=force, checkpoint=meter.journal, callback=meter)
    for name, reason in done.failures.items():
        echo(f"Not fitted: {name}: {worded(reason)}", err=True)
    if not quiet:
        for name, warning in done.directions.items():
            echo(f"Warning: {name}: {worded(warning)}", err=True)
        if done.kept:
            echo(f"Kept from an earlier run: {', '.join(done.kept)}.", err=True)
        if len(done.table):
            table = done.table.drop(columns="expected_again").astype({"found_again": object})
            table["found_again"] = table["found_again"].where(table["found_again"].notna(), "–")
            formats = {"missing": "{:.1%}".format, "explained": "{:.1%}".format, "beta": "{:g}".format}
            echo(table.to_string(index=False, formatters=formats))
        echo(f"\nResults are in {out}/: {', '.join(done.files)}, and one folder for each instrument.")
    if done.failures:
        ctx.exit(SOME_FAILED)


@command(
    "Factors across the questionnaires of a study.",
    """icqf meta study/ --out results
    icqf meta study/ --confounds age sex --n-meta 3 --out results
    icqf meta study/ --n-components mood=2 sleep=3 --out results
    icqf meta wide.csv --codebook items.csv --out results
    icqf score results/meta.icqf new-study/ --out scores.csv""",
)
@settings(MetaOptions, "columns", "about", "candidates", "paper", "model", "meta", "format")
@job_options("results")
@click.option("--top", type=click.IntRange(1), default=3, help="Items shown for each meta-factor.")
@click.pass_context
def meta(ctx: click.Context, out: Path, force: bool, top: int, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Factorize each questionnaire in ANSWERS, and then the scores of all of them.

    ANSWERS is a folder with one file for each questionnaire, joined by participant id, or a wide table whose
    codebook has a column "instrument"; see icqf batch. Participants who lack a questionnaire are included
    with the others they have. Writes scores and loadings of the meta-factors, their loadings on items, the
    model, a page and a figure of the three levels. If the questionnaires have no common factor, that is the
    result, and scores are those of their own factors.
    """
    from icqf.workflow.meta import files_of, fit_battery, read_battery, write_meta
    from icqf.workflow.results_folder import refuse_existing

    options = options_of(ctx, MetaOptions)
    studies = read_battery(options)
    if not dry_run:
        refuse_existing(out, "meta", force=force, inputs=(*files_of(studies), ctx.params["config"]))
    for name, (_own, study) in studies.items():
        n, m = study.questionnaire.answers.shape
        if not quiet or dry_run:
            echo(f"Note: {name}: {n} participants, {m} items.", err=not dry_run)
        if study.directions.warning is not None and (not quiet or dry_run):
            echo(f"Warning: {name}: {worded(study.directions.warning)}", err=not dry_run)
    if dry_run:
        end_dry_run()
        return
    with job(ctx, out) as meter:
        how: dict[str, Any] = {"compare": options.compare, "checkpoint": meter.journal, "callback": meter}
        fit = fit_battery(options, studies=studies, **how)
        names = write_meta(fit, out, force=force)
    if quiet:
        return
    say(fit.warnings)
    echo(meta_text(fit.model, top=top))
    for each in fit.comparisons:
        echo(f"\n{each}")
    echo(f"\nResults are in {out}/: {', '.join(names)}")


@command(
    "Scores of one questionnaire from another.",
    """icqf crosswalk study/ --from bdi --to phq9
    icqf crosswalk answers.csv --from 'bdi*' --to 'phq*' --by sex age
    icqf crosswalk answers.csv --from bdi-items.csv --to phq-items.csv
    icqf crosswalk study/ --from bdi --to phq9 --model phq9-results
    icqf score crosswalk new.csv --out predicted.csv""",
)
@settings(CrosswalkOptions)
@job_options("crosswalk", out_help="Folder for the crosswalk, its table and page.", without=["resume"])
@click.pass_context
def crosswalk(ctx: click.Context, out: Path, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Learn to predict scores of one questionnaire from answers to another, from participants with both.

    ANSWERS is a folder with one file for each questionnaire, named after them and joined by participant id,
    or a wide table; its questionnaires are the instruments of --codebook, patterns of item names, or have
    a codebook each.
    Predicts the sum and, with --model, the scores of its factors, each with a 90 % interval. Writes a file
    for icqf score, a table of sums to print, and a page that says how near predictions of held-out
    participants came, and whether the two may be linked.

    A prediction is for one participant, and nearer to the middle than scores are. Linked sums, of the same
    rank, compare distributions; they are given only if the sums correlate .866 or more.
    """
    from icqf.engines.progress import Progress
    from icqf.workflow.crosswalk import crosswalk_of, read_both, verdicts, write_crosswalk_folder
    from icqf.workflow.results_folder import refuse_existing

    started, options = datetime.now(UTC), options_of(ctx, CrosswalkOptions)
    both = read_both(options)
    if dry_run:
        sizes = [
            f"{name}: {len(part.answers)} participants, {part.n_items} items."
            for name, part in zip(both.names, (both.source, both.target), strict=True)
        ]
        show_notes([*both.notes, *sizes])
        return
    refuse_existing(out, "crosswalk", force=force, inputs=(*both.files, ctx.params["config"]))
    say(both.notes, quiet=quiet)
    with job(ctx, out, what="Learning the crosswalk", unit="folds", journal=False) as meter:
        meter(Progress(0, 0, what="Learning the crosswalk, and judging it on held-out participants"))
        made = crosswalk_of(both, options)
        about: dict[str, Any] = {"options": options.shareable(), "command": typed(ctx), "started": started}
        written = write_crosswalk_folder(made, out, both=both, force=force, **about)
    if quiet:
        return
    for each in verdicts(made):
        echo(each)
    if options.model is None:
        echo("For the scores of factors as well, add --model with the results of icqf fit.")
    echo(f"\nCrosswalk, table and page are in {out}/: {', '.join(written)}")
