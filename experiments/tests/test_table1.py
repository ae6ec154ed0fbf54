"""The paper's Table 1 as a command, on a few small data sets."""

import re

import pandas as pd
import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from icqf_experiments import table1

pytestmark = pytest.mark.slow

SMALL = ["--datasets", "1", "--noise", "0.1", "--factors", "4"]


@pytest.mark.long
def test_a_broken_run_goes_on_and_ends_the_same(tmp_path):
    design = table1.Table1Design(datasets=2, noise=(0.1,), n=80, m=40, k=4, reach=2, n_starts=3)
    whole = table1.table1(design)
    journal = tmp_path / "journal"
    table1.table1(design, checkpoint=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:10])
    pd.testing.assert_frame_equal(table1.table1(design, checkpoint=journal), whole)
    assert set(whole["scheme"]) == set(table1.PAPER)
    table = table1.errors(whole, design)
    assert (table.loc[table["scheme"] == "ICQF (BCV)", "error"] == 0).all()
    assert table["paper_error"].isna().all()  # not the paper's data sets


def test_the_papers_numbers_stand_beside_the_papers_data():
    results = pd.DataFrame({"noise": [0.3], "seed": [0], "scheme": ["ICQF (BCV)"], "k": [9]})
    table = table1.errors(results, table1.Table1Design(datasets=1))
    assert table[["error", "paper_error"]].iloc[0].tolist() == [1.0, 0.77]
    assert table1.as_rows(table) == [["ICQF (BCV)", "1.00 (0.00) [0.77 (0.15)]"]]


@pytest.mark.long
def test_the_command_writes_table_figures_and_runs(tmp_path):
    out = tmp_path / "out"
    result = CliRunner().invoke(
        cli, ["reproduce", "table1", *SMALL, "--scheme", "ICQF (BCV)", "--out", str(out)]
    )
    assert result.exit_code == 0, result.stderr
    assert "ICQF (BCV)" in result.stdout
    page = (out / "table1.md").read_text(encoding="utf-8")
    assert result.stdout.strip() == page.strip()
    assert "Made by `icqf reproduce table1 --datasets 1 --noise 0.1 --factors 4" in page
    for name in re.findall(r"\]\((.+?)\)", page):
        assert (out / name).stat().st_size > 0
    wrong = CliRunner().invoke(cli, ["reproduce", "table1", "--scheme", "ICQF (BVC)", "--out", str(out)])
    assert wrong.exit_code == 2 and "Did you mean 'ICQF (BCV)'?" in wrong.stderr


@pytest.mark.long
def test_proposition_2_holds_on_clean_data():
    table = table1.score_errors([7, 10, 13])
    assert (table["error"] >= table["bound"]).all()
    assert table.loc[table["n_components"] == 10, "error"].item() == table["error"].min()
