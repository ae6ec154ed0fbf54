"""A ``matplotlibrc`` that came with somebody's data: figures stay the same, and nothing is started."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from click.testing import CliRunner

from hostile.tally import Tally
from icqf.cli.program import cli

FIT = ("--n-components", "2", "--beta", "0.1", "--bootstrap", "0", "--no-figures")
PROGRAMS = ("latex", "pdflatex", "xelatex", "lualatex", "dvipng", "dvisvgm", "kpsewhich")
RC_FILES = {
    "LaTeX and another back end": (
        b"text.usetex: True\ntext.latex.preamble: \\input{/etc/passwd}\n"
        b"backend: module://evil\ninteractive: True\n"
    ),
    "LaTeX": b"text.usetex: True\ntext.latex.preamble: \\input{/etc/passwd}\n",
    "letters and sizes": (
        b"font.size: 40\nfigure.dpi: 30\nsavefig.dpi: 30\naxes.facecolor: red\n"
        b"figure.figsize: 90, 90\nsavefig.bbox: tight\nsvg.fonttype: path\n"
    ),
    "another back end": b"backend: module://evil\ninteractive: True\n",
    "not text": b"\xff\xfe\x00\x80 no text at all",
    "unknown words": b"no.such.setting: 3\nfont.size: very\n: :\n",
}


def commands(results: Path) -> list[tuple[str, ...]]:
    plan = ("plan", f"{results}/model.icqf", "--sizes", "100", "--repeats", "2", "--out", "plan")
    return [("plot", str(results), "heatmap", "--out", "figure.svg"), plan]


def run(folder: Path, names: Collection[str] = RC_FILES) -> Tally:
    """Kinds of settings files against a folder without one."""
    from icqf.datasets import demo_paths

    tally, bin_folder = Tally("hostile matplotlibrc files"), folder / "programs"
    bin_folder.mkdir()
    for name in PROGRAMS:  # each says that it was started
        (bin_folder / name).write_text(f"#!/bin/sh\ntouch {folder}/started\nexit 1\n")
        (bin_folder / name).chmod(stat.S_IRWXU)
    answers, codebook = demo_paths()
    study = (str(answers), "--codebook", str(codebook), "--items", "q00*", "q01*")
    fit = ("fit", *study, *FIT, "--out", "results")
    fitted = CliRunner().invoke(cli, [*fit[:-1], str(folder / "results")])
    if fitted.exit_code:
        raise RuntimeError(fitted.output)
    words = commands(folder / "results")
    plain = drawn(folder / "plain", words, bin_folder)
    for name in names:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        (place / "matplotlibrc").write_bytes(RC_FILES[name])
        (place / "evil.py").write_text(f"open({str(folder / 'started')!r}, 'w')\n")
        found = drawn(place, words, bin_folder)
        if (folder / "started").exists():
            (folder / "started").unlink()
            tally.add("abort", f"{name}: a program was started")
        if isinstance(found, str):
            tally.add("foreign exception", f"{name}: {found}")
        elif found != plain:
            others = sorted(each for each in plain if found.get(each) != plain[each])
            tally.add("silently different", f"{name}: {others[:3]}")
        else:
            tally.add("unaffected")
    return tally


def drawn(place: Path, words: list[tuple[str, ...]], programs: Path) -> dict[str, str] | str:
    """The figures that commands leave in a folder, by a checksum; or what went wrong."""
    place.mkdir(exist_ok=True)
    each = f"from icqf.cli.program import cli\nfor w in {words!r}: cli(w, 'icqf', standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", each],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    if done.returncode or "matplotlibrc" in done.stderr:
        return done.stderr.strip()[-160:]
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.suffix in (".png", ".svg", ".pdf")
    }
