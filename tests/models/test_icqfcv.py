"""ICQFCV: it finds the number of factors, keeps scikit-learn's manners, and never depends on the jobs."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError

from icqf import ICQF, ICQFCV
from icqf.baselines import retention
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.models import L1NMF
from icqf.models import search as running
from icqf.resampling import folds as dividing
from searches import search_for

OPTIONS = {"betas": [0.1, 0.5], "n_splits": 5, "item_range": (0, 100), "random_state": 0, "max_iter": 2000}
OPTIONS |= {"n_init": 1}  # what several starts do is tested in test_multistart.py
COLUMNS = ["repeat", "fold", "n_components", "beta", "error", "n_hidden", "weight", "n_iter", "seconds"]


def search(ks=(2, 3, 4, 5), **options):
    return search_for(list(ks) if isinstance(ks, tuple) else ks, **(OPTIONS | options))


@pytest.fixture(scope="module")
def data():
    return make_synthetic(80, 30, 4, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def found(data):
    return search(stability=True).fit(data.answers)


def without_seconds(model):
    return model.cv_results_.drop(columns="seconds")


# --- the choice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "difficulty",
    [{}, {"missing": 0.3}, {"confounded": True}, {"missing": 0.3, "confounded": True}],
    ids=["complete", "gaps", "confounds", "both"],
)
def test_it_finds_the_number_of_factors(difficulty, seed):
    data = make_synthetic(120, 48, 4, noise=0.2, random_state=seed, **difficulty)
    model = search((2, 3, 4, 5, 6)).fit(data.answers, confounds=data.confounds)
    assert model.n_components_ == 4
    assert model.choice_.by_k().index[0] == 4
    assert model.best_estimator_.components_.shape == (4, 48)


def test_what_is_kept(found, data):
    results = found.cv_results_
    assert list(results.columns) == COLUMNS
    assert len(results) == 4 * 2 * 5
    assert (results.groupby(["n_components", "beta"])["n_hidden"].sum() == data.answers.size).all()
    assert (results["seconds"] > 0).all() and (results["n_iter"] > 0).all()
    assert results.equals(results.sort_values(COLUMNS[:4], ignore_index=True))
    lowest = found.errors_.loc[found.errors_["error"].idxmin()]
    assert (found.n_components_, found.beta_) == (lowest["n_components"], lowest["beta"])
    assert found.n_iter_ == found.best_estimator_.n_iter_
    assert found.choice_.shares["share"].sum() == pytest.approx(1)
    assert list(found.stability_["n_components"]) == [2, 3, 4, 5]
    assert search((4,)).fit(data.answers).stability_ is None


def test_the_count_tells(found):
    count = found.count_
    assert count.n_components == found.n_components_ and str(found.sample_choice_) in count.reason
    assert list(count.curve["n_components"]) == [2, 3, 4, 5] and "agreement" in count.curve


def test_the_final_fit_is_icqf_with_the_chosen_numbers(found, data):
    plain = ICQF(
        found.n_components_, beta=found.beta_, item_range=(0, 100), max_iter=2000, n_init=1, random_state=0
    )
    assert found.best_estimator_.components_.tobytes() == plain.fit(data.answers).components_.tobytes()


@pytest.mark.parametrize("rule", ["one_se", "stable"])
def test_other_rules_take_fewer_or_stabler_factors(data, found, rule):
    model = search(rule=rule, within=5.0).fit(data.answers)  # everything is close
    if rule == "one_se":
        assert model.n_components_ == 2
    else:
        best = model.stability_["agreement"].idxmax()
        assert model.n_components_ == model.stability_["n_components"][best]
        pd.testing.assert_frame_equal(model.stability_, found.stability_)
    pd.testing.assert_frame_equal(without_seconds(model), without_seconds(found))
    assert str(model.choice_) == f"k = {model.n_components_} in 100%"


def test_repeats_divide_anew(data):
    model = search((3, 4), n_repeats=2).fit(data.answers)
    by_repeat = dict(tuple(without_seconds(model).groupby("repeat")))
    assert set(by_repeat) == {0, 1}
    once = search((3, 4)).fit(data.answers)
    pd.testing.assert_frame_equal(by_repeat[0], without_seconds(once))
    assert (by_repeat[0]["error"].to_numpy() != by_repeat[1]["error"].to_numpy()).all()


# --- the race --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def raced():
    data = make_synthetic(200, 40, 4, noise=0.4, random_state=1)
    settings = {"n_splits": 6, "betas": [0.0, 0.1, 1.0], "random_state": 3}
    fits = [search((1, 2, 3, 4, 5, 6), n_repeats=n, **settings).fit(data.answers) for n in ("auto", 1)]
    return data, settings, *fits


def test_a_race_gives_up_hopeless_candidates_and_changes_no_fit(raced):
    """What is fitted is what a search without a race fits, and penalties still come one after the other."""
    _, _, race, every = raced
    keys = ["repeat", "fold", "n_components", "beta"]
    found, others = without_seconds(race), without_seconds(every)
    first = found[found["repeat"] == 0].merge(others, on=keys, suffixes=("", "_of_all"))
    assert len(first) == (found["repeat"] == 0).sum() < len(others)
    for name in ("error", "n_iter", "weight"):
        assert (first[name] == first[f"{name}_of_all"]).all()
    assert race.n_components_ == every.n_components_ == 4
    errors = race.errors_
    chosen = errors[(errors["n_components"] == 4) & (errors["beta"] == race.beta_)].iloc[0]
    assert chosen["n_folds"] == errors["n_folds"].max() >= 6 > errors["n_folds"].min()
    hopeless = (
        every.errors_.set_index(["n_components", "beta"])["error"] > 1.13 * every.errors_["error"].min()
    )
    given_up = errors.set_index(["n_components", "beta"])["n_folds"] < 6
    assert given_up[hopeless].all() and hopeless.any()


def test_a_race_that_is_open_is_repeated_for_those_in_the_running():
    answers = make_synthetic(80, 20, 3, noise=0.7, random_state=0).answers
    model = search((1, 2, 3, 4), n_repeats="auto", betas=[0.1]).fit(answers)
    repeats = model.cv_results_.groupby("repeat")["n_components"].nunique()
    assert len(repeats) > 1 and repeats.iloc[-1] < repeats[0]
    cost = (
        model.cv_results_.assign(cost=lambda rows: rows["n_components"] + 1).groupby("repeat")["cost"].sum()
    )
    assert cost[1:].sum() <= 5 * sum(k + 1 for k in (1, 2, 3, 4))  # no more than one division of all


def test_neither_the_order_of_items_nor_that_of_confounds_matters(raced):
    data, settings, *_ = raced
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(data.answers, columns=[f"q{j}" for j in range(40)])
    confounds = pd.DataFrame({"age": rng.integers(8, 18, 200), "sex": rng.integers(0, 2, 200)})
    other = answers[rng.permutation(answers.columns)], confounds[["sex", "age"]]
    models = [
        search((3, 4, 5), n_repeats="auto", **settings).fit(table, confounds=beside)
        for table, beside in ((answers, confounds), other)
    ]
    one, two = (model.errors_ for model in models)
    np.testing.assert_allclose(one["error"], two["error"], rtol=1e-3)
    assert models[0].n_components_ == models[1].n_components_ and models[0].beta_ == models[1].beta_
    np.testing.assert_allclose(
        models[0].transform(answers, confounds=confounds),
        models[1].transform(other[0], confounds=other[1]),
        atol=0.02,
    )


def test_jobs_do_not_matter_to_a_race(raced):
    data, settings, race, _ = raced
    again = search((1, 2, 3, 4, 5, 6), n_repeats="auto", n_jobs=2, **settings).fit(data.answers)
    pd.testing.assert_frame_equal(without_seconds(race), without_seconds(again), check_exact=True)
    pd.testing.assert_frame_equal(race.errors_, again.errors_, check_exact=True)


# --- hidden answers of the chosen candidate --------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_by_item_are_those_that_the_candidate_was_chosen_by(data, weighted):
    weights = np.random.default_rng(0).random(80) + 0.5 if weighted else None
    model = search((3, 4), n_repeats=2).fit(data.answers, sample_weight=weights)
    chosen = model.cv_results_.query(f"n_components == {model.n_components_} and beta == {model.beta_}")
    first = chosen[chosen["repeat"] == 0].set_index("fold").sort_index()
    np.testing.assert_allclose(model.hidden_.sse.sum(axis=1), first["error"] * first["weight"], rtol=1e-5)
    spread = np.sum((data.answers - data.answers.mean(axis=0)) ** 2, axis=0)
    if not weighted:
        assert (model.hidden_.sst.sum(axis=0) > spread).all()  # of means that did not see the answers
        np.testing.assert_allclose(model.hidden_.sst.sum(axis=0), spread, rtol=0.2)


def test_few_items_or_participants_tell_no_errors_by_item(data):
    assert search((2, 3), n_splits=10).fit(data.answers[:, :8]).hidden_ is None


# --- auto ------------------------------------------------------------------------------------------


def tried(model):
    return sorted(set(model.cv_results_["n_components"]))


def test_auto_starts_around_parallel_analysis(data):
    model = search("auto", betas=[0.1]).fit(data.answers)
    assert model.n_components_ == 4
    assert tried(model) == list(range(tried(model)[0], tried(model)[-1] + 1))
    assert tried(model)[0] < 4 < tried(model)[-1]


@pytest.mark.parametrize(("centre", "k"), [(1, 7), (11, 4), (3, 7)])
def test_auto_widens_while_the_best_lies_at_the_edge(monkeypatch, centre, k):
    """Parallel analysis far too low or too high: the bracket moves until the best lies inside."""
    found = SimpleNamespace(n_components=centre)
    monkeypatch.setattr(retention, "parallel_analysis", lambda *_, **__: found)
    answers = make_synthetic(150, 40, k, noise=0.1, random_state=1).answers
    progress = []
    model = search("auto", betas=[0.1], callback=progress.append).fit(answers)
    assert model.n_components_ == k
    bracket = range(max(1, centre - 4), centre + 5)
    assert set(tried(model)) > set(bracket) or centre == 3
    assert tried(model)[0] < k < tried(model)[-1]
    assert progress[-2].done == progress[-2].total == len(model.cv_results_)  # before the final fit
    assert len(model.cv_results_.drop_duplicates(COLUMNS[:4])) == len(model.cv_results_)
    plain = search(tuple(tried(model)), betas=[0.1]).fit(answers)
    pd.testing.assert_frame_equal(without_seconds(model), without_seconds(plain))


def test_auto_stops_at_the_size_of_the_table(monkeypatch):
    """There are no more factors than items, even when the best lies at that edge."""
    monkeypatch.setattr(retention, "parallel_analysis", lambda *_, **__: SimpleNamespace(n_components=2))
    rng = np.random.default_rng(0)
    answers = 100 * rng.random((60, 6)) * rng.integers(0, 2, (60, 1))
    monkeypatch.setattr(running, "best_row", lambda table: (int(table["n_components"].max()), 0.0, 1.0))
    model = search("auto", betas=[0.0]).fit(answers)
    assert tried(model) == [1, 2, 3, 4, 5, 6]


# --- the same bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["nndsvd", "random"])
def test_the_jobs_do_not_matter(data, init):
    one = search(init=init, stability=True, n_halves=2, n_jobs=1).fit(data.answers)
    others = {"two jobs": search(init=init, stability=True, n_halves=2, n_jobs=2).fit(data.answers)}
    with parallel_config(backend="threading", n_jobs=2):
        others["threads"] = search(init=init, stability=True, n_halves=2).fit(data.answers)
    with parallel_config(backend="threading", n_jobs=7):
        others["more threads than folds"] = search(init=init, stability=True, n_halves=2).fit(data.answers)
    for name, other in others.items():
        pd.testing.assert_frame_equal(
            without_seconds(one), without_seconds(other), check_exact=True, obj=f"cv_results_ ({name})"
        )
        pd.testing.assert_frame_equal(one.stability_, other.stability_, check_exact=True)
        assert one.best_estimator_.components_.tobytes() == other.best_estimator_.components_.tobytes()
        assert str(one.choice_) == str(other.choice_)


def test_the_seed_does_matter(data, found):
    same, other = search().fit(data.answers), search(random_state=1).fit(data.answers)
    pd.testing.assert_frame_equal(without_seconds(found), without_seconds(same), check_exact=True)
    assert (other.cv_results_["error"] != found.cv_results_["error"]).all()


def test_a_second_fit_forgets_the_first(data):
    """Other answers of the same shape give other errors, as if the estimator were new."""
    other = make_synthetic(80, 30, 2, noise=0.1, random_state=5).answers
    model = search()
    model.fit(data.answers)
    again = without_seconds(model.fit(other))
    fresh = search().fit(other)
    pd.testing.assert_frame_equal(again, without_seconds(fresh), check_exact=True)
    assert model.n_components_ == fresh.n_components_ == 2
    automatic = search("auto", betas=[0.1]).fit(data.answers)
    assert tried(automatic.fit(other)) == tried(search("auto", betas=[0.1]).fit(other))


# --- groups and confounds --------------------------------------------------------------------------


def test_groups_are_hidden_together_also_when_halved(data, monkeypatch):
    groups = np.array([f"family {at // 3}" for at in range(80)])
    cuts = []
    make = dividing.make_folds

    def recorded(*args, **options):
        cuts.append(make(*args, **options))
        return cuts[-1]

    monkeypatch.setattr(dividing, "make_folds", recorded)
    search((3, 4), stability=True, n_halves=3).fit(data.answers, groups=groups)
    assert len(cuts) == 1 + 3
    for folds in cuts:
        for name in np.unique(groups):
            assert len(set(folds.row_block[groups == name])) == 1


def test_participants_without_answers_are_left_out_of_the_groups_too(data):
    answers = data.answers.copy()
    answers[:3] = np.nan
    groups = np.arange(80) // 2
    with pytest.warns(UserWarning, match="3 participants answered nothing"):
        model = search((3, 4)).fit(answers, groups=groups)
    assert model.best_estimator_.n_participants_ == 77
    whole = search((3, 4)).fit(answers[3:], groups=groups[3:])
    pd.testing.assert_frame_equal(without_seconds(model), without_seconds(whole))


def test_confounds_spread_over_the_folds(monkeypatch):
    data = make_synthetic(80, 30, 4, noise=0.1, confounded=True, random_state=0)
    participants = pd.DataFrame(
        {"age": data.confounds[:, 0], "sex": np.where(data.confounds[:, 1] > 0, "F", "M")}
    )
    cuts = []
    make = dividing.make_folds
    monkeypatch.setattr(dividing, "make_folds", lambda *a, **o: cuts.append(make(*a, **o)) or cuts[-1])
    search((4,)).fit(data.answers, confounds=participants)
    women = np.bincount(cuts[0].row_block[participants["sex"] == "F"], minlength=5)
    # Four bands of age for each sex, each spread to within one participant.
    assert np.ptp(women) <= 4
    old = np.bincount(cuts[0].row_block[participants["age"] > participants["age"].median()], minlength=5)
    assert np.ptp(old) <= 4


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(79), "one group for each of the 80 rows"),
        (np.zeros((80, 1)), "one group for each of the 80 rows"),
        (np.zeros(80), r"1 group\(s\).*hide all answers"),
        (np.where(np.arange(80) == 7, np.nan, 1.0), "groups is missing in row 7"),
    ],
)
def test_groups_that_cannot_be_used(data, groups, message):
    with pytest.raises(InputError, match=message):
        search().fit(data.answers, groups=groups)


# --- manners ---------------------------------------------------------------------------------------


def test_too_few_participants_to_choose_with():
    answers = np.random.default_rng(0).integers(0, 5, (30, 12))
    model = ICQFCV(ICQF(item_range=(0, 4)), random_state=0)
    with pytest.warns(UserWarning, match="29 participants are too few to choose with.*Give n_components"):
        model.fit(answers[:29])
    assert (model.n_components_, model.beta_) == (1, 0.1) and len(model.cv_results_) == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "All loadings are 0")  # the answers are random
        named = search((1, 2, 3)).fit(answers[:29])
        enough = search("auto", betas="auto", n_splits=2).fit(answers)
    assert tried(named) == [1, 2, 3] and len(tried(enough)) > 3
    assert sorted(set(enough.cv_results_["beta"])) == [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]


def test_clone_and_parameters(found):
    copy = clone(found)
    assert str(copy.get_params()) == str(found.get_params())
    assert not hasattr(copy, "cv_results_") and not hasattr(copy, "n_features_in_")
    assert copy.set_params(estimator__tol=1e-2, betas=[0.3]) is copy
    assert copy.estimator.tol == 1e-2 and found.estimator.tol == 1e-3 and copy.betas == [0.3]
    own, inner = set(ICQFCV().get_params()), set(ICQF().get_params())
    assert own & inner == {"n_components", "engine", "callback", "random_state"}


@pytest.mark.parametrize(
    "estimator",
    [
        ICQF(item_range=(0, 100), penalty="l2", score_max=2.0, tol=0.01, init="rotated", dtype="float64"),
        ICQF(item_range=(0, 100), solver="admm", inner="fista", intercept=False, n_init=2, random_state=4),
        L1NMF(item_range=(0, 100), max_iter=3000),
    ],
)
def test_every_setting_of_the_estimator_reaches_the_final_fit(data, estimator):
    model = ICQFCV(estimator, n_components=[3, 4], betas=[0.1, 0.5], n_splits=3, random_state=9)
    before = estimator.get_params()
    best = model.fit(data.answers).best_estimator_
    assert type(best) is type(estimator) and estimator.get_params() == before
    assert not hasattr(estimator, "components_")
    chosen = {"n_components": model.n_components_, "beta": model.beta_}  # and its random_state stays
    assert best.get_params() == before | chosen
    alone = clone(estimator).set_params(**chosen).fit(data.answers)
    assert best.components_.tobytes() == alone.components_.tobytes()


def test_the_problem_is_stated_once(data, monkeypatch):
    calls = []
    state = ICQF.state
    monkeypatch.setattr(ICQF, "state", lambda *a, **o: calls.append(1) or state(*a, **o))
    search((3, 4)).fit(data.answers)
    assert len(calls) == 1


def test_transform_is_that_of_the_chosen_model(found, data):
    best = found.best_estimator_
    scores = found.transform(data.answers)
    np.testing.assert_array_equal(scores, best.transform(data.answers))
    np.testing.assert_array_equal(found.inverse_transform(scores), best.inverse_transform(scores))
    assert found.score(data.answers) == best.score(data.answers)
    assert list(found.get_feature_names_out()) == [f"factor{at}" for at in range(1, 5)]
    np.testing.assert_array_equal(search().fit_transform(data.answers), scores)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.transform(data.answers), scores)


def test_set_output(data):
    frame = pd.DataFrame(data.answers, columns=[f"q{j}" for j in range(30)])
    frame = frame.set_index(pd.Index([f"P{i}" for i in range(80)], name="id"))
    model = search((4,)).set_output(transform="pandas")
    scores = model.fit_transform(frame)
    assert list(scores.columns) == [f"factor{at}" for at in range(1, 5)]
    assert scores.index.equals(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns) and model.n_features_in_ == 30


def test_confounds_and_weights_are_passed_on(data):
    participants = pd.DataFrame({"age": np.linspace(6, 18, 80)})
    weights = np.linspace(1, 3, 80)
    model = search((4,), betas=[0.1]).fit(data.answers, confounds=participants, sample_weight=weights)
    plain = ICQF(4, beta=0.1, item_range=(0, 100), max_iter=2000, n_init=1)
    plain.fit(data.answers, confounds=participants, sample_weight=weights)
    assert model.best_estimator_.components_.tobytes() == plain.components_.tobytes()
    np.testing.assert_array_equal(
        model.transform(data.answers, confounds=participants),
        plain.transform(data.answers, confounds=participants),
    )
    unweighted = search((4,), betas=[0.1]).fit(data.answers, confounds=participants)
    assert (model.cv_results_["error"] != unweighted.cv_results_["error"]).all()


def test_groups_can_be_routed(data):
    with sklearn.config_context(enable_metadata_routing=True):
        model = search((4,)).set_fit_request(groups=True, confounds=False, sample_weight=False)
        assert model.get_metadata_routing().fit.requests["groups"] is True


@pytest.mark.parametrize("ks", [np.array([3, 4]), range(3, 5), (3, 4), {4, 3}, [4, 3, 3]])
def test_numbers_of_factors_in_any_container(data, ks):
    ks = sorted(ks) if isinstance(ks, set) else ks
    model = search_for(ks, **OPTIONS).fit(data.answers)
    assert tried(model) == [3, 4]


def test_one_number_leaves_only_the_penalty_to_choose(data):
    model = search_for(3, **OPTIONS).fit(data.answers)
    assert tried(model) == [3] and model.n_components_ == 3


def test_penalties_are_tried_once_each(data):
    model = search((3,), betas=np.array([0.5, 0.1, 0.5])).fit(data.answers)
    assert sorted(set(model.cv_results_["beta"])) == [0.1, 0.5] and len(model.cv_results_) == 10


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_callback_hears_how_far_it_is(data, n_jobs):
    heard = []
    model = search(callback=heard.append, n_jobs=n_jobs).fit(data.answers)
    assert heard.pop().what == "Fitting the choice"
    done = [progress.done for progress in heard]
    assert done[0] == 0 and heard[0].best == ""
    assert done == sorted(set(done)) and done[-1] == len(model.cv_results_)
    assert {progress.total for progress in heard} == {40}
    assert all(progress.best for progress in heard[1:])
    error = model.errors_["error"].min()
    assert heard[-1].best == f"4 factors, beta {model.beta_:g} (error {error:.4g})"


@pytest.mark.slow
def test_an_error_in_the_callback_is_the_users_own(data):
    def stop(progress):
        if progress.done:
            raise KeyboardInterrupt

    for n_jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            search(callback=stop, n_jobs=n_jobs).fit(data.answers)


def test_an_estimator_of_another_kind_is_refused(data):
    with pytest.raises(InputError, match="estimator must be an ICQF or L1NMF, not NMF"):
        ICQFCV(NMF(2)).fit(data.answers)


def test_nothing_works_before_fit(data):
    for use in (ICQFCV().transform, ICQFCV().inverse_transform, ICQFCV().score):
        with pytest.raises(NotFittedError):
            use(data.answers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "rule='best' is not known; choose one of 'min', 'one_se', 'stable'"),
        ({"betas": "few"}, "betas must be 'auto' or the penalties to try, not 'few'"),
        ({"betas": []}, "betas must hold at least one penalty"),
        ({"betas": [-0.1]}, "beta must be a number of at least 0, not -0.1"),
        ({"n_repeats": 0}, "n_repeats must be a whole number of at least 1, not 0"),
        ({"n_splits": 1}, "n_splits must be a whole number of at least 2, not 1"),
        ({"n_components": "many"}, "n_components must be 'auto' or the numbers to try, not 'many'"),
        ({"n_components": []}, "cannot be tried"),
        ({"n_components": [0, 2]}, "cannot be tried: each number must lie between 1 and 30"),
        ({"n_components": [31]}, r"80 sample\(s\) and 30 feature\(s\)"),
        ({"penalty": "l3"}, "penalty='l3' is not known"),
        ({"init": (np.ones((80, 2)), np.ones((30, 2)))}, "needs starts for any number of factors"),
        ({"row_blocks": 1}, "at least 2 × 2 are needed"),
    ],
)
def test_options_that_cannot_be(data, options, message):
    options = {"n_components": [2]} | OPTIONS | options
    model = search_for(options.pop("n_components"), **options)
    with pytest.raises(InputError, match=message):
        model.fit(data.answers)


def test_the_weight_of_a_fold_is_that_of_its_hidden_answers(data):
    """All folds together hide each answer once; an error over all of them is that of all answers pooled."""
    answers = np.where(np.random.default_rng(1).random(data.answers.shape) < 0.1, np.nan, data.answers)
    weights = np.random.default_rng(0).uniform(0.1, 20, len(answers))
    found = search(ks=(3,), betas=[0.1]).fit(answers, sample_weight=weights)
    total = (weights[:, None] * ~np.isnan(answers)).sum()
    np.testing.assert_allclose(found.cv_results_["weight"].sum(), total)
    mean = np.average(found.cv_results_["error"], weights=found.cv_results_["weight"])
    np.testing.assert_allclose(found.errors_["error"], mean)
    plain = search(ks=(3,), betas=[0.1]).fit(answers)
    assert (plain.cv_results_["weight"] == plain.cv_results_["n_hidden"]).all()
