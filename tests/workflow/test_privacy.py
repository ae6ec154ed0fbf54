"""What a run writes may be shared: apart from the scores, no file names a participant, a folder or a user."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from icqf.workflow.fit import fit_study, write_results
from icqf.workflow.options import StudyOptions, read_config

N = 120


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study in somebody's home folder, with one participant who answered nothing."""
    home = tmp_path / "home" / "mustermann"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    rng = np.random.default_rng(0)
    worry = rng.random((N, 1))
    answers = pd.DataFrame(np.rint(4 * worry * rng.random((N, 12))), columns=[f"q{j}" for j in range(12)])
    answers.iloc[3] = np.nan
    table = answers.assign(
        record_id=[f"ZZ{i:04d}" for i in range(N)],
        age=rng.uniform(6.05, 17.95, N).round(3),
        sex=["female", "male"] * (N // 2),
        family=[f"FAM{i // 2:03d}" for i in range(N)],
    )
    table.to_csv(home / "answers.csv", index=False)
    return home / "answers.csv", table


def texts(folder):
    """Every text that the folder holds, those inside Word files included."""
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix == ".docx":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    yield f"{path.name}/{name}", archive.read(name).decode("latin-1")
        elif path.is_file():
            binary = path.suffix in (".pdf", ".png", ".icqf")
            yield path.name, path.read_text(encoding="latin-1" if binary else "utf-8")


def options(path, **more):
    asked = {"answers": path, "confounds": ["age", "sex"], "groups": "family", "bootstrap": 4, "beta": 0.0}
    return StudyOptions.of({**asked, "n_components": 2, **more})


def test_no_file_but_the_scores_names_anybody(study, tmp_path):
    path, table = study
    fit = fit_study(options(path, confound_ranges={"age": [7, 17]}))
    assert any("'ZZ0003'" in str(warning) for warning in fit.warnings)  # the terminal says who
    write_results(fit, tmp_path / "out")
    ages = {f"{age:g}" for age in table["age"]}
    seen = set()
    for name, text in texts(tmp_path / "out"):
        if name == "scores.csv":
            continue
        seen.add(name.partition("/")[0])
        assert not re.search(r"ZZ0\d\d\d|FAM\d\d\d", text), name
        assert "mustermann" not in text and str(tmp_path) not in text, name
        if not name.endswith((".svg", ".pdf", ".png")):  # which are full of coordinates
            assert not ages & set(re.findall(r"\d+\.\d+", text)), name
    assert {"tables.docx", "tables.tex", "heatmap.png"} <= seen
    assert {"provenance.json", "config.toml", "report.html", "report.md", "report.json", "model.icqf"} <= seen


def test_the_account_counts(study, tmp_path):
    path, _ = study
    write_results(fit_study(options(path, report=False)), tmp_path / "out")
    account = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert account["options"]["answers"] == "answers.csv"
    assert "1 participant answered nothing: kept out of the fit." in account["warnings"]
    assert account["rows"]["in"] == N and account["rows"]["fitted"] == N - 1
    assert [each["file"] for each in account["inputs"]] == ["answers.csv"]


@pytest.mark.parametrize("beside", [True, False])
def test_the_written_options_still_repeat_the_run(study, tmp_path, beside):
    path, _ = study
    out = path.parent / "out" if beside else tmp_path / "elsewhere"
    write_results(fit_study(options(path, report=False)), out)
    text = (out / "config.toml").read_text()
    assert ('"../answers.csv"' if beside else '"~/answers.csv"') in text
    again = StudyOptions.of(read_config(out / "config.toml"))
    np.testing.assert_array_equal(fit_study(again).scores, fit_study(options(path)).scores)


def test_the_pages_of_an_evaluation_name_files_only(study, tmp_path):
    path, _ = study
    pages = tmp_path / "pages"
    words = f"--items q* --splits 2 --sizes 0.5 --n-components 1 --beta 0.1 --methods icqf --out {pages}"
    done = CliRunner().invoke(cli, ["stability", str(path), *words.split()])
    assert done.exit_code == 0, done.output
    for file in [*pages.glob("*.md"), *pages.glob("*.csv"), *pages.glob("*.journal")]:
        text = file.read_text(encoding="utf-8")
        assert "mustermann" not in text and "ZZ0" not in text, file.name
