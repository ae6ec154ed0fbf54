"""Meta-factors of a battery: from the instruments' files to one model, tables, a figure and a page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.battery import Battery
from icqf.data.settings import counts_of, parameter_error
from icqf.data.study import Study
from icqf.engines.journal import WorkJournal
from icqf.engines.progress import Progress, Stages
from icqf.errors import InputError, counted, did_you_mean, shown_share
from icqf.io.codebook import read_about
from icqf.io.write import write_table
from icqf.models.icqf import ICQF
from icqf.models.icqfcv import ICQFCV
from icqf.models.meta import (
    ALL,
    ALONE,
    FLAT,
    LEAST,
    META,
    META_BETAS,
    TWO_STAGES,
    HierarchyComparison,
    MetaICQF,
    compare_hierarchy,
)
from icqf.plotting.comparison import three_levels
from icqf.plotting.style import default_settings
from icqf.report.blocks import Grid, Picture, Section
from icqf.report.document import Document, made_by, write_document
from icqf.workflow.describe import refuse_instrument
from icqf.workflow.fit import anonymous, expected_seconds, model_of, run_provenance, searcher, user_warnings
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import InstrumentFile, find_instruments, jobs_for, require_ids
from icqf.workflow.results_folder import DECIMALS, write_folder

Callback = Callable[[Progress], object]
Studies = dict[str, tuple[StudyOptions, Study]]


@dataclass(frozen=True, eq=False)
class MetaFit:
    """A fitted battery: its instruments with their own options, the participants that were joined, the model,
    scores of the meta-factors by participant id, and comparisons with one flat factorization, if requested.
    """

    options: StudyOptions
    studies: Studies
    battery: Battery
    model: MetaICQF
    scores: pd.DataFrame
    comparisons: tuple[HierarchyComparison, ...]
    warnings: tuple[Warning, ...]
    started: datetime
    seconds: float


def read_battery(options: StudyOptions) -> Studies:
    """Read all instruments of a battery, each with its own options."""
    instruments = [
        replace(each, options=replace(each.options, n_components=counts_of(options.n_components, each.name)))
        for each in find_instruments(options)
    ]
    names = [each.name for each in instruments]
    for part in options.n_components:
        strange = part.rpartition("=")[0] if isinstance(part, str) else names[0]
        if strange not in names:
            complaint = f" names {strange!r}, which is not an instrument.{did_you_mean(strange, names)}"
            raise parameter_error("n_components", complaint)
    studies = {each.name: _read(each) for each in instruments}
    if options.answers.is_dir() and len(studies) > 1:
        for name, (_, study) in studies.items():
            require_ids(name, study.questionnaire)
    return studies


def _read(instrument: InstrumentFile) -> tuple[StudyOptions, Study]:
    try:
        return instrument.read()
    except InputError as error:
        source = instrument.options.answers.name
        raise (error if source in error.message else error.at(source)) from None


def fit_battery(
    options: StudyOptions,
    *,
    studies: Studies | None = None,
    compare: bool = True,
    checkpoint: Path | None = None,
    callback: Callback | None = None,
) -> MetaFit:
    """Factorize each instrument, then the joined scores, and compare with one flat factorization.

    Candidates for each instrument are the options `n_components` and `beta`, for the meta-factors `n_meta`
    and `meta_beta`. With `compare`, two stages and one flat factorization of all items are compared by how
    well they predict hidden answers, if there is a common factor. `checkpoint` is the journal of all searches
    and folds.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    if options.about is not None:
        refuse_instrument(read_about(options.about))
    studies = read_battery(options) if studies is None else studies
    battery = Battery({name: study.questionnaire for name, (_, study) in studies.items()})
    journal = WorkJournal.at(checkpoint)
    second = replace(
        options, n_components=options.n_meta, beta=options.meta_beta or META_BETAS, item_weight="variance"
    )
    stages = Stages(callback, _expected_seconds(options, second, studies, compare=compare))
    model = MetaICQF(
        {
            name: _stage(own, jobs_for(own, study.questionnaire, fits=1500))
            for name, (own, study) in studies.items()
        },
        meta_estimator=_stage(second, 1),
        checkpoint=journal,
        callback=stages,
        random_state=options.seed,
    )
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            scores = model.fit_transform(battery)
        except InputError as error:
            raise _named_as_option(error) from None
        compare = compare and model.meta_ is not None
        comparisons = _compare(options, model, battery, journal, stages) if compare else ()
    seconds = time.perf_counter() - clock
    messages = user_warnings(caught)
    return MetaFit(options, studies, battery, model, scores, comparisons, messages, started, seconds)


TOGETHER, HIDDEN = "all items at once", "hidden {}"  # stages after the instruments' and the meta-factors'


def _expected_seconds(
    options: StudyOptions, second: StudyOptions, studies: Studies, *, compare: bool
) -> dict[str, float]:
    """Return the stages of the analysis of a battery, and what each takes on one processor."""

    def search(own: StudyOptions, n: int, m: int) -> float:
        return sum(expected_seconds(replace(own, report=False, bootstrap=0), n, m).values())

    shapes = {name: study.questionnaire.answers.shape for name, (_, study) in studies.items()}
    stages = {name: search(own, *shapes[name]) for name, (own, _) in studies.items()}
    n, m = max(n for n, _ in shapes.values()), sum(m for _, m in shapes.values())
    stages[META] = search(second, n, 4 * len(studies))
    if compare:
        several = tuple(range(1, 4 + 3 * len(studies)))  # the items of a battery have more factors
        stages[TOGETHER] = search(replace(options, n_components=several), n, m)
        folds = options.n_splits * (0.1 + n * m / 1e6)
        stages |= dict.fromkeys((HIDDEN.format("answers"), HIDDEN.format("instruments")), folds)
    return stages


def _named_as_option(error: InputError) -> InputError:
    """Rename the parameter in an error about the number of meta-factors to its option."""
    if error.fields.get("stage") == META and error.fields.get("name") == "n_components":
        return parameter_error("n_meta", str(error.fields["complaint"]))
    return error


def _stage(options: StudyOptions, jobs: int) -> ICQF | ICQFCV:
    if options.searches:
        return searcher(options, jobs, checkpoint=None, callback=None)
    (k,), (beta,) = options.n_components, options.beta
    return model_of(options).set_params(n_components=k, beta=beta)


def _compare(
    options: StudyOptions, model: MetaICQF, battery: Battery, journal: WorkJournal | None, callback: Callback
) -> tuple[HierarchyComparison, ...]:
    """Compare two stages with one flat factorization, for hidden answers and for hidden instruments."""

    def callback_for(stage: str) -> Callback:
        return lambda progress: callback(replace(progress, stage=stage))

    together, options = battery.flat(), replace(options, n_components=())
    jobs = jobs_for(options, together, fits=1500)
    search = searcher(options, jobs, checkpoint=journal, callback=callback_for(TOGETHER))
    flat: Any = search.fit(together).best_estimator_
    return tuple(
        compare_hierarchy(
            model,
            battery,
            flat=flat,
            hide=hide,
            n_splits=options.n_splits,
            n_jobs=jobs,
            checkpoint=journal,
            callback=callback_for(HIDDEN.format(hide)),
            random_state=options.seed,
        )
        for hide in ("answers", "instruments")
    )


def write_meta(fit: MetaFit, folder: Path, *, force: bool = False) -> list[str]:
    """Write all results of a battery into `folder`, and return the names of the files.

    If anything fails, the folder is unchanged. Earlier results are replaced only with `force`.
    """
    model, options = fit.model, fit.options
    tables = {"factor_scores": model.factor_scores(fit.battery)}
    if model.meta_ is not None:
        tables |= {
            "meta_scores": fit.scores,
            "meta_loadings": _flat_index(model.loadings_),
            "item_loadings": _flat_index(model.item_loadings_),
        }
    if fit.comparisons:
        parts = [each.table.assign(hidden=each.hide) for each in fit.comparisons]
        tables["hidden"] = (
            pd.concat(parts).set_index(["hidden", "instrument"]).reset_index(level=1).rename_axis("hidden")
        )

    def write(place: Path) -> None:
        for name, table in tables.items():
            write_table(table, place / f"{name}.{options.format}", decimals=DECIMALS)
        model.save(place / "meta.icqf")
        head = "# Repeat this run with: icqf meta --config config.toml --out NEW_FOLDER\n"
        (place / "config.toml").write_text(head + options.to_toml(folder=folder), encoding="utf-8")
        page = meta_page(model, fit.battery, fit.comparisons, title=options.answers.name)
        write_document(place / "meta.html", page)

    provenance = partial(_provenance, fit)
    return write_folder(folder, "meta", write, provenance, force=force, inputs=files_of(fit.studies))


def files_of(studies: Studies) -> list[Path]:
    """Return all files of a battery's instruments."""
    return list(dict.fromkeys(path for _, study in studies.values() for path in study.files))


def _flat_index(table: pd.DataFrame) -> pd.DataFrame:
    """Turn the second level of the index into a column, for file formats with a single index."""
    names = [str(name) for name in table.index.names]
    return table.reset_index().set_index(names[0])[[names[1], *table.columns]]


def _provenance(fit: MetaFit, outputs: list[str]) -> dict[str, Any]:
    """Return the content of ``provenance.json``, which names no participant, folder or user."""
    common = fit.model.common_
    return {
        **run_provenance(fit.options, fit.started, fit.seconds, files_of(fit.studies)),
        "participants": fit.battery.n_participants,
        "models": {
            name: {
                "n_components": len(model.components_),
                "beta": float(model.beta),
                "participants": int(model.n_participants_),
                "converged": bool(model.converged_),
            }
            for name, model in {**fit.model.instruments_, META: fit.model.meta_}.items()
            if model is not None
        },
        "common_factor": None
        if common is None
        else {"n_components": fit.model.loadings_.shape[1], "correlation": common.correlation, "p": common.p},
        "warnings": anonymous(fit.warnings),
        "outputs": outputs,
    }


_TOP, _OF_EACH = 9, 3  # items shown, and most of one instrument


def meta_page(
    model: MetaICQF, battery: Battery, comparisons: Sequence[HierarchyComparison] = (), *, title: str = ""
) -> Document:
    """Describe a fitted battery."""
    complete = int(battery.answered.all(axis=1).sum())
    data = (
        f"{counted(len(model.loadings_), 'factor')} of {counted(len(battery.names), 'instrument')}, from "
        f"{counted(battery.n_participants, 'participant')}, of whom {complete} answered every instrument."
    )
    name = title or "a battery"
    if model.meta_ is None:
        lead = [f"No common factor behind {data}", no_common_factor(model)]
        sections = [Section("The instruments", [_instruments(model, battery)]), _methods(model)]
        return Document(f"Meta-factors of {name}", lead, sections, footer=made_by())
    share = model.meta_.summary().variance_explained
    lead = [
        f"{counted(len(model.meta_.components_), 'meta-factor')} behind {data}",
        f"The meta-factors explain {shown_share(share)} of the variance of the factors' scores."
        f"{_evidence(model)}",
        *(each.verdict for each in comparisons),
    ]
    with default_settings():
        ax = three_levels(model.loadings_, model.top_items())
    figure = Picture(
        "levels",
        ax.figure,  # type: ignore[arg-type]
        "Meta-factors, the instruments' factors that load on them, and the strongest items of each factor. "
        "A wider line is a higher loading.",
    )
    sections = [
        Section("Three levels", [figure]),
        Section("The meta-factors", [_factors(model), *_items(model)]),
        Section("The instruments", [_instruments(model, battery)]),
    ]
    if comparisons:
        sections.append(Section("Is the second level worthwhile?", _comparison_blocks(comparisons)))
    sections.append(_methods(model))
    return Document(f"Meta-factors of {name}", lead, sections, footer=made_by())


def no_common_factor(model: MetaICQF) -> str:
    """Say that the instruments have no common factor, and how that was judged."""
    return (
        "The scores of an instrument cannot be predicted from the other instruments beyond chance."
        f"{_evidence(model)} Each instrument's own factors are unaffected."
    )


def _evidence(model: MetaICQF) -> str:
    if model.common_ is None:
        return ""
    p = f"p = {model.common_.p:.2g}" if model.common_.p >= 0.001 else "p < 0.001"
    return (
        " Predicted from the participant's other instruments, the scores of a hidden instrument correlate "
        f"{model.common_.correlation:.2f} with those found (one-sided {p})."
    )


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
    """List the items that change most with each meta-factor, as shares of their range."""
    about = {
        (name, item.name): (item.wording or item.name) + (" (reversed)" if item.reverse else "")
        for name, each in model.instruments_.items()
        for item in each.codebook_.items
    }
    width = pd.concat(
        {name: each.item_range_["max"] - each.item_range_["min"] for name, each in model.instruments_.items()}
    )
    blocks: list[str | Grid | Picture] = []
    for name, title in zip(model.item_loadings_, _shown(model.item_loadings_.columns), strict=True):
        shares = (model.item_loadings_[name] / width.to_numpy()).clip(upper=1)
        ordered = shares.sort_values(ascending=False, kind="stable")
        top = ordered.groupby(level=0, sort=False).head(_OF_EACH).head(_TOP)
        rows = [
            [about.get(key, str(key[1])), str(key[0]), f"{share:.0%}"]
            for key, share in zip(top.index, top, strict=True)
            if share >= LEAST
        ]
        if rows:
            caption = f"{title}: its strongest items, at most three per instrument, by share of their range"
            blocks.append(Grid(caption, ["Item", "Instrument", "Share"], rows))
        else:
            blocks.append(f"{title} changes no item by a tenth of its range or more.")
    return blocks


def _instruments(model: MetaICQF, battery: Battery) -> Grid:
    rows = []
    for name, each in model.instruments_.items():
        answered = battery.answered[name]
        summary = each.summary()
        mine = model.loadings_.loc[[name]].to_numpy()
        alone = int((mine.max(axis=1, initial=0.0) < LEAST).sum())
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
    head = ["Instrument", "Items", "Participants", "Without it", "Factors", "β", "Explained"]
    return Grid("The first stage: each instrument separately", [*head, "In no meta-factor"], rows)


def _comparison_blocks(comparisons: Sequence[HierarchyComparison]) -> list[str | Grid | Picture]:
    blocks: list[str | Grid | Picture] = []
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
        blocks += [
            Grid(caption, ["Instrument", *(name[:1].upper() + name[1:] for name in methods)], rows),
            each.verdict,
        ]
    flat = comparisons[0].flat
    blocks.append(
        f"The flat factorization has {counted(len(flat.components_), 'factor')} of all items together, "
        "chosen by cross-validation like those of the instruments. Below 0, the items' means predict "
        f"better. {ALL[:1].upper()}{ALL[1:]} weights every item by its range."
    )
    return blocks


def _methods(model: MetaICQF) -> Section:
    chosen = "chosen by cross-validation" if model.searches_ else "given"
    prose: list[str | Grid | Picture] = [
        "First, every instrument was factorized separately; then the scores of its factors, which lie "
        "between 0 and 1, were joined by participant and factorized in turn. Scores are missing for "
        "participants without the instrument. The loading of a meta-factor on an item is the sum, over the "
        "instrument's factors, of the item's loading times the factor's.",
        f"Numbers of factors and penalties were {chosen}.",
    ]
    if META in model.searches_:
        prose.append(
            "The number of meta-factors may be 0: whole instruments were hidden in five folds, their scores "
            "were predicted by meta-factors fitted to the others, and there is a common factor only if "
            "predicted and found scores correlate (without what confounds explain, one-sided p < 0.05). A "
            "meta-factor that does not load on factors of two instruments (at least 0.1) is left out."
        )
    if model.meta_ is not None:
        prose.append(
            "In the comparison, both stages and the flat factorization are refitted in every fold, on the "
            "same visible answers."
        )
    return Section("Methods", prose)


def _shown(names: Sequence[str] | pd.Index) -> list[str]:
    return [f"Meta-factor {str(name).removeprefix('meta')}" for name in names]
