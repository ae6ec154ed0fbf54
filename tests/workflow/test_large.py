"""Tables too large to be held: a sample is looked at, everybody is fitted."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.errors import InputError
from icqf.io.readers.streams import open_stream
from icqf.workflow import StudyOptions, check_study, fit_study, read_study, write_results
from icqf.workflow.read import sample_of

ITEMS = [f"q{j:02}" for j in range(10)]


def table(n=900):
    rng = np.random.default_rng(0)
    Q = 3 * rng.uniform(0.4, 0.9, (2, 10)) * (np.arange(10) % 2 == np.arange(2)[:, None])
    W = np.maximum(rng.random((n, 2)) * 1.5 - 0.5, 0)
    X = np.rint(np.clip(W @ Q + rng.normal(0, 0.4, (n, 10)), 0, 3))
    X[:, 4] = 3 - X[:, 4]
    X[rng.random(X.shape) < 0.03] = np.nan
    frame = pd.DataFrame(X, columns=ITEMS)
    frame.insert(0, "record_id", [f"P{i:04}" for i in range(n)])
    return frame.assign(sex=np.where(rng.random(n) < 0.5, "F", "M"))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What counts as large, and the parts and the sample, in proportion to these tests."""
    monkeypatch.setattr("icqf.workflow.read.LARGE", 2_000)
    monkeypatch.setattr("icqf.workflow.read.SAMPLE", 300)
    monkeypatch.setattr("icqf.workflow.read.open_stream", partial(open_stream, batch_rows=128))


@pytest.fixture
def frame():
    return table()


def options(path, **others):
    plain = {"answers": path, "confounds": ["sex"], "n_components": 2, "beta": 0.1, "bootstrap": 0}
    return StudyOptions.of({**plain, **others})


def written(frame, tmp_path, name="cohort.parquet"):
    path = tmp_path / name
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("name", ["cohort.parquet", "cohort.csv"])
def test_everybody_is_fitted_and_some_are_shown(frame, tmp_path, name):
    asked = options(written(frame, tmp_path, name), reverse=["q04"], n_init=1)
    study = read_study(asked)
    assert 300 <= study.questionnaire.n_participants < 340
    assert study.rows_of_everyone == 900
    assert "900 rows" in study.questionnaire.notes[-1]
    fit = fit_study(asked, study=study)
    assert fit.model.n_participants_ == 900
    answers = frame[ITEMS].assign(q04=3 - frame["q04"])
    held = ICQF(2, beta=0.1, item_range=(0, 3), n_init=1, dtype="float32")
    held.fit(answers, confounds=frame[["sex"]])
    np.testing.assert_allclose(fit.model.components_, held.components_, atol=1e-6)


def test_the_sample_is_drawn_alike_each_time_and_whatever_the_batches(frame, tmp_path):
    path = written(frame, tmp_path)
    samples = [
        sample_of(open_stream(path, batch_rows=rows), size=200, seed=3).table for rows in (64, 64, 900)
    ]
    first = set(samples[0].frame["record_id"])
    assert set(samples[1].frame["record_id"]) == first
    assert len(first & set(samples[2].frame["record_id"])) >= 200
    other = sample_of(open_stream(path), size=200, seed=4).table
    assert len(first & set(other.frame["record_id"])) < 100


def test_an_answer_out_of_line_is_seen_though_only_one_participant_gave_it(frame, tmp_path):
    frame.loc[777, "q03"] = 99
    path = written(frame, tmp_path)
    findings = check_study(options(path))
    assert findings.must_fix or findings.of("suspicious-code")
    with pytest.raises(InputError, match=r"'q03' holds 99.*participant 'P0777'"):
        read_study(options(path))
    assert read_study(options(path, missing_codes=[99])).questionnaire.ranges().loc["q03"].tolist() == [0, 3]


def test_the_choice_rests_on_the_sample(frame, tmp_path):
    asked = options(written(frame, tmp_path), n_components="1-3", n_splits=3, reverse=["q04"])
    fit = fit_study(asked)
    assert len(fit.model.components_) == 2 and fit.model.n_participants_ == 900
    assert fit.search.best_estimator_.n_participants_ < 340


def test_the_results_say_what_is_of_everybody(frame, tmp_path):
    fit = fit_study(options(written(frame, tmp_path), reverse=["q04"]))
    write_results(fit, tmp_path / "results")
    account = json.loads((tmp_path / "results" / "provenance.json").read_text())
    assert account["rows"]["in"] == account["rows"]["fitted"] == 900
    assert account["rows"]["shown"] == fit.study.questionnaire.n_participants
    scores = pd.read_parquet(tmp_path / "results" / "scores.parquet").set_index("record_id")
    assert list(scores.index) == list(frame["record_id"])
    shown = fit.scores.index
    np.testing.assert_allclose(scores.loc[shown].to_numpy(), fit.scores.to_numpy(), atol=1e-6)
    assert "a random sample of" in (tmp_path / "results" / "report.html").read_text()


def test_a_folder_of_parquet_files_is_one_table_from_the_check_to_the_account(frame, tmp_path):
    folder = tmp_path / "cohort"
    folder.mkdir()
    few = frame.head(200)
    for n, part in enumerate((few[:120], few[120:])):
        written(part, folder, f"part-{n}.parquet")
    asked = options(folder, reverse=["q04"], n_init=1)
    assert check_study(asked).overview.source == "cohort"
    fit = fit_study(asked)
    assert fit.study.questionnaire.notes[-1] == "The table of 200 rows was read in parts."  # all are shown
    write_results(fit, tmp_path / "results")
    account = json.loads((tmp_path / "results" / "provenance.json").read_text())
    assert [each["file"] for each in account["inputs"]] == ["cohort/part-0.parquet", "cohort/part-1.parquet"]
    assert account["rows"]["fitted"] == len(pd.read_parquet(tmp_path / "results" / "scores.parquet")) == 200


def test_an_id_that_stands_twice_far_apart_is_found(frame, tmp_path):
    frame.loc[800, "record_id"] = "P0002"
    path = written(frame, tmp_path)
    with pytest.raises(InputError, match=r"'P0002' in column 'record_id' appears twice .*row 3.*row 801"):
        fit_study(options(path, reverse=["q04"]))


def test_what_cannot_be_done_in_parts_is_said_at_once(frame, tmp_path):
    path = written(frame.assign(wave=1), tmp_path)
    with pytest.raises(InputError, match=r"visit cannot be used .* in parts \(cohort.parquet\); remove"):
        read_study(options(path, visit={"wave": 1}))


def test_nothing_is_fitted_to_the_sample_where_nothing_is_chosen(frame, tmp_path, monkeypatch):
    fitted, solve = [], ICQF.solve
    monkeypatch.setattr(ICQF, "solve", lambda *given: fitted.append(given[1].problem.n) or solve(*given))
    fit = fit_study(options(written(frame, tmp_path), reverse=["q04"]))
    assert fit.search is None and fitted == [900]
