"""Visits: a long table of answers, one row per visit, and bins of age."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.disclosure import rounded
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.settings import choices_of, parameter_error
from icqf.errors import Advice, InputError, counted, did_you_mean, listed
from icqf.screening.missing_codes import number

Array = NDArray[Any]
ONE_VISIT = Advice("Fit one visit by itself with icqf fit {visit}, or choose narrower {bins}.")
AS_IN = ("baseline", "year 1")
MOST_VISITS = 12  # different values; with more, the column holds ages
MOST_BINS = 8  # on auto
VISITS_IN_BIN = 100  # aimed at on auto
FEWEST_IN_BIN = 10  # participants
FEWEST_ITEMS = 3
WITHIN_BIN = choices_of("within_bin")
BINNING = choices_of("binning")


@dataclass(frozen=True, eq=False)
class VisitTable:
    """Answers by visit."""

    answers: pd.DataFrame  # (V, items)
    participant: Array  # (V,): ids
    age: pd.Series  # (V,): an age, or the name or number of a visit
    confounds: pd.DataFrame | None  # (V, c)
    ranges: pd.DataFrame | None  # (items, 2), if known
    items: tuple[Item, ...]  # the codebook; may be empty
    participant_name: str  # of the column
    age_name: str
    confound_items: tuple[Item, ...] = ()

    @classmethod
    def of(cls, X: Any, *, participant: str, age: str, confounds: Sequence[str] = ()) -> VisitTable:
        """Read a long table (participant, age and items as columns) or a questionnaire of visits.

        In a questionnaire, participants are the groups, and age is one of the confounds.
        """
        if isinstance(X, Questionnaire):
            known = pd.DataFrame(index=X.answers.index) if X.confounds is None else X.confounds
            frame = known if X.groups is None else known.assign(**{participant: X.groups})
            answers, ranges, items = X.keyed_answers(), X.ranges(), X.items
        else:
            frame, ranges, items = as_pandas(X), None, ()
            if not isinstance(frame, pd.DataFrame):
                raise InputError(
                    f"Visits must be a table with the items and the columns {participant!r} and {age!r}, "
                    f"not {type(X).__name__}."
                )
            answers = frame.drop(columns=[participant, age, *confounds], errors="ignore")
        roles = ((participant, "participant"), (age, "age"), *((name, "confounds") for name in confounds))
        for name, option in roles:
            if name not in frame.columns:
                raise InputError(
                    f"The table has no column {name!r}.{did_you_mean(name, map(str, frame.columns))}",
                    code="visit-column",
                    remedy=f"Name the right one with {option}='…'.",
                    name=option,
                    column=name,
                )
        who = _known(frame[participant], participant, "participant", frame)
        when = _known(frame[age], age, "age", frame)
        return cls(
            answers,
            who.to_numpy(dtype=object),
            when,
            frame[list(confounds)] if confounds else None,
            ranges,
            items,
            participant,
            age,
            X.confound_entries if isinstance(X, Questionnaire) else (),
        )

    def by_participant(self) -> tuple[pd.Index, Array]:
        """The participants in order of their first visit, and the position of each visit's (V,)."""
        place, names = pd.factorize(self.participant)
        return pd.Index(names, name=self.participant_name), place

    def confounds_of(self, first: Array) -> pd.DataFrame | None:
        """The participants' confounds from one visit each (`first`); a confound that changes is refused."""
        if self.confounds is None:
            return None
        own = self.confounds.iloc[first]
        names, place = self.by_participant()
        for name in self.confounds.columns:
            here, there = self.confounds[name], own[name].iloc[place].set_axis(self.confounds.index)
            differs = ((here != there) & ~(here.isna() & there.isna())).to_numpy()
            if differs.any():
                at = int(np.flatnonzero(differs)[0])
                raise InputError(
                    f"The confound {str(name)!r} of participant {str(self.participant[at])!r} is "
                    f"{there.iloc[at]!r} at one visit and {here.iloc[at]!r} at another"
                    f"{_more(len(np.unique(place[differs])), 'participant')}.",
                    code="confound-changes",
                    remedy="Give one value per participant; changes with age belong in the bins.",
                    column=str(name),
                )
        return own.set_axis(names, axis=0)


def _known(column: pd.Series, name: str, role: str, frame: pd.DataFrame) -> pd.Series:
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        label = frame.index[missing[0]]
        what = "participant id" if role == "participant" else role
        place = label if isinstance(label, str) else f"row {int(missing[0]) + 1} of the table"
        remedy: str | Advice = f"Fill in the {what}, or leave these visits out."
        if role == "participant":
            remedy = Advice(remedy, typed=Advice("Fill it in, or add {without_id=}.", without_id="leave-out"))
        raise InputError(
            f"The {what} in column {name!r} is missing in {place}{_more(len(missing), 'row')}.",
            code=f"missing-{role}",
            remedy=remedy,
            column=name,
            row=int(missing[0]) + 1,
        )
    return column


def _more(count: int, what: str) -> str:
    return f" (and in {counted(count - 1, f'more {what}')})" if count > 1 else ""


@dataclass(frozen=True)
class AgeBins:
    """Bins of age: spans with `edges`, or single `visits`."""

    labels: tuple[str, ...]
    places: tuple[float, ...]  # position of each bin on the age axis
    edges: tuple[float, ...] = ()  # T + 1 edges; a bin includes its lower edge
    visits: tuple[str, ...] = ()  # in order

    def __len__(self) -> int:
        return len(self.labels)

    def place(self, age: pd.Series) -> Array:
        """The bin (V,) of each age, the nearest one if outside all; −1 for an unknown visit."""
        if self.visits:
            at = {visit: t for t, visit in enumerate(self.visits)}
            return np.array([at.get(text, -1) for text in _texts(age)], dtype=np.intp)
        inner = np.asarray(self.edges[1:-1])
        return np.searchsorted(inner, numbers_of(age), side="right").astype(np.intp)


def numbers_of(age: pd.Series) -> Array:
    """Ages as numbers; refuses text."""
    values = pd.to_numeric(age, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"The column {str(age.name)!r} holds {age.iloc[bad[0]]!r}, which is not a number, so it cannot "
            "be divided into bins of age.",
            code="age-text",
            remedy=Advice("Give numbers, or the visits in order, as in {bins=}.", bins=AS_IN),
            column=str(age.name),
        )
    return values


def age_bins(
    age: pd.Series,
    bins: Any = "auto",
    *,
    binning: str = "quantile",
    participant: Array | None = None,
    fewest: int = FEWEST_IN_BIN,
) -> AgeBins:
    """Choose bins, or use those given."""
    if isinstance(bins, str):
        if bins != "auto":
            raise parameter_error("bins", f"={bins!r} is not known; give 'auto', a number, or edges.")
        if not pd.api.types.is_numeric_dtype(age) or age.nunique() <= MOST_VISITS:
            chosen = _visits(age, None)
        else:
            chosen = _spans(age, min(MOST_BINS, max(2, len(age) // VISITS_IN_BIN)), binning)
    elif np.ndim(bins) == 0:
        if isinstance(bins, bool) or int(bins) != bins or int(bins) < 2:
            raise parameter_error("bins", f" must be 2 or more, or 'auto', not {bins!r}.")
        chosen = _spans(age, int(bins), binning)
    elif all(isinstance(each, str) for each in bins):
        chosen = _visits(age, [str(each) for each in bins])
    else:
        chosen = _given_spans(age, [float(each) for each in bins])
    if len(chosen) < 2:
        raise InputError(
            f"The column {str(age.name)!r} has only one value ({_texts(age)[0]}): a longitudinal model needs "
            "visits at two or more ages.",
            code="one-visit",
            remedy=Advice("Fit one visit by itself with ICQF.", typed=ONE_VISIT),
        )
    if participant is not None:
        _refuse_small(chosen, chosen.place(age), participant, fewest)
    return chosen


def _texts(age: pd.Series) -> list[str]:
    return [number(value).strip() for value in age.tolist()]


def _visits(age: pd.Series, order: list[str] | None) -> AgeBins:
    present = list(dict.fromkeys(_texts(age)))
    if order is None:
        order = _in_order(age, present)
    unknown = [text for text in present if text not in order]
    if unknown or len(set(order)) < len(order):
        what = (
            f"holds {unknown[0]!r}, which is not among the bins" if unknown else "has a visit twice in bins"
        )
        raise InputError(
            f"The column {str(age.name)!r} {what} ({listed(order)}).",
            code="bins",
            remedy=Advice("Name every visit once, in order, in {bins}; or leave these visits out."),
        )
    order = [text for text in order if text in present]
    places = map(float, order if _all_numbers(order) else range(len(order)))
    return AgeBins(tuple(order), tuple(places), visits=tuple(order))


def _in_order(age: pd.Series, visits: list[str]) -> list[str]:
    """Visits ordered as categories, by number, or by the number in their names."""
    if isinstance(age.dtype, pd.CategoricalDtype) and age.dtype.ordered:
        return [number(value).strip() for value in age.dtype.categories]
    if _all_numbers(visits):
        return sorted(visits, key=float)
    inside = [re.findall(r"\d+", text) for text in visits]
    if len(visits) > MOST_VISITS or not all(len(digits) == 1 for digits in inside):
        raise InputError(
            f"The column {str(age.name)!r} holds text ({listed(visits, most=4)}), whose order is not known.",
            code="visit-order",
            remedy=Advice("Name the visits in order, as in {bins=}, or use a column of ages.", bins=AS_IN),
            column=str(age.name),
        )
    numbers = [int(digits[0]) for digits in inside]
    return [text for _, text in sorted(zip(numbers, visits, strict=True))]


def _all_numbers(texts: list[str]) -> bool:
    try:
        return all(np.isfinite(float(text)) for text in texts)
    except ValueError:
        return False


def _spans(age: pd.Series, n_bins: int, binning: str) -> AgeBins:
    values = numbers_of(age)
    if binning not in BINNING:
        raise parameter_error("binning", f"={binning!r} is not known; choose one of {listed(BINNING)}.")
    low, high = float(values.min()), float(values.max())
    if not low < high:
        return AgeBins((number(low),), (low,), (low, low))
    (lowest, highest), _ = rounded(values, low, high, float(values.mean()))  # nobody's own age
    shares = np.linspace(0, 1, n_bins + 1)
    edges = np.quantile(values, shares) if binning == "quantile" else lowest + shares * (highest - lowest)
    digits = max(0, 2 - int(np.floor(np.log10((high - low) / n_bins))))
    inner = np.unique(np.round(edges[1:-1], digits))
    inner = inner[(inner > low) & (inner < high)]
    return _labelled(values, [lowest, *inner.tolist(), highest])


def _given_spans(age: pd.Series, edges: list[float]) -> AgeBins:
    if len(edges) < 3 or not (np.diff(edges) > 0).all():
        shown = ", ".join(f"{edge:g}" for edge in edges)
        raise parameter_error(
            "bins", f" must be increasing edges of two or more bins of age, such as 5 10 15 21, not {shown}."
        )
    values = numbers_of(age)
    outside = np.flatnonzero((values < edges[0]) | (values > edges[-1]))
    if len(outside):
        raise InputError(
            f"The column {str(age.name)!r} holds {values[outside[0]]:g}, outside the bins "
            f"{edges[0]:g} to {edges[-1]:g}{_more(len(outside), 'row')}.",
            code="bins",
            remedy=Advice("Widen {bins}, or leave these visits out."),
        )
    return _labelled(values, edges)


def _labelled(values: Array, edges: list[float]) -> AgeBins:
    at = np.searchsorted(edges[1:-1], values, side="right")
    middle = [
        float(values[at == t].mean()) if (at == t).any() else (low + high) / 2
        for t, (low, high) in enumerate(itertools.pairwise(edges))
    ]
    labels = (f"{low:g}–{high:g}" for low, high in itertools.pairwise(edges))
    return AgeBins(tuple(labels), tuple(middle), edges=tuple(edges))


def _refuse_small(bins: AgeBins, at: Array, participant: Array, fewest: int) -> None:
    for t, label in enumerate(bins.labels):
        seen = len(set(participant[at == t]))
        if seen < fewest:
            raise InputError(
                f"The bin {label} holds {counted(seen, 'participant')}; with fewer than {fewest}, loadings "
                "at that age would reveal their answers.",
                code="small-bin",
                remedy=Advice("Choose fewer or wider {bins}, or leave these visits out."),
                bin=label,
                participants=seen,
            )
