"""`icqf shortform`: a folder with the form, a model that scores it, and a page to fill in."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import load_demo, make_battery
from icqf.io import read_codebook
from icqf.models import MetaICQF
from small_study import ITEMS, table


@pytest.fixture(scope="module")
def short(run, results, files, tmp_path_factory):
    """A form of five items; not to be written to."""
    out = tmp_path_factory.mktemp("short") / "form"
    result = run(
        *("shortform", results / "model.icqf", files / "answers.csv", "--max-items", "5", "--keep", "q03"),
        *("--title", "Five <questions>", "--out", out),
    )
    assert result.exit_code == 0, result.stderr
    return out, result


def test_what_is_written(short):
    out, result = short
    names = [
        "bands.csv",
        "curve.csv",
        "curve.png",
        "factors.csv",
        "form.html",
        "items.csv",
        "model.icqf",
        "provenance.json",
    ]
    assert sorted(path.name for path in out.iterdir()) == names
    items = read_codebook(out / "items.csv")
    assert len(items) == 5 and "q03" in [item.name for item in items]
    assert re.search(r"5 of 12 items: in new participants, scores correlate 0\.\d{2}", result.stdout)
    assert "q03  Question q03  (reversed)" in result.stdout
    account = json.loads((out / "provenance.json").read_text())
    assert account["result"]["items"] == [item.name for item in items]
    assert account["options"]["keep"] == ["q03"]
    assert "/" not in account["inputs"][0]["file"]
    factors = pd.read_csv(out / "factors.csv")
    assert factors.columns.tolist() == ["factor", "correlation", "reliability", "corrected"]
    assert factors.iloc[:, 1:].gt(0).all(axis=None) and "reliability  corrected" in result.stdout
    curve = pd.read_csv(out / "curve.csv")
    assert curve["n_items"].tolist() == [1, 2, 3, 4, 5]


def test_the_short_questionnaire_is_scored(run, short, results, tmp_path):
    """A file with the form's items alone is scored: directions and missing codes go along."""
    out, _ = short
    names = [item.name for item in read_codebook(out / "items.csv")]
    asked = table()[["record_id", "age", "sex", *names]]
    asked.to_csv(tmp_path / "short.csv", index=False)
    result = run("score", out / "model.icqf", tmp_path / "short.csv")
    assert result.exit_code == 0, result.stderr
    scores = pd.read_csv(io.StringIO(result.stdout)).set_index("record_id")
    full = pd.read_csv(results / "scores.csv").set_index("record_id")
    both = scores.notna().all(axis=1) & full.notna().all(axis=1)
    assert np.corrcoef(scores[both]["factor1"], full[both]["factor1"])[0, 1] > 0.9
    hidden = table().copy()
    hidden[[name for name in ITEMS if name not in names]] = ""
    hidden.to_csv(tmp_path / "hidden.csv", index=False)
    missing = pd.read_csv(io.StringIO(run("score", results / "model.icqf", tmp_path / "hidden.csv").stdout))
    missing = missing.set_index("record_id")
    assert (scores - missing).abs().median().max() < 1e-3


def test_the_page_holds_what_it_needs_and_no_participant(short):
    out, _ = short
    page = (out / "form.html").read_text()
    assert "Five &lt;questions&gt;" in page and "default-src 'none'" in page and "form-action 'none'" in page
    assert "not intervals for a person's true state" in page
    assert (
        "one question at a time" not in page
    )  # of 80 participants, the model keeps no distribution of scores
    assert page.count("<fieldset") == 5 and "Factor 2" in page and "Question q03" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    for participant in table()["record_id"].head(3):
        assert f'"{participant}"' not in page


def test_the_page_asks_in_the_words_of_the_codebook_that_is_given(run, results, files, tmp_path):
    """And scores in its directions, as the model file beside it does."""
    book = pd.read_csv(files / "items.csv")
    book["wording"] = [f"Reworded {name}" for name in book["name"]]
    book.to_csv(tmp_path / "items.csv", index=False)
    words = ("--max-items", "4", "--codebook", tmp_path / "items.csv", "--out", tmp_path / "form")
    done = run("shortform", results / "model.icqf", files / "answers.csv", *words)
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "form" / "form.html").read_text()
    chosen = [item.name for item in read_codebook(tmp_path / "form" / "items.csv")]
    assert len(chosen) == 4 and all(f"Reworded {name}" in page for name in chosen)
    assert "Question q" not in page


def test_the_model_says_that_it_is_short(run, short):
    result = run("show", short[0] / "model.icqf")
    assert "2 factors behind 5 items" in result.stdout
    assert ICQF.load(short[0] / "model.icqf").n_features_in_ == 5


def test_results_are_not_replaced_unasked(run, short, results, files):
    words = (
        "shortform",
        results / "model.icqf",
        files / "answers.csv",
        "--max-items",
        "3",
        "--out",
        short[0],
    )
    result = run(*words)
    assert result.exit_code == 2 and "add --force to replace" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-items", "0"], "--max-items must be a whole number of at least 1, not 0."),
        (["--max-items", "30"], "--max-items is 30, and there are 12 items to choose from; give at most 12."),
        (["--correlation", "2", "--max-items", "3"], "--correlation must be a number of at most 1, not 2."),
        (["--drop", "*"], "All items are to be dropped, so none is left to ask; drop fewer."),
        (["--keep", "mood"], "No item is named or matches 'mood'."),
        (["--keep", "q01", "--drop", "q0*", "--max-items", "2"], "'q01' is to be both kept and dropped"),
        (["--max-minutes", "2", "--max-items", "3"], "--max-minutes needs minutes"),
        (["--minutes", "soon"], "soon"),
        (["--adaptive-width", "0"], "--adaptive-width must be a number above 0, not 0."),
        (["--minutes=-1", "--max-items", "3"], "--minutes must be a number above 0, not -1.0."),
        (["--groups", "site"], "there is no column 'site'"),
        (["--names", "Mood"], "No such option"),
        (["--seed", "-3"], "--seed must be a whole number of at least 0, not -3."),
    ],
)
def test_what_cannot_be_done(run, results, files, tmp_path, words, said):
    out = tmp_path / "form"
    result = run("shortform", results / "model.icqf", files / "answers.csv", "--out", out, *words)
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr and "Traceback" not in result.stderr
    assert not out.exists()


def test_a_table_of_minutes(run, results, files, tmp_path):
    pd.DataFrame({"item": ITEMS, "minutes": 0.25}).to_csv(tmp_path / "minutes.csv", index=False)
    result = run(
        *("shortform", results / "model.icqf", files / "answers.csv", "--minutes", tmp_path / "minutes.csv"),
        *("--max-minutes", "1", "--max-items", "8", "--out", tmp_path / "form"),
    )
    assert result.exit_code == 0, result.stderr
    assert "4 of 12 items, about 1 minute:" in result.stdout


def test_the_answers_come_second(run, results, files, tmp_path):
    result = run("shortform", files / "answers.csv", results / "model.icqf", "--out", tmp_path / "form")
    assert result.exit_code == 2 and "name the model before the answers" in result.stderr


def test_a_battery(run, tmp_path):
    """Items are chosen across instruments; the model that is written scores a folder with only these."""
    battery = make_battery(n=120, n_items=(8, 8), n_factors=2, n_meta=2, random_state=0).battery
    MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery).save(tmp_path / "meta.icqf")
    study = tmp_path / "study"
    study.mkdir()
    for name, each in battery.instruments.items():
        each.answers.to_csv(study / f"{name}.csv")
    words = ("shortform", tmp_path / "meta.icqf", study, "--max-items", "6", "--out", tmp_path / "form")
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert "6 of 16 items" in result.stdout and "  A: a0" in result.stdout
    assert not (tmp_path / "form" / "form.html").exists()
    items = read_codebook(tmp_path / "form" / "items.csv")
    assert len(items) == 6 and {item.subscale for item in items} <= {"A", "B"}
    scored = run("score", tmp_path / "form" / "model.icqf", study)
    assert scored.exit_code == 0, scored.stderr
    assert scored.stdout.startswith("id,meta1,meta2")
    refused = run(*words, "--force", "--groups", "family")
    assert refused.exit_code == 2 and "--groups does not apply to batteries" in refused.stderr
    (study / "B.csv").unlink()
    refused = run(*words, "--force")
    assert refused.exit_code == 2
    assert "Instrument 'B' was answered by 0 participants, but at least 30 are needed" in refused.stderr


def test_participants_who_all_answer_alike(run, results, tmp_path):
    frame = table().head(60)
    frame.loc[:, [*ITEMS, "age", "sex"]] = frame.loc[frame.index[0], [*ITEMS, "age", "sex"]].to_numpy()
    frame.to_csv(tmp_path / "alike.csv", index=False)
    words = ("shortform", results / "model.icqf", tmp_path / "alike.csv", "--max-items", "3")
    result = run(*words, "--out", tmp_path / "form")
    assert result.exit_code == 2 and "All participants have the same scores" in result.stderr, result.stderr


def test_with_enough_participants_the_page_also_asks_one_question_at_a_time(run, tmp_path):
    demo = load_demo().select(["q00*"])
    ICQF(2, n_init=1).fit(demo).save(tmp_path / "model.icqf")
    demo.answers.join(demo.confounds).to_csv(tmp_path / "answers.csv")
    words = ("--max-items", "4", "--adaptive-width", "0.25", "--out", tmp_path / "form")
    done = run("shortform", tmp_path / "model.icqf", tmp_path / "answers.csv", *words)
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "form" / "form.html").read_text()
    assert "one question at a time" in page and 'value="0.25"' in page
