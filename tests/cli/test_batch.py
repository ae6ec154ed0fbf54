"""``icqf batch``: one report for each questionnaire, one table of all, and no file that stops the others."""

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from icqf.datasets import make_battery
from icqf.io import write_codebook

FEW = ("--n-components", "2", "--beta", "0.1", "--bootstrap", "0", "--no-report")


@pytest.fixture(scope="module")
def battery():
    return make_battery(n=90, n_items=(6, 7, 5), n_factors=2, n_meta=2, absent=0.2, random_state=1).battery


@pytest.fixture
def study(battery, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    for name, each in battery.instruments.items():
        each.answers.to_csv(folder / f"{name}.csv")
        write_codebook(each.items, folder / f"{name}_codebook.csv")
    return folder


@pytest.fixture
def wide(battery, tmp_path):
    """The same as one table, and a codebook that says which instrument an item belongs to."""
    frames = [each.answers for each in battery.instruments.values()]
    pd.concat(frames, axis=1).rename_axis("id").to_csv(tmp_path / "wide.csv")
    rows = [
        {"name": item.name, "min": item.min, "max": item.max, "instrument": name}
        for name, each in battery.instruments.items()
        for item in each.items
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "items.csv", index=False)
    return tmp_path / "wide.csv", tmp_path / "items.csv"


def test_each_instrument_has_its_folder_and_a_row_of_the_table(run, study, tmp_path):
    out = tmp_path / "results"
    done = run("batch", study, *FEW, "--out", out)
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv(out / "summary.csv")
    assert table["name"].tolist() == ["A", "B", "C"] and table["items"].tolist() == [6, 7, 5]
    assert table["k"].tolist() == [2, 2, 2] and table["explained"].between(0, 1).all()
    for name in "ABC":
        assert (out / name / "model.icqf").is_file() and (out / name / "scores.csv").is_file()
    assert "summary.html" in done.stdout
    page = (out / "summary.html").read_text()
    assert "3 instruments" in page and "default-src 'none'" in page and "data:image/png" in page
    assert "| A | 6 |" in (out / "summary.md").read_text()


def test_with_reports_and_resamples_names_lead_to_the_reports(run, study, tmp_path):
    (study / "B.csv").unlink()
    (study / "C.csv").unlink()
    out = tmp_path / "results"
    done = run(
        "batch",
        study,
        "--n-components",
        "1-2",
        "--beta",
        "0.1",
        "--n-splits",
        "3",
        "--bootstrap",
        "2",
        "--out",
        out,
    )
    assert done.exit_code == 0, done.stderr
    assert '<a href="A/report.html">A</a>' in (out / "summary.html").read_text()
    assert (out / "A" / "report.html").is_file()
    row = pd.read_csv(out / "summary.csv").iloc[0]
    assert 0 <= row["found_again"] <= row["k"] and 0 <= row["expected_again"] <= row["k"]


def test_one_broken_file_does_not_stop_the_rest_and_is_listed_with_its_reason(run, study, tmp_path):
    (study / "B.csv").write_text("no table at all")
    (study / "D.csv").write_bytes(b"\x00\xff\x00garbage")
    out = tmp_path / "results"
    done = run("batch", study, *FEW, "--out", out)
    assert done.exit_code == 1
    assert "Not fitted: B: B.csv" in done.stderr and "Not fitted: D: D.csv" in done.stderr
    assert pd.read_csv(out / "summary.csv")["name"].tolist() == ["A", "C"]
    assert "B.csv" in (out / "summary.md").read_text() and not (out / "B").exists()


def test_a_mended_file_is_fitted_and_the_others_are_kept(run, study, tmp_path, battery):
    (study / "B.csv").write_text("no table at all")
    out = tmp_path / "results"
    run("batch", study, *FEW, "--out", out)
    before = (out / "A" / "provenance.json").stat().st_mtime_ns
    battery.instruments["B"].answers.to_csv(study / "B.csv")
    done = run("batch", study, *FEW, "--out", out)
    assert done.exit_code == 0 and "Kept from an earlier run: A, C." in done.stderr
    assert (out / "A" / "provenance.json").stat().st_mtime_ns == before
    assert pd.read_csv(out / "summary.csv")["name"].tolist() == ["A", "B", "C"]


def test_an_instrument_whose_answers_or_folder_changed_is_fitted_again(run, study, tmp_path, battery):
    out = tmp_path / "results"
    run("batch", study, *FEW, "--out", out)
    battery.instruments["A"].answers.iloc[:-1].to_csv(study / "A.csv")
    shutil.rmtree(out / "C")
    done = run("batch", study, *FEW, "--out", out)
    assert done.exit_code == 0 and "Kept from an earlier run: B." in done.stderr


def test_other_settings_need_another_place_or_force(run, study, tmp_path):
    out = tmp_path / "results"
    run("batch", study, *FEW, "--out", out)
    other = ("--n-components", "1", *FEW[2:])
    done = run("batch", study, *other, "--out", out)
    assert done.exit_code == 2 and "--force" in done.stderr
    done = run("batch", study, *other, "--out", out, "--force")
    assert done.exit_code == 0 and pd.read_csv(out / "summary.csv")["k"].tolist() == [1, 1, 1]


def test_a_folder_of_other_things_is_not_written_into(run, study, tmp_path):
    out = tmp_path / "results"
    out.mkdir()
    (out / "thesis.docx").write_text("precious")
    done = run("batch", study, *FEW, "--out", out)
    assert done.exit_code == 2 and "thesis.docx" in done.stderr
    assert [path.name for path in out.iterdir()] == ["thesis.docx"]


def test_a_wide_table_is_divided_by_its_codebook(run, wide, tmp_path):
    answers, codebook = wide
    out = tmp_path / "results"
    done = run("batch", answers, "--codebook", codebook, *FEW, "--out", out)
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv(out / "summary.csv")
    assert table["items"].tolist() == [6, 7, 5] and (table["participants"] < 90).all()


def test_a_folder_and_a_wide_table_give_the_same_loadings(run, study, wide, tmp_path):
    answers, codebook = wide
    run("batch", study, *FEW, "--out", tmp_path / "one")
    run("batch", answers, "--codebook", codebook, *FEW, "--out", tmp_path / "two")
    for name in "ABC":
        one, two = (
            pd.read_csv(tmp_path / kind / name / "loadings.csv", index_col=0) for kind in ("one", "two")
        )
        np.testing.assert_allclose(one, two, atol=2e-3)


def test_one_codebook_serves_a_folder(run, study, wide, tmp_path):
    for path in study.glob("*_codebook.csv"):
        path.unlink()
    (study / "codebook.csv").write_text(wide[1].read_text())
    done = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert pd.read_csv(tmp_path / "results" / "summary.csv")["items"].tolist() == [6, 7, 5]


def test_confounds_come_from_the_table_of_participants(run, study, battery, tmp_path):
    rng = np.random.default_rng(0)
    ages = pd.DataFrame({"age": rng.uniform(6, 18, battery.n_participants).round(2)}, index=battery.ids)
    ages.to_csv(study / "participants.csv")
    done = run("batch", study, *FEW, "--confounds", "age", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv(tmp_path / "results" / "A" / "confound_loadings.csv", index_col=0)
    assert {"Old", "Young"} <= set(table)
    options = json.loads((tmp_path / "results" / "A" / "provenance.json").read_text())["options"]
    assert options["participants"] == "participants.csv"
    again = run("fit", "--config", tmp_path / "results" / "A" / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "again" / "loadings.csv").read_bytes() == (
        tmp_path / "results" / "A" / "loadings.csv"
    ).read_bytes()


def test_numbers_of_factors_that_an_instrument_cannot_have_are_left_out(run, study, tmp_path):
    words = ("--n-components", "1-6", "--beta", "0.1", "--n-splits", "3", "--bootstrap", "0", "--no-report")
    done = run("batch", study, *words, "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert set(pd.read_csv(tmp_path / "results" / "C" / "cv.csv")["n_components"]) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda study: [path.unlink() for path in study.iterdir()], "contains no table of answers"),
        (lambda study: (study / "A.tsv").write_text("id\tq\n1\t2\n"), "several files are named 'A'"),
        (lambda study: (study / "summary.csv").write_text("id,q\n1,2\n"), "cannot be named 'summary'"),
    ],
)
def test_a_folder_that_will_not_do(run, study, tmp_path, prepare, said):
    prepare(study)
    done = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert done.exit_code == 2 and said in done.stderr and not (tmp_path / "results").exists()


def test_a_place_that_is_not_there_and_a_table_without_instruments(run, study, tmp_path):
    done = run("batch", tmp_path / "nowhere", "--out", tmp_path / "results")
    assert done.exit_code == 2 and "no such file or folder" in done.stderr
    done = run("batch", study / "A.csv", "--out", tmp_path / "results")
    assert done.exit_code == 2 and "--codebook with a column 'instrument'" in done.stderr
    done = run(
        "batch", study / "A.csv", "--codebook", study / "A_codebook.csv", "--out", tmp_path / "results"
    )
    assert done.exit_code == 2 and "Give a codebook with a column 'instrument'" in done.stderr


def test_an_interrupted_batch_goes_on(run, study, tmp_path, monkeypatch):
    from icqf.workflow import batch

    real = batch.write_results
    calls = []

    def interrupted(fit, place, **more):
        calls.append(place.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(fit, place, **more)

    monkeypatch.setattr(batch, "write_results", interrupted)
    stopped = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert stopped.exit_code == 130 and stopped.stderr.endswith(" --resume\n")
    monkeypatch.setattr(batch, "write_results", real)
    done = run("batch", study, *FEW, "--out", tmp_path / "results", "--resume")
    assert done.exit_code == 0 and "Kept from an earlier run: A." in done.stderr
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"A", "B", "C", "summary.csv", "summary.html"} <= names
    assert not any(name.endswith(".journal") and name != "batch.journal" for name in names)


def test_a_search_that_was_interrupted_is_continued(run, study, tmp_path, monkeypatch):
    """All searches share one journal beside the results, in which each finds its own fits."""
    from icqf.models import search as running
    from icqf.workflow import batch

    words = ("--n-components", "1-2", "--beta", "0.1", "--n-splits", "3", *FEW[4:])
    out, journal, real = tmp_path / "results", tmp_path / "results.journal", batch.write_results

    def interrupted(fit, place, **more):
        if place.name == "B":
            raise KeyboardInterrupt
        return real(fit, place, **more)

    monkeypatch.setattr(batch, "write_results", interrupted)
    stopped = run("batch", study, *words, "--out", out)
    assert stopped.exit_code == 130 and f"saved in {journal}; continue with:" in stopped.stderr
    assert run("batch", study, *words, "--out", out).exit_code == 2
    monkeypatch.setattr(batch, "write_results", real)
    fitted, run_task = [], running.run_task

    def counted(plan, task, *more):
        fitted.append(plan.problem.m)
        return run_task(plan, task, *more)

    monkeypatch.setattr(running, "run_task", counted)
    done = run("batch", study, *words, "--out", out, "--resume")
    assert done.exit_code == 0 and "Kept from an earlier run: A." in done.stderr
    assert set(fitted) == {5} and not journal.exists()  # C alone: A is kept, and the fits of B are


def test_a_dry_run_reads_every_questionnaire_and_writes_nothing(run, study, tmp_path):
    (study / "B.csv").write_text("no table at all")
    done = run("batch", study, *FEW, "--out", tmp_path / "results", "--dry-run")
    assert done.exit_code == 0 and "A: " in done.stdout and "B: B.csv" in done.stdout
    assert "nothing was written (--dry-run)" in done.stderr and not (tmp_path / "results").exists()


def test_quiet_prints_nothing_but_errors(run, study, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = run("batch", study, *FEW, "--out", tmp_path / "results", "--quiet")
    assert done.stdout == "" and done.stderr == ""


def test_items_that_run_against_the_others_are_named_and_progress_is_in_words(run, tmp_path):
    """Without codebooks that declare a direction, as with files that come straight from a survey."""
    folder = tmp_path / "study"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in "AB":
        common = rng.integers(0, 4, (150, 1))
        answers = np.clip(common + rng.integers(-1, 2, (150, 6)), 0, 3)
        if name == "A":
            answers[:, 0] = 3 - answers[:, 0]
        items = [f"{name}{j}" for j in range(6)]
        pd.DataFrame(answers, columns=items).rename_axis("id").to_csv(folder / f"{name}.csv")
    words = ("--n-components", "1", "2", "--n-splits", "2", *FEW[2:])
    done = run("batch", folder, *words, "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert "Warning: A: 1 item looks reversed" in done.stderr and "Warning: B" not in done.stderr
    assert "--reverse auto" in done.stderr
    assert "A: cross-validation: 4 of 4 fits" in done.stderr and "1 factors" not in done.stderr
    assert "--names" not in run("batch", "--help").stdout


@pytest.mark.parametrize("name", ["factors.png", "batch.journal", "A.journal"])
def test_an_instrument_named_like_a_file_of_the_results(run, study, tmp_path, name):
    (study / "C.csv").rename(study / f"{name}.csv")
    done = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert done.exit_code == 2 and f"An instrument cannot be named {name!r}" in done.stderr
    assert not (tmp_path / "results").exists()


def test_characters_that_figures_cannot_draw_are_told_once(run, study, tmp_path):
    (study / "C.csv").rename(study / "質問票.csv")
    done = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("they are drawn as boxes.") == 1 and "Glyph" not in done.stderr


def test_the_reason_on_the_page_names_no_participant(run, study, tmp_path):
    table = pd.read_csv(study / "C.csv")
    pd.concat([table, table.head(1)]).to_csv(study / "C.csv", index=False)
    who = str(table.iloc[0, 0])
    done = run("batch", study, *FEW, "--out", tmp_path / "results")
    assert done.exit_code == 1 and repr(who) in done.stderr
    for name in ("summary.html", "summary.md"):
        page = (tmp_path / "results" / name).read_text(encoding="utf-8")
        assert "the id of a participant in column" in page and who not in page


def test_a_configuration_is_never_replaced(run, study, tmp_path):
    """Also where it lies in the folder of an instrument that is fitted again."""
    out = tmp_path / "results"
    assert run("batch", study, *FEW, "--out", out).exit_code == 0
    kept = out / "A" / "config.toml"
    kept.write_text(f'answers = "{study}"\nn_components = 1\nbeta = 0.1\nbootstrap = 0\nreport = false\n')
    before = kept.read_bytes()
    done = run("batch", "--config", kept, "--out", out, "--force")
    assert done.exit_code == 2 and "config.toml" in done.stderr and kept.read_bytes() == before, done.output
