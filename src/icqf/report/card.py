"""The card of a model: who was studied and how, its factors, what it must not be used for, and its licence.

Everything comes from the model file, so that the card reveals nothing that the file does not contain.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from icqf.data.about import About, spdx
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.settings import PENALTIES, RULES
from icqf.errors import shown_share
from icqf.models.icqf import ICQF
from icqf.models.meta import MetaICQF
from icqf.models.multistart import doubtful_factors
from icqf.plotting.style import item_label
from icqf.report.blocks import Block, Bullets, Grid, Prose, Section, Span
from icqf.report.document import Document, made_by
from icqf.report.sections.methods import CITATION
from icqf.report.words import count_of, joined, number, percent
from icqf.resampling.replication import (
    LIKE_THIS,
    NOT_REPLICABLE,
    ONE_ITEM,
    no_factor_replicates,
    replication_in_words,
)

NOT_STATED = "not stated"
_LEAST_LOADING = 0.05  # share of the item's range from which an item is listed
_LEAST_META = 0.1
_FEWEST_ITEMS = 4  # below, the file nearly reveals the answers (docs/what-a-model-file-reveals.md)
_SIMPLE = re.compile(r"[A-Za-z0-9.+-]+")


def model_card(
    model: ICQF | MetaICQF, *, file: str = "model.icqf", top: int = 5, norms: str = ""
) -> Document:
    """Return the card of a model as a page.

    Parameters
    ----------
    model : ICQF or MetaICQF
    file : str
        Name of the model file, in the commands shown.
    top : int
        Items shown for each factor.
    norms : str
        Sentence about the reference sample of a norms file, if there is one.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import model_card
    >>> model = ICQF(2).fit(load_demo().select(["q00*", "q01*"])).set_about(licence="CC-BY-4.0")
    >>> model_card(model).as_markdown().splitlines()[0]
    '# 2 factors behind 19 items'
    """
    battery = isinstance(model, MetaICQF)
    parts = dict(model.instruments_) if isinstance(model, MetaICQF) else {"": model}
    about = next(iter(parts.values())).about_
    names = [each.about_.instrument or name for name, each in parts.items()] if battery else []
    limits = _limits(model, parts, about)
    sections = [
        Section("Who was studied", [Bullets(_sample(model, parts, about, names))], "sample", data={}),
        Section("How it was made", [Bullets(_making(parts))], "fit", data={}),
        Section(
            "Factors", _meta_factors(model, top) if isinstance(model, MetaICQF) else _factors(model, top)
        ),
        Section("What it must not be used for", [Bullets(limits)], "limits", data={}),
        Section("Scoring", _scoring(file, battery=battery, norms=norms), "scoring", data={}),
        Section("Licence and citation", [Bullets(_rights(parts, about))], "licence", data={}),
    ]
    title = _title(model, "" if battery else about.instrument)
    lead = _lead(model, parts)
    cautions = [caution for name, each in parts.items() for caution in _cautions(each, name)]
    values = {
        "cautions": cautions,
        "lead": lead,
        "about": vars(about) | ({"instrument": names} if battery else {}),
        "not_stated": list(_absent(about, battery=battery)),
        "models": {name or "model": _values(each, top) for name, each in parts.items()},
        "must_not_be_used_for": limits,
        "norms": norms or None,
    }
    return Document(title, lead, sections, footer=made_by("icqf show"), cautions=cautions, data=values)


def front_matter(card: Document) -> str:
    """The YAML that model hubs read at the top of a card in Markdown."""
    about = (card.data or {})["about"]
    hub = _single(about["licence"]).lower() or "other"
    lines = [f"license: {hub}"] if about["licence"] else []
    lines += [f'language: "{about["language"].split("-")[0]}"'] if about["language"] else []
    return "\n".join(
        ["---", *lines, "library_name: icqf", "tags: [questionnaire, factor-analysis]", "---", "", ""]
    )


def _title(model: ICQF | MetaICQF, instrument: str) -> str:
    if isinstance(model, MetaICQF):
        k, number_of = model.loadings_.shape[1], count_of(len(model.instruments_), "instrument")
        what = count_of(k, "meta-factor") if k else "No common factor"
        title = f"{what} behind {count_of(len(model.loadings_), 'factor')} of {number_of}"
    else:
        k, m = len(model.components_), len(model.item_range_)
        title = f"{count_of(k, 'factor')} behind {count_of(m, 'item')}"
    return f"{instrument}: {title}" if instrument else title[:1].upper() + title[1:]


# --- who ---------------------------------------------------------------------------------------------------


def _stated(label: str, text: str) -> Prose:
    return Prose([Span(label, "strong"), f": {text or NOT_STATED}"])


def _sample(model: Any, parts: Mapping[str, ICQF], about: About, names: list[str]) -> list[Prose]:
    instrument = ", ".join(text for text in (about.instrument, about.instrument_version) if text)
    weighted = any(each.record_.weighted for each in parts.values())
    n = count_of(int(model.n_participants_), "participant")
    rows = [
        _stated("Sample", about.sample),
        _stated("Instruments" if names else "Instrument", ", ".join(names) if names else instrument),
        _stated("Language", about.language),
        _stated("Size", f"{n}; survey weights were {'' if weighted else 'not '}used"),
    ]
    for name, each in parts.items():
        summary = each.summary(n_top=0)
        rows.append(
            _stated(
                name or "Items",
                f"{count_of(len(each.item_range_), 'item')} with {_ranges(each)}; "
                f"{summary.share_missing:.1%} of answers missing",
            )
        )
    return [*rows, *(_stated(name, text) for name, text in _confounds(next(iter(parts.values()))))]


def _ranges(model: ICQF) -> str:
    ends = model.item_range_.drop_duplicates().to_numpy()
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    return f"answers {'from' if len(ends) == 1 else 'within'} {low:g} to {high:g}"


def _confounds(model: ICQF) -> list[tuple[str, str]]:
    """Each confound with its rounded range or its shares, without shares of a few."""
    rows, labels = [], _labels(model)
    for column in model.confound_encoder_.columns:
        if column.categories is None:
            text = f"{column.low:g} to {column.high:g}, mean about {column.mean:g} (rounded)"
            if model.smallest_category < SMALLEST_CATEGORY:
                text = "not shown, because its range is that of single participants"
        else:
            few = any(share * model.n_participants_ < SMALLEST_CATEGORY for share in column.shares)
            shares = ("" if few else f" {percent(share)}" for share in column.shares)
            named = (labels.get((column.name, each), str(each)) for each in column.categories)
            text = ", ".join(f"{name}{share}" for name, share in zip(named, shares, strict=True))
        rows.append((column.name, text))
    return rows


def _labels(model: ICQF) -> dict[tuple[str, Any], str]:
    """The meaning of coded categories, by confound and code."""
    return {(entry.name, code): label for entry in model.codebook_.confounds for code, label in entry.labels}


# --- how ---------------------------------------------------------------------------------------------------


def _making(parts: Mapping[str, ICQF]) -> list[str | Prose]:
    rows: list[str | Prose] = []
    for name, model in parts.items():
        before = f"{name}: " if name else ""
        texts = (_choice(model), _settled(model), _predicted(model), model.record_.plan)
        rows += [f"{before}{text}" for text in texts if text]
    first = next(iter(parts.values()))
    penalty = PENALTIES.load(first.penalty).description if first.beta else "no penalty"
    rows.append(
        f"Fitted by icqf {first.record_.icqf} with {penalty}"
        + (f" (β = {first.beta:g})." if first.beta else ".")
    )
    return rows


def _choice(model: ICQF) -> str:
    record, k = model.record_, len(model.components_)
    if len(record.tried) < 2:
        return f"The number of factors ({k}) was set, not chosen by cross-validation."
    rule = (
        RULES.load(record.rule).description
        if record.rule in RULES.own
        else f"was chosen by the rule {record.rule}"
    )
    return (
        f"The number of factors ({k}) was chosen by {record.n_splits}-fold cross-validation from "
        f"{record.tried[0]} to {record.tried[-1]}; it {rule}."
    )


def _settled(model: ICQF) -> str:
    if model.n_averaged_:
        return f"Loadings are averages over {model.n_averaged_} fits."
    if not model.converged_:
        return f"The fit had not converged after {model.n_iter_} iterations; interpret with care."
    doubtful = doubtful_factors(model.starts_)
    if doubtful:
        return f"Another start fits the answers equally well without {joined(doubtful)}; interpret with care."
    return "The fit converged: no single loading or score would still move noticeably."


def _predicted(model: ICQF) -> str:
    summary, hidden = model.summary(n_top=0), model.record_.hidden
    text = f"The model explains {shown_share(summary.variance_explained)} of the variance of the answers"
    if hidden is None:
        return f"{text}; how well it predicts answers that it has not seen was not measured."
    return (
        f"{text}. It predicts hidden answers with R² = {number(hidden[0])} (standard error {hidden[1]:.3f})."
    )


def _lead(model: ICQF | MetaICQF, parts: Mapping[str, ICQF]) -> list[str]:
    n = count_of(int(model.n_participants_), "participant")
    what = "A battery's model" if isinstance(model, MetaICQF) else "A model"
    items = count_of(sum(len(each.item_range_) for each in parts.values()), "item")
    return [
        f"{what} by ICQF (interpretability-constrained questionnaire factorization) of {items}, from {n}. "
        "Each factor is a pattern of answers that occur together; a score between 0 and 1 says how much of "
        "it a participant has."
    ]


def _cautions(model: ICQF, name: str) -> list[str]:
    before = f"{name}: " if name else ""
    cautions = []
    if model.smallest_category < SMALLEST_CATEGORY:
        cautions.append(
            f"Fitted with smallest_category = {model.smallest_category}: the file can reveal answers of "
            f"fewer than {SMALLEST_CATEGORY} participants. Do not share it."
        )
    if model.n_participants_ < SMALLEST_CATEGORY:
        cautions.append(
            f"A model of fewer than {SMALLEST_CATEGORY} participants can reveal their answers. Do not share "
            "it."
        )
    if len(model.item_range_) < _FEWEST_ITEMS:
        cautions.append(
            f"A model of {len(model.item_range_)} items nearly reveals the answers. Do not share it."
        )
    why, hidden = no_factor_replicates(model.replication_), model.record_.hidden
    if not why and hidden is not None and hidden[0] <= hidden[1]:
        why = "hidden answers are predicted no better than by the items' means"
    if why:
        cautions.append(f"{NOT_REPLICABLE}: {why}. Do not interpret the factors.")
    return [before + caution for caution in cautions]


# --- factors -----------------------------------------------------------------------------------------------


def _factors(model: ICQF, top: int) -> list[Block]:
    values = _values(model, top)
    sections: list[Block] = []
    for factor in values["factors"]:
        head = ["Loading", "Item", *["Wording"] * any(each["wording"] for each in factor["items"])]
        rows = [
            [f"{number(each['loading'])} of {each['range']:g}", each["item"], each["wording"]][: len(head)]
            for each in factor["items"]
        ]
        parts = (
            f"Loads on {count_of(factor['n_items'], 'item')}",
            f"explains {shown_share(factor['variance'])} of the variance",
            factor["replication"],
        )
        sentence = f"{'; '.join(part for part in parts if part)}."
        sections.append(Section(factor["name"], [sentence, *([Grid("", head, rows)] if rows else [])]))
    if model.replication_ is not None:
        sections.append(f"Studies like this one: {LIKE_THIS}.")
    return sections


def _values(model: ICQF, top: int) -> dict[str, Any]:
    """What the file says about one questionnaire, as plain values."""
    summary, loadings = model.summary(), model.loadings_
    spans = model.item_range_["max"] - model.item_range_["min"]
    entries = {item.name: item for item in model.codebook_.items}
    factors = []
    for name in loadings.columns:
        relative = (loadings[name] / spans).sort_values(ascending=False, kind="stable")
        strong = [str(item) for item in relative.index[:top] if relative[item] > _LEAST_LOADING]
        found = None if model.replication_ is None else dict(model.replication_.loc[name])
        factors.append(
            {
                "name": str(name),
                "n_items": int(summary.factors["n_items"][name]),
                "variance": float(summary.factors["variance_explained"][name]),
                "probability": None if found is None else float(found["probability"]),
                "replication": "" if found is None else _replication(found),
                "items": [
                    {
                        "item": item,
                        "wording": _wording(entries.get(item)),
                        "loading": float(loadings[name][item]),
                        "range": float(spans[item]),
                    }
                    for item in strong
                ],
            }
        )
    record = model.record_
    return {
        "n_participants": int(model.n_participants_),
        "n_items": len(loadings),
        "answers": _ranges(model),
        "share_missing": float(summary.share_missing),
        "weighted": record.weighted,
        "confounds": [{"name": name, "what": what} for name, what in _confounds(model)],
        "numbers_of_factors_compared": list(record.tried),
        "r_squared_hidden": None if record.hidden is None else record.hidden[0],
        "variance_explained": float(summary.variance_explained),
        "converged": bool(model.converged_),
        "n_averaged": int(model.n_averaged_),
        "icqf": record.icqf,
        "factors": factors,
    }


def _wording(entry: Any) -> str:
    return item_label("", entry.wording, entry.reverse).strip() if entry is not None else ""


def _replication(found: Any) -> str:
    fragile = "fragile: " if found["fragile"] and found["largest"] <= ONE_ITEM else ""
    return fragile + replication_in_words(float(found["probability"]), float(found["largest"]))


def _meta_factors(model: MetaICQF, top: int) -> list[Block]:
    items, own = model.top_items(top), list[Block]()
    for (instrument, factor), strong in items.groupby(["instrument", "factor"], sort=False):
        cells = zip(strong["loading"].map(number), strong["item"], strong["label"], strict=True)
        own.append(
            Section(f"{instrument}: {factor}", [Grid("", ["Loading", "Item", "Wording"], list(cells))])
        )
    meta: list[Block] = []
    for name in model.loadings_.columns:
        ordered = model.loadings_[name].sort_values(ascending=False, kind="stable")
        ordered = ordered[ordered >= _LEAST_META]
        rows = [(number(v), *map(str, key)) for key, v in zip(ordered.index, ordered, strict=True)]
        meta.append(
            Section(
                str(name),
                [Grid("", ["Loading", "Instrument", "Factor"], rows)] if rows else ["No factor loads on it."],
            )
        )
    return [*(meta or ["No common factor was found; each instrument is scored by its own factors."]), *own]


# --- limits, scoring, rights -------------------------------------------------------------------------------


def _limits(model: ICQF | MetaICQF, parts: Mapping[str, ICQF], about: About) -> list[str]:
    models = list(parts.values())
    limits = [
        "Diagnoses, or decisions about a person from a score alone. Scores describe how strongly answers "
        "follow the patterns of this sample; no cut-off was tested.",
        *_outside(models[0], about),
        _other_forms(about, list(parts) if isinstance(model, MetaICQF) else []),
    ]
    fragile = [
        f"{name}: {factor}" if name else str(factor)
        for name, each in parts.items()
        if each.replication_ is not None
        for factor in each.replication_.index[each.replication_["fragile"]]
    ]
    if fragile:
        limits.append(
            f"Conclusions from {joined(fragile)}, which fewer than half of studies like this one would find."
        )
    if all(each.replication_ is None for each in models):
        limits.append("Theories about the factors: whether another study would find them was not estimated.")
    if any(each.score_distribution_ is None for each in models):
        limits.append(
            "Single participants: the model gives scores without intervals, so their error is unknown."
        )
    return [
        *limits,
        "Statements about how common something is. A score of 0.5 is not an average; only norms tell who "
        "scores lower.",
        "Comparisons of groups, languages or ages, before it is tested that items work alike in them (icqf "
        "invariance).",
        "Publication beside another model of nearly the same participants: two files whose samples differ by "
        "one person tell much about that person's answers. Share one model file per sample.",
    ]


def _outside(model: ICQF, about: About) -> list[str]:
    """Sentences about people unlike the sample."""
    sentences, labels = [], _labels(model)
    for column in model.confound_encoder_.columns:
        if column.categories is None:
            span = f"outside {column.low:g} to {column.high:g}"
            if model.smallest_category < SMALLEST_CATEGORY:
                span = "beyond the sample's range"
            sentences.append(
                f"Participants whose {column.name} is {span}: they are scored as if at the nearest end, with "
                "a warning, and nobody knows how wrong that is."
            )
        else:
            known = joined([labels.get((column.name, each), str(each)) for each in column.categories])
            sentences.append(
                f"Participants whose {column.name} is something other than {known}: they cannot be scored."
            )
    who = (
        "described above" if about.sample else "in the sample, which its authors have not described; ask them"
    )
    rest = "" if sentences else ". The model knows nothing of age or sex"
    return [*sentences, f"People unlike those {who}{rest}."]


def _other_forms(about: About, instruments: Iterable[str]) -> str:
    named = ", ".join(text for text in (about.instrument, about.instrument_version, about.language) if text)
    named = named or joined(list(instruments))
    if not named:
        return (
            "Other versions or translations of the questionnaire; which one was used is not stated, so "
            "compare wordings and answers item by item."
        )
    return f"Other versions, translations, wordings or answer ranges than those fitted ({named})."


def _scoring(file: str, *, battery: bool, norms: str) -> list[Block]:
    kind = "MetaICQF" if battery else "ICQF"
    module = "icqf.models" if battery else "icqf"
    code = f"from {module} import {kind}; scores = {kind}.load({file!r}).transform(answers)"
    command = f"icqf score {shlex.quote(file)} answers.csv --out scores.csv"
    ways = {"On the command line": command, "In Python": code, "Install the program": "pip install icqf"}
    none = "No norms come with this card; a norms file (icqf norms) is a file of its own."
    return [
        Bullets([Prose([f"{way}: ", Span(text, "code")]) for way, text in ways.items()]),
        "The table needs the model's items and confounds under the same names. Ranges, directions and "
        "missing codes are those of the fit.",
        f"Percentiles: {norms}" if norms else none,
    ]


def _rights(parts: Mapping[str, ICQF], about: About) -> list[Prose]:
    wordings = sum(bool(item.wording) for each in parts.values() for item in each.codebook_.items)
    inside = f" The file contains the wordings of {count_of(wordings, 'item')}." if wordings else ""
    own = about.instrument_licence or f"{NOT_STATED}; ask its owners before you use or pass on its items"
    return [
        _licence(
            "Licence of this model", about.licence or f"{NOT_STATED}; ask before you reuse or pass it on"
        ),
        Prose(
            [
                *_licence("Licence of the instrument", own).parts,
                f". The model's licence does not cover the instrument.{inside}",
            ]
        ),
        _stated("Cite the model", about.citation),
        _stated("Cite the method", CITATION),
        _stated("Contact", about.contact),
    ]


def _licence(label: str, text: str) -> Prose:
    known = _single(text)
    name = Span(text, link=f"https://spdx.org/licenses/{known}.html") if known else text
    return Prose([Span(label, "strong"), ": ", name])


def _single(licence: str) -> str:
    """The identifier of a licence on the SPDX list; empty for others, and for several joined."""
    known = spdx(licence)
    return known if _SIMPLE.fullmatch(known) and not known.startswith("LicenseRef") else ""


def _absent(about: About, *, battery: bool) -> tuple[str, ...]:
    """The fields that are not stated; a battery has several instruments."""
    return tuple(name for name in about.absent if not (battery and name.startswith("instrument")))
