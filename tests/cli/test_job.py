"""Options that mean the same in every command that computes."""

import pytest

from icqf.cli.program import COMMANDS
from icqf.data.settings import options_in
from icqf.workflow.options import LongitudinalOptions, StudyOptions

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


@pytest.mark.parametrize(("command", "kind"), [("fit", StudyOptions), ("longitudinal", LongitudinalOptions)])
def test_options_are_what_their_record_declares(command, kind):
    typed, declared = options(command), options_in(kind)
    for name in set(typed) & set(declared) - {"answers"}:
        assert typed[name].help.startswith(declared[name].help)
        default = getattr(kind, name)
        assert default in (None, (), False) or typed[name].default == default
