"""Damaged inputs of every format through ``icqf check`` and ``icqf fit``: an answer or one message."""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
from click.testing import CliRunner

from hostile.model_files import add_bytes, drop_bytes, edit_bytes, flip_bits, truncate, zero_bytes
from hostile.tally import MOST_MEMORY, Hang, Tally, in_short, time_limit
from icqf import ICQF
from icqf.cli.program import cli

N, M = 60, 6
ITEMS = [f"q{j}" for j in range(1, M + 1)]
FIT = ("--n-components", "2", "--beta", "0.1", "--no-report")
SECONDS = 60


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    level = rng.random((N, 2))
    answers = np.clip(np.rint(level.repeat(3, axis=1) * 3 + rng.normal(0, 0.4, (N, M))), 0, 3)
    table = pd.DataFrame(answers.astype(int).astype(str), columns=ITEMS).astype(object)
    table.iloc[4, 2] = table.iloc[9, 5] = ""
    table.insert(0, "record_id", [f"{i:03d}" for i in range(1, N + 1)])
    return table.assign(age=np.round(6 + 10 * rng.random(N), 1), sex=["f", "m"] * (N // 2))


def numeric() -> pd.DataFrame:
    table = frame()
    return table.assign(**{name: pd.to_numeric(table[name]) for name in ITEMS})


def items() -> pd.DataFrame:
    return pd.DataFrame({"name": ITEMS, "wording": [f"Question {j}" for j in ITEMS], "min": 0, "max": 3})


# --- the files, each with the words that name them --------------------------------------------------------


def delimited(folder: Path, **options) -> Path:
    ending = options.pop("ending", ".csv")
    frame().to_csv(folder / f"study{ending}", index=False, **options)
    return folder / f"study{ending}"


def csv(folder):
    return delimited(folder), ()


def tsv(folder):
    return delimited(folder, sep="\t", ending=".tsv"), ()


def semicolons(folder):
    return delimited(folder, sep=";", decimal=","), ()


def utf16(folder):
    return delimited(folder, encoding="utf-16"), ()


def latin1(folder):
    path = folder / "study.csv"
    path.write_bytes(frame().rename(columns={"q1": "schläft"}).to_csv(index=False).encode("latin-1"))
    return path, ()


def xlsx(folder):
    numeric().to_excel(folder / "study.xlsx", index=False, engine="xlsxwriter")
    return folder / "study.xlsx", ()


def sav(folder):
    pyreadstat.write_sav(numeric(), str(folder / "study.sav"), variable_value_labels={"q1": {0: "no"}})
    return folder / "study.sav", ()


def dta(folder):
    pyreadstat.write_dta(numeric(), str(folder / "study.dta"))
    return folder / "study.dta", ()


def parquet(folder):
    numeric().to_parquet(folder / "study.parquet")
    return folder / "study.parquet", ()


def with_codebook(folder):
    delimited(folder)
    items().to_csv(folder / "items.csv", index=False)
    return folder / "items.csv", ("--codebook", folder / "items.csv", "--confounds", "age", "sex")


def with_toml_codebook(folder):
    delimited(folder)
    blocks = [f'[[items]]\nname = "{name}"\nmin = 0\nmax = 3\nwording = "Question"\n' for name in ITEMS]
    (folder / "items.toml").write_text("\n".join(blocks))
    return folder / "items.toml", ("--codebook", folder / "items.toml")


def with_config(folder):
    delimited(folder)
    lines = ['confounds = ["age", "sex"]', "seed = 3", 'id = "record_id"', "n_splits = 4", 'penalty = "l1"']
    (folder / "config.toml").write_text("\n".join(lines) + "\n")
    return folder / "config.toml", ("--config", folder / "config.toml")


def redcap(folder):
    delimited(folder)
    names = ["record_id", *ITEMS]
    pd.DataFrame(
        {
            "Variable / Field Name": names,
            "Form Name": "mood",
            "Field Type": ["text", *["radio"] * M],
            "Field Label": names,
            "Choices, Calculations, OR Slider Labels": [
                "",
                *["0, never | 1, some | 2, often | 3, always"] * M,
            ],
            "Branching Logic (Show field only if...)": ["", *["[age] > 5"] * M],
        }
    ).to_csv(folder / "dictionary.csv", index=False)
    return folder / "dictionary.csv", ("--dictionary", folder / "dictionary.csv")


def bids(folder):
    path = delimited(folder, sep="\t", ending=".tsv")
    levels = {"0": "never", "3": "always"}
    sidecar = {name: {"Description": "Question", "Levels": levels} for name in ITEMS}
    path.with_suffix(".json").write_text(json.dumps(sidecar))
    return path.with_suffix(".json"), ()


SOURCES = (
    *(csv, csv, csv, tsv, semicolons, utf16, latin1, xlsx, xlsx, sav, dta, parquet),
    *(with_codebook, with_toml_codebook, with_config, redcap, bids),
)
BINARY = (".xlsx", ".sav", ".dta", ".parquet")


# --- damage to text ---------------------------------------------------------------------------------------

ODD_CELLS = (
    *(
        "",
        " ",
        "\x00",
        "1e308",
        "1e309",
        "-1e308",
        "9" * 400,
        "nan",
        "inf",
        "-inf",
        "=1+1",
        "@SUM(A1)",
        "0x10",
    ),
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\x9b2J",
        "é",
        "\ud7ff",
        "\u202e",
        "💥",
        '"',
        '""',
        "'",
        "a" * 70_000,
    ),
    *("1,5", "1.5.5", "3e", "TRUE", "#DIV/0!", "2020-02-30", "<script>", "\\", "\r", "{}", "[[[[", "1_000"),
    *("-0", "+3", "007", "1e-320", "٣", "３", "½", "NULL", "N/A", "999", "-99", "null", "\ufeff"),
)


def odd_cell(content: bytes, rng: random.Random) -> bytes:
    """A strange text in one or several cells, the header included."""
    lines = _lines(content)
    for _ in range(rng.choice([1, 1, 3, 30])):
        i = rng.choice([0, rng.randrange(len(lines))])
        sep = next((mark for mark in (b"\t", b";", b",") if mark in lines[i]), b",")
        cells = lines[i].split(sep)
        cells[rng.randrange(len(cells))] = rng.choice(ODD_CELLS).encode(errors="surrogatepass")
        lines[i] = sep.join(cells)
    return b"\n".join(lines)


def ragged(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    i = rng.randrange(len(lines))
    lines[i] = rng.choice([lines[i] + b",1", lines[i][: len(lines[i]) // 2], b"", b'"', lines[i] * 3])
    return b"\n".join(lines)


def repeated(content: bytes, rng: random.Random) -> bytes:
    """A line again: a header, an id, a whole record."""
    lines = _lines(content)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice([lines[0], rng.choice(lines)]))
    return b"\n".join(lines)


def renamed(content: bytes, rng: random.Random) -> bytes:
    """A column named as another one, or by a strange text."""
    head, *lines = _lines(content)
    sep = next((mark for mark in (b"\t", b";", b",") if mark in head), b",")
    cells = head.split(sep)
    new = rng.choice([rng.choice(cells), rng.choice(ODD_CELLS).encode(errors="surrogatepass"), b"id", b"age"])
    cells[rng.randrange(len(cells))] = new
    return b"\n".join([sep.join(cells), *lines])


def other_encoding(content: bytes, rng: random.Random) -> bytes:
    text = content.decode("utf-8", errors="replace")
    bom = rng.choice([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
    return bom + text.encode(rng.choice(["utf-16-le", "utf-16-be", "utf-32", "latin-1"]), errors="replace")


def emptied(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    return b"\n".join(lines[: rng.choice([1, 2, 3])]) + rng.choice([b"", b"\n", b"\n\n\n"])


def few_rows(content: bytes, rng: random.Random) -> bytes:
    lines = _lines(content)
    return b"\n".join([lines[0], *rng.sample(lines[1:], min(len(lines) - 1, rng.randrange(1, 6)))])


def _lines(content: bytes) -> list[bytes]:
    return content.rstrip(b"\n").split(b"\n")


BYTE_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(flip_bits, edit_bytes, zero_bytes, truncate, drop_bytes, add_bytes),
)
TEXT_DAMAGES = (*(odd_cell,) * 4, ragged, repeated, renamed, other_encoding, emptied, few_rows)


def inner(content: bytes, rng: random.Random) -> bytes:
    """Damage inside a member of a workbook, whose checksums are then right again."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        names = old.namelist()
        chosen = rng.choice([*names, *[name for name in names if "sheet1" in name or "shared" in name] * 6])
        for name in names:
            part = old.read(name)
            new.writestr(name, rng.choice(BYTE_DAMAGES)(part, rng) if name == chosen and part else part)
    return stream.getvalue()


# --- the run ----------------------------------------------------------------------------------------------


def run(n: int, seed: int, folder: Path) -> Tally:
    tally, rng = Tally("damaged inputs"), random.Random(seed)
    for _ in range(n):
        place = folder / "input"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        source = rng.choice(SOURCES)
        target, words = source(place)
        binary = target.suffix in BINARY
        damages = BYTE_DAMAGES if binary else (*BYTE_DAMAGES, *TEXT_DAMAGES * 2)
        damage = inner if target.suffix == ".xlsx" and rng.random() < 0.5 else rng.choice(damages)
        target.write_bytes(damage(target.read_bytes(), rng))
        answers = next(path for path in place.iterdir() if path.stem == "study" and path.suffix != ".json")
        what = f"{source.__name__} {damage.__name__}"
        one(tally, place, ("check", answers, *words), f"check {what}")
        one(tally, place, ("fit", answers, *words, *FIT, "--out", place / "out"), f"fit {what}")
    return tally


def one(tally: Tally, place: Path, words: tuple, what: str) -> None:
    before = {path.name for path in place.iterdir()}
    try:
        with time_limit(SECONDS):
            result = CliRunner().invoke(cli, [str(word) for word in words])
    except Hang as error:
        tally.add("hang", f"{what}: {error}")
        return
    error = result.exception
    said = result.stderr.strip()
    if error is not None and not isinstance(error, SystemExit):
        tally.add("hang" if isinstance(error, Hang) else "foreign exception", f"{what}: {in_short(error)}")
    elif any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in result.output):
        tally.add("escape sequence", f"{what}: {result.output!r:.160}")
    elif result.exit_code == 2:
        left = {path.name for path in place.iterdir()} - before
        if left:
            tally.add("left behind", f"{what}: {sorted(left)}")
        elif said.count("Error: ") != 1 or result.stdout:
            tally.add("no message", f"{what}: {said[-160:]!r}")
        else:
            tally.add("refused")
    elif result.exit_code not in (0, 1) or (result.exit_code == 1 and words[0] != "check"):
        tally.add("no message", f"{what}: exit code {result.exit_code}")
    else:
        tally.add("not finite" if words[0] == "fit" and not _finite(place / "out") else "answered", what)


def _finite(folder: Path) -> bool:
    model = ICQF.load(folder / "model.icqf")
    return bool(np.isfinite(model.components_).all() and np.isfinite(model.objective_))


# --- bombs: small files that take much memory, each in a process of its own --------------------------------


def far_cell(path: Path) -> None:
    """One cell with a blank, in the last corner of the sheet."""
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        numeric().to_excel(writer, index=False)
        next(iter(writer.sheets.values())).write_string(1_048_575, 16_383, " ")


def far_row(path: Path) -> None:
    """As above, in a row whose cells do not say where they are."""
    _with_sheet(path, b"</row></sheetData>", b'</row><row r="1048576"><c><v>1</v></c></row></sheetData>')


def long_text(path: Path) -> None:
    """A sheet that unpacks to 1.2 GB of blanks."""
    numeric().to_excel(path, index=False, engine="xlsxwriter")
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for name, part in parts.items():
            with new.open(name, "w", force_zip64=True) as stream:
                stream.write(part)
                for _ in range(1200 if "sheet1" in name else 0):
                    stream.write(b" " * 2**20)


def _with_sheet(path: Path, old_bytes: bytes, new_bytes: bytes) -> None:
    numeric().to_excel(path, index=False, engine="xlsxwriter")
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, part in parts.items():
            new.writestr(name, part.replace(old_bytes, new_bytes) if "sheet1" in name else part)


def _ods(path: Path, rows: str) -> None:
    """A sheet of these rows, as OpenDocument."""
    place = "urn:oasis:names:tc:opendocument:xmlns"
    namespaces = " ".join(f'xmlns:{name}="{place}:{name}:1.0"' for name in ("office", "table", "text"))
    sheet = f'<table:table table:name="a">{rows}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("mimetype", kind, zipfile.ZIP_STORED)
        new.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{place}:manifest:1.0"/>')
        new.writestr("content.xml", f"<office:document-content {namespaces}>{body}</office:document-content>")


def _ods_row(value: str, **repeated: int) -> str:
    times = {name: f' table:number-{name}-repeated="{n}"' for name, n in repeated.items()}
    cell = f'<table:table-cell office:value-type="string"{times.get("columns", "")}><text:p>{value}</text:p>'
    return f"<table:table-row{times.get('rows', '')}>{cell}</table:table-cell></table:table-row>"


def far_ods(path: Path) -> None:
    """A cell with a letter, far below and far to the right."""
    gap = '<table:table-row table:number-rows-repeated="1000000"><table:table-cell/></table:table-row>'
    aside = '<table:table-cell table:number-columns-repeated="16000"/>'
    last = _ods_row("x").replace("<table:table-cell", f"{aside}<table:table-cell", 1)
    _ods(path, _ods_row("q1") + gap + last)


def repeated_ods(path: Path) -> None:
    """One letter, said to stand in every cell of the sheet."""
    _ods(path, _ods_row("x", rows=1_048_576, columns=16_384))


def smaller_ods(path: Path) -> None:
    """As above, with as many cells as the parser itself still takes."""
    _ods(path, _ods_row("x", rows=9_000, columns=10_000))


def empty_ods(path: Path) -> None:
    """A blank far away, near enough to fit into memory."""
    gap = '<table:table-row table:number-rows-repeated="5000"><table:table-cell/></table:table-row>'
    aside = '<table:table-cell table:number-columns-repeated="8000"/>'
    last = _ods_row(" ").replace("<table:table-cell", f"{aside}<table:table-cell", 1)
    _ods(path, _ods_row("q1") + gap + last)


def _shared(path: Path, texts: list[bytes], cells: Iterable[int]) -> None:
    """A sheet whose cells refer to shared texts by their number, one row for each."""
    numeric().to_excel(path, index=False, engine="xlsxwriter")
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    count = b"<sst>" + b"".join(b"<si><t>" + text + b"</t></si>" for text in texts) + b"</sst>"
    rows = b"".join(
        f'<row r="{at}"><c r="A{at}" t="s"><v>{cell}</v></c></row>'.encode()
        for at, cell in enumerate(cells, 1)
    )
    parts["xl/sharedStrings.xml"] = count
    sheet = next(name for name in parts if "sheet1.xml" in name and "rels" not in name)
    parts[sheet] = b"<worksheet><sheetData>" + rows + b"</sheetData></worksheet>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, part in parts.items():
            new.writestr(name, part)


def one_text(path: Path) -> None:
    """One shared text of 100 MB."""
    _shared(path, [b"x" * 100_000_000], [0, 0])


def one_name(path: Path) -> None:
    """A column's name as long as a text may be."""
    _shared(path, [b"x" * 200_000, b"1"], [0, 1, 1])


def many_references(path: Path) -> None:
    """250 000 cells that refer to one text of 32 000 characters."""
    _shared(path, [b"x" * 32_000, b"q1"], [1, *[0] * 250_000])


def inline_text(path: Path) -> None:
    """A text of 100 MB in the sheet itself."""
    text = b'<c r="A2" t="inlineStr"><is><t>' + b"x" * 100_000_000 + b"</t></is></c>"
    _with_sheet(path, b"</row></sheetData>", b'</row><row r="99">' + text + b"</row></sheetData>")


def many_runs(path: Path) -> None:
    """A shared text made of very many runs."""
    _shared(path, [b"</t>" + b"<r><t>xxxxxxxxxxxxxxxxxxxx</t></r>" * 3_000_000 + b"<t>"], [0, 0])


BOMBS = (
    *(far_cell, far_row, long_text, far_ods, repeated_ods, smaller_ods, empty_ods),
    *(one_text, one_name, many_references, inline_text, many_runs),
)
LONGEST_OUTPUT = 20_000  # characters


def bombed(folder: Path) -> Tally:
    tally = Tally("workbook bombs")
    for make in BOMBS:
        path = folder / f"{make.__name__}.{'ods' if make.__name__.endswith('ods') else 'xlsx'}"
        make(path)
        words = [sys.executable, "-c", MEASURED, "-m", "icqf", "check", str(path)]
        launched = subprocess.run(words, capture_output=True, check=True)
        code, kilobytes, said = json.loads(launched.stdout)
        example = f"{make.__name__}: {kilobytes // 1024} MB, {said[-140:]}"
        if code < 0 or "Traceback" in said:
            tally.add("abort" if code < 0 else "foreign exception", example)
        elif len(said) > LONGEST_OUTPUT:
            tally.add("no message", f"{make.__name__}: {len(said)} characters")
        else:
            tally.add("over 500 MB" if kilobytes * 1024 > MOST_MEMORY else "answered", example)
    return tally


# Runs Python with these arguments from a small process: what a process is said to have used at most counts
# that of the process which started it, and that of the tests may be large.
MEASURED = """
import json, os, resource, subprocess, sys

def limited():
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

program = subprocess.Popen(
    [sys.executable, *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limited
)
said = program.stdout.read().decode()
_, status, used = os.wait4(program.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss, said]))
"""
