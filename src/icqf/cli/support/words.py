"""The library's messages in the words of the command line."""

from __future__ import annotations

import re

_WORDS = (
    (r"declare missing_codes=\[([^\]]*)\]", r"add --missing-codes \1"),
    (r'set missing_confounds="mean"', "add --missing-confounds mean"),
    (r"\(named in (\w+)\)", r"(named in --\1)"),
    (r"n_components=\[?([\d, ]*\d)\]?", r"--n-components \1"),
    (r"confound_ranges", "--confound-ranges"),
    (r"item_range", "the codebook's range"),
)


def in_command_words(message: str) -> str:
    """Name options as they are typed.

    Examples
    --------
    >>> in_command_words("If 9 marks a missing answer, declare missing_codes=[9].")
    'If 9 marks a missing answer, add --missing-codes 9.'
    """
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message
