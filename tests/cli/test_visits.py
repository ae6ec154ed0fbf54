"""A file with several rows per participant: the message names the option that keeps one visit."""

import pandas as pd
import pyreadstat
import pytest

from icqf.errors import InputError
from icqf.io import read_questionnaire
from icqf.workflow import StudyOptions, check_table
from small_study import ITEMS, codebook, table

FIT = ("--n-components", "2", "--beta", "0.1", "--no-report")


def long(column="wave", values=(1, 2, 3), missing=10):
    """Three visits, one below the other; ten participants miss the last."""
    sex = table()["sex"]
    frames = [table(seed=at).assign(sex=sex, **{column: value}) for at, value in enumerate(values)]
    frames[-1] = frames[-1].iloc[missing:]
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def study(tmp_path):
    long().to_csv(tmp_path / "study.csv", index=False)
    codebook().to_csv(tmp_path / "items.csv", index=False)
    return tmp_path / "study.csv"


def test_the_message_lists_the_visits_and_the_option(run, study, tmp_path):
    said = (
        "study.csv: the id '001' in column 'record_id' appears in rows 2 and 82, and 149 more rows repeat an "
        "id. The column 'wave' holds 1 (80 rows), 2 (80 rows) and 3 (70 rows), and distinguishes visits. "
        "Keep one of them, for example with --visit wave=1, or study them together with `icqf longitudinal`."
    )
    for command in ("fit", "stability"):
        result = run(command, study, "--codebook", tmp_path / "items.csv", "--out", tmp_path / "out")
        assert result.exit_code == 2 and said in result.stderr
    assert said in run("check", study, "--codebook", tmp_path / "items.csv").stdout
    with pytest.raises(InputError, match=r"Keep one of them, for example with visit=\{'wave': '1'\}"):
        read_questionnaire(study, codebook=tmp_path / "items.csv")


@pytest.mark.parametrize(("words", "seed"), [("wave=2", 1), ("wave=2.0", 1), ("wave=1", 0), ("wave= 1 ", 0)])
def test_a_visit_is_that_part_of_the_file(run, study, tmp_path, words, seed):
    book = ("--codebook", tmp_path / "items.csv")
    result = run("fit", study, *book, "--visit", words, *FIT, "--out", tmp_path / "one")
    assert result.exit_code == 0, result.stderr
    assert f"Kept 80 of 230 rows: those with wave = {words.split('=')[1].strip()}." in result.stderr
    table(seed=seed).to_csv(tmp_path / "alone.csv", index=False)
    run("fit", tmp_path / "alone.csv", *book, *FIT, "--out", tmp_path / "two")
    scores = (tmp_path / "one" / "scores.csv").read_text()
    assert scores == (tmp_path / "two" / "scores.csv").read_text()
    scored = run("score", tmp_path / "one" / "model.icqf", study, "--visit", words)
    assert scored.stdout == scores
    again = run("fit", "--config", tmp_path / "one" / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0 and (tmp_path / "again" / "scores.csv").read_text() == scores
    assert run("score", tmp_path / "one" / "model.icqf", study).exit_code == 2


def test_other_commands_know_visits(run, study, tmp_path):
    words = (study, "--codebook", tmp_path / "items.csv", "--visit", "wave=3")
    result = run("check", *words)
    assert result.exit_code == 0 and "Kept 70 of 230 rows" in result.stdout
    chosen = run("select", *words, "--n-components", "1-2", "--beta", "0.1", "--n-splits", "3")
    assert chosen.exit_code == 0 and "Kept 70 of 230 rows" in chosen.stderr
    book = run("codebook", study, "--visit", "wave=3")
    assert book.exit_code == 0 and "wave" not in book.stdout
    for command in ("stability", "diagnosis"):
        assert "--visit" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("visit", "said"),
    [
        ("wave=4", "no row has 4 in the column 'wave'; it holds 1 (80 rows), 2 (80 rows) and 3 (70 rows)"),
        ("wawe=1", "no column 'wawe' to use as the visit. Did you mean 'wave'?"),
        ("wave", "--visit must be a column and its value, as in wave=1, not 'wave'."),
        ("=1", "--visit must be a column and its value"),
    ],
)
def test_a_visit_that_is_not_there(run, study, visit, said):
    result = run("check", study, "--visit", visit)
    assert result.exit_code == 2 and said in result.stderr


def test_visits_in_words_and_labels(run, tmp_path):
    frame = long("time", values=("Pre test", "post, late"), missing=0)
    frame.to_csv(tmp_path / "study.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--missing-codes", "9")
    assert "holds Pre test (80 rows) and post, late (80 rows)" in result.stdout
    assert "--visit 'time=Pre test', or" in result.stdout
    for visit in ("time=Pre test", "time=pre TEST", "time=post, late"):
        result = run("check", tmp_path / "study.csv", "--missing-codes", "9", "--visit", visit)
        assert result.exit_code == 0, result.stdout
    numbers = long()[["record_id", "wave", *ITEMS]].replace({"": None})
    numbers[ITEMS] = numbers[ITEMS].astype(float)
    labels = {"wave": {1: "baseline", 2: "one year", 3: "two years"}}
    pyreadstat.write_sav(numbers, str(tmp_path / "study.sav"), variable_value_labels=labels)
    for visit in ("wave=3", "wave=Two years"):
        words = ("--items", "q*", "--missing-codes", "9", "--visit", visit)
        assert "Kept 70 of 230 rows" in run("check", tmp_path / "study.sav", *words).stdout


def test_a_column_of_another_name_is_found_by_its_values(run, tmp_path):
    long("zeitpunkt", values=("t0", "t1"), missing=0).to_csv(tmp_path / "study.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--missing-codes", "9")
    assert "--visit zeitpunkt=t0" in result.stdout


def test_one_doubled_row_is_no_visit(run, tmp_path):
    pd.concat([table(), table().iloc[[4]]]).to_csv(tmp_path / "study.csv", index=False)
    result = run("check", tmp_path / "study.csv", "--missing-codes", "9")
    assert (
        "the id '005' in column 'record_id' appears in rows 6 and 82. Use one of them with --doubled first"
        in result.stdout
    )
    assert "--visit" not in result.stdout


def test_redcap_events_and_repeated_instruments(run, tmp_path):
    frame = long("redcap_event_name", values=("baseline_arm_1", "followup_arm_1"), missing=0)
    frame.insert(1, "redcap_repeat_instance", None)
    more = table(seed=5).assign(redcap_event_name="followup_arm_1", redcap_repeat_instance=2)
    pd.concat([frame, more]).to_csv(tmp_path / "export.csv", index=False)
    result = run("check", tmp_path / "export.csv", "--missing-codes", "9")
    assert "'redcap_event_name' holds baseline_arm_1 (80 rows) and followup_arm_1 (160 rows)" in result.stdout
    assert "'redcap_repeat_instance' holds 2 (80 rows) and nothing (160 rows)" in result.stdout
    assert "--visit redcap_event_name=baseline_arm_1 --visit redcap_repeat_instance=" in result.stdout
    for words in (
        ("--visit", "redcap_event_name=baseline_arm_1", "--visit", "redcap_repeat_instance="),
        ("--visit", "redcap_event_name=followup_arm_1", "--visit", "redcap_repeat_instance=2"),
        ("--visit", "redcap_event_name=baseline_arm_1"),
    ):
        result = run("check", tmp_path / "export.csv", "--missing-codes", "9", *words)
        assert result.exit_code == 0 and "Kept 80 of 240 rows" in result.stdout
    words = ("--visit", "redcap_event_name=baseline_arm_1", "--visit", "redcap_repeat_instance=2")
    result = run("check", tmp_path / "export.csv", *words)
    assert result.exit_code == 2 and "no row has both" in result.stderr


def test_from_python(study, tmp_path):
    book = tmp_path / "items.csv"
    for visit in (("wave", "1"), ("wave", 1), {"wave": 1.0}, [("wave", 1)], "wave=1", ["wave=1"]):
        assert read_questionnaire(study, codebook=book, visit=visit).n_participants == 80
        assert StudyOptions.of({"answers": study, "visit": visit}).visit == (("wave", "1"),)
    assert not check_table(study, codebook=book, visit=("wave", 1)).of("duplicate-id")
    for visit in (5, ["wave"], [("wave",)], "wave"):
        with pytest.raises(InputError, match="visit must be a column and its value"):
            read_questionnaire(study, codebook=book, visit=visit)


# --- doubled rows, and ids that are unique only within studies ----------------------------------------------


def test_doubled_rows_are_named_and_the_hint_stays(run, tmp_path):
    again = long().iloc[[4]].assign(q01="2")
    pd.concat([long(), again]).to_csv(tmp_path / "study.csv", index=False)
    said = run("check", tmp_path / "study.csv", "--missing-codes", "9").stdout
    assert "'wave' holds 1 (81 rows), 2 (80 rows) and 3 (70 rows), and distinguishes visits." in said
    assert "At one visit, 1 participant has several rows: '005' in rows 6 and 232." in said
    words = ("check", tmp_path / "study.csv", "--missing-codes", "9", "--visit", "wave=1")
    said = run(*words).stdout
    assert "the id '005' in column 'record_id' appears in rows 6 and 232. Use one of them with" in said
    for how, rows, used in (
        ("first", 80, "the first was"),
        ("last", 80, "the last was"),
        ("leave-out", 79, "none was"),
    ):
        done = run(*words, "--doubled", how)
        assert done.exit_code == 0 and f"of {rows} rows" in done.stdout
        assert (
            f"Of the rows of one participant, {used} used: 1 participant has several rows: '005'"
            in done.stdout
        )
    assert run(*words, "--doubled", "mean").exit_code == 2


def test_a_choice_among_doubled_rows_loses_no_visit(run, tmp_path):
    pd.concat([long(), long().iloc[[4]]]).to_csv(tmp_path / "study.csv", index=False)
    said = run("check", tmp_path / "study.csv", "--missing-codes", "9", "--doubled", "first").stdout
    assert "Keep one of them, for example with --visit wave=1" in said
    assert "Of the rows of one participant at one visit, the first was used" in said


def test_two_visits_of_many_participants_may_be_doubled(run, tmp_path):
    pd.concat([table(), table().iloc[:6]]).to_csv(tmp_path / "study.csv", index=False)
    said = run("check", tmp_path / "study.csv", "--missing-codes", "9").stdout
    assert "6 participants have several rows: '001' in rows 2 and 82, '002' in rows 3 and 83" in said
    assert "'005' in rows 6 and 86, and 1 more. Use one of them with --doubled first" in said


@pytest.mark.parametrize("column", ["study", "Site", "centre", "batch"])
def test_a_column_of_studies_is_no_visit_column(run, tmp_path, column):
    """Two studies that number their participants alike, of different sex."""
    one, two = (table(seed=at).assign(**{column: name}) for at, name in enumerate(("AGES", "XRAY")))
    pd.concat([one, two]).to_csv(tmp_path / "study.csv", index=False)
    words = ("check", tmp_path / "study.csv", "--missing-codes", "9")
    said = run(*words).stdout
    assert "--visit" not in said
    if column == "batch":  # no name of a study, and different people by their sex
        assert "80 participants have several rows" in said and "--doubled first" in said
        return
    assert f"Use both as ids with --id {column} record_id." in said
    done = run(*words, "--id", column, "record_id")
    assert done.exit_code == 0 and f" of 160 rows, with the ids in '{column} + record_id'" in done.stdout


def test_studies_with_visits(run, tmp_path):
    one, two = (long().assign(study=name) for name in ("AGES", "XRAY"))
    pd.concat([one, two]).to_csv(tmp_path / "study.csv", index=False)
    words = ["check", tmp_path / "study.csv", "--missing-codes", "9"]
    for step in (("--id", "study", "record_id"), ("--visit", "wave=1")):
        said = run(*words).stdout
        assert " ".join(step) in said, said
        words += step
    done = run(*words)
    assert done.exit_code == 0 and " of 160 rows" in done.stdout
    fitted = run("fit", *words[1:], *FIT, "--out", tmp_path / "results")
    assert fitted.exit_code == 0, fitted.stderr
    model = tmp_path / "results" / "model.icqf"
    scored = run("score", model, tmp_path / "study.csv", "--visit", "wave=1")  # the model knows the ids
    assert scored.exit_code == 0 and scored.stdout.splitlines()[1].startswith("AGES-001,")


def test_rows_without_an_id_are_left_out_or_kept(run, tmp_path):
    frame = table()
    frame.loc[[4, 70], "record_id"] = ""
    frame.to_csv(tmp_path / "study.csv", index=False)
    words = ("check", tmp_path / "study.csv", "--missing-codes", "9")
    said = run(*words).stdout
    assert (
        "row 6 (and 1 more) has no id in column 'record_id'. Fill it in, or add --without-id leave-out"
        in said
    )
    left = run(*words, "--without-id", "leave-out")
    assert left.exit_code == 0 and "Left out 2 rows without an id (rows 6 and 72)." in left.stdout
    assert " of 78 rows" in left.stdout
    kept = run(*words, "--without-id", "keep")
    assert kept.exit_code == 0 and "2 rows without an id called by the row: 'row 6'" in kept.stdout
    assert " of 80 rows" in kept.stdout


def test_numbers_of_rows_are_no_studies(run, tmp_path):
    both = pd.concat([long(), long().assign(study="B")]).fillna({"study": "A"})
    both.reset_index(drop=True).to_csv(tmp_path / "study.csv")  # row names in the first column
    said = run("check", tmp_path / "study.csv", "--missing-codes", "9").stdout
    assert "Use both as ids with --id study record_id." in said
