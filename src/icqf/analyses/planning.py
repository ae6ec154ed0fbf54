"""How many participants a study needs for its factors to replicate, and whom studies are simulated from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.start import Starts
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import SAMPLE_SIZES, check_parameter, parameter_error
from icqf.engines.choice import run
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted, listed
from icqf.models.icqf import ICQF
from icqf.models.statement import NewAnswers, state
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import best_fits
from icqf.resampling.folds import units_of
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.replication import FOUND, ONE_ITEM, fisher_z, probability_of, stepped_up, strongest_share

Array = NDArray[Any]
_LOOSEST = 0.05  # a + b of a Beta; with less, nearly all answers are the lowest or the highest
_WIDEST = 0.49  # standard deviation of scores between 0 and 1; at one half all are 0 or 1
_ROUNDS, _REFITS = 4, 2  # of the search for a population: corrections, and simulated studies for each
_STEP = 1.5  # a correction multiplies by no more than this, and by no less than its inverse


@dataclass(frozen=True, eq=False)
class Population:
    """Whom studies are simulated from: a model with loadings, scores and errors that may not be its own.

    Scores have a Beta distribution whose mean is its standard deviation (many with little, few with much).
    Answers have a Beta distribution about what the model expects, confounds are drawn by their shares and
    ranges, and answers are missing as often as in the fit.
    """

    model: ICQF
    loadings: Array  # (k, m), in the items' own units
    covariance: Array  # (k, k) of the scores
    noise: Array  # (m,), standard deviation of the answers about what is expected, in the items' own units

    @classmethod
    def of(cls, model: ICQF) -> Population:
        """The population that the model's statistics show, with the errors of its fit taken for truth."""
        counted = np.maximum(model.n_participants_ - model.fit_statistics_.missing, 1)
        noise = np.sqrt(model.fit_statistics_.sse / counted) / model.item_scale_
        return cls(model, model.components_, score_covariance(model), noise)

    def strengths(self) -> Array:
        """How much each factor moves the answers (k,): in scores alone, a scale would be arbitrary."""
        return np.asarray(np.sqrt(self.covariance.diagonal() * (self.loadings**2).sum(axis=1)))

    def draw(self, rng: np.random.Generator, n: int) -> Problem:
        """The problem of n participants."""
        model, variance = self.model, self.covariance.diagonal()
        top = model.score_max or 4 * float(np.sqrt(variance.max()))
        deviation = np.clip(np.sqrt(variance) / top, 1e-3, _WIDEST)
        root = np.linalg.cholesky(_definite(_correlation(self.covariance)))
        spread = (1 - deviation) / deviation - 1  # a + b of a Beta whose mean is its standard deviation
        uniform = stats.norm.cdf(rng.standard_normal((n, len(deviation))) @ root.T)
        scores = top * stats.beta.ppf(uniform, deviation * spread, (1 - deviation) * spread)
        confounds = _confounds(model, rng, n)
        R = scores @ self.loadings + model.confound_encoder_.transform(confounds, n_rows=n) @ (
            model.confound_components_
        )
        low, high = model.item_range_.to_numpy().T
        expected = np.clip(R / (high - low), 1e-3, 1 - 1e-3)
        widest = (expected * (1 - expected)).mean(axis=0)
        noise = np.maximum(self.noise, 1e-6 * (high - low))
        tight = np.maximum(widest * ((high - low) / noise) ** 2 - 1, _LOOSEST)  # a + b of a Beta
        answers = low + (high - low) * rng.beta(expected * tight, (1 - expected) * tight)
        gaps = model.fit_statistics_.missing / model.n_participants_
        answers[rng.random(answers.shape) < gaps] = np.nan
        table = pd.DataFrame(answers, columns=[str(name) for name in model.item_range_.index])
        named = hasattr(model, "feature_names_in_")
        return state(model, NewAnswers(model, table if named else answers, confounds)).problem


@dataclass(frozen=True, eq=False)
class Populations:
    """The populations that a model's sample may have come from."""

    # whose samples, fitted afresh, show the spread of scores and the errors that the model shows
    centre: Population
    errors: Array  # (k, m), mean squared error of loadings in such fits, in the items' own units

    @classmethod
    def behind(cls, model: ICQF, rng: np.random.Generator) -> Populations:
        """Find them by fitting simulated studies of the model's own size.

        Fitted scores and loadings hold some of the sample's errors: scores vary more than true ones, and
        answers lie closer to what is expected. So the spread of scores and errors is corrected until fits to
        simulated studies show what the model shows.
        """
        shown = centre = Population.of(model)
        wanted, squares = shown.strengths(), []
        for number in range(_ROUNDS):
            fits = [_refit(centre, rng) for _ in range(_REFITS)]
            if number:  # the first ones come from errors that are too small
                squares += [(fit.loadings - model.components_) ** 2 for fit in fits]
            found = np.mean([fit.strengths() for fit in fits], axis=0)
            together = np.mean([_correlation(fit.covariance) for fit in fits], axis=0)
            left = np.sqrt(np.mean([fit.noise**2 for fit in fits], axis=0))
            step = 1 / (number + 1)  # ever smaller ones, so that the chance in the fits averages out
            size = np.sqrt(centre.covariance.diagonal()) * _within(wanted / np.maximum(found, 1e-12)) ** step
            related = _correlation(centre.covariance) + step * (_correlation(shown.covariance) - together)
            related[np.diag_indices(len(size))] = 1
            centre = replace(
                centre,
                covariance=_definite(related) * np.outer(size, size),
                noise=centre.noise * _within(shown.noise / np.maximum(left, 1e-12)) ** step,
            )
        return cls(centre, np.mean(squares, axis=0))

    def draw(self, rng: np.random.Generator) -> Population:
        """One of them: loadings shrunken by what is error in their differences, and drawn about that."""
        Q, mean = self.centre.loadings, self.centre.loadings.mean(axis=1, keepdims=True)
        varying = np.maximum(Q.var(axis=1, keepdims=True), 1e-12)
        real = np.clip(1 - self.errors.mean(axis=1, keepdims=True) / varying, 0, 1)
        drawn = mean + real * (Q - mean) + np.sqrt(real * self.errors) * rng.standard_normal(Q.shape)
        spans = np.ptp(self.centre.model.item_range_.to_numpy(), axis=1)
        return replace(self.centre, loadings=np.clip(drawn, 0, spans))


def _refit(population: Population, rng: np.random.Generator) -> Population:
    """What a fit to a new sample shows."""
    model, k = population.model, len(population.loadings)
    problem = population.draw(rng, model.n_participants_).without_reconstruction_bound()
    start = Starts(problem).make("nndsvd", k)
    settings: dict[str, Any] = {"tol": tolerances.RESAMPLE, "max_iter": tolerances.MAX_ITER, "exact": False}
    (fit,) = run([problem], [start], **settings)
    scores, loadings = fit.factors.scores.astype(float), fit.factors.loadings.astype(float)
    order, _ = aligned(problem.scaled_loadings(model.components_), loadings[:k])
    covariance = np.atleast_2d(np.cov(scores[order]))
    observed = problem.answers >= 0
    expected = problem.with_confounds(scores).T @ loadings / model.item_scale_
    squares = np.where(observed, problem.answers - expected, 0) ** 2
    noise = np.sqrt(squares.sum(axis=0) / np.maximum(observed.sum(axis=0), 1))
    return Population(model, loadings[:k][order] / model.item_scale_, covariance, noise)


def _within(factor: Array) -> Array:
    return np.clip(factor, 1 / _STEP, _STEP)


def _correlation(covariance: Array) -> Array:
    size = np.sqrt(np.maximum(covariance.diagonal(), 1e-12))
    return np.asarray(covariance / np.outer(size, size))


def score_covariance(model: ICQF) -> Array:
    """Covariance (k, k) of the scores that the model was fitted with, as far as its statistics tell.

    A factor r explains Σ_i (x_ij − x̄_j)(w_ir − w̄_r) q_jr of an item j, which divided by q_jr n is the
    covariance of answers and scores, and so, but for the errors, Σ_s q_js cov(w_s, w_r).
    """
    scale, k = model.item_scale_, len(model.components_)
    Q, n = model.components_ * scale, model.n_participants_
    found = np.zeros((k, k))
    for r in range(k):
        loaded = Q[r] > 1e-3 * max(Q[r].max(), 1e-12)
        together = model.fit_statistics_.explained[r, loaded] / (Q[r, loaded] * n)
        weight = np.sqrt(Q[r, loaded])  # small loadings tell little
        found[:, r] = np.linalg.lstsq(Q[:, loaded].T * weight[:, None], together * weight, rcond=1e-6)[0]
    found = (found + found.T) / 2
    least = 1e-4 * max(float(found.diagonal().max()), 1e-4)
    found[np.diag_indices(k)] = np.maximum(found.diagonal(), least)
    return found


def _definite(correlation: Array) -> Array:
    """The nearest correlations, roughly, that some scores could have."""
    values, vectors = np.linalg.eigh(np.clip(correlation, -0.99, 0.99) + np.eye(len(correlation)) * 1e-9)
    fixed = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    size = np.sqrt(fixed.diagonal())
    return fixed / np.outer(size, size)


def _confounds(model: ICQF, rng: np.random.Generator, n: int) -> pd.DataFrame | None:
    columns: dict[str, Any] = {}
    for column in model.confound_encoder_.columns:
        if column.categories is None:
            columns[column.name] = rng.uniform(column.low, column.high, n)
        else:
            shares = np.asarray(column.shares) / np.sum(column.shares)
            at = rng.choice(len(shares), n, p=shares)
            columns[column.name] = pd.Series([column.categories[each] for each in at], dtype=object)
    return pd.DataFrame(columns) if columns else None


FEWEST = 20  # participants of a study
MOST = 100_000
PROBABILITIES = (0.8, 0.9)
BELOW = 4  # halves say nothing about studies of fewer than this part of their participants
BEYOND = 2  # times a pilot's participants: of larger studies it says nothing
OTHER_COLUMNS = ("n", "source", "mean", "every")
# Learned by `icqf reproduce calibration --statement planning-answers`: log odds that a second study finds a
# factor, by Fisher's z of the mean agreement of pairs of studies, and by the logarithm of size / 200.
FROM_ANSWERS = {"intercept": -3.28, "agreement": 3.56, "size": 0.45}
FITTING_PAIRS = "Fitting pairs of studies"
SUBSAMPLES, STEPPED_UP, HALVES, SIMULATED = "subsamples", "stepped up", "halves", "simulated"


@dataclass(frozen=True, eq=False)
class SamplePlan:
    """How likely factors are found again, by the number of participants.

    Parameters
    ----------
    curve : DataFrame
        One row per number of participants ``n``: ``source`` ("subsamples" of a pilot, "stepped up" from its
        halves, "halves" that the model remembers, or "simulated" from the model), ``mean`` (share of the
        factors that are found again), ``every`` (probability that all are, as if factors were found
        independently; share of pairs where they are simulated), and the probability of each factor.
    factors : DataFrame
        By factor, and for ``mean`` and ``every``: ``n80`` and ``n90``, the participants from which on it is
        found again in 80 and in 90 of 100 studies; missing where more are needed than were tried.
    n_repeats : int
        Pairs of studies of each size; 0 where the model's halves say all.
    n_pilot : int or None
        Participants of the study that was divided; None where studies were simulated.
    left_out : tuple of str
        Factors that one item carries, about which halves say nothing.
    """

    curve: pd.DataFrame
    factors: pd.DataFrame
    n_repeats: int
    n_pilot: int | None
    left_out: tuple[str, ...] = ()

    @property
    def caution(self) -> str:
        """Where the numbers come from, and how far to trust them."""
        if self.n_pilot is None:
            return (
                "The model holds neither answers nor the agreement of halves, so studies were simulated, "
                "allowing for the sampling error of the model. Real answers contain more than a model's "
                "factors, and these numbers are too low for them: plan from the answers, or from a model "
                "whose replication was estimated, as icqf fit does."
            )
        if not self.n_repeats:
            return (
                f"These numbers come from the agreement of halves of the {self.n_pilot} participants, "
                "stepped to each size by the Spearman–Brown formula, as the replication probability "
                f"is. Nothing is said about fewer than {-(-self.n_pilot // BELOW)} participants, a quarter, "
                f"or more than {BEYOND * self.n_pilot}, twice as many; a plan from answers also says "
                "what smaller studies find. "
                f"{self._left_out}One study is one sample; another would give a somewhat different curve."
            )
        stepped = self.curve.loc[self.curve["source"] == STEPPED_UP, "n"]
        said = f"Up to {self.n_pilot // 2} participants, the studies are disjoint subsamples of the pilot."
        if len(stepped):
            said += (
                " For larger ones, the agreement of its halves was stepped up by the Spearman–Brown formula."
            )
        return (
            f"{said} Nothing is said about more than {BEYOND * self.n_pilot} participants, twice the pilot. "
            "One pilot is one sample; another would give a somewhat different curve."
        )

    @property
    def _left_out(self) -> str:
        if not self.left_out:
            return ""
        carried = (
            "each of which is carried by one item" if len(self.left_out) > 1 else "which one item carries"
        )
        return f"Nothing is said about {listed(self.left_out)}, {carried}. "

    @property
    def sentence(self) -> str:
        """What to write into a grant."""
        names = [name for name in self.factors.index if name not in OTHER_COLUMNS]
        needed = dict(self.factors.loc["mean"])
        k = counted(len(names), "factor")
        fitted = counted(len(names) + len(self.left_out), "factor")
        pairs = f"{counted(self.n_repeats, 'pair')} of" if self.n_repeats else "two"
        head = (
            f"In {pairs} independent studies of each size, both fitted with {fitted}, a factor counts as "
            f"found again when the loadings of its counterpart in the second study correlate at least "
            f"{FOUND:g} with its own."
        )
        most, last = int(self.curve["n"].max()), self.curve.iloc[-1]
        parts = []
        for probability, column in zip(PROBABILITIES, ("n80", "n90"), strict=True):
            share = f"{100 * probability:.0f} %"
            if np.isnan(needed[column]):
                parts.append(f"{share} of the {k} would need more than {most} participants")
            else:
                parts.append(f"{share} of the {k} are found again with {self._shown(needed[column])}")
        hardest = self.factors.loc[names, "n80"]
        weak = hardest[hardest.isna()].index.tolist()
        if weak:
            lows = ", ".join(f"{name} ({last[name]:.0%})" for name in weak)
            tail = (
                f" With {most} participants these are still found in fewer than 80 % of the studies: {lows}."
            )
        else:
            tail = f" Every factor has a replication probability of 80 % with {self._shown(hardest.max())}"
            most_needy = hardest[hardest == hardest.max()].index
            tail += f"; {most_needy[0]} needs most." if len(most_needy) == 1 < len(names) else "."
        return f"{head} {'; '.join(parts)}.{tail}"

    def _shown(self, n: float) -> str:
        """A number of participants; the smallest that was tried may be more than are needed."""
        return f"{int(n)} participants{' or fewer' if n == self.curve['n'].min() else ''}"


def plan(
    model: ICQF,
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
    """Predict how many participants a study needs for the factors of a model to replicate.

    For each size, pairs of independent studies are fitted afresh with the model's number of factors and β;
    a factor is found again where the loadings of its counterpart in the second study correlate at least 0.8
    with its own. A study's factors are matched with the model's to know which is which.

    Parameters
    ----------
    model : fitted ICQF
        The model of a pilot or of an earlier study.
    X : table, array (n, m) or Questionnaire, optional
        The pilot's answers. Up to half of its participants, the studies are two disjoint subsamples of it;
        up to twice its participants, the agreement of its halves is stepped up (see Notes); larger sizes are
        left out. None: from the model, which holds no participant's data but remembers how well halves
        agreed where its replication was estimated; where it was not, studies are simulated.
    confounds : table, optional
        Of the same participants.
    sizes : sequence of int
        Numbers of participants to try.
    n_repeats : int
        Pairs of studies of each size.
    n_jobs, checkpoint, callback, random_state
        As for `icqf.ICQFCV`.

    Notes
    -----
    Two disjoint subsamples of a pilot are two independent samples, so that what they say holds for studies
    of their size, whatever the answers contain. The agreement r of two halves becomes t r / (1 + (t − 1) r)
    in studies t times as large (Spearman–Brown). But all subsamples are of one pilot: what their mean
    agreement means for other studies was learned (`icqf reproduce calibration`). How simulated studies
    allow for the error of the model is described in `icqf.analyses.planning.Populations`. docs/planning.md
    compares what is said with what is found in public studies.

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
    settings: dict[str, Any] = {"n_jobs": n_jobs, "checkpoint": checkpoint, "callback": callback}
    settings |= {"n_repeats": n_repeats, "random_state": random_state}
    names = [str(name) for name in model.get_feature_names_out()]
    if X is None:
        table = getattr(model, "replication_", None)  # of an ICQF
        if table is not None:
            n = model.n_participants_
            wanted = _within_reach([size for size in wanted if BELOW * size >= n], n)
            alone = (table["largest"] > ONE_ITEM).to_numpy()
            if alone.all():
                raise InputError(
                    "One item carries each factor of this model: there is no factor to plan for. Fit fewer "
                    "factors, or plan from answers."
                )
            shared = [name for name, one in zip(names, alone, strict=True) if not one]
            by_halves = {
                size: probability_of(stepped_up(table["halves"], size / n), table["largest"])[~alone]
                for size in wanted
            }
            rows = [_row(size, HALVES, each, shared) for size, each in by_halves.items()]
            return replace(
                _plan_of(rows, shared, 0, n),
                left_out=tuple(name for name, one in zip(names, alone, strict=True) if one),
            )
        populations = Populations.behind(model, _generator(random_state))
        agreement = simulated_agreement(model, populations, sizes=wanted, **settings)
        found = {n: agreement[n] >= FOUND for n in wanted}
        rows = [
            _row(n, SIMULATED, each.mean(axis=0), names, float(each.all(axis=1).mean()))
            for n, each in found.items()
        ]
        return _plan_of(rows, names, n_repeats, None)
    n_pilot = state(model, NewAnswers(model, X, confounds)).problem.n
    half, wanted = n_pilot // 2, _within_reach(wanted, n_pilot)
    if half < max(FEWEST, 2 * len(names)):
        raise InputError(
            f"The pilot has {counted(n_pilot, 'participant')}; two studies of at least "
            f"{max(FEWEST, 2 * len(names))} are needed to plan from answers."
        )
    below = [n for n in wanted if n <= half] + [half] * (wanted[-1] > half and half not in wanted)
    found = subsampled_agreement(model, X, confounds=confounds, sizes=below, **settings)
    rows = [
        _row(
            n,
            SUBSAMPLES if n <= half else STEPPED_UP,
            _likely(n, stepped_up(found[min(n, half)], max(n / half, 1))),
            names,
        )
        for n in wanted
    ]
    return _plan_of(rows, names, n_repeats, n_pilot)


def subsampled_agreement(
    model: ICQF,
    X: Any,
    *,
    confounds: Any = None,
    sizes: Sequence[int],
    n_repeats: int,
    random_state: Any = 0,
    **settings: Any,
) -> dict[int, Array]:
    """By size, agreement (n_repeats, k) of each factor's counterparts in disjoint subsamples of answers."""
    stated = state(model, NewAnswers(model, X, confounds))
    units = units_of(stated.problem, X.groups if isinstance(X, Questionnaire) else None, stated.kept)
    shared = (model, stated.problem, units)
    return _pairs_of_studies(_subsampled, shared, sizes, n_repeats, random_state, **settings)


def simulated_agreement(
    model: ICQF,
    populations: Populations,
    *,
    sizes: Sequence[int],
    n_repeats: int,
    random_state: Any = 0,
    **settings: Any,
) -> dict[int, Array]:
    """By size, agreement (n_repeats, k) of each factor's counterparts in two studies of a population."""
    return _pairs_of_studies(_simulated, (model, populations), sizes, n_repeats, random_state, **settings)


def needed_for(n: Any, share: Any, probability: float) -> float:
    """Participants from which on a share is reached; NaN where it never is.

    More participants never hurt, so the shares are first made not to fall; between two sizes the number of
    participants is interpolated on its logarithm and rounded up to tens.
    """
    size = np.asarray(n, dtype=float)
    rising = IsotonicRegression(increasing=True).fit_transform(np.log(size), np.asarray(share, dtype=float))
    enough = np.flatnonzero(rising >= probability - 1e-12)
    if not len(enough):
        return float("nan")
    first = int(enough[0])
    if first == 0:
        return float(size[0])
    below, above = rising[first - 1], rising[first]
    at = (probability - below) / (above - below)
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


def _within_reach(sizes: Sequence[int], n: int) -> list[int]:
    """The sizes that a study of n participants says something about."""
    found = [size for size in sizes if size <= BEYOND * n]
    if not found:
        raise InputError(
            f"A study of {counted(n, 'participant')} says nothing about these sizes; give some between "
            f"{-(-n // BELOW)} and {BEYOND * n}."
        )
    return found


def _likely(n: int, agreement: Array) -> Array:
    """How likely a second study of n participants finds each factor, from the agreement (pairs, k)."""
    z = fisher_z(agreement.mean(axis=0))
    logit = FROM_ANSWERS["intercept"] + FROM_ANSWERS["agreement"] * z + FROM_ANSWERS["size"] * np.log(n / 200)
    return np.asarray(1 / (1 + np.exp(-logit)))


def _row(
    n: int, source: str, probabilities: Array, names: Sequence[str], every: float | None = None
) -> dict[str, Any]:
    """A row of the curve, from the probability of each factor, and of all if these are not independent."""
    every = float(probabilities.prod()) if every is None else every
    about = {"n": n, "source": source, "mean": float(probabilities.mean()), "every": every}
    return {**about, **dict(zip(names, probabilities.tolist(), strict=True))}


def _plan_of(
    rows: Sequence[dict[str, Any]], names: Sequence[str], n_repeats: int, n_pilot: int | None
) -> SamplePlan:
    curve = pd.DataFrame(rows)
    needed = {
        name: [needed_for(curve["n"], curve[name], each) for each in PROBABILITIES]
        for name in (*names, "mean", "every")
    }
    factors = pd.DataFrame.from_dict(needed, orient="index", columns=["n80", "n90"]).rename_axis("factor")
    return SamplePlan(curve, factors, n_repeats, n_pilot)


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def _pairs_of_studies(
    work: Callable[..., dict[str, Any]],
    shared: tuple[Any, ...],
    sizes: Sequence[int],
    n_repeats: int,
    random_state: Any,
    **settings: Any,
) -> dict[int, Array]:
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    # studies of every size in turn, so that their progress tells the time
    jobs = {f"{n} {at}": (*shared, n, (seed, n, at)) for at in range(n_repeats) for n in sizes}
    done = run_all(jobs, work, what=FITTING_PAIRS, **settings)
    return {n: np.array([done[f"{n} {at}"]["agreement"] for at in range(n_repeats)]) for n in sizes}


def _simulated(model: ICQF, populations: Populations, n: int, seed: Any) -> dict[str, list[float]]:
    """Agreement of two studies that are simulated from one population."""
    rng = np.random.default_rng(seed)
    population = populations.draw(rng)
    return _agreement(model, population.draw(rng, n), population.draw(rng, n))


def _subsampled(
    model: ICQF, problem: Problem, units: Array | None, n: int, seed: Any
) -> dict[str, list[float]]:
    """Agreement of two disjoint subsamples."""
    rng = np.random.default_rng(seed)
    return _agreement(model, *(problem.of_rows(rows) for rows in two_samples(problem.n, n, units, rng)))


def two_samples(total: int, n: int, units: Array | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of two samples of n participants out of `total`, which share neither participant nor unit.

    With units, such as families, the second sample is smaller by those whose unit is in the first, where
    no others are left.
    """
    if units is None:
        order = rng.permutation(total)
        return np.sort(order[:n]), np.sort(order[n : 2 * n])
    order = np.argsort(rng.permutation(int(units.max()) + 1)[units], kind="stable")
    first, rest = order[:n], order[n:]
    return np.sort(first), np.sort(rest[~np.isin(units[rest], units[first])][:n])


def _agreement(model: ICQF, one: Problem, other: Problem) -> dict[str, list[float]]:
    """For each factor of the model, the correlation of its counterparts in two studies.

    A counterpart that one item carries is that item, which needs no study to be found, and counts as 0.
    """
    k, beta = len(model.components_), float(model.beta)
    a, b = (best_fits(problem, [(k, beta)])[0][:k] for problem in (one, other))
    a = a[aligned(one.scaled_loadings(model.components_), a)[0]]
    found = np.diag(correlations(a, b[aligned(a, b)[0]]))
    return {"agreement": np.where(strongest_share(a) > ONE_ITEM, 0.0, found).tolist()}
