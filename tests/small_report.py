"""A small study with everything a report may hold."""

import pytest

from icqf import ICQF, ICQFCV
from icqf.datasets import load_demo
from icqf.report import analyse, report_of
from report_names import nasty


@pytest.fixture(scope="session")
def questionnaire():
    """Some items of the demo, one of them worded like a script."""
    return nasty(load_demo().select(["q00*", "q01*", "q02*"]))


@pytest.fixture(scope="session")
def search(questionnaire):
    search = ICQFCV(
        ICQF(item_range=questionnaire.ranges()),
        n_components=[2, 3, 4],
        betas=[0.1, 0.2],
        n_splits=5,
        stability=True,
        n_halves=2,
        random_state=0,
    )
    return search.fit(questionnaire.keyed_answers(), confounds=questionnaire.confounds)


@pytest.fixture(scope="session")
def model(search):
    return search.best_estimator_


@pytest.fixture(scope="session")
def others(questionnaire, model):
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    ks = [k for k in (2, 5) if k != len(model.components_)]
    ranges = questionnaire.ranges()
    return [ICQF(k, beta=model.beta, item_range=ranges).fit(answers, confounds=confounds) for k in ks]


@pytest.fixture(scope="session")
def names(model):
    return [f"Name {r} & co" for r in range(1, len(model.components_) + 1)]


@pytest.fixture(scope="session")
def report(model, questionnaire, search, others, names):
    return report_of(
        analyse(model, questionnaire, search=search, n_bootstrap=20, other_models=others, random_state=3),
        names=names,
    )
