"""Which column holds the participants' ids, when nobody says so."""

import numpy as np
import pandas as pd
import pytest

from icqf.io import read_questionnaire, read_table

N = 60
RNG = np.random.default_rng(0)
ITEMS = pd.DataFrame(RNG.integers(0, 4, (N, 5)), columns=[f"q{i}" for i in range(1, 6)])


def read(tmp_path, beside, *, last=False):
    frame = ITEMS.join(pd.DataFrame(beside)) if last else pd.DataFrame(beside).join(ITEMS)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    return read_table(tmp_path / "answers.csv")


def test_a_first_column_that_numbers_participants_holds_the_ids(tmp_path):
    table = read(tmp_path, {"SEQN": RNG.permutation(N) + 93703})
    assert table.id == "SEQN"
    study = read_questionnaire(table)
    assert list(study.answers) == list(ITEMS) and study.answers.index.name == "SEQN"
    assert "Column 'SEQN' holds the participant ids." in study.notes


def test_codes_do_so_too_but_not_text_or_repeated_numbers(tmp_path):
    assert read(tmp_path, {"code": [f"X{i:03d}" for i in range(N)]}).id == "code"
    assert read(tmp_path, {"said": [f"answer number {i}" for i in range(N)]}).id is None
    assert read(tmp_path, {"hours": RNG.integers(0, 50, N)}).id is None
    assert read(tmp_path, {"SEQN": np.arange(N)}, last=True).id is None


@pytest.mark.parametrize("name", ["pid", "id", "person", "Patient", "Proband", "VPN"])
def test_a_column_of_few_values_holds_no_ids_whatever_its_name(tmp_path, name):
    table = read(tmp_path, {"number": np.arange(N) + 7, name: RNG.integers(0, 4, N)})
    assert table.id == "number"
    several = read(tmp_path, {name: np.repeat(np.arange(N // 3), 3)})  # three visits each
    assert several.id == name
