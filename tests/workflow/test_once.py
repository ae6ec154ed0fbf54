"""Nothing is worked out twice: a whole `icqf fit`, with what it calls counted."""

import sys
from collections import Counter

import pytest
from click.testing import CliRunner

from icqf.baselines import retention
from icqf.cli.program import cli
from icqf.data import direction
from icqf.datasets import demo_paths
from icqf.models import statement as stated
from icqf.resampling import hidden
from icqf.selection import search
from icqf.workflow import fit as _fit  # noqa: F401  imported before it is counted
from icqf.workflow import results as _results  # noqa: F401


@pytest.fixture
def calls(monkeypatch):
    """How often functions are called, by name, wherever they were imported to."""
    counts = Counter()

    def count(module, name, told=lambda result: 1):
        work = getattr(module, name)

        def counted(*args, **options):
            result = work(*args, **options)
            counts[name] += told(result)
            return result

        for each in list(sys.modules.values()):
            if getattr(each, "__name__", "").startswith("icqf") and vars(each).get(name) is work:
                monkeypatch.setattr(each, name, counted)

    count(direction, "find_reversed")
    count(stated, "state")
    count(retention, "parallel_analysis")
    count(hidden, "predict_hidden")
    count(search, "run_task", len)
    return counts


def fit(folder, *words):
    answers, codebook = map(str, demo_paths())
    words = (*words, "--subscales", "Worry", "Temper", "--bootstrap", "5", "--out", str(folder / "out"))
    done = CliRunner().invoke(cli, ["fit", answers, "--codebook", codebook, "--confounds", "age", *words])
    assert done.exit_code == 0, done.output


def test_a_fit_with_a_search_works_out_everything_once(tmp_path, calls):
    fit(tmp_path, "--beta", "0.1", "--n-splits", "5")
    tried = len((tmp_path / "out" / "cv.csv").read_text().splitlines()) - 1
    assert tried > 5
    assert calls == {"find_reversed": 1, "state": 1, "parallel_analysis": 1, "run_task": tried}


def test_a_fit_without_a_search_works_out_everything_once(tmp_path, calls):
    fit(tmp_path, "--n-components", "2", "--beta", "0.1", "--consensus")
    assert calls == {"find_reversed": 1, "state": 1, "parallel_analysis": 1, "predict_hidden": 1}
