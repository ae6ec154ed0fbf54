"""Rows that repeat an id are said in Python, too, and rows of parts are counted from the start of a file."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, InputError
from icqf.data.frames import AnswersInParts, SomeAnswers
from icqf.errors import InputWarning

MODEL = ICQF(1, item_range=(0, 3), random_state=0)


@pytest.fixture
def answers():
    return pd.DataFrame(np.random.default_rng(0).integers(0, 4, (60, 8)).astype(float)).add_prefix("q")


def test_a_table_that_repeats_ids_is_warned_of(answers):
    again = answers.set_axis([f"P{i % 50}" for i in range(60)])
    with pytest.warns(InputWarning, match=r"10 rows of the answers have the same label .*, first 'P0'"):
        MODEL.fit(again)
    MODEL.fit(again.reset_index(drop=True))  # rows that were drawn on purpose: no warning


def test_a_questionnaire_may_be_resampled(answers):
    from icqf.data import Questionnaire

    MODEL.fit(Questionnaire.of(answers, item_range=(0, 3)).take([0, 0, *range(50)]))  # no warning


def test_a_file_that_repeats_ids_is_refused(answers, tmp_path):
    answers.assign(id=[f"P{i % 50}" for i in range(60)]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"the id 'P0' in column 'id' appears twice .*row 1, and .*row 51\)"):
        MODEL.fit(tmp_path / "a.parquet")


def test_rows_are_counted_from_the_start_of_the_file(answers, tmp_path):
    answers.loc[47, "q3"] = 17.0
    parts = [answers.iloc[at : at + 20].reset_index(drop=True) for at in (0, 20, 40)]
    with pytest.raises(InputError, match=r"Item 'q3' holds 17.*\(row 47\)"):
        MODEL.fit(AnswersInParts(lambda: (SomeAnswers(part) for part in parts)))
    answers.to_parquet(tmp_path / "whole.parquet", row_group_size=20)
    with pytest.raises(InputError, match=r"^whole.parquet: Item 'q3' holds 17.*\(row 48\)"):
        MODEL.fit(tmp_path / "whole.parquet")
    (tmp_path / "folder").mkdir()
    for at, part in enumerate(parts):
        part.to_parquet(tmp_path / "folder" / f"part{at}.parquet")
    with pytest.raises(InputError, match=r"part2.parquet: Item 'q3' holds 17.*\(row 8\)"):
        MODEL.fit(tmp_path / "folder")
