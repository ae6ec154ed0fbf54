"""How sure we are when we say so: reliability tables, and statements that leave a study out."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icqf import InputError
from icqf.cli.program import cli
from icqf.workflow.evaluation import Design
from icqf_experiments import made_with
from icqf_experiments.calibration import STATEMENTS, number_of_factors, replication
from icqf_experiments.calibration.frame import (
    BINS,
    Statement,
    brier,
    calibration_page,
    groups_of,
    reliability,
    verdict,
)
from icqf_experiments.calibration.learning import best_candidate, left_out
from icqf_experiments.calibration.populations import Population, behind, pairs_of_parts
from icqf_experiments.made_with import record

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def cases(said, share, n=100, answers="graded", source="simulated"):
    happened = (np.arange(n) < round(share * n)).astype(int)
    return pd.DataFrame({"said": said, "happened": happened, "answers": answers, "source": source})


def test_bins_are_those_that_were_committed():
    assert BINS == (0, 0.2, 0.4, 0.6, 0.8, 0.9, 1)
    table = pd.concat([cases(said, 0.5) for said in (0.0, 0.2, 0.5, 0.8, 0.9, 1.0)])
    bins = reliability(table)
    assert bins["low"].tolist() == [0, 0.2, 0.4, 0.8, 0.9] and bins["n"].tolist() == [100] * 4 + [200]


@pytest.mark.parametrize(("share", "n", "flagged"), [(0.61, 100, False), (0.59, 100, True), (0.4, 49, False)])
def test_a_bin_is_flagged_where_enough_cases_are_off(share, n, flagged):
    assert reliability(cases(0.7, share, n))["flagged"].tolist() == [flagged]


def test_errors_that_cancel_are_seen_in_the_groups():
    table = pd.concat([cases(0.7, 0.9), cases(0.7, 0.5, answers="yes/no", source="epi")], ignore_index=True)
    assert not reliability(groups_of(table)["all"])["flagged"].any()
    words = verdict(table)
    assert "graded, 0.6–0.8 (said 0.70, happened 0.90)" in words
    assert "yes/no, 0.6–0.8 (said 0.70, happened 0.50)" in words
    assert words.count("happened 0.50") == 1  # the same cases under another name are not told twice


def test_the_brier_score_is_compared_with_the_base_rate():
    assert brier(cases(0.5, 0.5)) == (0.25, 0.25)
    assert "Worse than the base rate: all" in verdict(cases(0.9, 0.5))


def test_a_statement_that_is_not_named_comes_from_its_table(tmp_path):
    def never(design):
        raise AssertionError

    known = Statement("known", "Known", "Said before.", never)
    new = Statement("new", "New", "Said now.", lambda design: cases(0.5, 0.5))
    absent = Statement("absent", "Absent", "Never said.", never)
    cases(0.9, 0.2).to_csv(tmp_path / known.file(), index=False)
    page = calibration_page(
        [known, new, absent], ["new"], Design(tmp_path, command="icqf reproduce calibration")
    )
    text = page.read_text(encoding="utf-8")
    assert "## Known" in text and "## New" in text and "Absent" not in text
    assert "**Known.** Off by more than 0.10" in text
    assert (tmp_path / "calibration-new.csv").is_file()


@pytest.mark.parametrize("broken", [cases(1.2, 0.5), cases(0.5, 0.5).drop(columns="answers")])
def test_a_table_that_is_not_of_probabilities_is_refused(tmp_path, broken):
    statement = Statement("wrong", "Wrong", "", lambda design: broken)
    with pytest.raises(InputError, match="wrong"):
        calibration_page([statement], ["wrong"], Design(tmp_path))


def test_parts_of_a_public_study_share_no_participant():
    parts = [part for pair in pairs_of_parts("aggression", 75, 2) for part in pair]
    members = [name for part in parts for name in part.answers.index]
    assert len(parts) == 4 and len(set(members)) == len(members) == 300


def test_two_studies_of_a_population_share_its_loadings_only():
    population = Population("strong", "yes/no", 2, 10, 0.1, 5)
    one, two = (population.draw(2000, seed).answers for seed in (0, 1))
    assert not one.equals(two)
    np.testing.assert_allclose(one.mean(), two.mean(), atol=0.06)
    np.testing.assert_allclose(one.corr(), two.corr(), atol=0.1)
    noise = Population("none", "five answers", 1, 10, 0.0, 5).draw(5000, 0).answers.corr().to_numpy()
    assert np.abs(noise[~np.eye(10, dtype=bool)]).max() < 0.06


def test_answers_at_the_ends_are_yes_and_no():
    answers = np.array([[0, 1.0, 2], [1, 5, 2], [1, 1, 4], [np.nan, 5, 2]])
    assert replication.at_ends(answers, [(0, 1), (1, 5), (1, 5)]).tolist() == pytest.approx([1, 1, 0.2])


def simulated_cases(n=3000):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"resampled": rng.uniform(0, 0.98, n), "halves": rng.uniform(0, 0.98, n)})
    table = table.assign(m=rng.integers(10, 70, n), n=300, k=3, yes_no=0.0, skewness=0.0, ends=0.5, often=0.5)
    table = table.assign(signal="", which=0, answers="graded")
    up = replication.stepped_up(table["halves"])
    t = -4 + 4 * np.arctanh(up)
    study = rng.choice(["bfi", "epi", "population 3", "population 14"], n)
    source = np.where(np.char.startswith(study, "population"), "simulated", study)
    happened = (rng.random(n) < 1 / (1 + np.exp(-t))).astype(int)
    return table.assign(study=study, source=source, happened=happened)


def test_what_is_said_of_a_study_does_not_depend_on_what_it_found():
    table, name = simulated_cases(), "resamples and halves"
    before = replication.CANDIDATES.predicted(table, name)
    mine = (table["study"] == "epi").to_numpy()
    spoiled = table.assign(happened=np.where(mine, 1 - table["happened"], table["happened"]))
    after = replication.CANDIDATES.predicted(spoiled, name)
    np.testing.assert_array_equal(before[mine], after[mine])
    assert not np.allclose(before[~mine], after[~mine])
    assert behind("bfi as yes/no") == "bfi"


def test_the_model_is_learned_back_and_the_predictor_that_matters_is_chosen():
    table = simulated_cases()
    intercept, resamples, halves = replication.CANDIDATES.learned(table, "resamples and halves")
    assert (intercept, resamples, halves) == (
        pytest.approx(-4, abs=0.5),
        pytest.approx(0, abs=0.2),
        pytest.approx(4, abs=0.5),
    )
    scores = replication.CANDIDATES.compared(table)
    assert best_candidate(scores) == "halves alone"
    scores = scores.set_index("candidate")
    assert scores.loc["halves alone", "off"] == 0 < scores.loc["resamples alone", "brier"] - 0.1


def test_the_rule_takes_the_fewest_bins_off_among_those_that_predict_equally_well():
    scores = pd.DataFrame(
        {"candidate": list("abcde"), "predictors": [3, 1, 2, 1, 1], "noise": [0, 0, 0, 0, 9]}
    )
    scores = scores.assign(brier=[0.104, 0.1, 0.104, 0.106, 0.1], off=[1, 2, 1, 0, 0], open=True)
    assert best_candidate(scores, 100) == "c"
    assert best_candidate(scores.assign(noise=0), 100) == "e"
    assert best_candidate(scores.assign(open=scores["candidate"] == "b"), 100) == "b"


def test_the_ratio_for_a_study_is_learned_from_the_others(monkeypatch, tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"study": np.repeat(["bfi", "epi", "population 3"], 100), "n": 150, "k": 2, "chosen": 1}
    )
    table = table.assign(source=table["study"].str.replace(" 3", "").replace("population", "simulated"))
    table = table.assign(answers="graded", happened=rng.integers(0, 2, 300))
    for ratio in number_of_factors.RATIOS:
        table[str(ratio)] = rng.random(300)
    table["4.0"] = np.where(table["study"] == "bfi", 1 - table["happened"], table["happened"])
    monkeypatch.setattr(number_of_factors, "run_cases", lambda *every: table.copy())
    found = number_of_factors.cases_of_samples(Design(tmp_path))
    ratios = found.groupby("study")["ratio"].unique()
    assert ratios["bfi"].tolist() == [4.0]  # what the others are right with, wrong as it is about this study
    mine = (found["study"] == "bfi").to_numpy()
    said = found.loc[mine, "said"].fillna(0)
    assert (said == found.loc[mine, "4.0"]).all() and set(left_out(found)) == {"bfi", "epi", "tenth 3"}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=list(STATEMENTS))
def test_the_committed_page_says_what_the_committed_table_says(statement):
    table = RESULTS / statement.file()
    if not table.is_file():
        assert f"## {statement.title}" not in (RESULTS / "calibration.md").read_text(encoding="utf-8")
        return
    page, cases = (RESULTS / "calibration.md").read_text(encoding="utf-8"), pd.read_csv(table)
    said = cases.dropna(subset="said")
    error, naive = brier(said)
    assert verdict(said) in page
    assert f"| {statement.title} | {len(said)} | {error:.3f} | {naive:.3f} |" in page


def test_the_page_is_written_from_tables_alone_with_their_commits(tmp_path):
    cases(0.9, 0.2).assign(moved=0.1, converged=True).to_csv(
        tmp_path / "calibration-settled.csv", index=False
    )
    record(tmp_path, "calibration-settled", command="icqf reproduce calibration", made_with="abc1234")
    words = ["reproduce", "calibration", "--tables", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "## A fit has settled" in result.stdout and result.stdout.count("\n## ") == 2
    assert "All 100 cases, made with commit abc1234" in result.stdout
    assert [*made_with.read(tmp_path)] == ["calibration-settled"]
    refused = CliRunner().invoke(cli, [*words, "--statement", "settled"])
    assert refused.exit_code == 2 and "leave out --statement" in refused.output


@pytest.mark.long
def test_the_quick_form_runs_every_statement(tmp_path):
    result = CliRunner().invoke(cli, ["reproduce", "calibration", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert text.strip() == result.stdout.strip() and "a trial, not a result" in text
    for statement in STATEMENTS.values():
        assert f"## {statement.title}" in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == len(STATEMENTS) and all((tmp_path / link).stat().st_size > 100 for link in links)
