"""Public files read without a codebook."""

import pandas as pd
import pytest

from icqf.workflow.evaluation import Design
from icqf_experiments.novice import novice_files
from icqf_experiments.reading import fit_reading, read_as_a_newcomer, reading_page

FILES = {file.name: file for file in novice_files()}


@pytest.mark.parametrize("name", ["bfi", "help", "phq9", "msq", "verbagg"])
def test_items_ranges_and_reversed_items_are_those_of_the_publication(name):
    file = FILES[name]
    reading = read_as_a_newcomer(file)
    assert sorted(reading.taken) == sorted(file.items)
    assert reading.ranges == file.ranges
    assert file.reversed_items is None or sorted(reading.reversed_items) == sorted(file.reversed_items)


def test_what_a_file_asks_for_is_said():
    assert read_as_a_newcomer(FILES["verbagg"]).steps == ("the codebook that `icqf codebook` proposes",)
    assert read_as_a_newcomer(FILES["bfi"]).steps == ()


@pytest.mark.long
def test_reversing_finds_the_big_five():
    reading = read_as_a_newcomer(FILES["bfi"])
    with_assistant = fit_reading(reading.keyed, FILES["bfi"])
    assert with_assistant.clean == 5 <= with_assistant.k
    assert (fit_reading(reading.study, FILES["bfi"]).clean or 0) < 5


@pytest.mark.long
def test_the_page_shows_every_file(tmp_path):
    page = reading_page([FILES["phq9"]], Design(tmp_path, command="icqf reproduce reading --file phq9"))
    assert "9 of 9" in page.read_text() and "Read without help." in page.read_text()
    assert pd.read_csv(tmp_path / "reading.csv")["items taken"].tolist() == ["9 of 9"]
