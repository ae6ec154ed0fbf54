"""`icqf crosswalk` learns from participants with both questionnaires, and `icqf score` applies it to one."""

import io

import numpy as np
import pandas as pd
import pytest

N = 160


def answers():
    """A wide table: six items of mood (m), five of sleep (s), and sex; some answers are missing."""
    rng = np.random.default_rng(5)
    latent = rng.normal(size=N)
    columns = {f"{kind}{j}": latent for kind, m in (("m", 6), ("s", 5)) for j in range(1, m + 1)}
    frame = pd.DataFrame(columns) * 0.9 + rng.normal(size=(N, 11)) * 0.8 + 1.5
    frame = frame.round().clip(0, 3)
    frame["m1"] = 3 - frame["m1"]
    frame = frame.where(rng.random(frame.shape) > 0.02).round(0).astype("Int64")
    frame.insert(0, "record_id", [f"ZEBRA-{i}" for i in range(N)])
    return frame.assign(sex=rng.choice(["female", "male"], N))


def codebook(names, **more):
    rows = [{"name": name, "min": 0, "max": 3, "direction": "-" if name == "m1" else "+"} for name in names]
    return pd.DataFrame(rows).assign(**more)


@pytest.fixture(scope="module")
def place(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crosswalk")
    frame = answers()
    mood, sleep = ([name for name in frame if name[0] == kind and name != "sex"] for kind in "ms")
    frame.to_csv(folder / "answers.csv", index=False)
    codebook(mood).to_csv(folder / "mood.csv", index=False)
    codebook(sleep).to_csv(folder / "sleep.csv", index=False)
    whole = codebook([*mood, *sleep]).assign(instrument=["mood"] * 6 + ["sleep"] * 5)
    whole.to_csv(folder / "items.csv", index=False)
    (folder / "study").mkdir()
    frame[["record_id", *mood, "sex"]].to_csv(folder / "study" / "mood.csv", index=False)
    frame[["record_id", *sleep]].to_csv(folder / "study" / "sleep.csv", index=False)
    whole.drop(columns="instrument").to_csv(folder / "study" / "codebook.csv", index=False)
    words = ("--from", folder / "mood.csv", "--to", folder / "sleep.csv", "--by", "sex")
    told = run("crosswalk", folder / "answers.csv", *words, "--out", folder / "cw")
    assert told.exit_code == 0, told.stderr
    assert "the sum of sleep was predicted from mood with a correlation of 0." in told.stdout
    return folder


def scored(run, place, frame, *more, model="cw"):
    frame.to_csv(place / "new.csv", index=False)
    result = run("score", place / model, place / "new.csv", *more)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False, na_values=[""]), result.stderr


def test_the_crosswalk_scores_participants_who_answered_one(run, place):
    frame = answers().drop(columns=[f"s{j}" for j in range(1, 6)])
    frame.loc[3, [f"m{j}" for j in range(1, 7)]] = pd.NA
    scores, notes = scored(run, place, frame)
    names = ["record_id", "sleep_sum", "sleep_sum_low", "sleep_sum_high", "missing"]
    assert [name for name in scores if not name.endswith("linked")] == names
    assert scores["sleep_sum"].isna().tolist() == [i == 3 for i in range(N)]
    assert scores.loc[3, "missing"] == "all scores: no answers"
    assert "Scores of 'sleep' are predicted from 'mood', not measured." in notes
    true = answers()[[f"s{j}" for j in range(1, 6)]].sum(axis=1, skipna=False)
    held = (scores["sleep_sum_low"] <= true) & (true <= scores["sleep_sum_high"])
    assert held[true.notna()].mean() > 0.85
    plain, _ = scored(run, place, frame, "--no-intervals")
    assert list(plain) == ["record_id", "sleep_sum", "missing"]


@pytest.mark.parametrize("words", [("study",), ("answers.csv", "--codebook", "items.csv")])
def test_a_folder_and_a_codebook_of_instruments_give_the_same(run, place, tmp_path, words):
    words = [place / word if not word.startswith("-") else word for word in words]
    done = run("crosswalk", *words, "--from", "mood", "--to", "sleep", "--out", tmp_path / "cw")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "cw" / "table.csv").read_bytes() == (place / "cw" / "table.csv").read_bytes()


def test_patterns_of_items_name_questionnaires(run, place, tmp_path):
    words = (place / "answers.csv", "--from", "m*", "--to", "s*", "--codebook", place / "items.csv")
    done = run("crosswalk", *words, "--out", tmp_path / "cw")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "cw" / "table.csv").read_text().startswith("m_sum,")


def test_factors_of_a_model_are_predicted_as_well(run, place, tmp_path):
    words = ("--codebook", place / "sleep.csv", "--n-components", "1", "--beta", "0.1", "--no-report")
    assert run("fit", place / "answers.csv", *words, "--out", tmp_path / "sleep").exit_code == 0
    words = ("--from", place / "mood.csv", "--to", place / "sleep.csv", "--model", tmp_path / "sleep")
    done = run("crosswalk", place / "answers.csv", *words, "--out", tmp_path / "cw")
    assert done.exit_code == 0, done.stderr
    scores, _ = scored(run, place, answers(), model=tmp_path / "cw")
    assert {"sleep_factor1", "sleep_factor1_low", "sleep_factor1_high"} <= {*scores}
    assert scores["sleep_factor1"].between(0, 1).all()


def test_a_model_of_another_questionnaire_is_refused(run, place, tmp_path):
    words = ("--codebook", place / "mood.csv", "--n-components", "1", "--beta", "0.1", "--no-report")
    assert run("fit", place / "answers.csv", *words, "--out", tmp_path / "mood").exit_code == 0
    words = ("--from", place / "mood.csv", "--to", place / "sleep.csv", "--model", tmp_path / "mood")
    done = run("crosswalk", place / "answers.csv", *words, "--out", tmp_path / "cw")
    assert done.exit_code == 2 and not (tmp_path / "cw").exists()
    assert "this is a model of 'm1', 'm2', 'm3' and 3 more, but the items of 'sleep' are" in done.stderr


def test_items_that_are_not_reversed_are_suspected(run, place, tmp_path):
    told = {}
    for name, wrong in (("right", []), ("wrong", ["m2", "m4", "m6"])):
        frame = answers()
        frame[wrong] = 3 - frame[wrong]
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        words = ("--from", place / "mood.csv", "--to", place / "sleep.csv", "--out", tmp_path / name)
        told[name] = run("crosswalk", tmp_path / f"{name}.csv", *words).stdout
    assert "Check the directions in the codebook" in told["wrong"]
    assert "directions" not in told["right"]


def test_the_page_says_what_the_table_is_for_and_names_nobody(place):
    page = (place / "cw" / "crosswalk.md").read_text(encoding="utf-8")
    assert "reverse the 1 reverse-keyed item of mood" in page and "between 0 and 18" in page
    for words in ("regression to the mean", "Do not count cases", "By group", "held out", "same rank"):
        assert words in page, words
    for file in (place / "cw").iterdir():
        assert b"ZEBRA" not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("answers.csv", "--from", "mood.csv"), "No questionnaire to predict is given"),
        (("answers.csv", "--from", "mood.csv", "--to", "mood.csv"), "Both questionnaires are called 'mood'"),
        (("answers.csv", "--from", "mood", "--to", "sleep.csv"), "no codebook 'mood'"),
        (("study", "--from", "moods", "--to", "sleep"), "Did you mean 'mood'? The questionnaires are"),
        (("study", "--from", "mood.csv", "--to", "sleep"), "Name the questionnaires after their files"),
        (("answers.csv", "--from", "mood.csv", "--to", "sleep.csv", "--by", "sects"), "'sects'"),
        (("missing.csv", "--from", "mood.csv", "--to", "sleep.csv"), "missing.csv"),
    ],
)
def test_mistakes_are_told(run, place, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(place)
    done = run("crosswalk", *words, "--out", tmp_path / "cw")
    assert done.exit_code == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "cw").exists()


def test_a_crosswalk_is_no_model_and_a_model_no_crosswalk(run, place, results, tmp_path):
    done = run("show", place / "cw" / "crosswalk.icqf")
    assert done.exit_code == 2 and "this is a crosswalk" in done.stderr
    new = ("score", place / "cw", place / "answers.csv")
    assert "--norms is for the model" in run(*new, "--norms", place / "mood.csv").stderr
    assert "level must be from 0.5 to 0.95" in run(*new, "--level", "0.99").stderr
    damaged = tmp_path / "damaged.icqf"
    content = bytearray((place / "cw" / "crosswalk.icqf").read_bytes())
    content[-20] ^= 1
    damaged.write_bytes(content)
    assert "damaged or incomplete" in run("score", damaged, place / "answers.csv").stderr
