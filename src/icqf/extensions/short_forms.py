"""Short forms: the fewest items whose answers recover the scores of the whole questionnaire."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.data.battery import Battery
from icqf.data.parameters import check_parameter, parameter_error
from icqf.data.questionnaire import Questionnaire, match_names
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.extensions.battery_forms import MetaRecovery
from icqf.extensions.fitted_meta import FittedMeta
from icqf.extensions.forms import search_forms
from icqf.extensions.recoveries import ModelRecovery, divided, top_loading
from icqf.jobs.parallel import Progress
from icqf.models.base import FittedModel

Array = NDArray[Any]
COVERED = 0.9
_KNOTS = 21
_NEIGHBOURS = 40  # held-out participants behind an interval, at least


@dataclass(frozen=True, eq=False)
class ShortForm:
    """A short form of a questionnaire, and how well it does.

    Parameters
    ----------
    items : tuple of str
        The items to ask, in the questionnaire's order.
    model : ICQF or MetaICQF
        Scores the short form: a model of these items alone.
    curve : DataFrame
        One row per length: ``n_items``, ``minutes``, ``added`` and ``dropped`` (items, in words),
        ``accuracy`` (mean correlation of the scores with those of the full form, in held-out participants),
        ``worst`` (that of the factor with the lowest), ``top_loading`` (the mean for as many items with the
        largest loadings), and the correlation of each factor.
    bands : DataFrame
        ``factor, score, low, high``: where the score of the full form lies, relative to a score of the short
        one, in nine of ten held-out participants.
    n_items : int
        Items of the full form.
    n_chosen_by, n_held_out : int
        Participants whom items were chosen by, and those whom they were judged by.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.extensions import shortform
    >>> demo = load_demo()
    >>> form = shortform(ICQF(8, beta=0.1).fit(demo), demo, max_items=16)
    >>> len(form.items), form.model.loadings_.shape, bool(form.accuracy > 0.75)
    (16, (16, 8), True)
    """

    items: tuple[str, ...]
    model: Any
    curve: pd.DataFrame
    bands: pd.DataFrame
    n_items: int
    n_chosen_by: int
    n_held_out: int

    @property
    def accuracy(self) -> float:
        """Mean correlation of the scores with those of the full form, in held-out participants."""
        return float(self.curve["accuracy"].iloc[-1])

    @property
    def worst(self) -> tuple[str, float]:
        """The factor that is recovered least, and its correlation."""
        last = self.curve[list(self.model.get_feature_names_out())].iloc[-1]
        return str(last.idxmin()), float(last.min())

    @property
    def minutes(self) -> float | None:
        """How long the form takes; None where it is not known."""
        last = self.curve["minutes"].iloc[-1]
        return None if np.isnan(last) else float(last)

    @property
    def sentence(self) -> str:
        """What the form does, in words."""
        m, last = self.n_items, self.curve.iloc[-1]
        name, least = self.worst
        time = "" if self.minutes is None else f", about {counted(round(self.minutes), 'minute')}"
        return (
            f"{len(self.items)} of {counted(m, 'item')}{time}: scores correlate {last['accuracy']:.3f} with "
            f"those of the full form on average over the factors, and {least:.3f} for {name}, in "
            f"{counted(self.n_held_out, 'participant')} who had no part in the choice of items. The "
            f"{len(self.items)} highest-loading items reach {last['top_loading']:.3f}."
        )


def shortform(
    model: FittedModel | FittedMeta,
    X: Any,
    *,
    confounds: Any = None,
    groups: Any = None,
    max_items: int | None = None,
    accuracy: float | None = None,
    keep: str | Iterable[str] = (),
    drop: str | Iterable[str] = (),
    minutes: float | Mapping[str, float] | None = None,
    max_minutes: float | None = None,
    random_state: Any = 0,
    callback: Callable[[Progress], object] | None = None,
) -> ShortForm:
    """Choose the items whose answers recover the scores of the full form, and judge them by others.

    Participants are simulated from the model with two thirds of the real ones (their scores, and what the
    model leaves of their answers). One after the other comes in the item that raises the mean correlation
    with the full form's scores most, and items give way to better ones. Where as many items with the largest
    loadings do better among the two thirds themselves, these are taken. The other third, which had no part in
    any of this, says how well the forms do. A form is scored exactly, its other items being missing.

    Parameters
    ----------
    model : fitted ICQF or MetaICQF
        The model of the full form. Of a battery, the scores to recover are those of its meta-factors, and
        items are chosen across its instruments; they are called ``instrument: item``.
    X : table, array (n, m) or Questionnaire; Battery or mapping of instruments
        Answers to all items.
    confounds : table, optional
        Of the same participants, where the model has confounds.
    groups : array (n,), optional
        Families or sites, which are held out whole. None: those of the questionnaire, if X is one.
    max_items : int, optional
        Length of the form. None: 20, or half of the items where these are fewer than 40.
    accuracy : float, optional
        Mean correlation from which a shorter form is long enough, among those who choose the items.
    keep, drop : str or iterable of str
        Names or globs of items that must be asked, and of items that must not.
    minutes : number or mapping, optional
        What an item takes, or what each one does; items are then chosen by what they gain for each minute,
        and without `max_minutes` none gives way to a slower one.
    max_minutes : float, optional
        Most minutes of the form.
    random_state : int, RandomState or None
        Who is held out.
    callback : callable, optional
        Told about the progress.

    Returns
    -------
    ShortForm

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.extensions import shortform
    >>> demo = load_demo()
    >>> model = ICQF(8, beta=0.1).fit(demo)
    >>> form = shortform(model, demo, max_items=10, keep="q001", drop=["q11*"], minutes=0.2)
    >>> "q001" in form.items, form.curve["n_items"].tolist()[-1], form.minutes
    (True, 10, 2.0)
    """
    check_is_fitted(model)
    if isinstance(X, (Questionnaire, Battery)) and groups is None:
        groups = X.groups
    recovery = MetaRecovery if isinstance(model, FittedMeta) else ModelRecovery
    everyone: Any = recovery.of(model, X, confounds=confounds)
    names = list(everyone.items)
    asked = _asked(names, keep, drop, max_items)
    taken, budget = _times(names, minutes, max_minutes)
    if accuracy is not None:
        check_parameter("accuracy", accuracy)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    choosing, held_out = (everyone.take(rows) for rows in divided(everyone, groups, rng))
    if not all(np.ptp(part.wanted, axis=1).any() for part in (choosing, held_out)):
        raise InputError(
            "All participants have the same scores, so no item can tell them apart. Give the answers of "
            "participants who differ."
        )
    ranked = top_loading(everyone.shares, asked.length, asked.keep, asked.drop)
    path = search_forms(
        choosing.simulated(rng),
        max_items=asked.length,
        keep=asked.keep,
        drop=asked.drop,
        minutes=taken,
        max_minutes=np.inf if budget is None else budget,
        begin=ranked,
        callback=callback,
    )
    if not path.forms:
        raise parameter_error("max_minutes", f" is {budget:g}, and no item is that short; give more.")
    forms = _long_enough(_better_of(choosing, path.forms, ranked, taken, budget), choosing, accuracy)
    curve = _curve(held_out, forms, ranked, taken)
    short = everyone.reduced(forms[-1])
    bands = _bands(held_out.exact(forms[-1]), held_out.wanted, list(model.get_feature_names_out()))
    return ShortForm(
        tuple(names[item] for item in sorted(forms[-1])),
        short,
        curve,
        bands,
        len(names),
        choosing.n,
        held_out.n,
    )


def _better_of(
    choosing: Any,
    forms: Sequence[tuple[int, ...]],
    ranked: tuple[int, ...],
    minutes: Array | None,
    budget: float | None,
) -> list[tuple[int, ...]]:
    """Each form, or as many items with the largest loadings where they do better among those who choose."""
    chosen = []
    for form in forms:
        other = ranked[: len(form)]
        limit = np.inf if minutes is None else minutes[list(form)].sum() if budget is None else budget
        short = minutes is None or minutes[list(other)].sum() <= limit
        found = [np.nanmean(choosing.accuracies(each)) for each in (form, *([other] if short else []))]
        chosen.append(other if found[-1] > found[0] else form)
    return chosen


def _long_enough(
    forms: list[tuple[int, ...]], choosing: Any, accuracy: float | None
) -> list[tuple[int, ...]]:
    """The forms up to the first that is accurate enough among those who choose; all where none is."""
    if accuracy is None:
        return forms
    best = 0.0
    for number, form in enumerate(forms, start=1):
        found = float(np.nanmean(choosing.accuracies(form)))
        best = max(best, found)
        if found >= accuracy:
            return forms[:number]
    warnings.warn(
        f"No form of up to {counted(len(forms[-1]), 'item')} reaches a mean correlation of {accuracy:g} with "
        f"the full form; the best found has {best:.3f}.",
        stacklevel=3,
    )
    return forms


@dataclass(frozen=True)
class _Asked:
    keep: tuple[int, ...]
    drop: frozenset[int]
    length: int


def _asked(
    names: list[str], keep: str | Iterable[str], drop: str | Iterable[str], max_items: int | None
) -> _Asked:
    """The places of items that must and must not be asked, once nothing speaks against them."""
    if max_items is not None:
        check_parameter("max_items", max_items)
    kept, dropped = (
        [*match_names([which] if isinstance(which, str) else which, names)] for which in (keep, drop)
    )
    both = [name for name in kept if name in set(dropped)]
    if both:
        raise InputError(f"Item {both[0]!r} is to be kept and to be dropped; decide for one.")
    left = len(names) - len(dropped)
    if not left:
        raise InputError("All items are to be dropped, so none is left to ask; drop fewer.")
    if max_items is None:
        max_items = max(min(20, (left + 1) // 2), len(kept))
    if max_items > left:
        raise parameter_error(
            "max_items",
            f" is {max_items}, and there {'is' if left == 1 else 'are'} {counted(left, 'item')} to choose "
            f"from; give at most {left}.",
            value=max_items,
        )
    if len(kept) > max_items:
        raise parameter_error(
            "max_items",
            f" is {max_items}, and {counted(len(kept), 'item')} must be kept ({listed(kept)}); give at least "
            f"{len(kept)}, or keep fewer.",
            value=max_items,
        )
    places = {name: at for at, name in enumerate(names)}
    return _Asked(
        tuple(places[name] for name in kept), frozenset(places[name] for name in dropped), max_items
    )


def _times(
    names: list[str], minutes: float | Mapping[str, float] | None, max_minutes: float | None
) -> tuple[Array | None, float | None]:
    """Minutes (m,) that each item takes, and the most that a form may take."""
    if minutes is None:
        if max_minutes is not None:
            raise parameter_error(
                "max_minutes", " cannot be kept to without minutes: say how long an item takes."
            )
        return None, None
    if max_minutes is not None:
        check_parameter("max_minutes", max_minutes)
    if not isinstance(minutes, Mapping):
        check_parameter("minutes", minutes)
        return np.full(len(names), float(minutes)), max_minutes
    strange = [str(name) for name in minutes if str(name) not in names]
    if strange:
        raise parameter_error(
            "minutes",
            f" names {strange[0]!r}, which is no item of the model.{did_you_mean(strange[0], names)}",
        )
    absent = [name for name in names if name not in minutes]
    if absent:
        raise parameter_error(
            "minutes", f" says nothing of the item {absent[0]!r}; give a time for every item."
        )
    for name in names:
        if not (np.isfinite(minutes[name]) and minutes[name] > 0):
            raise parameter_error(
                "minutes", f" of the item {name!r} must be a number above 0, not {minutes[name]!r}."
            )
    return np.array([float(minutes[name]) for name in names]), max_minutes


def _curve(
    held_out: Any,
    forms: Sequence[tuple[int, ...]],
    ranked: tuple[int, ...],
    minutes: Array | None,
) -> pd.DataFrame:
    """How well the form of each length recovers the scores of the full form in held-out participants."""
    names, factors = held_out.items, list(held_out.model.get_feature_names_out())
    rows, before = [], frozenset[int]()
    for form in forms:
        by_factor, picked = (held_out.accuracies(items) for items in (form, ranked[: len(form)]))
        rows.append(
            {
                "n_items": len(form),
                "minutes": np.nan if minutes is None else float(minutes[list(form)].sum()),
                "added": "; ".join(names[item] for item in form if item not in before),
                "dropped": "; ".join(names[item] for item in sorted(before - {*form})),
                "accuracy": float(np.nanmean(by_factor)),
                "worst": float(np.nanmin(by_factor)),
                "top_loading": float(np.nanmean(picked)),
                **dict(zip(factors, by_factor.tolist(), strict=True)),
            }
        )
        before = frozenset(form)
    return pd.DataFrame(rows)


def _bands(short: Array, full: Array, factors: list[str]) -> pd.DataFrame:
    """Where the full form's score lies relative to the short form's, in nine of ten participants like it."""
    tails = [(1 - COVERED) / 2, (1 + COVERED) / 2]
    asked = ~np.isnan(short).any(axis=0)  # in a battery, others were given none of the form's instruments
    short, full = short[:, asked], full[:, asked]
    n = short.shape[1]
    near = min(n, max(_NEIGHBOURS, n // 6))
    rows = []
    for name, found, wanted in zip(factors, short, full, strict=True):
        for knot in np.linspace(0.0, max(1.0, float(found.max())), _KNOTS):
            close = np.argsort(np.abs(found - knot), kind="stable")[:near]
            low, high = np.quantile(wanted[close] - found[close], tails)
            # The score itself is always inside: a band beside it would read as an error.
            rows.append((name, float(knot), min(float(low), 0.0), max(float(high), 0.0)))
    return pd.DataFrame(rows, columns=["factor", "score", "low", "high"])
