"""A model tells what a category of a confound answers, so no category of a few participants gets into one."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from icqf import ICQF, ICQFCV
from icqf.data.check import check
from icqf.data.confounds import ConfoundEncoder
from icqf.data.questionnaire import Questionnaire
from icqf.datasets import load_demo
from icqf.errors import InputError, InputWarning


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    ids = [f"P{i:03d}" for i in range(120)]
    return pd.DataFrame(rng.integers(0, 5, (120, 8)), columns=[f"q{j}" for j in range(8)], index=ids)


@pytest.fixture
def participants(answers):
    rng = np.random.default_rng(1)
    sex = np.array(["female", "male"] * 60, dtype=object)
    return pd.DataFrame({"age": rng.uniform(6.05, 17.95, 120).round(2), "sex": sex}, index=answers.index)


def fit(answers, participants, **options):
    return ICQF(2, item_range=(0, 4), **options).fit(answers, confounds=participants)


@pytest.mark.parametrize("few", [1, 19])
def test_a_category_of_few_participants_is_refused(answers, participants, few):
    participants.iloc[:few, 1] = "other"
    message = (
        rf"^Confound 'sex' has {few} participants? in the category 'other', fewer than 20: the model would "
        r"reveal the answers of these few\. Pool the category with another one, leave the confound or these "
        rf"participants out, or, for a model that is not shared, add smallest_category={few}\.$"
    )
    with pytest.raises(InputError, match=message):
        fit(answers, participants)
    with pytest.raises(InputError, match=message):
        ICQFCV(ICQF(item_range=(0, 4)), n_components=[1], betas=[0.1]).fit(answers, confounds=participants)
    (finding,) = check(Questionnaire.of(answers, confounds=participants)).of("small-category")
    assert finding.severity == "error" and finding.item == "sex"
    assert "other" in fit(answers, participants, smallest_category=few).confound_names_


def test_twenty_are_enough(answers, participants):
    participants.iloc[:20, 1] = "other"
    assert "other" in fit(answers, participants).confound_names_
    assert not check(Questionnaire.of(answers, confounds=participants)).of("small-category")


@pytest.mark.parametrize("why", ["answered nothing", "weight 0"])
def test_who_takes_no_part_is_no_member(answers, participants, why):
    participants.iloc[:20, 1] = "other"
    table, weights = answers.astype(float), np.ones(len(answers))
    if why == "weight 0":
        weights[0] = 0
    else:
        table.iloc[0] = np.nan
    with pytest.raises(InputError, match="19 participants in the category 'other'"):
        ICQF(2, item_range=(0, 4)).fit(table, confounds=participants, sample_weight=weights)


def test_members_count_by_their_weights(answers, participants):
    """One of twenty who outweighs the others is as good as alone in the category."""
    participants.iloc[:20, 1] = "other"
    weights = np.ones(len(answers))
    weights[0] = 1000
    message = "20 participants in the category 'other', who count as 1.0 by their weights, fewer than 20"
    with pytest.raises(InputError, match=message):
        ICQF(2, item_range=(0, 4)).fit(answers, confounds=participants, sample_weight=weights)
    equal = np.full(len(answers), 3.7)
    assert ICQF(2, item_range=(0, 4)).fit(answers, confounds=participants, sample_weight=equal).converged_


def test_one_member_would_be_told_word_for_word():
    """The reason: with a category of one and no penalty, the model file holds all answers of that one."""
    demo = load_demo()
    answers, participants = demo.keyed_answers(), demo.confounds.copy()
    participants.iloc[5, list(participants).index("sex")] = "other"
    with pytest.raises(InputError, match="'other'"):
        ICQF(4, beta=0, item_range=demo.ranges()).fit(answers, confounds=participants)
    model = ICQF(4, beta=0, item_range=demo.ranges(), smallest_category=1, max_iter=20)
    with pytest.warns(ConvergenceWarning):
        model.fit(answers, confounds=participants)
    told = model.confound_loadings_["other"] + model.confound_loadings_["Intercept"]
    own = answers.iloc[5].dropna()
    assert (told[own.index].round() == own).all()


@pytest.mark.parametrize("limit", [1, 20])
def test_ids_and_dates_are_no_confounds(answers, participants, limit):
    born = pd.date_range("2010-01-01", periods=120).astype(str)
    for name, column in {"record_id": answers.index, "dob": born}.items():
        message = rf"^Confound '{name}' has 120 categories for 120 participants, so it identifies single "
        with pytest.raises(InputError, match=message):
            fit(answers, participants.assign(**{name: column}), smallest_category=limit)
        found = check(Questionnaire.of(answers, confounds=participants.assign(**{name: column})))
        assert found.of("many-categories") and found.must_fix


def test_many_categories_are_a_finding(answers):
    sites = pd.DataFrame({"site": [f"site {i % 24}" for i in range(480)]})
    table = pd.concat([answers] * 4, ignore_index=True)
    (finding,) = check(Questionnaire.of(table, confounds=sites)).of("many-categories")
    assert finding.severity == "warning" and "24 categories" in finding.message


# --- continuous confounds ----------------------------------------------------------------------------


def test_the_stored_range_and_mean_are_nobodys_own(answers, participants):
    encoder = fit(answers, participants).confound_encoder_
    (age, _) = encoder.columns
    assert (age.low, age.high) == (6, 18)
    assert not set(participants["age"]) & {age.low, age.high, age.mean}
    assert abs(age.mean - participants["age"].mean()) < 0.1
    design = encoder.transform(participants)
    np.testing.assert_allclose(design[:, 0], (participants["age"] - 6) / 12)


@pytest.mark.parametrize(
    ("lowest", "highest", "low", "high"),
    [(7, 17, 6, 18), (19, 60, 15, 60), (18.5, 89.25, 15, 90), (0.013, 0.087, 0.01, 0.09), (-3, 3, -4, 4)],
)
def test_ranges_are_rounded_outward(lowest, highest, low, high):
    """To steps that are coarser than the numbers, so that an end may be that of several values."""
    values = np.linspace(lowest, highest, 41)
    values = np.r_[values.round(), lowest, highest] if lowest % 1 == 0 else values
    (column,) = ConfoundEncoder().fit({"x": values}).columns
    assert (column.low, column.high) == (low, high)


def test_a_given_range_stays_as_it_is(answers, participants):
    ends = {"age": (5.5, 18.25)}
    shy, open_ = (
        fit(answers, participants, confound_ranges=ends, smallest_category=limit) for limit in (20, 1)
    )
    (age, _) = shy.confound_encoder_.columns
    assert (age.low, age.high) == (5.5, 18.25)
    np.testing.assert_array_equal(shy.components_, open_.components_)


def test_nothing_is_rounded_when_the_limit_is_off(answers, participants):
    (age, _) = fit(answers, participants, smallest_category=1).confound_encoder_.columns
    assert (age.low, age.high) == (participants["age"].min(), participants["age"].max())


def test_one_value_far_from_all_others_is_refused(answers, participants):
    """It alone would decide the loadings at its end of the range."""
    participants.iloc[7, 0] = 99.0
    message = (
        r"^Confound 'age' is 99 for participant 'P007', far from all others \(6\.\d* to 17\.\d*\), so the "
        r"model would follow the answers of this one\. Correct it, leave the participant out, or give the "
        r"range of the others with confound_ranges\.$"
    )
    with pytest.raises(InputError, match=message):
        fit(answers, participants)
    with pytest.warns(UserWarning, match="outside the fitted range 6 to 18"):
        fit(answers, participants, confound_ranges={"age": (6, 18)})


# --- numbers with a text among them ------------------------------------------------------------------


@pytest.mark.parametrize("stray", ["unknown", "12,5", "2012-05-01"])
@pytest.mark.parametrize("written", [str, float])
def test_one_text_among_numbers_is_refused(answers, participants, stray, written):
    ages = [written(age) for age in participants["age"]]
    ages[7] = stray
    message = (
        rf"^Confound 'age' holds numbers, but '{stray}' in row 'P007'\. Correct it \(with a decimal point\) "
        r"or leave the cell empty; if the numbers are categories, give them names\.$"
    )
    with pytest.raises(InputError, match=message):
        fit(answers, participants.assign(age=pd.Series(ages, index=answers.index, dtype=object)))


def test_numbers_with_a_decimal_comma_are_refused(answers, participants):
    with pytest.raises(InputError, match=r"holds numbers, but '.*,.*' in row 'P000', and 119 more"):
        fit(answers, participants.assign(age=participants["age"].map("{:.2f}".format).str.replace(".", ",")))


def test_numbers_written_as_text_on_purpose_are_categories(answers, participants):
    sites = participants.assign(site=[str(1 + i % 3) for i in range(120)])
    assert fit(answers, sites).confound_names_[-4:-1] == ["site: 1", "site: 2", "site: 3"]


def test_answers_that_few_of_a_category_gave_are_left_out(answers, participants):
    table = answers.astype(float)
    table.iloc[2::2, [3, 5]] = np.nan  # the first alone of all women
    message = (
        r"^Item 'q3' \(and 1 more item\) was answered by fewer than 20 participants of the category "
        r"'female': 2 answers of so few are left out of the fit, so that the model does not reveal them\. "
        r"For a model that is not shared, smallest_category=1 keeps them\.$"
    )
    with pytest.warns(InputWarning, match=message):
        model = fit(table, participants)
    (finding,) = check(Questionnaire.of(table, confounds=participants)).of("few-answers")
    assert (finding.severity, finding.item) == ("warning", "q3")
    table.iloc[0, [3, 5]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = fit(table, participants)
        fit(table.drop(columns=["q3", "q5"]), participants)
    np.testing.assert_array_equal(model.components_, without.components_)
    np.testing.assert_array_equal(model.confound_components_, without.confound_components_)


def test_an_item_that_few_answered_is_refused(answers, participants):
    table = answers.astype(float)
    table.iloc[4:, 3] = np.nan
    message = (
        r"^Item 'q3' was answered by fewer than 20 participants: the model would reveal their answers\. "
        r"Leave the item out, or, for a model that is not shared, add smallest_category=1\.$"
    )
    with pytest.raises(InputError, match=message):
        ICQF(2, item_range=(0, 4)).fit(table)
    (finding,) = check(Questionnaire.of(table)).of("few-answers")
    assert (finding.severity, finding.item) == ("error", "q3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ICQF(2, item_range=(0, 4), smallest_category=1).fit(table)


def test_an_item_all_of_whose_answers_would_be_left_out_is_refused(answers, participants):
    table = answers.astype(float)
    table.iloc[30:, 3] = np.nan  # 15 women and 15 men
    with pytest.raises(InputError, match="Item 'q3' was answered by fewer than 20 participants: the model"):
        fit(table, participants)


def test_warnings_of_a_fit_are_shown_where_it_is_called(answers, participants):
    table = answers.astype(float)
    table.iloc[2::2, 3] = np.nan
    table.iloc[:, 5] = 2.0
    table.iloc[7] = np.nan
    with warnings.catch_warnings(record=True, action="always") as said:
        ICQF(2).fit(table, confounds=participants)
    assert [each.filename for each in said] == [__file__] * 4


def test_participants_all_of_whose_answers_are_left_out_take_no_part(answers, participants):
    table = answers.astype(float)
    table.iloc[2::2, 3] = np.nan
    table.iloc[0] = np.where(
        np.arange(table.shape[1]) == 3, 1.0, np.nan
    )  # nothing but an answer nobody else gave
    with pytest.warns(InputWarning, match="1 answer of so few is left out"):
        model = fit(table, participants)
    assert model.n_participants_ == len(table) - 1
