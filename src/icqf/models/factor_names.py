"""Names of factors: checks, and suggestions from the items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.errors import Advice, InputError, counted, did_you_mean, joined, listed, shortened
from icqf.models.summary import is_loaded

if TYPE_CHECKING:
    from icqf.data.questionnaire import Item

N_TOP = 10
WORTH_SHOWING = 0.05  # smallest loading of a top item, as a share of its range
MOSTLY = 0.6  # share of a factor's items from one subscale, from which it is that subscale's
BRIDGED = 1 / 3  # share of a subscale's items from which a factor bridges it
LONGEST = 60
_SUGGESTED = 36


def default_names(k: int) -> list[str]:
    """The default names of factors."""
    return [f"factor{r}" for r in range(1, k + 1)]


def top_places(shares: Any) -> list[int]:
    """Positions of a factor's top items: at most ten, with loadings of a twentieth of the range or more."""
    values = np.asarray(shares, dtype=float)
    return [int(j) for j in (-values).argsort(kind="stable")[:N_TOP] if values[j] >= WORTH_SHOWING]


def checked_names(
    own: Sequence[str], names: Sequence[str] | Mapping[str, str], *, taken: Iterable[str] = ()
) -> list[str]:
    """One name for each factor, checked for use as a column name."""
    if isinstance(names, Mapping):
        keys = default_names(len(own))
        strange = [str(name) for name in names if str(name) not in (*own, *keys)]
        if strange:
            raise InputError(f"There is no factor {strange[0]!r}.{did_you_mean(strange[0], own)}")
        given = [str(names.get(name) or names.get(key) or name) for name, key in zip(own, keys, strict=True)]
    else:
        if isinstance(names, str) or len(names) != len(own):
            number = 1 if isinstance(names, str) else len(names)
            raise InputError(
                f"There {'is' if number == 1 else 'are'} {counted(number, 'name')} for "
                f"{counted(len(own), 'factor')}.",
                code="name-count",
                remedy=Advice(
                    "Give one name for each factor, in their order, or some of them as in {names=}.",
                    names={"factor2": "NAME"},
                ),
                n_factors=len(own),
            )
        given = [str(name or old) for name, old in zip(names, own, strict=True)]
    given = [" ".join(name.split()) for name in given]
    lower = [name.casefold() for name in given]
    for at, name in enumerate(given):
        if not name or not name.isprintable():
            raise InputError(f"The name {name!r} cannot be shown; give one of letters and digits.")
        if len(name) > LONGEST:
            raise InputError(
                f"The name {name[:30]!r}… has {len(name)} characters; give one of at most {LONGEST}."
            )
        if lower[at] in lower[:at]:
            raise InputError(f"Two factors are named {name!r}; give each factor a name of its own.")
        if lower[at] in {str(other).casefold() for other in taken}:
            raise InputError(f"The name {name!r} is that of a confound; give the factor another one.")
        numbered = re.fullmatch(r"factor ?(\d+)", lower[at])
        if numbered and int(numbered[1]) != at + 1:
            raise InputError(f"The name {name!r} was given to factor {at + 1}, which has another number.")
    return given


_IN_ORDER = "A name belongs to a factor's content, so give names in this model's order"
_OR_EDIT = "or edit the column name of the table of factors, which also shows the top items"


def refuse_swapped(
    names: Sequence[str], known: Sequence[Sequence[str]], top_items: Sequence[Sequence[str]]
) -> None:
    """Refuse a name that belongs to the content of another factor."""
    owners: dict[str, set[int]] = {}
    for at, others in enumerate(known):
        for name in others:
            owners.setdefault(name.casefold(), set()).add(at)
    for at, name in enumerate(names):
        mine = owners.get(name.casefold(), {at})
        if at not in mine:
            other = min(mine)
            raise InputError(
                f"The name {name!r} was given to factor {at + 1}, whose top items are "
                f"{listed(top_items[at], most=3)}; it goes with factor {other + 1} "
                f"({listed(top_items[other], most=3)}).",
                code="swapped-names",
                remedy=Advice(f"{_IN_ORDER}.", typed=f"{_IN_ORDER}; {_OR_EDIT}."),
            )


@dataclass(frozen=True)
class Theme:
    """The subscales that a factor's own items come from: one that most belong to, several, or none."""

    scales: tuple[tuple[str, int, int], ...]  # name, number of the factor's own items, size of the subscale
    only: bool  # whether all of the factor's own items are from one subscale

    @property
    def words(self) -> str:
        """The theme as part of a sentence; empty without subscales."""
        parts = [f"{name} ({n} of its {counted(size, 'item')})" for name, n, size in self.scales]
        if not parts:
            return ""
        if len(parts) > 1:
            return f"bridges {joined(parts)}"
        return parts[0] if self.only else f"mostly {parts[0]}"


def own_items(shares: Any) -> np.ndarray:
    """Which items are a factor's own (m, k): a loading of at least a tenth of the range, and the highest."""
    values = np.asarray(shares, dtype=float)
    return np.asarray(is_loaded(values) & (values == values.max(axis=1, keepdims=True)))


def themes(shares: Any, subscales: Sequence[str]) -> list[Theme]:
    """The theme of every factor."""
    own = own_items(shares)
    sizes = Counter(scale for scale in subscales if scale)
    by_factor = []
    for mine in own.T:
        counts = Counter(scale for scale, is_own in zip(subscales, mine, strict=True) if is_own and scale)
        total = sum(counts.values())
        if not total:
            by_factor.append(Theme((), False))
            continue
        scale, n = counts.most_common(1)[0]
        scales = [
            (name, many, sizes[name]) for name, many in counts.most_common() if many >= BRIDGED * sizes[name]
        ]
        if n > MOSTLY * total:
            scales = [(scale, n, sizes[scale])]
        by_factor.append(Theme(tuple(scales[:3]), len(scales) == 1 and scales[0][1] == total))
    return by_factor


def suggested_names(shares: pd.DataFrame, items: Iterable[Item]) -> list[str]:
    """A suggested name for each factor: its subscale, or the wording of its strongest item."""
    known = {item.name: item for item in items}
    rows = [known.get(str(name)) for name in shares.index]
    by_factor = themes(shares, ["" if item is None else item.subscale for item in rows])
    names: list[str] = []
    for r, theme in enumerate(by_factor):
        ranked = (-shares.iloc[:, r].to_numpy()).argsort(kind="stable")
        wording = _from_wording([rows[j] for j in ranked[:5]], str(shares.index[ranked[0]]))
        name = " / ".join(scale for scale, _, _ in theme.scales[:2])
        same = {other.casefold() for other in names}
        options = [name, f"{name}: {wording[:1].lower()}{wording[1:]}" if name else wording]
        options += [f"{options[-1]} ({number})" for number in range(2, len(by_factor) + 2)]
        names.append(next(option for option in options if option and option.casefold() not in same))
    return names


def shown_names(own: Sequence[str], suggested: Sequence[str]) -> list[str]:
    """Names for a report: the given names, else a number with a suggestion."""
    numbered = zip(own, default_names(len(own)), suggested, strict=True)
    return [
        f"Factor {r} ({suggestion})" if name == key else name
        for r, (name, key, suggestion) in enumerate(numbered, 1)
    ]


def _from_wording(top: Sequence[Item | None], fallback: str) -> str:
    """The wording of the strongest item that is not reversed; if all are, that of the strongest, marked."""
    for item in top:
        if item is not None and item.wording and not item.reverse:
            return shortened(item.wording.rstrip("."), _SUGGESTED)
    strongest = top[0]
    if strongest is not None and strongest.reverse:
        return f"{shortened((strongest.wording or fallback).rstrip('.'), _SUGGESTED)} (reversed)"
    return shortened(fallback, _SUGGESTED)
