"""Whatever ends the program while it writes, one whole file or folder is there, the old one or the new."""

import subprocess
import sys
from pathlib import Path

import pytest

from icqf.errors import InputError
from icqf.io.atomic import new_file, new_folder, recover, write_bytes

# Writes a folder of two files and dies, as if killed, before or after the n-th step that touches the disk.
CHILD = """
import os, sys
from pathlib import Path
from icqf.io import atomic

fatal, steps = int(sys.argv[2]), 0

def dies(real):
    def step(*args, **kwargs):
        global steps
        steps += 1
        if steps == fatal:
            os._exit(9)
        return real(*args, **kwargs)
    return step

os.rename = dies(os.rename)
Path.rename = dies(Path.rename)
Path.mkdir = dies(Path.mkdir)
Path.write_text = dies(Path.write_text)
atomic.shutil.rmtree = dies(atomic.shutil.rmtree)
atomic._to_disk = dies(atomic._to_disk)
with atomic.new_folder(sys.argv[1]) as place:
    for name in ("a", "b"):
        (place / name).write_text("new " + name)
os._exit(0)
"""


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def _marked(path):
    return (path / "icqf.txt").is_file()


@pytest.mark.parametrize("replacing", [False, True])
def test_a_folder_after_a_kill_at_every_step(tmp_path, replacing):
    old, new = {"a": "old a", "c": "old c"}, {"a": "new a", "b": "new b"}
    seen = []
    for fatal in range(1, 30):
        folder = tmp_path / f"{replacing}{fatal}" / "results"
        folder.parent.mkdir()
        if replacing:
            folder.mkdir()
            for name, text in old.items():
                (folder / name).write_text(text)
        words = [sys.executable, "-c", CHILD, str(folder), str(fatal)]
        code = subprocess.run(words, check=False).returncode
        recover(folder)  # what the next writer does first
        found = content(folder) if folder.exists() else None
        assert found in ([old, new] if replacing else [None, new])
        if replacing:
            assert [
                path.name for path in folder.parent.iterdir() if path.name != "results" and _marked(path)
            ] == []
        seen.append(found)
        if code == 0:
            break
    assert code == 0 and fatal > 5
    assert seen[-1] == new and seen[0] == (old if replacing else None)


def test_a_folder_is_whole_or_as_it_was(tmp_path):
    folder = tmp_path / "results"
    with new_folder(folder) as place:
        (place / "a").write_text("1")
    with pytest.raises(TypeError), new_folder(folder) as place:
        (place / "a").write_text(2)
    assert content(folder) == {"a": "1"}
    with new_folder(folder) as place:
        (place / "b").write_text("3")
    assert content(folder) == {"b": "3"}
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_rename_that_fails_brings_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    with new_folder(folder) as place:
        (place / "a").write_text("1")
    real = Path.rename

    def refuse_the_second(path, target):
        if path.name == "new":
            raise PermissionError(13, "Permission denied")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", refuse_the_second)
    with pytest.raises(PermissionError), new_folder(folder) as place:
        (place / "a").write_text("2")
    assert content(folder) == {"a": "1"}
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "scores.csv"
    write_bytes(path, b"old")
    with pytest.raises(TypeError), new_file(path) as place:
        place.write_text(3)  # it is opened, and the writing fails
    assert path.read_bytes() == b"old"
    with new_file(path) as place:
        place.write_bytes(b"new")
        assert place.suffix == ".csv" and path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [found.name for found in tmp_path.iterdir()] == ["scores.csv"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    for name in ("out", "table.csv"):
        words = [sys.executable, "-c", DYING, str(tmp_path / name)]
        assert subprocess.run(words, check=False).returncode == 9
    assert len(list(tmp_path.iterdir())) == 2
    recover(tmp_path / "out")
    write_bytes(tmp_path / "table.csv", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


# Is killed while it writes a file or a folder.
DYING = """
import os, sys
from icqf.io import atomic
with (atomic.new_file if "." in os.path.basename(sys.argv[1]) else atomic.new_folder)(sys.argv[1]) as place:
    os._exit(9)
"""


def test_what_somebody_else_made_is_never_touched(tmp_path):
    """Names like our own, without our mark: neither removed nor moved into the place of the results."""
    names = [".out.old", ".out.0123abcd.partial", ".t.csv.0123abcd.partial", ".t.0123abcd.partial.csv"]
    for name in names:
        for part in ("new", "old"):
            (tmp_path / name / part).mkdir(parents=True)
            (tmp_path / name / part / "diary.txt").write_text("of somebody else")
    before = sorted(tmp_path.rglob("*"))
    recover(tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before
    for _ in range(2):
        with new_folder(tmp_path / "out") as place:
            (place / "a").write_text("1")
        write_bytes(tmp_path / "t.csv", b"2")
    assert sorted(tmp_path.rglob("*")) == sorted(
        [*before, *(tmp_path / n for n in ("out", "out/a", "t.csv"))]
    )


def test_an_earlier_folder_is_kept_where_another_has_come_in_its_place(tmp_path):
    with new_folder(tmp_path / "out") as place:
        (place / "a").write_text("old")
    dies = "atomic._move_in = lambda place, target, aside: (target.rename(aside), os._exit(9))\n"
    words = [sys.executable, "-c", CHILD.replace("with atomic", dies + "with atomic"), tmp_path / "out", "0"]
    assert subprocess.run(words, check=False).returncode == 9
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("of somebody else")
    with new_folder(tmp_path / "other"):
        recover(tmp_path / "out")
    kept = [path for path in tmp_path.rglob("a") if path.read_text() == "old"]
    assert content(tmp_path / "out") == {"diary.txt": "of somebody else"} and len(kept) == 1


def test_a_live_writer_is_never_touched(tmp_path):
    """Several processes write to the same places at once: each ends with its own, whole."""
    writer = """
import sys
from icqf.io import atomic
with atomic.new_folder(sys.argv[1] + "/out") as place, atomic.new_file(sys.argv[1] + "/t.csv") as table:
    (place / "a").write_text("whole")
    table.write_text("whole")
    print("begun", flush=True)
    sys.stdin.readline()
"""
    words = [sys.executable, "-c", writer, str(tmp_path)]
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "begun\n"
    with new_folder(tmp_path / "out") as place, new_file(tmp_path / "t.csv") as table:
        (place / "a").write_text("mine")
        table.write_text("mine")
        assert len([path for path in tmp_path.iterdir() if ".partial" in path.name]) == 4
    program.communicate("go on\n", timeout=60)
    assert program.returncode == 0
    assert content(tmp_path / "out") == {"a": "whole"} and (tmp_path / "t.csv").read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t.csv"]


def test_a_full_disk_is_one_sentence(tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    for opened in (new_file(tmp_path / "t.csv"), new_folder(tmp_path / "out")):
        with pytest.raises(InputError, match=r"^(t.csv|out): the disk is full"), opened:
            full()
    assert list(tmp_path.iterdir()) == []
