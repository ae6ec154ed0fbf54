"""The page of a battery's meta-factors: three levels, what each one says, and whether two stages pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icqf.data.battery import Battery
from icqf.errors import counted, shown_share
from icqf.models.hierarchy import ALL, ALONE, FLAT, TWO_STAGES, HierarchyComparison
from icqf.models.meta import MetaICQF
from icqf.plotting.comparison import three_levels
from icqf.plotting.style import default_settings
from icqf.report.blocks import Grid, Picture, Section
from icqf.report.document import Document, made_by

_TOP, _OF_EACH = 9, 3  # items shown, and most of one instrument
_LEAST = 0.1


def meta_page(
    model: MetaICQF,
    battery: Battery,
    comparisons: Sequence[HierarchyComparison] = (),
    *,
    title: str = "",
) -> Document:
    """Describe a fitted battery.

    Parameters
    ----------
    model : fitted MetaICQF
    battery : Battery
        What it was fitted to.
    comparisons : sequence of HierarchyComparison
        Two stages beside one flat factorization, where that was looked at.
    title : str
        Name of the battery.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF
    >>> from icqf.report import meta_page
    >>> battery = make_battery(n=100, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> meta_page(model, battery, title="A and B").title
    'Meta-factors of A and B'
    """
    k = len(model.meta_.components_)
    factors = len(model.loadings_)
    share = model.meta_.summary().variance_explained
    complete = int(battery.answered.all(axis=1).sum())
    lead = [
        f"{counted(k, 'meta-factor')} behind {counted(factors, 'factor')} of "
        f"{counted(len(battery.names), 'instrument')}, from "
        f"{counted(battery.n_participants, 'participant')}, of whom "
        f"{complete} answered every instrument.",
        f"The meta-factors explain {shown_share(share)} of the variance of the factors' scores.",
        *(each.verdict for each in comparisons),
    ]
    with default_settings():
        ax = three_levels(model.loadings_, model.top_items())
    figure = Picture(
        "levels",
        ax.figure,  # type: ignore[arg-type]
        "Meta-factors, the factors of the instruments that follow them, and the strongest items of each "
        "factor. A "
        "wider line is a higher loading.",
    )
    sections = [
        Section("Three levels", [figure]),
        Section("What each meta-factor says", [_factors(model), *_items(model)]),
        Section("The instruments", [_instruments(model, battery)]),
    ]
    if comparisons:
        sections.append(Section("Is the second level worthwhile?", _judged(comparisons)))
    sections.append(Section("How this was done", _methods(model)))
    name = title or "a battery"
    return Document(f"Meta-factors of {name}", lead, sections, footer=made_by())


def _factors(model: MetaICQF) -> Grid:
    table = model.loadings_
    rows = [
        [f"{instrument}, factor {str(factor).removeprefix('factor')}", *(f"{value:.2f}" for value in values)]
        for (instrument, factor), values in zip(table.index, table.to_numpy(), strict=True)
    ]
    return Grid(
        "What a meta-factor adds to the score of each factor (0 to 1)",
        ["Factor", *_shown(table.columns)],
        rows,
    )


def _items(model: MetaICQF) -> list[str | Grid | Picture]:
    """The items that move most with each meta-factor, as shares of their range."""
    about = {
        (name, item.name): (item.wording or item.name) + (" (reversed)" if item.reverse else "")
        for name, each in model.instruments_.items()
        for item in each.codebook_.items
    }
    width = pd.concat(
        {name: each.item_range_["max"] - each.item_range_["min"] for name, each in model.instruments_.items()}
    )
    found: list[str | Grid | Picture] = []
    for name, title in zip(model.item_loadings_, _shown(model.item_loadings_.columns), strict=True):
        shares = (model.item_loadings_[name] / width.to_numpy()).clip(upper=1)
        ordered = shares.sort_values(ascending=False, kind="stable")
        top = ordered.groupby(level=0, sort=False).head(_OF_EACH).head(_TOP)
        rows = [
            [about.get(key, str(key[1])), str(key[0]), f"{share:.0%}"]
            for key, share in zip(top.index, top, strict=True)
            if share >= _LEAST
        ]
        if rows:
            found.append(
                Grid(
                    f"{title}: the items that move most with it, three of an instrument at most, by share "
                    f"of their range",
                    ["Item", "Instrument", "Share"],
                    rows,
                )
            )
        else:
            found.append(f"{title} moves no item by a tenth of its range or more.")
    return found


def _instruments(model: MetaICQF, battery: Battery) -> Grid:
    rows = []
    for name, each in model.instruments_.items():
        answered = battery.answered[name]
        summary = each.summary()
        mine = model.loadings_.loc[[name]].to_numpy()
        alone = int((mine.max(axis=1) < _LEAST).sum())
        rows.append(
            [
                name,
                str(len(summary.items)),
                str(int(answered.sum())),
                shown_share(float(1 - answered.mean())),
                str(len(each.components_)),
                f"{each.beta:g}",
                shown_share(summary.variance_explained),
                str(alone) if alone else "–",
            ]
        )
    head = [
        "Instrument",
        "Items",
        "Participants",
        "Without it",
        "Factors",
        "β",
        "Explained",
        "In no meta-factor",
    ]
    return Grid("The first stage: each instrument by itself", head, rows)


def _judged(comparisons: Sequence[HierarchyComparison]) -> list[str | Grid | Picture]:
    found: list[str | Grid | Picture] = []
    for each in comparisons:
        methods = [name for name in (ALONE, TWO_STAGES, FLAT) if name in each.overall]
        table = each.table.pivot(index="instrument", columns="method", values="predicted")
        order = list(dict.fromkeys(each.table["instrument"]))
        rows = [
            [name, *("–" if np.isnan(value) else f"{value:.3f}" for value in table.loc[name, methods])]
            for name in order
        ]
        what = "answers" if each.hide == "answers" else "whole instruments of participants who have others"
        caption = f"Share of the variance of hidden {what} that is predicted ({each.n_splits} folds)"
        found += [
            Grid(caption, ["Instrument", *(name[:1].upper() + name[1:] for name in methods)], rows),
            each.verdict,
        ]
    flat = comparisons[0].flat
    found.append(
        f"The flat factorization has {counted(len(flat.components_), 'factor')} of all items together, "
        f"chosen by "
        f"cross-validation like those of the instruments. A number below 0 says that the items' means "
        f"predict better. "
        f"{ALL[:1].upper()}{ALL[1:]} counts every item by its range."
    )
    return found


def _methods(model: MetaICQF) -> list[str | Grid | Picture]:
    chosen = "chosen by cross-validation" if model.searches_ else "given"
    return [
        "First every instrument was factorized by itself; then the scores of its factors, which lie "
        "between 0 and 1, "
        "were joined by participant and factorized in turn, with missing scores for participants without an "
        "instrument. The loading of a meta-factor on an item is the sum, over the instrument's factors, of "
        "the item's "
        "loading times that of the factor.",
        f"Numbers of factors and penalties were {chosen}. In the comparison every fold is fitted afresh, "
        f"both stages "
        "and the flat factorization on the same visible answers.",
    ]


def _shown(names: Sequence[str] | pd.Index) -> list[str]:
    return [f"Meta-factor {str(name).removeprefix('meta')}" for name in names]
