"""Numbers in plain words: the sentences of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from icqf.report.tree import Bin, Factor, Loading

STABLE = ((0.95, "very stable"), (0.85, "stable"), (0.7, "fairly stable"))
_SMALL = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    "twelve",
)
LONG_DASH = "–"


def spelled(n: int) -> str:
    """A small number as a word.

    Examples
    --------
    >>> spelled(8), spelled(13)
    ('eight', '13')
    """
    return _SMALL[n] if 0 <= n < len(_SMALL) else str(n)


def count_of(n: int, what: str) -> str:
    """A number with its noun, large ones with thin spaces.

    Examples
    --------
    >>> count_of(1, "factor"), count_of(11681, "participant")
    ('1 factor', '11\u202f681 participants')
    """
    return f"{whole(n)} {what}" if n == 1 else f"{whole(n)} {what}s"


def whole(n: int) -> str:
    """A whole number, its thousands parted by a thin space from 10 000 on."""
    return f"{n:,}".replace(",", "\u202f") if n >= 10_000 else str(n)


def percent(share: float | None, digits: int = 0) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.4567), percent(0.001), percent(0.0), percent(None)
    ('46%', '<1%', '0%', 'not known')
    """
    if share is None or math.isnan(share):
        return "not known"
    if digits == 0 and 0 < share < 0.005:
        return "<1%"
    if digits == 0 and 0.995 <= share < 1:
        return ">99%"
    return f"{share:.{digits}%}"


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits; a minus sign, not a hyphen; an en dash when there is none.

    Examples
    --------
    >>> number(1.236), number(-0.5), number(None), number(float("nan"))
    ('1.24', '−0.50', '–', '–')
    """
    if value is None or math.isnan(value):
        return LONG_DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def joined(parts: Sequence[str]) -> str:
    """Texts as a list in a sentence.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def theme(top: Sequence[Loading], subscales: dict[str, str]) -> str:
    """Where the top items of a factor come from.

    Examples
    --------
    >>> top = [Loading(item, 1.0, 0.5) for item in "abc"]
    >>> theme(top, {"a": "Worry", "b": "Worry", "c": "Temper"})
    'mostly Worry (2 of its top 3 items)'
    """
    found: dict[str, int] = {}
    for loading in top:
        scale = subscales.get(loading.item, "")
        if scale:
            found[scale] = found.get(scale, 0) + 1
    if not found:
        return ""
    ranked = sorted(found.items(), key=lambda pair: -pair[1])
    scale, n = ranked[0]
    if n == len(top):
        return f"{scale} (all of its top {n} items)" if n > 1 else f"{scale} (its only item)"
    if n > 0.6 * len(top):
        return f"mostly {scale} ({n} of its top {len(top)} items)"
    return "bridges " + joined([f"{name} ({n})" for name, n in ranked[:3]])


def stability_words(agreement: float, top_kept: float, n_top: int, n_resamples: int) -> str:
    """One sentence on a factor's stability."""
    verdict = next((word for limit, word in STABLE if agreement >= limit), "unstable: read it with care")
    return (
        f"{verdict.capitalize()}. When the participants are drawn again ({n_resamples} times), its loadings "
        f"correlate {number(agreement)} with those shown here on average, and {number(top_kept, 1)} of its "
        f"{n_top} top items stay among the top {n_top}."
    )


def headline(
    *,
    n: int,
    m: int,
    k: int,
    confounds: Sequence[str],
    variance: float,
    hidden: float | None,
    chosen: str,
    factors: Sequence[Factor],
    n_present: Sequence[Bin],
    threshold: float,
) -> tuple[str, ...]:
    """The report in a few sentences."""
    beside = f", beside {joined(list(confounds))}," if confounds else ""
    verb = "describes" if k == 1 else "describe"
    unit = "factor" if k == 1 else "factors"
    said = [
        f"{spelled(k).capitalize()} {unit}{beside} {verb} the answers of {count_of(n, 'participant')} to "
        f"{count_of(m, 'item')}, and explain {percent(variance)} of the variance of the answers"
        + (f" ({percent(hidden)} for answers hidden from the model)." if hidden is not None else "."),
        chosen,
    ]
    judged = [(factor, factor.stability) for factor in factors if factor.stability is not None]
    if judged:
        shaky = [factor.name for factor, stability in judged if stability.agreement < STABLE[1][0]]
        least = min(stability.agreement for _, stability in judged)
        if not shaky:
            said.append(
                f"{'The factor stays' if k == 1 else 'All factors stay'} much the same when the participants "
                f"are drawn again (agreement of loadings {number(least)} or higher)."
            )
        else:
            said.append(
                f"Read with care: {joined(shaky)}. The loadings change when the participants are drawn again "
                f"(lowest agreement {number(least)})."
            )
    several = sum(bin.share for bin in n_present if bin.label not in ("0", "1"))
    none = next((bin.share for bin in n_present if bin.label == "0"), 0.0)
    if k > 1:
        said.append(
            f"{percent(several)} of the participants have two or more factors, and {percent(none)} have none "
            f"(a score of {threshold:g} or more counts as having it)."
        )
    return tuple(said)


def count_words(search: Any, parallel: int | None, k: int) -> tuple[str, tuple[str, ...]]:
    """One sentence for the top of the report, and the sentences of the section on the number of factors."""
    said: list[str] = []
    if search is None:
        lead = f"The number of factors, {k}, was given; it was not chosen from these answers."
        said.append(lead)
    else:
        shares = search.choice_.by_k()
        again = float(shares.get(k, 0.0))
        lead = (
            f"Cross-validation chose {count_of(k, 'factor')}; had the folds been drawn again, it would have "
            f"chosen the same number {percent(again)} of the time."
        )
        reasons = {
            "min": "This number predicts answers that were hidden from the model best.",
            "one_se": "It is the fewest factors that predict hidden answers about as well as the best number "
            "does (within one standard error).",
            "stable": "Of the numbers that predict hidden answers about as well as the best, it is the one "
            "whose factors agree best between halves of the sample.",
        }
        said += [lead, reasons[search.rule]]
        others = [f"{other} ({percent(share)})" for other, share in shares.items() if other != k]
        if others:
            said.append(f"Other numbers that would have been chosen: {joined(others[:4])}.")
        tried = sorted(int(value) for value in search.errors_["n_components"].unique())
        if len(tried) > 1 and k in (tried[0], tried[-1]):
            said.append(
                f"The choice lies at the edge of the numbers tried ({tried[0]} to {tried[-1]}); try further "
                "ones before relying on it."
            )
    if parallel is not None:
        same = "the same number" if parallel == k else f"{parallel}"
        said.append(
            f"Parallel analysis, the usual rule in factor analysis, would keep {same}. It asks which factors "
            "are stronger than those of unrelated answers, which is another question: in a large sample it "
            "keeps even small factors."
        )
    return lead, tuple(said)
