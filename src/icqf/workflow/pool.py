"""Pool the model files of several sites: one model, a table of agreement between sites, and a page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from icqf.analyses.pooling import COUNTERPART, TRIMMED, Pooled, compatible, pool
from icqf.errors import InputError, counted, shown_share
from icqf.io.write import write_table
from icqf.models.icqf import ICQF
from icqf.plotting.style import correlation_cells, factor_names
from icqf.report.blocks import Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.resampling.matching import Match, match_factors
from icqf.resampling.replication import FOUND
from icqf.workflow.results_folder import DECIMALS, refuse_file

_OTHER_KINDS = {"longitudinal-model": "a model of repeated visits", "battery-model": "the model of a battery"}


def pool_models(paths: Sequence[str | os.PathLike[str]]) -> Pooled:
    """Pool the model files of several sites; see `icqf.analyses.pool`.

    Sites are named after their files, or after their folders if the files all have the same name.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.workflow import pool_models
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for half, site in enumerate(["north", "south"]):
    ...         ICQF(2).fit(demo.take(np.arange(half, 600, 2))).save(f"{folder}/{site}.icqf")
    ...     pool_models([f"{folder}/north.icqf", f"{folder}/south.icqf"]).sites["participants"].to_dict()
    {'north': 300, 'south': 300}
    """
    files = [Path(path) for path in paths]
    if len(files) < 2:
        raise InputError(
            f"{files[0] if files else 'Nothing'} is not enough to pool; give the model files of two sites or "
            "more.",
            code="one-site",
        )
    models = [_site_model(path) for path in files]
    loadings = [model.components_.tobytes() for model in models]  # names of factors may differ
    for at, own in enumerate(loadings):
        if own in loadings[:at]:
            raise InputError(
                f"{files[at]}: this is the same model as {files[loadings.index(own)]}; give each site's "
                "model once."
            )
    compatible(dict(zip(map(os.fspath, files), models, strict=True)))
    return pool(dict(zip(_site_names(files), models, strict=True)))


def _site_model(path: Path) -> ICQF:
    try:
        return ICQF.load(path)
    except InputError as error:
        kind = _OTHER_KINDS.get(error.code or "")
        if kind is None:
            raise
        raise InputError(
            f"{path}: this is {kind}, and only models of icqf fit can be pooled.", code="no-site-model"
        ) from None


def _site_names(files: Sequence[Path]) -> list[str]:
    """Return the names of the sites: of their files, their folders, or their paths."""
    stems = [path.stem for path in files]
    folders = [path.resolve().parent.name for path in files]
    for names in (stems, folders):
        if max(Counter(names).values()) == 1 and all(names):
            return names
    return [os.fspath(path) for path in files]


def write_pooled(
    pooled: Pooled, path: str | os.PathLike[str], *, force: bool = False, inputs: Sequence[Path] = ()
) -> list[Path]:
    """Write a pooled model, and next to it the table of agreement and the page."""
    model = Path(path)
    refuse_pooled(model, force=force, inputs=inputs)
    table = model.with_suffix(".csv")
    pooled.model.save(model)
    write_table(pooled.agreement.set_index(["factor", "site"]), table, decimals=DECIMALS)
    return [model, table, *write_document(model.with_suffix(".html"), pooled_page(pooled, model))]


def refuse_pooled(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse a path where a pooled model, its table or its page cannot be written."""
    if path.suffix.lower() != ".icqf":
        raise InputError(f"{path}: choose a model file, such as {path.stem or 'pooled'}.icqf.")
    for each in (path, *(path.with_suffix(end) for end in (".csv", ".html", ".md")), _picture(path)):
        refuse_file(each, force=force, inputs=inputs)


def _picture(path: Path) -> Path:
    return path.with_name(f"{path.stem}-agreement.png")


def pooled_page(pooled: Pooled, path: Path) -> Document:
    """Return the page of a pooled model."""
    model, agreement = pooled.model, pooled.agreement
    shown = dict(zip(pooled.factors.index, factor_names(pooled.factors.index, None), strict=True))
    items = dict(zip(pooled.factors.index, model.summary().factors["top_items"], strict=True))
    wide = agreement.pivot(index="factor", columns="site", values="r")
    wide = wide.loc[list(pooled.factors.index), list(pooled.sites.index)]
    figure = Figure(figsize=(2.2 + 0.75 * wide.shape[1], 1.4 + 0.5 * len(wide)), layout="constrained")
    correlation_cells(
        figure.add_subplot(), wide.to_numpy(), [shown[name] for name in wide.index], list(wide.columns)
    )
    sites = [
        [str(name), str(int(row.participants)), f"{row.mean_r:.2f}"] for name, row in pooled.sites.iterrows()
    ]
    heads = {"r": "r", "r_mean": "mean r", "r_lowest": "lowest r", "lowest_site": "at"}
    agreed = shown_factors(pooled)
    factors = [
        [shown[name], str(items[name]),
         *(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.iloc[:-1]),
         shown_share(row.iloc[-1])]
        for name, row in agreed.iterrows()
    ]  # fmt: skip
    return Document(
        "One model from several sites",
        [lead(pooled), *pooled.notes],
        [
            Section(
                "Sites",
                [
                    Grid("Sites, and the mean correlation of their factors with those of the other sites",
                         ["site", "participants", "mean r"], sites),
                ],
            ),
            Section(
                "Factors",
                [
                    Grid("Factors, and how well the sites agree on them",
                         ["factor", "strongest items", *(heads[name] for name in agreed.columns[:-1]),
                          "typical difference"],
                         factors),
                    "r is the correlation of a site's loadings with the pooled loadings of the other sites; "
                    f"from {FOUND:g} on a factor counts as found there. The typical difference is how far a "
                    "site's loadings lie from the pooled ones, as a share of the item's range: with 5.0%, a "
                    "fifth of a point on a scale from 0 to 4. Small sites differ by chance alone.",
                    Picture(_picture(path).stem, figure, "Each site compared with the others"),
                ],
            ),
            Section("Methods", _method(pooled)),
        ],
        footer=made_by("icqf pool"),
    )  # fmt: skip


def lead(pooled: Pooled) -> str:
    """Return what was pooled and how well the sites agree, in two sentences."""
    factors, model = pooled.factors, pooled.model
    worst = factors.iloc[int(factors["r_lowest"].argmin())]
    mean, lowest = f"{factors['r_mean'].mean():.2f}", f"{worst['r_lowest']:.2f} ({worst.name}"
    head = (
        f"{counted(len(factors), 'factor')} behind {counted(model.n_features_in_, 'item')}, pooled from "
        f"{len(pooled.sites)} sites with {counted(model.n_participants_, 'participant')}."
    )
    if len(pooled.sites) == 2:  # one correlation for both
        return f"{head} The loadings of the two correlate {mean} on average; the lowest is {lowest})."
    return (
        f"{head} The loadings of a site correlate {mean} with those of the others on average; the lowest is "
        f"{lowest} at {worst['lowest_site']})."
    )


def shown_factors(pooled: Pooled) -> pd.DataFrame:
    """Return the table of agreement on each factor; for two sites, without the lowest."""
    table = pooled.factors.rename(columns={"difference": "typical_difference"})
    if len(pooled.sites) == 2:
        return table.drop(columns=["r_lowest", "lowest_site"]).rename(columns={"r_mean": "r"})
    return table


def _method(pooled: Pooled) -> list[str]:
    columns = pooled.model.confound_encoder_.columns
    ranges = ", ".join(
        f"{each.name} {each.low:g} to {each.high:g}" for each in columns if not each.categories
    )
    left_out = int(np.sum(~pooled.agreement["averaged"]))
    here = f" ({left_out} of {len(pooled.agreement)} here)." if left_out else "; here all were averaged."
    texts = [
        "Each site fitted its own participants; only their models were brought together. Factors were "
        "matched to the mean of all sites until no match changed. Loadings were averaged, weighted by the "
        "numbers of participants and by how well the site agrees with the others on the factor (r squared), "
        f"without the highest and the lowest {TRIMMED:.0%} of the weight. A site's factor that correlates "
        f"less than {COUNTERPART:g} with the others' is not averaged{here}",
        "Explained variance is that within sites.",
    ]
    if ranges:
        texts.append(
            f"Confounds have the widest range of any site: {ranges}. If a site has a narrower range, its "
            "straight line was extrapolated."
        )
    return texts


METHODS = ("greedy", "optimal")
SIMILARITIES = ("pearson", "congruence")


@dataclass(frozen=True, eq=False)
class ModelPair:
    """The matched factors of two models, with notes on the comparison."""

    match: Match
    notes: tuple[str, ...]


def compare_models(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    method: Literal["greedy", "optimal"] = "greedy",
    similarity: Literal["pearson", "congruence"] = "pearson",
) -> ModelPair:
    """Pair the factors of two model files by their loadings on the items they share, by `match_factors`."""
    a, b = ICQF.load(first), ICQF.load(second)
    items_a, items_b = a.codebook_.items, b.codebook_.items
    match = match_factors(a, b, method=method, similarity=similarity)
    keyed_a, keyed_b = ({item.name for item in items if item.reverse} for items in (items_a, items_b))
    differ = [name for name in a.loadings_.index if name in keyed_a ^ keyed_b and name in b.loadings_.index]
    note = f"Reversed in only one of the studies: {', '.join(map(str, differ))}."
    return ModelPair(match, (note,) if differ else ())
