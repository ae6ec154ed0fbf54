"""A questionnaire that scores itself: one offline page with the items and the profile."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from icqf.analyses.adaptive_forms import LEAST_GAIN
from icqf.analyses.short_forms import COVERED
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.models.persistence import described
from icqf.plotting.style import factor_names
from icqf.report.renderers.html import environment, file_of
from icqf.screening.missing_codes import number

if TYPE_CHECKING:
    from icqf.analyses.adaptive_forms import AdaptiveForm, Rounded
    from icqf.analyses.short_forms import ShortForm
    from icqf.models.icqf import ICQF

MOST_TICKS = 11  # answers to choose from; in a wider range the answer is typed in


def scoring_page(
    form: ShortForm,
    *,
    title: str = "Questionnaire",
    items: Iterable[Item] = (),
    adaptive: AdaptiveForm | None = None,
) -> str:
    """Return a page on which a short form is filled in and scored as by ``icqf score``.

    It needs nothing else, and sends and stores nothing: its content security policy forbids any connection.

    Parameters
    ----------
    form : ShortForm
        From `icqf.analyses.shortform`.
    title : str
        Heading of the page.
    items : iterable of Item
        Wordings, labels and directions that replace the model's.
    adaptive : AdaptiveForm, optional
        From `icqf.analyses.adaptive_form`, of the same items: the page can then also ask one question at a
        time, and stop when the intervals are narrow enough.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import shortform
    >>> from icqf.report import scoring_page
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> form = shortform(ICQF(2).fit(demo), demo, max_items=5)
    >>> page = scoring_page(form, title="Five questions")
    >>> "<h1>Five questions</h1>" in page, page.count("<fieldset")
    (True, 5)
    """
    model = form.model
    if adaptive is not None and adaptive.items != form.items:
        raise InputError("The adaptive form has other items than the short form; make it with form.items.")
    known = described(model, model.codebook_).items or tuple(
        Item(str(name), min=low, max=high) for name, low, high in model.item_range_.itertuples()
    )
    entries = {item.name: item for item in items}
    questions = tuple(_reworded(item, entries[item.name]) if item.name in entries else item for item in known)
    templates, names = environment(), factor_names(model.get_feature_names_out(), None)
    return templates.get_template("form.html").render(
        title=title,
        form=form,
        items=[_question(item) for item in questions],
        confounds=_confound_questions(model),
        factors=names,
        worth=[
            {"factor": name, "numbers": ["–" if np.isnan(value) else f"{value:.2f}" for value in values]}
            for name, values in zip(names, form.factors.iloc[:, 1:].to_numpy(), strict=True)
        ],
        style=Markup(file_of(templates, "style.css")),
        adaptive=adaptive,
        script=Markup(
            (file_of(templates, "adaptive.js") if adaptive else "") + file_of(templates, "form.js")
        ),
        data=_scoring(form, questions) | {"adaptive": adaptive and _asking(adaptive)},
    )


def _reworded(item: Item, other: Item) -> Item:
    """An item of the model with wording, labels and direction of a codebook entry."""
    return replace(
        item, wording=other.wording or item.wording, labels=other.labels or item.labels, reverse=other.reverse
    )


def _question(item: Item) -> dict[str, Any]:
    """An item's wording, and the answers to choose from; none if the answer is typed in."""
    low, high = float(item.min or 0.0), float(item.max or 0.0)
    texts = {value: text for value, text in item.labels if low <= value <= high}
    if float(low).is_integer() and float(high).is_integer() and high - low < MOST_TICKS:
        texts |= {value: "" for value in np.arange(low, high + 1).tolist() if value not in texts}
    ticks = sorted(texts.items()) if len(texts) <= MOST_TICKS else []
    return {
        "name": item.name,
        "wording": item.wording or item.name,
        "low": number(low),
        "high": number(high),
        "ticks": [(number(value), text or number(value)) for value, text in ticks],
    }


def _confound_questions(model: ICQF) -> list[dict[str, Any]]:
    """The confounds to ask for: a number in its range, or one of some categories."""
    entries = {entry.name: entry for entry in model.codebook_.confounds}
    questions = []
    for column in model.confound_encoder_.columns:
        entry = entries.get(column.name, Item(column.name))
        texts = {str(number(value)): text for value, text in entry.labels}
        kinds = [
            str(number(kind) if isinstance(kind, (int, float)) else kind) for kind in column.categories or ()
        ]
        questions.append(
            {
                "name": column.name,
                "wording": entry.wording or column.name,
                "kinds": [texts.get(kind, kind) for kind in kinds],
                "low": number(column.low),
                "high": number(column.high),
            }
        )
    return questions


def _scoring(form: ShortForm, items: Sequence[Item]) -> dict[str, Any]:
    """The numbers that `icqf.ICQF.transform` uses, in the same order."""
    model = form.model
    order, scale = np.argsort(model.solving_order_), model.item_scale_
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    bands = form.bands
    factors = list(model.get_feature_names_out())
    by_factor = [bands[bands["factor"] == name] for name in factors]
    return {
        "items": [{"low": item.min, "high": item.max, "reversed": item.reverse} for item in items],
        "scale": scale.tolist(),
        "loadings": (model.components_[order] * scale).tolist(),
        "offsets": (model.confound_components_ * scale).tolist(),
        "room": (span * scale).tolist() if model.reconstruction_max == "item_range" else None,
        "place": model.solving_order_.tolist(),
        "beta": float(model.beta),
        "penalty": model.penalty,
        "top": model.score_max,
        "confounds": model.confound_encoder_.to_dict()["columns"],
        "intercept": model.confound_encoder_.intercept,
        "fill": model.confound_encoder_.missing == "mean",
        "knots": [part["score"].tolist() for part in by_factor],
        "below": [part["low"].tolist() for part in by_factor],
        "above": [part["high"].tolist() for part in by_factor],
    }


def _asking(form: AdaptiveForm) -> dict[str, Any]:
    """The numbers that `AdaptiveForm` uses."""
    loadings, offsets = form.loadings
    simulated = {"scores": form.scores, "others": form.others, "residuals": form.residuals}
    return {
        "width": form.width,
        "least": LEAST_GAIN,
        "covered": COVERED,
        "beta": form.penalty.beta,
        "loadings": loadings.tolist(),
        "offsets": offsets.tolist(),
        "pulls": form.pulls.tolist(),
        "gains": form.gains.tolist(),
        "own": form.own,
        "gram": form.gram.tolist(),
        "chances": [table.tolist() for table in form.chances],
    } | {name: _rounded(each) for name, each in simulated.items()}


def _rounded(numbers: Rounded) -> dict[str, Any]:
    """Whole numbers as text, the lower byte first."""
    values = numbers.values.astype(numbers.values.dtype.newbyteorder("<"))
    return {
        "low": numbers.low.tolist(),
        "step": numbers.step.tolist(),
        "size": values.itemsize,
        "bytes": b64encode(values.tobytes()).decode("ascii"),
    }
