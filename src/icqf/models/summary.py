"""What a fitted model shows: its summary in tables, and names of its factors, checked or suggested."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf import __version__
from icqf.data.about import plain_words
from icqf.data.confounds import INTERCEPT
from icqf.errors import Advice, InputError, counted, did_you_mean, joined, listed, shortened, shown_share
from icqf.resampling.replication import FRAGILE

if TYPE_CHECKING:
    from icqf.data.questionnaire import Item
    from icqf.models.icqf import ICQF
    from icqf.models.icqfcv import ICQFCV
    from icqf.resampling.hidden import HiddenFit

LOADED = 0.1
_MOST_TRIED = 1000


def is_loaded(shares: np.ndarray) -> np.ndarray:
    """Whether loadings, as shares of the item's range, are a tenth or more."""
    return np.asarray(shares) >= LOADED


@dataclass(frozen=True, eq=False)
class FitStatistics:
    """Sums over the participants of a fit."""

    sse: np.ndarray  # (m,), squared error of each item
    sst: np.ndarray  # (m,), sum of squares around the item's mean
    explained: np.ndarray  # (k + c, m), part of `sst` explained by each factor and confound column
    missing: np.ndarray  # (m,), number of missing answers


@dataclass(frozen=True)
class FitRecord:
    """How a fit was made, beyond its settings; `hidden` is R² of hidden answers with its standard error."""

    icqf: str = __version__
    weighted: bool = False
    tried: tuple[int, ...] = ()  # numbers of factors that cross-validation compared; none if it was set
    rule: str = ""
    n_splits: int = 0
    hidden: tuple[float, float] | None = None
    plan: str = ""  # how the fit compares with its preregistered plan

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> FitRecord:
        """The record from a model file, refused if it is not valid."""
        hidden = stored["hidden"]
        record = cls(
            plain_words(stored["icqf"]),
            bool(stored["weighted"]),
            tuple(int(k) for k in stored["tried"]),
            plain_words(stored["rule"]),
            int(stored["n_splits"]),
            None if hidden is None else (float(hidden[0]), float(hidden[1])),
            plain_words(stored["plan"]),
        )
        if len(record.tried) > _MOST_TRIED or not np.isfinite(record.hidden or 0).all():
            raise ValueError("its record of the fit is not valid")
        return record

    def chosen_by(self, search: ICQFCV) -> FitRecord:
        """The record of a model that this cross-validation chose."""
        tried = tuple(sorted({int(k) for k in search.errors_["n_components"]}))
        return replace(
            self.with_hidden(search.hidden_),
            tried=tried,
            rule=str(search.rule),
            n_splits=int(search.n_splits),
        )

    def with_hidden(self, hidden: HiddenFit | None) -> FitRecord:
        """The record with how well hidden answers were predicted, rounded; where they vary in every fold."""
        if hidden is None or not (hidden.sst.sum(axis=1) > 0).all():
            return self
        return replace(self, hidden=(round(float(hidden.overall), 2), round(float(hidden.std_error), 3)))


@dataclass(frozen=True, eq=False)
class Summary:
    """Shares of variance, top items and fit of a fitted model.

    An item's share of variance explained is the covariance of its answers with their reconstruction, divided
    by the variance of the answers; the shares of factors and confounds add up to that of the model.
    `r_squared` is 1 − (squared error / variance), for comparisons with hidden answers and with other models.

    Attributes
    ----------
    factors : DataFrame
        One row per factor: `variance_explained` (its share of the variance of all answers), `n_items` (items
        with a loading of at least a tenth of their range), the replication `probability`, if it was
        estimated (`icqf.replication_probability`), and `top_items`.
    confounds : DataFrame
        One row per confound column: `variance_explained`; 0 for the intercept.
    items : DataFrame
        One row per item: `variance_explained` and `r_squared` in this sample (missing for an item without
        variance), `n_missing`, and the `factor` with the highest loading.
    shares : DataFrame
        Share of each item's variance (rows) that each factor and confound column (columns) explains.
    variance_explained : float
        Share of the variance explained by the whole model, in this sample.
    r_squared : float
        Reduction in squared error relative to the items' means.
    n_participants, n_missing : int
    share_missing : float
    """

    factors: pd.DataFrame
    confounds: pd.DataFrame
    items: pd.DataFrame
    shares: pd.DataFrame
    variance_explained: float
    r_squared: float
    n_participants: int
    n_missing: int
    share_missing: float

    @classmethod
    def of(cls, model: ICQF, *, n_top: int = 5) -> Summary:
        """The summary of a fitted model."""
        statistics = model.fit_statistics_
        sse, sst, explained = statistics.sse, statistics.sst, statistics.explained
        missing = statistics.missing.astype(int)
        span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
        relative, k = model.components_ / span, len(model.components_)
        names, items = model.get_feature_names_out(), pd.Index(model.loadings_.index, name="item")
        total = float(sst.sum()) or np.inf  # where nothing varies, nothing is explained
        overall = explained.sum(axis=1) / total
        factors = pd.DataFrame(
            {
                "variance_explained": overall[:k],
                "n_items": is_loaded(relative).sum(axis=1),
                "top_items": [_top(items.to_numpy(), row, n_top) for row in relative],
            },
            index=pd.Index(names, name="factor"),
        )
        if model.replication_ is not None:
            factors.insert(2, "probability", model.replication_["probability"].to_numpy())
        confounds = pd.DataFrame(
            {"variance_explained": overall[k:]}, index=pd.Index(model.confound_names_, name="confound")
        )
        varying = np.where(sst > 0, sst, np.nan)
        shares = pd.DataFrame((explained / varying).T, index=items, columns=[*names, *model.confound_names_])
        strongest = np.where(relative.max(axis=0) > 0, names[relative.argmax(axis=0)], "")
        by_item = pd.DataFrame(
            {
                "variance_explained": explained.sum(axis=0) / varying,
                "r_squared": 1 - sse / varying,
                "n_missing": missing,
                "factor": strongest,
            },
            index=items,
        )
        n_answers = model.n_participants_ * len(items)
        return cls(
            factors,
            confounds,
            by_item,
            shares,
            float(overall.sum()),
            1 - float(sse.sum()) / total if np.isfinite(total) else 0.0,
            model.n_participants_,
            int(missing.sum()),
            float(missing.sum()) / n_answers,
        )

    def __str__(self) -> str:
        head = (
            f"{counted(len(self.factors), 'factor')} behind {counted(len(self.items), 'item')}, from "
            f"{counted(self.n_participants, 'participant')}; {self.n_missing} answers missing "
            f"({self.share_missing:.1%}).\n"
            f"The model explains {shown_share(self.variance_explained)} of the variance of the answers; "
            "the shares of its parts add up to this.\n"
        )
        rows = {"confounds": self.confounds["variance_explained"].sum(), "total": self.variance_explained}
        if all(name == INTERCEPT for name in self.confounds.index):
            del rows["confounds"]
        factors = pd.concat([self.factors, pd.DataFrame({"variance_explained": rows})])
        table = pd.DataFrame(
            {
                "variance_explained": factors["variance_explained"].map(shown_share),
                "n_items": [*self.factors["n_items"].map(str), *[""] * len(rows)],
                **(
                    {"replication": _replication(self.factors, len(rows))}
                    if "probability" in self.factors
                    else {}
                ),
                "top_items": factors["top_items"].fillna(""),
            }
        ).rename_axis("factor")
        items = self.items.dropna(subset="variance_explained")
        items = items.sort_values("variance_explained", ascending=False)
        best, worst = items.head(3), items.tail(3)
        lines = [
            f"Best described items: {_with_share(best)}.",
            f"Least described items: {_with_share(worst)}.",
        ]
        with pd.option_context("display.width", 120, "display.max_colwidth", 70):
            return head + "\n" + table.to_string(justify="left") + "\n\n" + "\n".join(lines)

    __repr__ = __str__


def _replication(factors: pd.DataFrame, blank: int) -> list[str]:
    """The replication probability of each factor, fragile ones marked, and empty cells for other rows."""
    marks = (f"{each:.0%}{' (fragile)' if each < FRAGILE else ''}" for each in factors["probability"])
    return [*marks, *[""] * blank]


def _top(items: np.ndarray, row: np.ndarray, n_top: int) -> str:
    order = np.argsort(-row, kind="stable")[:n_top]
    return ", ".join(str(items[j]) for j in order if row[j] > 0)


def _with_share(items: pd.DataFrame) -> str:
    shares = items["variance_explained"].round(2) + 0.0  # no "-0%"
    return ", ".join(f"{name} ({share:.0%})" for name, share in shares.items())


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
