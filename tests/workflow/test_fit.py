"""One path from file to result: what a table says is checked once, and the scores are those of the fit."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.data import questionnaire
from icqf.data.check import check
from icqf.datasets import demo_paths, load_demo
from icqf.errors import InputError
from icqf.workflow.check import check_study
from icqf.workflow.fit import fit_study, write_results
from icqf.workflow.options import StudyOptions
from icqf.workflow.read import read_study

ANSWERS, CODEBOOK = demo_paths()
ASKED = {"answers": ANSWERS, "codebook": CODEBOOK, "confounds": ["age", "sex"], "beta": 0.1}
SOME = {"items": ["q00*", "q01*"]}


@pytest.fixture
def checks(monkeypatch):
    """Every check of answers against ranges, in the order they are made."""
    made = []

    def watched(module, name):
        real = getattr(module, name)

        def check(*args, **kwargs):
            made.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, check)

    from icqf.models import statement as stated

    watched(questionnaire, "range_faults")
    watched(stated, "check_ranges")
    return made


@pytest.mark.parametrize(
    "asked", [{"n_components": 2}, {"n_components": [2, 3], "n_splits": 3, "rule": "one_se"}]
)
def test_ranges_are_checked_once_on_the_way_to_a_fit(checks, asked):
    fit = fit_study(StudyOptions.of(ASKED | SOME | asked))
    assert checks == ["range_faults"]
    assert fit.scores.shape == (600, len(fit.model.components_))


def test_nor_are_they_checked_again_on_the_way_to_the_report(checks, tmp_path):
    options = StudyOptions.of(ASKED | SOME | {"n_components": 2, "bootstrap": 2, "figures": False})
    study = read_study(options)
    assert not check(study.questionnaire).must_fix
    write_results(fit_study(options, study=study), tmp_path / "results")
    assert checks.count("range_faults") == 1  # simulated and filled-in answers are checked on their own


def test_the_problem_is_stated_and_the_scores_are_solved_once(monkeypatch):
    from icqf.models import icqf as estimator

    stated, scored = [], []
    state, solve = ICQF.state, ICQF.transform
    monkeypatch.setattr(ICQF, "state", lambda *a, **k: stated.append(1) or state(*a, **k))
    monkeypatch.setattr(ICQF, "transform", lambda *a, **k: scored.append(1) or solve(*a, **k))
    fit = fit_study(StudyOptions.of(ASKED | {"n_components": 2, "bootstrap": 0}))
    assert (len(stated), len(scored)) == (1, 0)
    assert fit.model.replication_ is None
    assert estimator.ICQF is ICQF
    np.testing.assert_array_equal(fit.scores, fit.model.transform(fit.study.questionnaire))


def test_a_questionnaire_gives_a_model_all_that_it_knows():
    demo = load_demo()
    by_hand = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    model = ICQF(2).fit(demo)
    assert model.components_.tobytes() == by_hand.components_.tobytes()
    pd.testing.assert_frame_equal(model.item_range_, by_hand.item_range_, check_names=False)
    np.testing.assert_array_equal(
        model.transform(demo), by_hand.transform(demo.keyed_answers(), confounds=demo.confounds)
    )
    without = ICQF(2).fit(demo.with_confounds(None))
    assert without.confound_names_ == ["Intercept"]


def test_a_declared_range_is_still_held_against_a_questionnaire():
    with pytest.raises(InputError, match="above its highest answer 1"):
        ICQF(2, item_range=(0, 1)).fit(load_demo())


def test_weights_are_read_with_the_participants(tmp_path):
    table = pd.read_csv(ANSWERS).copy()
    table["w"] = np.where(np.arange(len(table)) % 3 == 0, 0.0, 2.0)
    table.to_csv(tmp_path / "weighted.csv", index=False)
    options = StudyOptions.of(
        ASKED | {"answers": tmp_path / "weighted.csv", "weights": "w", "n_components": 2}
    )
    study = read_study(options, labels=["w"])
    assert study.questionnaire.weights.tolist() == table["w"].tolist() and list(study.labels) == ["w"]
    assert list(study.questionnaire.confounds) == ["age", "sex"]
    fit = fit_study(options, study=study)
    assert fit.model.n_participants_ == 400 and fit.scores.notna().all(axis=None)


def test_a_study_with_nothing_wrong_is_checked_without_findings_to_fix():
    assert not check_study(StudyOptions.of(ASKED)).must_fix


def test_results_name_where_they_come_from(tmp_path):
    fit = fit_study(StudyOptions.of(ASKED | {"n_components": 2, "report": False}))
    names = write_results(fit, tmp_path / "results")
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == names
    with pytest.raises(InputError, match="force=True") as caught:
        write_results(fit, tmp_path / "results")
    assert caught.value.code == "exists"
