"""What a study's files state about instrument and sample."""

import pytest

from icqf.errors import InputError, InputWarning
from icqf.io import StudyFiles, read_about, read_codebook, read_questionnaire
from icqf.io.codebook import codebook_and_about
from icqf.workflow.options import read_config

ITEMS = '[[item]]\nname = "q1"\nmin = 0\nmax = 3\n[[item]]\nname = "q2"\nmin = 0\nmax = 3\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "answers.csv").write_text("q1,q2\n0,1\n2,3\n1,1\n")
    (tmp_path / "items.toml").write_text('[about]\ninstrument = "SDQ"\nlanguage = "en"\n' + ITEMS)
    (tmp_path / "study.toml").write_text('language = "de"\nlicence = "cc-by-4.0"\n')
    (tmp_path / "items.csv").write_text("name,min,max,instrument\nq1,0,3,SDQ\nq2,0,3,SDQ\n")
    return tmp_path


def test_the_file_about_a_study_takes_precedence_over_its_codebook(folder):
    files = StudyFiles(folder / "answers.csv", codebook=folder / "items.toml", about=folder / "study.toml")
    about = codebook_and_about(files)[1]
    assert (about.instrument, about.language, about.licence) == ("SDQ", "de", "CC-BY-4.0")
    assert folder / "study.toml" in files.paths
    read = read_questionnaire(files.answers, codebook=files.codebook, about=files.about)
    assert read.about == about and read.select(["q1"]).about == about


def test_a_codebook_of_one_instrument_names_it(folder):
    assert codebook_and_about(StudyFiles("a.csv", codebook=folder / "items.csv"))[1].instrument == "SDQ"
    (folder / "items.csv").write_text("name,min,max,instrument\nq1,0,3,SDQ\nq2,0,3,\n")
    assert not codebook_and_about(StudyFiles("a.csv", codebook=folder / "items.csv"))[1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_files_are_read_as_editors_on_windows_save_them(folder, encoding):
    texts = {"study.toml": 'sample = "Pupils in Köln"', "items.toml": ITEMS, "config.toml": "seed = 3"}
    for name, text in texts.items():
        (folder / name).write_text(text.replace("\n", "\r\n"), encoding=encoding, newline="")
    assert read_about(folder / "study.toml").sample == "Pupils in Köln"
    assert [item.name for item in read_codebook(folder / "items.toml")] == ["q1", "q2"]
    assert read_config(folder / "config.toml") == {"seed": 3}


@pytest.mark.parametrize("read", [read_about, read_codebook, read_config])
def test_nested_files_are_refused(folder, read):
    (folder / "deep.toml").write_text(f"x = {'[' * 9000}{']' * 9000}")
    with pytest.raises(InputError, match=r"deep.toml: this is not valid TOML"):
        read(folder / "deep.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("licence = ", "study.toml: this is not valid TOML"),
        ('about = "us"', "study.toml: about must be a table"),
        ('licenses = "MIT"', "study.toml: There is no option 'licenses'"),
        ("sample = 3", "study.toml: sample must be a text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_its_name(folder, text, message):
    (folder / "study.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_about(folder / "study.toml")


def test_an_unknown_licence_is_warned_about(folder):
    (folder / "study.toml").write_text('instrument_licence = "ask the publisher"')
    with pytest.warns(
        InputWarning, match="study.toml: The instrument licence 'ask the publisher' has no SPDX"
    ):
        assert read_about(folder / "study.toml").instrument_licence == "ask the publisher"
