"""A battery: several questionnaires that the same participants answered, joined by participant id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Questionnaire
from icqf.errors import Advice, InputError, InputWarning, counted, did_you_mean, listed

FEWEST_ITEMS = 3
FEWEST_PARTICIPANTS = 2
FEWEST_SHARED = 20
_FALLS = -3.0  # t statistic below which an instrument runs against the others


@dataclass(frozen=True, eq=False)
class Battery:
    """Instruments and who answered them; make one with `Battery.of`.

    The battery's participants are those of any instrument. An instrument that was not given to a participant,
    or left entirely unanswered, is missing.

    Parameters
    ----------
    instruments : dict of str to Questionnaire
        The questionnaires by name, in order.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.data import Battery
    >>> mood = pd.DataFrame({"sad": [0, 2], "low": [1, 2], "flat": [0, 1]}, index=["P1", "P2"])
    >>> sleep = pd.DataFrame({"wakes": [0, 1], "tired": [1, 1], "late": [0, 1]}, index=["P2", "P3"])
    >>> battery = Battery.of({"mood": mood, "sleep": sleep})
    >>> battery.n_participants, battery.rows("sleep").tolist()
    (3, [1, 2])
    """

    instruments: dict[str, Questionnaire]

    @classmethod
    def of(cls, instruments: Any, *, confounds: Any = None) -> Battery:
        """Join questionnaires or tables, given by name or as a list.

        Parameters
        ----------
        instruments : mapping of str to Questionnaire or table, or a list of these
            Tables are indexed by participant id. In a list, a questionnaire is named after its file, or else
            numbered.
        confounds : table, optional
            Age, sex and so on by participant id, for all instruments; replaces the questionnaires' own.
        """
        if isinstance(instruments, Battery):
            named: dict[str, Any] = dict(instruments.instruments)
        elif isinstance(instruments, Mapping):
            named = {str(name): table for name, table in instruments.items()}
        elif isinstance(instruments, (list, tuple)):
            named = _named_by_source(instruments)
        else:
            raise InputError(
                f"A battery is several questionnaires by name, not one {type(instruments).__name__}; give "
                "them as a dictionary such as {'mood': ..., 'sleep': ...}."
            )
        questionnaires = {name: _questionnaire(name, table) for name, table in named.items()}
        _refuse_counted_rows(named, questionnaires)
        battery = cls(questionnaires)
        return battery if confounds is None else battery._with_confounds(as_pandas(confounds))

    @cached_property
    def ids(self) -> pd.Index:
        """Participants of any instrument, in order of first appearance."""
        indices = [each.answers.index for each in self.instruments.values()]
        seen = dict.fromkeys(participant for index in indices for participant in index)
        names = {index.name for index in indices if index.name is not None}
        kinds = {index.dtype for index in indices}
        name = names.pop() if len(names) == 1 else "participant"
        return pd.Index(list(seen), name=name, dtype=kinds.pop() if len(kinds) == 1 else object)

    @property
    def names(self) -> list[str]:
        """Names of the instruments."""
        return list(self.instruments)

    @property
    def n_participants(self) -> int:
        """Participants of any instrument."""
        return len(self.ids)

    def rows(self, name: str) -> np.ndarray:
        """Positions of an instrument's participants among all (n_q,)."""
        return np.asarray(self.ids.get_indexer(self.instruments[name].answers.index))

    @cached_property
    def answered(self) -> pd.DataFrame:
        """Which participants (rows) answered which instruments (columns), at least in part."""
        table = np.zeros((self.n_participants, len(self.names)), dtype=bool)
        for at, (name, questionnaire) in enumerate(self.instruments.items()):
            table[self.rows(name), at] = questionnaire.answers.notna().any(axis=1).to_numpy()
        return pd.DataFrame(table, index=self.ids, columns=self.names)

    @cached_property
    def confounds(self) -> pd.DataFrame | None:
        """The confounds of all participants, each from the first instrument that has it."""
        return self._joined("confounds")

    @cached_property
    def groups(self) -> pd.Series | None:
        """Family or site of all participants, from the first instrument that has it."""
        return self._joined("groups")

    @cached_property
    def weights(self) -> pd.Series | None:
        """Survey weights of all participants, from the first instrument that has them."""
        return self._joined("weights")

    def _joined(self, kind: str) -> Any:
        """The confounds, groups or weights of all instruments, joined; None if there are none."""
        tables = [getattr(each, kind) for each in self.instruments.values()]
        tables = [table for table in tables if table is not None]
        if not tables:
            return None
        joined = reduce(lambda left, right: left.combine_first(right), tables).reindex(self.ids)
        return joined if joined.ndim == 1 else joined[list(dict.fromkeys(c for t in tables for c in t))]

    def flat(self) -> Questionnaire:
        """One questionnaire of all items, called ``instrument: item``; the subscale is the instrument."""
        tables, items = [], []
        for name, each in self.instruments.items():
            known = each.with_observed_ranges()
            own = [f"{name}: {item.name}" for item in known.items]
            tables.append(known.answers.set_axis(own, axis=1).reindex(self.ids))
            items += [
                replace(item, name=new, subscale=name) for item, new in zip(known.items, own, strict=True)
            ]
        roles = {kind: getattr(self, kind) for kind in ("confounds", "groups", "weights")}
        return Questionnaire(pd.concat(tables, axis=1), tuple(items), **roles)

    def _with_confounds(self, table: Any) -> Battery:
        if not isinstance(table, pd.DataFrame):
            raise InputError("confounds must be a table with one row per participant, indexed by their ids.")
        absent = [participant for participant in self.ids if participant not in table.index]
        if absent:
            raise InputError(
                f"confounds has no row for {counted(len(absent), 'participant')}: {listed(absent)}. Give the "
                "confounds of all participants, indexed by the same ids as the answers."
            )
        if not table.index.is_unique:
            again = table.index[table.index.duplicated()][0]
            raise InputError(f"confounds has several rows for the participant {str(again)!r}; keep one.")
        pairs = self.instruments.items()
        return Battery({name: each.with_confounds(table.loc[each.answers.index]) for name, each in pairs})

    def problems(self) -> Iterator[InputError | InputWarning]:
        """What prevents factors across instruments; warnings for what only weakens them."""
        if len(self.instruments) < 2:
            number = f"only one instrument ({self.names[0]!r})" if self.instruments else "no instrument"
            yield InputError(
                f"There is {number}; factors across instruments need at least two.",
                code="one-instrument",
                remedy=Advice(
                    "Factorize a single questionnaire with ICQF or ICQFCV.",
                    typed="Analyse a single questionnaire with icqf fit.",
                ),
            )
        for name, each in self.instruments.items():
            if each.n_items < FEWEST_ITEMS:
                yield InputError(
                    f"Instrument {name!r} has {counted(each.n_items, 'item')}; a factor of its own needs "
                    f"{FEWEST_ITEMS} or more.",
                    code="few-items",
                    remedy="Leave it out, or put its items into another instrument.",
                    instrument=name,
                )
        silent = [name for name in self.names if not self.answered[name].any()]
        for name in silent:
            yield InputError(
                f"Instrument {name!r} was answered by nobody; leave it out.",
                code="no-answers",
                instrument=name,
            )
        if not silent:
            yield from self._disconnected()
            yield from self._inconsistent_ids()
            yield from self._opposed()
        for name in self.names:
            n = int(self.answered[name].sum())
            if 0 < n < FEWEST_PARTICIPANTS:
                yield InputError(
                    f"Instrument {name!r} was answered by {counted(n, 'participant')}; factors of "
                    f"its own need {FEWEST_PARTICIPANTS} or more.",
                    code="few-participants",
                    remedy="Leave it out, or give the answers of more participants.",
                    instrument=name,
                )

    def _disconnected(self) -> Iterator[InputError | InputWarning]:
        """Instruments that share no participant, or hardly any, with the others."""
        answered = self.answered.to_numpy()
        together = answered.T.astype(int) @ answered.astype(int)
        reached, frontier = {0}, [0]
        while frontier:
            here = frontier.pop()
            new = {int(other) for other in np.flatnonzero(together[here])} - reached
            reached |= new
            frontier += sorted(new)
        apart = [at for at in range(len(self.names)) if at not in reached]
        if apart:
            one, other = self.names[0], self.names[apart[0]]
            ids = (listed(self.instruments[name].answers.index, most=3) for name in (one, other))
            first, second = ids
            yield InputError(
                f"Instrument {other!r} has no participant in common with {one!r}: their ids are {second} and "
                f"{first}.",
                code="no-shared-participants",
                remedy="Use the same ids, written the same way, in all of them, or analyse each separately.",
                instruments=(one, other),
            )
            return
        for at, name in enumerate(self.names):
            others = np.delete(answered, at, axis=1).any(axis=1)
            shared = int((answered[:, at] & others).sum())
            if shared < FEWEST_SHARED:
                yield InputWarning(
                    f"Only {counted(shared, 'participant')} of instrument {name!r} also answered another "
                    "one; how it relates to the others is estimated from these alone.",
                    code="few-shared",
                    instrument=name,
                )

    def _inconsistent_ids(self) -> Iterator[InputWarning]:
        """Ids of different instruments that differ only in leading zeros, spaces or capitals."""
        answered, rows = self.answered.to_numpy(), dict[str, list[int]]()
        for at, each in enumerate(self.ids):
            plain = re.sub(r"(?<!\d)0+(?=\d)|\.0$", "", str(each).strip().casefold())
            rows.setdefault(plain, []).append(at)
        # Both spellings in one instrument are two participants.
        n = sum(len(these) > 1 and answered[these].sum(axis=0).max() == 1 for these in rows.values())
        if n:
            yield InputWarning(
                f"The ids of {counted(n, 'participant')} are written differently in different instruments "
                "(leading zeros, '.0' at the end, spaces or capital letters), so each counts as several "
                "participants.",
                code="ids-written-otherwise",
                remedy="Write each id the same way in all instruments.",
            )

    def _opposed(self) -> Iterator[InputWarning]:
        """Instruments whose level falls as that of the others rises, which no loading can express."""
        if len(self.names) < 2:
            return
        levels = self._levels()
        spread = levels.std().replace(0.0, np.nan)
        standard = (levels - levels.mean()) / spread
        for name in self.names:
            both = pd.concat([standard[name], standard.drop(columns=name).mean(axis=1)], axis=1).dropna()
            n = len(both)
            if n < FEWEST_SHARED or float(both.std().min()) == 0:
                continue
            r = float(np.corrcoef(both.to_numpy().T)[0, 1])
            if r * np.sqrt((n - 2) / max(1 - r**2, 1e-12)) < _FALLS:
                yield InputWarning(
                    f"Instrument {name!r} runs against the others: where its answers are high, theirs are "
                    f"low (correlation {r:.2f}). Loadings cannot be negative, so no meta-factor can join it "
                    "to them.",
                    code="runs-against",
                    remedy="If high answers mean fewer problems there, declare all of its items as reversed.",
                    instrument=name,
                    correlation=r,
                )

    def _levels(self) -> pd.DataFrame:
        """Each participant's mean answer to each instrument, as a share of the items' ranges."""
        levels = {}
        for name, each in self.instruments.items():
            low, high = each.ranges().to_numpy().T
            levels[name] = ((each.keyed_answers() - low) / (high - low)).mean(axis=1).reindex(self.ids)
        return pd.DataFrame(levels)


def by_instrument(questionnaire: Questionnaire, instrument_of: Mapping[str, str] | None = None) -> Battery:
    """Split one wide questionnaire into instruments.

    Parameters
    ----------
    instrument_of : mapping of str to str, optional
        The instrument of each item, by name; items without one are left out. None: the items' subscales.

    Examples
    --------
    >>> from icqf.data import by_instrument
    >>> from icqf.datasets import load_help
    >>> {name: each.n_items for name, each in by_instrument(load_help()).instruments.items()}
    {'CES-D': 20, 'InDUC': 45, 'InDUC control': 5}
    """
    known = {item.name: item.subscale for item in questionnaire.items}
    if instrument_of is not None:
        unknown = [name for name in instrument_of if name not in known]
        if unknown:
            raise InputError(
                f"There is no item {unknown[0]!r} to put into an instrument.{did_you_mean(unknown[0], known)}"
            )
        known = {name: str(instrument_of.get(name, "")) for name in known}
    members: dict[str, list[str]] = {}
    for item, name in known.items():
        if name:
            members.setdefault(name, []).append(item)
    if not members:
        raise InputError("No item has a subscale or instrument; name the instrument of each item.")
    instruments = {}
    for name, items in members.items():
        part = questionnaire.select(items)
        instruments[name] = part.take(np.flatnonzero(part.answers.notna().any(axis=1).to_numpy()))
    return Battery(instruments)


def _named_by_source(tables: Any) -> dict[str, Any]:
    sources = [Path(str(getattr(table, "source", "") or "")).stem for table in tables]
    useful = all(sources) and len({*sources}) == len(sources)
    names = sources if useful else [f"instrument{at}" for at in range(1, len(sources) + 1)]
    return dict(zip(names, tables, strict=True))


def _questionnaire(name: str, table: Any) -> Questionnaire:
    if isinstance(table, Questionnaire):
        return table
    frame = as_pandas(table)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"Instrument {name!r} is of type {type(table).__name__}; give a questionnaire or a table "
            "indexed by participant id."
        )
    try:
        return Questionnaire.of(frame)
    except InputError as error:
        raise error.at(f"Instrument {name!r}") from None


def _refuse_counted_rows(given: Mapping[str, Any], questionnaires: Mapping[str, Questionnaire]) -> None:
    """Refuse tables without ids, unless no table has any and all have the same number of rows."""
    counts = {
        name: len(each.answers)
        for name, each in questionnaires.items()
        if isinstance(each.answers.index, pd.RangeIndex) and not isinstance(given[name], Questionnaire)
    }
    if counts and (len({*counts.values()}) > 1 or len(counts) < len(questionnaires)):
        name = next(iter(counts))
        raise InputError(
            f"Instrument {name!r} has no participant ids, only row numbers, so its rows cannot be matched to "
            "those of the other instruments.",
            code="no-ids",
            remedy="Set the index of every table to the ids, as in table.set_index('id').",
        )
