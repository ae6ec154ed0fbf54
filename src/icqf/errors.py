"""The one exception for files and tables that cannot be used as they are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A file, table or option that cannot be used; the message says where, what was found and what to do.

    Examples
    --------
    >>> from icqf.errors import InputError
    >>> raise InputError("answers.csv: row 3 has 5 cells, but the header has 4.")
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: answers.csv: row 3 has 5 cells, but the header has 4.
    """


def did_you_mean(name: str, choices: Iterable[object]) -> str:
    """Return ``" Did you mean 'age'?"`` for the nearest choice, or an empty string.

    Examples
    --------
    >>> did_you_mean("agee", ["sex", "age"])
    " Did you mean 'age'?"
    >>> did_you_mean("income", ["sex", "age"])
    ''
    """
    lower = {str(choice).lower(): str(choice) for choice in choices}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def counted(n: int, what: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "item"), counted(2, "item")
    ('1 item', '2 items')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def listed(names: Iterable[object], *, most: int = 5) -> str:
    """Join names for a sentence, cutting a long list short.

    Examples
    --------
    >>> listed(["q1", "q2", "q3"], most=2)
    "'q1', 'q2' and 1 more"
    """
    texts = [repr(str(name)) for name in names]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")


def concerns_users(category: type[Warning]) -> bool:
    """Return whether a warning is about someone's data rather than about code.

    Examples
    --------
    >>> concerns_users(UserWarning), concerns_users(DeprecationWarning)
    (True, False)
    """
    return issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning)
