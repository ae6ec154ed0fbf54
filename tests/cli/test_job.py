"""Options that mean the same in every command that computes."""

import json

import pytest

from icqf.cli.program import COMMANDS
from icqf.data.settings import number_in, options_in
from icqf.errors import InputError
from icqf.workflow.options import (
    DiagnosisOptions,
    InvarianceOptions,
    LongitudinalOptions,
    MetaOptions,
    PlanOptions,
    PoolOptions,
    ScoreOptions,
    ShortFormOptions,
    StabilityOptions,
    StudyOptions,
)

GROUP = ("out", "force", "resume", "dry_run", "progress", "quiet")
LONG = ("fit", "select", "meta", "batch", "longitudinal", "invariance", "plan", "stability", "diagnosis")
FEWER = {"shortform": {"resume"}, "pool": {"resume", "dry_run", "progress"}}


def options(command):
    return {each.name: each for each in COMMANDS.load(command).params}


@pytest.mark.parametrize("command", [*LONG, *FEWER])
def test_every_command_that_computes_has_the_same_options(command):
    own, usual = options(command), options("fit")
    assert {name for name in GROUP if name in own} == set(GROUP) - FEWER.get(command, set())
    for name in ("force", "resume", "dry_run", "progress"):
        if name in own:
            assert own[name].help == usual[name].help and own[name].opts == usual[name].opts
    assert command in FEWER or "jobs" in own


@pytest.fixture(scope="module")
def model_file(results):
    return results / "model.icqf"


@pytest.mark.parametrize("command", ["plan", "stability"])
def test_a_dry_run_of_a_study_shows_it_and_writes_nothing(run, files, tmp_path, command):
    words = (files / "answers.csv", "--codebook", files / "items.csv")
    done = run(command, *words, "--out", tmp_path / "out", "--dry-run", "--quiet")
    assert done.exit_code == 0 and done.stdout.startswith("What will be analysed"), done.stderr
    assert "nothing was written (--dry-run)" in done.stderr and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("invariance", ("--by", "sex"), "sex f: "),
        ("shortform", (), "participants."),
        ("plan", (), "A model with "),
    ],
)
def test_a_dry_run_with_a_model_shows_what_was_read_and_writes_nothing(
    run, files, model_file, tmp_path, command, more, said
):
    words = (model_file,) if command == "plan" else (model_file, files / "answers.csv")
    done = run(command, *words, *more, "--out", tmp_path / "out", "--dry-run")
    assert done.exit_code == 0 and said in done.stdout, done.stderr
    assert "nothing was written (--dry-run)" in done.stderr and list(tmp_path.iterdir()) == []


def test_progress_of_other_commands_is_kept_in_a_file(run, files, model_file, tmp_path):
    words = (model_file, files / "answers.csv", "--max-items", "3", "--progress", tmp_path / "p.json")
    done = run("shortform", *words, "--out", tmp_path / "out", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert '"Choosing items"' in (tmp_path / "p.json").read_text()


KINDS = {
    **dict.fromkeys(("fit", "select", "batch", "check"), StudyOptions),
    **{"longitudinal": LongitudinalOptions, "meta": MetaOptions, "plan": PlanOptions},
    **{"stability": StabilityOptions, "diagnosis": DiagnosisOptions, "invariance": InvarianceOptions},
    **{"shortform": ShortFormOptions, "score": ScoreOptions, "pool": PoolOptions},
}
HERE = {*GROUP, "config", "top", "as_json"}  # what is said on the terminal, and where results go


@pytest.mark.parametrize("command", KINDS)
def test_options_are_what_their_record_declares(command):
    typed, declared = options(command), options_in(KINDS[command])
    assert set(typed) - HERE <= set(declared) and "config" in typed
    for name in set(typed) - HERE:
        if declared[name].argument:
            assert not typed[name].required  # it may stand in the TOML file
            continue
        assert typed[name].help.startswith(declared[name].help)
        default = getattr(KINDS[command], name, None)
        assert default in (None, (), False) or typed[name].default == default


def test_a_toml_file_holds_all_options_of_a_command_with_a_model(run, files, model_file, tmp_path):
    config = tmp_path / "run.toml"
    head = f'model = "{model_file}"\nanswers = "{files / "answers.csv"}"\n'
    config.write_text(head + 'by = "sex"\npermutations = 19\nbootstrap = 2\n')
    done = run("invariance", "--config", config, "--out", tmp_path / "groups", "--quiet")
    assert done.exit_code == 0, done.stderr
    account = json.loads((tmp_path / "groups" / "provenance.json").read_text())
    assert account["options"]["permutations"] == 19 and account["options"]["model"] == "model.icqf"
    dry = run("invariance", "--config", config, "--by", "site", "--dry-run")  # what is typed counts more
    assert dry.exit_code == 2 and "there is no column 'site'" in dry.stderr
    config.write_text(head + 'missing_codes = [0]\nformat = "xlsx"\n')
    typed = ("--missing-codes", 0, model_file, files / "answers.csv")
    assert (
        run("score", "--config", config, "--format", "csv").stdout
        == run("score", *typed[2:], *typed[:2]).stdout
    )
    config.write_text(head + 'confounds = ["age"]\n')
    refused = run("shortform", "--config", config, "--out", tmp_path / "short")
    assert (refused.exit_code, refused.stderr) == (2, "Error: run.toml: There is no option 'confounds'.\n")


@pytest.mark.parametrize(
    ("command", "key", "value", "sentence"),
    [
        ("invariance", "permutations", "3", " must be a whole number of at least 19, not 3."),
        ("invariance", "jobs", "0", " must be a number of processes, or -1 for all processors, not 0."),
        ("shortform", "correlation", "1.5", " must be a number of at most 1, not 1.5."),
        ("score", "format", "docx", "='docx' is not known; choose one of "),
    ],
)
def test_one_sentence_for_an_option_wherever_it_stands(
    run, model_file, tmp_path, command, key, value, sentence
):
    (tmp_path / "run.toml").write_text(f"{key} = {value}\n" if value[0].isdigit() else f'{key} = "{value}"\n')
    in_file = run(command, model_file, "answers.csv", "--config", tmp_path / "run.toml")
    assert (in_file.exit_code, f"run.toml: {key}{sentence}" in in_file.stderr) == (2, True), in_file.stderr
    typed = run(command, model_file, "answers.csv", f"--{key}", value)
    assert (typed.exit_code, f"--{key} {sentence.lstrip('= ')}" in typed.stderr) == (2, True), typed.stderr
    values = {"model": "m.icqf", "answers": "a.csv", "by": "sex", key: number_in(value)}
    known = options_in(KINDS[command])
    with pytest.raises(InputError) as caught:
        KINDS[command].of({name: each for name, each in values.items() if name in known})
    assert f"{key}{sentence}" in str(caught.value)


def test_what_is_not_named_is_asked_for(run, model_file, files):
    assert "Error: No model is given." in run("score").stderr
    assert "Error: No file of answers is named." in run("score", model_file).stderr
    refused = run("invariance", model_file, files / "answers.csv")
    assert (refused.exit_code, refused.stderr) == (2, "Error: No column of groups is given. Add --by.\n")
    refused = run("diagnosis", files / "answers.csv")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "Error: No column of diagnoses is given. Add --labels.\n",
    )
