"""Rules judged on independent parts, with replication probabilities that the other studies taught."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from icqf.datasets import load_demo
from icqf.workflow.evaluation import Design
from icqf_experiments.consensus import compare_averages, consensus_page
from icqf_experiments.fit_parts import Effort, FittedPart, collect, found_again
from icqf_experiments.selection import (
    CANDIDATES,
    ChanceCurve,
    curves_of_others,
    evaluate_rules,
    fit_curve,
    overall,
    pairs_of,
    selection_page,
)
from icqf_experiments.split_studies import DEVELOPMENT, JUDGES, SplitStudy, studies_named

PATTERN = np.kron(np.eye(3), np.ones((1, 4)))  # three factors of four items each


def part(ground, number, agreement, *, best=3, loadings=PATTERN):
    """A part whose lowest error is at `best`, with these loadings for 3 factors."""
    ks = [1, 2, 3]
    errors = pd.DataFrame(
        {"n_components": ks, "beta": 0.1, "error": [1 + abs(k - best) for k in ks], "standard_error": 0.01}
    )
    stability = pd.DataFrame({"n_components": ks, "agreement": 0.9})
    every = [loadings[:1], loadings[:2], loadings]
    return FittedPart(
        ground, number, 100, 12, errors, stability, every, agreement, agreement, {"Parallel analysis": 3}
    )


STEADY = [np.full((20, k), 0.95) for k in (1, 2, 3)]
SHAKY = [np.full((20, 1), 0.95), np.full((20, 2), 0.95), np.array([[0.95, 0.5, 0.3]] * 20)]


def test_a_factor_is_found_again_by_its_counterpart():
    turned = PATTERN[[2, 0, 1]]
    np.testing.assert_allclose(found_again(PATTERN, turned), 1)
    assert found_again(PATTERN, turned[:2]).tolist() == pytest.approx([1, 0, 1])


def test_rules_are_judged_by_what_the_other_part_finds():
    other = np.vstack([PATTERN[:2], np.random.default_rng(0).uniform(size=(1, 12))])
    table = evaluate_rules([part("a", 0, STEADY), part("a", 1, STEADY, loadings=other)], {"a": 2})
    low = table.set_index("rule").loc["min (lowest error)"]
    assert (low["found"], low["k"], low["off"]) == (2, 3, 1) and low["share"] == pytest.approx(2 / 3)
    assert set(table["rule"]) == {*CANDIDATES, "Parallel analysis"} and len(table) == len(CANDIDATES) + 1


def test_a_shaky_factor_is_left_out_by_the_rule_that_expects_to_find_factors_again():
    table = evaluate_rules([part("a", 0, SHAKY), part("a", 1, SHAKY)], {})
    k = table.set_index("rule")["k"]
    assert k["min (lowest error)"] == 3 and k["expected found again − 0.7 per factor"] == 2
    assert k["every factor's agreement ≥ 0.8"] == 2


def test_no_rule_that_looks_at_resamples_goes_beyond_the_lowest_error():
    table = evaluate_rules([part("a", 0, STEADY, best=2), part("a", 1, STEADY, best=2)], {})
    k = table.set_index("rule")["k"]
    assert k[[name for name in CANDIDATES if "agreement" in name or "expected" in name]].max() == 2


def test_means_are_compared_with_the_lowest_error_on_the_same_studies():
    table = evaluate_rules([part(g, i, SHAKY) for g in "ab" for i in (0, 1)], {})
    means = overall(table).set_index("rule")
    assert means.loc["min (lowest error)", ["share_gain", "found_ratio"]].tolist() == [0, 1]
    assert means.loc["every factor's agreement ≥ 0.8", "found_ratio"] == pytest.approx(2 / 3)


def test_the_curve_is_learned_back():
    rng, curve = np.random.default_rng(0), ChanceCurve(-3.0, 3.0)
    halves = rng.uniform(0, 0.97, 6000)
    pairs = pd.DataFrame({"halves": halves, "found": (rng.random(6000) < curve(halves)).astype(float)})
    found = fit_curve(pairs)
    assert (found.intercept, found.slope) == (pytest.approx(-3, abs=0.3), pytest.approx(3, abs=0.3))


def test_chances_of_a_study_come_from_the_others():
    parts = [part(g, i, SHAKY) for g in "abc" for i in (0, 1)]
    other = [part("a", i, STEADY, loadings=np.eye(3, 12)) for i in (0, 1)]
    before, after = curves_of_others(parts), curves_of_others([*other, *parts[2:]])
    assert before["a"] == after["a"] and before["b"] != after["b"]


def test_pairs_compare_parts_of_one_study_both_ways():
    pairs = pairs_of([part("a-350", i, SHAKY) for i in (0, 1)] + [part("b", i, STEADY) for i in (0, 1)])
    assert len(pairs) == 2 * 2 * (1 + 2 + 3) and set(pairs["study"]) == {"a", "b"}
    weak = pairs[(pairs["study"] == "a") & (pairs["k"] == 3)]
    assert sorted(weak["halves"].unique()) == pytest.approx([0.3, 0.5, 0.95])


def test_studies_that_judge_are_none_of_those_on_which_rules_were_sought():
    assert not set(DEVELOPMENT) & set(JUDGES)
    names = [ground.name for ground in studies_named()]
    assert len(names) == len(set(names)) and all(any(n.startswith(j) for n in names) for j in JUDGES)


DEMO = SplitStudy("demo", lambda: load_demo().select(["q00*"]), size=60, n_parts=2)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The parts of the demo, fitted, and their journal."""
    journal = tmp_path_factory.mktemp("parts") / "parts.journal"
    return collect([DEMO], checkpoint=journal), journal


@pytest.mark.long
def test_parts_share_no_participant_and_are_fitted_once(collected):
    one, two = DEMO.parts()
    assert not set(one.answers.index) & set(two.answers.index)
    parts, journal = collected
    assert [p.number for p in parts] == [0, 1] and all(len(p.loadings) >= len(p.agreement) for p in parts)
    assert [len(loadings) for loadings in parts[0].loadings] == list(range(1, len(parts[0].loadings) + 1))
    size = journal.stat().st_size
    again = collect([DEMO], checkpoint=journal)
    assert journal.stat().st_size == size
    np.testing.assert_array_equal(again[1].agreement[0], parts[1].agreement[0])


@pytest.mark.long
def test_a_journal_gives_parts_only_to_the_same_answers_and_settings(tmp_path):
    journal, effort = tmp_path / "parts.journal", Effort(4, beyond=0, fixed=2, n_starts=1, n_resamples=2)

    def made(number, **changes):
        mine = demo.take(np.arange(60) + 60 * number)
        ground = SplitStudy(f"made-{number}", lambda: mine, size=60, n_parts=1, n_major=1)
        (part,) = collect([ground], effort=replace(effort, **changes), checkpoint=journal)
        return part, len(journal.read_bytes().splitlines())

    demo = load_demo().select(["q00*"])
    first, lines = made(0)
    assert lines == 2 and made(0)[1] == 2
    second, lines = made(1)  # other studies may use the journal in turn
    assert lines == 3 and not np.array_equal(first.loadings[0], second.loadings[0])
    resampled, lines = made(0, n_resamples=3)
    assert lines == 4 and len(resampled.agreement[0]) == 3
    demo = replace(demo, answers=demo.answers.replace(2.0, 1.0))
    spoiled, lines = made(0)
    assert lines == 5 and not np.array_equal(first.loadings[0], spoiled.loadings[0])
    assert made(0)[1] == 5


@pytest.mark.long
def test_averages_are_compared_on_the_same_parts_and_kept(collected, tmp_path):
    parts, _ = collected
    journal = tmp_path / "averages.journal"
    table = compare_averages([DEMO], parts, checkpoint=journal)
    assert table["choice"].tolist() == ["min", "k = 5"] and (table["n"] == 60).all()
    expected = np.mean([found_again(a.loadings[-1], b.loadings[-1]) for a, b in permutations(parts)])
    assert len(parts[0].loadings) <= 5 and table["plain"].iloc[1] == pytest.approx(expected)
    assert (table["averaged"] != table["plain"]).any()
    size = journal.stat().st_size
    pd.testing.assert_frame_equal(compare_averages([DEMO], parts, checkpoint=journal), table)
    assert journal.stat().st_size == size
    page = consensus_page([DEMO], parts, Design(tmp_path, command="icqf reproduce consensus")).read_text()
    assert page.startswith("# When averaging over resamples helps\n\nMade by `icqf reproduce consensus`")
    assert "| demo | min | 60 |" in page and journal.stat().st_size == size


def test_the_page_about_parts_names_the_command_and_links_to_tables_that_exist(tmp_path):
    parts = [part(g, i, SHAKY) for g in ("bfi", "msq", "hbn-200") for i in (0, 1)]
    grounds = studies_named(["bfi", "msq"])
    page = selection_page(grounds, parts, Design(tmp_path, command="icqf reproduce selection"))
    text = page.read_text(encoding="utf-8")
    assert "Made by `icqf reproduce selection` with icqf" in text
    links = re.findall(r"\]\((.+?)\)", text)
    assert links and all((tmp_path / link).stat().st_size > 0 for link in links)


@pytest.mark.long
def test_where_the_other_rules_cannot_be_run_the_part_is_fitted_all_the_same():
    """Two items that nobody answered together have no correlation."""

    def load():
        study = load_demo().select(["q00*"])
        answers = study.answers.copy()
        answers.iloc[::2, 0] = np.nan
        answers.iloc[1::2, 1] = np.nan
        return replace(study, answers=answers)

    (part,) = collect([SplitStudy("gaps", load, size=200, n_parts=1)])
    assert part.counts == {} and len(part.loadings) > 1
