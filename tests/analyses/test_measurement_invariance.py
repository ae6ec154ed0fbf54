"""Groups: told apart in 5 of 100 studies of one population, and where loadings or levels really differ."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError
from icqf.analyses import invariance, measurement_invariance
from icqf.analyses.measurement_invariance import Evidence, PermutationTests, rescaled
from icqf.data import Questionnaire
from icqf.datasets import load_bfi, load_demo
from icqf.resampling.propensity_bands import Bands, cut, exchanged, log_odds, make_bands

GOLDEN = Path(__file__).parent / "golden"
QUICK = {"n_permutations": 19, "n_resamples": 4}


def study(seed=0, n=240, m=12):
    """Answers 0–4 behind two factors, six items each, and two groups of one population."""
    rng = np.random.default_rng(seed)
    loadings = np.zeros((2, m))
    loadings[0, : m // 2], loadings[1, m // 2 :] = 4, 4
    loadings *= rng.uniform(0.5, 1, m)
    answers = np.rint(np.clip(rng.random((n, 2)) @ loadings + rng.normal(0, 0.6, (n, m)), 0, 4))
    return answers, np.where(np.arange(n) < n // 2, "a", "b")


def questionnaire(answers):
    return Questionnaire.of(
        pd.DataFrame(answers, columns=[f"q{j}" for j in range(answers.shape[1])]), item_range=(0, 4)
    )


def compared(answers, group, **more):
    asked = questionnaire(answers)
    return invariance(ICQF(2, beta=0.1).fit(asked), asked, by=group, **{**QUICK, **more})


# --- the test ---------------------------------------------------------------------------------------------


def synthetic(rng, k=3, m=20, n=39):
    """Tests whose observed statistics are drawn as the permuted ones are."""
    scale = rng.uniform(0.1, 10, (1, m))
    apart = [rng.chisquare(2, (n + 1, k)), rng.chisquare(2, (n + 1, m)) * scale, rng.chisquare(2, (n + 1, m))]
    first, others = tuple(part[0] for part in apart), tuple(part[1:] for part in apart)
    return PermutationTests(first, others, np.full(2, 50.0), 1.0)


def test_five_of_a_hundred_whatever_the_number_of_factors():
    rng = np.random.default_rng(0)
    found = np.array([synthetic(rng, k).p_factors().min() <= 0.05 for k in (1, 4, 12) for _ in range(1500)])
    assert abs(found.mean() - 0.05) < 0.01


def test_the_tests_of_items_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(1)
    p = np.concatenate([synthetic(rng).p_items() for _ in range(200)])
    assert abs((p <= 0.05).mean() - 0.05) < 0.012 and abs((p <= 0.5).mean() - 0.5) < 0.04


def test_no_p_is_zero_or_above_one():
    found = synthetic(np.random.default_rng(2))
    for p in (found.p_factors(), found.p_items(), found.p_levels()):
        assert ((p > 0) & (p <= 1)).all()


def test_the_length_of_a_factor_does_not_count():
    common = np.random.default_rng(0).random((2, 5))
    np.testing.assert_allclose(rescaled(common * [[3.0], [0.2]], common), common)


# --- bands ------------------------------------------------------------------------------------------------


def drawn_groups(seed=0, n=400, groups=2, apart=1.0):
    """A profile of two numbers, and groups whose odds depend on them."""
    rng = np.random.default_rng(seed)
    profile = rng.normal(size=(n, 2))
    odds = np.exp(apart * profile @ rng.normal(size=(2, groups)))
    chances = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return profile, (rng.random((n, 1)) > chances[:, :-1]).sum(axis=1)


def plain_bands(profile, group, n_bands):
    """Bands by hand: Newton's method for the penalized logistic model, then ranks in equal parts."""
    standard = (profile - profile.mean(axis=0)) / profile.std(axis=0)
    X = np.column_stack([np.ones(len(group)), standard])
    penalty, coefficients = np.diag([0.0, 1.0, 1.0]), np.zeros(3)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-X @ coefficients))
        gradient = X.T @ (group - chance) - penalty @ coefficients
        hessian = X.T @ (X * (chance * (1 - chance))[:, None]) + penalty
        coefficients = coefficients + np.linalg.solve(hessian, gradient)
    band = [0] * len(group)
    for rank, person in enumerate(sorted(range(len(group)), key=lambda i: X[i] @ coefficients)):
        band[person] = rank * n_bands // len(group)
    return np.array(band)


@pytest.mark.parametrize("n_bands", [2, 5, 8])
def test_bands_are_those_of_a_plain_logistic_model(n_bands):
    profile, group = drawn_groups()
    found = make_bands(profile, group, n_bands=n_bands).band
    assert (found == plain_bands(profile, group, n_bands)).mean() > 0.99


@pytest.mark.parametrize("groups", [2, 3])
def test_permuted_groups_keep_the_counts_of_every_band(groups):
    profile, codes = drawn_groups(groups=groups)
    bands, rng = make_bands(profile, codes), np.random.default_rng(0)
    assert np.bincount(bands.band).tolist() == [50] * 8
    for _ in range(20):
        permuted = bands.permuted(codes, rng)
        assert (permuted != codes).any()
        np.testing.assert_array_equal(
            np.bincount(bands.band * groups + permuted), np.bincount(bands.band * groups + codes)
        )


@pytest.mark.parametrize("groups", [2, 3])
def test_permuted_groups_are_as_likely_as_the_propensities_make_them(groups):
    profile, codes = drawn_groups(groups=groups, apart=1.5)
    bands, rng = make_bands(profile, codes, n_bands=1), np.random.default_rng(0)
    means = np.mean(
        [
            [profile[permuted == group].mean(axis=0) for group in range(groups)]
            for permuted in (bands.permuted(codes, rng) for _ in range(100))
        ],
        axis=0,
    )
    found = np.array([profile[codes == group].mean(axis=0) for group in range(groups)])
    assert np.ptp(found, axis=0).max() > 0.8 and np.abs(means - found).max() < 0.1


def test_families_exchange_groups_as_likely_as_the_propensities_make_them():
    profile, codes = drawn_groups(apart=1.5)
    for family, labels in ((np.arange(400) // 2, codes), (np.arange(400) // 2, np.repeat(codes[::2], 2))):
        bands, rng = make_bands(profile, labels, n_bands=1, units=family), np.random.default_rng(0)
        apart = [
            profile[permuted == 1].mean(axis=0) - profile[permuted == 0].mean(axis=0)
            for permuted in (bands.permuted(labels, rng) for _ in range(100))
        ]
        found = profile[labels == 1].mean(axis=0) - profile[labels == 0].mean(axis=0)
        assert np.abs(found).max() > 0.5 and np.abs(np.mean(apart, axis=0) - found).max() < 0.15


def test_equal_propensities_are_in_one_band():
    place = np.repeat([0.0, 1.0, 2.0], [70, 10, 20])[:, None]
    band = cut(place, 4)
    assert all(len(set(band[place[:, 0] == value])) == 1 for value in (0.0, 1.0, 2.0))


def test_families_of_one_group_change_places_whole():
    profile, _ = drawn_groups(n=400)
    family = np.arange(400) // 2
    codes = (np.random.default_rng(1).random(200) < 0.5).astype(int)[family]
    bands = make_bands(profile, codes, units=family)
    permuted = bands.permuted(codes, np.random.default_rng(0))
    assert (permuted[::2] == permuted[1::2]).all() and (permuted != codes).any()
    assert (bands.band[::2] == bands.band[1::2]).all()


def test_siblings_in_different_groups_are_exchanged_with_a_family_of_their_size():
    profile, codes = drawn_groups(n=300)
    family = np.concatenate([np.arange(200) // 2, 100 + np.arange(100)])
    bands = make_bands(profile, codes, units=family)
    place = log_odds(profile, codes)[:, 0]

    def patterns(labels):
        """Labels of each pair, the sibling of the lower propensity first, by band."""
        pairs = [sorted((2 * f, 2 * f + 1), key=lambda i: place[i]) for f in range(100)]
        return sorted((int(bands.band[a]), int(labels[a]), int(labels[b])) for a, b in pairs)

    permuted = bands.permuted(codes, np.random.default_rng(0))
    assert patterns(permuted) == patterns(codes) and (permuted != codes).any()


def test_survey_weights_count_as_copies_do():
    profile, codes = drawn_groups(n=200)
    times = 1 + np.arange(200) % 3
    copied = log_odds(np.repeat(profile, times, axis=0), np.repeat(codes, times))
    weighted = log_odds(profile, codes, times.astype(float))
    # the penalty counts less with more rows, so that only the scale differs
    assert np.corrcoef(weighted[:, 0], copied[np.cumsum(times) - 1, 0])[0, 1] > 0.9999


def test_groups_that_do_not_overlap_exchange_nobody():
    profile, codes = np.repeat([[-3.0], [3.0]], 100, axis=0), np.repeat([0, 1], 100)
    bands = make_bands(profile + np.random.default_rng(0).normal(0, 0.5, (200, 1)), codes)
    changed, left = exchanged(codes, [bands.permuted(codes, np.random.default_rng(0))])
    assert changed.tolist() == [0, 0] and left == 0


# --- levels and slopes ------------------------------------------------------------------------------------


def evidence(codes, band, residuals, scores=None, given=None):
    n = len(codes)
    alike = np.zeros((n, int(codes.max()) + 1))
    bands = Bands(np.asarray(band), np.arange(n), np.arange(n), alike)
    given = np.ones_like(residuals) if given is None else given
    own = np.ones(residuals.shape[1])
    return Evidence(residuals, given, np.zeros((n, 1)) if scores is None else scores, own, bands)


def test_levels_are_mean_differences_within_bands():
    """For two groups, what SIBTEST averages: differences within bands, weighted n1 n2 / (n1 + n2)."""
    rng = np.random.default_rng(0)
    codes, band, residuals = rng.integers(0, 2, 200), rng.integers(0, 4, 200), rng.normal(size=(200, 3))
    given = (rng.random((200, 3)) > 0.2).astype(float)
    residuals[given == 0] = 0.0
    levels = evidence(codes, band, residuals, given=given).levels(codes)
    for item in range(3):
        sums = weights = 0.0
        for b in range(4):
            one, two = (residuals[(codes == g) & (band == b) & (given[:, item] == 1), item] for g in (0, 1))
            weight = len(one) * len(two) / (len(one) + len(two))
            sums, weights = sums + weight * (two.mean() - one.mean()), weights + weight
        np.testing.assert_allclose(levels[1, item] - levels[0, item], sums / weights, atol=1e-6)
    share = np.stack([(given * (codes == g)[:, None]).sum(axis=0) for g in (0, 1)])
    np.testing.assert_allclose((share * levels).sum(axis=0), 0, atol=1e-6)


def test_a_level_that_comes_with_the_band_is_no_difference():
    codes, band = np.repeat([0, 1], 50), np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    np.testing.assert_allclose(evidence(codes, band, band[:, None] * 2.0).levels(codes), 0, atol=1e-6)


def test_slopes_do_not_depend_on_levels():
    rng = np.random.default_rng(0)
    codes, scores, residuals = rng.integers(0, 3, 300), rng.normal(size=(300, 2)), rng.normal(size=(300, 4))
    shifted = residuals + np.array([0.0, 1.0, -2.0])[codes][:, None]
    slopes = [
        evidence(codes, np.zeros(300, int), each, scores).slopes(codes) for each in (residuals, shifted)
    ]
    np.testing.assert_allclose(*slopes, atol=1e-6)
    steeper = residuals + scores[:, :1] * (codes == 2)[:, None]
    found = evidence(codes, np.zeros(300, int), steeper, scores).slopes(codes) - slopes[0]
    np.testing.assert_allclose(found[2, 0], 1, atol=0.1)
    np.testing.assert_allclose(found[:2], 0, atol=1e-6)


# --- groups that differ -----------------------------------------------------------------------------------


def test_one_population(recwarn):
    answers, group = study()
    found = compared(answers, group, n_permutations=39)
    assert found.verdict == "same" and not found.items["flagged"].any()
    assert found.sizes == {"a": 120, "b": 120}
    assert (found.factors["congruence"] > 0.95).all() and (found.factors["found"] > 0.9).all()


def test_items_that_load_elsewhere_in_one_group():
    answers, group = study()
    answers[group == "b", 0], answers[group == "b", 6] = (
        answers[group == "b", 6].copy(), answers[group == "b", 0].copy(),
    )  # fmt: skip
    found = compared(answers, group, n_permutations=39)
    assert found.verdict == "different"
    assert {"q0", "q6"} <= {*found.items.index[found.items["flagged"]]}
    part = found.loadings.query("item == 'q0'").pivot_table("loading", "factor", "group", observed=True)
    assert part.loc[found.items.loc["q0", "factor"]].diff().abs().max() > 1


def test_an_item_answered_higher_by_one_group():
    answers, group = study()
    answers[group == "b", 3] = np.minimum(answers[group == "b", 3] + 1, 4)
    found = compared(answers, group, n_permutations=39)
    assert found.items.loc["q3", "level_flagged"] and found.items.loc["q3", "level_difference"] > 0.4
    assert found.items.loc["q3", "level_higher"] == "b" and found.items.loc["q3", "level_lower"] == "a"
    assert found.items["level_flagged"].sum() <= 3 and found.level_sign == "b less a"
    assert "q3 is answered" in found.sentences[1] and "higher by 'b' than by 'a'" in found.sentences[1]
    level = found.levels.pivot_table("level", "item", "group").loc["q3"]
    assert level["b"] - level["a"] == pytest.approx(found.items.loc["q3", "level_difference"])
    lower = compared(4 - answers, group, n_permutations=39)
    assert lower.items.loc["q3", "level_difference"] < -0.4 and lower.items.loc["q3", "level_higher"] == "a"


def severe():
    """Two groups with the same loadings; the factors of the second are 1.5 standard deviations higher."""
    rng = np.random.default_rng([3, 1])
    loadings = np.zeros((2, 16))
    loadings[np.arange(16) % 2, np.arange(16)] = 0.7
    group = np.repeat(["a", "b"], 150)
    factors = rng.normal(size=(300, 2)) + np.where(group == "a", -0.75, 0.75)[:, None]
    responses = factors @ loadings + 0.7 * rng.normal(size=(300, 16))
    limits = rng.uniform(0, 1.5, 16)[:, None] + [0.0, 0.7, 1.4]
    return (responses[:, :, None] > limits).sum(axis=2).astype(float), group


def test_a_group_that_is_merely_more_severe_is_not_different(monkeypatch):
    """Groups that were permuted over all participants, as they once were, were called different."""
    answers, group = severe()
    found = compared(answers, group, n_permutations=99)
    assert found.tested and found.factors["p"].min() > 0.1 and found.verdict in ("same", "similar")
    bands = measurement_invariance.make_bands

    def everybody_alike(*given, n_bands, **more):
        one = bands(*given, n_bands=1, **more)
        return replace(one, log_chance=np.zeros_like(one.log_chance))

    monkeypatch.setattr(measurement_invariance, "make_bands", everybody_alike)
    assert compared(answers, group, n_permutations=99).verdict == "different"


def test_groups_that_hardly_overlap_are_not_tested():
    answers, group = study()
    answers[group == "a"] = np.minimum(answers[group == "a"], 1)
    answers[group == "b"] = np.maximum(answers[group == "b"], 3)
    found = compared(answers, group)
    assert not found.tested and found.verdict == "not tested" and found.overlap < 0.1
    assert found.factors["p"].isna().all() and found.items[["p", "q", "level_p", "level_q"]].isna().all(
        axis=None
    )
    assert not found.items[["flagged", "level_flagged"]].any(axis=None)
    assert "not tested, because the groups hardly overlap" in found.sentences[0]


def test_the_hypothesis_names_what_participants_have_in_common():
    answers, group = study()
    asked = questionnaire(answers)
    asked = asked.with_confounds(
        pd.DataFrame({"sex": group, "age": np.arange(240.0)}, index=asked.answers.index)
    )
    model = ICQF(2, beta=0.1).fit(asked)
    weights = np.linspace(0.5, 2, 240)
    found = invariance(model, asked, by="sex", sample_weight=weights, **QUICK)
    assert found.given == (
        "the same scores", "the same overall level of answers", "the same age", "the same survey weight",
    )  # fmt: skip
    assert "answer alike, whichever group they are in" in found.hypothesis


def test_families_of_the_questionnaire_are_kept_together():
    answers, group = study()
    asked = questionnaire(answers)
    family = np.arange(240) // 4
    told = invariance(ICQF(2, beta=0.1).fit(asked), asked, by=group, families=family, **QUICK)
    alone = invariance(ICQF(2, beta=0.1).fit(asked), asked, by=group, **QUICK)
    own = replace(asked, groups=pd.Series(family, index=asked.answers.index))
    by_file = invariance(ICQF(2, beta=0.1).fit(own), own, by=group, **QUICK)
    pd.testing.assert_frame_equal(told.items, by_file.items)
    pd.testing.assert_frame_equal(told.loadings, by_file.loadings)
    assert not told.items["p"].equals(alone.items["p"]) and not told.loadings.equals(alone.loadings)


def test_a_confound_of_the_model_is_no_reason_to_miss_a_level():
    answers, group = study()
    answers[group == "b", 3] = np.minimum(answers[group == "b", 3] + 1, 4)
    asked = questionnaire(answers)
    asked = asked.with_confounds(pd.DataFrame({"sex": group}, index=asked.answers.index))
    found = invariance(ICQF(2, beta=0.1).fit(asked), asked, by="sex", **{**QUICK, "n_permutations": 39})
    assert found.items.loc["q3", "level_flagged"] and found.by == "sex"


def test_intervals_hold_the_loadings():
    found = compared(*study(), n_resamples=20)
    table = found.loadings
    assert ((table["low"] <= table["loading"]) & (table["loading"] <= table["high"] + 1e-9)).all()
    assert table["low"].min() >= 0 and len(table) == 2 * 2 * 12


def test_three_groups():
    answers, _ = study(n=300)
    found = compared(answers, np.arange(300) % 3)
    assert found.sizes == {"0": 100, "1": 100, "2": 100} and "3 groups" in found.sentences[0]


def test_factors_keep_the_names_of_the_model():
    answers, group = study()
    asked = questionnaire(answers)
    model = ICQF(2, beta=0.1).fit(asked).name_factors(["Mood", "Temper"])
    found = invariance(model, asked, by=group, **QUICK)
    assert list(found.factors.index) == ["Mood", "Temper"] and {*found.items["factor"]} <= {"Mood", "Temper"}


# --- how it runs ------------------------------------------------------------------------------------------


def test_processes_and_interruptions_change_nothing(tmp_path):
    answers, group = study(n=120)
    whole = compared(answers, group)
    told = []
    again = compared(answers, group, n_jobs=2, checkpoint=tmp_path / "journal")
    resumed = compared(answers, group, checkpoint=tmp_path / "journal", callback=told.append)
    for other in (again, resumed):
        pd.testing.assert_frame_equal(other.factors, whole.factors)
        pd.testing.assert_frame_equal(other.items, whole.items)
        pd.testing.assert_frame_equal(other.loadings, whole.loadings)
    assert told[0].done == told[0].total  # everything was in the journal


@pytest.mark.parametrize("other", ["groups", "answers", "random_state", "beta"])
def test_nothing_of_other_data_or_settings_is_taken_from_a_journal(tmp_path, other):
    answers, group = study(n=60)

    def run(changed=False, **more):
        asked = questionnaire(4 - answers if changed and other == "answers" else answers)
        labels = group[::-1] if changed and other == "groups" else group
        beta = 0.3 if changed and other == "beta" else 0.1
        seed = {"random_state": 1} if changed and other == "random_state" else {}
        return invariance(ICQF(2, beta=beta).fit(asked), asked, by=labels, **{**QUICK, **seed, **more})

    run(checkpoint=tmp_path / "journal")
    with suppress(InputError):  # a journal in which nothing belongs to this run is refused
        continued = run(changed=True, checkpoint=tmp_path / "journal")
        plain = run(changed=True)
        pd.testing.assert_frame_equal(continued.items, plain.items)
        pd.testing.assert_frame_equal(continued.factors, plain.factors)


def test_who_has_no_group_is_left_out():
    answers, group = study()
    labels = pd.Series(group, name="site").astype(object)
    labels[:7] = None
    with pytest.warns(UserWarning, match="7 participants without a group in 'site' are left out"):
        found = compared(answers, labels)
    assert found.sizes == {"a": 113, "b": 120}


def changed(group, n, value):
    labels = group.astype(object)
    labels[:n] = value
    return labels


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (
            lambda group: changed(group, 10, "few"),
            "The group 'few' of 'group' has 10 participants",
        ),
        (lambda group: np.full(len(group), "all"), "There is nothing to compare: everybody has 'all'"),
        (lambda group: np.full(len(group), None), "There is nothing to compare: nobody has a value"),
        (lambda group: np.arange(len(group)), "has 240 different values .* too many groups"),
        (lambda group: group[:-1], "by holds 239 labels for 240 participants"),
        (lambda group: "q3", "by names 'q3', which is an item of the model"),
        (lambda group: "site", "by names 'site', which is not a confound of the questionnaire"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*without a group")
def test_what_is_no_group(by, said):
    answers, group = study()
    with pytest.raises(InputError, match=said):
        compared(answers, by(group))


def test_too_few_permutations():
    with pytest.raises(InputError, match="n_permutations must be a whole number of at least 19, not 5"):
        compared(*study(), n_permutations=5)


# --- beside lavaan ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_levels_and_loadings_of_bfi_beside_lavaan():
    """R lavaan 0.6-14 on the same answers (golden/make_lavaan_bfi.R): loadings alike, intercepts not."""
    steps = pd.read_csv(GOLDEN / "lavaan_bfi.csv").set_index("step")
    items = pd.read_csv(GOLDEN / "lavaan_bfi_items.csv").set_index(["step", "item"])
    assert steps.loc["metric", "p"] > 0.05 and steps.loc["scalar", "p"] < 1e-6
    bfi = load_bfi()
    asked = bfi.with_confounds(None)
    found = invariance(
        ICQF(5, beta=0.1).fit(asked), asked, by=bfi.confounds["sex"], n_permutations=99, n_resamples=2
    )
    assert (found.factors["verdict"] == "same").sum() >= 4
    theirs = {name for name, p in items.loc["scalar", "p"].items() if p < 0.01}
    ours = {*found.items.index[found.items["level_flagged"]]}
    assert len(theirs) == 11 and len(theirs & ours) >= 9
    assert found.items["level_difference"].abs().idxmax() == items.loc["scalar", "x2"].idxmax() == "N5"


def test_the_demo_by_sex():
    demo = load_demo().select(["q00*", "q01*"])
    found = invariance(ICQF(2).fit(demo), demo, by="sex", **QUICK)
    assert found.sizes == {"female": 302, "male": 298}
