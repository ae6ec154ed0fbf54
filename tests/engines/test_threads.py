"""Linear algebra on one thread, and how many threads of ours there may be instead."""

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_limits

from icqf import ICQF, ICQFCV, consensus
from icqf.baselines import FactorAnalysis, nest, parallel_analysis, reliability
from icqf.datasets import load_demo
from icqf.engines.threads import on_one_thread, one_blas_thread
from icqf.models.score_intervals import score_intervals

DEMO = load_demo()
ANSWERS = DEMO.answers


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def blas_threads():
    return {each.num_threads for each in ThreadpoolController().select(user_api="blas").lib_controllers}


@pytest.mark.usefixtures("two_threads")
def test_blas_has_one_thread_inside_and_its_own_number_again_outside():
    assert blas_threads() == {2}
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            pass
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_threads_of_ours_are_as_many_as_blas_had_and_one_beside_other_processes():
    assert one_blas_thread.allowed() == 2
    with one_blas_thread():
        assert one_blas_thread.allowed() == 2
        assert on_one_thread(one_blas_thread.allowed) == 1
    assert on_one_thread(blas_threads) == {1}
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda: 1 / 0)
    assert (one_blas_thread.allowed(), blas_threads()) == (2, {2})


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    "call",
    [
        lambda: ICQFCV(ICQF(random_state=0, n_init=1), n_components=[2, 3], n_splits=3).fit(DEMO),
        lambda: consensus(ICQF(3, random_state=0).fit(DEMO), DEMO, n_resamples=100),
        lambda: FactorAnalysis(3).fit(ANSWERS),
        lambda: parallel_analysis(ANSWERS, n_iter=20),
        lambda: nest(ANSWERS, n_iter=20),
        lambda: reliability(ANSWERS),
        lambda: score_intervals(ICQF(3, random_state=0).fit(DEMO), DEMO),
    ],
    ids=["search", "consensus", "factor analysis", "parallel analysis", "nest", "reliability", "intervals"],
)
def test_what_decomposes_small_matrices_again_and_again_does_so_on_one_thread(call, monkeypatch):
    seen = []
    for module in (np.linalg, scipy.linalg):
        for name in ("eigh", "eigvalsh", "inv", "svd", "solve", "pinv"):
            own = getattr(module, name)

            def spy(*arguments, own=own, **more):
                seen.append(max(each.num_threads for each in one_blas_thread.libraries.lib_controllers))
                return own(*arguments, **more)

            monkeypatch.setattr(module, name, spy)
    call()
    assert seen
    assert set(seen) == {1}
