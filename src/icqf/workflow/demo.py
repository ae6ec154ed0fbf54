"""The demo: write a study's files into a folder, and analyse them like any others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Questionnaire
from icqf.data.study import Study
from icqf.datasets import demo_paths, load_bfi, load_help, load_phq9
from icqf.errors import Advice, InputError
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook
from icqf.io.write import csv_text
from icqf.workflow.fit import Callback, StudyFit, fit_study, write_results
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import read_study
from icqf.workflow.results_folder import refuse_existing

LOADERS: dict[str, Callable[[], Questionnaire]] = {"help": load_help, "bfi": load_bfi, "phq9": load_phq9}
SEARCH: dict[str, Any] = {}  # further options; by default everything is chosen by cross-validation


def run_demo(
    data: str,
    folder: Path,
    *,
    force: bool = False,
    callback: Callback | None = None,
    begin: Callable[[Study], object] | None = None,
    jobs: int = -1,
) -> tuple[StudyFit, list[str]]:
    """Write the demo's files into `folder`, fit them, and write the results into ``folder/results``.

    `force` replaces data files edited since an earlier demo; `begin` is called with the study once its files
    have been read, `jobs` the number of processes. Returns the fit and the names of the result files.
    """
    results = folder / "results"
    if folder.is_dir():
        refuse_existing(results, "demo", force=True)
    answers, codebook = write_demo_files(data, folder, force=force)
    options = StudyOptions.of({**demo_values(data, answers, codebook), "jobs": jobs, **SEARCH})
    study = read_study(options)
    if begin is not None:
        begin(study)
    fit = fit_study(options, study=study, callback=callback)
    return fit, write_results(fit, results, tool="demo", force=True)


def demo_values(data: str, answers: Path, codebook: Path) -> dict[str, Any]:
    """Return the options of the demo's study."""
    extra = {"groups": "family"} if data == "children" else {}
    return {"answers": answers, "codebook": codebook, "confounds": ["age", "sex"], **extra}


def write_demo_files(data: str, folder: Path, *, force: bool) -> tuple[Path, Path]:
    """Write the answers and the codebook of the demo's study into a folder."""
    if data == "children":
        texts = {path.name: path.read_text(encoding="utf-8") for path in demo_paths()}
    else:
        study = LOADERS[data]()
        table = study.answers if study.confounds is None else study.confounds.join(study.answers)
        texts = {f"{data}_answers.csv": csv_text(table), f"{data}_codebook.csv": format_codebook(study.items)}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: this is a file; choose a folder.")
    for name, text in texts.items():
        path = folder / name
        if path.exists() and not force and path.read_bytes() != text.encode():
            raise InputError(
                f"{path}: the file was edited.",
                code="exists",
                remedy=Advice("Choose another folder, or add {force=} to replace it.", force=True),
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_bytes(folder / name, text.encode())
    answers, codebook = (folder / name for name in texts)
    return answers, codebook
