"""One record of files and column roles serves every reader."""

import pickle

import pandas as pd
import pytest

from icqf import ICQF
from icqf.data.validate import EmptyRowsWarning
from icqf.errors import InputError, Note, has_note
from icqf.io import StudyFiles, read_questionnaire
from icqf.io.readers.questionnaires import NO_IDS, NOT_IN_CODEBOOK
from icqf.workflow import StudyOptions, check_study, read_study, score_file
from icqf.workflow.new_answers import read_for_model
from small_study import codebook, table


@pytest.fixture
def study(tmp_path):
    """A study in three files: ages are in the table of participants."""
    table().drop(columns="age").to_csv(tmp_path / "answers.csv", index=False)
    table()[["record_id", "age"]].to_csv(tmp_path / "participants.csv", index=False)
    codebook().to_csv(tmp_path / "items.csv", index=False)
    return StudyFiles(
        tmp_path / "answers.csv",
        codebook=tmp_path / "items.csv",
        participants=tmp_path / "participants.csv",
        confounds="age",
    )


def test_values_are_taken_as_they_are_given():
    files = StudyFiles("a.csv", items="q*", confounds=(name for name in ("age", "sex")), visit=("wave", 1))
    assert (files.items, files.confounds, files.visit) == (("q*",), ("age", "sex"), (("wave", "1"),))
    assert StudyFiles("a.csv", items=None, visit=None, missing_codes=None) == StudyFiles("a.csv")
    assert StudyFiles.of(files.to_dict()) == files


def test_record_keywords_and_options_read_the_same(study):
    roles = {name: value for name, value in vars(study).items() if value and name != "answers"}
    by_record, by_name = read_study(study), read_study(str(study.answers), **roles)
    by_options = read_study(StudyOptions(study.answers), **roles)
    by_reader = read_questionnaire(study.answers, **roles)
    for other in (by_name.questionnaire, by_options.questionnaire, by_reader):
        pd.testing.assert_frame_equal(by_record.questionnaire.answers, other.answers)
        pd.testing.assert_frame_equal(by_record.questionnaire.confounds, other.confounds)
        assert by_record.questionnaire.notes == other.notes
    assert by_record.files == study.paths and len(study.paths) == 3
    assert str(check_study(study)) == str(check_study(study.answers, **roles))


def test_confounds_of_new_participants_may_be_in_a_table_of_their_own(study, tmp_path):
    with pytest.warns(EmptyRowsWarning):
        model = ICQF(2).fit(read_study(study).questionnaire)
    model.save(tmp_path / "model.icqf")
    table().to_csv(tmp_path / "all.csv", index=False)
    whole = score_file(tmp_path / "model.icqf", tmp_path / "all.csv").scores
    joined = score_file(tmp_path / "model.icqf", study.answers, participants=study.participants).scores
    pd.testing.assert_frame_equal(joined, whole)
    read = read_for_model(
        tmp_path / "model.icqf", study.answers, participants=study.participants, extra=["sex"]
    )
    assert list(read.questionnaire.confounds) == ["age"] and list(read.extra) == ["sex"]
    assert study.participants in read.files
    with pytest.raises(InputError, match=r"^reverse is defined by the model; leave it out\.$"):
        score_file(tmp_path / "model.icqf", study.answers, reverse=["q01"])


def test_notes_are_known_by_their_codes(study, tmp_path):
    table().drop(columns="record_id").to_csv(tmp_path / "anonymous.csv", index=False)
    anonymous = read_questionnaire(tmp_path / "anonymous.csv", codebook=study.codebook).notes
    known = read_study(study).questionnaire.notes
    assert has_note(anonymous, NO_IDS) and not has_note(known, NO_IDS)
    assert has_note(known, NOT_IN_CODEBOOK)
    note = pickle.loads(pickle.dumps(Note("no-ids", "Numbered.")))
    assert (note, note.code) == ("Numbered.", "no-ids")
