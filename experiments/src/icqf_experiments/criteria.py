"""Other ways to choose the number of factors: BIC, cophenetic correlation and dispersion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform
from sklearn.utils import check_random_state

from icqf.baselines.retention import FactorCount
from icqf.core.problem import Problem
from icqf.core.start import Starts
from icqf.engines.choice import run
from icqf.engines.parallel import in_parallel
from icqf.errors import InputError
from icqf.models.icqf import ICQF
from icqf.resampling import tolerances

Array = NDArray[Any]


def bic(
    model: ICQF, X: Any, ks: Sequence[int], *, confounds: Any = None, n_jobs: int | None = None
) -> FactorCount:
    """BIC₁ of the paper: log of the squared error plus a cost for each factor.

    BIC₁(k) = log ‖M − R‖² + k (m + n)/N · log(N/(m + n)), over the N observed answers (N = nm if
    nothing is missing).

    Parameters
    ----------
    model : ICQF
        The settings to fit with; its `n_components` is not used.
    X, confounds
        As for `ICQF.fit`.
    ks : sequence of int
        Numbers of factors to try.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf_experiments.criteria import bic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> bic(ICQF(item_range=(0, 100)), answers, range(2, 7)).n_components
    4
    """
    problem, ks = _prepared(model, X, confounds, ks)
    n_answers = sum(block.X.size if block.O is None else float(block.O.sum()) for block in problem.blocks())
    each = (problem.m + problem.n) / n_answers * np.log(n_answers / (problem.m + problem.n))
    errors = in_parallel(_squared_error, [(problem, k, model.max_iter) for k in ks], n_jobs=n_jobs)
    values = [float(np.log(max(error, 1e-300)) + k * each) for k, error in zip(ks, errors, strict=True)]
    curve = pd.DataFrame({"n_components": ks, "bic": values, "squared_error": errors})
    k = ks[int(np.argmin(values))]
    return FactorCount(
        "BIC₁", k, curve, f"{k} factors balance error and number of factors best.", better="lower"
    )


def cophenetic(model: ICQF, X: Any, ks: Sequence[int], **options: Any) -> FactorCount:
    """Cophenetic correlation: do fits from random starts put the same participants together?

    Each participant belongs to the factor with the highest score. The share of starts in which two
    participants belong together is the consensus; the cophenetic correlation says how well a tree
    describes it, 1 being perfect. The number with the highest correlation is chosen, the largest of equals.
    `options` are those of `consensus_curve`, and `confounds`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf_experiments.criteria import cophenetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> cophenetic(ICQF(item_range=(0, 100)), answers, [2, 3], n_starts=3).curve["n_components"].tolist()
    [2, 3]
    """
    return _from_consensus("Cophenetic correlation", "cophenetic", model, X, ks, **options)


def dispersion(model: ICQF, X: Any, ks: Sequence[int], **options: Any) -> FactorCount:
    """Dispersion: how close the consensus of fits from random starts is to all-or-nothing.

    The mean of 4(c − ½)² over pairs of participants, where c is the share of starts in which they belong
    together; 1 when every start agrees. `options` are those of `consensus_curve`, and `confounds`.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf_experiments.criteria import dispersion
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> dispersion(ICQF(item_range=(0, 100)), answers, [2, 3], n_starts=3).better
    'higher'
    """
    return _from_consensus("Dispersion", "dispersion", model, X, ks, **options)


def _from_consensus(
    method: str,
    value: str,
    model: ICQF,
    X: Any,
    ks: Sequence[int],
    *,
    confounds: Any = None,
    n_starts: int = 10,
    **options: Any,
) -> FactorCount:
    problem, ks = _prepared(model, X, confounds, ks)
    if ks[0] < 2:
        raise InputError("One factor does not separate participants; try numbers of factors from 2 on.")
    curve = consensus_curve(problem, ks, n_starts=n_starts, max_iter=model.max_iter, **options)
    numbers = curve[value].to_numpy()
    k = int(max(np.array(ks)[numbers >= numbers.max() - 1e-9]))
    reason = f"with {k} factors, fits from {n_starts} random starts agree best on who belongs together."
    return FactorCount(method, k, curve[["n_components", value]], reason, better="higher")


def consensus_curve(
    problem: Problem,
    ks: Sequence[int],
    *,
    n_starts: int = 10,
    n_jobs: int | None = None,
    random_state: Any = 0,
    max_iter: int = 500,
) -> pd.DataFrame:
    """Cophenetic correlation and dispersion for each number of factors."""
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    tasks = [(problem, k, n_starts, [seed, k], max_iter) for k in ks]
    return pd.DataFrame(in_parallel(_agreement_of_starts, tasks, n_jobs=n_jobs))


def _prepared(model: ICQF, X: Any, confounds: Any, ks: Sequence[int]) -> tuple[Problem, list[int]]:
    problem = model.state(X, confounds=confounds).problem
    numbers = sorted({int(k) for k in ks})
    if not numbers or numbers[0] < 1 or numbers[-1] > min(problem.n, problem.m):
        raise InputError(
            f"The numbers of factors are {numbers}; they must be between 1 and {min(problem.n, problem.m)}."
        )
    return problem, numbers


def _squared_error(problem: Problem, k: int, max_iter: int) -> float:
    start = Starts(problem).make("nndsvd", k)
    (fit,) = run(problem, start, tol=tolerances.RESAMPLE, max_iter=max_iter, exact=False)
    A, total = problem.with_confounds(fit.factors.scores), 0.0
    for block in problem.blocks():
        D = block.masked(block.X - A[:, block.rows].T @ fit.factors.loadings)
        total += float(np.vdot(D, D))
    return total


def _agreement_of_starts(
    problem: Problem, k: int, n_starts: int, seed: list[int], max_iter: int
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    together = np.zeros((problem.n, problem.n))
    starts = Starts(problem)
    random = [starts.make("random", k, rng) for _ in range(n_starts)]
    for fit in run(problem, random, tol=tolerances.RESAMPLE, max_iter=max_iter, exact=False):
        scores = fit.factors.scores * np.linalg.norm(fit.factors.loadings[:k], axis=1)[:, None]
        belongs = scores.argmax(axis=0)
        together += belongs[:, None] == belongs[None, :]
    together /= n_starts
    distance = squareform(1 - together, checks=False)
    tree = average(distance)
    correlation = 1.0 if np.ptp(distance) == 0 else float(cophenet(tree, distance)[0])
    return {
        "n_components": k,
        "cophenetic": correlation,
        "dispersion": float((4 * (together - 0.5) ** 2).mean()),
    }
