"""Norms: percentiles by age and sex against a known truth, what is left out, and the file."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from icqf import ICQF, InputError
from icqf.analyses import Norms, learn_norms
from icqf.datasets import load_demo


def drawn(n, seed, *, level=0.0):
    """Skewed scores with many zeros that rise with age, more so in girls, and their true percentiles."""
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(6, 18, n), rng.choice(["female", "male"], n)
    x = (age - 12) / 6
    mean = level + 0.4 * x + 0.3 * np.sin(2 * x) + 0.4 * (sex == "female") * np.maximum(x, 0)
    latent = mean + 0.7 * np.exp(0.2 * x) * rng.normal(size=n)
    score = np.clip((np.maximum(latent, 0) / 2.6) ** 1.5, 0, 1).round(6)
    lowest = np.where(score > 0, 2.6 * score ** (1 / 1.5), 0)
    true = ndtr((lowest - mean) / (0.7 * np.exp(0.2 * x)))
    true = np.where(score == 0, true / 2, true)
    return pd.DataFrame({"mood": score}), pd.DataFrame({"age": age, "sex": sex}), 100 * true


@pytest.fixture(scope="module")
def learned():
    scores, covariates, _ = drawn(1000, seed=1)
    return learn_norms(scores, covariates, sample="a simulated town")


def test_percentiles_are_close_to_the_truth(learned):
    scores, covariates, true = drawn(4000, seed=2)
    error = (learned.percentiles(scores, covariates)["mood"] - true).abs()
    assert error[(true > 5) & (true < 95)].mean() < 3
    ignoring = learn_norms(*drawn(1000, seed=1)[:1]).percentiles(scores)["mood"]
    assert error.mean() < 0.6 * (ignoring - true).abs()[error.notna()].mean()


def test_the_standard_error_is_of_the_size_of_the_error(learned):
    scores, covariates, true = drawn(4000, seed=2)
    inside = (true > 5) & (true < 95)
    error = (learned.percentiles(scores, covariates)["mood"] - true)[inside]
    assert 0.4 < learned.errors[0] / np.sqrt((error**2).mean()) < 2


def test_percentiles_rise_with_scores_and_curves_do_not_cross(learned):
    same = pd.DataFrame({"age": [9.0] * 101, "sex": ["male"] * 101})
    ranks = learned.percentiles(pd.DataFrame({"mood": np.linspace(0, 1, 101)}), same)["mood"]
    assert (ranks.diff().dropna() >= 0).all() and ranks.iloc[0] > 0 and ranks.iloc[-1] == 99.9
    places = learned.places()
    curves = np.array([learned.score_at(p, places)["mood"] for p in range(5, 100, 5)])
    assert (np.diff(curves, axis=0) >= 0).all()


def test_a_score_and_its_percentile_give_each_other(learned):
    place = pd.DataFrame({"age": [10.0, 15.0], "sex": ["male", "female"]})
    for p in (80, 90, 95):
        assert learned.percentiles(learned.score_at(p, place), place)["mood"].round(3).tolist() == [p, p]


def test_a_score_that_many_share_has_the_middle_of_its_percentiles():
    scores = pd.DataFrame({"mood": [0.0] * 400 + [0.5] * 200 + list(np.linspace(0.51, 0.9, 400))})
    ranks = learn_norms(scores).percentiles(pd.DataFrame({"mood": [0.0, 0.5, 0.2, 0.7]}))["mood"]
    np.testing.assert_allclose(ranks, [20, 50, 40, 79.5], atol=1.5)  # of a random nine tenths


def test_sum_scores_have_the_percentiles_of_the_sample():
    sums = np.random.default_rng(0).binomial(12, 0.3, 2000)
    ranks = learn_norms(pd.DataFrame({"sum": sums})).percentiles(pd.DataFrame({"sum": np.arange(9)}))["sum"]
    own = [100 * ((sums < s).mean() + (sums == s).mean() / 2) for s in range(9)]
    np.testing.assert_allclose(ranks, own, atol=1.5)  # of a random nine tenths


def test_t_scores_are_normal_in_the_sample(learned):
    scores, covariates, _ = drawn(1000, seed=1)
    t = learned.t_scores(scores, covariates)["mood"].dropna()
    assert abs(t.mean() - 50) < 1 and 7 < t.std() < 10.5  # zeros share a score


def test_the_order_of_participants_makes_no_difference(learned):
    scores, covariates, _ = drawn(1000, seed=1)
    order = np.random.default_rng(0).permutation(1000)
    again = learn_norms(scores.iloc[order], covariates.iloc[order], sample="a simulated town")
    assert again.to_dict() == learned.to_dict()


def test_weights_turn_a_sample_into_the_population():
    low, high = drawn(500, seed=3, level=-0.4)[0], drawn(500, seed=4, level=0.8)[0]
    scores = pd.concat([low, high], ignore_index=True)
    weights = np.repeat([9.0, 1.0], 500)
    population = learn_norms(drawn(4000, seed=5, level=-0.4)[0])
    probe = pd.DataFrame({"mood": [0.0, 0.1, 0.3, 0.5]})
    weighted, plain = learn_norms(scores, sample_weight=weights), learn_norms(scores)
    truth = 0.9 * population.percentiles(probe) + 0.1 * learn_norms(high).percentiles(probe)
    assert (weighted.percentiles(probe) - truth).abs().to_numpy().max() < 5
    assert (plain.percentiles(probe) - truth).abs().to_numpy().max() > 15
    assert "weighted by their survey weights" in weighted.reference


def test_the_unit_of_weights_makes_no_difference():
    scores, covariates, _ = drawn(400, seed=9)
    weights = np.random.default_rng(9).uniform(0.5, 2, 400)
    one, other = (learn_norms(scores, covariates, sample_weight=w) for w in (weights, 2.0**14 * weights))
    assert one.to_dict() == other.to_dict()


def test_nobody_is_compared_with_a_sample_that_lacks_people_like_them(learned):
    people = pd.DataFrame(
        {"age": [10, np.nan, 40, 10, 10, "ten"], "sex": ["male", "male", "male", "other", None, "male"]}
    )
    scores = pd.DataFrame({"mood": [0.2] * 6})
    assert learned.percentiles(scores, people)["mood"].notna().tolist() == [True] + [False] * 5
    assert learned.reasons(people).tolist() == [
        "",
        "age is missing",
        "age is outside 6.3 to 17.7",
        "sex is not one of female, male",
        "sex is missing",
        "age is not a number",
    ]


def test_small_categories_are_merged_or_left_out():
    scores, covariates, _ = drawn(600, seed=6)
    covariates["site"] = ["a"] * 300 + ["b"] * 270 + ["c"] * 15 + ["d"] * 15
    merged = learn_norms(scores, covariates, by=["site"])
    assert merged.covariates[0].categories == ("a", "b", "other")
    assert merged.reference == "Reference sample: about 600 participants (site: 300 a, 270 b, 30 other)."
    assert "c" not in merged.to_dict()["covariates"][0]["categories"]
    ranks = merged.percentiles(pd.DataFrame({"mood": [0.2] * 4}), {"site": ["a", "other", "c", "d"]})["mood"]
    assert ranks.notna().tolist() == [True, True, False, False]
    covariates["site"] = ["a"] * 300 + ["b"] * 285 + ["c"] * 15
    without = learn_norms(scores, covariates, by=["site"])
    assert without.n_participants == 580 and without.covariates[0].categories == ("a", "b")


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", np.int64(1)])
def test_a_category_in_numbers_is_the_same_as_text(value):
    scores, covariates, _ = drawn(200, seed=7)
    norms = learn_norms(scores, {"sex": np.where(covariates["sex"] == "male", 1, 2)})
    assert norms.percentiles(pd.DataFrame({"mood": [0.3]}), {"sex": [value]}).notna().all(axis=None)


def test_a_factor_that_nobody_has_has_no_norms():
    scores = pd.DataFrame({"mood": np.linspace(0, 1, 200), "none": [0.0] * 199 + [0.4]})
    norms = learn_norms(scores)
    ranks = norms.percentiles(scores)
    assert ranks["none"].isna().all() and ranks["mood"].notna().all() and norms.errors[1] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scores": drawn(50, seed=0)[0], "covariates": None}, "Only 50 participants have scores"),
        ({"by": ["income"]}, "'income', which is not among the columns given"),
        ({"covariates": None, "by": ["age"]}, "The norms are by 'age'; give covariates"),
        ({"sample_weight": [1.0]}, "sample_weight must be 200 numbers"),
        ({"scores": np.zeros((200, 1))}, "must be a table"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(change, says):
    scores, covariates, _ = drawn(200, seed=0)
    given = {"scores": scores, "covariates": covariates} | change
    with pytest.raises(InputError, match=says):
        learn_norms(given.pop("scores"), given.pop("covariates"), **given)


# --- the file ---------------------------------------------------------------------------------------------


def test_a_file_gives_the_same_percentiles_and_the_same_bytes(learned, tmp_path):
    learned.save(tmp_path / "a.icqf-norms")
    again = Norms.load(tmp_path / "a.icqf-norms")
    again.save(tmp_path / "b.icqf-norms")
    assert (tmp_path / "a.icqf-norms").read_bytes() == (tmp_path / "b.icqf-norms").read_bytes()
    scores, covariates, _ = drawn(100, seed=8)
    pd.testing.assert_frame_equal(
        again.percentiles(scores, covariates), learned.percentiles(scores, covariates)
    )


@pytest.fixture(scope="module")
def model():
    return ICQF(2, n_init=1).fit(load_demo().select(["q00*"]))


def test_norms_are_refused_for_another_model(model, tmp_path):
    demo = load_demo().select(["q00*"])
    scores = pd.DataFrame(np.asarray(model.transform(demo)), columns=model.get_feature_names_out())
    norms = learn_norms(scores, model=model)
    model.save(tmp_path / "model.icqf")
    renamed = ICQF.load(tmp_path / "model.icqf").name_factors(["Mood", "Temper"])
    assert norms.for_model(renamed).factors == ("Mood", "Temper")
    other = ICQF(2, n_init=1, beta=0.3).fit(demo)
    with pytest.raises(InputError, match="belong to another model"):
        norms.for_model(other)


def test_damaged_and_foreign_files_are_refused_in_a_sentence(learned, model, tmp_path):
    file = tmp_path / "n.icqf-norms"
    learned.save(file)
    good = file.read_bytes()
    for at in range(80, len(good), 97):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(InputError, match="norms"):
            Norms.load(file)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not an icqf norms file"):
        Norms.load(file)
    model.save(file)
    with pytest.raises(InputError, match="this is a model file, not a norms file"):
        Norms.load(file)
    learned.save(file)
    with pytest.raises(InputError, match="this is a norms file, not a model file"):
        ICQF.load(file)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("n_participants",), "many"),
        (("factors", 0, "curves", "levels"), [0.0]),
        (("factors", 0, "curves", "below"), [99] * 30),
        (("factors", 0, "curves", "tails"), [0.0, 1.0]),
        (("covariates", 0, "high"), 1.0),
        (("covariates", 0, "name"), 3),
        (("more",), 1),
    ],
)
def test_forged_contents_are_refused(learned, path, value):
    content = learned.to_dict()
    place = content
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    with pytest.raises((ValueError, TypeError, KeyError)):
        Norms.from_dict(content)


# --- what a file reveals ----------------------------------------------------------------------------------


def test_no_score_or_age_of_a_participant_is_in_the_file(learned):
    scores, covariates, _ = drawn(1000, seed=1)
    own = {f"{v:.6g}" for v in [*scores["mood"], *covariates["age"]]} - {"0", "1"}

    def numbers(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            return [each for part in value for each in numbers(part)]
        return [value] if isinstance(value, float) else []

    held = {f"{v:.6g}" for v in numbers(learned.to_dict())}
    assert len(held) > 50 and not held & own


def test_the_extremes_of_a_few_participants_do_not_show(learned):
    scores, covariates, _ = drawn(1000, seed=1)
    top = scores["mood"].nlargest(5).index
    oldest = covariates["age"].nlargest(5).index.difference(top)
    scores.loc[top, "mood"] = 0.99 - 0.001 * np.arange(5)
    covariates.loc[oldest, "age"] = 17.9999
    assert learn_norms(scores, covariates, sample="a simulated town").to_dict() == learned.to_dict()


def test_who_was_in_the_sample_cannot_be_told():
    """By how likely the norms make a participant's score, compared with others of the same population."""
    from sklearn.metrics import roc_auc_score

    areas = []
    for seed in range(6):
        scores, covariates, _ = drawn(600, seed=100 + seed)
        inside = np.arange(600) < 300
        norms = learn_norms(scores[inside], covariates[inside])
        step = pd.DataFrame({"mood": [0.02] * 600})
        density = norms.percentiles(scores + step, covariates) - norms.percentiles(scores - step, covariates)
        known = density["mood"].notna()
        areas.append(roc_auc_score(inside[known], density["mood"][known]))
    assert 0.45 < np.mean(areas) < 0.55


def test_forged_files_are_refused_at_once(tmp_path):
    """Too many knots, another number of factors, no participants."""
    rng = np.random.default_rng(5)
    scores = pd.DataFrame(rng.random((200, 2)), columns=["a", "b"])
    stored = learn_norms(scores, pd.DataFrame({"age": rng.uniform(6, 18, 200)}), by=["age"]).to_dict()
    assert Norms.from_dict(stored).n_participants > 0
    many = copy.deepcopy(stored)
    many["factors"][0]["curves"]["knots"] = [list(np.linspace(0, 1, 100_000))]
    none = {**stored, "n_participants": -5}
    for forged in (many, none):
        with pytest.raises(ValueError):
            Norms.from_dict(forged)
