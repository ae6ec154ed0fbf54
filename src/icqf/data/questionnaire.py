"""Answers with their codebook: wording, range and direction of each item, and missing answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.data.about import NOT_STATED, About
from icqf.errors import InputError, and_more, did_you_mean, listed
from icqf.screening.missing_codes import USUAL_CODES, is_number, missing_code_remedy, number
from icqf.screening.ranges import DECLARE_RANGE, Families, Stray, families_among

if TYPE_CHECKING:
    from icqf.screening.columns import LeftOut

_OTHER_PARTICIPANTS = "The {} and the answers must be for the same participants, in the same order."


@dataclass(frozen=True)
class Item:
    """One question of a questionnaire.

    Parameters
    ----------
    name : str
        Column name of the item.
    wording : str
        The question as participants read it.
    min, max : float or None
        Lowest and highest possible answer; both or neither. None: not declared.
    reverse : bool
        True when a high answer means less of what the scale measures.
    subscale : str
        Name of the scale the item belongs to.
    missing_codes : tuple of float or str
        Values that mean "no answer" (refused, don't know, not asked).
    labels : tuple of (float, str)
        What each answer means, in order.

    Examples
    --------
    >>> from icqf.data.questionnaire import Item
    >>> Item("q07", wording="Sleeps badly", min=0, max=4, missing_codes=(9,)).declared
    True
    >>> Item("q07", min=4, max=0)
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: Item 'q07' has lowest answer 4 and highest answer 0; the lowest must be below the
    highest.
    """

    name: str
    wording: str = ""
    min: float | None = None
    max: float | None = None
    reverse: bool = False
    subscale: str = ""
    missing_codes: tuple[float | str, ...] = ()
    labels: tuple[tuple[float, str], ...] = ()

    def __post_init__(self) -> None:
        if (self.min is None) != (self.max is None):
            raise InputError(
                f"Item {self.name!r} declares only one end of its range; give both min and max, or neither."
            )
        if self.min is None or self.max is None:
            return
        if not (np.isfinite(self.min) and np.isfinite(self.max)):
            raise InputError(f"Item {self.name!r} has an infinite range; give the lowest and highest answer.")
        if self.min >= self.max:
            raise InputError(
                f"Item {self.name!r} has lowest answer {number(self.min)} and highest answer "
                f"{number(self.max)}; the lowest must be below the highest."
            )
        inside = [
            code for code in self.missing_codes if is_number(code) and self.min <= float(code) <= self.max
        ]
        if inside:
            raise InputError(
                f"Item {self.name!r} declares {number(inside[0])} as a missing code, but it lies inside the "
                f"item's range {number(self.min)} to {number(self.max)}. Correct the range or the code."
            )

    @property
    def declared(self) -> bool:
        """Whether the answer range is declared."""
        return self.min is not None


@dataclass(frozen=True)
class StoredCodebook:
    """What a model knows about the table it was fitted to: items, id column, labels of confounds, and what
    people state about the study.

    Without items, it is unknown which ones are reversed.
    """

    items: tuple[Item, ...] = ()
    id: str = ""
    confounds: tuple[Item, ...] = ()
    about: About = NOT_STATED


@dataclass(frozen=True, eq=False)
class Draft:
    """Answers and their codebook before any check; see `Questionnaire`."""

    answers: pd.DataFrame
    items: tuple[Item, ...]
    confounds: pd.DataFrame | None = None
    groups: pd.Series | None = None
    weights: pd.Series | None = None
    notes: tuple[str, ...] = ()
    structural: pd.DataFrame | None = None
    source: str = ""
    file_rows: np.ndarray | None = None
    confound_entries: tuple[Item, ...] = ()
    found_reversed: tuple[str, ...] = ()
    asked_reversed: tuple[str, ...] = ()
    file_ranges: tuple[str, ...] = ()
    families: Families | None = None
    left_out: tuple[LeftOut, ...] = ()
    about: About = NOT_STATED

    def __post_init__(self) -> None:
        if self.families is None:
            open_ended = [item.name for item in self.items if not item.declared]
            object.__setattr__(self, "families", families_among(self.answers, open_ended))

    def ranges(self) -> pd.DataFrame:
        """Return the lowest and highest answer of each item: columns ``min`` and ``max``, indexed by item.

        Items without a declared range have the lowest and highest answer of their family: the items that
        share their answer values (`icqf.screening.ranges`).
        """
        ends = {} if self.families is None else self.families.ends
        table = [
            ends.get(item.name, (0.0, 1.0)) if item.min is None else (item.min, item.max)
            for item in self.items
        ]
        index = pd.Index([item.name for item in self.items], name="item")
        return pd.DataFrame(table, index=index, columns=["min", "max"], dtype=float)


@dataclass(frozen=True, eq=False)
class Questionnaire(Draft):
    """Answers of participants to items, checked against the codebook; treat the tables as read-only.

    The checks are made once; what is derived from a questionnaire (`select`, `take`, `with_confounds`,
    `with_observed_ranges`) is not checked again.

    Parameters
    ----------
    answers : DataFrame of shape (n_participants, n_items)
        Answers in each item's own units, indexed by participant id; a missing answer is NaN.
    items : tuple of Item
        One per column of `answers`, in the same order.
    confounds : DataFrame or None
        Confounds of the same participants, such as age and sex.
    groups : Series or None
        Family or site of the same participants.
    weights : Series of float or None
        Survey weights of the same participants.
    notes : tuple of str
        Sentences about everything that was done to the data.
    structural : DataFrame of bool or None
        True where an answer is missing because the question was not asked (branching), if known.
    source : str
        Where the data come from; messages start with it.
    file_rows : ndarray of int, shape (n_participants,), or None
        The row of the file that each participant was read from, for messages.
    found_reversed : tuple of str
        Items that were reversed because they run against the others, rather than by a codebook.
    asked_reversed : tuple of str
        Items that were reversed because the user named them.
    file_ranges : tuple of str
        Items whose range the file itself declares, by labels or a dictionary, rather than a codebook.
    families : Families or None
        Groups of items without a declared range that share their answer values; None: derived from the
        answers. Derived questionnaires keep them.
    left_out : tuple of LeftOut
        The other columns of the table, and why each is not an item.
    about : About
        What is stated about instrument and sample.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.data.questionnaire import Item, Questionnaire
    >>> answers = pd.DataFrame({"calm": [0.0, 2.0], "sad": [2.0, None]}, index=["P1", "P2"])
    >>> items = (Item("calm", min=0, max=2, reverse=True), Item("sad", min=0, max=2))
    >>> questionnaire = Questionnaire(answers, items)
    >>> questionnaire.keyed_answers()
        calm  sad
    P1   2.0  2.0
    P2   0.0  NaN
    >>> questionnaire.ranges()
          min  max
    item
    calm  0.0  2.0
    sad   0.0  2.0
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for fault in self._faults():
            raise fault.at(self.source) if self.source else fault

    def _faults(self) -> Iterator[InputError]:
        names = [item.name for item in self.items]
        index = self.answers.index
        if list(self.answers.columns) != names:
            yield InputError(
                "The columns of the answers are not the items in their order; use the same names and order."
            )
        if len(set(names)) < len(names):
            yield InputError(f"Item {_repeated(names)!r} appears twice; item names must be unique.")
        if not index.is_unique:
            yield InputError(
                f"Participant {_repeated(index)!r} appears twice; participant ids must be unique."
            )
        if bool(index.isna().any()):
            yield InputError("A participant has no id; give every row one.")
        for column, dtype in self.answers.dtypes.items():
            if not pd.api.types.is_numeric_dtype(dtype):
                yield InputError(f"Item {str(column)!r} is not numeric; code its answers as numbers.")
        for name in ("confounds", "groups", "weights", "structural"):
            table = getattr(self, name)
            if table is not None and not table.index.equals(index):
                yield InputError(_OTHER_PARTICIPANTS.format(name))
        yield from range_faults(self)

    @classmethod
    def of(
        cls,
        answers: pd.DataFrame,
        *,
        item_range: tuple[float, float] | None = None,
        subscales: Mapping[str, str] | None = None,
        confounds: pd.DataFrame | None = None,
        groups: pd.Series | None = None,
    ) -> Questionnaire:
        """Make a questionnaire from tables in memory.

        Parameters
        ----------
        answers : DataFrame
            Answers, indexed by participant id; a missing answer is NaN.
        item_range : (lowest, highest), optional
            The answer range of all items. None: not declared.
        subscales : mapping of str to str, optional
            The subscale of items, by name.
        confounds, groups
            Of the same participants, in the same order.
        """
        low, high = (None, None) if item_range is None else item_range
        scales = subscales or {}
        names = [str(name) for name in answers.columns]
        items = tuple(Item(name, min=low, max=high, subscale=scales.get(name, "")) for name in names)
        return cls(answers.set_axis(names, axis=1), items, confounds=confounds, groups=groups)

    @property
    def n_participants(self) -> int:
        """Number of participants."""
        return len(self.answers)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    def with_observed_ranges(self) -> Questionnaire:
        """Return the questionnaire with the family's range declared for each item without one."""
        ends = self.ranges().to_numpy().tolist()
        items = (replace(item, min=low, max=high) for item, (low, high) in zip(self.items, ends, strict=True))
        return self._derived(items=tuple(items))

    def with_confounds(self, confounds: pd.DataFrame | None) -> Questionnaire:
        """Return the questionnaire with other confounds, of the same participants in the same order."""
        if confounds is not None and not confounds.index.equals(self.answers.index):
            raise InputError(_OTHER_PARTICIPANTS.format("confounds"))
        return self._derived(confounds=confounds)

    def with_notes(self, notes: Iterable[str]) -> Questionnaire:
        """Return the questionnaire with further notes after its own."""
        return self._derived(notes=(*self.notes, *notes))

    def keyed_answers(self) -> pd.DataFrame:
        """Return the answers with every reverse-keyed item reversed: ``min + max - answer``."""
        reverse_keyed = [item.name for item in self.items if item.reverse]
        if not reverse_keyed:
            return self.answers
        low, high = self.ranges().loc[reverse_keyed].to_numpy().T
        # Rounding may leave the range: 0.1 + 0.7 - 0.7 is below 0.1.
        reversed_ = np.clip(low + high - self.answers[reverse_keyed].to_numpy(), low, high)
        if (self.answers.dtypes == np.float64).all():  # one copy; assigning columns makes several
            keyed = self.answers.to_numpy(copy=True)
            keyed[:, self.answers.columns.get_indexer(pd.Index(reverse_keyed))] = reversed_
            return pd.DataFrame(keyed, index=self.answers.index, columns=self.answers.columns, copy=False)
        return self.answers.assign(**dict(zip(reverse_keyed, reversed_.T, strict=True)))

    def select(self, items: Iterable[str]) -> Questionnaire:
        """Return the questionnaire with only these items, by name or glob, in their present order."""
        chosen = match_names(
            [items] if isinstance(items, str) else items, [item.name for item in self.items], self.source
        )
        return self._derived(
            answers=self.answers[chosen],
            items=tuple(item for item in self.items if item.name in set(chosen)),
            structural=None if self.structural is None else self.structural[chosen],
            found_reversed=tuple(name for name in self.found_reversed if name in set(chosen)),
            notes=(*self.notes, f"{len(chosen)} of {self.n_items} items were selected."),
        )

    def take(self, rows: Sequence[int] | np.ndarray) -> Questionnaire:
        """Return the questionnaire of some participants only, by position."""
        rows = np.asarray(rows)
        return self._derived(
            answers=self.answers.iloc[rows],
            confounds=None if self.confounds is None else self.confounds.iloc[rows],
            groups=None if self.groups is None else self.groups.iloc[rows],
            weights=None if self.weights is None else self.weights.iloc[rows],
            structural=None if self.structural is None else self.structural.iloc[rows],
            file_rows=None if self.file_rows is None else self.file_rows[rows],
        )

    def item_table(self) -> pd.DataFrame:
        """Return the items as a table indexed by name, for plots."""
        return pd.DataFrame([vars(item) for item in self.items]).set_index("name")

    def _derived(self, **changes: Any) -> Questionnaire:
        """Return a questionnaire with changed fields, without checking it again."""
        derived = object.__new__(type(self))
        for name, value in (vars(self) | changes).items():
            object.__setattr__(derived, name, value)
        return derived


def match_names(
    wanted: Iterable[str], names: list[str], source: str = "", *, rather: Collection[str] = ()
) -> list[str]:
    """Return the names that equal or match (``*``, ``?``) any pattern, in the order of `names`.

    A pattern that matches some of `rather` matches no others.
    """
    chosen: set[str] = set()
    for pattern in wanted:
        hits = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        hits = hits if pattern in names else [name for name in hits if name in rather] or hits
        if not hits:
            fault = InputError(
                f"No item is named or matches {pattern!r}.{did_you_mean(pattern, names)} "
                f"There are {len(names)}: {listed(names)}."
            )
            raise fault.at(source) if source else fault
        chosen.update(hits)
    return [name for name in names if name in chosen]


def _repeated(names: Iterable[object]) -> str:
    index = pd.Index(list(names))
    return str(index[index.duplicated()][0])


def range_faults(draft: Draft) -> Iterator[InputError]:
    """Yield an error for each item with answers that are infinite or outside its range.

    Its fields are item, value, low, high, participant, row (in the file, or None) and count. Without a
    declared range, a value is outside when it is far from the answers of the item's family.
    """
    items = draft.items
    table = draft.answers.to_numpy(dtype=float, na_value=np.nan)
    lowest = np.array([-np.finfo(float).max if item.min is None else item.min for item in items])
    highest = np.array([np.finfo(float).max if item.max is None else item.max for item in items])
    low, high = np.fmin.reduce(table, initial=np.nan), np.fmax.reduce(table, initial=np.nan)
    for j in np.flatnonzero((low < lowest) | (high > highest)):
        column, item = table[:, j], items[j]
        at = np.flatnonzero((column < lowest[j]) | (column > highest[j]))
        yield _outside_range(draft, item, float(column[at[0]]), at)
    places = {item.name: j for j, item in enumerate(items)}
    for stray in () if draft.families is None else draft.families.strays:
        if stray.item in places:  # otherwise the item was not selected
            at = np.flatnonzero(table[:, places[stray.item]] == stray.value)
            if len(at):
                yield _far_from_family(draft, stray, at)


def _outside_range(draft: Draft, item: Item, value: float, at: np.ndarray) -> InputError:
    """The error for answers outside a declared range, or infinite ones, in the rows `at`."""
    place, where = _place(draft, at)
    fields = {"item": item.name, "value": value, "low": item.min, "high": item.max, **where}
    if np.isinf(value):
        return InputError(
            f"Item {item.name!r} holds an infinite value {place}.",
            code="infinite",
            remedy="Correct it or leave the cell empty.",
            **fields,
        )
    above = item.max is not None and value > item.max
    edge, end = ("above its highest", item.max) if above else ("below its lowest", item.min)
    return InputError(
        f"Item {item.name!r} holds {number(value)}, {edge} answer {number(end)} {place}.",
        code="outside-range",
        remedy=missing_code_remedy(value),
        **fields,
    )


def _far_from_family(draft: Draft, stray: Stray, at: np.ndarray) -> InputError:
    """The error for a value far from the answers of an item's family, in the rows `at`."""
    place, where = _place(draft, at)
    family = (
        "its other answers" if stray.n_items == 1 else f"the answers of its family of {stray.n_items} items"
    )
    return InputError(
        f"Item {stray.item!r} holds {number(stray.value)}, far from {family}, {number(stray.low)} to "
        f"{number(stray.high)} {place}.",
        code="suspicious-code" if stray.value in USUAL_CODES else "far-answer",
        remedy=missing_code_remedy(stray.value, DECLARE_RANGE),
        **{"item": stray.item, "value": stray.value, "low": stray.low, "high": stray.high, "apart": True},
        **where,
    )


def _place(draft: Draft, at: np.ndarray) -> tuple[str, dict[str, Any]]:
    """The place of answers, in words and as fields."""
    participant = str(draft.answers.index[at[0]])
    row = None if draft.file_rows is None else int(draft.file_rows[at[0]])
    words = f"({'' if row is None else f'row {row}, '}participant {participant!r}{and_more(len(at))})"
    return words, {"participant": participant, "row": row, "count": len(at)}
