"""Tables of other kinds: polars needs no pyarrow, and comes back as polars."""

import subprocess
import sys
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from icqf import ICQF, ICQFCV, consensus
from icqf.data.frames import as_pandas, refuse_other_rows
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError
from icqf.report import analyse

WITHOUT_PYARROW = """
import sys


class NoPyarrow:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NoPyarrow())
import numpy as np
import polars as pl
from icqf import ICQF, ICQFCV

rng = np.random.default_rng(0)
answers = rng.integers(0, 3, (60, 8))
table = pl.DataFrame(
    {f"q{j}": [None if i == 5 + j else int(x) for i, x in enumerate(answers[:, j])] for j in range(8)}
)
sex = pl.Series(["f", "m"] * 30, dtype=pl.Categorical)
people = pl.DataFrame({"age": rng.uniform(5, 20, 60), "sex": sex})
weights = pl.Series("weight", np.linspace(1, 2, 60))
given = {"confounds": people, "sample_weight": weights}
model = ICQF(2, item_range=(0, 2)).set_output(transform="polars")
scores = model.fit_transform(table, **given)
assert isinstance(scores, pl.DataFrame) and scores.equals(model.transform(table, confounds=people))
back = model.inverse_transform(scores, confounds=people)
assert isinstance(back, pl.DataFrame) and back.columns == table.columns
assert model.confound_names_ == ["Old", "Young", "f", "m", "Intercept"]

holed = answers.astype(float)
holed[np.arange(8) + 5, np.arange(8)] = np.nan
plain = ICQF(2, item_range=(0, 2)).fit(
    holed,
    confounds={"age": people["age"].to_list(), "sex": people["sex"].to_list()},
    sample_weight=weights.to_list(),
)
np.testing.assert_array_equal(plain.components_, model.components_)
alone = ICQF(2, item_range=(0, 2)).fit(table, confounds=people["age"])
assert alone.confound_names_ == ["Old", "Young", "Intercept"]
search = ICQFCV(model, n_components=[1, 2], betas=[0.1], n_splits=2, random_state=0)
search.fit(table, groups=pl.Series(["a", "b", "c"] * 20), **given)
assert list(search.feature_names_in_) == table.columns
assert "pyarrow" not in sys.modules
"""


def test_polars_works_without_pyarrow():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_kind_of_column():
    table = pl.DataFrame(
        {
            "whole": [0, None, 2],
            "small": pl.Series([0, 1, 2], dtype=pl.Int8),
            "number": [0.5, None, float("nan")],
            "yes": [True, False, True],
            "perhaps": [True, None, False],
            "word": ["a", None, "b"],
            "day": [date(2020, 1, 1), None, date(2020, 1, 3)],
            "nothing": [None, None, None],
        }
    )
    found = as_pandas(table)
    assert [str(kind) for kind in found.dtypes][:4] == ["float64", "int8", "float64", "bool"]
    assert found["day"].dtype.kind == "M"
    assert found.isna().sum().tolist() == [1, 0, 2, 0, 1, 1, 1, 3]
    assert found["perhaps"].tolist()[::2] == [True, False] and found["word"].tolist()[::2] == ["a", "b"]
    arrow = as_pandas(table.to_arrow())
    pd.testing.assert_frame_equal(arrow, found, check_dtype=False)
    assert as_pandas(found) is found and as_pandas(None) is None
    assert as_pandas(table["word"]).name == "word"


def test_the_errors_of_polars_tables_name_item_and_row():
    table = pl.DataFrame({"q1": ["0", "often", "2"], "q2": [0, 1, 2]})
    with pytest.raises(InputError, match="Item 'q1' holds text: 'often'"):
        ICQF(1, item_range=(0, 2)).fit(table)
    with pytest.raises(InputError, match=r"Item 'q2' holds 9, above .* \(row 2\)"):
        ICQF(1, item_range=(0, 2)).fit(pl.DataFrame({"q1": [0, 1, 2], "q2": [0, 1, 9]}))


def test_scores_in_a_table_come_back_as_answers_in_one():
    answers = np.random.default_rng(0).integers(0, 3, (20, 4))
    model = ICQF(2, item_range=(0, 2)).fit(answers)
    scores = model.transform(answers)
    plain = model.inverse_transform(scores)
    index = pd.Index([f"P{i}" for i in range(20)])
    frame = model.inverse_transform(pd.DataFrame(scores, index=index))
    assert frame.index.equals(index) and list(frame) == ["item1", "item2", "item3", "item4"]
    other = model.inverse_transform(pl.DataFrame(scores))
    arrow = model.inverse_transform(pa.table({"a": scores[:, 0], "b": scores[:, 1]}))
    assert isinstance(other, pl.DataFrame) and isinstance(arrow, pa.Table)
    for table in (frame.to_numpy(), other.to_numpy(), arrow.to_pandas().to_numpy()):
        np.testing.assert_array_equal(table, plain)


def test_the_na_of_r_is_a_missing_answer():
    """R marks a missing number by a NaN of its own, which NumPy complains of when it counts with it."""
    na = np.array([0x7FF00000000007A2], dtype=np.uint64).view(np.float64)[0]
    rng = np.random.default_rng(0)
    answers = rng.integers(1, 7, size=(60, 6)).astype(float)
    answers[::7, 2] = np.nan
    of_r = answers.copy()
    of_r[::7, 2] = na
    plain, theirs = (ICQF(2, item_range=(1, 6)).fit(table) for table in (answers, of_r))
    assert (plain.components_ == theirs.components_).all()
    assert (plain.transform(answers) == theirs.transform(of_r)).all()


# --- tables that are given together have the same row labels, in the same order, or are refused -------


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
