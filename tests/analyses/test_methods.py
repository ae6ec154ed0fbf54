"""Methods: a fit that is not possible is told apart from a defect."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from icqf.analyses import FactorAnalysisMethod, Method
from icqf.analyses.methods import trained
from icqf.datasets import make_cohort
from icqf.errors import InputError


@pytest.fixture(scope="module")
def study():
    return make_cohort("hbn", 60).questionnaire


@dataclass(frozen=True)
class Failing(Method):
    error: Exception
    name: str = "failing"

    def fit(self, training, *, random_state):
        raise self.error


def test_what_is_not_possible_is_told_in_words(study):
    assert trained(Failing(InputError("too few")), study, random_state=0) == "too few"


@pytest.mark.parametrize("error", [ValueError("shapes"), np.linalg.LinAlgError("singular"), TypeError("x")])
def test_a_defect_is_not_taken_for_a_fit_that_is_not_possible(study, error):
    with pytest.raises(type(error)):
        trained(Failing(error), study, random_state=0)


@pytest.mark.parametrize("varying", [0, 1])
def test_factor_analysis_says_when_too_few_items_vary(study, varying):
    answers = study.answers.copy()
    answers.iloc[:, varying:] = 1.0
    found = trained(FactorAnalysisMethod(), replace(study, answers=answers), random_state=0)
    assert found == (
        f"Of 119 items, {varying} vary among the training participants; factor analysis needs at least 2."
    )
