"""Repeated visits: the same factors or not, scores at every visit, stored, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.visits import VisitTable, age_bins
from icqf.datasets import make_longitudinal
from icqf.errors import InputError, InputWarning
from icqf.io.model_file import StoredModel, write_model
from icqf.models import LongitudinalICQF, LongitudinalICQFCV
from icqf.models.longitudinal_problem import arrange
from icqf.resampling.hidden import HeldOut
from icqf.resampling.matching import aligned

ASIDE = ["participant", "age"]


@pytest.fixture(scope="module")
def data():
    """Half of the visits missing, half of the items drifting."""
    return make_longitudinal(n=250, n_items=15, n_bins=4, k=2, seen=0.5, random_state=3)


@pytest.fixture(scope="module")
def model(data):
    return LongitudinalICQF(2, item_range=(0, 4), smoothness=1.0).fit(data.visits)


def matched(found, truth):
    """Found loadings (items, k, bins) in the order of the true factors, one order for all ages."""
    k = truth.shape[1]
    order, _ = aligned(truth.transpose(1, 0, 2).reshape(k, -1), found.transpose(1, 0, 2).reshape(k, -1))
    return found[:, order]


def lowest_correlations(found, truth):
    """Of any factor, at each age."""
    pairs = zip(found.T, truth.T, strict=True)  # (bins, k, items)
    return np.array([min(np.corrcoef(a, b)[0, 1] for a, b in zip(f, t, strict=True)) for f, t in pairs])


# --- what it finds ----------------------------------------------------------------------------------------


def test_drift_is_recovered_at_every_age_better_than_without_age(data):
    truth, visits = data.loadings, data.visits
    answers = visits.drop(columns=ASIDE)
    search = LongitudinalICQFCV(
        LongitudinalICQF(item_range=(0, 4)), n_components=2, betas=[0.1], n_repeats=1, n_permutations=99
    ).fit(visits)
    together = lowest_correlations(matched(search.best_estimator_.loadings_by_age_, truth), truth)
    assert search.smoothness_ < math.inf and search.changes_.factors["changes"].all()
    assert together.min() >= 0.85

    def plain(rows, t):
        found = ICQF(2, item_range=(0, 4)).fit(answers[rows]).loadings_.to_numpy()
        order, _ = aligned(truth[:, :, t].T, found.T)
        return min(np.corrcoef(found[:, o], truth[:, r, t])[0, 1] for r, o in enumerate(order))

    blind = np.array([plain(slice(None), t) for t in range(4)])
    assert together.mean() > blind.mean() and together.min() > blind.min()


def test_the_shapes_and_names_of_what_is_found(data, model):
    assert model.loadings_by_age_.shape == (15, 2, 4)
    assert model.loadings_.loc[("q03", "2"), "factor2"] == model.loadings_by_age_[2, 1, 2]
    assert model.confound_loadings_.columns.tolist() == ["Intercept"]
    assert model.item_range_.shape == (15, 2)
    assert model.model_.converged_ and model.model_.certificate_.holds(1e-3)
    courses = model.courses()
    assert len(courses) == 15 * 2 * 4
    row = courses.query("item == 'q03' and factor == 'factor2' and bin == '2'").iloc[0]
    assert row["loading"] == model.loadings_by_age_[2, 1, 2] and row["age"] == 2


def test_constant_loadings_are_those_of_one_fit_of_all_visits_to_the_bit(data):
    model = LongitudinalICQF(2, item_range=(0, 4), n_init=1).fit(data.visits)
    plain = ICQF(2, item_range=(0, 4), n_init=1).fit(data.visits.sort_values(ASIDE).drop(columns=ASIDE))
    assert model.smoothness == math.inf
    for t in range(4):
        np.testing.assert_array_equal(model.loadings_by_age_[:, :, t], plain.loadings_.to_numpy())
    assert model.same_factors_["same"].all() and model.model_.converged_


def test_permuting_visits_and_items_permutes_the_results(data, model):
    shuffled = data.visits.sample(frac=1, random_state=0)
    again = LongitudinalICQF(2, item_range=(0, 4), smoothness=1.0).fit(shuffled)
    np.testing.assert_allclose(again.loadings_by_age_, model.loadings_by_age_, atol=0.02)
    assert again.gaps_.equals(model.gaps_)


# --- scores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothness", [math.inf, 1.0])
def test_every_visit_has_scores_of_its_own(data, smoothness):
    model = LongitudinalICQF(2, item_range=(0, 4), smoothness=smoothness)
    scores = model.fit_transform(data.visits)
    assert len(scores) == len(data.visits) and scores.index.names == ASIDE and scores.index.is_unique
    pd.testing.assert_frame_equal(model.transform(data.visits), scores)
    one = data.visits[data.visits["age"] == 1]
    alone = model.transform(one)  # other visits of a participant do not count
    pd.testing.assert_frame_equal(alone, scores[scores.index.get_level_values("age") == "1"], atol=1e-4)
    assert scores.loc["P0001"].index.tolist() == [
        str(age) for age in sorted(data.visits.loc[data.visits["participant"] == "P0001", "age"])
    ]


def test_change_of_everybody_shows_in_the_scores():
    data = make_longitudinal(n=150, n_items=10, n_bins=3, k=1, drift=0.0, seen=1.0, random_state=5)
    later = data.visits.iloc[:, 2:].sub(data.visits["age"] // 2, axis=0).clip(lower=0)
    visits = data.visits.assign(**later)
    means = (
        LongitudinalICQF(1, item_range=(0, 4)).fit_transform(visits).groupby(level="age").mean()["factor1"]
    )
    assert abs(means["1"] - means["0"]) < 0.05 < means["0"] - means["2"]


def test_a_visit_without_answers_did_not_take_place(data, model):
    ages = {*range(4)} - {*data.visits.loc[data.visits["participant"] == "P0001", "age"]}
    empty = data.visits.iloc[[0]].assign(age=min(ages))
    empty[empty.columns[2:]] = np.nan
    visits = pd.concat([data.visits, empty], ignore_index=True)
    again = LongitudinalICQF(2, item_range=(0, 4), smoothness=1.0).fit(visits)
    np.testing.assert_array_equal(again.loadings_by_age_, model.loadings_by_age_)
    assert model.transform(visits).loc[("P0001", str(min(ages)))].isna().all()


def test_a_participant_without_answers_gets_no_scores_and_changes_nothing(data, model):
    empty = pd.DataFrame({"participant": ["nobody"], "age": [1]}).reindex(columns=data.visits.columns)
    visits = pd.concat([data.visits, empty], ignore_index=True)
    with pytest.warns(InputWarning, match="1 participant answered nothing"):
        again = LongitudinalICQF(2, item_range=(0, 4), smoothness=1.0).fit(visits)
    np.testing.assert_array_equal(again.loadings_by_age_, model.loadings_by_age_)
    with pytest.warns(InputWarning, match="answered nothing"):
        assert model.transform(visits).loc["nobody"].isna().all(axis=None)


def test_an_unknown_visit_or_item_is_refused_when_scoring(data, model):
    with pytest.raises(InputError, match="contains 9, a visit that is not in the model"):
        model.transform(data.visits.head(3).assign(age=9))
    with pytest.raises(InputError, match=r"no column for 1 item of the model \('q04'\)"):
        model.transform(data.visits.drop(columns="q04"))


# --- bins and gaps ----------------------------------------------------------------------------------------


def test_gaps_by_design_and_by_non_response_are_told_apart():
    data = make_longitudinal(n=200, n_items=8, n_bins=3, k=1, unanswered=0.1, random_state=0)
    gaps = LongitudinalICQF(1, item_range=(0, 4)).fit(data.visits).gaps_
    seen = data.visits["age"].value_counts().sort_index().to_numpy()
    np.testing.assert_array_equal(gaps["seen"], seen)
    np.testing.assert_array_equal(gaps["seen"] + gaps["not_seen"], 200)
    np.testing.assert_array_equal(gaps["asked"], 8 * seen)
    assert gaps["unanswered"].sum() == data.visits.iloc[:, 2:].isna().sum().sum()


def test_non_response_can_be_made_up_for_in_weight_and_design_gaps_never_are():
    data = make_longitudinal(n=120, n_items=8, n_bins=3, k=1, random_state=0)
    visits = data.visits.astype(dict.fromkeys(data.visits.columns[2:], float))
    visits.loc[visits["participant"] == "P0001", ["q1", "q2", "q3", "q4"]] = np.nan
    statement = LongitudinalICQF(1, item_range=(0, 4), weigh_nonresponse=True).state(visits)
    own = statement.participants == 0
    assert (statement.problem.weights[own] == 2).all() and (statement.problem.weights[~own] == 1).all()
    assert LongitudinalICQF(1, item_range=(0, 4)).state(visits).problem.weights is None


def test_bins_are_visits_where_there_are_few_values_and_spans_otherwise():
    months = pd.Series([0, 6, 12, 24] * 30, name="month")
    assert age_bins(months).labels == ("0", "6", "12", "24") and age_bins(months).places == (0, 6, 12, 24)
    ages = pd.Series(np.random.default_rng(0).uniform(5, 21, 900), name="age")
    bins = age_bins(ages)
    assert len(bins) == 8 and np.ptp(np.bincount(bins.place(ages))) < 20
    wide = age_bins(ages, 4, binning="width")
    np.testing.assert_allclose(np.diff(wide.edges), np.ptp(wide.edges) / 4, atol=0.05)
    for ends in (bins.edges, wide.edges):  # the outer ones are nobody's own age
        assert ends[0] == 4 and ends[-1] == 22
    assert len(age_bins(ages.head(120))) == 2
    given = age_bins(ages, [5, 10, 15, 21])
    assert given.labels == ("5–10", "10–15", "15–21")
    assert given.place(pd.Series([5.0, 10, 14.9, 15, 99])).tolist() == [0, 1, 1, 2, 2]
    waves = pd.Series(["wave 2", "wave 10", "wave 1"])
    assert age_bins(waves).labels == ("wave 1", "wave 2", "wave 10")


@pytest.mark.parametrize(("within", "expected"), [("mean", 2.0), ("first", 1.0), ("last", 3.0)])
def test_several_visits_in_one_bin_become_one_and_that_is_said(data, within, expected):
    visits = data.visits.astype(dict.fromkeys(data.visits.columns[2:], float))
    first = visits.iloc[[0]]
    twice = pd.concat([visits, first.assign(age=first["age"] + 0.25, q01=3.0)], ignore_index=True)
    twice.loc[0, "q01"] = 1.0
    model = LongitudinalICQF(
        2, item_range=(0, 4), bins=[-0.5, 0.5, 1.5, 2.5, 3.5], within_bin=within, n_init=1
    )
    with pytest.warns(
        InputWarning, match="1 visit falls into a bin that already has a visit of the participant"
    ):
        statement = model.state(twice)
    assert statement.problem.observations.answers[0, 0] == expected
    assert len(statement.problem.observations.answers) == len(visits)


def test_arranging_keeps_participants_together_in_the_order_in_which_they_first_come():
    visits = pd.DataFrame({"participant": list("bab"), "age": [2, 1, 1], "q": [1.0, 2, 3]})
    table = VisitTable.of(visits, participant="participant", age="age")
    found = arrange(LongitudinalICQF(), table, age_bins(visits["age"]), within_bin="mean")
    assert found.names.tolist() == ["b", "a"]
    assert found.participant.tolist() == [0, 0, 1] and found.bin.tolist() == [0, 1, 0]
    assert found.answers.ravel().tolist() == [3, 1, 2]


def test_confounds_are_of_participants(data):
    rng = np.random.default_rng(0)
    sex = dict(zip(data.visits["participant"].unique(), rng.choice(["f", "m"], 250), strict=False))
    visits = data.visits.assign(sex=data.visits["participant"].map(sex))
    model = LongitudinalICQF(2, item_range=(0, 4), confounds=["sex"], n_init=1)
    scores = model.fit_transform(visits)
    assert model.confound_loadings_.shape == (60, 3)
    pd.testing.assert_frame_equal(model.transform(visits), scores)
    with pytest.raises(InputError, match="The confound 'sex' of participant 'P0001' is"):
        model.fit(visits.assign(sex=np.arange(len(visits)) % 2))


def test_a_questionnaire_of_visits_brings_ranges_and_directions(data):
    answers = data.visits.drop(columns=ASIDE).astype(float)
    items = tuple(Item(name, min=0, max=4, reverse=name == "q02") for name in answers.columns)
    turned = answers.assign(q02=4 - answers["q02"])
    visits = Questionnaire(
        turned, items, confounds=data.visits[["age"]], groups=data.visits["participant"].rename("participant")
    )
    plain = LongitudinalICQF(2, item_range=(0, 4), n_init=1).fit(data.visits.astype({"q02": float}))
    model = LongitudinalICQF(2, n_init=1).fit(visits)
    np.testing.assert_allclose(model.loadings_by_age_, plain.loadings_by_age_, atol=1e-6)
    assert model.codebook_.items == items


# --- what cannot be -----------------------------------------------------------------------------------------


def spoiled(data, **changes):
    return data.visits.assign(**changes)


def test_errors_name_what_where_and_what_to_do(data):
    visits = data.visits
    model = LongitudinalICQF(1, item_range=(0, 4))
    cases = {
        "Every participant has one visit": visits.sample(frac=1, random_state=0).drop_duplicates(
            "participant"
        ),
        "has only one value": visits[visits["age"] == 1],
        r"The bin 3 holds 4 participants; with fewer than 20": pd.concat(
            [visits[visits["age"] < 3], visits[visits["age"] == 3].head(4)]
        ),
        "The age in column 'age' is missing in row 1 of the table": spoiled(
            data, age=visits["age"].where(visits.index > 0)
        ),
        "The participant id in column 'participant' is missing": spoiled(
            data, participant=visits["participant"].where(visits.index != 5)
        ),
        r"two visits with age = \d \(rows 4 and \d+ of the table\)": pd.concat(
            [visits, visits.iloc[[3]]], ignore_index=True
        ),
        r"The table has 2 items \('q01', 'q02'\)": visits[[*ASIDE, "q01", "q02"]],
        "The table has no column 'participant'": visits.drop(columns="participant"),
        "Item 'q03' holds 9, above its highest answer 4": spoiled(
            data, q03=visits["q03"].where(visits.index > 0, 9)
        ),
        "Nobody answered item 'q05'": spoiled(data, q05=np.nan),
    }
    for said, table in cases.items():
        with pytest.raises(InputError, match=said):
            model.fit(table)
    with pytest.raises(InputError, match="Visits must be a table"):
        model.fit(np.zeros((3, 3)))
    with pytest.raises(InputError, match="smoothness must be a number of at least 0"):
        LongitudinalICQF(1, smoothness=-1).fit(visits)
    with pytest.raises(InputError, match="different units in each bin"):
        LongitudinalICQF(1, item_weight="variance").fit(visits)
    with pytest.raises(InputError, match="whose order is not known"):
        model.fit(spoiled(data, age=visits["age"].map({0: "a", 1: "b", 2: "c", 3: "d"})))
    for bins in ([3, 2, 1], "many", 1):
        with pytest.raises(InputError, match="bins"):
            LongitudinalICQF(1, item_range=(0, 4), bins=bins).fit(visits)


def test_an_item_that_was_not_asked_at_one_age_is_said_and_taken_from_its_neighbours(data):
    visits = spoiled(data, q01=data.visits["q01"].where(data.visits["age"] != 1))
    with pytest.warns(InputWarning, match="without answers in a bin"):
        model = LongitudinalICQF(2, item_range=(0, 4), smoothness=1.0).fit(visits)
    course = model.loadings_by_age_[0]
    between = (course[:, 0] + course[:, 2]) / 2
    np.testing.assert_allclose(course[:, 1], between, atol=0.15)


# --- change with age --------------------------------------------------------------------------------------


def test_intervals_hold_the_loading_and_narrow_with_smoothness(data, model):
    courses = model.courses(data.visits, n_resamples=15)
    assert (courses["low"] <= courses["loading"]).all() and (courses["loading"] <= courses["high"]).all()
    assert courses["low"].min() >= 0 and courses["high"].max() <= 4
    assert (courses["high"] - courses["low"]).mean() > 0.02
    again = model.courses(data.visits, n_resamples=15)
    pd.testing.assert_frame_equal(courses, again)


def test_change_is_seen_where_there_is_some_and_mostly_in_the_items_that_change(data, model):
    tests = model.changes(data.visits, n_permutations=199)
    assert tests.factors["changes"].all() and (tests.factors["p"] == 1 / 200).all()
    order, _ = aligned(model.loadings_by_age_.mean(2).T, data.loadings.mean(2).T)
    place = {item: j for j, item in enumerate(model.items_)}
    at = [(place[item], order[int(factor[-1]) - 1]) for factor, item in tests.items.index]
    true = np.array([data.changing[pair] for pair in at])
    flagged = tests.items["changes"].to_numpy(bool)
    assert flagged[true].mean() > flagged[~true].mean() + 0.3
    assert "its loadings differ between visits (q = 0.005)" in str(tests)


@pytest.mark.parametrize("rise", [0.0, 0.5])
def test_higher_scores_at_later_visits_are_not_a_change_of_loadings(rise):
    """Up to the end of the range, which half of the participants reach at the last visit."""
    rng = np.random.default_rng(4)
    who, when = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    scores = np.clip(rng.random(600) * 0.7 + rise * when / 2 + rng.normal(0, 0.1, 600), 0, 1)
    clean = np.outer(scores, np.linspace(2.5, 4, 10))
    answers = np.clip(np.rint(clean + rng.normal(0, 0.6, clean.shape)), 0, 4) + 0.0
    visits = pd.DataFrame(answers, columns=[f"q{j}" for j in range(10)]).assign(participant=who, age=when)
    model = LongitudinalICQF(1, item_range=(0, 4), n_init=1).fit(visits)
    tests = model.changes(visits, n_permutations=199)
    assert not tests.factors["changes"].any() and not tests.moved("factor1")
    assert "no evidence that its loadings differ between visits (q = " in str(tests)
    with pytest.raises(InputError, match="too few to tell change from chance"):
        model.changes(visits, n_permutations=9)


def test_the_test_needs_the_visits_of_the_fit(data, model):
    with pytest.raises(InputError, match="not the visits that the model was fitted to"):
        model.changes(data.visits[data.visits["age"] < 3])


def moods(rng, n=120, same=True):
    """Everybody's two moods are drawn anew at every visit; at the last one items may belong to the other."""
    belongs = np.repeat(np.eye(2), 5, axis=1)
    late = belongs if same else belongs[:, [0, 1, 5, 6, 7, 2, 3, 4, 8, 9]]
    frames = []
    for age in range(3):
        mood = rng.random((n, 2)) ** 1.5
        answers = np.clip(
            np.rint(4 * mood @ (late if age == 2 else belongs) + rng.normal(0, 0.4, (n, 10))), 0, 4
        )
        frame = pd.DataFrame(answers + 0.0, columns=[f"q{j}" for j in range(10)])
        frames.append(frame.assign(participant=[f"P{i}" for i in range(n)], age=age))
    return pd.concat(frames, ignore_index=True)


def test_moods_that_come_and_go_are_no_change_of_the_factors():
    """With one score vector per participant, one factor per visit used to predict best."""
    search = LongitudinalICQFCV(
        LongitudinalICQF(item_range=(0, 4)), betas=[0.1], n_repeats=1, n_components=[1, 2, 3]
    )
    search.fit(moods(np.random.default_rng(0)))
    assert search.n_components_ == 2 and search.smoothness_ == math.inf


def test_factors_that_are_not_the_same_ones_are_recognised():
    search = LongitudinalICQFCV(LongitudinalICQF(item_range=(0, 4)), betas=[0.1], n_repeats=1, n_components=2)
    search.fit(moods(np.random.default_rng(0), same=False))
    assert search.smoothness_ < math.inf
    same = search.best_estimator_.same_factors_
    assert not same["same"].any() and (same["second"] == "2").all()


# --- choosing ---------------------------------------------------------------------------------------------


def test_the_search_continues_from_its_journal(data, tmp_path):
    settings = {"n_components": [1, 2], "betas": [0.1], "n_splits": 3, "n_repeats": 1, "n_permutations": 99}
    model = LongitudinalICQF(item_range=(0, 4), n_init=1)
    plain = LongitudinalICQFCV(model, **settings).fit(data.visits)
    assert plain.smoothness_errors_["smoothness"].tolist() == [math.inf, 100, 10, 1, 0.1, 0.01]
    journal = tmp_path / "journal"
    LongitudinalICQFCV(model, **settings, checkpoint=journal).fit(data.visits)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    again = LongitudinalICQFCV(model, **settings, checkpoint=journal).fit(data.visits)
    pd.testing.assert_frame_equal(plain.smoothness_errors_, again.smoothness_errors_)
    assert again.smoothness_ == plain.smoothness_


def test_a_hidden_answer_does_not_tell_a_range_that_is_not_declared(data):
    """The highest answer stands in one place only."""
    visits = data.visits.assign(**data.visits[data.visits.columns[2:]].clip(upper=3))
    visits.loc[0, "q01"] = 4.0
    with pytest.warns(UserWarning, match="item_range is not declared"):
        statement = LongitudinalICQF().state(visits)
    assert statement.problem.span.max() == 4
    mask = np.zeros(statement.problem.answers.shape, dtype=bool)
    mask[0, 0] = True
    assert HeldOut(statement.problem, mask, given=statement.stated.given).visible.span.max() == 3


def test_bad_candidates_are_refused(data):
    for settings, said in (
        ({"n_components": 99}, "each number must lie between 1 and 15"),
        ({"betas": []}, "betas must hold at least one penalty"),
        ({"smoothness": [-1]}, "smoothness must be a number of at least 0"),
    ):
        with pytest.raises(InputError, match=said):
            LongitudinalICQFCV(LongitudinalICQF(item_range=(0, 4)), **settings).fit(data.visits)


# --- files ------------------------------------------------------------------------------------------------


def test_a_model_file_scores_as_the_model_does_and_holds_no_participant(data, model, tmp_path):
    model.save(tmp_path / "m.icqf")
    again = LongitudinalICQF.load(tmp_path / "m.icqf")
    pd.testing.assert_frame_equal(again.transform(data.visits), model.transform(data.visits))
    pd.testing.assert_frame_equal(again.loadings_, model.loadings_)
    assert again.bins_ == model.bins_ and again.gaps_.equals(model.gaps_)
    again.save(tmp_path / "again.icqf")
    assert (tmp_path / "again.icqf").read_bytes() == (tmp_path / "m.icqf").read_bytes()
    assert b"P0001" not in (tmp_path / "m.icqf").read_bytes()
    pd.testing.assert_frame_equal(
        again.changes(data.visits, n_permutations=99).items,
        model.changes(data.visits, n_permutations=99).items,
    )


def test_model_files_of_another_kind_are_refused(data, model, tmp_path):
    model.save(tmp_path / "visits.icqf")
    with pytest.raises(InputError, match="a model of repeated visits"):
        ICQF.load(tmp_path / "visits.icqf")
    ICQF(1, item_range=(0, 4)).fit(data.visits.drop(columns=ASIDE)).save(tmp_path / "plain.icqf")
    with pytest.raises(InputError, match="this is not a longitudinal model"):
        LongitudinalICQF.load(tmp_path / "plain.icqf")


@pytest.mark.parametrize("part", ["bins", "items", "smoothness", "age"])
def test_a_model_file_that_contradicts_itself_is_refused(model, tmp_path, part):
    stored = model.describe()
    wrong = {"bins": {**stored.header["longitudinal"]["bins"], "labels": ["x"]}, "items": ["q1"], "age": 3}
    own = {**stored.header["longitudinal"], part: wrong.get(part, "strong")}
    write_model(tmp_path / "m.icqf", StoredModel({**stored.header, "longitudinal": own}, stored.arrays))
    with pytest.raises(InputError, match="damaged or incomplete"):
        LongitudinalICQF.load(tmp_path / "m.icqf")
