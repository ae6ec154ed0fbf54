"""What a column is by its name: demographics, a date, a visit, a site, a total, or unknown.

All words of the name must be of this kind or neutral: ``age_years`` is an age, ``age_worry`` is an item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from icqf.errors import short

KINDS = {
    "demographic sex": "sex gender female male man woman boy girl geschlecht sexe sexo",
    "demographic": (
        "age ages agey ageyr ageyrs ageyears agemonths agegroup agecat education educ edu schooling eduyears "
        "income salary earnings ses race races racial ethnicity ethnic ethn ethnos hispanic latino latina "
        "marital married maritalstatus employment employed unemployed occupation occupational profession "
        "religion nationality citizenship country city zip zipcode postcode postal language handedness "
        "height bmi dob birthdate birthday birthyear yob homeless immigrant "
        "alter edad geburtsdatum geburtsjahr"
    ),
    "date": (
        "date dates time datetime timestamp day month year starttime endtime startdate enddate recordeddate "
        "submitdate duration submitted started finished progress daysince"
    ),
    "visit": (
        "wave visit visits session sessions event eventname timepoint followup assessment occasion "
        "repeat redcap_event_name"
    ),
    "site": (
        "site sites center centre clinic hospital region district cohort arm condition treatment treat "
        "group grp randomized randomised allocation allocated batch version rater interviewer examiner "
        "experimenter exper experiment study dataset sample weight weights wgt wt strata stratum psu cluster"
    ),
}
_KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}
# Words that may accompany one of those.
_NEUTRAL = (
    "a an the in at of your you are is what how old to for and or with s "
    "years yrs yr year months mos month days weeks seconds sec minutes hours baseline bl screening intake "
    "participant subject patient respondent child youth adult teen parent mother father maternal paternal "
    "caregiver student self level lvl code coded codes cat category categories categorical status group "
    "grp bin binary num number numeric no value label demo dem demog demographic demographics highest "
    "current annual household hh family biological assigned birth identity attained completed rounded "
    "int interview survey questionnaire test testing collection first last start end data primary name home"
)
NEUTRAL = frozenset(_NEUTRAL.split())
_TOTAL = (
    "total totals tot sum sums score scores scored subscale mean avg average index tscore zscore raw "
    "rawscore percentile composite factor scale subscore totscore totalscore sumscore"
)
_AGES = frozenset(["age", "ages", "agey", "ageyr", "ageyrs", "ageyears", "agemonths", "alter", "edad"])
_TOTALS = frozenset(_TOTAL.split())
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_STATUS = {0, 1, 2, "0", "1", "2", "Incomplete", "Unverified", "Complete"}  # of a form of REDCap
_SEXES = ({"male", "female"}, {"man", "woman"}, {"men", "women"}, {"boy", "girl"}, {"boys", "girls"})


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def named_kind(name: str, texts: Sequence[str] = ()) -> str | None:
    """Return what a column is by its name, or by its wording and labels; None if unknown."""
    wording, labels = (texts[0] if texts else ""), {text.strip().lower() for text in texts[1:]}
    if any(sexes <= labels for sexes in _SEXES):
        return "demographic sex"
    for text in (name, wording):
        words = words_of(text)
        kinds = [_KIND_OF[word] for word in words if word in _KIND_OF]
        if kinds and all(word in _KIND_OF or word in NEUTRAL for word in words):
            return min(kinds, key=list(KINDS).index)
    return None


def age_and_sex(names: Iterable[str]) -> list[str]:
    """Return the first column of ages and the first of sex or gender, by their names."""
    found: dict[str, str] = {}
    for name in names:
        kind = named_kind(name)
        if kind == "demographic" and _AGES & {*words_of(name)}:
            kind = "age"
        if kind in ("age", "demographic sex"):
            found.setdefault(kind, name)
    return list(found.values())


def is_total(name: str) -> bool:
    """Return whether a column is a total, a mean or another score by its name."""
    words = words_of(name)
    return any(word in _TOTALS for word in words) and not (words and words[-1].isdigit())


def redcap_columns(frame: pd.DataFrame) -> set[str]:
    """Return the columns that REDCap adds to an export: the status of each form, and visits."""
    names = [str(name) for name in frame.columns]
    own = {name for name in names if name.startswith("redcap_")}
    if not own and "record_id" not in names:
        return set()
    forms = (name for name in names if name.endswith("_complete"))
    return own | {name for name in forms if {*frame[name].dropna().unique()} <= _STATUS}


def stem(name: str) -> str:
    """Return the beginning of an item's name, before its number."""
    return re.sub(r"[\W_]*\d+[\W_]?[^\W\d_]{0,2}$", "", name)


def folded(names: Iterable[str], *, most: int = 12) -> str:
    """Return names for a sentence, with numbered series such as q1–q9 shortened."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    texts, counts = [], []
    for run in runs:
        texts += [f"{short(run[0])}–{short(run[-1])}"] if len(run) > 2 else [short(name) for name in run]
        counts += [len(run)] if len(run) > 2 else [1] * len(run)
    more = f" and {sum(counts[most:])} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _follows(name: str, following: str) -> bool:
    """Whether a name follows another by number, or by letter as F1B follows F1A."""
    one, two = re.fullmatch(r"(.*?)(\d+)(\D?)", name), re.fullmatch(r"(.*?)(\d+)(\D?)", following)
    if one is None or two is None or one[1] != two[1]:
        return False
    if one[2] == two[2]:
        return bool(one[3]) and bool(two[3]) and ord(two[3]) == ord(one[3]) + 1
    same_end, padded = one[3] == two[3], len(one[2]) == len(two[2]) or not two[2].startswith("0")
    return same_end and padded and int(two[2]) == int(one[2]) + 1
