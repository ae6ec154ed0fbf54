"""A frozen plan: every byte but the ends of its lines belongs to its checksum."""

import hashlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icqf.data import Item
from icqf.errors import InputError
from icqf.io import Preregistration, read_preregistration
from icqf.io.preregistration import frozen
from plans import ANSWERS

ITEMS = (
    Item("q01", wording="Sad?", min=0, max=3, missing_codes=(9.0, "x"), labels=((0.0, "no"), (3.0, "yes"))),
    Item("q02", reverse=True, subscale="Mood"),
)


def plan_of(**changes):
    plain = {
        "decisions": ANSWERS | {"hypotheses": "One.\n\nTwo: \"quoted\", '''and''' \\n more."},
        "expected": {"n_factors": "2", "same_factor": [["q01", "q02"]], "replication": 0.5},
        "options": {
            "confounds": ["age"],
            "confound_ranges": {"age": [5, 21.5]},
            "visit": {"wave": "1"},
            "groups": "",
        },
        "items": ITEMS,
        "codebook": "items.csv",
        "made": "2026-11-02T09:30:00+00:00",
    }
    plan = Preregistration(**(plain | changes))
    return frozen(plan, dict.fromkeys(plan.options, "What it is."))


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(plan_of().text, encoding="utf-8", newline="")
    return path


def test_what_was_frozen_is_read(place):
    written, read = plan_of(), read_preregistration(place)
    for name in ("decisions", "expected", "options", "items", "codebook", "made", "version", "sha256"):
        assert getattr(read, name) == getattr(written, name), name
    assert (read.source, read.day) == ("plan.toml", "2 November 2026")


@settings(deadline=None, max_examples=60)
@example("\r\r\n")
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_survives(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    written = plan_of(decisions=ANSWERS | {"description": text})
    path.write_bytes(written.text.encode())
    kept = text.replace("\r\n", "\n").replace("\r", "\n")
    assert written.decisions["description"] == kept
    assert read_preregistration(path).decisions.get("description", "") == kept.strip()


def test_the_checksum_needs_no_icqf(place):
    lines = [line for line in place.read_text().splitlines(keepends=True) if not line.startswith("sha256 = ")]
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == read_preregistration(place).sha256


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n\n"])
def test_ends_of_lines_may_change(place, end, first, last):
    sum = read_preregistration(place).sha256
    text = first + place.read_text().rstrip("\n").replace("\n", end) + last
    place.write_bytes(text.encode())
    assert read_preregistration(place).sha256 == sum


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max = 3", "max = 4"),
        ('"age"', '"sex"'),
        ("replication = 0.5", "replication = 0.1"),
        ("# What it is.", "# Something else."),
        ("2026-11-02", "2026-10-02"),
        ("Two factors", "two factors"),
        ("[options]\n", "[options]\nbeta = 1\n"),
        ("[options]", "[options"),
        ('sha256 = "', 'sha256 = "' + "0" * 64 + '"\nsha256 = "'),
    ],
)
def test_an_edited_plan_is_refused(place, old, new):
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match="the plan was changed after it was frozen: it states the checksum"):
        read_preregistration(place)


def rewritten(place, old, new):
    """An edited plan with the checksum of its own text, as somebody who knows how could make it."""
    text = place.read_text().replace(old, new)
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("sha256 = ")]
    new_sum = hashlib.sha256("".join(lines).encode()).hexdigest()
    lines.insert(3, f'sha256 = "{new_sum}"\n')
    place.write_text("".join(lines))


def test_a_plan_in_a_newer_format_names_its_version(place):
    rewritten(place, 'preregistration = 1\nicqf = "0.1.0"', 'preregistration = 2\nicqf = "9.0"')
    with pytest.raises(
        InputError, match=r"made with icqf 9\.0, in a format that icqf .* does not know. Install"
    ):
        read_preregistration(place)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[decisions]", "[others]"),
        ("2026-11-02", "soon"),
        ("2026-11-02T09:30:00+00:00", "0001-01-01"),
        ("[options]", "[options"),
        ("preregistration = 1", ""),
        ("[[item]]", "[[other]]"),
    ],
)
def test_what_is_not_a_plan(place, old, new):
    rewritten(place, old, new)
    with pytest.raises(InputError, match=r"plan\.toml: this is not a plan that icqf preregister froze"):
        read_preregistration(place)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Two factors"', "title = 5", "the answer to 'title' must be a text"),
        ('title = "Two factors"', "", "1 question without an answer: 'title'"),
        ('n_factors = "2"', 'n_factors = "many"', "n_factors under .expected. must be a whole number"),
        ("replication = 0.5", 'replication = "half"', "replication under .expected. must be a number"),
        ('"q01", "q02"]]', '"q01", "q09"]]', "No item is named or matches 'q09'"),
    ],
)
def test_contents_are_checked_before_a_long_fit(place, old, new, said):
    rewritten(place, old, new)
    with pytest.raises(InputError, match=rf"^plan\.toml: {said}"):
        read_preregistration(place)


def test_the_checksum_is_at_the_top(place):
    lines = place.read_text().splitlines(keepends=True)
    place.write_text("".join([*lines[:3], *lines[4:], lines[3]]))
    with pytest.raises(InputError, match=r"not a plan .*its checksum is not at its top"):
        read_preregistration(place)


@pytest.mark.parametrize("content", [b"", b"beta = 1\n", "sha256 = ü".encode("utf-16"), b"\xff\xfe\x00"])
def test_other_files(tmp_path, content):
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"not a plan that icqf preregister froze .*Give the .toml file"):
        read_preregistration(tmp_path / "x.toml")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_preregistration(tmp_path / "x.toml")
    with pytest.raises(InputError, match="a folder, not a file"):
        read_preregistration(tmp_path)
