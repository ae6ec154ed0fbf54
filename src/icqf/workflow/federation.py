"""The plan of a federated fit: all that hospitals agree on before anything is exchanged, as one TOML file."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from icqf.data.confounds import ConfoundEncoder
from icqf.data.parameters import PARAMETERS, Kind, OneOf, check_parameter, parameter_error
from icqf.data.questionnaire import Item
from icqf.data.scales import number, refuse_wide_range
from icqf.errors import InputError, did_you_mean, listed
from icqf.estimator import ICQF
from icqf.io.codebook import format_codebook
from icqf.io.entries import item_of
from icqf.io.exchange import REQUEST, file_name
from icqf.io.modelfile import StoredCodebook
from icqf.solvers.scaling import scale_of
from icqf.started import MOST

_HEAD = """\
# The plan of a federated fit. Everybody uses the same file: the answers of a site count only if its plan is
# this one. A participant's answers never leave a site; what leaves it is listed in its log.
#
# smallest_site      fewest participants of a site that takes part
# smallest_category  fewest participants of a site in a category of a confound, and with an answer to an item
# smallest_group     fewest participants that a sum over some of a site's participants may be about
# digits             significant digits of the sums that leave a site; 0 keeps all
# noise              made-up participants that each site adds to its own, whose answers are noise; 0 is none
"""
_KINDS: dict[str, Kind] = PARAMETERS | {"item_weight": OneOf(("range", "none"))}
_SETTINGS = (
    *("n_components", "beta", "item_weight", "intercept", "penalty", "n_init", "tol", "max_iter", "seed"),
    *("smallest_site", "smallest_category", "smallest_group", "digits", "noise"),
)


@dataclass(frozen=True)
class PlannedConfound:
    """A confound with its known range, or with its categories; labels say which value is which category."""

    name: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    labels: tuple[tuple[float, str], ...] = ()
    missing_codes: tuple[float | str, ...] = ()

    @property
    def entry(self) -> Item:
        """What a codebook says of it."""
        return Item(self.name, missing_codes=self.missing_codes, labels=self.labels)


@dataclass(frozen=True)
class FederatedPlan:
    """What the sites of a federated fit have agreed on.

    Parameters
    ----------
    sites : tuple of str
        The sites that take part, all of them.
    items : tuple of Item
        The items with ranges, directions and missing codes.
    n_components : int
        The number of factors.
    confounds : tuple of PlannedConfound
        Confounds with known ranges or categories.
    weights : str or None
        The column of survey weights at every site.
    beta, item_weight, intercept, penalty, n_init, tol, max_iter, seed
        As in `icqf.ICQF`; the weight of items cannot be learned from answers.
    smallest_site : int
        Fewest participants of a site.
    smallest_category : int
        Fewest participants of a site in a category of a confound, and with an answer to an item.
    smallest_group : int
        Fewest participants that a sum over some of a site's participants may be about; with 1 everything is
        sent as it is, and the fit equals that of the pooled participants to rounding.
    digits : int
        Significant digits of the sums that leave a site; 0 keeps all.
    noise : int
        Participants that each site makes up and adds to its own, so that every sum is off by theirs.

    Examples
    --------
    >>> from icqf.data import Item
    >>> from icqf.workflow import FederatedPlan
    >>> plan = FederatedPlan(("A", "B"), (Item("q1", min=0, max=3), Item("q2", min=0, max=3)), n_components=1)
    >>> FederatedPlan.of(plan.to_dict()) == plan
    True
    """

    sites: tuple[str, ...]
    items: tuple[Item, ...]
    n_components: int
    confounds: tuple[PlannedConfound, ...] = ()
    weights: str | None = None
    beta: float = 0.1
    item_weight: str = "range"
    intercept: bool = True
    penalty: str = "l1"
    n_init: int | str = "auto"
    tol: float = 1e-3
    max_iter: int = 500
    seed: int = 0
    smallest_site: int = 100
    smallest_category: int = 20
    smallest_group: int = 5
    digits: int = 0
    noise: int = 0

    def __post_init__(self) -> None:
        for name in _SETTINGS:
            check_parameter(name, getattr(self, name), _KINDS)
        _check_sites(self.sites)
        _check_items(self.items, self.n_components)
        _check_confounds(self.confounds, self.items)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, where: str = "plan") -> FederatedPlan:
        """The plan of plain values, as they stand in TOML."""
        known = {"sites", "item", "confounds", "weights", *_SETTINGS}
        for name in values:
            if name not in known:
                raise InputError(f"{where}: a plan has no {name!r}.{did_you_mean(name, known)}")
        for name in ("sites", "item", "n_components"):
            if name not in values:
                raise InputError(f"{where}: the plan does not say {name!r}.", code="plan-incomplete")
        try:
            return cls(
                sites=tuple(str(site) for site in _listed(values["sites"], "sites")),
                items=tuple(
                    item_of(entry, f"item {at}")
                    for at, entry in enumerate(_listed(values["item"], "item"), start=1)
                ),
                confounds=tuple(_confound(*each) for each in _table(values.get("confounds", {})).items()),
                weights=values.get("weights"),
                **{name: values[name] for name in _SETTINGS if name in values},
            )
        except InputError as error:
            raise error.at(where) from None

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, as they stand in TOML."""
        plain = {name: getattr(self, name) for name in _SETTINGS}
        confounds = {each.name: _confound_entry(each) for each in self.confounds}
        items = tomllib.loads(format_codebook(self.items, format="toml"))
        return {
            "sites": list(self.sites),
            **plain,
            **({} if self.weights is None else {"weights": self.weights}),
            **({"confounds": confounds} if confounds else {}),
            **items,
        }

    def to_toml(self) -> str:
        """The plan as the text of a file."""
        return _HEAD + "\n" + tomli_w.dumps(self.to_dict())

    @cached_property
    def digest(self) -> str:
        """What tells this plan from every other one."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def most_rounds(self) -> int:
        """More than this is never asked of a site."""
        starts = self.n_init if isinstance(self.n_init, int) else MOST
        return starts * (4 * self.max_iter + 200)

    @property
    def ranges(self) -> pd.DataFrame:
        """Lowest and highest answer of each item."""
        index = pd.Index([item.name for item in self.items], name="item")
        ends = [(item.min, item.max) for item in self.items]
        return pd.DataFrame(ends, index=index, columns=["min", "max"], dtype=float)

    @property
    def codebook(self) -> StoredCodebook:
        """What a model file says of the items and confounds."""
        return StoredCodebook(self.items, "", tuple(each.entry for each in self.confounds if each.labels))

    def encoder(self) -> ConfoundEncoder:
        """How the confounds become columns, the same at every site."""
        columns = [
            {
                "name": each.name,
                "categories": list(each.categories) or None,
                "low": 0.0 if each.range is None else each.range[0],
                "high": 1.0 if each.range is None else each.range[1],
                "mean": 0.5 if each.range is None else sum(each.range) / 2,
                "shares": [1 / len(each.categories) for _ in each.categories],
            }
            for each in self.confounds
        ]
        stored = {"intercept": self.intercept, "missing": "error", "columns": columns}
        return ConfoundEncoder.from_dict(stored)

    def model(self) -> ICQF:
        """The model that the plan asks for, not fitted yet, which knows its items and confounds."""
        known = {each.name: each.range for each in self.confounds if each.range is not None}
        model = ICQF(
            n_components=self.n_components,
            beta=float(self.beta),
            item_range=self.ranges,
            item_weight=None if self.item_weight == "none" else self.item_weight,
            confound_ranges=known or None,
            intercept=self.intercept,
            n_init=self.n_init,  # type: ignore[arg-type]
            penalty=self.penalty,  # type: ignore[arg-type]
            tol=self.tol,
            max_iter=self.max_iter,
            smallest_category=self.smallest_category,
            dtype="float64",
            random_state=self.seed,
        )
        span = np.ptp(self.ranges.to_numpy(), axis=1)
        scale = scale_of(model.item_weight, span)
        model.item_range_ = self.ranges
        model.item_scale_ = np.ones(len(span)) if scale is None else scale
        model.feature_names_in_ = np.array([item.name for item in self.items], dtype=object)
        model.n_features_in_ = len(self.items)
        model.confound_encoder_ = self.encoder()
        model.codebook_ = self.codebook
        model.dtype_ = np.dtype(np.float64)
        return model


def read_federated_plan(path: str | os.PathLike[str]) -> FederatedPlan:
    """Read a plan.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.data import Item
    >>> from icqf.workflow import FederatedPlan, read_federated_plan
    >>> plan = FederatedPlan(("A", "B"), (Item("q1", min=0, max=3), Item("q2", min=0, max=3)), n_components=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.toml")
    ...     _ = path.write_text(plan.to_toml(), encoding="utf-8")
    ...     read_federated_plan(path).sites
    ('A', 'B')
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    return FederatedPlan.of(values, where=path.name)


def draw_up_plan(
    codebook: Iterable[Item],
    *,
    sites: Sequence[str],
    confound_ranges: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    **settings: Any,
) -> FederatedPlan:
    """Draw up a plan from a codebook, whose entries of confounds and of weights are no items.

    Examples
    --------
    >>> from icqf.data import Item
    >>> from icqf.workflow import draw_up_plan
    >>> items = [Item("q1", min=0, max=3), Item("q2", min=0, max=3), Item("age")]
    >>> plan = draw_up_plan(items, sites=["A", "B"], confound_ranges={"age": (5, 21)}, n_components=1)
    >>> [item.name for item in plan.items], plan.confounds[0].range
    (['q1', 'q2'], (5.0, 21.0))
    """
    entries = {item.name: item for item in codebook}
    confounds = [
        PlannedConfound(name, range=(float(low), float(high)))
        for name, (low, high) in (confound_ranges or {}).items()
    ]
    confounds += [
        PlannedConfound(name, categories=tuple(sorted(each))) for name, each in (categories or {}).items()
    ]
    confounds = [
        replace(each, labels=entries[each.name].labels, missing_codes=entries[each.name].missing_codes)
        if each.name in entries
        else each
        for each in confounds
    ]
    taken = {*(each.name for each in confounds), settings.get("weights")}
    items = tuple(item for item in entries.values() if item.name not in taken)
    return FederatedPlan(tuple(sites), items, confounds=tuple(confounds), **settings)


def categories_of(said: Iterable[str]) -> dict[str, list[str]]:
    """Confounds with their categories, from texts such as ``sex=female,male``.

    Examples
    --------
    >>> categories_of(["sex=female, male"])
    {'sex': ['female', 'male']}
    """
    found: dict[str, list[str]] = {}
    for text in said:
        name, sign, rest = text.partition("=")
        each = [part.strip() for part in rest.split(",") if part.strip()]
        if not sign or not name.strip() or not each:
            raise parameter_error(
                "categories", f" must be a confound and its categories, as in sex=female,male, not {text!r}."
            )
        found[name.strip()] = each
    return found


def _check_sites(sites: tuple[str, ...]) -> None:
    if len(sites) < 2:
        raise parameter_error("sites", " must name at least two sites, all that take part.")
    names: dict[str, str] = {}
    for site in sites:
        plain = file_name(site)
        if not plain or plain == REQUEST:
            raise parameter_error("sites", f" holds {site!r}; give each site a name with letters or digits.")
        if plain in names:
            raise parameter_error(
                "sites", f" holds {names[plain]!r} and {site!r}, which are too alike for names of files."
            )
        names[plain] = site


def _check_items(items: tuple[Item, ...], k: int) -> None:
    names = [item.name for item in items]
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None:
        raise InputError(f"Item {again!r} is there twice; item names must be unique.")
    open_ended = [item.name for item in items if not item.declared]
    if open_ended:
        raise InputError(
            f"The plan does not say the range of {listed(open_ended)}.",
            code="open-range",
            remedy="Give every item its lowest and highest answer in the codebook: sites do not send theirs.",
        )
    for item in items:
        if item.min is not None and item.max is not None:
            refuse_wide_range(item.name, item.min, item.max)
    if k > len(items):
        raise parameter_error("n_components", f"={k} is more than the {len(items)} items can carry.")


def _check_confounds(confounds: tuple[PlannedConfound, ...], items: tuple[Item, ...]) -> None:
    names = [each.name for each in confounds]
    for each in confounds:
        if names.count(each.name) > 1:
            raise InputError(f"Confound {each.name!r} is there twice, with a range and with categories.")
        if (each.range is None) == (not each.categories):
            raise InputError(
                f"Confound {each.name!r} needs its known range or its categories, because sites do not send "
                "their own."
            )
        if each.range is not None and not each.range[0] < each.range[1]:
            raise InputError(f"The range of the confound {each.name!r} must begin with its lower end.")
        if each.categories and (len(each.categories) < 2 or len({*each.categories}) < len(each.categories)):
            raise InputError(f"Confound {each.name!r} needs two or more categories, each named once.")
        if list(each.categories) != sorted(each.categories):
            raise InputError(f"The categories of {each.name!r} must stand in alphabetical order.")
        if each.name in {item.name for item in items}:
            raise InputError(f"{each.name!r} is an item and a confound. Choose one.")


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name!r} must be a list.")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise InputError("Confounds are expected as tables such as [confounds.age].")
    return value


def _confound(name: str, entry: Mapping[str, Any]) -> PlannedConfound:
    known = {each.name for each in fields(PlannedConfound)} - {"name", "missing_codes"} | {"missing"}
    strange = [key for key in entry if key not in known]
    if strange:
        raise InputError(f"Confound {name!r} has the unknown entry {strange[0]!r}.")
    about = item_of(
        {"name": name, **{key: entry[key] for key in ("labels", "missing") if key in entry}}, name
    )
    ends = entry.get("range")
    try:
        low_high = None if ends is None else (float(ends[0]), float(ends[1]))
        right = ends is None or len(ends) == 2
    except (TypeError, ValueError, LookupError):
        right = False
    if not right:
        raise InputError(f"The range of the confound {name!r} must be two numbers, such as [5, 21].")
    return PlannedConfound(
        name, low_high, tuple(map(str, entry.get("categories", ()))), about.labels, about.missing_codes
    )


def _confound_entry(confound: PlannedConfound) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if confound.range is not None:
        plain["range"] = list(confound.range)
    if confound.categories:
        plain["categories"] = list(confound.categories)
    if confound.labels:
        plain["labels"] = "; ".join(f"{number(value)}={text}" for value, text in confound.labels)
    if confound.missing_codes:
        plain["missing"] = "; ".join(number(code) for code in confound.missing_codes)
    return plain
