"""One model from the models of several sites, without sharing participants' data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.analyses.short_forms import with_items
from icqf.core.certificate import inside_range, rounded
from icqf.data.about import About
from icqf.data.confounds import ConfoundEncoder, category_key
from icqf.data.settings import PENALTIES
from icqf.errors import InputError, counted, listed
from icqf.io.model_file import StoredModel
from icqf.models.icqf import ICQF
from icqf.models.persistence import OBJECTIVE_DIGITS, rebuild, significant
from icqf.models.summary import FitRecord, default_names, is_loaded
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.replication import FOUND

# Settings that affect scores, in words.
_SETTINGS = {
    "beta": "a penalty beta of",
    "penalty": "the penalty",
    "item_weight": "an item weighting of",
    "intercept": "intercept",
    "score_max": "a highest score of",
    "loading_max": "a highest loading of",
    "reconstruction_max": "a highest reconstructed answer of",
}
Array = NDArray[Any]
TRIMMED = 0.15  # share of the sites' weight trimmed at either end of every loading
COUNTERPART = 0.5  # lowest correlation of loadings of the same factor


def compatible(models: Mapping[str, ICQF]) -> list[ICQF]:
    """The models with their items in the first one's order; refused if they cannot be pooled."""
    first, *others = models
    for name in others:
        difference = _difference(models[first], models[name])
        if difference:
            raise InputError(
                f"{name}: the model has {difference[0]}, and that of {first} has {difference[1]}.",
                code="different-sites",
                remedy="Fit all sites with one codebook and one config.toml that sets n_components and beta.",
                site=name,
            )
    reference = models[first]
    if isinstance(reference.item_weight, str) and reference.item_weight == "variance":
        raise InputError(
            f"{first}: its items are weighted by the variance of the site's own answers, which differs "
            "between sites.",
            code="learned-weights",
            remedy='Fit all sites with item_weight="range".',
        )
    items = list(reference.item_range_.index)
    return [
        model if list(model.item_range_.index) == items else with_items(model, items)
        for model in models.values()
    ]


def _difference(a: ICQF, b: ICQF) -> tuple[str, str] | None:
    """The first difference between `b` and `a`, in words; None if they can be pooled."""
    ours, theirs = list(a.item_range_.index), list(b.item_range_.index)
    if {*ours} != {*theirs}:
        more = [name for name in theirs if name not in {*ours}]
        fewer = [name for name in ours if name not in {*theirs}]
        if more:
            return f"the item {more[0]!r}", f"no such item ({counted(len(ours), 'item')})"
        return f"no item {fewer[0]!r}", f"it ({counted(len(ours), 'item')})"
    for name in ours:
        (low, high), (other_low, other_high) = a.item_range_.loc[name], b.item_range_.loc[name]
        if (low, high) != (other_low, other_high):
            return (
                f"the range {other_low:g} to {other_high:g} for the item {name!r}",
                f"{low:g} to {high:g}",
            )
    if len(a.components_) != len(b.components_):
        return counted(len(b.components_), "factor"), str(len(a.components_))
    if bool(a.codebook_.items) != bool(b.codebook_.items):
        return tuple(
            "a codebook" if model.codebook_.items else "none, so that its reversed items are not known"
            for model in (b, a)
        )  # type: ignore[return-value]
    known, other = ({item.name: item.reverse for item in model.codebook_.items} for model in (a, b))
    for name in known:
        if known[name] != other[name]:
            return tuple(f"the item {name!r} {_keyed(each[name])}" for each in (other, known))  # type: ignore[return-value]
    for name, words in _SETTINGS.items():
        values = [_plain(getattr(model, name)) for model in (b, a)]
        if values[0] != values[1]:
            return f"{words} {values[0]}", str(values[1])
    return _different_confounds(a.confound_encoder_, b.confound_encoder_)


def _different_confounds(a: ConfoundEncoder, b: ConfoundEncoder) -> tuple[str, str] | None:
    ours, theirs = ({column.name: column for column in encoder.columns} for encoder in (a, b))
    if {*ours} != {*theirs}:
        names = [f"the confounds {listed(each)}" if each else "no confounds" for each in (theirs, ours)]
        return names[0], names[1]
    for name in ours:
        kinds = [
            "numbers" if each.categories is None else f"the categories {listed(map(str, each.categories))}"
            for each in (theirs[name], ours[name])
        ]
        mine, other = (
            None if each.categories is None else {*map(category_key, each.categories)}
            for each in (ours[name], theirs[name])
        )
        if mine != other:
            return f"{kinds[0]} for the confound {name!r}", kinds[1]
    return None


def _keyed(reverse: bool) -> str:
    return "reversed" if reverse else "not reversed"


def _plain(value: Any) -> Any:
    return [float(each) for each in value] if isinstance(value, list | tuple | np.ndarray) else value


@dataclass(frozen=True, eq=False)
class Pooled:
    """A model pooled from those of several sites, and how well the sites agree.

    Attributes
    ----------
    model : ICQF
        The pooled model; its explained variance is that within sites.
    sites : DataFrame
        One row per site: `participants`, and `mean_r`, the mean over factors of `r` in `agreement`.
    agreement : DataFrame
        One row per factor and site: `own_factor` (its name in the site's model), `r` (correlation of the
        site's loadings with the pooled loadings of the other sites), `found` (whether r is at least 0.8) and
        `averaged` (whether the site counts in the pooled factor).
    factors : DataFrame
        One row per factor: `r_mean`, `r_lowest`, `lowest_site`, and `difference`, the typical distance of a
        site's loadings from the pooled ones, as a share of the item's range (root mean square over the items
        that load on the factor, and over sites by participants).
    notes : tuple of str
        Outlying sites, factors found at some sites only, and other notes.
    """

    model: ICQF
    sites: pd.DataFrame
    agreement: pd.DataFrame
    factors: pd.DataFrame
    notes: tuple[str, ...]


def pool(models: Mapping[str, ICQF]) -> Pooled:
    """Pool the models that several sites fitted to their own participants.

    Factors are matched across sites, and loadings averaged, weighted by participants and agreement with the
    other sites (n r²). The highest and lowest 15 % of the weight of every loading are trimmed, and a site
    whose factor correlates less than 0.5 with the other sites' does not count in that factor. Loadings of
    confounds are averaged over the widest range of any site, to which each site's line is extrapolated.

    Parameters
    ----------
    models : mapping of str to ICQF
        Fitted models by the name of the site, with the same items, ranges, directions, number of factors,
        confounds and settings.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import pool
    >>> demo = load_demo().select(["q00*", "q01*"]).with_confounds(None)
    >>> halves = [demo.take(np.arange(half, 600, 2)) for half in (0, 1)]
    >>> pooled = pool({"North": ICQF(2).fit(halves[0]), "South": ICQF(2).fit(halves[1])})
    >>> pooled.model.n_participants_, pooled.model.transform(demo).shape
    (600, (600, 2))
    """
    if len(models) < 2:
        raise InputError("There is one model; give those of two sites or more.", code="one-site")
    # The result does not depend on the order of the sites.
    ordered = sorted(
        zip(models, compatible(models), strict=True),
        key=lambda entry: (-entry[1].n_participants_, entry[1].components_.tobytes()),
    )
    names, fitted = [name for name, _ in ordered], [model for _, model in ordered]
    weights = np.array([model.n_participants_ for model in fitted], dtype=float)
    scale = fitted[0].item_scale_
    own = [model.components_ for model in fitted]
    orders = _site_orders([loadings * scale for loadings in own], weights)
    explained = [model.fit_statistics_.explained for model in fitted]
    k = len(own[0])
    shares = sum(each[:k][order].sum(axis=1) for each, order in zip(explained, orders, strict=True))
    ranked = np.argsort(-np.asarray(shares), kind="stable")
    orders = [order[ranked] for order in orders]
    loadings = np.stack([each[order] for each, order in zip(own, orders, strict=True)])  # (sites, k, m)
    r, averaged = _agreement(loadings * scale, weights)
    # Sites at which a factor is mixed with others agree less and count less.
    counts = averaged * weights[:, None] * np.maximum(r, 0) ** 2
    counts = np.where(counts.any(axis=0), counts, averaged * weights[:, None])
    pooled = _trimmed_mean(loadings, counts)
    encoder = _common_encoder(fitted, weights)
    confounds = _confound_loadings(fitted, encoder, weights)
    model = _pooled_model(fitted, pooled, confounds, encoder, orders)
    return _result(models, names, model, loadings, r, averaged, weights, orders, fitted)


# --- factors ------------------------------------------------------------------------------------------------


def _site_orders(loadings: Sequence[Array], weights: Array) -> list[Array]:
    """The order of each site's factors that agrees best with the mean of all sites, from several starts."""
    best: list[Array] = []
    highest = -np.inf
    for reference in loadings:
        orders = [aligned(reference, each)[0] for each in loadings]
        for _ in range(100):
            mean = np.average(
                [each[order] for each, order in zip(loadings, orders, strict=True)], axis=0, weights=weights
            )
            alignments = [aligned(mean, each) for each in loadings]
            again = [order for order, _ in alignments]
            if all(np.array_equal(a, b) for a, b in zip(orders, again, strict=True)):
                break
            orders = again
        value = float(weights @ [agreement for _, agreement in alignments])
        if value > highest + 1e-12:
            best, highest = orders, value
    return best


def _agreement(loadings: Array, weights: Array) -> tuple[Array, Array]:
    """Correlation of each site's factors with the others' mean, and whether the site counts: (sites, k).

    The site that agrees least is dropped while it is below `COUNTERPART`; if no two agree, the largest stays.
    """
    n_sites, k, _ = loadings.shape
    r, averaged = np.zeros((n_sites, k)), np.ones((n_sites, k), dtype=bool)
    for f in range(k):
        own, inside = loadings[:, f], averaged[:, f]
        pairs = correlations(own, own)
        np.fill_diagonal(pairs, 0)
        while inside.sum() > 1:
            r[:, f] = _with_others(own, weights, inside)
            kept = np.flatnonzero(inside)
            if r[kept, f].min() >= COUNTERPART:
                break
            if pairs[np.ix_(kept, kept)].max() < COUNTERPART:
                inside[:] = False
                inside[kept[0]] = True  # the largest comes first
                break
            inside[kept[np.argmin(r[kept, f])]] = False
        r[:, f] = _with_others(own, weights, inside)
    return r, averaged


def _trimmed_mean(values: Array, weights: Array) -> Array:
    """Weighted trimmed mean (k, m) over sites of values (sites, k, m)."""
    order = np.argsort(values, axis=0, kind="stable")
    values = np.take_along_axis(values, order, axis=0)
    shares = np.take_along_axis(np.broadcast_to(weights[:, :, None], values.shape), order, axis=0)
    upper = np.cumsum(shares / shares.sum(axis=0), axis=0)
    lower = np.concatenate([np.zeros_like(upper[:1]), upper[:-1]])
    kept = np.maximum(np.minimum(upper, 1 - TRIMMED) - np.maximum(lower, TRIMMED), 0)
    return (kept * values).sum(axis=0) / kept.sum(axis=0)


def _with_others(own: Array, weights: Array, inside: Array) -> Array:
    """Correlation of each site's loadings with the mean of the other sites that count, or else of all."""
    r = np.zeros(len(own))
    for site in range(len(own)):
        others = inside & (np.arange(len(own)) != site)
        if not others.any():
            others = np.arange(len(own)) != site
        mean = np.average(own[others], axis=0, weights=weights[others])
        r[site] = correlations(own[site : site + 1], mean[None])[0, 0]
    return r


# --- confounds ----------------------------------------------------------------------------------------------


def _common_encoder(models: Sequence[ICQF], weights: Array) -> ConfoundEncoder:
    """The confounds with the widest ranges, and means and shares over all participants."""
    first, share = models[0].confound_encoder_, weights / weights.sum()
    stored = first.to_dict()
    for column in stored["columns"]:
        each = [_column(model, column["name"]) for model in models]
        if column["categories"] is None:
            column["low"], column["high"] = min(one.low for one in each), max(one.high for one in each)
            column["mean"] = round(float(share @ [one.mean for one in each]), 6)
        else:
            keys = [map(category_key, one.categories or ()) for one in each]
            by_key = [dict(zip(own, one.shares, strict=True)) for own, one in zip(keys, each, strict=True)]
            wanted = map(category_key, column["categories"])
            known = [float(share @ [one[key] for one in by_key]) for key in wanted]
            column["shares"] = [value / sum(known) for value in known]
    return ConfoundEncoder.from_dict(stored)


def _column(model: ICQF, name: str) -> Any:
    return next(column for column in model.confound_encoder_.columns if column.name == name)


def _confound_loadings(models: Sequence[ICQF], encoder: ConfoundEncoder, weights: Array) -> Array:
    """Mean loadings (c, m) of the sites for the common encoder, inside the items' ranges."""
    mean = np.average([_in_common_columns(model, encoder) for model in models], axis=0, weights=weights)
    first = models[0]
    span = np.ptp(first.item_range_.to_numpy(), axis=1)
    favoured = PENALTIES.load(first.penalty)(float(first.beta)).favours_intercept
    for columns in encoder.partitions:
        rows = list(columns)
        common = mean[rows].min(axis=0)
        if encoder.intercept:
            moved = common if favoured else np.minimum(common, 0)
            mean[rows] -= moved
            mean[-1] += moved
    mean = rounded(np.maximum(mean, 0) * first.item_scale_) / first.item_scale_
    if first.loading_max is not None:
        mean = np.minimum(mean, span if first.loading_max == "item_range" else float(first.loading_max))
    if first.reconstruction_max is None or not len(mean):
        return mean
    highest = sum(mean[list(columns)].max(axis=0) for columns in encoder.partitions)
    return inside_range(mean, highest + mean[-1] * encoder.intercept, span, len(first.components_))


def _in_common_columns(model: ICQF, encoder: ConfoundEncoder) -> Array:
    """A site's confound loadings (c, m) for the columns of the common encoder; may be negative."""
    own = model.confound_encoder_
    places = dict(zip((column.name for column in own.columns), own.partitions, strict=True))
    rows = []
    for column in encoder.columns:
        values = model.confound_components_[list(places[column.name])]
        site = _column(model, column.name)
        if column.categories is not None:
            keys = [*map(category_key, site.categories)]
            rows += [values[keys.index(category_key(name))] for name in column.categories]
            continue
        top, bottom = values
        slope = (top - bottom) / (site.high - site.low)
        rows += [top + slope * (column.high - site.high), bottom - slope * (site.low - column.low)]
    if encoder.intercept:
        rows.append(model.confound_components_[-1])
    return np.array(rows).reshape(len(rows), len(model.item_range_))


# --- the result ---------------------------------------------------------------------------------------------


def _pooled_model(
    models: Sequence[ICQF],
    loadings: Array,
    confounds: Array,
    encoder: ConfoundEncoder,
    orders: Sequence[Array],
) -> ICQF:
    first, k = models[0], len(loadings)
    stored = first.describe()
    span = np.ptp(first.item_range_.to_numpy(), axis=1)
    loadings = rounded(loadings * first.item_scale_) / first.item_scale_
    if first.loading_max is not None:
        loadings = np.minimum(loadings, span if first.loading_max == "item_range" else first.loading_max)
    ranges = {column.name: [column.low, column.high] for column in encoder.columns if not column.categories}
    fits = [model.fit_statistics_ for model in models]
    rows = [_confound_rows(model, encoder) for model in models]
    explained = [
        np.concatenate([fit.explained[:k][order], fit.explained[k:][own]])
        for fit, order, own in zip(fits, orders, rows, strict=True)
    ]
    certificates = [model.describe().header["certificate"] for model in models]
    header = {
        **stored.header,
        "parameters": {**stored.header["parameters"], "confound_ranges": ranges or None},
        "factor_names": default_names(k),
        "confounds": encoder.to_dict(),
        "dtype": "float64",
        "objective": float(significant(sum(model.objective_ for model in models), OBJECTIVE_DIGITS)),
        "certificate": {
            name: max(each[name] for each in certificates)
            for name in certificates[0]
            if all(name in each for each in certificates)
        },
        "trace": [],
        "starts": [],
        "converged": all(model.converged_ for model in models),
        "n_iter": 0,
        "n_averaged": len(models),
        "n_participants": sum(int(model.n_participants_) for model in models),
        "record": asdict(FitRecord(weighted=any(model.record_.weighted for model in models))),
    }
    arrays = {
        "components": loadings,
        "confound_components": confounds,
        "item_range": stored.arrays["item_range"],
        "item_scale": stored.arrays["item_scale"],
        "solving_order": np.arange(k, dtype=float),
        "starts": np.empty((0, 3 + k)),
        "replication": np.empty((0, stored.arrays["replication"].shape[1])),
        "explained": np.sum(explained, axis=0),
        **{name: np.sum([getattr(fit, name) for fit in fits], axis=0) for name in ("sse", "sst", "missing")},
    }
    abouts = [vars(model.about_) for model in models]  # what all sites state alike
    same = {name: text for name, text in abouts[0].items() if all(each[name] == text for each in abouts)}
    return rebuild(ICQF, StoredModel(header, arrays, replace(stored.codebook, about=About.of(same))))


def _confound_rows(model: ICQF, encoder: ConfoundEncoder) -> list[int]:
    """Positions of the common encoder's columns in the site's own design."""
    own = model.confound_encoder_
    places = dict(zip((column.name for column in own.columns), own.partitions, strict=True))
    rows: list[int] = []
    for column in encoder.columns:
        here = _column(model, column.name).categories
        keys = None if here is None else [*map(category_key, here)]
        wanted = range(2) if keys is None else [keys.index(category_key(c)) for c in column.categories or ()]
        rows += [places[column.name][at] for at in wanted]
    return [*rows, *([len(own.names) - 1] if encoder.intercept else [])]


def _result(
    models: Mapping[str, ICQF],
    names: list[str],
    model: ICQF,
    loadings: Array,
    r: Array,
    averaged: Array,
    weights: Array,
    orders: Sequence[Array],
    fitted: Sequence[ICQF],
) -> Pooled:
    """The pooled model with its tables and notes, sites in the order given."""
    factors = list(model.get_feature_names_out())
    replicated = r >= FOUND
    rows = [
        {
            "factor": factor,
            "site": name,
            "own_factor": fitted[site].factor_names_[orders[site][f]],
            "r": r[site, f],
            "found": bool(replicated[site, f]),
            "averaged": bool(averaged[site, f]),
        }
        for f, factor in enumerate(factors)
        for name in models
        for site in [names.index(name)]
    ]
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    apart = (loadings - model.components_) / span
    loaded = is_loaded(model.components_ / span)
    share = weights / weights.sum()
    squares = np.einsum("s,skm->km", share, apart**2)
    typical = [
        float(np.sqrt(squares[f][loaded[f]].mean())) if loaded[f].any() else 0.0 for f in range(len(factors))
    ]
    by_factor = pd.DataFrame(
        {
            "r_mean": r.mean(axis=0),
            "r_lowest": r.min(axis=0),
            "lowest_site": [names[site] for site in r.argmin(axis=0)],
            "difference": typical,
        },
        index=pd.Index(factors, name="factor"),
    )
    sites = pd.DataFrame(
        {"participants": weights.astype(int), "mean_r": r.mean(axis=1)}, index=pd.Index(names, name="site")
    ).loc[list(models)]
    order = [names.index(name) for name in models]
    notes = [
        *_sentences(list(models), factors, replicated[order], averaged[order], r[order]),
        *(
            f"{name} is itself an average of {each.n_averaged_} fits; if another of these files is among "
            "them, its participants count twice."
            for name, each in models.items()
            if each.n_averaged_
        ),
    ]
    return Pooled(model, sites, pd.DataFrame(rows), by_factor, tuple(notes))


def _sentences(
    sites: list[str], factors: list[str], replicated: Array, averaged: Array, r: Array
) -> list[str]:
    """Notes on factors found at some sites only, and on an outlying site."""
    if not replicated.any():
        return [
            f"The sites do not agree on any factor: no site's loadings correlate {FOUND:g} with the others'. "
            "Do not score participants with this model."
        ]
    sentences = []
    for f, factor in enumerate(factors):
        at = [name for name, there in zip(sites, replicated[:, f], strict=True) if there]
        absent = [name for name in sites if name not in at]
        if averaged[:, f].sum() == 1:
            only = sites[int(averaged[:, f].argmax())]
            others = (
                "the other site has another factor" if len(sites) == 2 else "the others have other factors"
            )
            sentences.append(
                f"{factor} was found at {only} only: {others} in its place, and its loadings are those of "
                f"{only}."
            )
        elif not at:
            sentences.append(
                f"{factor} was not clearly found at any site: no site's loadings correlate {FOUND:g} with "
                "the others'."
            )
        elif absent:
            left = [name for name in absent if not averaged[sites.index(name), f]]
            more = f" {listed(left)} did not count in its loadings." if left else ""
            sentences.append(f"{factor} was found at {listed(at)}, not at {listed(absent)}.{more}")
    means = r.mean(axis=1)
    lowest = int(means.argmin())
    missed = int((~replicated[lowest]).sum())
    if len(sites) > 2 and missed and missed > np.delete((~replicated).sum(axis=1), lowest).max():
        sentences.append(
            f"{sites[lowest]} differs from the others: {missed} of its {len(factors)} factors correlate less "
            f"than {FOUND:g} with those of the other sites (mean r {means[lowest]:.2f})."
        )
    return sentences
