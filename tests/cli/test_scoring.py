"""`icqf score` gives new participants the scores that the fit would have given them."""

import io
import shutil

import numpy as np
import pandas as pd
import pytest

from icqf.io import read_table, write_table
from small_study import REVERSED, table


@pytest.fixture
def model(results, tmp_path):
    """The model alone, far from the files it was fitted to."""
    return shutil.copy(results / "model.icqf", tmp_path / "model.icqf")


def test_the_same_participants_get_the_same_scores(run, model, files, results, tmp_path):
    result = run("score", model, files / "answers.csv", "--out", tmp_path / "scores.csv")
    assert result.exit_code == 0 and result.stdout == ""
    assert (tmp_path / "scores.csv").read_bytes() == (results / "scores.csv").read_bytes()
    assert "1 without answers" in result.stderr


def test_to_standard_output(run, model, files, results):
    result = run("score", model, files / "answers.csv")
    assert result.stdout == (results / "scores.csv").read_text()


@pytest.mark.parametrize("ending", ["sav", "parquet", "xlsx", "tsv"])
def test_other_formats_in(run, model, results, tmp_path, ending):
    frame = table()
    for name in [c for c in frame if c.startswith("q")]:
        frame[name] = pd.to_numeric(frame[name])
    path = tmp_path / f"new.{ending}"
    if ending == "tsv":
        frame.to_csv(path, sep="\t", index=False)
    else:
        write_table(frame, path)
    result = run("score", model, path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (results / "scores.csv").read_text()


@pytest.mark.parametrize("ending", ["sav", "parquet", "xlsx"])
def test_other_formats_out(run, model, files, results, tmp_path, ending):
    out = tmp_path / f"scores.{ending}"
    assert run("score", model, files / "answers.csv", "--out", out).exit_code == 0
    scores = pd.read_csv(results / "scores.csv")
    written = read_table(out).frame
    np.testing.assert_allclose(written["factor2"].astype(float), scores["factor2"], atol=1e-6, equal_nan=True)


def test_order_of_columns_and_participants_does_not_matter(run, model, results, tmp_path):
    mixed = table().sample(frac=1, random_state=0).sample(frac=1, axis=1, random_state=0)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    result = run("score", model, tmp_path / "mixed.csv")
    scores = pd.read_csv(io.StringIO(result.stdout), dtype={"record_id": str}).set_index("record_id")
    before = pd.read_csv(results / "scores.csv", dtype={"record_id": str}).set_index("record_id")
    pd.testing.assert_frame_equal(scores.sort_index(), before.sort_index())


def test_many_participants_are_scored_in_parts(run, model, tmp_path, monkeypatch, results):
    from icqf.workflow import score

    monkeypatch.setattr(score, "ROWS_AT_A_TIME", 7)
    table().to_csv(tmp_path / "new.csv", index=False)
    assert run("score", model, tmp_path / "new.csv").stdout == (results / "scores.csv").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="q04"), "the model's item 'q04' is not a column"),
        (lambda t: t.rename(columns={"age": "Age_years"}), "the model's confound 'age' is not a column"),
        (lambda t: t.assign(q05="7"), "Item 'q05' holds 7, above its highest answer 3"),
        (lambda t: t.assign(q05=["often"] + ["1"] * 79), "row 2, column 'q05' holds the text 'often'"),
        (lambda t: t.assign(sex="x"), "Confound 'sex' holds 'x'"),
        (lambda t: t.assign(age=[np.nan] + [7.0] * 79), "Confound 'age' is missing for participant '001'"),
        (lambda t: t.iloc[:0], "there are no answers below it"),
    ],
)
def test_tables_that_do_not_fit_the_model(run, model, tmp_path, change, said):
    change(table()).to_csv(tmp_path / "new.csv", index=False)
    result = run("score", model, tmp_path / "new.csv", "--out", tmp_path / "scores.csv")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "scores.csv").exists()


def test_files_that_are_no_models(run, files, tmp_path):
    result = run("score", files / "answers.csv", files / "answers.csv")
    assert result.exit_code == 2 and "not an icqf model" in result.stderr
    assert run("score", tmp_path / "none.icqf", files / "answers.csv").exit_code == 2


def test_an_existing_file_is_kept_without_force(run, model, files, tmp_path):
    out = tmp_path / "scores.csv"
    out.write_text("mine")
    assert run("score", model, files / "answers.csv", "--out", out).exit_code == 2
    assert out.read_text() == "mine"
    assert run("score", model, files / "answers.csv", "--out", out, "--force").exit_code == 0
    assert out.read_text() != "mine"


def test_a_model_saved_from_python_needs_its_codebook_for_directions(run, files, results, tmp_path):
    from icqf import ICQF
    from icqf.data.questionnaire import StoredCodebook

    plain, unknown = tmp_path / "plain.icqf", "does not say which items are reversed"
    model = ICQF.load(results / "model.icqf")
    model.codebook_ = StoredCodebook()
    model.save(plain)
    result = run("score", plain, files / "answers.csv", "--codebook", files / "items.csv")
    assert result.stdout == (results / "scores.csv").read_text() and unknown not in result.stderr
    result = run("score", plain, files / "answers.csv", "--missing-codes", "9")
    assert result.stdout != (results / "scores.csv").read_text() and unknown in result.stderr


def test_a_codebook_that_reverses_other_items_than_the_model_is_told(run, files, results, tmp_path):
    said = f"The codebook and the model disagree about the direction of '{REVERSED}'. The codebook is used"
    words = ("score", results / "model.icqf", files / "answers.csv", "--codebook")
    same = run(*words, files / "items.csv")
    assert same.stdout == (results / "scores.csv").read_text() and "disagree" not in same.stderr
    book = pd.read_csv(files / "items.csv").drop(columns="direction")
    book.to_csv(tmp_path / "plain.csv", index=False)
    other = run(*words, tmp_path / "plain.csv")
    assert other.exit_code == 0 and said in " ".join(other.stderr.split())
    assert other.stdout != same.stdout


def test_a_model_that_was_loaded_and_saved_scores_the_same(run, files, results, tmp_path):
    from icqf import ICQF

    ICQF.load(results / "model.icqf").save(tmp_path / "again.icqf")
    result = run("score", tmp_path / "again.icqf", files / "answers.csv")
    assert result.stdout == (results / "scores.csv").read_text()
    assert "does not say" not in result.stderr


def test_an_id_column_that_is_not_there_is_refused(run, results, files):
    result = run("score", results / "model.icqf", files / "answers.csv", "--id", "typo")
    assert result.exit_code == 2 and "there is no column 'typo' to use as the id" in result.stderr


def test_a_file_that_is_read_is_never_replaced(run, model, files, tmp_path):
    answers, items = (
        shutil.copy(files / name, tmp_path / f"new-{name}") for name in ("answers.csv", "items.csv")
    )
    (tmp_path / "link.csv").symlink_to(answers)
    (tmp_path / "same.csv").hardlink_to(answers)
    folder = tmp_path / "parts"
    folder.mkdir()
    frame = table()
    for name in [c for c in frame if c.startswith("q")]:
        frame[name] = pd.to_numeric(frame[name])
    frame.to_parquet(folder / "a.parquet", index=False)
    held = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    score = ("score", model, answers)
    for words in (
        (*score, "--out", answers, "--force"),
        (*score, "--out", tmp_path / "parts" / ".." / "new-answers.csv", "--force"),
        (*score, "--out", tmp_path / "link.csv", "--force"),
        (*score, "--out", tmp_path / "same.csv", "--force"),
        (*score, "--codebook", items, "--out", items, "--force"),
        ("score", model, folder, "--out", folder / "b.parquet"),
        ("codebook", answers, "--out", answers, "--force"),
        ("select", answers, "--codebook", items, "--n-components", "1", "2", "--out", items, "--force"),
    ):
        result = run(*words)
        assert result.exit_code == 2 and "this is an input file" in result.stderr, words
    words = ("fit", answers, "--codebook", items, "--progress", items, "--out", tmp_path / "results")
    result = run(*words)
    assert result.exit_code == 2 and "is not the progress of an earlier run" in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == held
