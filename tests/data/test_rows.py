"""Tables that are given together have the same row labels, in the same order, or are refused."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, ICQFCV, consensus
from icqf.data.frames import refuse_other_rows
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError
from icqf.report import analyse

N = 40


@pytest.fixture(scope="module")
def answers():
    return pd.DataFrame(np.random.default_rng(0).integers(0, 5, (N, 6)), columns=list("abcdef"))


@pytest.fixture(scope="module")
def participants():
    return pd.DataFrame({"age": np.random.default_rng(1).uniform(6, 18, N)})


def model():
    return ICQF(1, item_range=(0, 4))


def refused(name, use, *args, **beside):
    with pytest.raises(InputError, match=rf"of {name} .*Use {name}\.loc\[\w+\.index\], or {name}\.to_numpy"):
        use(*args, **beside)


@pytest.mark.parametrize("labels", ["numbers", "ids"])
def test_another_order_is_refused_everywhere(answers, participants, labels):
    if labels == "ids":
        ids = [f"P{i:02d}" for i in range(N)]
        answers, participants = answers.set_axis(ids), participants.set_axis(ids)
    sorted_ = participants.sort_values("age")
    weights = pd.Series(np.linspace(1, 2, N), index=sorted_.index)
    groups = pd.Series(np.arange(N) // 4, index=sorted_.index)
    fitted, plain = model().fit(answers, confounds=participants), model().fit(answers)
    search = ICQFCV(model(), n_components=[1], betas=[0.1], n_splits=2, random_state=0)
    scores = pd.DataFrame(plain.transform(answers), index=answers.index)
    for use in (model().fit, model().fit_transform, fitted.transform, fitted.score, search.fit):
        refused("confounds", use, answers, confounds=sorted_)
    refused("confounds", fitted.inverse_transform, scores, confounds=sorted_)
    refused("confounds", consensus, fitted, answers, confounds=sorted_)
    for use in (model().fit, plain.score, search.fit):
        refused("sample_weight", use, answers, sample_weight=weights)
    refused("groups", search.fit, answers, groups=groups)
    study = Questionnaire.of(answers, item_range=(0, 4))
    refused("sample_weight", plain.state, study, sample_weight=weights)
    refused("scores", analyse, plain, study, scores=scores.loc[sorted_.index])


def test_the_same_labels_and_no_labels_are_fine(answers, participants):
    fitted = model().fit(answers, confounds=participants)
    for beside in (
        participants.to_numpy(),
        {"age": participants["age"].to_numpy()},
        participants.loc[answers.index],
    ):
        refuse_other_rows(answers, confounds=beside)
    for again in (answers.to_numpy(), answers.set_axis(participants.index)):
        given = (
            participants if isinstance(again, pd.DataFrame) else participants.sort_values("age").sort_index()
        )
        np.testing.assert_array_equal(model().fit(again, confounds=given).components_, fitted.components_)


def test_labels_of_other_participants_are_refused(answers, participants):
    """A default index beside ids says nothing about who is who, and rows may have been dropped."""
    ids = answers.set_axis([f"P{i:02d}" for i in range(N)])
    refused("confounds", model().fit, ids, confounds=participants)
    refused("confounds", model().fit, answers.iloc[1:], confounds=participants.iloc[:-1])
