"""The penalties that a search tries grow while the strongest of them is the best, and not otherwise."""

import pandas as pd
import pytest

from icqf import ICQF, ICQFCV
from icqf.cli.text import choice_text
from icqf.data.settings import BETAS
from icqf.datasets import load_demo, make_synthetic
from icqf.models import search as run_module
from icqf.report.sections.number_of_factors import at_the_edge, count_values
from icqf.report.words import Values


def search(study, **options):
    model = ICQFCV(ICQF(item_range=study.ranges()), **({"n_splits": 4, "random_state": 0} | options))
    return model.fit(study.keyed_answers())


@pytest.fixture(scope="module")
def study():
    return load_demo().select(["q00*", "q01*", "q02*"])


@pytest.fixture(scope="module")
def grown(study):
    return search(study, n_components=[2, 3])


def tried(model):
    return sorted(float(beta) for beta in model.errors_["beta"].unique())


def without_seconds(model):
    return model.cv_results_.drop(columns="seconds")


def test_it_grows_while_the_strongest_is_the_best(grown):
    assert tried(grown)[: len(BETAS)] == list(BETAS)
    more = tried(grown)[len(BETAS) :]
    assert more and more == [2**at for at in range(len(more))]
    assert grown.beta_ in tried(grown)[-2:-1] + ([8.0] if more[-1] == 8 else [])
    assert not grown.cv_results_.duplicated(["repeat", "fold", "n_components", "beta"]).any()


@pytest.mark.parametrize("kept", [run_module.MOST_KEPT, 0])
@pytest.mark.parametrize("thorough", [False, True])
def test_penalties_beyond_the_grid_start_where_the_last_ended(study, monkeypatch, kept, thorough):
    """As if they had been named at once, whether or not there was room to keep where fits ended."""
    monkeypatch.setattr(run_module, "MOST_KEPT", kept)
    grown = search(study, n_components=[2, 3], thorough=thorough)
    assert max(tried(grown)) > max(BETAS)
    named = search(study, n_components=[2, 3], betas=tried(grown), thorough=thorough)
    pd.testing.assert_frame_equal(without_seconds(grown), without_seconds(named), check_exact=True)


def test_penalties_that_are_named_do_not_grow(study):
    assert tried(search(study, n_components=[2], betas=[0.01, 0.02])) == [0.01, 0.02]


def test_it_does_not_grow_where_a_weaker_one_is_best():
    answers = make_synthetic(80, 30, 4, noise=0.05, random_state=0).answers
    model = ICQFCV(ICQF(item_range=(0, 100)), n_components=[4], n_splits=4, random_state=0).fit(answers)
    assert model.beta_ < 0.5 and tried(model) == list(BETAS)


@pytest.mark.long
def test_jobs_and_interruptions_change_nothing(study, grown, tmp_path):
    path = tmp_path / "journal"
    whole = search(study, n_components=[2, 3], checkpoint=path, n_jobs=2)
    pd.testing.assert_frame_equal(without_seconds(whole), without_seconds(grown), check_exact=True)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in (1, 20, len(lines) - 5, len(lines)):
        path.write_bytes(b"".join(lines[:kept]))
        again = search(study, n_components=[2, 3], checkpoint=path)
        pd.testing.assert_frame_equal(without_seconds(again), without_seconds(grown), check_exact=True)
        assert again.beta_ == grown.beta_
        assert again.best_estimator_.components_.tobytes() == grown.best_estimator_.components_.tobytes()


def test_a_choice_at_the_upper_end_is_remarked_on(study, monkeypatch):
    monkeypatch.setattr(run_module, "STRONGEST", 0.5)
    model = search(study, n_components=[2, 3])
    assert model.beta_ == 0.5 == tried(model)[-1]
    known = Values(model=model.best_estimator_, search=model, parallel=None, rules=None)
    said = at_the_edge(count_values(known))
    assert any("penalty is the strongest of those tried (β up to 0.5)" in sentence for sentence in said)
    assert "try more than 0.5" in choice_text(model, "min")


def test_no_remark_where_it_does_not(grown):
    assert "try more than" not in choice_text(grown, "min")


def test_a_number_of_factors_that_was_set_is_not_said_to_be_chosen(study):
    """It would win all draws of the folds, as nothing else was tried."""
    said = choice_text(search(study, n_components=[2]), "min")
    assert said.startswith("Chosen by cross-validation (min): beta ") and "the 2 factors that you set" in said
    assert "100%" not in said
