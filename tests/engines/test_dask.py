"""The engine of a cluster, with workers in processes of their own, one of which is killed now and then."""

import contextlib
import gc
import os
import pickle
import signal
import socket
import sys
import threading
import time
from dataclasses import replace

import dask
import dask.array as da
import distributed
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from distributed import get_client
from sklearn.base import clone

from icqf import ICQF, ICQFCV
from icqf.cli.program import cli
from icqf.datasets import make_synthetic
from icqf.engines import Dask
from icqf.engines.base import NamedStart
from icqf.engines.choice import engine_of, run
from icqf.engines.local import LOCAL
from icqf.errors import InputError
from icqf.models.sources import StoredAnswers, StoredObservations

DATA = make_synthetic(240, 16, 3, noise=0.2, missing=0.05, confounded=True, random_state=0)
SETTINGS = {"item_range": (0, 100), "n_init": 1, "tol": 0.1, "dtype": "float64"}  # 10 iterations


@pytest.fixture(scope="module")
def engine(client):
    return Dask(client, chunk=40)


@pytest.fixture(scope="module")
def here():
    return ICQF(3, **SETTINGS).fit(DATA.answers, confounds=DATA.confounds)


def fitted(engine, answers=DATA.answers, **settings):
    return ICQF(3, engine=engine, **SETTINGS | settings).fit(answers, confounds=DATA.confounds)


def same(ours, theirs, atol=1e-6):
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-9)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=atol)


def tasks_of(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def kill_one(client):
    address, pid = min(client.run(os.getpid).items())
    os.kill(pid, signal.SIGKILL)
    return address


def free_address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture
def soon(monkeypatch):
    """Nobody waits long for a scheduler."""
    monkeypatch.setattr("icqf.engines.dask._CONNECT_SECONDS", 1)


# --- the same answer ----------------------------------------------------------------------------------


def test_loadings_and_scores_of_many_chunks_are_those_of_one(client, here):
    model = ICQF(3, engine=Dask(client, chunk=23), **SETTINGS)
    scores = model.fit_transform(DATA.answers, confounds=DATA.confounds)
    same(model, here)
    np.testing.assert_allclose(scores, here.transform(DATA.answers, confounds=DATA.confounds), atol=1e-6)


def test_random_starts_are_those_of_the_local_engine(engine):
    problem = ICQF(3, **SETTINGS).state(DATA.answers, confounds=DATA.confounds).problem
    found = [
        run(problem, NamedStart("random", 3, np.random.default_rng(5)), engine=each, tol=1e-3)[0]
        for each in ("local", engine)
    ]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-9)


def test_hidden_answers_stay_hidden_on_the_cluster(engine):
    problem = ICQF(3, **SETTINGS).state(DATA.answers, confounds=DATA.confounds).problem
    mask = np.random.default_rng(3).random((problem.n, problem.m)) < 0.3
    begin = NamedStart("rotated", 3, np.random.default_rng(0))
    spoiled = replace(
        problem, observations=replace(problem.observations, answers=np.where(mask, 7.0, problem.answers))
    )
    found = [
        run(each.hide(mask), begin, engine=where, tol=1e-3, max_iter=3)[0].factors.loadings
        for each, where in ((problem, "local"), (spoiled, engine))
    ]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


def test_nothing_is_left_with_the_scheduler(client):
    fitted(Dask(client, chunk=80), max_iter=3, tol=0.5)
    gc.collect()
    for _ in range(100):
        if not tasks_of(client):
            break
        time.sleep(0.1)
    assert not tasks_of(client)


def test_answers_in_a_file_are_read_by_the_workers(engine, tmp_path):
    answers = np.random.default_rng(0).integers(0, 5, (240, 6)).astype(np.int8)
    answers.tofile(tmp_path / "answers")
    problem = ICQF(2, item_range=(0, 4)).state(answers).problem
    stored = StoredObservations(
        StoredAnswers(str(tmp_path / "answers"), (240, 6), np.dtype(np.int8)),
        problem.design,
        dtype=problem.dtype,
    )
    begin = NamedStart("nndsvd", 2, np.random.default_rng(0))
    (here,) = run(problem, begin, tol=1e-3)
    (there,) = run(replace(problem, observations=stored), begin, tol=1e-3, engine=engine)
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    assert there.factors.scores.shape == (2, 0)


def test_a_file_that_workers_cannot_see_is_named(engine, tmp_path):
    path = tmp_path / "gone"
    problem = ICQF(2, item_range=(0, 4)).state(np.random.default_rng(0).integers(0, 5, (240, 6))).problem
    answers = StoredAnswers(str(path), (240, 6), np.dtype(np.int8))
    stored = StoredObservations(answers, problem.design, dtype=problem.dtype)
    with pytest.raises(InputError, match="gone'") as found:
        run(
            replace(problem, observations=stored),
            NamedStart("nndsvd", 2, np.random.default_rng(0)),
            tol=1e-3,
            engine=engine,
        )
    assert found.value.code == "worker-cannot-read"


# --- workers that are lost ----------------------------------------------------------------------------


def test_a_killed_worker_costs_neither_the_run_nor_the_answer(client, engine, here):
    lost = []

    def kill(progress):
        if progress.iteration == 6:
            lost.append(kill_one(client))

    same(fitted(engine, callback=kill), here)
    assert lost
    client.wait_for_workers(2, timeout=30)  # its nanny starts another one
    assert lost[0] not in client.nthreads()


def test_a_cluster_without_any_worker_left_is_one_sentence():
    """The workers are told to end during the fit, and nobody replaces them."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def end_all(progress):
            client.retire_workers()
            cluster.scale(0)

        with pytest.raises(InputError, match="No worker of the Dask cluster responds"):
            fitted(Dask(client, chunk=50), callback=end_all)


@pytest.mark.long
def test_a_worker_that_is_killed_with_a_dask_array_is_replaced(client, engine, here):
    answers = da.from_array(np.asarray(DATA.answers, float), chunks=(60, 16))

    def kill(progress):
        if progress.iteration == 4:
            kill_one(client)

    same(fitted(engine, answers, callback=kill), here)
    client.wait_for_workers(2, timeout=30)


def test_a_search_goes_on_when_a_worker_is_killed_and_chooses_the_same(client):
    settings = {"n_components": (2, 3, 4), "betas": (0.1,), "n_splits": 4, "n_repeats": 1, "random_state": 0}
    model = ICQF(**SETTINGS)
    local = ICQFCV(model, **settings).fit(DATA.answers, confounds=DATA.confounds)
    told = []

    def kill(progress):
        told.append(progress)
        if len(told) == 2:
            kill_one(client)

    there = ICQFCV(model, engine=Dask(client), callback=kill, **settings)
    there.fit(DATA.answers, confounds=DATA.confounds)
    pd.testing.assert_frame_equal(there.errors_, local.errors_)
    assert (there.n_components_, there.beta_) == (local.n_components_, local.beta_)
    assert told[-2].done == told[-2].total >= 12  # before the final fit
    client.wait_for_workers(2, timeout=30)


# --- dask arrays --------------------------------------------------------------------------------------


def parted(answers, rows=70):
    return da.from_array(np.asarray(answers, float), chunks=(rows, 7))


def test_a_dask_array_stays_with_the_workers(engine, here):
    model = fitted(engine, parted(DATA.answers))
    same(model, here)
    assert model.n_participants_ == 240
    np.testing.assert_array_equal(model.fit_statistics_.missing, here.fit_statistics_.missing)


def test_scores_of_a_dask_array_are_one(client, here):
    scores = here.transform(parted(DATA.answers), confounds=DATA.confounds)
    assert isinstance(scores, da.Array) and scores.shape == (240, 3)
    expected = here.transform(DATA.answers, confounds=DATA.confounds)
    np.testing.assert_allclose(client.compute(scores).result(), expected, atol=1e-9)


def test_weights_empty_rows_and_learned_item_weights_count_as_in_a_table(engine):
    answers = np.array(DATA.answers, float)
    answers[5] = np.nan
    weights = np.linspace(0, 2, len(answers))
    models = []
    for kind, where in ((np.asarray, "local"), (parted, engine)):
        model = ICQF(3, item_weight="variance", engine=where, **SETTINGS)
        with pytest.warns(UserWarning, match=r"1 participant answered nothing \('5'\)"):
            models.append(model.fit(kind(answers), confounds=DATA.confounds, sample_weight=weights))
    same(models[1], models[0])
    assert models[1].n_participants_ == 238


def test_answers_of_a_few_are_left_out_as_in_a_table(engine):
    answers, group = np.array(DATA.answers, float), np.resize(["a", "b", "b", "b"], 240)
    answers[np.ix_(np.flatnonzero(group == "a")[7:], [2, 5])] = np.nan
    models = []
    for kind, where in ((np.asarray, "local"), (parted, engine)):
        model = ICQF(3, engine=where, **SETTINGS)
        with pytest.warns(UserWarning, match=r"^Item 'item3' .*: 14 answers of so few are left out"):
            models.append(model.fit(kind(answers), confounds=pd.DataFrame({"group": group})))
    same(models[1], models[0])


@pytest.mark.long
def test_a_search_in_a_dask_array_chooses_by_some_participants_who_are_brought_here(engine):
    settings = {"n_components": (2, 3), "betas": (0.1,), "n_splits": 4, "random_state": 0}
    search, local = (
        ICQFCV(ICQF(item_range=(0, 100)), engine=where, **settings).fit(answers, confounds=DATA.confounds)
        for where, answers in ((engine, parted(DATA.answers)), ("local", DATA.answers))
    )
    pd.testing.assert_frame_equal(search.errors_, local.errors_)
    assert search.best_estimator_.converged_ and len(search.best_estimator_.starts_) >= 3


def test_a_dask_array_is_read_in_parts_by_the_local_engine(here):
    model = ICQF(3, **SETTINGS).fit(parted(DATA.answers), confounds=DATA.confounds)
    assert model.objective_ == pytest.approx(here.objective_, rel=1e-6)


@pytest.mark.parametrize(
    ("spoiled", "settings", "message"),
    [
        (lambda X: X, {"item_range": (0, 90)}, r"Item 'item\d+' holds 9\d\.\d+, above .* \(row \d+"),
        (lambda X: da.where(X[93, 2] == X, np.inf, X), {}, r"Item 'item3' is infinite \(row 93\)"),
        (lambda X: da.where(np.arange(16) == 2, np.nan, X), {}, "Nobody answered item 'item3'"),
        (lambda X: X[:, 0], {}, "has 1 dimension"),
        (lambda X: X[X[:, 0] > 3], {}, r"compute_chunk_sizes\(\)"),
        (lambda X: X, {"solver": "admm"}, "solver='admm' needs all answers"),
        (lambda X: X, {"init": (np.ones((240, 3)), np.ones((16, 3)))}, "needs the answers in memory"),
    ],
    ids=["range", "infinite", "empty item", "dimensions", "unknown rows", "admm", "arrays as a start"],
)
def test_what_a_dask_array_cannot_be_is_said(engine, spoiled, settings, message):
    model = ICQF(3, engine=engine, **SETTINGS | settings)
    with pytest.raises(InputError, match=message):
        model.fit(spoiled(parted(DATA.answers)))


# --- clusters that are not there ----------------------------------------------------------------------


def test_a_scheduler_that_is_not_there_is_named(soon):
    address = free_address()
    with pytest.raises(InputError, match=f"No Dask scheduler responds at {address}") as found:
        fitted(Dask(scheduler=address, chunk=40))
    assert found.value.code == "no-scheduler"


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "udp://127.0.0.1:1", "tcp://127.0.0.1:none"])
def test_an_address_that_is_none_is_named(soon, address):
    with pytest.raises(InputError, match="No Dask scheduler responds at"):
        fitted(Dask(scheduler=address, chunk=40))


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request"])
def test_something_else_that_listens_is_no_scheduler(soon, greeting):
    def greet():
        with server.accept()[0] as caller:
            caller.sendall(greeting)
            with contextlib.suppress(ConnectionError):
                caller.recv(1)  # until the other side has gone

    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = threading.Thread(target=greet)
        listener.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=f"No Dask scheduler responds at {address}"):
            fitted(Dask(scheduler=address, chunk=40))
        listener.join()


def test_no_client_at_all_is_said():
    with pytest.raises(InputError, match="no Dask client in this process"):
        ICQFCV(ICQF(**SETTINGS), engine="dask", n_components=(2, 3), betas=(0.1,)).fit(DATA.answers)


def test_a_cluster_is_one_or_the_other(client):
    with pytest.raises(InputError, match="not both"):
        Dask(client, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="the engine is not a Dask cluster"):
        engine_of("local", scheduler="tcp://127.0.0.1:1")


def test_the_current_client_serves_where_none_is_named(client):
    with client.as_current():
        assert engine_of("dask").client is client is get_client()


def test_an_address_serves_as_well_and_its_connection_is_closed(client, here):
    with Dask(scheduler=client.scheduler.address, chunk=100) as engine:
        same(fitted(engine), here)
        own = engine.client
    assert own.status == "closed" and client.status == "running"


def test_without_dask_it_is_said_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "icqf.engines.dask")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"not installed\. Install them with pip install 'icqf\[cluster\]'"):
        engine_of("dask")


def test_an_engine_that_is_sent_to_a_worker_is_the_local_one_there(client):
    assert pickle.loads(pickle.dumps(Dask(client, chunk=7))) is LOCAL
    assert clone(ICQF(engine=Dask(client))).engine.client is client


# --- the command line ---------------------------------------------------------------------------------


def command(*words):
    return CliRunner().invoke(cli, [*map(str, words)])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "answers.csv"
    answers = np.rint(np.asarray(DATA.answers) / 25)[:, :8]
    pd.DataFrame(answers, columns=[f"q{j}" for j in range(8)]).to_csv(path, index=False)
    return path


def test_the_command_line_searches_on_a_cluster(client, table):
    words = ("select", table, "--n-components", "1-2", "--beta", "0.1", "--n-splits", 4, "--quiet")
    there = command(*words, "--engine", "dask", "--scheduler", client.scheduler.address)
    assert (there.exit_code, there.stderr) == (0, "")
    assert there.stdout == command(*words).stdout


def test_the_command_line_says_what_is_wrong_with_a_cluster(soon, table):
    words = ("fit", table, "--n-components", 2, "--beta", 0.1, "--no-report")
    address = free_address()
    for more, message in (
        (("--engine", "dask", "--scheduler", address), f"No Dask scheduler responds at {address}"),
        (("--engine", "dask"), "Name the cluster's scheduler with --scheduler"),
        (("--scheduler", address), "Add --engine dask, or leave --scheduler out."),
    ):
        found = command(*words, *more)
        assert found.exit_code == 2 and message in found.stderr, found.stderr
