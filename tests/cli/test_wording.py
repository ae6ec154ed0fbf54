"""What the library says comes out in the words of the command line, from codes and fields alone."""

import ast
import pickle
import re
from pathlib import Path

import pytest

import icqf
from icqf import ICQF
from icqf.cli.program import COMMANDS, OWN
from icqf.cli.text import CALLER, option, typed_setting, worded
from icqf.data.check import Finding
from icqf.data.questionnaire import Draft, Questionnaire, range_faults
from icqf.datasets import load_demo
from icqf.errors import Advice, InputError, InputWarning, Setting, sentence
from icqf.screening.missing_codes import missing_code_remedy


def test_an_answer_outside_its_range():
    answers = load_demo().answers.iloc[:3, :2].astype(float)
    answers.iloc[1, 0] = 9
    with pytest.raises(InputError) as caught:
        Questionnaire(answers, load_demo().items[:2])
    assert str(caught.value).endswith("If 9 marks a missing answer, add missing_codes=[9].")
    assert worded(caught.value).endswith("If 9 marks a missing answer, add --missing-codes 9.")
    assert worded(caught.value).startswith(caught.value.message)


@pytest.mark.parametrize(
    ("value", "typed"), [(9.0, "9"), (-9.5, "-9.5"), ("n/a", "n/a"), ("don't know", "'don'\"'\"'t know'")]
)
def test_a_missing_code_is_typed_as_the_shell_needs_it(value, typed):
    fault = InputError("Found.", remedy=missing_code_remedy(value))
    assert worded(fault).endswith(f"add --missing-codes {typed}.")


def test_a_parameter_is_named_as_an_option_unless_a_file_names_it():
    with pytest.raises(InputError) as caught:
        ICQF(0, item_range=(0, 2)).fit([[0, 1], [2, 2]])
    assert worded(caught.value) == "--n-components must be a whole number of at least 1, not 0."
    in_a_file = caught.value.at("run.toml")
    assert worded(in_a_file) == "run.toml: n_components must be a whole number of at least 1, not 0."


def test_a_value_that_looks_like_another_sentence_changes_nothing():
    name = "declare missing_codes=[1] or item_range"
    assert worded(InputError(f"Item {name!r} appears twice.")) == f"Item {name!r} appears twice."
    assert worded(InputWarning("n_components=[2] in a name")) == "n_components=[2] in a name"
    assert worded("confound_ranges in a note") == "confound_ranges in a note"


def test_findings_and_errors_have_the_same_words():
    fault = InputError("Found.", remedy=Advice("Add {force=}.", force=True), item="q", row=3)
    finding = Finding.of(fault)
    assert worded(finding) == worded(fault)
    assert (
        worded(fault) == "Found. Add --force." and finding.sentence == str(fault) == "Found. Add force=True."
    )
    assert (finding.item, finding.row, finding.severity) == ("q", "3", "error")


def test_errors_cross_processes_whole():
    advice = Advice("Add {codes=} to {}.", "{beta}", codes=["x"])
    fault = InputError("Found.", code="text", remedy=advice, value="x").at("answers.csv")
    again = pickle.loads(pickle.dumps(fault))
    assert vars(again) == vars(fault) and str(again) == "answers.csv: Found. Add codes=['x'] to {beta}."
    assert worded(again) == worded(fault) == "answers.csv: Found. Add --codes x to {beta}."


def test_the_fields_say_what_the_sentence_says():
    demo = load_demo()
    answers = demo.answers.astype(float)
    answers.iloc[[2, 5], 3] = -4
    draft = Draft(answers, demo.items, file_rows=demo.file_rows)
    (fault,) = range_faults(draft)
    item = demo.items[3]
    assert fault.fields == {
        **{"item": item.name, "value": -4, "low": item.min, "high": item.max, "count": 2},
        **{"participant": str(answers.index[2]), "row": 4},
    }
    for part in (item.name, "-4", "row 4", str(answers.index[2]), "1 more"):
        assert part in fault.message


@pytest.mark.parametrize(
    ("advice", "typed"),
    [
        (Advice("{visit=}", visit={"wave": "year 1", "arm": "a"}), "--visit 'wave=year 1' --visit arm=a"),
        (Advice("{report=}", report=False), "--no-report"),
        (Advice("{reverse=}", reverse="auto"), "--reverse auto"),
        (Advice("{reverse=}", reverse=["auto", "a, b"]), "--reverse 'aut?' 'a? b'"),
        (Advice("{bins=}", bins=("baseline", "year 1")), "--bins baseline 'year 1'"),
        (Advice("{betas}"), "--beta"),
    ],
)
def test_settings_are_typed_as_the_shell_needs_them(advice, typed):
    assert worded(InputError("Found.", remedy=advice)) == f"Found. {typed}"


def test_every_setting_that_a_remedy_names_is_an_option_of_a_command():
    commands = [COMMANDS.load(name) for name in OWN]
    options = {text for command in commands for each in command.params for text in each.opts}
    named = set()
    for path in Path(icqf.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Advice":
                parts = [part.value for part in ast.walk(call.args[0]) if isinstance(part, ast.Constant)]
                named |= {name for part in parts for name in re.findall(r"\{(\w+)=?\}", str(part))}
    assert {"max_iter", "missing_codes", "reverse", "force"} <= named
    assert {typed_setting(Setting(name)) for name in named} <= options


def test_options_are_typed_with_hyphens():
    assert option("missing_confounds") == "--missing-confounds"


def test_advice_for_commands_is_shown_where_commands_are_typed_and_crosses_processes():
    own = Advice("Add {codebook=} of {}.", "{file}", codebook="items.csv")
    fault = InputError("Found.", remedy=Advice("Declare it.", typed=own))
    for each in (fault, pickle.loads(pickle.dumps(fault)), Finding.of(fault)):
        assert worded(each) == "Found. Add --codebook items.csv of {file}."
        assert sentence(each) == "Found. Declare it."


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        (9, "x = 9"),
        ([9, 99], "x = c(9, 99)"),
        (["it's"], 'x = "it\'s"'),
        (True, "x = TRUE"),
        (0.1, "x = 0.1"),
        ({"age": "5:21"}, 'x = c(`age` = "5:21")'),
    ],
)
def test_settings_are_arguments_in_r(monkeypatch, value, argument):
    monkeypatch.setenv(CALLER, "R")
    assert worded(InputError("Odd.", remedy=Advice("Try {x=}.", x=value))) == f"Odd. Try {argument}."
    assert worded(InputError("Odd.", remedy=Advice("See {x}."))) == "Odd. See x."
    assert worded("See icqf check, or icqf codebook.") == "See icqf_check(), or icqf codebook."


def test_a_mistyped_option_is_an_argument_in_r(run):
    result = run("fit", "answers.csv", "--n-component=2", env={CALLER: "R"})
    assert result.exit_code == 2
    assert result.stderr == "Error: There is no argument n_component. Did you mean n_components?\n"
