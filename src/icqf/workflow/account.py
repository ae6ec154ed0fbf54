"""The account of a fit that ``provenance.json`` gives: versions, options, files, and how many participants.

It may be shared: no participant, folder or user is named in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from icqf.io.provenance import fingerprints_of, versions
from icqf.workflow.fit import StudyFit
from icqf.workflow.options import StudyOptions


def account_of(fit: StudyFit, *, outputs: list[str]) -> dict[str, Any]:
    """Return the account of a fit as plain values.

    Parameters
    ----------
    fit : StudyFit
        The fitted study.
    outputs : list of str
        Names of the files written.

    Returns
    -------
    dict
        What ``provenance.json`` holds.
    """
    model, search = fit.model, fit.search
    return {
        **run_account(fit.options, fit.started, fit.seconds, fit.study.files),
        "rows": _rows(fit) if fit.study.everyone is None else _rows_of_everyone(fit),
        "items": fit.study.questionnaire.n_items,
        "analysed": fit.study.overview.to_dict(),
        "directions": fit.study.directions.to_dict(),
        "notes": list(fit.study.questionnaire.notes),
        "warnings": anonymous(fit.warnings),
        "model": {
            "n_components": len(model.components_),
            "beta": float(model.beta),
            "chosen_by": "given" if search is None else f"cross-validation, rule {fit.options.rule}",
            **({} if search is None else {"choice": str(search.choice_)}),
            "objective": float(model.objective_),
            "converged": bool(model.converged_),
            "iterations": int(model.n_iter_),
        },
        "outputs": outputs,
    }


def run_account(
    options: StudyOptions, started: datetime, seconds: float, files: Iterable[Path]
) -> dict[str, Any]:
    """Return what every account says of a run: what computed, when, with which options and files."""
    return {
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "seed": options.seed,
        "options": options.shareable(),
        "inputs": fingerprints_of(files),
    }


def anonymous(said: Iterable[Warning]) -> list[str]:
    """Return what was warned of, without the ids and values of participants."""
    return [getattr(each, "fields", {}).get("anonymous", str(each)) for each in said]


def _rows_of_everyone(fit: StudyFit) -> dict[str, Any]:
    """Say how many rows came in and were fitted, where only some of them were held and shown."""
    return {
        "in": fit.study.rows_of_everyone,
        "fitted": int(fit.model.n_participants_),
        "shown": fit.study.questionnaire.n_participants,
    }


def _rows(fit: StudyFit) -> dict[str, Any]:
    """Say how many rows came in, how many were fitted and scored, and why others were not."""
    questionnaire = fit.study.questionnaire
    silent = questionnaire.answers.isna().all(axis=1).to_numpy()
    weights = questionnaire.weights
    unweighted = 0 if weights is None else int(((weights == 0).to_numpy() & ~silent).sum())
    n_rows = questionnaire.n_participants if fit.study.n_rows is None else fit.study.n_rows
    reasons = (
        (n_rows - questionnaire.n_participants, "empty row in the file", "dropped"),
        (int(silent.sum()), "answered nothing", "kept out of the fit, empty scores"),
        (unweighted, "weight 0", "kept out of the fit, scored"),
    )
    return {
        "in": n_rows,
        "fitted": int(fit.model.n_participants_),
        "out": len(fit.scores),
        "scored": int(fit.scores.notna().all(axis=1).sum()),
        "left_out": [{"n": n, "why": why, "then": then} for n, why, then in reasons if n],
    }
