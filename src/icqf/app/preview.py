"""The preview: loadings with any number of factors and penalty, before a fit and beside its results."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from icqf.app.pages import PageRequest, in_words, page, render
from icqf.app.runs import Run
from icqf.data.settings import BETAS
from icqf.errors import InputError

SHADES = 8  # of the cells of a table of loadings
_SMALL = 0.05  # loadings below this share of an item's range are not written
_QUICK = 700_000  # answers up to which a preview is shown without asking
PENALTIES = tuple(sorted({0.0, *BETAS}))


@page
def show(request: PageRequest) -> Response:
    """Show the loadings with the number of factors and the penalty in the address."""
    run, asked = request.usable_run, request.http.query_params
    values: dict[str, Any] = {"fault": "", "rows": ()}
    try:
        k, beta = _numbers(asked.get("k", "5")[:9], asked.get("beta", "0.1")[:20])
        values |= request.app.worker.preview(run, k, beta, _table)
    except InputError as error:
        values["fault"] = in_words(error)
    step = "results" if run.done else "fit"
    code = 400 if values["fault"] else 200
    return render(request, "preview.html", step=step, penalties=PENALTIES, code=code, **values)


def shown_at_once(n_answers: int) -> bool:
    """Whether a study is small enough for a preview without being asked for it."""
    return n_answers <= _QUICK


def _numbers(k: str, beta: str) -> tuple[int, float]:
    try:
        return int(k), float(beta)
    except ValueError:
        raise InputError("The number of factors and the penalty must be numbers.") from None


def _table(run: Run, stated: Any, k: int, beta: float) -> dict[str, Any]:
    """Return the loadings for the page, items below the factor on which they load most."""
    from icqf.models.icqf import ICQF
    from icqf.workflow.preview import most_factors, named_like, preview

    found = preview(stated, k, beta)
    names = named_like(found, ICQF.load(run.results / "model.icqf")) if run.done else {}
    wordings = {
        item.name: " ".join(text for text in (item.wording, "(reversed)" if item.reverse else "") if text)
        for item in stated.codebook.items
    }
    shares = found.shares.to_numpy()
    main, order = shares.argmax(axis=1), []
    for factor in range(k):
        own = [at for at in range(len(shares)) if main[at] == factor]
        order += sorted(own, key=lambda at: -shares[at, factor])
    rows = []
    for at in order:
        values, parts = found.loadings.iloc[at], shares[at]
        cells = [
            (f"{value:.2f}" if part >= _SMALL else "", min(round(SHADES * float(part)), SHADES))
            for value, part in zip(values, parts, strict=True)
        ]
        name = str(found.loadings.index[at])
        rows.append({"name": name, "wording": wordings.get(name, ""), "cells": cells})
    return {
        "k": k,
        "beta": beta,
        "rows": rows,
        "heads": [
            f"like {names[column]}" if column in names else suggested
            for column, suggested in zip(found.loadings.columns, found.names, strict=True)
        ],
        "n": found.n_participants,
        "most": most_factors(stated),
    }
