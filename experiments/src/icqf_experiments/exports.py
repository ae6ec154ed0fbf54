"""Read the Child Behavior Checklist from exports of two studies: HBN (LORIS or COINS) and ABCD (NDA).

Both readers use the same names of items (``cbcl_01`` to ``cbcl_112``, with ``cbcl_56a`` to ``cbcl_56h``) and
the same eleven labels of diagnoses, so that models of the two studies can be compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.data.study import Study
from icqf.errors import InputError, counted, listed
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.io.readers.table import Table

SYNDROMES = {
    "Anxious/Depressed": "14 29 30 31 32 33 35 45 50 52 71 91 112",
    "Withdrawn/Depressed": "05 42 65 69 75 102 103 111",
    "Somatic Complaints": "47 49 51 54 56a 56b 56c 56d 56e 56f 56g",
    "Social Problems": "11 12 25 27 34 36 38 48 62 64 79",
    "Thought Problems": "09 18 40 46 58 59 60 66 70 76 83 84 85 92 100",
    "Attention Problems": "01 04 08 10 13 17 41 61 78 80",
    "Rule-Breaking Behavior": "02 26 28 39 43 63 67 72 73 81 82 90 96 99 101 105 106",
    "Aggressive Behavior": "03 16 19 20 21 22 23 37 57 68 86 87 88 89 94 95 97 104",
    "Other Problems": "06 07 15 24 44 53 55 56h 74 77 93 98 107 108 109 110",
}
SYNDROME_OF = {f"cbcl_{item}": name for name, items in SYNDROMES.items() for item in items.split()}
ANSWERS = ((0.0, "not true"), (1.0, "somewhat or sometimes true"), (2.0, "very or often true"))

# A diagnosis belongs to a label if its text contains one of these.
HBN_DIAGNOSES = {
    "depression": ("depressive disorder", "dysthymi"),
    "generalized_anxiety": ("generalized anxiety",),
    "adhd": ("adhd", "attention-deficit/hyperactivity"),
    "suspected_autism": ("autism spectrum",),
    "panic_agoraphobia_separation_social": ("panic", "agoraphobia", "separation anxiety", "social anxiety"),
    "bipolar": ("bipolar", "cyclothymi"),
    "phobia": ("specific phobia",),
    "ocd": ("obsessive-compulsive disorder",),
    "eating_disorder": ("anorexia", "bulimia", "binge-eating", "avoidant/restrictive", "eating disorder"),
    "ptsd": ("posttraumatic stress", "post-traumatic stress"),
    "sleep_problems": ("insomnia", "sleep", "nightmare", "hypersomnolence"),
}
# Chapter of the K-SADS and the numbers of its diagnoses, present and past: ksads_<chapter>_<number>_p.
ABCD_DIAGNOSES = {
    "depression": {1: range(840, 848)},
    "generalized_anxiety": {10: range(869, 871)},
    "adhd": {14: range(853, 857)},
    "suspected_autism": {18: range(903, 904)},
    "panic_agoraphobia_separation_social": {
        5: range(857, 859),
        6: range(859, 861),
        7: range(861, 863),
        8: range(863, 865),
    },
    "bipolar": {2: range(830, 840)},
    "phobia": {9: range(867, 869)},
    "ocd": {11: range(917, 919)},
    "eating_disorder": {13: range(929, 941)},
    "ptsd": {21: range(921, 923)},
    "sleep_problems": {22: range(969, 971)},
}
NO_ANSWER = (555, 777, 888, 999)
NOT_ASKED_BECAUSE_ABSENT = 888
BASELINE = "baseline_year_1_arm_1"


def read_hbn(*paths: str | os.PathLike[str]) -> Study:
    """Read the checklist of the Healthy Brain Network from LORIS or COINS exports (CSV), in any order.

    The checklist (columns ``CBCL,CBCL_01`` in LORIS, ``CBCL_01`` in COINS) without item 113, which is written
    in, age and sex (``Basic_Demos,Age``), and optionally the clinicians' consensus
    (``Diagnosis_ClinicianConsensus,DX_01`` to ``DX_10``) as labels, NaN without a consensus or with an
    incomplete evaluation. A second header row is left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf_experiments.exports import read_hbn
    >>> text = '''Identifiers,"CBCL,CBCL_01","CBCL,CBCL_56A","Basic_Demos,Age","Basic_Demos,Sex"
    ... "NDARAA1,assessment",0,2,9.5,0
    ... "NDARAA2,assessment",1,.,12.25,1
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "hbn.csv")
    ...     _ = file.write_text(text)
    ...     study = read_hbn(file)
    >>> study.questionnaire.answers
                 cbcl_01  cbcl_56a
    participant
    NDARAA1          0.0       2.0
    NDARAA2          1.0       NaN
    """
    tables = [read_export(path, hbn_id, _hbn_name) for path in paths]
    joined = _converted(
        _joined(tables, "HBN"), "sex", lambda sex: _numbers(sex).map({0: "male", 1: "female"})
    )
    joined = _converted(joined, "age", _numbers)
    frame = joined.frame
    texts = [name for name in frame.columns if name.startswith("dx_")]
    diagnoses = None
    if texts:
        given = frame[texts].astype(object).where(frame[texts].notna(), "").astype(str)
        given = given.apply(lambda column: column.str.strip().str.lower())
        everything = given.agg(" | ".join, axis=1)
        known = given.ne("").any(axis=1) & ~everything.str.contains("incomplete eval", regex=False)
        diagnoses = pd.DataFrame(
            {
                label: everything.map(lambda text, words=words: any(word in text for word in words))
                .astype(float)
                .where(known)
                for label, words in HBN_DIAGNOSES.items()
            }
        )
    return _study("hbn", joined, diagnoses, paths)


def read_abcd(*paths: str | os.PathLike[str], event: str = BASELINE) -> Study:
    """Read the checklist of the ABCD study from NDA text files or later CSV releases, in any order.

    The checklist (``abcd_cbcl01.txt``, columns ``cbcl_q01_p``), age in months and sex (``interview_age``,
    ``sex``), and optionally the parents' diagnostic interview (``abcd_ksad01.txt``, columns
    ``ksads_14_853_p``) as labels: 1 if any diagnosis, present or past, is 1. 555, 777, 888 and 999 are no
    answers to the checklist; in the interview 888 means that a question was skipped because the screening was
    negative, and is read as 0. A second header row is left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf_experiments.exports import read_abcd
    >>> rows = [
    ...     ["src_subject_id", "interview_age", "sex", "eventname", "cbcl_q01_p", "cbcl_q02_p"],
    ...     ["Subject ID", "Age in months", "Sex", "Visit", "Acts too young", "Drinks"],
    ...     ["NDAR_INV1", "120", "F", "baseline_year_1_arm_1", "1", "777"],
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "abcd_cbcl01.txt")
    ...     _ = file.write_text("\\n".join("\\t".join(row) for row in rows))
    ...     study = read_abcd(file)
    >>> study.questionnaire.answers
                 cbcl_01  cbcl_02
    participant
    NDAR_INV1        1.0      NaN
    >>> study.questionnaire.confounds
                  age     sex
    participant
    NDAR_INV1    10.0  female
    """
    tables = [_at_event(read_export(path, _abcd_id, _abcd_name), event) for path in paths]
    joined = _converted(_joined(tables, "ABCD"), "sex", lambda sex: sex.map({"M": "male", "F": "female"}))
    joined = _converted(joined, "age", lambda months: _numbers(months) / 12)
    frame = joined.frame
    interview = [name for name in frame.columns if name.startswith("ksads_")]
    diagnoses = None
    if interview:
        codes = frame[interview].apply(pd.to_numeric, errors="coerce")
        codes = codes.replace(NOT_ASKED_BECAUSE_ABSENT, 0).where(lambda value: value.isin([0, 1]))
        labels = {}
        for label, chapters in ABCD_DIAGNOSES.items():
            names = [f"ksads_{c}_{number}_p" for c, numbers in chapters.items() for number in numbers]
            labels[label] = codes[[name for name in names if name in codes]].max(axis=1)
        diagnoses = pd.DataFrame(labels, index=codes.index, dtype=float)
    return _study("abcd", joined, diagnoses, paths)


def hbn_id(columns: pd.Index) -> str | None:
    """Return the column of ids in an export of HBN."""
    return next((name for name in ("Identifiers", "EID") if name in columns), None)


def _hbn_name(column: str) -> str | None:
    """Return our name of an HBN column, or None if it is not needed."""
    plain = column.rpartition(",")[2]
    if re.fullmatch(r"(CBCL,)?CBCL_\d+[A-H]?", column, flags=re.I):
        return _item_name(plain[5:])
    if re.fullmatch(r"(Basic_Demos,)?(Age|Sex)", column):
        return plain.lower()
    if re.fullmatch(r"((Diagnosis_ClinicianConsensus|ConsensusDx),)?DX_\d\d", column):
        return plain.lower()
    return None


def _abcd_id(columns: pd.Index) -> str | None:
    return next((name for name in ("src_subject_id", "subjectkey") if name in columns), None)


def _abcd_name(column: str) -> str | None:
    """Return our name of an ABCD column, or None when it is not needed."""
    item = re.fullmatch(r"cbcl_q(\d+[a-h]?)_p", column)
    if item:
        return _item_name(item[1])
    names = {"interview_age": "age", "sex": "sex", "eventname": "eventname"}
    return column if re.fullmatch(r"ksads_\d+_\d+_p", column) else names.get(column)


def _item_name(number: str) -> str | None:
    digits, letter = re.fullmatch(r"0*(\d+)([a-h]?)", number.lower()).groups()  # type: ignore[union-attr]
    name = f"cbcl_{int(digits):02d}{letter}"
    return name if name in SYNDROME_OF else None


def read_export(
    path: str | os.PathLike[str],
    find_id: Callable[[pd.Index], str | None],
    rename: Callable[[str], str | None],
) -> Table:
    """Read one export: the columns that are needed under our names, and the participants' ids."""
    table = read_table(path, text=("Identifiers", "EID"))
    identity = find_id(table.frame.columns)
    if identity is None:
        raise InputError(
            f"{table.source}: there is no column of participant ids (Identifiers or EID in HBN, "
            f"src_subject_id in ABCD). The columns are {listed(table.frame.columns, most=8)}."
        )
    ids = table.frame[identity].astype(object).where(table.frame[identity].notna(), "").map(str)
    ids = ids.str.partition(",")[0].str.strip()
    coded = ids.str.startswith("NDAR")
    described = len(ids) > 0 and (ids.iloc[0] == "" or (not coded.iloc[0] and bool(coded.any())))
    keep = np.arange(len(ids)) >= int(described)
    names = {name: rename(name) for name in map(str, table.frame.columns) if name != identity}
    chosen = {name: new for name, new in names.items() if new is not None}
    frame = table.frame.loc[keep, list(chosen)].rename(columns=chosen).copy()
    frame["participant"] = ids[keep]
    notes = table.notes
    if described:
        notes = (*notes, f"{table.source}: row {table.rows[0]} describes the columns and was left out.")
    return replace(table, frame=frame.reset_index(drop=True), rows=table.rows[keep], id=None, notes=notes)


def _at_event(table: Table, event: str) -> Table:
    if "eventname" not in table.frame:
        return table
    visits = table.frame["eventname"].astype(str)
    keep = (visits == event).to_numpy()
    if not keep.any():
        raise InputError(
            f"{table.source}: no row has the event {event!r}; the events are {listed(visits.unique())}."
        )
    frame = table.frame[keep].drop(columns="eventname").reset_index(drop=True)
    left_out = int((~keep).sum())
    notes = (f"{table.source}: {counted(left_out, 'row')} of other events left out.",) if left_out else ()
    return replace(table, frame=frame, rows=table.rows[keep], notes=(*table.notes, *notes))


def _joined(tables: list[Table], study: str) -> Table:
    """Join the columns of the other files to the checklist, by participant."""
    main = next((t for t in tables if any(name in SYNDROME_OF for name in t.frame.columns)), None)
    if main is None:
        where = f" in {listed(table.source for table in tables)}" if tables else ""
        raise InputError(f"No column of the checklist was found{where}; give the file of the {study} CBCL.")
    frame, rows = main.frame, main.rows
    answered = frame[[name for name in frame.columns if name in SYNDROME_OF]].notna().any(axis=1).to_numpy()
    notes = [note for table in tables for note in table.notes]
    again = frame.duplicated().to_numpy()
    for left_out, why in ((~answered, "without any answer"), (answered & again, "that repeat another row")):
        if left_out.any():
            notes.append(f"{main.source}: {counted(int(left_out.sum()), 'row')} {why} left out.")
    frame, rows = frame[answered & ~again].reset_index(drop=True), rows[answered & ~again]
    for table in tables:
        new = [name for name in table.frame.columns if name not in frame.columns]
        if table is main or not new:
            continue
        others = table.frame[["participant", *new]].drop_duplicates()
        twice = others["participant"][others["participant"].duplicated()]
        if len(twice):
            raise InputError(
                f"{table.source}: the participant {twice.iloc[0]!r} occurs in several rows that differ. Keep "
                "one row per participant."
            )
        frame = frame.merge(others, how="left", on="participant", validate="m:1")
    return Table(frame, main.source, rows, id="participant", notes=tuple(notes))


def _numbers(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce")


def _converted(table: Table, name: str, convert: Callable[[pd.Series], pd.Series]) -> Table:
    """Convert a confound; unknown values become missing, with a note."""
    if name not in table.frame:
        return table
    before = table.frame[name]
    after = convert(before)
    lost = before[before.notna() & after.isna()]
    if len(lost) and after.isna().all():
        raise InputError(f"No value of {name} is recognised: it contains {listed(lost.unique())}.")
    notes = (
        (*table.notes, f"{name}: {listed(lost.unique())} was read as missing.") if len(lost) else table.notes
    )
    return replace(table, frame=table.frame.assign(**{name: after}), notes=notes)


def _study(
    name: str, table: Table, diagnoses: pd.DataFrame | None, paths: Sequence[str | os.PathLike[str]]
) -> Study:
    items = [
        Item(name, min=0, max=2, subscale=scale, labels=ANSWERS)
        for name, scale in sorted(SYNDROME_OF.items(), key=lambda pair: _order(pair[0]))
        if name in table.frame.columns
    ]
    confounds = [name for name in ("age", "sex") if name in table.frame.columns]
    questionnaire = read_questionnaire(
        table, codebook=items, id="participant", confounds=confounds, missing_codes=NO_ANSWER
    )
    if diagnoses is not None:
        diagnoses = diagnoses.set_axis(questionnaire.answers.index, axis=0)
    files = tuple(Path(path) for path in paths)
    return Study(questionnaire, diagnoses, name, name.upper(), files=files, n_rows=len(table.frame))


def _order(name: str) -> tuple[int, str]:
    return int(name[5:].rstrip("abcdefgh")), name
