"""Escape sequences in names, ids, wordings and file names: none of them reaches the terminal as such."""

from __future__ import annotations

import contextlib
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from click.testing import CliRunner

from hostile.tally import Tally, in_short
from icqf import ICQF
from icqf.cli.program import cli
from icqf.data.questionnaire import Item, Questionnaire

EVIL = {
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "8-bit": "\x9b2Jcleared",
    "backspace": "safe\x08\x08\x08\x08evil",
    "return": "one\rtwo",
    "delete": "a\x7fb",
    "from right to left": "abc\u202eexe.txt",
    "isolated": "a\u2066b\u2028c",
}
CODES = (*range(32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
HARMFUL = {chr(code) for code in CODES} - {"\n", "\t"}
PIPED = ("codebook", "score", "check --json")  # data: as they are in a pipe, but not on a terminal


def run(folder: Path) -> Tally:
    tally = Tally("escape sequences")
    for number, (name, text) in enumerate(EVIL.items()):
        place = folder / f"evil-{number}"
        place.mkdir()
        for what, words in commands(place, text).items():
            with on_a_terminal(what.startswith(PIPED)):
                result = CliRunner().invoke(cli, [str(word) for word in words], color=True)
            error = result.exception
            if error is not None and not isinstance(error, SystemExit):
                tally.add("foreign exception", f"{what} with {name}: {in_short(error)}")
            elif found := HARMFUL & {*result.output, *result.stderr}:
                tally.add("escape sequence", f"{what} with {name}: {sorted(found)!r}")
            else:
                tally.add("clean")
    return tally


@contextlib.contextmanager
def on_a_terminal(wanted: bool):
    """Standard output of a command is said to be a terminal."""
    with contextlib.ExitStack() as stack:
        if wanted:
            kind = "click.testing._NamedTextIOWrapper.isatty"
            stack.enter_context(mock.patch(kind, lambda self: self.name == "<stdout>", create=True))
        yield


def commands(place: Path, text: str) -> dict[str, tuple]:
    """Commands on files in which the text is wherever one can put it."""
    rng = np.random.default_rng(0)
    n, names = 40, [f"{text}{j}" for j in range(4)]
    answers = pd.DataFrame(rng.integers(0, 4, (n, 4)), columns=names, index=[f"{text}{i}" for i in range(n)])
    site = pd.DataFrame({f"{text} site": [f"{text} {i % 2}" for i in range(n)]}, index=answers.index)
    items = tuple(
        Item(name, wording=f"Wording {text}", min=0, max=3, subscale=text, labels=((0.0, text),))
        for name in names
    )
    with contextlib.suppress(OSError):
        model = ICQF(2, item_range=(0, 3)).fit(answers.astype(float), confounds=site)
        model.save(place / "model.icqf", items=items, id=f"id{text}")
        Questionnaire(answers.astype(float), items)
    table = answers.join(site).rename_axis(f"{text} record").reset_index()
    csv, bad = place / "answers.csv", place / f"{text.replace('/', '')}.csv"
    table.to_csv(csv, index=False)
    table.assign(**{names[0]: f"often{text}"}).to_csv(bad, index=False)
    pd.DataFrame({"name": names, "wording": text, "min": 0, "max": 3, "subscale": text}).to_csv(
        place / "items.csv", index=False
    )
    (place / "bad.toml").write_text(f"{text!r} = 3\nsolver = '{text.encode('unicode_escape').decode()}'\n")
    usual = ("--id", f"{text} record", "--confounds", f"{text} site", "--codebook", place / "items.csv")
    fit = ("--n-components", "2", "--beta", "0.1", "--no-report")
    return {
        "show": ("show", place / "model.icqf"),
        "show --all": ("show", place / "model.icqf", "--all"),
        "codebook": ("codebook", csv),
        "codebook toml": ("codebook", csv, "--format", "toml"),
        "check": ("check", csv, *usual),
        "check --json": ("check", csv, *usual, "--json"),
        "check of another": ("check", bad, *usual),
        "fit": ("fit", csv, *usual, *fit, "--out", place / f"out{text.replace('/', '')}"),
        "fit of another": ("fit", bad, *usual, *fit, "--out", place / "out2"),
        "fit, unknown option": ("fit", csv, f"--{text}", "--out", place / "out3"),
        "fit, unknown item": (
            "fit",
            csv,
            *usual[2:],
            "--items",
            f"none{text}",
            *fit,
            "--out",
            place / "out4",
        ),
        "fit, config": ("fit", csv, "--config", place / "bad.toml", "--out", place / "out5"),
        "score": ("score", place / "model.icqf", csv, "--id", f"{text} record"),
        "score of another": ("score", place / "model.icqf", bad),
        "no such file": ("check", place / f"none{text.replace('/', '')}.csv"),
        "no such model": ("show", place / f"none{text.replace('/', '')}.icqf"),
        "no such command": (text,),
        "compare": ("compare", place / "model.icqf", place / "model.icqf"),
    }
