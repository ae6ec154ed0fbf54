"""Scores with intervals from files, single scores left empty, and change between visits."""

import numpy as np
import pandas as pd
import pytest

import icqf.workflow.score as score
from icqf import ICQF, InputError
from icqf.analyses import learn_norms
from icqf.datasets import load_demo
from icqf.workflow import ScoreColumns, score_file, write_scores


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, its answers, and visits: 0 for all, 10 for 60 participants, 2 for 30 of whom 5 are new."""
    folder = tmp_path_factory.mktemp("visits")
    study = load_demo().select(["q00*", "q01*", "q02*"]).with_confounds(None)
    ICQF(2, n_init=1).fit(study).save(folder / "model.icqf", id="child_id")
    answers = study.answers.rename_axis("child_id")
    answers.to_csv(folder / "answers.csv")
    late = answers.iloc[65:5:-1].set_axis(answers.index[:60])
    some = answers.iloc[200:230].set_axis([*answers.index[:25], *(f"N{i}" for i in range(5))])
    few = answers.drop(answers.index[600:]).iloc[100:]
    visits = [few.assign(time=0), answers.iloc[:60].assign(time=0), late.assign(time=10), some.assign(time=2)]
    pd.concat(visits).rename_axis("child_id").to_csv(folder / "visits.csv")
    return folder


def test_batches_write_the_same_intervals_as_the_whole(place, monkeypatch, tmp_path):
    whole = score_file(place / "model.icqf", place / "answers.csv")
    names = ["factor1", "factor1_low", "factor1_high", "factor1_information"]
    assert list(whole.scores.columns[:4]) == names and whole.scores.shape == (600, 9)
    monkeypatch.setattr(score, "ROWS_AT_A_TIME", 70)
    done = write_scores(place / "model.icqf", place / "answers.csv", tmp_path / "scores.csv")
    written = pd.read_csv(tmp_path / "scores.csv", index_col=0)
    assert written.pop("missing").tolist() == whole.scores.pop("missing").tolist()
    np.testing.assert_allclose(written, whole.scores, atol=2e-5, equal_nan=True)
    assert done.n_silent == whole.n_silent and done.notes == whole.notes


def test_scores_alone_and_another_level(place):
    alone = score_file(place / "model.icqf", place / "answers.csv", columns=ScoreColumns(intervals=False))
    wide = score_file(place / "model.icqf", place / "answers.csv", columns=ScoreColumns(level=0.99)).scores
    usual = score_file(place / "model.icqf", place / "answers.csv").scores
    assert list(alone.scores.columns) == ["factor1", "factor2"]
    assert (wide["factor1_high"] - wide["factor1_low"]).mean() > 1.2 * (
        usual["factor1_high"] - usual["factor1_low"]
    ).mean()


def test_a_factor_without_answers_is_empty_and_counted(place, tmp_path):
    answers = pd.read_csv(place / "answers.csv", dtype={"child_id": str})
    loadings = ICQF.load(place / "model.icqf").loadings_
    own = loadings.index[loadings["factor1"] > 0]
    answers.loc[:2, own] = np.nan
    answers.to_csv(tmp_path / "gaps.csv", index=False)
    found = score_file(place / "model.icqf", tmp_path / "gaps.csv")
    gaps = found.scores["factor1"].isna()
    assert gaps[:3].all() and found.scores["factor1_low"].isna().equals(gaps)
    reasons = found.scores["missing"]
    assert reasons.iloc[0] == "factor1: the answers given say next to nothing about this factor"
    nothing = found.scores[["factor1", "factor2"]].isna().all(axis=1)
    assert ((reasons == "all scores: no answers") == nothing).all()
    assert (reasons[found.scores.notna().all(axis=1)] == "nothing").all()
    assert any("left empty, because the answers given say next to nothing" in note for note in found.notes)


def test_a_model_of_few_participants_says_why_there_are_no_intervals(place, tmp_path):
    study = load_demo().select(["q00*", "q01*"]).with_confounds(None)
    ICQF(2, n_init=1).fit(study.take(np.arange(90))).save(tmp_path / "model.icqf", id="child_id")
    found = score_file(tmp_path / "model.icqf", place / "answers.csv")
    assert list(found.scores.columns) == ["factor1", "factor2"]
    assert any("fewer than 100 participants" in note for note in found.notes)


def test_visits_are_in_order_and_change_is_since_the_first(place):
    columns = ScoreColumns(visit_column="time", change=True)
    found = score_file(place / "model.icqf", place / "visits.csv", columns=columns)
    table = found.scores
    assert "Visits, in this order: '0', '2', '10'." in found.notes
    first = table.groupby(level=0)["time"].first()
    one = table.loc[first.index[first == "0"][0]]
    assert table["factor1_change"].isna().equals(~table.index.duplicated() | table["factor1_change"].isna())
    known = table[table["time"] == "10"]
    before = table[table["time"] == "0"].reindex(known.index)
    np.testing.assert_allclose(known["factor1_change"], known["factor1"] - before["factor1"])
    assert (known["factor1_change_low"] <= known["factor1_change"] + 1e-9).all()
    assert known["factor1_change_probability"].between(0, 1).all()
    new = table.loc["N0":"N4"]
    assert new["factor1_change"].isna().all() and new["factor1"].notna().all()
    assert len(pd.DataFrame(one)) and any(note.startswith("Reliable change since") for note in found.notes)


def test_visits_without_change_have_scores_with_bands(place):
    found = score_file(place / "model.icqf", place / "visits.csv", columns=ScoreColumns(visit_column="time"))
    assert "factor1_low" in found.scores and not any("change" in name for name in found.scores)


def test_change_needs_a_column_of_visits(place):
    with pytest.raises(InputError, match="no column of visits is given"):
        ScoreColumns(change=True)
    with pytest.raises(InputError, match="there is no column 'tme'"):
        score_file(place / "model.icqf", place / "visits.csv", columns=ScoreColumns(visit_column="tme"))


def test_dates_are_in_order_of_time_as_on_a_persons_page(place, tmp_path):
    """A later visit may stand first in the file."""
    visits = pd.read_csv(place / "visits.csv", dtype={"child_id": str})
    late, early = visits[visits["time"] == 10].head(5), visits[visits["time"] == 0].tail(60).head(5)
    table = pd.concat([late.assign(time="2024-05-31"), early.assign(time="2023-12-01")])
    table.to_csv(tmp_path / "dates.csv", index=False)
    columns = ScoreColumns(visit_column="time", change=True)
    found = score_file(place / "model.icqf", tmp_path / "dates.csv", columns=columns)
    assert "Visits, in this order: '2023-12-01', '2024-05-31'." in found.notes


def test_percentiles_of_visits_stand_beside_their_change(place, tmp_path):
    """Each visit is compared with people of the age at that visit; who has none is told why."""
    model = ICQF.load(place / "model.icqf")
    rng, study = np.random.default_rng(0), load_demo().select(["q00*", "q01*", "q02*"])
    scores = model.score_intervals(study.with_confounds(None)).scores
    ages = pd.DataFrame({"age": rng.integers(6, 17, 600)}, scores.index)
    learn_norms(scores, ages, by=["age"], model=model).save(tmp_path / "norms.icqf-norms")
    visits = pd.read_csv(place / "visits.csv", dtype={"child_id": str})
    visits["age"] = np.where(visits["time"] == 0, 8, np.where(visits["time"] == 10, 12, 60))
    visits.to_csv(tmp_path / "visits.csv", index=False)
    columns = ScoreColumns(visit_column="time", change=True)
    norms = tmp_path / "norms.icqf-norms"
    found = score_file(place / "model.icqf", tmp_path / "visits.csv", columns=columns, norms=norms)
    table = found.scores
    assert table.columns[-1] == "missing"
    known = table[(table["time"] == "10") & table["factor1"].notna()]
    assert known["factor1_percentile"].notna().all() and known["factor1_change"].notna().any()
    late = table[table["time"] == "2"]
    assert late["factor1_percentile"].isna().all()
    assert late["missing"].str.startswith("percentiles: age").all()
    assert any(note.startswith("30 visits have no percentiles: age") for note in found.notes)


def test_a_results_folder_stands_for_its_model(place, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/model.icqf").write_bytes((place / "model.icqf").read_bytes())
    one, other = (score_file(each, place / "answers.csv") for each in (place, tmp_path / "results"))
    pd.testing.assert_frame_equal(one.scores, other.scores)
    (tmp_path / "results/model.icqf").unlink()
    with pytest.raises(InputError, match=r"this folder has no model \(model.icqf\)"):
        score_file(tmp_path / "results", place / "answers.csv")
