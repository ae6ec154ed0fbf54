"""Crosswalks: scores of one questionnaire from another, against slow witnesses, and laws."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import linregress, norm

from icqf import ICQF, InputError
from icqf.analyses import Crosswalk, learn_crosswalk
from icqf.analyses.crosswalk import WINDOW, Errors, Link, Normal, Rules, ridge
from icqf.data.questionnaire import Item, Questionnaire
from icqf.resampling import folds
from icqf.resampling.folds import nine_tenths


def drawn(n, m, seed, *, top=3, signal=1.0, noise=1.0, prefix="a", missing=0.0, latent=None):
    """Answers from 0 to `top` that follow one latent variable; every third item is reversed."""
    rng = np.random.default_rng(seed)
    answers = np.rint(top / 2 + signal * latent[:, None] + noise * rng.normal(size=(n, m)))
    answers = np.clip(answers, 0, top)
    answers[:, ::3] = top - answers[:, ::3]
    answers[rng.random(answers.shape) < missing] = np.nan
    names = [f"{prefix}{j}" for j in range(m)]
    items = tuple(Item(name, min=0, max=top, reverse=j % 3 == 0) for j, name in enumerate(names))
    return Questionnaire(pd.DataFrame(answers, [f"P{i}" for i in range(n)], names), items)


def pair(n=300, seed=0, **how):
    latent = np.random.default_rng([seed, 1]).normal(size=n)
    source = drawn(n, 12, seed, latent=latent, **how)
    return source, drawn(n, 9, seed + 1, latent=latent, top=4, prefix="b")


@pytest.fixture(scope="module")
def made():
    return learn_crosswalk(*pair(), names=("bdi", "phq"))


def sums(questionnaire):
    return questionnaire.keyed_answers().sum(axis=1, skipna=False)


def test_a_questionnaire_predicts_itself():
    source, _ = pair(missing=0.0)
    own = learn_crosswalk(source, source, names=("a", "b"))
    found = own.predict(source)
    np.testing.assert_allclose(found["b_sum"], sums(source), atol=1e-6)
    assert (found["b_sum_low"] == sums(source)).all() and (found["b_sum_high"] == sums(source)).all()
    # Kernel equating smooths both alike.
    np.testing.assert_allclose(found["b_sum_linked"], sums(source), atol=0.05)
    assert own.correlation == 1.0


def test_intervals_hold_new_participants_and_stay_in_the_range(made):
    source, target = pair(n=2000, seed=50)
    found, true = made.predict(source), sums(target)
    held = ((found["phq_sum_low"] <= true) & (true <= found["phq_sum_high"])).mean()
    assert 0.86 < held < 0.94
    assert found.min().min() >= 0 and found.max().max() <= 36
    assert (found["phq_sum_low"] % 1 == 0).all() and (found["phq_sum_high"] % 1 == 0).all()
    narrow = made.predict(source, level=0.5)
    assert (narrow["phq_sum_low"] >= found["phq_sum_low"]).all()
    assert (narrow["phq_sum_high"] <= found["phq_sum_high"]).all()


def test_what_is_said_of_held_out_participants_is_what_new_ones_show(made):
    source, target = pair(n=2000, seed=50)
    answers, plain, _ = made.evidence
    found, true = made.predict(source)["phq_sum"], sums(target)
    assert answers["correlation"] == pytest.approx(np.corrcoef(found, true)[0, 1], abs=0.04)
    assert answers["error"] == pytest.approx((found - true).abs().mean(), rel=0.1)
    assert answers["held"] == pytest.approx(0.9, abs=0.04) and plain["held"] == pytest.approx(0.9, abs=0.04)


def test_of_unrelated_questionnaires_nothing_is_promised():
    source, _ = pair(n=150)
    _, target = pair(n=150, seed=9)
    found = learn_crosswalk(source, target, names=("a", "b"))
    assert all(abs(each["correlation"]) < 0.25 for each in found.evidence)
    assert found.predict(source)["b_sum"].std() < 0.35 * sums(target).std()
    assert found.link is None and "linked" not in found.table()


def test_items_of_noise_change_little(made):
    source, target = pair()
    rng = np.random.default_rng(4)
    noise = pd.DataFrame(rng.integers(0, 4, (300, 6)), source.answers.index, [f"z{j}" for j in range(6)])
    items = (*source.items, *(Item(name, min=0, max=3) for name in noise))
    wider = learn_crosswalk(Questionnaire(source.answers.join(noise), items), target, names=("bdi", "phq"))
    assert wider.evidence[0]["error"] < 1.05 * made.evidence[0]["error"]


def test_order_of_participants_and_unmatched_ones_make_no_difference(made):
    source, target = pair()
    order = np.random.default_rng(2).permutation(300)
    again = learn_crosswalk(source.take(order), target.take(order[::-1]), names=("bdi", "phq"))
    pd.testing.assert_frame_equal(again.predict(source), made.predict(source), atol=1e-6)
    extra = source.answers.rename(index=lambda name: f"other {name}")
    more = Questionnaire(pd.concat([source.answers, extra]), source.items)
    pd.testing.assert_frame_equal(
        learn_crosswalk(more, target, names=("bdi", "phq")).predict(source), made.predict(source), atol=1e-9
    )


def test_reversed_items_are_counted_in_their_direction(made):
    source, _ = pair()
    low = pd.DataFrame([[3 if item.reverse else 0 for item in source.items]], ["x"], made.item_names)
    high = 3 - low
    assert made.predict(low)["phq_sum"].iloc[0] < 8 < 28 < made.predict(high)["phq_sum"].iloc[0]


def test_fewer_answers_give_a_wider_interval(made):
    source, _ = pair()
    answers = source.answers.copy()
    widths = []
    for seen in (12, 6, 2):
        answers.iloc[:, seen:] = np.nan
        found = made.predict(answers)
        widths.append((found["phq_sum_high"] - found["phq_sum_low"]).mean())
    assert widths[0] < widths[1] < widths[2]
    answers.iloc[0] = np.nan
    assert made.predict(answers).iloc[0].isna().all()


def test_intervals_of_incomplete_answers_hold(made):
    source, target = pair(n=1500, seed=60, missing=0.5)
    found, true = made.predict(source), sums(target)
    held = (found["phq_sum_low"] <= true) & (true <= found["phq_sum_high"])
    assert 0.86 < held.mean() < 0.96


def test_missing_answers_are_those_expected_by_a_normal_distribution():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    X = rng.normal(size=(400, 4)) @ A
    complete = Normal.of(X)
    for j in range(4):
        X[rng.random(400) < 0.2, j] = np.nan
    normal = Normal.of(X)
    np.testing.assert_allclose(normal.covariance, complete.covariance, atol=0.35)
    weights = rng.normal(size=(4, 2))
    filled, added = normal.completed(X, weights)
    for row in range(40):
        lacks = np.isnan(X[row])
        S = normal.covariance
        expected = normal.mean.copy()
        expected[~lacks] = X[row, ~lacks]
        if lacks.any() and not lacks.all():
            given = S[np.ix_(lacks, ~lacks)] @ np.linalg.inv(S[np.ix_(~lacks, ~lacks)])
            expected[lacks] += given @ (X[row, ~lacks] - normal.mean[~lacks])
        np.testing.assert_allclose(filled[row], expected, atol=1e-9)
        precision = np.linalg.inv(S)[np.ix_(lacks, lacks)]
        left = np.linalg.inv(precision) if lacks.any() else np.zeros((0, 0))
        np.testing.assert_allclose(
            added[row], [w @ left @ w for w in weights[lacks].T] if lacks.any() else 0, atol=1e-8
        )


def test_the_regression_is_that_of_a_slow_witness():
    rng = np.random.default_rng(5)
    X, total = rng.random((80, 6)), np.array([1.0, 2, 1, 1, 3, 1])
    y = X @ np.array([1, 2, 0.5, 2, 3, 1]) + rng.normal(size=80)
    found = []
    Z = np.column_stack([np.ones(80), X @ total])
    P = Z @ np.linalg.inv(Z.T @ Z) @ Z.T
    R = X - P @ X
    size = np.linalg.svd(R, compute_uv=False)
    scale = (size[size > 1e-8] ** 2).mean()
    for strength in 10.0 ** np.arange(-3, 3.01, 0.5):
        hat = P + R @ np.linalg.inv(R.T @ R + strength * scale * np.eye(6)) @ R.T
        misfit = ((y - hat @ y) ** 2).sum() / (1 - np.trace(hat) / 80) ** 2
        found.append((misfit, tuple(hat @ y)))
    found.append((((y - P @ y) ** 2).sum() / (1 - 2 / 80) ** 2, tuple(P @ y)))
    intercept, weights = ridge(X, y, total)
    np.testing.assert_allclose(intercept + X @ weights, min(found)[1], atol=1e-8)


def test_nearly_as_many_items_as_participants_do_no_harm():
    """Generalized cross-validation at times finds next to no penalty best: 3.7 times the error (seed 75)."""
    for seed in (0, 75, 145):
        rng = np.random.default_rng(seed)
        latent = rng.normal(size=2054)
        X = (latent[:, None] + 2 * rng.normal(size=(2054, 50)) > 0).astype(float)
        y = 2 * latent + 4 * rng.normal(size=2054)
        errors = []
        for items in (True, False):
            intercept, weights = ridge(X[:54], y[:54], np.ones(50), items=items)
            errors.append(np.sqrt(((y[54:] - intercept - X[54:] @ weights) ** 2).mean()))
        assert errors[0] < 1.15 * errors[1], seed


def test_the_table_is_that_of_a_slow_witness(made):
    """Regression on the sum in every fold, and the errors of its window, all with loops."""
    source, target = pair()
    x, y = sums(source).to_numpy() / 36, sums(target).to_numpy()
    used = nine_tenths(np.column_stack([source.keyed_answers().to_numpy() / 3, y]).round(6))
    x, y = x[used], y[used]
    (rules,) = Rules.fit(x[:, None], y[:, None], [(0.0, 36.0, True)], total=np.ones(1), items=False).rules
    slope, intercept = np.polyfit(x, y, 1)
    table = made.table()
    at = table.index.to_numpy() / 36
    np.testing.assert_allclose(table["predicted"], np.clip(intercept + slope * at, 0, 36), atol=1e-6)
    line = intercept + slope * at
    intercept, slope, smallest = rules.errors.size
    sizes = [max(intercept + slope * each, smallest) for each in line]
    low = line + sizes * np.array([_quantile_at(rules.errors, each, 1) for each in line])
    np.testing.assert_array_equal(table["low"], np.ceil(np.clip(low, 0, 36) - 1e-6))


def _quantile_at(errors, line, place):
    """Linear interpolation by hand."""
    if line <= errors.at[0]:
        return errors.quantiles[0, place]
    for k in range(1, len(errors.at)):
        if line <= errors.at[k]:
            way = (line - errors.at[k - 1]) / (errors.at[k] - errors.at[k - 1])
            return (1 - way) * errors.quantiles[k - 1, place] + way * errors.quantiles[k, place]
    return errors.quantiles[-1, place]


def test_errors_are_those_of_neighbours():
    rng = np.random.default_rng(1)
    predicted = rng.normal(size=250)
    y = predicted + rng.normal(size=250) * np.where(predicted > 0, 2, 0.5)
    errors = Errors.of(predicted, y)
    order = np.argsort(predicted)
    intercept, slope = linregress(predicted, np.abs(y - predicted))[1::-1]
    size = np.maximum(intercept + slope * predicted, np.abs(y - predicted).mean() / 4)
    first = np.sort(((y - predicted) / size)[order[:WINDOW]])
    assert errors.at[0] == pytest.approx(predicted[order[:WINDOW]].mean(), abs=0.001)
    place = 0.05 * (WINDOW + 1) - 1
    expected = first[int(place)] + (place % 1) * (first[int(place) + 1] - first[int(place)])
    assert errors.quantiles[0, 1] == pytest.approx(expected, abs=0.001)
    assert errors.quantile(predicted[[7]], 0.05) <= errors.quantile(predicted[[7]], 0.5)
    assert errors.spread[-1] > 2 * errors.spread[0]


@pytest.mark.parametrize("n", [51, 75, 99, 100, 301])
def test_everyone_is_in_a_window_of_errors(n):
    predicted = np.linspace(0, 1, n)
    errors = Errors.of(predicted, predicted + np.where(predicted > 0.8, 9.0, 0.0) * (-1) ** np.arange(n))
    assert errors.at[0] == pytest.approx(predicted[:WINDOW].mean(), abs=0.001)
    assert errors.at[-1] == pytest.approx(predicted[-WINDOW:].mean(), abs=0.001)
    highest = errors.quantile(np.ones(1), 0.975)  # the largest errors are among the highest predictions
    assert 9 <= highest < 14


def test_linking_finds_the_score_of_the_same_smoothed_rank():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 20, 200).astype(float), rng.integers(0, 40, 200).astype(float)
    link = Link.of(x, y, np.array([3.0, 10, 17]), (0, 40, True))

    def share(values, at):
        width = 0.9 * values.std() * len(values) ** -0.2
        keep = np.sqrt(values.var() / (values.var() + width**2))
        return np.mean(
            [norm.cdf((at - keep * v - (1 - keep) * values.mean()) / (keep * width)) for v in values]
        )

    for at, found in zip(link.scores, link.linked, strict=True):
        rank = share(x, at)
        assert found == pytest.approx(brentq(lambda b, r=rank: share(y, b) - r, -20, 60), abs=0.03)


def test_scores_of_a_model_are_predicted_as_well():
    source, target = pair()
    model = ICQF(1, random_state=0, n_init=1).fit(target)
    scores = pd.DataFrame(np.asarray(model.transform(target)), target.answers.index, ["low mood"])
    found = learn_crosswalk(source, target, names=("bdi", "phq"), scores=scores).predict(source)
    assert list(found.columns[-3:]) == ["phq_low mood", "phq_low mood_low", "phq_low mood_high"]
    assert found.iloc[:, -3:].min().min() >= 0 and found.iloc[:, -3:].max().max() <= 1
    assert np.corrcoef(found["phq_low mood"], scores["low mood"])[0, 1] > 0.7


def test_groups_that_differ_are_found_and_random_ones_are_not():
    source, target = pair(n=400)
    rng = np.random.default_rng(8)
    sex = pd.Series(rng.choice(["female", "male"], 400), source.answers.index)
    answers = target.keyed_answers() + ((sex == "female") * 0.8).to_numpy()[:, None]
    moved = Questionnaire(
        np.rint(answers).clip(0, 4), tuple(Item(i.name, min=0, max=4) for i in target.items)
    )
    random = {f"at random {i}": rng.normal(50, 10, 400) for i in range(20)}
    by = pd.DataFrame({"sex": sex, **random}, index=sex.index)
    sexes, *random = learn_crosswalk(source, moved, names=("a", "b"), by=by).groups
    assert sexes["rmsd"] > 0.2 and sexes["p"] < 0.001 and sexes["errors"]["female"] > 2
    assert sum(each["p"] < 0.05 for each in random) <= 4
    assert list(random[0]["errors"]) in (["below 50", "from 50"], ["below 49", "from 49"])


def test_families_are_held_out_together():
    """With every participant twice, folds that split pairs would find noise that is not there."""
    rng = np.random.default_rng(0)
    X, y = rng.random((75, 45)), rng.normal(size=(75, 1)) * 5 + 20
    X, y, ids = np.tile(X, (2, 1)), np.tile(y, (2, 1)), [f"P{i}" for i in range(150)]
    items = tuple(Item(f"a{j}", min=0, max=1) for j in range(45))
    families = pd.Series([f"F{i % 75}" for i in range(150)], ids)
    target = Questionnaire(pd.DataFrame(y.clip(0, 40), ids, ["b0"]), (Item("b0", min=0, max=40),))
    split = Questionnaire(pd.DataFrame(X, ids, [item.name for item in items]), items)
    whole = Questionnaire(split.answers, items, groups=families)
    told, fooled = (learn_crosswalk(each, target).evidence[0]["correlation"] for each in (whole, split))
    assert told < 0.25 and fooled > told + 0.25


def test_the_file_gives_the_same_predictions_and_holds_no_participant(made, tmp_path):
    path = tmp_path / "crosswalk.icqf"
    made.save(path)
    again = Crosswalk.load(path)
    source, _ = pair()
    pd.testing.assert_frame_equal(again.predict(source), made.predict(source), atol=1e-5)
    pd.testing.assert_frame_equal(again.table(), made.table(), atol=1e-5)
    content = path.read_bytes()
    assert not any(f'"P{i}"'.encode() in content for i in range(300))
    assert path.stat().st_size < 40_000  # nothing grows with the participants
    with pytest.raises(InputError, match="this is a crosswalk, not the model of a questionnaire"):
        ICQF.load(path)


def subtracted(tries=12, n=200):
    """How many answers of one participant subtracting two crosswalks' means gives, and a guess."""
    right, usual = [], []
    for seed in range(tries):
        source, target = pair(n=n + 1, seed=seed)
        files = [learn_crosswalk(source.take(np.arange(m)), target).to_dict() for m in (n, n + 1)]
        before, after = (np.array(each["rules"]["normal"]["mean"]) for each in files)
        answers = source.keyed_answers().to_numpy()
        right.append(np.rint(3 * ((n + 1) * after - n * before)).clip(0, 3) == answers[n])
        usual.append(np.median(answers, axis=0) == answers[n])
    return np.mean(right), np.mean(usual)


def test_two_crosswalks_do_not_give_the_answers_of_one_who_is_in_one_of_them(monkeypatch):
    found, usual = subtracted()
    assert found < usual + 0.1
    monkeypatch.setattr(folds, "LEFT_OUT", 0.0)
    assert subtracted()[0] == 1.0  # with everyone, subtraction gives every answer


@pytest.mark.parametrize(("n", "rarity", "least"), [(100, 0.0, 0.87), (200, 1.5, 0.8)])
def test_intervals_of_high_predictions_hold(n, rarity, least):
    """Errors grow with the prediction: one width for all is too narrow for those who have most symptoms."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        latent = rng.normal(size=n + 2000)
        x, y = (
            np.rint(latent[:, None] - rarity + rng.normal(size=(n + 2000, 9))).clip(0, 3) for _ in range(2)
        )
        names = [f"q{j}" for j in range(9)]
        items = tuple(Item(name, min=0, max=3) for name in names)
        source, target = (Questionnaire(pd.DataFrame(each, columns=names), items) for each in (x, y))
        learned = learn_crosswalk(source.take(np.arange(n)), target.take(np.arange(n)))
        found, true = learned.predict(source.take(np.arange(n, n + 2000))), y[n:].sum(axis=1)
        inside = ((found["target_sum_low"] <= true) & (true <= found["target_sum_high"])).to_numpy()
        highest = np.argsort(found["target_sum"].to_numpy())[-200:]
        held.append((inside.mean(), inside[highest].mean()))
    overall, high = np.mean(held, axis=0)
    assert 0.87 < overall < 0.95 and high > least, held


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("scores",), []),
        (("scores",), ["a", "a"]),
        (("shown",), [0.0, 1e9]),
        (("rules", "normal", "mean"), [0.0]),
        (("rules", "rules"), []),
        (("by_sum", "rules", 0, "range"), [1.0, 0.0, True]),
        (("items", 0, "max"), None),
        (("source",), 3),
    ],
)
def test_forged_contents_are_refused(made, where, value):
    content = json.loads(json.dumps(made.to_dict()))
    assert Crosswalk.from_dict(content).to_dict() == content
    place = content
    for each in where[:-1]:
        place = place[each]
    place[where[-1]] = value
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        Crosswalk.from_dict(content)


def test_what_cannot_be_learned_is_said():
    source, target = pair(n=100)
    strangers = Questionnaire(target.answers.rename(index=lambda name: f"X{name}"), target.items)
    with pytest.raises(InputError, match=r"No participant answered both .* \(their ids are 'P0', 'P1'"):
        learn_crosswalk(source, strangers)
    with pytest.raises(
        InputError, match=r"59 participants answered both 'a' and most items of 'b'; .* needs 60"
    ):
        learn_crosswalk(source, target.take(np.arange(59)), names=("a", "b"))
    flat = Questionnaire(
        target.answers * 0, target.items[:0] or tuple(Item(item.name, min=0, max=4) for item in target.items)
    )
    with pytest.raises(InputError, match="have the same score 'target_sum'"):
        learn_crosswalk(source, flat)
    rare = source.answers.copy()
    rare.iloc[19:, 0] = np.nan
    with pytest.raises(InputError, match="Item 'a0' was answered by fewer than 20"):
        learn_crosswalk(Questionnaire(rare, source.items), target)


def test_two_sites_cannot_be_held_out_in_turn():
    source, target = pair(n=100)
    sites = pd.Series(["here", "there"] * 50, source.answers.index)
    with pytest.raises(InputError, match="there are only 2; a crosswalk needs 10"):
        learn_crosswalk(Questionnaire(source.answers, source.items, groups=sites), target)


def test_one_item_and_constant_items_predict():
    source, target = pair()
    one = learn_crosswalk(source.select(["a1"]), target, names=("a", "b"))
    assert [each["correlation"] for each in one.evidence[:2]] == pytest.approx([0.6, 0.6], abs=0.12)
    still = Questionnaire(source.answers.assign(a1=2.0), source.items)
    assert learn_crosswalk(still, target, names=("a", "b")).evidence[0]["correlation"] > 0.7


def test_other_answers_and_levels_are_refused(made):
    source, _ = pair()
    with pytest.raises(InputError, match="lack items of 'bdi': 'a0'"):
        made.predict(source.answers.drop(columns="a0"))
    with pytest.raises(InputError, match=r"level must be from 0\.5 to 0\.95"):
        made.predict(source, level=0.99)
    with pytest.raises(InputError, match="'a1' holds 9"):
        made.predict(source.answers.assign(a1=9))
