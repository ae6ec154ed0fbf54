"""The laws of the GPU engine: its numbers are those of the processor, whatever is batched.

There is no GPU here. Triton's interpreter runs the same kernels on tiny tables, one program after the other.
"""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from icqf import ICQF, ICQFCV
from icqf.core.certificate import finish
from icqf.core.fast import FastIteration
from icqf.core.result import Factors
from icqf.core.start import Starts, begin
from icqf.core.sweeps import cd_sweeps_each
from icqf.datasets import make_synthetic
from icqf.engines import torch_batch, torch_rows
from icqf.engines.base import NamedStart, Solver
from icqf.engines.choice import engine_of, run
from icqf.engines.local import LOCAL
from icqf.errors import InputError, InputWarning
from icqf.resampling.bootstrap import bootstrap, stability_curve
from icqf.resampling.folds import halves_of
from solving import with_answers

N, M = 24, 6
UNBOUNDED = {"score_max": None, "loading_max": None}
KINDS = {
    "l1": {"item_weight": "variance"},
    "l1, tight bounds": {"loading_max": 40.0, "beta": 0.01},
    "l1, no bounds": UNBOUNDED,
    "l2": {"penalty": "l2"},
    "l2, no bounds": {"penalty": "l2"} | UNBOUNDED,
}


@pytest.fixture
def interpreter(monkeypatch):
    """As on a machine with a GPU; set before the kernels are imported."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def stated(n=N, m=M, **options):
    """A table with gaps and confounds, without the bound on reconstructed answers."""
    data = make_synthetic(n, m, 2, noise=0.2, missing=0.1, confounded=True, random_state=0)
    options = {"dtype": "float32", "reconstruction_max": None, "smallest_category": 2} | options
    return ICQF(2, item_range=(0, 100), **options).state(data.answers, confounds=data.confounds).problem


def some_problems(problem):
    """Problems that differ in penalty, mask, weights, participants and factors, each with a start."""
    rng = np.random.default_rng(0)
    hidden = problem.hide(rng.random((N, M)) < 0.1)
    drawn = problem.drawn(rng.poisson(1, N)).with_beta(1.0)
    return [hidden, drawn], [Starts(hidden).make("nndsvd", 1), Starts(drawn).make("nndsvd", 3)]


def close(a, b):
    np.testing.assert_allclose(a.factors.scores, b.factors.scores, rtol=0, atol=1e-4)
    np.testing.assert_allclose(a.factors.loadings, b.factors.loadings, rtol=0, atol=1e-2)
    assert (a.n_iter, a.converged) == (b.n_iter, b.converged)
    for name, values in a.trace.columns().items():
        np.testing.assert_allclose(b.trace.columns()[name], values, rtol=1e-3, atol=1e-5)


def some_long(cases, *long):
    """Cases of a test, some for `make test-all`: Triton's interpreter takes seconds for each."""
    return [
        pytest.param(*case, id=name, marks=[pytest.mark.long] * (name in long))
        for name, case in cases.items()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_long({kind: (kind,) for kind in KINDS}, "l1, no bounds", "l2"))
def test_a_batch_finds_what_the_processor_finds(kind, interpreter):
    """Among others a problem has room for more factors and participants than its own; they stay zero."""
    problems, starts = some_problems(stated(**KINDS[kind]))
    settings = {"tol": 5e-3, "max_iter": 7, "exact": False}
    expected = run(problems, starts, **settings)
    for here, batched in zip(expected, run(problems, starts, engine="torch", **settings), strict=True):
        close(here, batched)
    if kind == "l1, tight bounds":
        assert max(each.factors.loadings.max() for each in expected) == 40  # so that the bound was tried


@pytest.mark.slow
def test_participants_beyond_one_tile_and_answers_in_fractions_count_alike(interpreter):
    problem = stated(n=70)
    problem = with_answers(problem, np.where(problem.answers < 0, -1.0, problem.answers * 0.9))
    start = Starts(problem).make("nndsvd", 2)
    (here,), (batched,) = (
        run(problem, start, tol=1e-9, max_iter=4, exact=False, engine=engine) for engine in ("local", "torch")
    )
    close(here, batched)


@pytest.mark.slow
def test_who_is_never_drawn_counts_as_if_not_there(interpreter):
    problem = stated()
    counts = np.random.default_rng(1).poisson(1, N)
    start = Starts(problem.drawn(counts)).make("nndsvd", 2)
    spread = np.random.default_rng(2).random((2, N))
    spread[:, counts > 0] = start.scores
    settings = {"tol": 1e-9, "max_iter": 5, "exact": False}
    (drawn,) = run(problem.drawn(counts), start, **settings)
    (counted,) = run(problem.counted(counts), Factors(spread, start.loadings), engine="torch", **settings)
    np.testing.assert_allclose(counted.factors.loadings, drawn.factors.loadings, atol=1e-2)
    np.testing.assert_allclose(counted.factors.scores[:, counts > 0], drawn.factors.scores, atol=1e-4)


@pytest.mark.slow
def test_spoiling_a_hidden_answer_changes_nothing(interpreter):
    problem = stated()
    mask = np.random.default_rng(3).random((N, M)) < 0.2
    start = Starts(problem.hide(mask)).make("nndsvd", 2)
    spoiled = with_answers(problem, np.where(mask, 77, problem.answers))
    a, b = (
        run(each.hide(mask), start, tol=1e-9, max_iter=3, exact=False, engine="torch")[0].factors
        for each in (problem, spoiled)
    )
    np.testing.assert_array_equal(a.scores, b.scores)
    np.testing.assert_array_equal(a.loadings, b.loadings)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_sweeps_of_a_kernel_are_those_of_the_processor(shared, interpreter):
    from icqf.engines.torch_kernels import swept

    torch.manual_seed(0)
    root = torch.rand((1 if shared else 70, 3, 5))
    gram = (root @ root.mT).permute(1, 2, 0).expand(3, 3, 70)
    x, gradient = torch.rand((3, 70)), torch.randn((3, 70))
    expected = cd_sweeps_each(x.clone(), gradient.clone(), gram, 0.8, sweeps=2)
    transposed = x.T.contiguous().T
    torch.testing.assert_close(swept(x, gradient, gram, 0.8, sweeps=2), expected)
    torch.testing.assert_close(swept(transposed, gradient, gram, 0.8, sweeps=2), expected)


# --- a single fit on the device ----------------------------------------------------------------------------

FITS = {
    "all bounds": {},
    "complete": {"missing": 0.0},
    "l2": {"penalty": "l2", "beta": 1.0},
    "no bounds": {"reconstruction_max": None} | UNBOUNDED,
    "double precision, weights": {"dtype": "float64", "weighted": True},
    "items with other limits": {"item_range": np.array([(0, 50), (0, 60)] * 6), "item_weight": None},
    "another penalty of loadings": {"loading_beta": 1.0},
}


def fits(start, *, missing=0.1, weighted=False, tol=1e-4, n=80, **options):
    """The same fit on the processor and on the device, and its problem."""
    data = make_synthetic(n, 12, 3, noise=0.1, missing=missing, confounded=True, random_state=2)
    weights = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    options = {"dtype": "float32", "smallest_category": 2, "beta": 0.1, "item_range": (0, 50)} | options
    model = ICQF(3, **options)
    answers = data.answers.clip(0, 50)  # so that many reconstructed answers reach their range
    problem = model.state(answers, confounds=data.confounds, sample_weight=weights).problem
    here, there = (
        run(problem, start(), tol=tol, max_iter=1000, engine=engine)[0] for engine in ("local", "torch")
    )
    return here, there, problem


@pytest.fixture
def single(interpreter, monkeypatch):
    """Single fits run on the device, however small."""
    monkeypatch.setattr(torch_rows, "WORTH", 0)


def alike(here, there, problem):
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    assert here.converged
    assert there.converged
    assert there.certificate.holds(1e-4)
    R = problem.with_confounds(there.factors.scores, float).T @ there.factors.loadings
    if problem.bounds.reconstruction is not None:
        assert (problem.bounds.reconstruction >= R).all()  # with no tolerance
    assert problem.objective(there.factors.scores, there.factors.loadings) == pytest.approx(there.objective)
    np.testing.assert_allclose(
        there.fit.explained, here.fit.explained, rtol=0, atol=1e-3 * here.fit.sst.max()
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_a_fit_on_the_device_reaches_the_objective_of_the_processor(kind, single):
    alike(*fits(lambda: NamedStart("nndsvd", 3, np.random.default_rng(0)), **FITS[kind]))


@pytest.mark.parametrize("name", ["rotated", "random"])
def test_starts_on_the_device_are_those_of_the_processor(name, single):
    alike(*fits(lambda: NamedStart(name, 3, np.random.default_rng(5))))


def test_the_device_certifies_a_point_as_the_processor_does(single):
    here, _, problem = fits(lambda: NamedStart("nndsvd", 3, np.random.default_rng(0)), tol=1e-2)
    with engine_of("torch").participants(problem) as rows:
        there = finish(problem, here.factors.loadings, tol=1e-2, rows=rows)
    for name in ("score_step", "loading_step", "excess", "gain"):
        ours, theirs = (getattr(each.certificate, name) for each in (there, here))
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-6)


def test_who_is_at_the_bound_is_the_same_on_the_device(single):
    """So that the tests above say something about the bound, some must be."""
    settings = {"tol": 1e-4, "max_iter": 60, "exact": False}
    _, _, problem = fits(lambda: NamedStart("nndsvd", 3, np.random.default_rng(0)))
    start = NamedStart("nndsvd", 3, np.random.default_rng(0))
    (here,) = run(problem, start, **settings)
    with engine_of("torch").participants(problem) as rows:
        iteration = FastIteration(problem, begin(problem, rows, "nndsvd", 3), rows)
        for _ in range(here.n_iter):
            iteration.advance()
        there = iteration.factors()
    assert len(here.factors.multipliers.rows) > 5
    np.testing.assert_array_equal(there.multipliers.rows, here.factors.multipliers.rows)
    np.testing.assert_allclose(there.scores, here.factors.scores, atol=1e-3)
    (again,) = run(problem, there, tol=1e-4, max_iter=60, engine="torch")  # from scores and multipliers
    assert again.converged


def test_an_iteration_copies_from_the_device_once(single, monkeypatch):
    _, _, problem = fits(lambda: NamedStart("nndsvd", 3, np.random.default_rng(0)))
    copies, copied = [], torch.Tensor.cpu
    with engine_of("torch").participants(problem) as rows:
        iteration = FastIteration(problem, begin(problem, rows, "nndsvd", 3), rows, bounds_checked=True)
        monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(1) or copied(tensor))
        for _ in range(7):
            iteration.advance()
    assert len(copies) == 7


@pytest.mark.slow
@pytest.mark.long
def test_a_fit_from_its_starts_is_that_of_the_processor(single):
    answers = make_synthetic(60, 8, 3, noise=0.6, missing=0.05, random_state=1).answers
    here, there = (
        ICQF(3, item_range=(0, 100), dtype="float32", engine=engine, random_state=0).fit(answers)
        for engine in ("local", "torch")
    )
    assert len(here.starts_) > 3  # random ones as well
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)


# --- what runs on the processor ----------------------------------------------------------------------------

CANNOT = {
    "the bound on reconstructed answers": {"reconstruction_max": "item_range"},
    "the penalty l21": {"penalty": "l21"},
    "double precision": {"dtype": "float64"},
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_the_kernels_cannot_do_the_processor_does_and_it_is_said(what, interpreter):
    problem = stated(**CANNOT[what])
    start = Starts(problem).make("nndsvd", 2)
    settings = {"tol": 5e-3, "max_iter": 20, "exact": False}
    (here,) = run(problem, start, **settings)
    said = rf"^The GPU kernels do not support {what}.*, so these fits run on the processor\.$"
    with pytest.warns(InputWarning, match=said):
        (there,) = run(problem, start, engine="torch", **settings)
    np.testing.assert_array_equal(here.factors.scores, there.factors.scores)
    with pytest.warns(InputWarning, match=said):
        assert engine_of("torch").for_many(problem) is LOCAL


def test_more_items_or_factors_than_a_kernel_holds_are_for_the_processor(interpreter):
    answers = np.random.default_rng(0).integers(0, 3, (80, 300))
    many, fewer = (
        ICQF(2, item_range=(0, 2), reconstruction_max=None, dtype="float32").state(answers[:, :m]).problem
        for m in (300, 70)
    )
    with pytest.warns(InputWarning, match="more than 256 items"):
        engine_of("torch").for_many(many)
    start = Starts(fewer).make("nndsvd", 65)
    with pytest.warns(InputWarning, match="more than 64 factors and confound columns"):
        run(fewer, start, tol=0.1, max_iter=1, exact=False, engine="torch")


def test_a_table_that_is_mostly_empty_is_for_the_processor(interpreter):
    problem = stated()
    with pytest.warns(InputWarning, match="more than half of its answers missing"):
        engine_of("torch").for_many(problem.hide(np.random.default_rng(0).random((N, M)) < 0.6))


def test_a_small_fit_with_a_certificate_is_that_of_the_processor_without_a_word(interpreter):
    problem = stated(reconstruction_max="item_range")
    start = Starts(problem).make("nndsvd", 2)
    for solver in (Solver(), Solver("admm")):
        settings = {"tol": 5e-3, "max_iter": 20, "solver": solver}
        (here,), (there,) = (run(problem, start, engine=engine, **settings) for engine in ("local", "torch"))
        np.testing.assert_array_equal(here.factors.scores, there.factors.scores)


def test_resamples_that_the_kernels_cannot_do_are_those_of_the_processor(interpreter):
    problem = stated(reconstruction_max="item_range")
    (fit,) = run(problem, Starts(problem).make("nndsvd", 2), tol=5e-3, max_iter=30)
    W, Q = fit.factors.scores, problem.own_loadings(fit.factors.loadings)

    def loadings(engine):
        rng = np.random.default_rng(0)
        return bootstrap(problem, W, Q, n_resamples=2, engine=engine, rng=rng).loadings

    with pytest.warns(InputWarning, match="the bound on reconstructed answers"):
        there = loadings("torch")
    np.testing.assert_array_equal(there, loadings("local"))


def test_without_a_gpu_the_processor_does_it_and_it_is_said(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    answers = make_synthetic(60, 10, 2, noise=0.2, random_state=1).answers
    model = ICQF(2, item_range=(0, 100), n_init=1)
    here = model.fit_transform(answers)
    with pytest.warns(
        InputWarning,
        match=r"^PyTorch and Triton find no CUDA GPU, so the engine 'torch' runs on the processor\.$",
    ):
        there = model.set_params(engine="torch").fit_transform(answers)
    np.testing.assert_array_equal(here, there)


# --- memory ----------------------------------------------------------------------------------------------


def attempts_of(things, size, most):
    """How many things are tried at a time on a device whose memory holds no more than `most`."""
    attempts, done = [], []

    def work(part):
        attempts.append(len(part))
        if len(part) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        done.extend(part)

    torch_batch.in_batches(things, size, work)
    assert done == things
    return attempts


def test_out_of_memory_halves_the_batch_and_goes_on():
    assert attempts_of(list(range(7)), 7, most=2) == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    assert attempts_of(list(range(7)), 3, most=9) == [3, 3, 1]


def test_a_fit_that_does_not_fit_ends_with_a_sentence():
    with pytest.raises(
        InputError, match=r"^The GPU does not have enough memory for even one fit of this table\."
    ):
        attempts_of([0], 1, most=0)


# --- searches ----------------------------------------------------------------------------------------------


SEARCHES = {
    "weights": ({}, True),
    "l2, no bounds, range undeclared": ({"item_range": None, "penalty": "l2"} | UNBOUNDED, False),
    "rotated": ({"init": "rotated"}, False),
}


def searches(weights=None, **options):
    answers = make_synthetic(40, 8, 2, noise=0.2, missing=0.05, random_state=1).answers
    settings = {"n_components": [1, 2], "betas": [0.1], "n_splits": 3, "random_state": 0}
    model = ICQF(**{"item_range": (0, 100), "dtype": "float32", "n_init": 1, "max_iter": 3} | options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "item_range is not declared")
        warnings.filterwarnings("ignore", category=InputWarning)
        warnings.filterwarnings("ignore", "The fit stopped after")
        warnings.filterwarnings("error", "The GPU kernels", InputWarning)
        return [
            ICQFCV(model, engine=engine, **settings).fit(answers, sample_weight=weights)
            for engine in ("local", "torch")
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "weighted"), some_long(SEARCHES, "l2, no bounds, range undeclared", "rotated")
)
def test_a_search_makes_the_same_choice(options, weighted, interpreter):
    here, there = searches(np.random.default_rng(0).uniform(0.5, 2, 40) if weighted else None, **options)
    assert (here.n_components_, here.beta_) == (there.n_components_, there.beta_)
    a, b = here.cv_results_, there.cv_results_
    counted = ["fold", "n_components", "beta", "n_hidden", "n_iter"]
    assert a[counted].equals(b[counted])
    np.testing.assert_allclose(b["error"], a["error"], rtol=1e-3)
    np.testing.assert_allclose(there.errors_["standard_error"], here.errors_["standard_error"], rtol=1e-2)


@pytest.mark.slow
@pytest.mark.long
def test_halves_agree_alike(interpreter):
    problem = stated(n=60, reconstruction_max="item_range")
    halves = [halves_of(problem, rng=np.random.default_rng(0))]
    here, there = (
        stability_curve(problem, [(2, 0.1)], halves, tol=1e-9, max_iter=3, engine=engine)
        for engine in ("local", "torch")
    )
    np.testing.assert_allclose(there.to_numpy(), here.to_numpy(), rtol=1e-3)


WITHOUT_PYTORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Absent())
from icqf.cli import main
main()
"""


def test_without_pytorch_the_command_says_what_to_install(tmp_path):
    table = tmp_path / "answers.csv"
    pd.DataFrame(np.random.default_rng(0).integers(0, 4, (40, 6))).add_prefix("q").to_csv(table, index=False)
    command = [
        sys.executable,
        "-c",
        WITHOUT_PYTORCH,
        "fit",
        str(table),
        "--engine",
        "torch",
        "--n-components",
        "2",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "The engine 'torch' needs PyTorch, which is not installed." in done.stderr
    assert "Install it with pip install 'icqf[gpu]', or use --engine local." in done.stderr
    assert "Traceback" not in done.stderr
