"""ICQF as a scikit-learn estimator: its laws, its manners and its units."""

import math
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from icqf import ICQF, ICQFCV
from icqf.data.validate import EmptyRowsWarning, RangeWarning
from icqf.datasets import make_synthetic
from icqf.errors import InputError
from icqf.models import L1NMF
from icqf.models import icqf as module

# Scikit-learn's checks fit dozens of searches; which candidates are tried matters to none of them.
SMALL_SEARCH = ICQFCV(ICQF(n_init=1), betas=[0.1], n_splits=3)
IDS = pd.Index([f"P{i:03d}" for i in range(80)], name="id")


@pytest.fixture(scope="module")
def data():
    return make_synthetic(80, 30, 4, noise=0.1, missing=0.05, confounded=True, random_state=0)


@pytest.fixture(scope="module")
def people(data):
    age, sex = data.confounds.T
    return pd.DataFrame({"age": age, "sex": np.where(sex > 0, "Female", "Male")}, index=IDS)


@pytest.fixture(scope="module")
def answers(data):
    return pd.DataFrame(data.answers, columns=[f"q{j:02d}" for j in range(30)], index=IDS)


def precise(k=4, **options):
    """A model solved so closely that only rounding is left between two ways of stating the same problem.

    From one start: what several do is tested in test_multistart.py.
    """
    usual = {"tol": 1e-5, "max_iter": 5000, "n_init": 1}
    return ICQF(k, item_range=(0, 100), dtype="float64", **(usual | options))


# --- scikit-learn's own checks ---------------------------------------------------------------------


@parametrize_with_checks([ICQF(n_components=2), L1NMF(n_components=2), SMALL_SEARCH])
@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning", "ignore:.*too few to choose")
@pytest.mark.filterwarnings("ignore:.*same answer from everybody", "ignore:.*SCIPY_ARRAY_API")
@pytest.mark.filterwarnings("ignore:All loadings are 0")  # the best that can be done with random answers
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([ICQF(n_components=1), ICQFCV()])
@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning", "ignore:.*too few to choose")
@pytest.mark.filterwarnings("ignore:.*same answer from everybody", "ignore:.*SCIPY_ARRAY_API")
@pytest.mark.filterwarnings("ignore:All loadings are 0")
def test_scikit_learns_checks_of_one_factor_and_of_a_whole_search(estimator, check):
    check(estimator)


# --- stating, solving and keeping ------------------------------------------------------------------


def test_stating_and_solving_change_nothing_in_the_model(answers, people):
    model = precise()
    before = dict(vars(model))
    stated = model.state(answers, confounds=people)
    found = model.solve(stated)
    assert vars(model) == before
    fitted = precise().fit(answers, confounds=people)
    kept = model.keep(stated, found)
    assert kept is model and kept.objective_ == fitted.objective_
    np.testing.assert_array_equal(kept.components_, fitted.components_)
    np.testing.assert_array_equal(kept.confound_components_, fitted.confound_components_)
    assert list(kept.feature_names_in_) == list(stated.items) == list(answers)


def test_a_stated_problem_serves_any_number_of_factors_and_beta(data):
    stated = precise().state(data.answers)
    for k, beta in [(2, 0.0), (3, 0.5)]:
        model = precise(k, beta=beta)
        model.keep(stated, model.solve(stated))
        assert model.objective_ == precise(k, beta=beta).fit(data.answers).objective_


@pytest.mark.parametrize(("n", "dtype"), [(50, "float64"), (51, "float32")])
def test_small_tables_are_solved_in_double_precision(n, dtype, tmp_path):
    answers = np.random.default_rng(0).integers(0, 5, (n, 100))
    model = ICQF(2, item_range=(0, 4)).fit(answers)
    assert model.dtype_ == dtype == ICQF(2, item_range=(0, 4), dtype=dtype).fit(answers).dtype_
    model.save(tmp_path / "m.icqf")
    again = ICQF.load(tmp_path / "m.icqf")
    assert again.dtype_ == dtype and again.dtype == "auto"
    np.testing.assert_array_equal(again.transform(answers[:9]), model.transform(answers[:9]))


def test_who_takes_part(data):
    table = data.answers.copy()
    table[3] = np.nan
    weights = np.ones(len(table))
    weights[5] = 0
    with pytest.warns(EmptyRowsWarning, match="1 participant answered nothing"):
        stated = precise().state(table, sample_weight=weights)
    assert list(np.flatnonzero(~stated.kept)) == [3, 5] and list(np.flatnonzero(~stated.answered)) == [3]
    assert stated.problem.n == len(table) - 2 and stated.ranges.shape == (30, 2)


# --- laws ------------------------------------------------------------------------------------------


def test_participants_permuted_permute_the_scores(data, people):
    order = np.random.default_rng(1).permutation(len(data.answers))
    model = precise()
    scores = model.fit_transform(data.answers, confounds=people)
    loadings = model.loadings_.to_numpy()
    permuted = model.fit_transform(data.answers[order], confounds=people.iloc[order])
    # Sums over people are added in another order: rounding, carried through the iterations.
    np.testing.assert_allclose(permuted, scores[order], atol=1e-6)
    np.testing.assert_allclose(model.loadings_.to_numpy(), loadings, atol=1e-4)  # of 100


def test_items_permuted_permute_the_loadings(data, people):
    order = np.random.default_rng(2).permutation(data.answers.shape[1])
    model = precise()
    scores = model.fit_transform(data.answers, confounds=people)
    loadings, confounds = model.loadings_.to_numpy(), model.confound_loadings_.to_numpy()
    permuted = model.fit_transform(data.answers[:, order], confounds=people)
    np.testing.assert_allclose(permuted, scores, atol=1e-6)
    np.testing.assert_allclose(model.loadings_.to_numpy(), loadings[order], atol=1e-4)
    np.testing.assert_allclose(model.confound_loadings_.to_numpy(), confounds[order], atol=1e-4)


@pytest.mark.parametrize("solver", ["fast", "admm"])
def test_weight_2_is_the_row_twice(data, people, solver):
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 4, len(data.answers)).astype(float)
    weights[0] = 2
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    options = {"solver": solver, "tol": 1e-4, "smallest_category": 1, "confound_ranges": {"age": (6, 18)}}
    weighted = precise(**options).fit(data.answers, confounds=people, sample_weight=weights)
    repeated = precise(**options).fit(data.answers[rows], confounds=people.iloc[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-4)
    np.testing.assert_allclose(
        weighted.transform(data.answers, confounds=people),
        repeated.transform(data.answers, confounds=people),
        atol=1e-6,
    )
    summaries = weighted.summary(), repeated.summary()
    np.testing.assert_allclose(
        *(summary.factors["variance_explained"].to_numpy() for summary in summaries), atol=1e-7
    )


def test_only_ratios_of_weights_matter(data):
    weights = np.random.default_rng(4).uniform(0.5, 3, len(data.answers))
    one = precise().fit(data.answers, sample_weight=weights)
    ten = precise().fit(data.answers, sample_weight=10 * weights)
    np.testing.assert_allclose(ten.components_, one.components_, atol=1e-4)
    assert ten.objective_ == pytest.approx(10 * one.objective_, rel=1e-7)


@pytest.mark.filterwarnings("ignore::icqf.data.validate.EmptyRowsWarning")
@pytest.mark.parametrize(
    ("gaps", "weighted"),
    [("complete", "no weights"), ("gaps", "weights"), ("gaps and an empty row", "weights of 0")]
    + [pytest.param("complete", each, marks=pytest.mark.long) for each in ("weights", "weights of 0")]
    + [pytest.param("gaps", each, marks=pytest.mark.long) for each in ("no weights", "weights of 0")]
    + [
        pytest.param("gaps and an empty row", each, marks=pytest.mark.long)
        for each in ("no weights", "weights")
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": "float32"},
        {"dtype": "float64"},
        {"penalty": "l2", "dtype": "float32"},
        {"penalty": "l21"},
        {"solver": "admm", "tol": 1e-2},
        {"reconstruction_max": None, "score_max": None, "loading_max": None},
    ],
)
def test_fit_transform_gives_the_scores_of_transform(data, people, options, gaps, weighted, monkeypatch):
    """To the last bit, and without solving a second time."""
    table = np.nan_to_num(data.answers, nan=30.0) if gaps == "complete" else data.answers.copy()
    if gaps == "gaps and an empty row":
        table[7] = np.nan
    weights = None if weighted == "no weights" else np.linspace(0.5, 2, len(table))
    if weighted == "weights of 0":
        weights[[2, 40]] = 0
    model = ICQF(4, item_range=(0, 100), max_iter=3000, n_init=1, **options)
    solved = []
    solve = module.solve_scores_inside
    monkeypatch.setattr(module, "solve_scores_inside", lambda *a, **o: solved.append(1) or solve(*a, **o))
    together = model.fit_transform(table, confounds=people, sample_weight=weights)
    assert len(solved) == (weighted == "weights of 0")  # those take no part in the fit
    np.testing.assert_array_equal(together, model.transform(table, confounds=people))
    assert list(np.flatnonzero(np.isnan(together).any(axis=1))) == ([7] if "empty" in gaps else [])


def test_each_person_is_scored_alone(data, people):
    """Company must not matter: the scores of a batch are those of its members."""
    model = precise().fit(data.answers, confounds=people)
    scores = model.transform(data.answers, confounds=people)
    for i in (0, 17, 79):
        alone = model.transform(data.answers[[i]], confounds=people.iloc[[i]])
        np.testing.assert_allclose(alone[0], scores[i], atol=1e-5)


def test_a_missing_answer_is_not_a_low_one(data):
    model = precise().fit(data.answers)
    person = np.nan_to_num(data.answers[:1], nan=50.0)
    gaps, zeros = person.copy(), person.copy()
    gaps[:, :10], zeros[:, :10] = np.nan, 0.0
    assert np.abs(model.transform(gaps) - model.transform(zeros)).max() > 0.01


@pytest.mark.parametrize("init", ["nndsvd", "rotated", "random"])
@pytest.mark.parametrize("solver", ["fast", "admm"])
def test_same_seed_same_bytes(data, people, init, solver, tmp_path):
    files = []
    for run in range(2):
        options = {"init": init, "solver": solver, "n_init": 2, "random_state": 7, "max_iter": 2000}
        model = ICQF(4, item_range=(0, 100), **options).fit(data.answers, confounds=people)
        model.save(tmp_path / f"{run}.icqf")
        scores = model.transform(data.answers, confounds=people)
        files.append(
            (
                model.components_.tobytes(),
                model.confound_loadings_.to_numpy().tobytes(),
                scores.tobytes(),
                (tmp_path / f"{run}.icqf").read_bytes(),
            )
        )
    assert files[0] == files[1]


def test_another_seed_is_another_start(data):
    fits = [
        ICQF(4, item_range=(0, 100), init="random", random_state=seed, max_iter=2000).fit(data.answers)
        for seed in (0, 1)
    ]
    assert fits[0].components_.tobytes() != fits[1].components_.tobytes()


def test_several_starts_keep_the_best_objective(data):
    answers, options = data.answers, {"item_range": (0, 100), "max_iter": 2000}
    many = ICQF(4, n_init=5, random_state=0, **options).fit(answers)
    singles = [
        ICQF(4, init=init, n_init=1, **options).fit(answers).objective_ for init in ("nndsvd", "rotated")
    ]
    few = ICQF(4, n_init=2, random_state=0, **options).fit(answers)
    np.testing.assert_allclose(few.starts_["objective"], singles, rtol=1e-4)  # the kept one goes on
    assert few.objective_ in singles and few.objective_ <= min(singles) * (1 + 1e-5)
    assert many.objective_ <= many.starts_["objective"].min() * (1 + 1e-5)
    assert many.starts_["start"].tolist() == ["nndsvd", "rotated", "random", "random", "random"]
    assert many.starts_["objective"].tolist()[:2] == few.starts_["objective"].tolist()


def test_a_start_from_arrays(data):
    W, Q = data.scores, data.loadings
    model = ICQF(4, item_range=(0, 100), init=(W, Q), max_iter=2000).fit(data.answers)
    usual = ICQF(4, item_range=(0, 100), max_iter=2000).fit(data.answers)
    assert model.converged_
    assert model.objective_ == pytest.approx(usual.objective_, rel=0.02)


def test_factors_come_by_explained_variance(data, people):
    for init in ("nndsvd", "random"):
        model = ICQF(4, item_range=(0, 100), init=init, random_state=3, max_iter=2000)
        model.fit(data.answers, confounds=people)
        share = model.summary().factors["variance_explained"].to_numpy()
        assert (np.diff(share) <= 0).all() and share[0] > share[-1]


# --- tables in and out -----------------------------------------------------------------------------


def test_names_travel(answers, people):
    model = ICQF(4, item_range=(0, 100)).fit(answers, confounds=people)
    assert list(model.feature_names_in_) == list(answers.columns)
    assert list(model.loadings_.index) == list(answers.columns)
    assert list(model.loadings_.columns) == ["factor1", "factor2", "factor3", "factor4"]
    assert model.confound_names_ == ["Old", "Young", "Female", "Male", "Intercept"]
    assert list(model.confound_loadings_.columns) == model.confound_names_
    assert model.item_range_.loc["q07"].tolist() == [0, 100]
    np.testing.assert_array_equal(model.components_, model.loadings_.to_numpy().T)
    assert model.components_.shape == (4, 30)
    assert model.n_features_in_ == 30 and model.n_participants_ == 80


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(answers, people, container):
    model = ICQF(4, item_range=(0, 100)).set_output(transform=container)
    scores = model.fit_transform(answers, confounds=people)
    assert isinstance(scores, pd.DataFrame if container == "pandas" else pl.DataFrame)
    assert list(scores.columns) == ["factor1", "factor2", "factor3", "factor4"]
    if container == "pandas":
        assert scores.index.equals(answers.index)


def test_every_kind_of_table_gives_the_same_fit(answers, people):
    model = ICQF(4, item_range=(0, 100))
    rounded = answers.round()
    usual = model.fit(rounded, confounds=people).components_.copy()
    tables = {
        "array": rounded.to_numpy(),
        "float32": rounded.to_numpy().astype(np.float32),
        "Fortran order": np.asfortranarray(rounded.to_numpy()),
        "polars": pl.DataFrame({name: rounded[name].to_numpy() for name in rounded}).fill_nan(None),
        "nullable": rounded.astype("Int64"),
        "nullable small": rounded.astype("Int8"),
        "objects": rounded.astype(object).where(rounded.notna(), None),
        "lists": rounded.to_numpy().tolist(),
    }
    for name, table in tables.items():
        found = model.fit(table, confounds=people).components_
        np.testing.assert_array_equal(found, usual, err_msg=name)


def test_polars_confounds(answers, people):
    model = ICQF(4, item_range=(0, 100))
    usual = model.fit(answers, confounds=people).components_.copy()
    np.testing.assert_array_equal(model.fit(answers, confounds=pl.from_pandas(people)).components_, usual)
    assert model.confound_names_ == ["Old", "Young", "Female", "Male", "Intercept"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint16, bool])
def test_every_kind_of_integer(dtype):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (40, 8))
    usual = ICQF(2, item_range=(0, 1)).fit(table.astype(float))
    found = ICQF(2, item_range=(0, 1)).fit(table.astype(dtype))
    np.testing.assert_array_equal(found.components_, usual.components_)


@pytest.mark.parametrize(("low", "high"), [(-100, 100), (1, 127), (-128, -1), (-5, 5), (-200, 100)])
@pytest.mark.filterwarnings("ignore::icqf.models.icqf.UnsettledWarning")  # the answers are noise
def test_small_integers_on_a_wide_or_shifted_scale(low, high):
    """The width of the scale need not fit into the integers that hold the answers."""
    rng = np.random.default_rng(0)
    table = rng.integers(max(low, -128), high + 1, (40, 6)).astype(np.int8)
    small = ICQF(2, item_range=(low, high)).fit(table)
    usual = ICQF(2, item_range=(low, high)).fit(table.astype(float))
    np.testing.assert_array_equal(small.components_, usual.components_)


def test_single_precision_answers_at_the_ends_of_an_odd_range():
    """0.1 and 0.7 are not the same numbers in single and in double precision."""
    table = np.random.default_rng(0).choice([0.1, 0.3, 0.7], (30, 5)).astype(np.float32)
    model = ICQF(2, item_range=(0.1, 0.7)).fit(table)
    usual = ICQF(2, item_range=(0.1, 0.7)).fit(table.astype(float).round(6))
    np.testing.assert_allclose(model.components_, usual.components_, atol=1e-4)
    assert model.summary().n_missing == 0


def test_small_integers_are_read_without_a_float_copy():
    """300 000 × 60 answers are 18 MB as int8, and would be 72 MB as float32."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 4, (300_000, 60), dtype=np.int8)
    peaks = {}
    for n_init in (1, 3):
        model = ICQF(2, item_range=(0, 3), max_iter=1, tol=1e-9, n_init=n_init)
        tracemalloc.start()
        try:
            with pytest.warns(ConvergenceWarning):
                model.fit(table)
            peaks[n_init] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    scores = 8 * 2 * len(table)
    assert peaks[1] < 0.6 * table.size * 4
    assert peaks[3] < peaks[1] + 2 * scores  # those of the best so far beside the present ones


def test_the_answers_are_not_changed(answers, people):
    before, people_before = answers.copy(), people.copy()
    ICQF(4, item_range=(0, 100)).fit_transform(answers, confounds=people)
    pd.testing.assert_frame_equal(answers, before)
    pd.testing.assert_frame_equal(people, people_before)


# --- units -----------------------------------------------------------------------------------------


def test_inverse_transform_is_in_the_questionnaires_units(data, people):
    shifted = 1 + data.answers / 25  # 1 … 5
    model = ICQF(4, item_range=(1, 5)).fit(shifted, confounds=people)
    scores = model.transform(shifted, confounds=people)
    back = model.inverse_transform(scores, confounds=people)
    assert back.shape == shifted.shape
    assert back.min() >= 1 and back.max() <= 5
    low, high = np.floor(people["age"].min()), np.ceil(people["age"].max())  # whole years, rounded outward
    x = (people["age"] - low) / (high - low)
    sex = [people["sex"] == "Female", people["sex"] == "Male"]
    design = np.column_stack([x, 1 - x, *sex, np.ones(len(x))])
    by_hand = 1 + scores @ model.loadings_.T.to_numpy() + design @ model.confound_loadings_.T.to_numpy()
    np.testing.assert_allclose(back, by_hand, atol=1e-9)
    frame = model.inverse_transform(pd.DataFrame(scores, index=people.index), confounds=people)
    assert list(frame.columns) == list(model.loadings_.index)
    assert frame.index.tolist() == people.index.tolist()


def test_score_is_minus_the_mean_squared_error(data, people):
    model = ICQF(4, item_range=(0, 100), dtype="float64").fit(data.answers, confounds=people)
    back = model.inverse_transform(model.transform(data.answers, confounds=people), confounds=people)
    error = (data.answers - back) ** 2
    assert model.score(data.answers, confounds=people) == pytest.approx(-np.nanmean(error), rel=1e-9)
    weights = np.random.default_rng(0).uniform(0, 3, len(error))
    seen = ~np.isnan(error)
    weighted = (weights[:, None] * np.nan_to_num(error)).sum() / (weights[:, None] * seen).sum()
    assert model.score(data.answers, confounds=people, sample_weight=weights) == pytest.approx(
        -weighted, rel=1e-9
    )


def test_an_undeclared_range_is_the_observed_one_and_said_so(data):
    message = r"lowest and highest observed answers, 0 and 100, .*Declare item_range=\(lowest, highest\)"
    with pytest.warns(RangeWarning, match=message) as caught:
        model = ICQF(4).fit(data.answers)
    assert caught[0].filename == __file__  # the user's line
    assert model.item_range_.to_numpy().tolist() == [[0, 100]] * 30


@pytest.mark.parametrize("kind", ["mapping", "frame", "array"])
def test_ranges_by_item(answers, kind):
    highs = np.where(np.arange(30) % 2, 100, 200)
    ranges = np.column_stack([np.zeros(30), highs])
    table = {
        "mapping": {name: tuple(pair) for name, pair in zip(answers, ranges, strict=True)}
        | {"other": (0, 9)},
        "frame": pd.DataFrame(ranges, index=answers.columns, columns=["min", "max"]).iloc[::-1],
        "array": ranges,
    }[kind]
    model = ICQF(4, item_range=table, max_iter=2000).fit(answers)
    np.testing.assert_array_equal(model.item_range_.to_numpy(), ranges)


# --- what is said along the way --------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["fast", "admm"])
def test_the_callback_hears_every_iteration(data, solver):
    heard = []
    options = {"solver": solver, "callback": heard.append, "max_iter": 1000, "n_init": 1}
    model = ICQF(4, item_range=(0, 100), **options).fit(data.answers)
    assert [progress.iteration for progress in heard] == list(range(1, model.n_iter_ + 1))
    assert {progress.max_iter for progress in heard} == {1000}
    np.testing.assert_array_equal([progress.objective for progress in heard], model.trace_["objective"])
    np.testing.assert_array_equal([progress.step for progress in heard], model.trace_["step"])


def test_the_trace_has_a_row_an_iteration(data):
    model = ICQF(4, item_range=(0, 100)).fit(data.answers)
    assert list(model.trace_.columns) == ["objective", "excess", "step"]
    assert len(model.trace_) == model.n_iter_
    assert model.trace_["objective"].iloc[-1] == pytest.approx(model.objective_, rel=1e-3)


def test_a_small_rho_warns(data):
    model = ICQF(4, item_range=(0, 100), solver="admm", rho=1.0, max_iter=2000)
    with pytest.warns(
        UserWarning, match=r"rho=1 is below √2, where ADMM is not known to converge; use rho=3"
    ):
        model.fit(data.answers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ICQF(4, item_range=(0, 100), solver="fast", rho=1.0).fit(data.answers)  # rho is not used
        ICQF(4, item_range=(0, 100), solver="admm", rho=math.sqrt(2), max_iter=2000).fit(data.answers)


def test_stopping_early_warns_with_the_numbers(data):
    model = ICQF(4, item_range=(0, 100), max_iter=3)
    message = (
        r"The fit stopped after 3 iterations before it settled: a score would still move by \S+ and a "
        r"loading by \S+ of its item's range \(tol=0\.001\)\. Raise max_iter, or loosen tol"
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(data.answers)
    assert not model.converged_ and model.n_iter_ == 3
    assert f"{model.certificate_.loading_step:.2g} of its" in str(caught[0].message)


def test_stopping_early_points_at_the_users_line(data):
    with pytest.warns(ConvergenceWarning) as caught:
        ICQF(4, item_range=(0, 100), max_iter=3).fit(data.answers)
    assert caught[0].filename == __file__


def test_a_converged_fit_holds_its_certificate(data, people):
    for tol in (1e-2, 1e-3, 1e-4):
        model = ICQF(4, item_range=(0, 100), tol=tol, max_iter=3000).fit(data.answers, confounds=people)
        certificate = model.certificate_
        assert model.converged_ and certificate.holds(tol)
        assert max(certificate.score_step, certificate.loading_step) <= tol
        assert certificate.excess == 0 and certificate.gain >= 0


def test_nothing_works_before_fit(answers):
    model = ICQF(2)
    for use in (model.transform, model.inverse_transform, model.score):
        with pytest.raises(NotFittedError):
            use(answers)
    with pytest.raises(NotFittedError):
        model.summary()
    with pytest.raises(NotFittedError):
        model.save("never.icqf")


# --- metadata routing ------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_confounds_travel_through_a_pipeline(answers, people):
    confounds = people
    outcome = np.arange(len(answers)) % 7.0
    factors = ICQF(4, item_range=(0, 100)).set_fit_request(confounds=True, sample_weight=True)
    factors.set_transform_request(confounds=True)
    pipeline = make_pipeline(factors, LinearRegression().set_fit_request(sample_weight=False))
    weights = np.linspace(1, 2, len(answers))
    pipeline.fit(answers, outcome, confounds=confounds, sample_weight=weights)
    predicted = pipeline.predict(answers, confounds=confounds)

    alone = ICQF(4, item_range=(0, 100)).fit(answers, confounds=confounds, sample_weight=weights)
    scores = alone.transform(answers, confounds=confounds)
    by_hand = LinearRegression().fit(scores, outcome).predict(scores)
    np.testing.assert_allclose(predicted, by_hand, atol=1e-9)
    assert isinstance(pipeline, Pipeline)
    assert pipeline[0].confound_names_ == ["Old", "Young", "Female", "Male", "Intercept"]


@pytest.mark.usefixtures("routing")
def test_cross_validation_splits_confounds_and_weights(answers, people):
    confounds = people
    model = ICQF(4, item_range=(0, 100), confound_ranges={"age": (6, 18)})
    model.set_fit_request(confounds=True, sample_weight=True)
    model.set_transform_request(confounds=True).set_score_request(confounds=True, sample_weight=False)
    weights = np.linspace(1, 2, len(answers))
    found = cross_validate(
        model, answers, cv=3, params={"confounds": confounds, "sample_weight": weights}, return_estimator=True
    )
    assert np.isfinite(found["test_score"]).all()
    assert all(len(each.confound_names_) == 5 for each in found["estimator"])
    held_out = slice(0, 27)  # the first of three folds of 80
    by_hand = clone(model).fit(answers[27:], confounds=confounds[27:], sample_weight=weights[27:])
    assert found["test_score"][0] == pytest.approx(
        by_hand.score(answers[held_out], confounds=confounds[held_out]), rel=1e-9
    )


@pytest.mark.usefixtures("routing")
def test_an_unasked_for_confound_is_refused(answers, people):
    pipeline = make_pipeline(ICQF(4, item_range=(0, 100)), LinearRegression())
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="confounds"):
        pipeline.fit(answers, np.arange(80.0), confounds=people)


@pytest.mark.filterwarnings("ignore::icqf.data.validate.EmptyRowsWarning")
def test_a_start_may_hold_those_who_answered_nothing():
    """`transform` gives them no scores, and they have no part in the fit."""
    answers = np.random.default_rng(0).integers(0, 3, (60, 8)).astype(float)
    answers[[5, 7]] = np.nan
    model = ICQF(2, item_range=(0, 2)).fit(answers)
    scores = model.transform(answers)
    assert np.isnan(scores[[5, 7]]).all()
    again = ICQF(2, item_range=(0, 2), init=(scores, model.components_.T)).fit(answers)
    assert again.objective_ <= model.objective_ * (1 + 1e-5)
    answered = np.isfinite(scores).all(axis=1)
    alone = ICQF(2, item_range=(0, 2), init=(scores[answered], model.components_.T)).fit(answers[answered])
    assert alone.components_.tobytes() == again.components_.tobytes()
    scores[0] = np.nan
    with pytest.raises(InputError, match="missing numbers"):
        ICQF(2, item_range=(0, 2), init=(scores, model.components_.T)).fit(answers)
