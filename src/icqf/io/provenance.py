"""Where results come from: versions, options, the files' fingerprints, and what became of every row."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icqf import __version__

if TYPE_CHECKING:
    from icqf.workflow.fit import StudyFit

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "joblib")
_CHUNK = 2**20


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> len(sha256(demo_paths().answers))
    64
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def provenance(fit: StudyFit, *, outputs: list[str]) -> dict[str, Any]:
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
        "program": "icqf",
        "versions": versions(),
        "started": fit.started.isoformat(timespec="seconds"),
        "seconds": round(fit.seconds, 3),
        "seed": fit.options.seed,
        "options": fit.options.to_dict(),
        "inputs": [
            {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in fit.study.inputs
        ],
        "rows": rows_account(fit),
        "items": fit.study.questionnaire.n_items,
        "notes": list(fit.study.questionnaire.notes),
        "warnings": list(fit.warnings),
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


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of what computes."""
    found = {"icqf": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def rows_account(fit: StudyFit) -> dict[str, Any]:
    """Say how many rows came in, how many were fitted and scored, and why others were not."""
    people = fit.study.questionnaire
    empty_rows = fit.study.rows_in - people.n_participants
    silent = int(people.answers.isna().all(axis=1).sum())
    unweighted = 0
    if fit.study.weights is not None:
        zero = (fit.study.weights == 0).to_numpy()
        unweighted = int((zero & ~people.answers.isna().all(axis=1).to_numpy()).sum())
    reasons = (
        (empty_rows, "empty row in the file", "dropped"),
        (silent, "answered nothing", "kept out of the fit, empty scores"),
        (unweighted, "weight 0", "kept out of the fit, scored"),
    )
    return {
        "in": fit.study.rows_in,
        "fitted": int(fit.model.n_participants_),
        "out": len(fit.scores),
        "scored": int(fit.scores.notna().all(axis=1).sum()),
        "left_out": [{"n": n, "why": why, "then": then} for n, why, then in reasons if n],
    }
