"""Options with several values."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf.cli.parsing import repeated

word = st.text("abc19._*", min_size=1, max_size=4)


@given(st.lists(word, max_size=3), st.lists(word, min_size=1, max_size=4), st.lists(word, max_size=2))
def test_values_up_to_the_next_option(before, values, after):
    tail = ["--out", *after] if after else []
    plain = repeated([*before, "--many", *values, *tail], {"--many"})
    assert plain == [*before, *(f"--many={value}" for value in values), *tail]


@given(st.lists(st.integers(-999, 999), min_size=1, max_size=4))
def test_negative_numbers_are_values(codes):
    assert repeated(["--many", *map(str, codes)], {"--many"}) == [f"--many={code}" for code in codes]


@pytest.mark.parametrize(
    "words", [["--many", "--out", "x"], ["x", "--many"], ["--many", "--many=1"], ["--many", "--", "x"]]
)
def test_an_option_without_value_is_refused_and_takes_no_other_option(words):
    with pytest.raises(click.BadOptionUsage, match="'--many' requires an argument"):
        repeated(words, {"--many"})


def test_two_dashes_end_the_options():
    assert repeated(["--many", "1", "--", "--many"], {"--many"}) == ["--many=1", "--", "--many"]
