"""Messy files go from the first look to scores by the options that are printed, and nothing else."""

import json
import shlex

import pytest

from icqf.io import read_table
from newcomer_files import BOOK, FILES

QUICK = ("--n-components", "2", "--beta", "0.1", "--n-init", "1")
CORE = ("bfi.csv", "study.xlsx", "visits.csv")  # of every run of the tests
CASES = [
    pytest.param(file, id=file.name, marks=[] if file.name in CORE else [pytest.mark.long]) for file in FILES
]


def looked_at(run, path, words):
    result = run("check", path, *words)
    return result, result.stdout + result.stderr


@pytest.mark.parametrize("file", CASES)
def test_from_check_to_scores(run, tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    file.write(tmp_path / file.name)
    words = ["--dictionary", file.dictionary] if file.dictionary else []
    for step in file.typed:
        result, text = looked_at(run, file.name, words)
        assert result.exit_code != 0 and step in text, text
        if step == BOOK:
            assert f"icqf codebook {file.name} --out items.csv" in text
            assert run("codebook", file.name, *words, "--out", "items.csv").exit_code == 0
        words += shlex.split(step)
    result, text = looked_at(run, file.name, words)
    assert result.exit_code == 0, text
    for said in file.said:
        assert said in text, text
    done = run("fit", file.name, *words, *QUICK, "--out", "results")
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "results" / "provenance.json").read_text())["items"] == file.items
    again = [word for word in words if word not in ("--codebook", "items.csv")]
    scored = run("score", "results/model.icqf", file.name, *again, "--out", "scores.csv")
    assert scored.exit_code == 0, scored.stderr
    fitted, later = (read_table(tmp_path / name).frame for name in ("results/scores.csv", "scores.csv"))
    names = [f"factor{k}" for k in (1, 2)]
    away = (later[names].iloc[: len(fitted)] - fitted[names]).abs()
    assert len(later) >= len(fitted) and away.max().max() < 1e-5
