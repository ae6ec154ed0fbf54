"""Commands about one study: demo, app, checks, a codebook, the choice of the number of factors, a fit."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icqf.cli.job import announce, job, job_options, only_show, say
from icqf.cli.parsing import FILE, command, option_of, options_of, settings
from icqf.cli.terminal import Meter, echo, write_data
from icqf.cli.text import choice_text, model_text, no_structure, plan_text, rules_text, typed_names, worded
from icqf.errors import InputError
from icqf.io.study_files import StudyFiles
from icqf.workflow.options import StudyOptions

if TYPE_CHECKING:
    from icqf.data.study import Study
    from icqf.workflow.fit import StudyFit


_MOST_TYPED = 120  # characters of an option to type


@command(
    "Check a table before a long run.",
    """icqf check answers.csv --codebook items.csv --confounds age sex
    icqf check answers.sav --json > findings.json""",
)
@settings(StudyOptions, "columns")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def check(ctx: click.Context, as_json: bool, **_: Any) -> None:
    """Show what will be analysed in ANSWERS, and problems that would spoil a fit.

    Finds suspicious codes, items that look reversed, duplicates, missing confounds and more. The exit code is
    1 if something must be fixed.
    """
    from icqf.workflow.check import check_study

    findings = check_study(options_of(ctx, StudyOptions))
    if as_json:
        write_data(findings.to_json(worded) + "\n")
    else:
        echo(listing(findings))
    ctx.exit(1 if findings.must_fix else 0)


def listing(findings: Any) -> str:
    """Return what will be analysed, the findings by severity, and a verdict."""
    from icqf.data.check import TITLES

    parts = [str(findings.overview)]
    reversed_ = [finding for finding in findings.of("looks-reversed") if not finding.fields["reversed"]]
    together = reversed_ if len(reversed_) > 1 else []  # listed as one point
    for severity, title in TITLES.items():
        lines = []
        for finding in findings.shown:
            if finding.severity != severity:
                continue
            if not any(finding is other for other in together):
                lines.append(f"  - {worded(finding)}")
            elif finding is together[0]:
                lines.append(f"  - {_all_reversed(together)}")
        if lines:
            parts.append("\n".join([f"{title}:", *lines]))
    verdict = findings.verdict
    if reversed_ and not findings.must_fix:
        verdict = verdict.removesuffix(".") + "; --reverse auto reverses them all."
    return "\n\n".join([*parts, verdict])


def _all_reversed(findings: list[Any]) -> str:
    """Return all items that look reversed as one point, each with the items it runs against."""
    typed = typed_names("--reverse", [finding.fields["item"] for finding in findings])
    typed = typed if len(typed) <= _MOST_TYPED else "--reverse auto"
    head = f"{len(findings)} items run against others, so they look reversed. If they are, add {typed}:"
    return "\n".join([head, *(f"      {finding.fields['runs']}" for finding in findings)])


@command(
    "A first codebook, to edit by hand.",
    """icqf codebook answers.sav > items.csv
    icqf codebook answers.csv --suggest --out items.csv
    icqf codebook redcap.csv --dictionary dictionary.csv --out items.toml""",
)
@click.argument("answers", type=FILE)
@option_of("dictionary")
@click.option("--out", type=FILE, help="File to write, .csv or .toml.  [default: standard output]")
@click.option(
    "--format", "form", type=click.Choice(["csv", "toml"]), help="[default: by the ending of --out, or csv]"
)
@click.option("--suggest", is_flag=True, help="Declare items reversed if they run against the others.")
@option_of("id")
@option_of("visit")
@option_of("doubled")
@option_of("without_id")
@option_of("header_row")
@option_of("sheet")
@option_of("long")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.pass_context
def codebook(
    ctx: click.Context,
    answers: Path,
    dictionary: Path | None,
    out: Path | None,
    form: str | None,
    suggest: bool,
    force: bool,
    **_: Any,
) -> None:
    """Make a codebook from ANSWERS: from the file's own descriptions, or guessed from the answers.

    Check guessed ranges and missing codes, and the order of answers in words; the column "remark" says what
    to confirm. With --suggest, items that run against the others are declared reversed.
    """
    from icqf.io import format_codebook
    from icqf.io.atomic import write_bytes
    from icqf.workflow.check import guess_codebook
    from icqf.workflow.results_folder import refuse_file

    form = form or ("toml" if out is not None and out.suffix.lower() == ".toml" else "csv")
    if out is not None:
        refuse_file(out, force=force, inputs=(answers, dictionary))
    guess = guess_codebook(answers, directions=suggest, **options_of(ctx, StudyFiles).arrangement)
    text = format_codebook(guess.items, format=form, remarks=guess.remarks)
    say(guess.notes)
    if out is None:
        write_data(text)
        return
    write_bytes(out, text.encode())
    echo(f"{len(guess.items)} items were written to {out}; check their ranges.", err=True)


@command(
    "How many factors: cross-validation alone.",
    """icqf select answers.csv --codebook items.csv --n-components 2-16 --out cv.csv
    icqf select answers.csv --codebook items.csv --n-components 2-16 --out cv.csv --resume
    icqf select answers.csv --codebook items.csv --all-rules --out cv.csv""",
)
@settings(StudyOptions, "columns", "candidates", "paper", "model", "engine", "rules")
@job_options(
    None,
    out_help="Table of all fits: .csv, .sav, .parquet or .xlsx.",
    quiet_help="Print nothing but errors, and the choice without --out.",
)
@click.pass_context
def select(ctx: click.Context, out: Path | None, force: bool, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Choose the number of factors and the penalty for ANSWERS by cross-validation.

    Prints the mean error of each candidate, and how often each number of factors would be chosen by another
    sample and with other folds. With --all-rules, also prints the results of the rules of factor analysis,
    and why they may differ; --out cv.csv then also writes cv-rules.csv and cv-rules.json.
    """
    from icqf.engines.progress import Stages
    from icqf.io import write_table
    from icqf.workflow.fit import (
        expected_seconds,
        predicted_hidden,
        rules_of_study,
        select_study,
        write_rules,
    )
    from icqf.workflow.read import jobs_for, read_study
    from icqf.workflow.results_folder import refuse_file, refuse_table

    options = options_of(ctx, StudyOptions)
    if dry_run:
        only_show(read_study(options))
        return
    if not options.searches:
        raise click.UsageError(
            "With one number of factors and one penalty there is nothing to choose; give several.", ctx
        )
    study = read_study(options)
    rules_file = None if out is None else out.with_name(f"{out.stem}-rules{out.suffix}")
    files = (*options.paths, ctx.params["config"])
    if out is not None:
        refuse_table(out, force=force, inputs=files)
    if rules_file is not None and options.all_rules:
        refuse_file(rules_file, force=force, inputs=files)
        refuse_file(rules_file.with_suffix(".json"), force=force, inputs=files)
    with job(ctx, Path(options.answers.stem) if out is None else out) as meter:
        announce(study, quiet=quiet, meter=meter)
        alone = replace(options, report=False, bootstrap=0)
        jobs = jobs_for(options, study.questionnaire)
        stages = Stages(meter, expected_seconds(alone, *study.questionnaire.answers.shape, jobs=jobs))
        stages.begin("Cross-validation")
        search = select_study(options, study, checkpoint=meter.journal, callback=stages)
        hidden = search.hidden_
        if hidden is None:
            stages.begin("Predicting hidden answers")
            model, questionnaire = search.best_estimator_, study.questionnaire
            how: dict[str, Any] = {"groups": questionnaire.groups, "n_jobs": jobs}
            hidden = predicted_hidden(model, model.state(questionnaire), random_state=options.seed, **how)
        rules = None
        if options.all_rules:
            rules = rules_of_study(study, search=search, seed=options.seed, callback=stages)
        if out is not None:
            refuse_table(out, force=force, inputs=files)  # it may have been created during the search
            write_table(search.cv_results_, out)
        if rules_file is not None and rules is not None:
            write_rules(rules, rules_file)
    if quiet and out is not None:
        return
    warning = no_structure(hidden)
    if warning:
        echo(warning + "\n")
    echo(error_table(search.errors_))
    if search.stability_ is not None:
        echo(f"\nAgreement of the factors between halves of the sample:\n{stability_table(search)}")
    echo("\n" + choice_text(search, options.rule))
    if rules is not None:
        echo("\n" + rules_text(rules))
    if out is not None:
        also = f", and the results of all rules in {rules_file}" if rules is not None else ""
        echo(f"All fits are in {out}{also}.", err=True)


def stability_table(search: Any) -> str:
    """Return the agreement by number of factors."""
    table = search.stability_.set_index("n_components").rename_axis("k")[["agreement", "low", "high"]]
    return str(table.to_string(float_format="{:.3f}".format))


def error_table(errors: Any) -> str:
    """Return the mean error by number of factors and penalty."""
    table = errors.set_index(["n_components", "beta"])["error"].unstack("beta")
    table.columns = [f"{beta:g}" for beta in table.columns]
    title = "Mean squared error of hidden answers, by k (down) and beta (across):"
    return f"{title}\n{table.rename_axis('k').to_string(float_format='{:.5f}'.format)}"


NEEDED = "icqf.models.search"  # what other processes import while this one imports the rest


@command(
    "From answers to factors, scores, a model and a report.",
    """icqf fit answers.csv --codebook items.csv --id record_id --confounds age sex --out results
    icqf fit answers.sav --n-components 8 --beta 0.5 --out results
    icqf fit --config results/config.toml --out again
    icqf fit answers.csv --plan preregistration.toml --out results""",
)
@settings(
    StudyOptions,
    *("columns", "about", "candidates", "paper", "model", "engine", "average", "format", "report", "rules"),
    "plan",
)
@job_options("results")
@click.option("--top", type=click.IntRange(1), default=5, help="Items shown for each factor.")
@click.pass_context
def fit(ctx: click.Context, out: Path, force: bool, top: int, dry_run: bool, quiet: bool, **_: Any) -> None:
    """Factorize ANSWERS and write scores, loadings, the model, a report and their provenance.

    The number of factors and the penalty are chosen by cross-validation unless both are set.
    """
    from icqf.engines.parallel import workers
    from icqf.workflow.read import jobs_for, read_study
    from icqf.workflow.results_folder import refuse_results

    options = options_of(ctx, StudyOptions)
    study = read_study(options)
    deviations = () if options.plan is None else planned_otherwise(options, study)
    if dry_run:
        say(deviations)
        only_show(study)
        return
    files = (*options.paths, ctx.params["config"])
    refuse_results(*(out, "fit", study.questionnaire), format=options.format, force=force, inputs=files)
    with job(ctx, out, journal=options.searches) as meter:
        with workers(jobs_for(options, study.questionnaire), NEEDED):
            announce(study, quiet=quiet, meter=meter)
            say(deviations, quiet=quiet)
            from icqf.workflow.fit import fit_study, write_results
        fit = fit_study(options, study=study, checkpoint=meter.journal, callback=meter)
        names = write_results(fit, out, force=force)
    if quiet:
        return
    chosen = fit.search is not None and fit.search.errors_["n_components"].nunique() > 1
    if fit.compared is not None:
        echo(plan_text(fit.compared) + "\n")
    warning = no_structure(fit.hidden, model=fit.model, n_set=None if chosen else len(fit.model.components_))
    if warning:
        echo(warning + "\n")
    say(each for each in fit.warnings if not (warning and getattr(each, "code", "") == "all-zero"))
    if fit.search is not None:
        echo(choice_text(fit.search, fit.options.rule) + "\n")
    if fit.rules is not None:
        echo(rules_text(fit.rules) + "\n")
    structural = study.questionnaire.structural
    not_asked = 0.0 if structural is None else float(structural.to_numpy(dtype=bool).mean())
    echo(model_text(fit.model, study.items, top=top, hidden=fit.hidden, not_asked=not_asked))
    echo(f"\nResults are in {out}{'/' if out.suffix == '' else ''}: {', '.join(names)}")


def planned_otherwise(options: StudyOptions, study: Study) -> list[str]:
    """Return the deviations from the plan that are known before the fit."""
    from icqf.io.preregistration import read_preregistration
    from icqf.workflow.deviations import compared

    found = compared(read_preregistration(options.plan or ""), options, study)
    sentences = [*(each.sentence for each in found.deviations), *found.declared]
    return [f"Deviation from the plan: {each}" for each in sentences] or [
        "So far there are no deviations from the plan."
    ]


REAL = ("help", "bfi", "phq9")
SMALL = ("help", "phq9")  # for which starting processes would take longer than the fit


@command(
    "The whole analysis on embedded data: about ten seconds.",
    """icqf demo --open
    icqf demo --data bfi --out bfi-demo""",
)
@click.option(
    "--data",
    type=click.Choice(["children", *REAL]),
    default="children",
    help="children: simulated and embedded; the others are real and need pip install 'icqf[examples]'.",
)
@click.option("--out", type=FILE, default=Path("icqf-demo"), help="Folder for the data and the results.")
@click.option("--force", is_flag=True, help="Replace the demo's data files if they were edited.")
@click.option("--jobs", type=int, default=-1, help="Processes; -1 uses all processors.")
@click.option("--open", "show", is_flag=True, help="Open the report in the browser at the end.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def demo(data: str, out: Path, force: bool, jobs: int, show: bool, quiet: bool) -> None:
    """Run the whole analysis once: write a study's files into a folder, check them, fit, and write results.

    The files are treated exactly like your own.
    """
    from icqf.engines.parallel import workers

    with workers(1 if data in SMALL else jobs, NEEDED):
        from icqf.workflow.demo import run_demo
    with Meter(quiet=quiet) as meter:
        how: dict[str, Any] = {"begin": partial(announce, quiet=quiet, meter=meter), "jobs": jobs}
        fit, names = run_demo(data, out, force=force, callback=meter, **how)
    report = (out / "results" / "report.html").resolve()
    if not quiet:
        _show(fit, out, names)
        echo(f"\nOpen the report in a browser: {report}")
    if show and not webbrowser.open(report.as_uri()):
        say([f"The browser could not be opened; open {report} yourself."])


def _show(fit: StudyFit, out: Path, names: list[str]) -> None:
    """Print the results, their folder, and what to try next."""
    say(fit.warnings)
    if fit.search is not None:
        echo(choice_text(fit.search, fit.options.rule) + "\n")
    echo(model_text(fit.model, fit.study.items, top=4))
    echo(f"\nResults are in {out / 'results'}: {', '.join(names)}")
    answers, codebook = fit.options.answers, fit.options.codebook
    echo(
        "\nTry next:\n"
        f"  icqf check {answers} --codebook {codebook} --confounds age sex\n"
        f"  icqf show {out / 'results' / 'model.icqf'} --all\n"
        f"  icqf score {out / 'results' / 'model.icqf'} {answers} --out new-scores.csv"
    )


_NEEDED = {"starlette": "starlette", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}


@command(
    "The whole analysis in a browser, on this computer.",
    """icqf app
    icqf app --folder ~/studies/runs --no-open""",
)
@click.option("--folder", type=FILE, default=Path("~/icqf-runs"), help="Folder for the runs.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port.  [default: 8765, or another free one]")
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="MB", help="Largest file accepted.  [default: by memory]"
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--allow-other-machines",
    is_flag=True,
    help="Allow a --host that other computers can reach: answers are then sent unencrypted.",
)
def app(
    folder: Path, port: int | None, opens: bool, limit: int | None, host: str, allow_other_machines: bool
) -> None:
    """Check and fit a questionnaire's answers, read the report, and score participants, in the browser.

    The app listens on this computer only, and your data never leave it. Every run is a folder with a
    config.toml, with which icqf fit repeats it. Stop the app with Ctrl-C; a running fit continues.
    """
    absent = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if absent:
        raise InputError(f"The app needs {', '.join(absent)}; pip install 'icqf[app]'.")
    from icqf.app.server import serve

    def begin(address: Any) -> None:
        echo(f"The app is at\n  {address.url}\nRuns are kept in {folder.expanduser()}. Stop it with Ctrl-C.")
        if allow_other_machines:
            echo(
                "Warning: other computers can reach this app. Anyone who has the address with its token can "
                "see and change everything in it, and nothing is encrypted.",
                err=True,
            )
        if opens:
            webbrowser.open(address.url_once)

    most = None if limit is None else limit * 2**20
    serve(folder, host=host, port=port, other_machines=allow_other_machines, limit=most, begin=begin)
