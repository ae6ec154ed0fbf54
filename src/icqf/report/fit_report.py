"""The report of a fit: made from an analysis, renamed, written, and read back from its JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icqf.errors import InputError
from icqf.models.summary import checked_names
from icqf.report.analysis import Analysis
from icqf.report.document import Document, write_document
from icqf.report.sections import sections_of
from icqf.report.sections.factors import model_values, names_shown
from icqf.report.sections.fit import fit_values, fit_words
from icqf.report.sections.headline import cautions, headline
from icqf.report.sections.methods import method_values, results_paragraph
from icqf.report.sections.number_of_factors import count_values
from icqf.report.sections.psychometrics import comparison_values, comparison_words, psychometric_values
from icqf.report.sections.sample import (
    item_values,
    missing_values,
    participant_values,
    sample_values,
)
from icqf.report.sections.scores import general_values, score_values, score_words
from icqf.report.words import Report, Values, changed, frozen

# Values that may be None; null under any other name is NaN.
_MAY_BE_ABSENT = {
    *("comparison", "psychometrics", "participants", "stability", "replication", "parallel", "n_components"),
    *("low", "high", "n", "share", "mean", "sd", "n_groups", "n_splits", "share_structural", "fit_hidden"),
    *("fit_comparison", "r_squared", "r_squared_here", "r_squared_hidden", "negative", "small", "small_here"),
    *("fa_loading", "fa_communality", "missing", "general", "preregistration", "agrees"),
}
_HOLD_NUMBERS = {
    *("analysed", "sample", "items", "count", "models", "splits", "scores", "fit", "comparison", "methods"),
    *("psychometrics", "participants", "missing", "general"),
}


def report_of(
    analysis: Analysis,
    *,
    names: Sequence[str] | Mapping[str, str] | None = None,
    title: str | None = None,
    with_participants: bool = False,
    preregistration: Mapping[str, Any] | None = None,
) -> Report:
    """Put an analysis into the words and tables of a report; nothing is computed here.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a fitted model, from `analyse`.
    names : sequence or mapping, optional
        Names of the factors: one per factor, or by their own names (``{"factor1": "Worry"}``).
    title : str, optional
        Title of the report; the file's name by default.
    with_participants : bool
        Whether each participant's scores are part of the report.
    preregistration : mapping, optional
        How the fit compares with its preregistered plan.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> analysis = analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False)
    >>> [factor.name for factor in report_of(analysis, names=["Home", "School"]).model.factors]
    ['Home', 'School']
    """
    model, questionnaire, study = analysis.model, analysis.questionnaire, analysis.study
    shown, summary = names_shown(model, questionnaire.items, names), model.summary()
    by_key = dict(zip(model.get_feature_names_out(), shown, strict=True))
    sample, overview = sample_values(analysis), study.overview
    fit = fit_values(analysis, summary)
    plan = None if preregistration is None else frozen(preregistration)
    report = Report(
        analysis,
        title=title or _title(questionnaire.source, found=not fit.no_structure),
        doubts=tuple(str(doubt.fields["anonymous"]) for doubt in study.doubts),
        direction=study.directions.sentence,
        analysed=Values(lines=overview.all_lines, words=(overview.widths,) if overview.widths else ()),
        sample=sample,
        items=item_values(analysis, summary.items, by_key),
        count=count_values(analysis),
        **model_values(analysis, shown, sample),
        scores=score_values(analysis, shown),
        fit=fit,
        comparison=comparison_values(analysis.rival, by_key, r_squared=fit.r_squared),
        methods=method_values(analysis, sample, plan),
        psychometrics=psychometric_values(analysis, summary, shown),
        missing=missing_values(analysis),
        general=general_values(analysis),
        participants=participant_values(questionnaire, analysis.scores) if with_participants else None,
        preregistration=plan,
    )
    return with_words(report)


def _title(source: str, *, found: bool) -> str:
    if not found:
        return f"No replicable structure found in {source}" if source else "No replicable structure found"
    return f"Factors behind {source}" if source else "Questionnaire factors"


def with_words(report: Report) -> Report:
    """The report with its sentences that mention factors, made from its values and names."""
    named = {factor.key: factor.name for factor in report.model.factors}
    compared = report.comparison
    if compared is not None:
        compared = changed(compared, words=tuple(comparison_words(compared)))
    report = changed(
        report,
        scores=changed(report.scores, words=tuple(score_words(report.scores))),
        fit=changed(report.fit, words=tuple(fit_words(report.fit, report.model.variance, named))),
        comparison=compared,
    )
    sentences = {"cautions": tuple(cautions(report)), "headline": tuple(headline(report))}
    new: Report = changed(report, **sentences, results=results_paragraph(report))
    return new


def renamed(report: Report, names: Sequence[str]) -> Report:
    """The same report with other names of its factors, in tables and sentences.

    Parameters
    ----------
    names : sequence of str
        One name per factor, in their order.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, renamed, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> report = report_of(analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False))
    >>> [factor.name for factor in renamed(report, ["Home", "School"]).model.factors]
    ['Home', 'School']
    """
    view, compared, measured = report.model, report.comparison, report.psychometrics
    old = [factor.name for factor in view.factors]
    new = dict(zip(old, checked_names(old, names), strict=True))
    by_key = {factor.key: new[factor.name] for factor in view.factors}

    def named(rows: Sequence[Values], field: str = "name") -> tuple[Values, ...]:
        return tuple(changed(row, **{field: new.get(vars(row)[field], vars(row)[field])}) for row in rows)

    def keyed(rows: Sequence[Values]) -> tuple[Values, ...]:
        return tuple(changed(row, name=by_key.get(row.key, row.name)) for row in rows)

    if compared is not None:
        compared = changed(compared, pairs=named(compared.pairs, "factor"))
    if measured is not None:
        measured = changed(measured, scales=keyed(measured.scales), variance=keyed(measured.variance))
    return with_words(
        changed(
            report,
            models=(changed(view, factors=named(view.factors)), *report.models[1:]),
            items=named(report.items, "strongest"),
            scores=changed(report.scores, factors=named(report.scores.factors)),
            comparison=compared,
            psychometrics=measured,
        )
    )


def document_of(report: Report | Document) -> Document:
    """The report as a page of sections."""
    if isinstance(report, Document):
        return report
    sections = sections_of(report)  # first: they may add values
    footer = f"Made with icqf {dict(report.methods.versions)['icqf']}."
    private = " This report contains no data on individual participants."
    return Document(
        report.title,
        report.headline,
        sections,
        footer=footer + private * (report.participants is None),
        cautions=report.cautions,
        data=vars(report),
        interactive=True,
    )


def write_report(path: str | os.PathLike[str], report: Report) -> tuple[Path, Path, Path]:
    """Write a report as HTML, and the same content as Markdown and JSON.

    Parameters
    ----------
    path : path
        The HTML file; the others have its name with the endings ``.md`` and ``.json``.

    Returns
    -------
    tuple of three Path
        The files written.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, report_of, write_report
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> report = report_of(analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_report(f"{folder}/report.html", report)]
    ['report.html', 'report.md', 'report.json']
    """
    html, markdown, plain = write_document(path, document_of(report), formats=(".html", ".md", ".json"))
    return html, markdown, plain


def as_html(page: Report | Document) -> str:
    """A report or page as one self-contained HTML file.

    Examples
    --------
    >>> from icqf.report import Document, as_html
    >>> "<h1>The demo</h1>" in as_html(Document("The demo", [], []))
    True
    """
    return document_of(page).as_html()


def as_markdown(page: Report | Document) -> str:
    """A report or page as Markdown, with the content of the HTML in the same order.

    Examples
    --------
    >>> from icqf.report import Document, as_markdown
    >>> as_markdown(Document("The demo", ["Eight factors."], [])).splitlines()
    ['# The demo', '', 'Eight factors.']
    """
    return document_of(page).as_markdown()


def as_json(page: Report | Document) -> str:
    """A report or page as JSON: numbers to twelve digits, null for what does not exist.

    Examples
    --------
    >>> from icqf.report import Document, Section, as_json
    >>> as_json(Document("The demo", [], [Section("Size", [], "size", data={"n": 600})])).splitlines()[1]
    ' "title": "The demo",'
    """
    return document_of(page).as_json()


def from_json(text: str) -> Report:
    """The report that `as_json` wrote.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, as_html, as_json, from_json, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> report = report_of(analyse(ICQF(2).fit(demo), demo, n_bootstrap=0, compare=False))
    >>> as_html(from_json(as_json(report))) == as_html(report)
    True
    """
    try:
        values = json.loads(text)
        values.pop("sections", None)  # sections of other packages are made again
        parts = {
            name: _numbers(part, name) if name in _HOLD_NUMBERS else part for name, part in values.items()
        }
        report = Report(**vars(frozen(parts)))
        document_of(report)  # fails where it is not a report
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(
            f"This is not the JSON of a report of this version of icqf ({error}).",
            code="not-a-report",
            remedy="Run the fit again to write a new one.",
        ) from None
    return report


def _numbers(value: Any, name: str = "") -> Any:
    """Plain values in which a null number is NaN."""
    if isinstance(value, dict):
        return {key: _numbers(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return math.nan if value is None and name not in _MAY_BE_ABSENT else value
