"""How many participants does a study need for its factors to be found again?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.analyses.simulation import drawer_of, drawn_from
from icqf.core.problem import Problem
from icqf.data.settings import SAMPLE_SIZES, check_parameter, parameter_error
from icqf.engines.parallel import Progress, run_all
from icqf.errors import counted
from icqf.models.base import FittedModel
from icqf.models.consensus import fresh_agreement
from icqf.models.statement import NewAnswers, state
from icqf.resampling.replication import FOUND

Array = NDArray[Any]
FEWEST = 20  # participants of a simulated study
MOST = 100_000
CHANCES = (0.8, 0.9)


@dataclass(frozen=True, eq=False)
class SamplePlan:
    """How likely factors are found again, by the number of participants.

    Parameters
    ----------
    curve : DataFrame
        One row per number of participants ``n``: ``mean`` (share of the factors that are found again),
        ``every`` (share of the studies that find all of them), and the share of studies that find each
        factor.
    factors : DataFrame
        By factor, and for ``mean`` and ``every``: ``n80`` and ``n90``, the participants from which on it is
        found again in 80 and in 90 of 100 studies; missing where more are needed than were tried.
    n_repeats : int
        Simulated studies of each size.
    from_scores : bool
        Whether scores were those of a pilot's participants, rather than worked out from the model alone.
    resampled : tuple of int and float, optional
        The participants of the model, and the share of its factors that another study of as many is expected
        to find, by resamples of its answers (`replication_chance`); None where the model has none.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import plan
    >>> demo = load_demo().select(["q0[0-3]*"])
    >>> found = plan(ICQF(2, beta=0.1).fit(demo), demo, sizes=(50, 200), n_repeats=10)
    >>> found.curve["n"].tolist(), found.factors.index.tolist()
    ([50, 200], ['factor1', 'factor2', 'mean', 'every'])
    """

    curve: pd.DataFrame
    factors: pd.DataFrame
    n_repeats: int
    from_scores: bool
    resampled: tuple[int, float] | None = None

    @property
    def caution(self) -> str:
        """How far to trust it, with what resamples of the model's own answers say where they say less."""
        said = (
            "These numbers are lower limits: the simulated studies contain only the model's factors. "
            "With real answers, several times as many may be needed."
        )
        if self.resampled is None:
            return said
        n, share = self.resampled
        simulated = float(np.interp(n, self.curve["n"], self.curve["mean"]))
        if simulated < share + 0.05:
            return said
        return (
            f"{said} Resamples of the answers behind the model suggest that another study of {n} "
            f"participants finds {share:.0%} of the factors; the simulations say {simulated:.0%}."
        )

    @property
    def sentence(self) -> str:
        """What to write into a grant."""
        names = [name for name in self.factors.index if name not in ("mean", "every")]
        needed = dict(self.factors.loc["mean"])
        k = counted(len(names), "factor")
        studies = "one study" if self.n_repeats == 1 else f"{self.n_repeats} studies"
        head = (
            f"In simulations from the fitted model ({studies} of each size), a factor counts "
            f"as found again when its loadings correlate at least {FOUND:g} with those of the model."
        )
        most, last = int(self.curve["n"].max()), self.curve.iloc[-1]
        parts = []
        for chance, column in zip(CHANCES, ("n80", "n90"), strict=True):
            share = f"{100 * chance:.0f} %"
            if np.isnan(needed[column]):
                parts.append(f"{share} of the {k} would need more than {most} participants")
            else:
                parts.append(f"{share} of the {k} are found again with {self._said(needed[column])}")
        hardest = self.factors.loc[names, "n80"]
        weak = hardest[hardest.isna()].index.tolist()
        if weak:
            lows = ", ".join(f"{name} ({last[name]:.0%})" for name in weak)
            tail = (
                f" With {most} participants these are still found in fewer than 80 % of the studies: {lows}."
            )
        else:
            tail = f" Every factor has a chance of 80 % with {self._said(hardest.max())}"
            most_needy = hardest[hardest == hardest.max()].index
            tail += f"; {most_needy[0]} needs most." if len(most_needy) == 1 < len(names) else "."
        return f"{head} {'; '.join(parts)}.{tail}"

    def _said(self, n: float) -> str:
        """A number of participants; the smallest that was tried may be more than are needed."""
        return f"{int(n)} participants{' or fewer' if n == self.curve['n'].min() else ''}"


def plan(
    model: FittedModel,
    X: Any = None,
    *,
    confounds: Any = None,
    sizes: Sequence[int] = SAMPLE_SIZES,
    n_repeats: int = 20,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
    random_state: Any = 0,
) -> SamplePlan:
    """Predict how many participants a study needs for the factors of a model to be found again.

    Studies of several sizes are simulated from the model and fitted afresh with its number of factors and β;
    a factor is found again where the loadings of its counterpart correlate at least 0.8 with its own.

    Parameters
    ----------
    model : fitted ICQF
        The model of a pilot or of an earlier study.
    X : table, array (n, m) or Questionnaire, optional
        The pilot's answers, from whose participants scores and errors are drawn. None: from the model alone,
        which holds no participant's data; see `icqf.analyses.simulation.drawer_of`.
    confounds : table, optional
        Of the same participants.
    sizes : sequence of int
        Numbers of participants to try.
    n_repeats : int
        Simulated studies of each size.
    n_jobs : int, optional
        Processes; the result does not depend on it.
    checkpoint : path, optional
        Journal of finished work, from which an interrupted run is continued.
    callback : callable, optional
        Told about the progress.
    random_state : int, RandomState or None

    Returns
    -------
    SamplePlan

    Notes
    -----
    The simulated studies contain only the model's factors, and its loadings are taken as true: with
    real answers, expect to need several times as many participants (docs/planning.md has a comparison).

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import plan
    >>> model = ICQF(2, beta=0.1).fit(load_demo().select(["q0[0-3]*"]))
    >>> found = plan(model, sizes=(50, 200), n_repeats=10)
    >>> bool(found.curve["mean"].iloc[-1] >= found.curve["mean"].iloc[0] - 0.2)
    True
    """
    check_is_fitted(model)
    check_parameter("n_repeats", n_repeats)
    wanted = _sizes(sizes, len(model.components_))
    pilot = None
    if X is not None:
        problem = state(model, NewAnswers(model, X, confounds)).problem
        pilot = (problem, model.solve_scores(problem))
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    jobs = {
        f"{n} {number}": (model, pilot, n, (seed, n, number)) for n in wanted for number in range(n_repeats)
    }
    done = run_all(
        jobs,
        _found_again,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    names = [str(name) for name in model.get_feature_names_out()]
    rows = []
    for n in wanted:
        found = np.array([done[f"{n} {number}"]["agreement"] for number in range(n_repeats)]) >= FOUND
        shares = dict(zip(names, found.mean(axis=0).tolist(), strict=True))
        rows.append({"n": n, "mean": float(found.mean()), "every": float(found.all(axis=1).mean()), **shares})
    curve = pd.DataFrame(rows)
    needed = {name: [needed_for(curve["n"], curve[name], chance) for chance in CHANCES] for name in
              (*names, "mean", "every")}  # fmt: skip
    factors = pd.DataFrame.from_dict(needed, orient="index", columns=["n80", "n90"]).rename_axis("factor")
    chances = getattr(model, "replication_", None)  # of an ICQF
    resampled = None if chances is None else (model.n_participants_, float(chances["chance"].mean()))
    return SamplePlan(curve, factors, n_repeats, pilot is not None, resampled)


def needed_for(n: Any, share: Any, chance: float) -> float:
    """Participants from which on a share is reached; NaN where it never is.

    More participants never hurt, so the shares are first made not to fall; between two sizes the number of
    participants is interpolated on its logarithm and rounded up to tens.
    """
    size = np.asarray(n, dtype=float)
    rising = IsotonicRegression(increasing=True).fit_transform(np.log(size), np.asarray(share, dtype=float))
    enough = np.flatnonzero(rising >= chance - 1e-12)
    if not len(enough):
        return float("nan")
    first = int(enough[0])
    if first == 0:
        return float(size[0])
    below, above = rising[first - 1], rising[first]
    at = (chance - below) / (above - below)
    exact = np.exp((1 - at) * np.log(size[first - 1]) + at * np.log(size[first]))
    return float(10 * np.ceil(exact / 10 - 1e-9))


def _sizes(sizes: Sequence[int], k: int) -> list[int]:
    found = sorted({int(size) for size in sizes})
    least = max(FEWEST, 2 * k)
    if not found or found[0] < least or found[-1] > MOST:
        odd = found[0] if found and found[0] < least else found[-1] if found else "nothing"
        raise parameter_error(
            "sizes",
            f" holds {odd}; give numbers of participants between {least} and {MOST}, such as 100 200 400.",
        )
    return found


def _found_again(
    model: FittedModel, pilot: tuple[Problem, Array] | None, n: int, seed: Any
) -> dict[str, list[float]]:
    """Correlation of each factor with its counterpart in one simulated study, fitted afresh."""
    rng = np.random.default_rng(seed)
    problem = drawer_of(model)(rng, n) if pilot is None else drawn_from(model, *pilot, rng, n, gaps=True)
    loadings = problem.scaled_loadings(model.components_)
    return {"agreement": fresh_agreement(problem, loadings, float(model.beta)).tolist()}
