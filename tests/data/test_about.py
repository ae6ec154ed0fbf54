"""What only people know about a model."""

import pytest

from icqf.data import About
from icqf.data.about import spdx
from icqf.errors import InputError


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("CC-BY-4.0", "CC-BY-4.0"),
        (" cc by  4.0 ", "CC-BY-4.0"),
        ("mit", "MIT"),
        ("cc0-1.0 or odbl-1.0", "CC0-1.0 OR ODbL-1.0"),
        ("CC BY", ""),
        ("free for research", ""),
        ("", ""),
    ],
)
def test_licences_are_recognised_by_their_spdx_identifiers(typed, known):
    assert spdx(typed) == known
    about = About.of({"licence": typed})
    assert about.licence == (known or " ".join(typed.split()))
    assert bool(about.notes) == (bool(typed) and not known)


def test_a_licence_that_is_nearly_one_is_asked_about():
    (note,) = About.of({"licence": "CC BY-NC 4"}).notes
    assert "no SPDX identifier" in note and "Did you mean CC-BY-NC-4.0?" in note


def test_texts_are_in_one_line_without_hidden_characters():
    text = "a\u202eb\x1b[2J\n<script>\u2028c\u200b\ud800 \u0645\u06cc\u200c\u062e\u0648"
    assert About.of({"sample": text}).sample == "ab[2J <script> c \u0645\u06cc\u200c\u062e\u0648"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"language": "English"}, "language must be a language tag such as en, de or pt-BR, not 'English'"),
        ({"sample": 3}, "sample must be a text, not 3"),
        ({"sample": "x" * 2001}, "sample must be a text of at most 2000 characters"),
        ({"license": "MIT"}, "There is no option 'license'. Did you mean 'licence'?"),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        About.of(values)


def test_statements_are_updated_and_taken_back():
    about = About.of({"instrument": "SDQ", "language": "pt-BR", "contact": "a@b.org"})
    assert about.updated(About(instrument="CBCL")) == About("CBCL", language="pt-BR", contact="a@b.org")
    assert about.changed({"contact": "", "sample": "pupils"}).absent == (
        *("instrument_version", "instrument_licence", "licence", "citation", "contact"),
    )
    assert about and not About()


def test_only_what_both_state_can_differ():
    model = About(instrument="SDQ", instrument_version="parent form", language="en")
    assert model.differences(About()) == ()
    assert model.differences(About(instrument="sdq", language="en-GB")) == ()
    found = model.differences(About(instrument_version="self-report", language="es"))
    assert found == (
        "version 'parent form', and these answers are of 'self-report'",
        "language 'en', and these answers are of 'es'",
    )
    assert About(language="en-US").differences(About(language="en-GB"))
