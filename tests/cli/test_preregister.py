"""`icqf preregister` freezes a plan without answers; `icqf fit --plan` follows it and reports deviations."""

import json
import os
import re
import tomllib

import pandas as pd
import pytest

from icqf.io import read_preregistration
from icqf.io.preregistration import EXISTING_DATA, QUESTIONS, template
from icqf.workflow import fit_study
from plans import ANSWERS, write_decisions
from small_study import ITEMS

EXPECTED = (
    'participants = "70-79"',
    'n_factors = "2"',
    'same_factor = [["q01", "q02", "q03"], ["q1*"]]',
    "replication = 0.5",
)
SETTINGS = ("--confounds", "age", "sex", "--n-components", 2, "--beta", 0.1, "--bootstrap", 0)


@pytest.fixture(scope="module")
def plan(run, files, tmp_path_factory):
    """A frozen plan of the small study, with its texts; not to be written to."""
    folder = tmp_path_factory.mktemp("plan")
    decisions = write_decisions(folder / "decisions.toml", EXPECTED, hypotheses="First.\n\nSecond.")
    words = ("--codebook", files / "items.csv", *SETTINGS, "--decisions", decisions)
    result = run("preregister", *words, "--out", folder / "plan.toml")
    assert result.exit_code == 0, result.stderr
    assert read_preregistration(folder / "plan.toml").sha256 in result.stdout
    assert "does not show when the plan was made" in result.stdout
    return folder / "plan.toml"


def test_the_questions_are_written_once(run, tmp_path):
    place = tmp_path / "decisions.toml"
    assert run("preregister", "--template", place).exit_code == 0
    content = tomllib.loads(place.read_text(encoding="utf-8"))
    assert list(content) == [*(question.key for question in QUESTIONS), "expected"]
    again = run("preregister", "--template", place)
    assert again.exit_code == 2 and "already exists" in again.stderr


def test_all_settings_are_spelled_out(plan):
    content = tomllib.loads(plan.read_text(encoding="utf-8"))
    options = content["options"]
    assert options["confounds"] == ["age", "sex"] and options["n_components"] == [2]
    assert (options["n_splits"], options["intercept"], options["groups"], options["items"]) == (
        10,
        True,
        "",
        [],
    )
    assert not {"answers", "codebook", "jobs", "engine", "figures", "plan"} & set(options)
    assert [item["name"] for item in content["item"]] == ITEMS
    assert content["expected"]["same_factor"] == [["q01", "q02", "q03"], ["q10", "q11", "q12"]]
    assert content["item"][2]["direction"] == "reverse" and content["item"][0]["missing"] == ["9"]


def test_the_form_has_osfs_headings_and_generated_sentences(plan):
    page = plan.with_suffix(".md").read_text(encoding="utf-8")
    for question in QUESTIONS:
        assert f"## {question.page}\n" in page and f"### {question.heading}\n" in page
    for text in (
        *ANSWERS.values(),
        "First.\n\nSecond.\n\nChecked by the program",
        "Besides the factors, the model has the confounds age and sex and an intercept.",
        "The number of factors is set in advance to 2 and the penalty β is set in advance to 0.1.",
        "Reversed before the analysis: q03.",
        "Values that mean no answer: 9.",
        "No intervals and no replication probabilities",
        read_preregistration(plan).sha256,
    ):
        assert text in page or text == ANSWERS["hypotheses"], text
    assert plan.with_suffix(".docx").stat().st_size > 5000


def fitted(run, files, plan, out, *words):
    """The record of a fit under the plan, and what it printed."""
    result = run("fit", files / "answers.csv", "--plan", plan, *words, "--out", out)
    assert result.exit_code == 0, result.stderr
    return json.loads((out / "provenance.json").read_text())["preregistration"], result


def test_a_fit_as_planned(run, files, plan, tmp_path):
    """Options and a codebook that repeat the plan are no deviations."""
    out = tmp_path / "results"
    same = (
        "--codebook",
        files / "items.csv",
        "--report",
        "--bootstrap",
        0,
        "--n-components",
        "2",
        "--confounds",
        "age,sex",
    )
    record, result = fitted(run, files, plan, out, *same)
    assert record["n_deviations"] == 0 and record["deviations"] == [] == record["declared"]
    assert "Two factors: No deviations from the preregistered plan." in result.stdout
    assert "So far there are no deviations" in result.stderr
    assert record["sha256"] == read_preregistration(plan).sha256
    assert record["participants"] == "Of 80 rows that were read, 79 participants were fitted."
    assert [row["agrees"] for row in record["found"]] == [True, None, True, True, True, None]
    assert (out / "preregistration.toml").read_bytes() == plan.read_bytes()
    for name in ("report.md", "deviations.md", "report.html", "report.json"):
        assert (
            "No deviations from the preregistered plan." in (out / name).read_text() or name == "report.json"
        )
    page = (out / "report.md").read_text()
    assert page.index("No deviations") < page.index("## Preregistered plan") < page.index("## The factors")
    assert "SHA-256 checksum beginning" in page and "without deviations." in page
    assert json.loads((out / "report.json").read_text())["preregistration"]["n_deviations"] == 0
    card = run("show", out / "model.icqf").stdout
    assert "followed a preregistered plan" in " ".join(card.split())
    named = run("report", out, "--names", "Home", "School", "--save-as", tmp_path / "report.docx")
    assert named.exit_code == 0, named.stderr
    assert "## Preregistered plan" in (out / "report.md").read_text()
    usual = (files / "answers.csv", "--codebook", files / "items.csv", *SETTINGS)
    assert run("fit", *usual, "--out", tmp_path / "without").exit_code == 0
    scores = [(folder / "scores.csv").read_bytes() for folder in (out, tmp_path / "without")]
    assert scores[0].splitlines()[1:] == scores[1].splitlines()[1:]
    assert "preregistration" not in json.loads((tmp_path / "without" / "provenance.json").read_text())


def test_deviations_are_listed_with_their_reasons(run, files, plan, tmp_path):
    book = pd.read_csv(files / "items.csv", dtype=str).iloc[::-1]
    book.loc[book["name"] == "q03", "direction"] = ""
    book.loc[book["name"].isin(["q04", "q05"]), "max"] = "4"
    book.loc[book["name"] == "q06", ["min", "max"]] = ""
    book = book[book["name"] != "q12"]
    book.to_csv(tmp_path / "other.csv", index=False)
    words = ("--codebook", tmp_path / "other.csv", "--beta", 0.2, "--confounds", "age", "--n-splits", 5)
    reasons = ("confounds: sex was not recorded", "q03: a mistake in the manual", "One site dropped out.")
    record, result = fitted(run, files, plan, tmp_path / "out", *words, "--deviation", *reasons)
    assert [tuple(row.values()) for row in record["deviations"]] == [
        ("Confounds", "age, sex", "age", "sex was not recorded"),
        ("Penalty β", "0.1", "0.2", ""),
        ("Folds", "10", "5", ""),
        ("Direction of item q03 in the codebook", "reverse", "forward", "a mistake in the manual"),
        ("Highest answer of items q04, q05 in the codebook", "3", "4", ""),
        ("Lowest answer of item q06 in the codebook", "0", "not declared", ""),
        ("Highest answer of item q06 in the codebook", "3", "not declared", ""),
        ("Item q12", "in the codebook", "not in it", ""),
        ("Order of items in the codebook", "that of the plan", "another one", ""),
    ]
    assert record["declared"] == ["One site dropped out."] and record["n_deviations"] == 10
    assert "Two factors: Ten deviations from the preregistered plan." in result.stdout
    assert "Penalty β: planned 0.1; done 0.2. No reason is given." in result.stdout
    page = (tmp_path / "out" / "deviations.md").read_text()
    assert "**Ten deviations from the preregistered plan.**" in page and "| no reason is given |" in page


def test_items_that_are_not_in_the_file_and_dropped_confounds(run, files, plan, tmp_path):
    answers = pd.read_csv(files / "answers.csv", dtype=str).drop(columns=["q02", "sex"])
    answers.head(60).to_csv(tmp_path / "answers.csv", index=False)
    words = ("fit", tmp_path / "answers.csv", "--plan", plan)
    refused = run(*words, "--out", tmp_path / "out")
    assert refused.exit_code == 2 and "'sex'" in refused.stderr
    assert run(*words, "--confounds", "", "--out", tmp_path / "out").exit_code == 0
    again = run("fit", "--config", tmp_path / "out" / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    for out in (tmp_path / "out", tmp_path / "again"):
        record = json.loads((out / "provenance.json").read_text())["preregistration"]
        assert [(row["what"], row["done"]) for row in record["deviations"]] == [
            ("Confounds", "none"),
            ("Item q02", "not in the file of answers"),
            ("Participants in the fit", "59"),
        ]
        assert [row["agrees"] for row in record["found"]][:1] == [False]
        assert record["found"][2]["found"].endswith("not analysed: q02")
    models = [(tmp_path / name / "model.icqf").read_bytes() for name in ("out", "again")]
    assert models[0] == models[1]


def test_the_same_in_other_words_is_no_deviation(run, files, plan, tmp_path):
    words = ("--confounds", "sex", "age", "--items", "q1*", "q0*", "--jobs", 2, "--format", "parquet")
    result = run("fit", files / "answers.csv", "--plan", plan, *words, "--out", tmp_path, "--dry-run")
    assert "So far there are no deviations" in result.stderr, result.stderr
    some = run("fit", files / "answers.csv", "--plan", plan, "--items", "q0*", "--out", tmp_path, "--dry-run")
    assert "Items: planned all; done q0*." in some.stderr


def test_missing_codes_of_a_dictionary_are_a_deviation(run, files, plan, tmp_path):
    (tmp_path / "items.json").write_text('{"q01": {"MissingValues": [8]}, "q02": {"MissingValues": ["x"]}}')
    words = ("fit", files / "answers.csv", "--plan", plan, "--dictionary", tmp_path / "items.json")
    reasons = ("--deviation", "q01: the export has them", "--out", tmp_path / "out", "--dry-run")
    said = " ".join(run(*words, *reasons).stderr.split())
    assert said.count("Deviation from the plan: Missing codes of item q0") == 2, said
    assert "item q02 that the file or its dictionary declares: planned none; done x." in said
    assert "Reason: the export has them." in said
    assert "codes of item q01" not in run(*words, "--missing-codes", 8, *reasons).stderr


def test_an_item_that_only_another_codebook_has(run, files, plan, tmp_path):
    book = pd.read_csv(files / "items.csv", dtype=str)
    book = pd.concat([book, pd.DataFrame([{"name": "age", "min": "0", "max": "99"}])])
    book.to_csv(tmp_path / "more.csv", index=False)
    words = ("--codebook", tmp_path / "more.csv", "--items", "q0*", "age", "--confounds", "sex")
    result = run("fit", files / "answers.csv", "--plan", plan, *words, "--out", tmp_path, "--dry-run")
    assert "Items: planned all; done q0*, age." in result.stderr, result.stderr


def test_in_python(plan, files):
    fit = fit_study(files / "answers.csv", plan=plan, n_components=3)
    (deviation,) = fit.compared.deviations
    assert deviation.sentence == "Number of factors: planned 2; done 3. No reason is given."
    assert fit_study(fit.options, beta=0.2).compared.number == 2
    dropped = fit_study(files / "answers.csv", plan=plan, confounds="")
    assert fit_study(dropped.options, seed=1).options.confounds == ()


def test_data_that_the_plan_denies_are_a_deviation(run, files, tmp_path):
    """A file that is older than a plan which says that there are no data; a newer one is none."""
    decisions = write_decisions(tmp_path / "decisions.toml", existing_data=EXISTING_DATA[0])
    words = ("--codebook", files / "items.csv", *SETTINGS, "--decisions", decisions)
    assert run("preregister", *words, "--out", tmp_path / "plan.toml").exit_code == 0
    answers = tmp_path / "answers.csv"
    answers.write_bytes((files / "answers.csv").read_bytes())
    for at, there in ((1_600_000_000, True), (4_000_000_000, False)):
        os.utime(answers, (at, at))
        words = ("--out", tmp_path / "out", "--dry-run", "--deviation", "Recruitment ended early.")
        said = " ".join(run("fit", answers, "--plan", tmp_path / "plan.toml", *words).stderr.split())
        assert ("answers.csv was last changed on 2020-09-13, before the plan was frozen" in said) is there
        assert "Deviation from the plan: Recruitment ended early." in said


def test_a_plan_after_an_analysis_is_not_called_preregistered(run, files, tmp_path):
    decisions = write_decisions(tmp_path / "decisions.toml", existing_data=EXISTING_DATA[4])
    words = ("--codebook", files / "items.csv", *SETTINGS, "--decisions", decisions)
    assert run("preregister", *words, "--out", tmp_path / "plan.toml").exit_code == 0
    record, result = fitted(run, files, tmp_path / "plan.toml", tmp_path / "out")
    assert "No deviations from the plan, which was made after an analysis of the data." in result.stdout
    assert "preregistered" not in record["sentence"]


def test_a_plan_for_another_questionnaire(run, files, plan, tmp_path):
    answers = pd.read_csv(files / "answers.csv", dtype=str)
    answers.rename(columns=lambda name: name.replace("q", "bdi")).to_csv(tmp_path / "other.csv", index=False)
    result = run("fit", tmp_path / "other.csv", "--plan", plan, "--out", tmp_path / "out")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "other.csv: none of the 12 planned items ('q01', 'q02'" in said and "is a column" in said


def test_another_version_of_icqf_is_a_deviation(run, files, plan, tmp_path, monkeypatch):
    monkeypatch.setattr("icqf.workflow.deviations.__version__", "9.9")
    record, _ = fitted(run, files, plan, tmp_path / "out")
    assert [(row["what"], row["done"]) for row in record["deviations"]] == [("Version of icqf", "9.9")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "ANSWERS", "--plan", "ALTERED"), "altered.toml: the plan was changed after it was frozen"),
        (("fit", "ANSWERS", "--plan", "ITEMS"), "this is not a plan that icqf preregister froze"),
        (("fit", "ANSWERS", "--plan", "nowhere.toml"), "nowhere.toml: there is no such file."),
        (("fit", "ANSWERS", "--config", "PLAN"), "this is a preregistered plan, not a file of options."),
        (("select", "ANSWERS", "--config", "PLAN"), "this is a preregistered plan, not a file of options."),
        (("select", "--config", "CONFIG"), "config.toml: plan is for icqf fit and has no effect here"),
        (("meta", "--config", "CONFIG"), "config.toml: plan is for icqf fit and has no effect here"),
        (("fit", "ANSWERS", "--deviation", "x"), "--deviation is for a fit with a preregistered plan."),
    ],
)
def test_what_a_plan_is_not_for(run, files, plan, tmp_path, words, said):
    text = plan.read_text()
    (tmp_path / "altered.toml").write_text(text.replace("n_splits = 10", "n_splits = 11"))
    (tmp_path / "config.toml").write_text(f'answers = "{files}/answers.csv"\nplan = "{plan}"\n')
    places = {
        "ANSWERS": files / "answers.csv",
        "ITEMS": files / "items.csv",
        "PLAN": plan,
        "ALTERED": tmp_path / "altered.toml",
        "CONFIG": tmp_path / "config.toml",
    }
    result = run(*(places.get(word, word) for word in words), "--out", tmp_path / "out")
    assert result.exit_code == 2 and said in result.stderr, result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("expected", "answers", "words", "said"),
    [
        ((), {"hypotheses": " ", "title": None}, (), "2 questions without an answer: 'title', 'hypotheses'"),
        ((), {"existing_data": "None"}, (), "must be one of the five sentences of OSF's form. Copy one"),
        ((), {"other": f"Earlier:\nsha256 = {'0' * 64}"}, (), "a line of the answer to 'other' begins with"),
        ((), {"hypothesis": "x"}, (), "'hypothesis' is not a question of the registration. Did you mean"),
        (('n_factors = "many"',), {}, (), "n_factors under [expected] must be a whole number or a range"),
        (('participants = "9-3"',), {}, (), "a range with the lower end first"),
        (("replication = 2",), {}, (), "replication under [expected] must be a number"),
        (('same_factor = [["q01", "q99"]]',), {}, (), "No item is named or matches 'q99'."),
        (('same_factor = [["q01"]]',), {}, (), "must be lists of two items or more"),
        (('same_factor = ["q01"]',), {}, (), "must be lists of items, as in"),
        (('same_factor = [["q01", "q02"], ["q0*"]]',), {}, (), "must be lists that have no item in common"),
        (("congruence = 1",), {}, (), "'congruence' is not something that is checked."),
        ((), {}, ("--items", "z*"), "No item is named or matches 'z*'."),
        ((), {}, ("--subscales", "Mod"), "there is no subscale 'Mod'. Did you mean 'Mood'?"),
        ((), {}, ("--out", "plan.json"), "plan.json: a plan is written as .toml"),
    ],
)
def test_decisions_that_cannot_be_frozen(run, files, tmp_path, expected, answers, words, said):
    decisions = write_decisions(tmp_path / "decisions.toml", expected, **answers)
    words = words if "--out" in words else (*words, "--out", tmp_path / "plan.toml")
    result = run("preregister", "--codebook", files / "items.csv", "--decisions", decisions, *words)
    assert result.exit_code == 2 and said in result.stderr, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["decisions.toml"]


def test_without_decisions_or_codebook(run, files, tmp_path):
    result = run("preregister", "--codebook", files / "items.csv", "--out", tmp_path / "plan.toml")
    assert result.exit_code == 2 and "Write the questions with 'icqf preregister --template" in result.stderr
    result = run("preregister", "--out", tmp_path / "plan.toml")
    assert result.exit_code == 2 and "No codebook is given" in result.stderr


def test_what_is_read_and_what_others_wrote_is_kept(run, files, results, tmp_path):
    decisions = write_decisions(tmp_path / "decisions.toml")
    words = ("preregister", "--codebook", files / "items.csv", "--decisions", decisions, "--force")
    (tmp_path / "folder.md").mkdir()
    places = {
        decisions: "this is an input file, which would be lost",
        results / "config.toml": "belongs to the results in 'results'",
        tmp_path / "folder.toml": "this is a folder",
        tmp_path / "nowhere" / "plan.toml": "nowhere",
    }
    for out, said in places.items():
        before = out.read_bytes() if out.is_file() else None
        refused = run(*words, "--out", out)
        assert refused.exit_code == 2 and said in refused.stderr, refused.stderr
        assert before == (out.read_bytes() if out.is_file() else None)
    refused = run("preregister", "--template", results / "config.toml", "--force")
    assert refused.exit_code == 2 and "belongs to the results" in refused.stderr


def test_a_plan_holds_no_names_of_participants(run, tmp_path):
    """Answers given as the codebook, whose column of names would be the items."""
    (tmp_path / "answers.csv").write_text("name,q1,q2\nAnna Smith,1,2\nBob Jones,0,1\n")
    decisions = write_decisions(tmp_path / "decisions.toml")
    words = ("--codebook", tmp_path / "answers.csv", "--decisions", decisions)
    result = run("preregister", *words, "--out", tmp_path / "plan.toml")
    assert result.exit_code == 2 and "answers.csv: nothing is said of the items" in result.stderr
    assert not (tmp_path / "plan.toml").exists()


def test_a_dictionary_is_made_a_codebook_first(run, tmp_path):
    head = '"Variable / Field Name","Form Name","Field Type","Field Label","Choices"'
    (tmp_path / "d.csv").write_text(f'{head}\nq1,f,radio,Sad,"0, never | 1, often"\n')
    decisions = write_decisions(tmp_path / "decisions.toml")
    words = ("--codebook", tmp_path / "d.csv", "--decisions", decisions, "--out", tmp_path / "plan.toml")
    result = run("preregister", *words)
    assert (
        result.exit_code == 2 and "d.csv: this is a dictionary, and a plan needs a codebook" in result.stderr
    )


def test_every_choice_has_its_sentence(run, files, tmp_path):
    decisions = write_decisions(tmp_path / "decisions.toml", existing_data=f"{EXISTING_DATA[4].lower()}.")

    def page(*words):
        given = ("--codebook", files / "items.csv", "--decisions", decisions, *words, "--force")
        assert run("preregister", *given, "--out", tmp_path / "plan.toml").exit_code == 0
        return (tmp_path / "plan.md").read_text(encoding="utf-8")

    usual = page()
    assert "numbers of factors around the one that parallel analysis suggests" in usual
    assert "β = 0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5 (and stronger ones" in usual
    assert "95% intervals from 100 resamples" in usual and EXISTING_DATA[4] in usual
    some = page(
        *(
            "--n-components",
            "2-4",
            "--n-repeats",
            3,
            "--rule",
            "one_se",
            "--groups",
            "site",
            "--items",
            "q0*",
        ),
        *(
            "--item-weight",
            "variance",
            "--visit",
            "wave=1",
            "--doubled",
            "first",
            "--without-id",
            "leave-out",
        ),
        *("--weights", "w", "--reverse", "q01", "--missing-codes", 8, "--confounds", "age", "--paper"),
        *("--missing-confounds", "mean", "--confound-ranges", "age=5:21", "--consensus", "--no-intercept"),
    )
    for text in (
        "9 items, as in the table",
        "repeated 3 times, among 2 to 4 factors and the penalties β = 0,",
        "is the smallest whose",
        "Members of one group (site) are never in different folds.",
        "Answers are divided by the standard deviation",
        "Only one visit is analysed: wave = 1. Of several rows of one participant, the first is used. Rows",
        "Reversed before the analysis: q03 and q01.",
        "Values that mean no answer: 8, 9.",
        "Confounds: age (5 to 21).",
        "replaced by the mean of the sample",
        "the model has the confound age.",
        "Survey weights: w.",
        "averages over fits",
        "original publication",
    ):
        assert text in some, text
    assert re.search(r"Beta|β", page("--beta", 0.1, "--n-components", 1, 3))
    assert "The penalty β is set in advance to 0.1. The number of factors is chosen" in page("--beta", 0.1)
    assert "2 and the penalty β is set" in page("--beta", 0.1, "--n-components", 2)
    assert template().count("'''") == 2 * len(QUESTIONS)
