"""BIDS sidecars and REDCap dictionaries."""

import json

import pandas as pd
import pytest

from icqf.errors import InputError
from icqf.io import read_questionnaire, read_table

SIDECAR = {
    "MeasurementToolMetadata": {"Description": "A questionnaire"},
    "participant_id": {"Description": "Participant"},
    "q1": {"Description": "Sleeps badly", "Levels": {"0": "never", "1": "often", "9": "refused"}},
    "q2": {"LongName": "Worries", "Minimum": 0, "Maximum": 3, "MissingValues": [-9]},
    "total": {"Description": "Sum", "Minimum": 0, "Maximum": 9, "Derivative": True},
}


@pytest.fixture
def bids(tmp_path):
    path = tmp_path / "sleep.tsv"
    path.write_text("participant_id\tq1\tq2\ttotal\nsub-01\t1\t-9\t4\nsub-02\t9\t3\tn/a\n")
    path.with_suffix(".json").write_text(json.dumps(SIDECAR))
    return path


def test_bids(bids):
    study = read_questionnaire(bids)
    assert [(item.name, item.wording, item.min, item.max) for item in study.items] == [
        ("q1", "Sleeps badly", 0, 1),
        ("q2", "Worries", 0, 3),
    ]
    assert list(study.answers.index) == ["sub-01", "sub-02"]
    assert study.answers.isna().to_numpy().tolist() == [[False, True], [True, False]]


def test_bad_sidecars(bids):
    sidecar = bids.with_suffix(".json")
    sidecar.write_text('{"q1": {"Levels": ["never", "often"]}}')
    with pytest.raises(InputError, match=r"sleep.json: the Levels of column 'q1' are labels without values"):
        read_questionnaire(bids)
    sidecar.write_text('{"q1": \n oops}')
    with pytest.raises(InputError, match=r"sleep.json: .*line 2"):
        read_questionnaire(bids)
    sidecar.write_text('{"q1": {}, "q1": {}}')
    with pytest.raises(InputError, match=r"^sleep.json: the name 'q1' occurs twice"):
        read_questionnaire(bids)
    sidecar.write_text('{"q1": {"Minimum": 5, "Maximum": 1}}')
    with pytest.raises(InputError, match=r"^sleep.json: Item 'q1' has lowest answer 5 and highest answer 1"):
        read_questionnaire(bids)
    sidecar.write_text('{"q1": 1}')
    with pytest.raises(InputError, match=r"sleep.json: it describes no column"):
        read_questionnaire(bids)
    sidecar.write_text("[]")
    with pytest.raises(InputError, match=r"sleep.json: this must be a JSON object"):
        read_questionnaire(bids)


HEADER = (
    '"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR '
    'Slider Labels",'
    '"Branching Logic (Show field only if...)"\n'
)


@pytest.fixture
def redcap(tmp_path):
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text(
        HEADER + 'record_id,base,text,Record,,\nhas_sibs,family,yesno,"<b>Any</b> siblings?",,\n'
        "sib_q,family,radio,Fights with siblings,\"0, Never | 1, Sometimes | 2, Often\",[has_sibs] = '1'\n"
        "why,family,checkbox,Reasons,\"1, Toys | 2, Space\",[sib_q] >= 1 and [has_sibs] <> '0'\n"
        "odd,family,yesno,Odd,,\"datediff([a],[b],'y') > 3\"\n"
        "pain,family,slider,Pain,,\nsum,family,calc,Sum,[sib_q]+1,\n"
    )
    data = tmp_path / "data.csv"
    data.write_text(
        "record_id,has_sibs,sib_q,why___1,why___2,odd,pain,sum,family_complete\n"
        "01,1,2,1,0,1,55,3,2\n02,0,,,,,20,1,2\n03,1,,0,0,0,,1,2\n"
    )
    return data, dictionary


def test_redcap(redcap):
    data, dictionary = redcap
    study = read_questionnaire(data, dictionary=dictionary)
    assert [item.name for item in study.items] == ["has_sibs", "sib_q", "odd", "pain"]
    wanted = ["has_sibs", "sib_q", "why___*", "odd", "pain"]  # boxes are read when they are named
    study = read_questionnaire(data, dictionary=dictionary, items=wanted)
    items = {item.name: item for item in study.items}
    assert list(items) == ["has_sibs", "sib_q", "why___1", "why___2", "odd", "pain"]
    assert items["has_sibs"].wording == "Any siblings?"
    assert (items["sib_q"].max, items["pain"].max, items["why___2"].wording) == (2, 100, "Reasons: Space")
    assert list(study.answers.index) == ["01", "02", "03"]
    assert study.structural is not None
    assert study.structural["sib_q"].tolist() == [False, True, False]
    assert study.structural["why___1"].tolist() == [False, True, False]
    assert not study.structural["pain"].any()
    assert any("'odd' cannot be evaluated, because it uses the function datediff" in n for n in study.notes)


def test_bad_dictionaries(redcap):
    data, dictionary = redcap
    dictionary.write_text(
        HEADER + "q1,form,radio,Q,never | often,\nrecord_id,base,text,Record,,\nhas_sibs,f,yesno,S,,\n"
    )
    with pytest.raises(
        InputError, match=r"dictionary.csv: the field 'q1' has the choice 'never' without a value"
    ):
        read_questionnaire(data, dictionary=dictionary)
    dictionary.write_text("a,b\n1,2\n")
    with pytest.raises(
        InputError, match=r"this is not a dictionary that can be read.* a REDCap data dictionary"
    ):
        read_questionnaire(data, dictionary=dictionary)
    dictionary.write_text(HEADER + "other,form,yesno,Q,,\n")
    with pytest.raises(InputError, match=r"dictionary.csv: none of its fields .'other'. is a column"):
        read_questionnaire(data, dictionary=dictionary)


def test_events_are_pointed_out(redcap):
    data, dictionary = redcap
    frame = pd.read_csv(data, dtype=str).assign(redcap_event_name="baseline")
    pd.concat([frame, frame.assign(redcap_event_name="followup")]).to_csv(data, index=False)
    with pytest.raises(InputError, match=r"'01'.*rows 2 and 5.*'redcap_event_name'"):
        read_questionnaire(data, dictionary=dictionary)


def test_a_sidecar_can_be_named(bids, tmp_path):
    other = tmp_path / "elsewhere.json"
    bids.with_suffix(".json").rename(other)
    assert read_table(bids).items == ()
    assert len(read_table(bids, dictionary=other).items) == 4
