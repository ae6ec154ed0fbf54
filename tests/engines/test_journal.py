"""A journal is continued only by the same work and the same version."""

import json
from contextlib import suppress

import pytest

import icqf
from icqf.engines.journal import Journal
from icqf.engines.parallel import run_all
from icqf.errors import InputError


def square(x):
    return {"square": x * x}


def test_the_header_names_the_version(tmp_path):
    Journal(tmp_path / "journal", "same").append([{"n": 1}])
    header, record = map(json.loads, (tmp_path / "journal").read_text().splitlines())
    assert header["version"] == icqf.__version__ and header["identity"] == "same"
    assert record["n"] == 1 and Journal(tmp_path / "journal", "same").records == [{"n": 1}]


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_a_journal_of_another_version_is_refused(tmp_path, version):
    path = tmp_path / "journal"
    Journal(path, "same").append([{"n": 1}])
    lines = path.read_text().splitlines(keepends=True)
    header = json.loads(lines[0]) | {"version": version}
    path.write_text(json.dumps({k: v for k, v in header.items() if v is not None}) + "\n" + lines[1])
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"written by icqf .*results of two versions are not mixed"):
        Journal(path, "same")
    assert path.read_bytes() == before


def test_other_work_is_refused(tmp_path):
    Journal(tmp_path / "journal", "same")
    with pytest.raises(InputError, match="other data or other settings"):
        Journal(tmp_path / "journal", "other")


def test_finished_work_is_not_done_again(tmp_path):
    jobs = {str(x): (x,) for x in range(4)}
    first = run_all({k: jobs[k] for k in "02"}, square, checkpoint=tmp_path / "journal")
    told = []
    whole = run_all(jobs, square, checkpoint=tmp_path / "journal", callback=told.append)
    assert whole == {str(x): {"square": x * x} for x in range(4)} and first.items() <= whole.items()
    assert [(p.done, p.total) for p in told] == [(2, 4), (3, 4), (4, 4)]


def cube(x):
    return {"square": x**3}


def test_results_of_other_work_or_arguments_are_never_used(tmp_path):
    jobs = {str(x): (x,) for x in range(3)}
    run_all(jobs, square, checkpoint=tmp_path / "journal")
    assert run_all(jobs, cube, checkpoint=tmp_path / "journal")["2"] == {"square": 8}
    named_alike = {name: (x + 1,) for name, (x,) in jobs.items()}
    assert run_all(named_alike, square, checkpoint=tmp_path / "journal")["2"] == {"square": 9}
    with pytest.raises(InputError, match="other data or other settings"):
        run_all({"9": (9,)}, square, checkpoint=run_once(tmp_path / "other"))


def run_once(path):
    run_all({"1": (1,)}, square, checkpoint=path)
    return path


def test_no_flipped_bit_changes_a_record(tmp_path):
    """Each bit of the records, one at a time: the journal is refused, or says the same."""
    path, records = tmp_path / "journal", [{"k": 3, "error": 0.1234}, {"k": 14, "error": float("nan")}]
    Journal(path, "same").append(records)
    content = path.read_bytes()
    same = json.dumps(records)
    for place in range(content.index(b"\n") + 1, len(content)):
        for bit in range(8):
            spoiled = bytearray(content)
            spoiled[place] ^= 1 << bit
            path.write_bytes(spoiled)
            with suppress(InputError):
                found = Journal(path, "same").records
                # What is left are whole lines: a spoiled line break reads as a line that a crash cut off.
                assert same.startswith(json.dumps(found)[:-1])


def test_a_journal_removed_while_work_goes_on_is_written_again(tmp_path):
    path = tmp_path / "journal"
    Journal(path, "same").append([{"n": 1}])
    journal = Journal(path, "same")
    journal.append([{"n": 2}])
    path.unlink()
    journal.append([{"n": 3}])
    journal.append([{"n": 4}])
    assert [record["n"] for record in Journal(path, "same").records] == [1, 2, 3, 4]
