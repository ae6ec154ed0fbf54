"""Whether leaving answers out depends on confounds: level, power, families, sites, and what is not said."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kruskal, spearmanr

from icqf.data.missing_answers import ALPHA, confound_sentence, confound_tests, share_left_out
from icqf.workflow import check_table


def drawn(seed, n=120, by_age=0.0):
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    share = rng.binomial(20, 1 / (1 + np.exp(3 - by_age * age - rng.normal(size=n)))) / 20
    table = pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], n), "site": rng.choice(list("abc"), n)})
    return share, table


def test_the_share_counts_what_was_asked_and_ignores_those_who_answered_nothing():
    answered = np.array([[True, False, False], [True, True, True], [False] * 3])
    asked = np.array([[True, True, False], [True] * 3, [True] * 3])
    assert np.array_equal(share_left_out(answered, asked), [0.5, 0, np.nan], equal_nan=True)


def test_the_statistics_are_spearmans_and_kruskal_walliss():
    share, table = drawn(3)
    found = confound_tests(share, table).set_index("confound")
    assert found.loc["age", "correlation"] == pytest.approx(spearmanr(share, table["age"]).statistic)
    groups = [share[table["site"] == name] for name in "abc"]
    assert found.loc["site", "p"] == pytest.approx(kruskal(*groups).pvalue, abs=0.06)
    assert found.loc["age", "p"] == pytest.approx(spearmanr(share, table["age"]).pvalue, abs=0.06)
    assert (found["p_adjusted"] >= found["p"]).all()


def test_false_alarms_are_rare_and_dependence_is_found():
    null = [confound_tests(*drawn(seed)) for seed in range(30)]
    assert sum((table["p_adjusted"] <= ALPHA).any() for table in null) <= 5  # 1.5 are expected
    power = [confound_tests(*drawn(seed, by_age=1.0)) for seed in range(5)]
    assert sum(table.set_index("confound")["p_adjusted"]["age"] <= ALPHA for table in power) >= 4
    text = confound_sentence(power[0])
    assert text.startswith("Leaving answers out depends on age: participants with higher age left out more")


def test_copies_within_families_are_no_further_evidence():
    share, table = drawn(1, n=40)
    table["age"] = np.argsort(np.argsort(share + 0.1 * np.random.default_rng(0).normal(size=40)))
    few = confound_tests(share, table[["age"]])["p"].iloc[0]
    four = np.repeat(np.arange(40), 4)
    again = confound_tests(share[four], table[["age"]].iloc[four], units=four)
    assert again["n"].iloc[0] == 40 and again["p"].iloc[0] == pytest.approx(few, abs=0.05)
    wrong, _ = drawn(5, n=40)
    alone = confound_tests(wrong[four], table[["age"]].iloc[four])["p"].iloc[0]
    together = confound_tests(wrong[four], table[["age"]].iloc[four], units=four)["p"].iloc[0]
    assert alone < together


def test_differences_between_sites_are_not_differences_in_age():
    rng = np.random.default_rng(0)
    site = np.repeat([0, 1], 60)
    age, share = rng.normal(size=120) + 3 * site, rng.binomial(20, 0.05 + 0.3 * site) / 20
    table = pd.DataFrame({"age": age})
    assert confound_tests(share, table)["p"].iloc[0] <= 0.01
    assert confound_tests(share, table, units=site)["p"].iloc[0] > ALPHA


def test_large_studies_use_the_limit():
    share, table = drawn(2, n=6000)
    found = confound_tests(share, table).set_index("confound")
    assert found.loc["age", "p"] == pytest.approx(spearmanr(share, table["age"]).pvalue, rel=0.02)
    assert (found["p_adjusted"] >= found["p"]).all() and found["p_adjusted"].max() <= 1


@pytest.mark.parametrize("share", [np.zeros(50), np.full(50, 0.1), np.r_[np.zeros(46), [0.1] * 4]])
def test_nothing_is_said_where_hardly_anything_is_missing_or_all_left_out_alike(share):
    assert confound_tests(share, pd.DataFrame({"age": np.arange(50)})).empty


def answers(n=200, by_age=0.0, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(6, 18, n)
    table = pd.DataFrame(rng.integers(0, 3, (n, 12)), columns=[f"q{j}" for j in range(12)]).astype(float)
    odds = 0.05 + by_age * (age > 12)
    table = table.mask(rng.random((n, 12)) < odds[:, None])
    return table.assign(age=age, sex=rng.choice(["f", "m"], n))


def test_check_says_whether_leaving_out_depends_on_confounds():
    clear = check_table(answers(by_age=0.2), confounds=["age", "sex"])
    (finding,) = clear.of("missing-depends")
    assert finding.severity == "warning" and "depends on age:" in finding.message
    assert "adjusted for 2 confounds" in finding.message and finding.remedy
    none = check_table(answers(seed=1), confounds=["age", "sex"])
    (finding,) = none.of("missing-independent")
    assert finding.severity == "note" and "depends on age or sex (p = " in finding.message
    assert not none.of("missing-depends")


def test_check_is_silent_without_confounds_or_missing_answers():
    table = answers()
    assert not check_table(table.drop(columns=["age", "sex"])).of("missing-independent")
    assert not check_table(table.fillna(1.0), confounds=["age"]).of("missing-independent")
