"""What the sentences of a report say: α of which items, ages as observed, labels, p-values, additions."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.analyses.measurement_invariance import Invariance
from icqf.datasets import load_demo
from icqf.io import read_questionnaire
from icqf.models import LoadingChanges
from icqf.report import analyse, report_of
from icqf.report.sections.headline import cautions
from icqf.report.words import changed
from icqf.workflow.invariance import groups_page


@pytest.fixture(scope="module")
def demo():
    return load_demo().select(["q00*"])


def reported(study, **settings):
    model = ICQF(2, n_init=1, tol=1e-3, **settings).fit(study)
    return report_of(analyse(model, study, n_bootstrap=0, compare=True))


def test_alpha_comes_with_the_number_of_items_it_is_of(demo):
    report = reported(demo, beta=0.1)
    scales = {row.key: row for row in report.psychometrics.scales}
    factor = report.model.factors[0]
    assert (
        f"for the sum of the {scales[factor.key].n_items} items that load most on this factor)"
        in report.results
    )


def test_ages_are_those_observed_and_the_models_are_rounded(demo):
    ages = demo.confounds["age"].astype(float) + 0.25
    study = demo.with_confounds(demo.confounds.assign(age=ages))
    report = reported(study, beta=0.1)
    (age,) = [each for each in report.sample.confounds if each.name == "age"]
    low, high = round(ages.min()), round(ages.max())  # in whole years: nobody's own age
    assert (age.low, age.high) == (low, high)
    assert any(words.startswith(f"Age: {low} to {high}, mean ") for words in report.sample.words)


def test_the_effect_of_age_names_the_ages_observed(demo):
    ages = demo.confounds["age"].clip(8.6, 16.4)
    study = demo.with_confounds(demo.confounds.assign(age=ages))
    report = reported(study, beta=0.1)
    told = [each.words for each in report.model.confounds if "age" in each.words]
    assert len(told) == 2 and all(each.endswith("; in this sample, age is 8.6 to 16.4.") for each in told)


def test_methods_names_the_ranges_of_all_items_and_counts_those_of_many(tmp_path):
    wide = [f"w{j}" for j in range(0, 16, 2)] + ["m1", "m2", "m3"]
    answers = pd.DataFrame(np.arange(40)[:, None] * np.ones(11) % 3, columns=wide).astype(int)
    answers["b1"] = answers["b2"] = np.arange(40) % 2
    answers.to_csv(tmp_path / "answers.csv", index_label="id")
    study = read_questionnaire(tmp_path / "answers.csv", reverse=["m2"])
    text = reported(study, beta=0.1).methods.paragraph
    assert (
        "Answer ranges: 0 to 2 for 11 items (the lowest and highest answer that occurs among them); " in text
    )
    assert "0 to 1 for b1, b2 (the lowest" in text
    assert "Reversed items: m2 (as set by the authors)." in text and "your request" not in text


def test_a_factor_whose_top_item_is_not_predicted_comes_with_advice(demo):
    report = reported(demo, beta=0.1)
    factor = report.model.factors[1]
    rows = [changed(row, fit_hidden=-0.05 if row.name == factor.top[0].item else 0.4) for row in report.items]
    (first, second) = cautions(changed(report, items=tuple(rows), direction="", doubts=(), comparison=None))
    assert first.startswith(f"The top item of {factor.name}, ") and "(R² of hidden answers −0.05)" in first
    assert "fit again without this item or with a stronger penalty" in first
    assert "is not described by the factors" in second


def test_a_number_without_a_label_is_said_to_be_a_code(demo):
    sex = demo.confounds["sex"].map({"female": 2.0, "male": 1.0})
    report = reported(demo.with_confounds(demo.confounds.assign(sex=sex)), beta=0.1)
    assert any(words.startswith("Sex: 298 coded 1 (50%) and 302 coded 2") for words in report.sample.words)


def test_no_penalty_is_explained(demo):
    report = reported(demo, beta=0.0)
    assert "without a penalty (β = 0)" in report.methods.paragraph
    assert any(words.startswith("β = 0 means that there is no penalty") for words in report.count.words)
    assert not any("β = 0" in words for words in reported(demo, beta=0.1).count.words)


def test_what_is_printed_of_age_is_what_is_judged():
    factors = pd.DataFrame(
        {"spread": 0.1, "p": [0.03, 0.04], "q": [0.0504, 0.0496], "changes": [False, True]},
        ["factor1", "factor2"],
    )
    at = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor2", "q2")], names=["factor", "item"])
    items = pd.DataFrame({"spread": 0.1, "p": 0.2, "q": 0.2, "changes": False}, index=at)
    levels = pd.DataFrame(
        {"difference": [0.2, 1.25], "highest": "12", "lowest": "0", "p": 0.04, "q": [0.0504, 0.0496]},
        ["q1", "q2"],
    ).assign(changes=[False, True])
    first, second, third, fourth = str(LoadingChanges(factors, items, levels, 199)).splitlines()
    assert first.startswith("factor1: no evidence that its loadings differ") and "(q = 0.0504)" in first
    assert second.startswith("factor2: its loadings differ between visits (q = 0.0496)")
    assert third == (
        "1 of 2 items is answered higher or lower at the same scores: "
        "'q2' (1.25 points higher at 12 than at 0)."
    )
    assert fourth.startswith(
        "Where the levels of items differ as well, a difference in loadings is less sure"
    )
    alone = LoadingChanges(factors.assign(changes=False), items, levels, 199)
    assert len(str(alone).splitlines()) == 3


def test_what_is_printed_of_groups_is_what_is_judged():
    factors = pd.DataFrame(
        {
            "verdict": ["different", "similar"],
            "p": [0.0496, 0.0504],
            "congruence": 0.9,
            "agreement": 0.9,
            "found": 0.9,
        },
        index=["factor1", "factor2"],
    )
    items = pd.DataFrame(
        {"factor": "factor1", "difference": 0.4, "p": 0.01, "q": [0.0496], "flagged": True,
         "level_difference": 0.1, "level_higher": "m", "level_lower": "f", "level_p": 0.5,
         "level_q": 0.5, "level_flagged": False}, index=["q1"],
    )  # fmt: skip
    loadings = pd.DataFrame({"factor": "factor1", "item": "q1", "group": ["f", "m"], "loading": [0.1, 0.5]})
    loadings = loadings.assign(low=0.0, high=0.6, common=0.3)
    levels = pd.DataFrame({"item": "q1", "group": ["f", "m"], "level": [0.0, 0.1]})
    sizes, given = {"f": 50, "m": 50}, ("the same scores",)
    found = Invariance("sex", sizes, factors, items, loadings, levels, given, 8, 0.9, True, 199, 100)
    assert "factor1 differs: p = 0.0496" in found.sentences[0]
    written = groups_page(found, {"q1": "Worries"}).as_markdown()
    assert "| different | 0.0496 |" in written and "| similar | 0.0504 |" in written
    assert written.count("0.050 ") == 0


def test_labels_of_a_file_beside_the_answers_are_used(demo, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    from icqf.io.readers.files import read_table
    from icqf.io.readers.questionnaires import joined_by_id

    ids = [f"C{i}" for i in range(40)]
    answers = pd.DataFrame({"id": ids} | {f"q{j}": np.arange(40) % 3 for j in range(3)})
    answers.to_csv(tmp_path / "answers.csv", index=False)
    labels = {"sex": {1: "male", 2: "female"}}
    people = pd.DataFrame({"id": ids, "sex": 1.0 + np.arange(40) % 2})
    pyreadstat.write_sav(people, str(tmp_path / "people.sav"), variable_value_labels=labels)
    table = joined_by_id(read_table(tmp_path / "answers.csv"), read_table(tmp_path / "people.sav"), ["sex"])
    read = read_questionnaire(table, confounds=["sex"])
    assert set(read.confounds["sex"]) == {"male", "female"}
