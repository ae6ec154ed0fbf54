"""Which items to ask: forward selection with exchange, whatever it is that the items are scored by.

What is searched over is a `Recovery`: it knows the scores of the full form, and what a form of some items
makes of the same participants. One for `ICQF` is in `icqf.extensions.recoveries`; a model in several stages
brings its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from icqf.jobs.parallel import Progress

Array = NDArray[Any]
_GAIN = 1e-6  # an exchange that gains less is none
_MOST_ROUNDS = 10


class Form(Protocol):
    """Some items, and the scores that participants get when they are asked only these.

    Examples
    --------
    >>> from icqf.extensions import Form
    >>> [name for name in vars(Form) if not name.startswith("_")]
    ['scores', 'plus', 'minus']
    """

    @property
    def scores(self) -> Array:
        """Scores (k, n)."""

    def plus(self, item: int) -> Self:
        """The form with one more item, by its place among all items."""

    def minus(self, item: int) -> Self:
        """The form without one of its items."""


class Recovery(Protocol):
    """What a search of short forms needs to know of a model and of participants who answered everything.

    Examples
    --------
    >>> from icqf.extensions import Recovery
    >>> [name for name in vars(Recovery) if not name.startswith("_")]
    ['items', 'wanted', 'nothing']
    """

    @property
    def items(self) -> Sequence[str]:
        """Names (m,) of the items to choose from."""

    @property
    def wanted(self) -> Array:
        """Scores (k, n) of the full form."""

    def nothing(self) -> Any:
        """The form (`Form`) that asks nothing."""


@dataclass(frozen=True)
class FormPath:
    """The best form found of each length.

    Attributes
    ----------
    forms : tuple of tuple of int
        Places of the items of each form, in the order in which they came in.
    accuracy : tuple of float
        Mean correlation of each form's scores with those of the full form, among those who chose it.
    """

    forms: tuple[tuple[int, ...], ...]
    accuracy: tuple[float, ...]


def search_forms(
    recovery: Recovery,
    *,
    max_items: int,
    keep: Sequence[int] = (),
    drop: Collection[int] = (),
    minutes: Array | None = None,
    max_minutes: float = np.inf,
    begin: Sequence[int] = (),
    callback: Callable[[Progress], object] | None = None,
) -> FormPath:
    """Search the items whose answers recover the scores of the full form.

    Items come in one by one, each time the one that raises the mean correlation with the full form's scores
    most (for each minute it takes). After every addition the item that is missed least gives way to a better
    one, as long as there is one; at the last length every item may.

    Parameters
    ----------
    recovery : Recovery
        What is to be recovered, and how forms are scored.
    max_items : int
        Most items; the kept ones count.
    keep : sequence of int
        Places of items that every form has.
    drop : collection of int
        Places of items that no form has.
    minutes : array (m,), optional
        What each item takes; None: all the same. Without `max_minutes`, no item gives way to a slower one.
    max_minutes : float
        Most minutes of a form.
    begin : sequence of int
        Items in an order whose beginnings are forms to do no worse than, such as that of their loadings.
    callback : callable, optional
        Told about the progress.

    Returns
    -------
    FormPath
        From the kept items (or one item) on, one more item each time.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.extensions import search_forms
    >>> from icqf.extensions.recoveries import ModelRecovery
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> participants = ModelRecovery.of(ICQF(2).fit(demo), demo)
    >>> path = search_forms(participants.simulated(np.random.default_rng(0)), max_items=4)
    >>> [len(form) for form in path.forms]
    [1, 2, 3, 4]
    """
    search = _Search(recovery, frozenset(keep), frozenset(drop), minutes, max_minutes)
    chosen = other = search.of(keep)
    forms = [chosen] if len(keep) else []
    _tell(callback, len(chosen.items), max_items)
    while len(chosen.items) < max_items:
        longer = search.longer(chosen)
        if longer is None:
            break
        other = search.of(begin[: len(longer.items)] or longer.items, other)
        if search.allowed(other.items, longer.items) and other.accuracy > longer.accuracy:
            longer = other
        chosen = search.without_the_least_missed(longer)
        forms.append(chosen)
        _tell(callback, len(chosen.items), max_items)
    if forms:
        forms[-1] = search.exchanged(chosen)
    return FormPath(tuple(form.items for form in forms), tuple(form.accuracy for form in forms))


def correlation_by_row(a: Array, b: Array) -> Array:
    """Pearson correlation (k,) of each row of a with the same row of b; 0 where either is constant.

    Examples
    --------
    >>> import numpy as np
    >>> correlation_by_row(np.array([[0.0, 1, 2], [1, 1, 1]]), np.array([[0.0, 2, 4], [0, 1, 0]]))
    array([1., 0.])
    """
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("rn,rn->r", a, a) * np.einsum("rn,rn->r", b, b))
    some = length > 1e-12 * a.shape[1]
    return np.where(some, np.einsum("rn,rn->r", a, b) / np.where(some, length, 1.0), 0.0)


@dataclass(frozen=True)
class _Chosen:
    items: tuple[int, ...]
    form: Any
    accuracy: float


class _Search:
    def __init__(
        self,
        recovery: Recovery,
        keep: frozenset[int],
        drop: frozenset[int],
        minutes: Array | None,
        max_minutes: float,
    ) -> None:
        self.keep, self.recovery = keep, recovery
        m = len(recovery.items)
        self.candidates = [item for item in range(m) if item not in drop]
        self.minutes = np.ones(m) if minutes is None else np.asarray(minutes, dtype=float)
        self.max_minutes = max_minutes if minutes is not None else np.inf
        # A score that everybody has alike is recovered by whatever is asked.
        self.some = np.ptp(recovery.wanted, axis=1) > 0

    def accuracy(self, form: Any) -> float:
        r = correlation_by_row(form.scores, self.recovery.wanted)
        return float(r[self.some].mean()) if self.some.any() else 1.0

    def of(self, items: Sequence[int], before: _Chosen | None = None) -> _Chosen:
        """The form of these items, from one on that they begin with."""
        known = before is not None and tuple(items[: len(before.items)]) == before.items
        form, begun = (before.form, len(before.items)) if before and known else (self.recovery.nothing(), 0)
        for item in items[begun:]:
            form = form.plus(item)
        return _Chosen(tuple(items), form, self.accuracy(form))

    def allowed(self, items: Sequence[int], instead: Sequence[int]) -> bool:
        """Whether these items may be asked instead of others."""
        limit = self.minutes[list(instead)].sum() if np.isinf(self.max_minutes) else self.max_minutes
        within = self.minutes[list(items)].sum() <= limit + _GAIN
        return bool(within) and {*items} <= {*self.candidates} and self.keep <= {*items}

    def longer(self, chosen: _Chosen) -> _Chosen | None:
        """One more item: the one that gains most for each minute it takes; None where none has room."""
        room = self.max_minutes - self.minutes[list(chosen.items)].sum()
        best, most = None, -np.inf
        for item, form, accuracy in self._with_one_more(chosen.form, chosen.items, room):
            gain = (accuracy - chosen.accuracy) / self.minutes[item] if chosen.items else accuracy
            if gain > most:
                best, most = _Chosen((*chosen.items, item), form, accuracy), gain
        return best

    def without_the_least_missed(self, chosen: _Chosen) -> _Chosen:
        """The form after its item that is missed least has given way to a better one, until there is none."""
        for _ in range(_MOST_ROUNDS):
            loose = [item for item in chosen.items if item not in self.keep]
            if len(chosen.items) < 2 or not loose:
                return chosen
            least = max(loose, key=lambda item: self.accuracy(chosen.form.minus(item)))
            better = self._replaced(chosen, least)
            if better is None:
                return chosen
            chosen = better
        return chosen

    def exchanged(self, chosen: _Chosen) -> _Chosen:
        """The form after each of its items has given way to a better one, until none does."""
        for _ in range(_MOST_ROUNDS):
            before = chosen
            for item in [item for item in chosen.items if item not in self.keep]:
                chosen = self._replaced(chosen, item) or chosen
            if chosen is before:
                break
        return chosen

    def _replaced(self, chosen: _Chosen, item: int) -> _Chosen | None:
        """The form with the best item in the place of one of its own; None where that is the best."""
        room = self.max_minutes - self.minutes[[other for other in chosen.items if other != item]].sum()
        room = room if np.isfinite(room) else self.minutes[item]  # no slower one without a limit on all
        best = None
        most = chosen.accuracy + _GAIN
        for other, form, accuracy in self._with_one_more(chosen.form.minus(item), chosen.items, room):
            if accuracy > most:
                items = tuple(other if each == item else each for each in chosen.items)
                best, most = _Chosen(items, form, accuracy), accuracy
        return best

    def _with_one_more(self, form: Any, items: Sequence[int], room: float) -> Any:
        for item in self.candidates:
            if item not in items and self.minutes[item] <= room + _GAIN:
                longer = form.plus(item)
                yield item, longer, self.accuracy(longer)


def _tell(callback: Callable[[Progress], object] | None, done: int, total: int) -> None:
    if callback is not None:
        callback(Progress(done, total))
