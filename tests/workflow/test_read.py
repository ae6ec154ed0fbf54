"""From files and tables to a study, and to what is wrong with them."""

import pandas as pd
import polars as pl
import pytest

from icqf.data.frames import as_pandas
from icqf.io import write_table
from icqf.workflow.check import check_table


def test_polars_tables_are_checked_and_written(tmp_path):
    table = pl.DataFrame({"id": ["a", "b", "c", "d"], "q1": [0, 1, 2, 999], "q2": [1, 0, None, 1]})
    (found,) = check_table(table).of("suspicious-code")
    assert (found.item, found.row) == ("q1", "d")
    write_table(table, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), as_pandas(table), check_dtype=False)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_both_kinds_give_the_same_findings(kind):
    columns = {"q1": [0, 1, 2, 9], "q2": [1, 0, 2, 1], "q3": [0, 0, 0, 0]}
    assert str(check_table(kind(columns))) == str(check_table(pd.DataFrame(columns)))
