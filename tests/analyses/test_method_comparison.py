"""Stability, diagnostic AUC and replication on a small study, resumed, in parallel, and refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icqf.analyses import (
    FactorAnalysisMethod,
    ICQFMethod,
    bands,
    compare_methods,
    diagnostic_auc,
    factor_lineage,
    replication,
    stability,
)
from icqf.analyses.method_comparison import resolve
from icqf.datasets import make_cohort
from icqf.errors import InputError
from icqf.resampling import match_factors

pytestmark = pytest.mark.slow

FIXED = ICQFMethod((8,), (0.2,))
TWO = ICQFMethod((2,), (0.2,))  # where it does not matter how well it fits
TWO_FACTORS = FactorAnalysisMethod(2)
SMALL = {"sizes": [0.8, 0.4], "n_splits": 2}


@pytest.fixture(scope="module")
def cohort():
    return make_cohort("hbn", 300)


@pytest.fixture(scope="module")
def labels(cohort):
    return cohort.diagnoses[["adhd", "depression"]]


@pytest.fixture(scope="module")
def short(cohort):
    """Some items of the cohort."""
    return cohort.questionnaire.select(["q00*", "q01*"])


def test_stability_compares_parts_with_the_whole_and_with_the_truth(cohort):
    found = stability(
        cohort.questionnaire,
        methods=[FIXED, FactorAnalysisMethod(8)],
        truth=cohort.truth.loadings,
        sizes=[0.8, 0.4],
        n_splits=3,
    )
    assert len(found.table) == 12
    assert found.failures == ()
    summary = found.summary().set_index(["size", "method"])
    assert summary.loc[(0.8, "ICQF"), "pearson"] > summary.loc[(0.4, "ICQF"), "pearson"] > 0.5
    assert summary.loc[(0.8, "ICQF"), "truth"] > 0.9
    assert (found.table["pearson_optimal"] >= found.table["pearson"] - 1e-9).all()
    assert (found.table[["k", "k_full"]] == 8).all(axis=None)


def test_the_row_of_a_part_can_be_worked_out_by_hand(cohort):
    from icqf.resampling.folds import make_splits

    study = cohort.questionnaire
    found = stability(study, methods=[FIXED], sizes=[0.4], n_splits=1, random_state=5).table.iloc[0]
    split = make_splits(study, None, sizes=[0.4, 1.0], n_splits=1, random_state=5)[0]
    whole, part = (
        FIXED.fit(study.take(split.training[size]), random_state=0).loadings for size in (1.0, 0.4)
    )
    assert found["pearson"] == pytest.approx(match_factors(whole, part).mean, abs=1e-5)
    assert found["n_training"] == len(split.training[0.4])


def test_processes_and_journals_do_not_change_results(short, labels, tmp_path):
    plain = stability(short, labels=labels, methods=[TWO], **SMALL).table
    journal = tmp_path / "journal"
    again = stability(short, labels=labels, methods=[TWO], n_jobs=2, checkpoint=journal, **SMALL)
    pd.testing.assert_frame_equal(again.table, plain)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    told = []
    resumed = stability(
        short,
        labels=labels,
        methods=[TWO],
        checkpoint=journal,
        callback=told.append,
        **SMALL,
    )
    pd.testing.assert_frame_equal(resumed.table, plain)
    assert (told[0].done, told[-1].done, told[-1].total) == (2, 6, 6)


def test_one_journal_serves_all_three(short, labels, tmp_path):
    journal, told = tmp_path / "journal", []
    common = {"methods": [TWO], "random_state": 3}
    stability(short, labels=labels, checkpoint=journal, **SMALL, **common)
    size = journal.stat().st_size
    found = diagnostic_auc(short, labels, checkpoint=journal, callback=told.append, **SMALL, **common)
    assert told[0].done == told[0].total == 4
    replication(
        short,
        short,
        labels=(labels, labels),
        checkpoints=(journal, journal),
        n_splits=2,
        **common,
    )
    assert journal.stat().st_size == size
    fresh = diagnostic_auc(short, labels, **SMALL, **common)
    pd.testing.assert_frame_equal(found.table, fresh.table)


def test_a_journal_of_other_data_is_refused(short, tmp_path):
    journal = tmp_path / "journal"
    stability(short, methods=[TWO], checkpoint=journal, sizes=[0.8], n_splits=1)
    other = make_cohort("hbn", 300, random_state=1).questionnaire.select(["q00*", "q01*"])
    with pytest.raises(InputError, match="belongs to other data"):
        stability(other, methods=[TWO], checkpoint=journal, sizes=[0.8], n_splits=1)


@pytest.mark.long
def test_scores_tell_diagnoses_better_than_chance_and_shuffled_ones_do_not(cohort, labels):
    shuffled = labels.sample(frac=1, random_state=0).set_axis(labels.index)
    both = labels.join(shuffled.add_prefix("shuffled_"))
    found = diagnostic_auc(
        cohort.questionnaire, both, methods=[FIXED, "subscales", "items"], sizes=[0.8], n_splits=6
    )
    areas = found.by_label()[0.8]
    assert (areas.loc[["adhd", "depression"]] > 0.65).all(axis=None)
    assert (areas.loc[["shuffled_adhd", "shuffled_depression"]] < 0.62).all(axis=None)
    assert found.summary()["method"].tolist() == ["ICQF", "subscale sums", "all items"]
    assert set(found.tests()["against"]) == {"subscale sums", "all items"}
    assert len(found.tests(each_label=True)) == 8


def test_replication_finds_itself_and_tells_two_populations_apart(cohort):
    same = replication(cohort.questionnaire, cohort.questionnaire, methods=[FIXED], n_splits=2)
    assert (same.table["pearson"] > 0.999999).all()
    other = make_cohort("abcd", 300).questionnaire
    between = replication(cohort.questionnaire, other, methods=[FIXED, FactorAnalysisMethod(8)], n_splits=2)
    assert between.table["pearson"].between(0.4, 0.99).all()
    assert between.summary()["method"].tolist() == ["ICQF", "FA-promax"]
    assert len(between.tests()) == 1


def test_a_fit_that_is_not_possible_is_reported_and_left_out(cohort):
    answers = cohort.questionnaire.answers.copy()
    answers.iloc[::2, 0] = np.nan
    answers.iloc[1::2, 1] = np.nan  # no one answered both
    study = replace(cohort.questionnaire, answers=answers)
    found = stability(study, methods=[FIXED, FactorAnalysisMethod(4)], sizes=[0.8], n_splits=1)
    assert found.table["method"].tolist() == ["ICQF"]
    assert len(found.failures) == 2
    assert "'q001' and 'q002' were both answered by 0 participants" in found.failures[0]


def test_participants_who_answered_nothing_are_left_out(cohort, labels):
    answers = cohort.questionnaire.answers.copy()
    answers.iloc[:5] = np.nan
    study = replace(cohort.questionnaire, answers=answers)
    found = diagnostic_auc(study, labels, methods=["subscales"], sizes=[0.8], n_splits=1)
    assert found.table["n_training"].iloc[0] == pytest.approx(0.64 * 295, abs=1)


def test_undeclared_ranges_are_refused_where_they_would_leak(short, labels):
    items = tuple(replace(item, min=None, max=None) for item in short.items)
    study = replace(short, items=items)
    with pytest.raises(InputError, match="would depend on held-out participants; declare min and max"):
        diagnostic_auc(study, labels, methods=[TWO])
    assert len(stability(study, methods=[TWO], sizes=[0.8], n_splits=1).table) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(adhd=2.0), "'adhd' is 2 for participant 'SIM-HBN-00001'"),
        (lambda t: t.assign(adhd="yes"), "'adhd' is not numeric"),
        (lambda t: t.assign(adhd=0.0), "'adhd' has 0 cases; at least 10 are needed"),
        (lambda t: t.assign(adhd=1.0), "'adhd' has 0 controls"),
        (
            lambda t: t.set_axis([f"x{i}" for i in range(len(t))]),
            "No participant of the labels is in the ans",
        ),
        (lambda t: pd.concat([t, t.iloc[:1]]), "the participant 'SIM-HBN-00001' twice"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_in_plain_words(cohort, labels, change, message):
    with pytest.raises(InputError, match=message):
        diagnostic_auc(cohort.questionnaire, change(labels), methods=["subscales"], n_splits=1)


def test_methods_are_named_or_given_and_told_apart():
    assert [method.name for method in resolve(["icqf", FactorAnalysisMethod(3)])] == ["ICQF", "FA-promax"]
    with pytest.raises(InputError, match=r"There is no method 'icqff'\. Did you mean 'icqf'"):
        resolve(["icqff"])
    with pytest.raises(InputError, match="Two methods have the name 'ICQF'"):
        resolve(["icqf", FIXED])
    with pytest.raises(InputError, match="at least one"):
        resolve([])


def test_factor_analysis_takes_the_number_of_factors_of_another_method(short, labels, tmp_path):
    methods = [ICQFMethod((2, 3), (0.2,), 3), "fa-promax-same-k"]
    how = {**SMALL, "checkpoint": tmp_path / "journal"}
    table = stability(short, labels=labels, methods=methods, **how).table
    counts = table.pivot(index=["split", "size"], columns="method", values=["k", "k_full"])
    for name in ("k", "k_full"):
        assert counts[name, "ICQF"].tolist() == counts[name, "FA-promax same k"].tolist()
    written = (tmp_path / "journal").read_bytes()
    areas = diagnostic_auc(short, labels, methods=methods, **how)
    assert (tmp_path / "journal").read_bytes() == written  # the fits of both are shared
    assert set(areas.table["method"]) == {"ICQF", "FA-promax same k"}


def test_factor_analysis_with_a_taken_number_equals_that_with_a_given_one(short):
    found = stability(short, methods=[TWO, TWO_FACTORS, "fa-promax-same-k"], **SMALL).table
    given, taken = (found[found["method"] == name] for name in ("FA-promax", "FA-promax same k"))
    assert given["pearson"].tolist() == taken["pearson"].tolist()


def test_factor_analysis_fails_where_the_method_it_follows_does(short):
    impossible = ICQFMethod((2,), (0.2,), parameters=(("rho", -1.0),))
    found = stability(short, methods=[impossible, TWO_FACTORS, "fa-promax-same-k"], sizes=[0.8], n_splits=1)
    assert any("FA-promax same k takes the number of factors of ICQF" in line for line in found.failures)
    with pytest.raises(InputError, match="ICQF, which is not among the methods; add ICQF"):
        resolve(["fa-promax", "fa-promax-same-k"])


def test_a_method_without_factors_has_nothing_to_compare(cohort):
    with pytest.raises(InputError, match="'all items' has no loadings to compare"):
        stability(cohort.questionnaire, methods=["items"], sizes=[0.8], n_splits=1)


def test_subscales_need_a_codebook_that_has_them(cohort, labels):
    items = tuple(replace(item, subscale="") for item in cohort.questionnaire.items)
    study = replace(cohort.questionnaire, items=items)
    found = diagnostic_auc(study, labels, methods=["subscales", "items"], sizes=[0.8], n_splits=1)
    assert set(found.table["method"]) == {"all items"}
    assert "no item has a subscale" in found.failures[0]


def test_missing_confounds_are_refused_by_name(cohort):
    confounds = cohort.questionnaire.confounds.copy()
    confounds.iloc[[3, 4], 0] = np.nan
    study = replace(cohort.questionnaire, confounds=confounds)
    with pytest.raises(InputError, match="'age' is missing for participant 'SIM-HBN-00004' and 1 more"):
        stability(study, methods=[FIXED], sizes=[0.8], n_splits=1)


def test_when_nothing_can_be_fitted_the_reason_is_told(cohort):
    items = tuple(replace(item, subscale="") for item in cohort.questionnaire.items)
    with pytest.raises(InputError, match=r"No fit was possible\. subscale sums: .* no item has a subscale"):
        diagnostic_auc(
            replace(cohort.questionnaire, items=items),
            cohort.diagnoses[["adhd"]],
            methods=["subscales"],
            sizes=[0.8],
            n_splits=1,
        )


# --- means with their intervals over repetitions, and how factors descend from one another ------------


def test_bands_are_t_intervals():
    values = [0.70, 0.74, 0.78]
    found = bands(pd.DataFrame({"method": "ICQF", "size": 0.5, "auc": values}), "auc").iloc[0]
    half = 4.302652729911275 * np.std(values, ddof=1) / np.sqrt(3)
    assert (found["low"], found["high"]) == (pytest.approx(0.74 - half), pytest.approx(0.74 + half))


def test_every_factor_has_its_closest_predecessor():
    rng = np.random.default_rng(0)
    fits = [rng.random((12, k)) for k in (5, 2, 3)]
    links = factor_lineage(fits)
    assert list(links.groupby(["k", "next_k"]).groups) == [(2, 3), (3, 5)]
    for k, next_k, first, second in ((2, 3, fits[1], fits[2]), (3, 5, fits[2], fits[0])):
        values = np.corrcoef(first.T, second.T)[:k, k:]
        here = links[(links["k"] == k) & (links["next_k"] == next_k)]
        expected = {(r, s) for s in range(next_k) for r in range(k) if values[r, s] in (values[:, s].max(),)}
        expected |= set(map(tuple, np.argwhere(values >= 0.4)))
        assert set(zip(here["factor"] - 1, here["next_factor"] - 1, strict=True)) == expected
        np.testing.assert_allclose(
            here["correlation"], values[here["factor"] - 1, here["next_factor"] - 1], atol=1e-12
        )


def test_a_lineage_needs_fits_of_the_same_items():
    with pytest.raises(InputError, match="at least two"):
        factor_lineage([np.eye(3)])
    with pytest.raises(InputError, match="different items"):
        factor_lineage([np.eye(3), np.eye(4)])


# --- paired tests against SciPy's, and the false discovery rate against Benjamini and Hochberg's rule -


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    rows = [
        {"split": split, "size": size, "method": method, "auc": 0.7 + gain + 0.02 * rng.normal()}
        for split in range(30)
        for size in (0.8, 0.2)
        for method, gain in (("ICQF", 0.02), ("FA", 0.0), ("sums", 0.02), ("items", 0.06))
    ]
    return pd.DataFrame(rows)


def test_each_test_is_scipys(table):
    tests = compare_methods(table, "auc")
    assert len(tests) == 6
    for row in tests.to_dict("records"):
        part = table[table["size"] == row["size"]].pivot(index="split", columns="method", values="auc")
        gain = part["ICQF"] - part[row["against"]]
        assert row["p_better"] == stats.wilcoxon(gain, alternative="greater").pvalue
        assert row["p_worse"] == stats.wilcoxon(gain, alternative="less").pvalue
        assert row["difference"] == pytest.approx(gain.mean())


def test_adjusted_values_follow_benjamini_and_hochberg(table):
    tests = compare_methods(table, "auc")
    p = tests["p_better"].to_numpy()
    order = np.argsort(p)
    adjusted = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    np.testing.assert_allclose(tests["q_better"].to_numpy()[order], adjusted)


def test_wins_ties_and_losses_are_told_apart(table):
    verdicts = compare_methods(table, "auc").set_index(["size", "against"])["verdict"]
    assert verdicts[(0.8, "FA")] == "better"
    assert verdicts[(0.8, "items")] == "worse"
    assert verdicts[(0.8, "sums")] == "no difference"


def test_equal_values_and_missing_ones_are_no_difference():
    splits = np.repeat(range(7), 2)
    table = pd.DataFrame({"split": splits, "method": ["ICQF", "FA"] * 7, "auc": 0.7, "size": 0.8})
    assert compare_methods(table, "auc")["verdict"].tolist() == ["no difference"]
    gappy = table.assign(auc=[0.7, np.nan, *[0.8, 0.7] * 6])
    assert compare_methods(gappy, "auc")["n_splits"].tolist() == [6]


def test_few_splits_cannot_tell_a_difference():
    """Six wins of six have p = 1/64, seven of seven p = 1/128."""
    fa = pd.DataFrame({"split": range(7), "method": "FA", "auc": 0.7, "size": 0.8})
    both = pd.concat([fa.assign(method="ICQF", auc=0.8), fa])
    assert compare_methods(both, "auc")["verdict"].tolist() == ["better"]
    assert compare_methods(both[both["split"] < 6], "auc")["verdict"].tolist() == ["too few splits"]


def test_an_unknown_method_is_refused(table):
    with pytest.raises(InputError, match="no method 'ICA' in the table"):
        compare_methods(table, "auc", method="ICA")
