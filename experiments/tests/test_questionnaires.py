"""The paper's 21 questionnaires: its layouts, simulated or read from exports, in one table beside it."""

import numpy as np
import pandas as pd
import pytest

from icqf.errors import InputError
from icqf_experiments import questionnaires as subject


def test_the_layouts_are_the_papers():
    assert len(subject.LAYOUTS) == 21 and len({each.name for each in subject.LAYOUTS}) == 21
    assert sum(each.items for each in subject.LAYOUTS) == 948
    assert {each.name: (each.k, each.beta) for each in subject.LAYOUTS}["CBCL"] == (8, 0.5)


@pytest.mark.parametrize("layout", subject.LAYOUTS, ids=lambda each: each.name)
def test_simulated_answers_have_the_papers_layout(layout):
    made = subject.simulated(layout, 60, seed=0)
    assert made.answers.shape == (60, layout.items)
    assert (
        made.answers.min(axis=None) >= layout.answers[0] and made.answers.max(axis=None) <= layout.answers[1]
    )


def exported(tmp_path, form="{0}_{1:02d}"):
    """An export of HBN with two questionnaires, sums and a second header row."""
    rng = np.random.default_rng(0)
    columns = {form.format("ARI_P", j): rng.integers(0, 3, 40) for j in range(1, 8)}
    columns |= {form.format("SCQ", j): rng.integers(0, 2, 40) for j in range(1, 41)}
    columns |= {"ARI_P_Total": rng.integers(0, 9, 40), "Basic_Demos,Age": rng.uniform(5, 21, 40)}
    table = pd.DataFrame(columns, index=[f"NDARAA{i:03d},assessment" for i in range(40)])
    table.rename_axis("Identifiers").to_csv(tmp_path / "hbn.csv")
    return tmp_path / "hbn.csv"


@pytest.mark.parametrize("form", ["{0}_{1:02d}", "{0},{0}_{1:02d}"])
def test_both_kinds_of_exports_are_read(tmp_path, form):
    found = subject.read_hbn_questionnaires([exported(tmp_path, form)])
    assert {name: each.answers.shape for name, each in found.items()} == {"ARI_P": (40, 7), "SCQ": (40, 40)}


def test_files_without_any_questionnaire_and_with_one_twice(tmp_path):
    (tmp_path / "other.csv").write_text("EID,x_01,x_02\nNDAR1,0,1\n")
    with pytest.raises(InputError, match="No questionnaire of the paper"):
        subject.read_hbn_questionnaires([tmp_path / "other.csv"])
    path = exported(tmp_path)
    (tmp_path / "again.csv").write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="also in another file"):
        subject.read_hbn_questionnaires([path, tmp_path / "again.csv"])


@pytest.mark.slow
@pytest.mark.long
def test_the_page_stands_beside_the_paper(run_reproduce, tmp_path, monkeypatch):
    few = [each for each in subject.LAYOUTS if each.name in ("ARI_P", "PANAS")]
    monkeypatch.setattr(subject, "LAYOUTS", tuple(few))
    done = run_reproduce("questionnaires", "--quick", "--hbn", exported(tmp_path), "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "out" / "questionnaires.md").read_text()
    assert (
        "| ARI\\_P | 7 | – | 2 | 0.01 | HBN | 40 |" in page
        and "| PANAS | 20 | 2 | 2 | 0.05 | simulated |" in page
    )
    table = pd.read_csv(tmp_path / "out" / "questionnaires.csv", index_col=0)
    assert table.loc["PANAS", "k"] == 2 and (tmp_path / "out" / "questionnaires.png").is_file()


@pytest.fixture
def run_reproduce():
    from click.testing import CliRunner

    from icqf.cli.program import cli

    return lambda *words: CliRunner().invoke(cli, ["reproduce", *map(str, words)])
