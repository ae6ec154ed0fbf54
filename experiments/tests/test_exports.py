"""The checklist in the layouts of HBN (LORIS, COINS) and ABCD (NDA), on small files of our own."""

import numpy as np
import pandas as pd
import pytest

from icqf.errors import InputError
from icqf_experiments.exports import ABCD_DIAGNOSES, HBN_DIAGNOSES, SYNDROME_OF, read_abcd, read_hbn

DX = "Diagnosis_ClinicianConsensus"


def write(path, rows, sep=","):
    pd.DataFrame(rows[1:], columns=rows[0]).to_csv(
        path, index=False, sep=sep, quoting=1 if sep == "\t" else 0
    )
    return path


@pytest.fixture
def loris(tmp_path):
    items = [f"CBCL,CBCL_{i:02d}" for i in range(1, 113) if i != 56] + [
        f"CBCL,CBCL_56{x}" for x in "ABCDEFGH"
    ]
    others = ["CBCL,EID", "CBCL,CBCL_113A", "CBCL,CBCL_AD", "CBCL,CBCL_Total_T"]
    rng = np.random.default_rng(0)
    people = ["NDARAA001", "NDARAA002", "NDARAA003", "NDARAA004"]
    rows = [["Identifiers", *items, *others], [""] + ["described here"] * (len(items) + 4)]
    for i, person in enumerate(people):
        answers = rng.integers(0, 3, len(items)).astype(object)
        answers[i] = "."
        rows.append([f"{person},assessment", *answers, person, "2", 11, 63])
    rows.append(["NDARAA005,assessment", *["."] * len(items), "", ".", ".", "."])
    cbcl = write(tmp_path / "CBCL.csv", rows)
    ages = [(9.5, 0), (12.25, 1), (17.0, 0)]
    demos = write(
        tmp_path / "Basic_Demos.csv",
        [
            ["Identifiers", "Basic_Demos,Age", "Basic_Demos,Sex", "Basic_Demos,Study_Site"],
            *([f"{p},assessment", *a, 1] for p, a in zip(people, ages, strict=False)),
        ],
    )
    consensus = write(
        tmp_path / "Diagnosis.csv",
        [
            ["Identifiers", f"{DX},DX_01", f"{DX},DX_01_Cat", f"{DX},DX_02"],
            [
                "NDARAA001,assessment",
                "ADHD-Combined Type",
                "Neurodevelopmental Disorders",
                "Social Anxiety (Social Phobia)",
            ],
            ["NDARAA002,assessment", "No Diagnosis Given", "No Diagnosis Given", "."],
            ["NDARAA003,assessment", "No Diagnosis Given: Incomplete Eval", ".", "."],
        ],
    )
    return cbcl, demos, consensus


def test_the_questionnaire_has_119_items_in_nine_scales():
    assert len(SYNDROME_OF) == 119 and len(set(SYNDROME_OF.values())) == 9
    assert set(HBN_DIAGNOSES) == set(ABCD_DIAGNOSES) and len(HBN_DIAGNOSES) == 11


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_loris_files_in_any_order(loris, order):
    study = read_hbn(*(loris[i] for i in order))
    answers, diagnoses = study.questionnaire.answers, study.labels
    assert answers.shape == (4, 119) and set(answers) == set(SYNDROME_OF)
    assert list(answers.index) == ["NDARAA001", "NDARAA002", "NDARAA003", "NDARAA004"]
    assert answers.isna().sum().sum() == 4
    assert all((item.min, item.max) == (0, 2) for item in study.questionnaire.items)
    confounds = study.questionnaire.confounds
    assert confounds["age"].tolist()[:3] == [9.5, 12.25, 17] and confounds["sex"].tolist()[:3] == [
        "male",
        "female",
        "male",
    ]
    assert confounds.iloc[3].isna().all()
    assert diagnoses.index.equals(answers.index) and list(diagnoses) == list(HBN_DIAGNOSES)
    assert diagnoses.loc["NDARAA001"][lambda row: row == 1].index.tolist() == [
        "adhd",
        "panic_agoraphobia_separation_social",
    ]
    assert (diagnoses.loc["NDARAA002"] == 0).all()
    assert diagnoses.loc[["NDARAA003", "NDARAA004"]].isna().all(axis=None)
    notes = " ".join(study.questionnaire.notes)
    assert (
        "Row 2 was read as the texts of the questions" in notes
        and "1 row without any answer left out" in notes
    )


def test_coins_files_with_codes_in_the_second_row(tmp_path):
    cbcl = write(
        tmp_path / "9994_CBCL.csv",
        [
            ["Anonymized ID", "EID", "Visit", "CBCL_01", "CBCL_02"],
            ["", "CBCL_001", "", "CBCL_010", "CBCL_011"],
            ["A0001", "NDARAA001", "V1", 0, 2],
            ["A0001", "NDARAA001", "V1", 0, 2],
            ["A0002", "NDARAA002", "V1", 1, ""],
        ],
    )
    demos = write(
        tmp_path / "9994_Basic_Demos.csv",
        [
            ["EID", "Sex", "Age"],
            ["BASIC1_001", "BASIC1_004", "BASIC1_005"],
            ["NDARAA001", 1, 7.75],
            ["NDARAA002", 0, 8],
        ],
    )
    study = read_hbn(cbcl, demos)
    assert study.questionnaire.answers["cbcl_02"].tolist()[0] == 2 and study.questionnaire.answers.shape == (
        2,
        2,
    )
    assert study.questionnaire.confounds["sex"].tolist() == ["female", "male"]
    assert study.labels is None
    assert any("1 row that repeat another row" in note for note in study.questionnaire.notes)


@pytest.fixture
def nda(tmp_path):
    head = ["collection_id", "src_subject_id", "interview_age", "sex", "eventname"]
    words = [
        "Collection",
        "Subject ID how it's defined in lab/project",
        "Age in months",
        "Sex at birth",
        "Visit",
    ]
    base, later = "baseline_year_1_arm_1", "1_year_follow_up_y_arm_1"
    cbcl = write(
        tmp_path / "abcd_cbcl01.txt",
        [
            [*head, "cbcl_q01_p", "cbcl_q56a_p", "cbcl_q113_p", "cbcl_scr_syn_anxdep_r"],
            [*words, "Acts too young", "Aches", "Other", "Sum"],
            ["2573", "NDAR_INV2", 125, "F", base, 2, 777, 1, 4],
            ["2573", "NDAR_INV1", 108, "M", base, 0, 1, 0, 5],
            ["2573", "NDAR_INV1", 121, "M", later, 1, 1, 0, 5],
            ["2573", "NDAR_INV3", 119, "O", base, 999, 0, 0, 5],
        ],
        sep="\t",
    )
    ksads = write(
        tmp_path / "abcd_ksad01.txt",
        [
            [*head, "ksads_14_853_p", "ksads_14_854_p", "ksads_11_917_p", "ksads_14_76_p"],
            [*words, "ADHD present", "ADHD past", "OCD", "symptom"],
            ["2573", "NDAR_INV1", 108, "M", base, 0, 1, 888, 1],
            ["2573", "NDAR_INV2", 125, "F", base, 888, 0, 555, 0],
            ["2573", "NDAR_INV1", 121, "M", later, 0, 0, 1, 0],
        ],
        sep="\t",
    )
    return cbcl, ksads


def test_nda_files(nda):
    study = read_abcd(*nda)
    answers, confounds = study.questionnaire.answers, study.questionnaire.confounds
    assert list(answers.index) == ["NDAR_INV2", "NDAR_INV1", "NDAR_INV3"] and list(answers) == [
        "cbcl_01",
        "cbcl_56a",
    ]
    np.testing.assert_array_equal(answers.to_numpy(), [[2, np.nan], [0, 1], [np.nan, 0]])
    np.testing.assert_allclose(confounds["age"], [125 / 12, 9, 119 / 12])
    assert confounds["sex"].tolist()[:2] == ["female", "male"] and pd.isna(confounds["sex"].iloc[2])
    assert study.questionnaire.items[1].subscale == "Somatic Complaints"
    assert study.labels["adhd"].tolist()[:2] == [0, 1]
    assert pd.isna(study.labels.loc["NDAR_INV2", "ocd"]) and study.labels.loc["NDAR_INV1", "ocd"] == 0
    assert study.labels.loc["NDAR_INV3"].isna().all() and study.labels["phobia"].isna().all()
    notes = " ".join(study.questionnaire.notes)
    assert "777 was read as missing in 1 answer" in notes and "sex: 'O' was read as missing" in notes


def test_another_event(nda):
    study = read_abcd(nda[0], event="1_year_follow_up_y_arm_1")
    assert study.questionnaire.answers.shape == (1, 2) and study.labels is None


def test_both_studies_name_their_items_alike(nda, loris):
    assert set(read_abcd(nda[0]).questionnaire.answers) <= set(read_hbn(*loris).questionnaire.answers)


def test_what_is_wrong_is_said_in_a_sentence(nda, loris, tmp_path):
    with pytest.raises(InputError, match=r"abcd_cbcl01.txt: no row has the event 'x'; the events are 'base"):
        read_abcd(nda[0], event="x")
    with pytest.raises(InputError, match=r"No column of the checklist was found in 'abcd_ksad01.txt'"):
        read_abcd(nda[1])
    with pytest.raises(InputError, match=r"No column of the checklist was found; give the file of the HBN"):
        read_hbn()
    with pytest.raises(InputError, match=r"abcd_cbcl01.txt: there is no column of participant ids"):
        read_hbn(nda[0])
    again = write(
        tmp_path / "again.csv",
        [["EID", "Age", "Sex"], ["NDARAA001", 8, 0], ["NDARAA001", 9, 0]],
    )
    with pytest.raises(InputError, match=r"again.csv: the participant 'NDARAA001' occurs in several rows"):
        read_hbn(loris[0], again)
    words = write(tmp_path / "words.csv", [["EID", "Age", "Sex"], ["NDARAA001", 8, "boy"]])
    with pytest.raises(InputError, match=r"No value of sex is recognised: it contains 'boy'"):
        read_hbn(loris[0], words)
    high = write(
        tmp_path / "high.csv", [["EID", "CBCL_01", "CBCL_02"], ["NDARAA001", 3, 0], ["NDARAA002", 0, 1]]
    )
    with pytest.raises(InputError, match=r"high.csv: Item 'cbcl_01' holds 3, above its highest answer 2"):
        read_hbn(high)
