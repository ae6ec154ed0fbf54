"""Nothing is worked out twice: a whole `icqf fit`, with what it calls counted."""

import sys
from collections import Counter

import pandas as pd
import pytest
from click.testing import CliRunner

from icqf import ICQF
from icqf.baselines import retention
from icqf.cli.program import cli
from icqf.data import direction
from icqf.data.confounds import ConfoundEncoder
from icqf.datasets import demo_paths, load_demo, make_battery
from icqf.errors import InputError
from icqf.io import codebook as entries
from icqf.io import model_file as modelfile
from icqf.models import MetaICQF, search
from icqf.models import statement as stated
from icqf.resampling import hidden
from icqf.workflow import StudyOptions, score_file
from icqf.workflow import fit as _fit  # noqa: F401  imported before it is counted
from icqf.workflow.meta import read_battery

ONCE = {"find_reversed": 1, "_learned": 1, "parallel_analysis": 1, "entries_of": 1}


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
    count(stated, "_learned")
    count(retention, "parallel_analysis")
    count(hidden, "predict_hidden")
    count(search, "run_task", len)
    count(entries, "entries_of")
    count(modelfile, "_read")
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
    assert calls == ONCE | {"run_task": tried}


def test_a_fit_without_a_search_works_out_everything_once(tmp_path, calls):
    fit(tmp_path, "--n-components", "2", "--beta", "0.1", "--consensus")
    assert calls == ONCE | {"predict_hidden": 1}


def score(folder, answers, *words):
    words = ["score", folder / "model.icqf", answers, *words, "--out", folder / "scores.csv", "--force"]
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert done.exit_code == 0, done.output


def test_scoring_opens_model_and_codebook_once_and_codes_confounds_once(tmp_path, calls, monkeypatch):
    answers, codebook = demo_paths()
    ICQF(2).fit(load_demo()).save(tmp_path / "model.icqf")
    calls.clear()
    coded = []  # rows
    work = ConfoundEncoder.transform

    def transform(self, confounds, **options):
        coded.append(len(confounds))
        return work(self, confounds, **options)

    monkeypatch.setattr(ConfoundEncoder, "transform", transform)
    monkeypatch.setattr("icqf.workflow.score.ROWS_AT_A_TIME", 200)
    score(tmp_path, answers, "--codebook", codebook, "--no-intervals")
    assert calls == {"_read": 1, "entries_of": 1} and sum(coded) == 600 and len(coded) > 2


def test_scoring_a_faulty_file_opens_the_model_once(tmp_path, calls):
    answers, codebook = demo_paths()
    ICQF(2).fit(load_demo()).save(tmp_path / "model.icqf")
    calls.clear()
    table = pd.read_csv(answers, dtype=str)
    table.loc[[3, 590], "q001"] = "perhaps"
    table.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match=r"row 5, column 'q001' holds the text 'perhaps'.* in 1 more cell"):
        score_file(tmp_path / "model.icqf", tmp_path / "new.csv", codebook=codebook)
    assert calls == {"_read": 1, "entries_of": 1}


def test_scoring_a_battery_opens_model_and_codebook_once(tmp_path, calls):
    battery = make_battery(n=80, n_items=(6, 6), n_factors=2, n_meta=2, random_state=0).battery
    MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery).save(tmp_path / "model.icqf")
    (tmp_path / "new").mkdir()
    for name, each in battery.instruments.items():
        each.answers.to_csv(tmp_path / "new" / f"{name}.csv")
    names = [item.name for each in battery.instruments.values() for item in each.items]
    (tmp_path / "items.csv").write_text(
        "\n".join(["name,wording", *(f"{name}," for name in dict.fromkeys(names))])
    )
    calls.clear()
    score(tmp_path, tmp_path / "new", "--codebook", tmp_path / "items.csv")
    assert calls == {"_read": 1, "entries_of": 1}


def test_a_shared_codebook_is_parsed_once_for_each_instrument(tmp_path, calls):
    battery = make_battery(n=40, n_items=(4, 5), n_factors=1, n_meta=1, random_state=0).battery
    for name, each in battery.instruments.items():
        each.answers.add_prefix(f"{name}_").to_csv(tmp_path / f"{name}.csv")
    names = [f"{name}_{item.name}" for name, each in battery.instruments.items() for item in each.items]
    (tmp_path / "codebook.csv").write_text("\n".join(["name,wording", *(f"{name}," for name in names)]))
    studies = read_battery(StudyOptions(tmp_path))
    assert [study.questionnaire.n_items for _, study in studies.values()] == [4, 5]
    assert calls == {"entries_of": 2}
