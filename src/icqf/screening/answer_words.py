"""Answers in words: their well-known scale, their order, and which mean no answer.

The table lists common answer scales in English. If none fits, the order is not guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

MOST_TEXTS = 12  # different answers to one item; more are free text


@dataclass(frozen=True)
class AnswerScale:
    """A well-known answer scale."""

    kind: str
    steps: tuple[tuple[str, ...], ...]  # the spellings of each answer, lowest first
    lowest: int  # number of the lowest answer


@dataclass(frozen=True)
class Order:
    """The presumed order of answers in words."""

    labels: tuple[tuple[float, str], ...]  # number and text of each answer, including those nobody gave
    missing: tuple[str, ...]  # texts that mean no answer
    reason: str  # what the order is based on

    def __str__(self) -> str:
        """The answers, from the lowest to the highest."""
        return " < ".join(text for _, text in self.labels)


# Whole scales, which also show the answers nobody gave: kind, lowest number, and steps from lowest to
# highest, each with one or more spellings. The shortest scale that contains all texts is used.
_TABLE = """
agreement from 1: disagree / agree
agreement from 1: disagree / neutral|neither agree nor disagree|undecided|not sure|unsure / agree
agreement from 1: strongly disagree / disagree / agree / strongly agree
agreement from 1: strongly disagree / disagree / neutral|neither agree nor disagree|neither|neither
    disagree nor agree|neutral neither agree nor disagree|undecided|not sure|unsure / agree / strongly
    agree
agreement from 1: strongly disagree / disagree|moderately disagree / slightly disagree|somewhat
    disagree|disagree slightly|disagree somewhat|disagree a little / slightly agree|somewhat agree|agree
    slightly|agree somewhat|agree a little / agree|moderately agree / strongly agree
agreement from 1: strongly disagree|disagree strongly / disagree|moderately disagree|disagree moderately /
    slightly disagree|somewhat disagree|disagree slightly|disagree somewhat|disagree a little /
    neutral|neither agree nor disagree|neither|neither disagree nor agree|undecided|not sure|unsure /
    slightly agree|somewhat agree|agree slightly|agree somewhat|agree a little / agree|moderately
    agree|agree moderately / strongly agree|agree strongly
agreement from 1: strongly disagree|disagree strongly / somewhat disagree|slightly disagree|disagree
    somewhat|disagree slightly|disagree a little / neutral|neither agree nor
    disagree|neither|undecided|unsure / somewhat agree|slightly agree|agree somewhat|agree slightly|agree
    a little / strongly agree|agree strongly
agreement from 1: completely disagree|totally disagree|fully disagree / disagree|mostly disagree|rather
    disagree / neutral|neither agree nor disagree|undecided / agree|mostly agree|rather agree / completely
    agree|totally agree|fully agree
agreement from 1: do not agree at all / agree a little|agree slightly / agree somewhat / agree completely
accuracy from 1: very inaccurate / moderately inaccurate / neither accurate nor inaccurate|neither
    inaccurate nor accurate|neither / moderately accurate / very accurate
accuracy from 1: very inaccurate / moderately inaccurate / slightly inaccurate / slightly accurate /
    moderately accurate / very accurate
truth from 0: false / true
truth from 0: not true / somewhat true|sometimes true|somewhat or sometimes true / very true|certainly
    true|often true|very true or often true|very or often true
truth from 0: not at all true / slightly true|hardly true|a little true / moderately true|somewhat true /
    mostly true|very true|exactly true / completely true
truth from 1: definitely false / mostly false / not sure|neither / mostly true / definitely true
truth from 1: rarely true / sometimes true / often true / almost always true
truth from 1: never true / rarely true|seldom true / sometimes true / often true / very often true|almost
    always true / always true
likeness from 1: not at all like me / not much like me|a little like me / somewhat like me / mostly like
    me|like me / very much like me
likeness from 1: not like me / somewhat like me|a little like me / like me|a lot like me
how far it applies from 0: did not apply to me at all|does not apply to me at all|did not apply to me at
    all never / applied to me to some degree or some of the time|applies to me to some degree or some of
    the time|applied to me to some degree / applied to me to a considerable degree or a good part of
    time|applied to me to a considerable degree or a good part of the time|applies to me to a considerable
    degree or a good part of time|applied to me to a considerable degree / applied to me very much or most
    of the time|applies to me very much or most of the time|applied to me very much
how far it applies from 0: does not apply at all|does not apply / applies a little|hardly applies|applies
    slightly / applies somewhat|applies partly / mostly applies|applies mostly / fully applies|applies
    fully|applies completely|applies very much
frequency from 0: not at all / several days / more than half the days|over half the days|more than half of
    the days / nearly every day|almost every day
frequency from 0: rarely or none of the time|rarely or never|rarely or none of the time less than 1
    day|less than 1 day|rarely or none of the time less than one day / some or a little of the time|some
    of the time|some or a little of the time 1 2 days|1 2 days / occasionally or a moderate amount of
    time|occasionally or a moderate amount of the time|occasionally or a moderate amount of time 3 4
    days|occasionally or a moderate amount of the time 3 4 days|3 4 days|much of the time / most or all of
    the time|most of the time|most or all of the time 5 7 days|all of the time 5 7 days|5 7 days|all of
    the time
frequency from 1: none of the time / a little of the time|rarely / some of the time / most of the time /
    all of the time
frequency from 1: none of the time / a little of the time / some of the time / a good bit of the time /
    most of the time / all of the time
frequency from 0: never / sometimes / often
frequency from 0: never / sometimes / often / always
frequency from 0: never / sometimes / often / almost always
frequency from 0: never / rarely|seldom / sometimes|occasionally / often|frequently
frequency from 0: never / rarely|seldom / sometimes|occasionally / often|frequently|usually / always
frequency from 0: never / almost never|rarely|hardly ever|seldom / sometimes|occasionally / fairly
    often|often|frequently / very often|very frequently
frequency from 0: never / almost never|hardly ever / sometimes|occasionally / often|usually|frequently /
    almost always|nearly always
frequency from 0: never|almost never|never or almost never / rarely|seldom / sometimes / often / almost
    always|always|always or almost always
frequency from 0: never / rarely|seldom / occasionally / sometimes / frequently|often / usually /
    always|every time
frequency from 0: never / monthly or less|less than monthly / 2 to 4 times a month|2 4 times a
    month|monthly / 2 to 3 times a week|2 3 times a week|weekly / 4 or more times a week|daily or almost
    daily|daily
frequency from 0: never / less than once a month|less than monthly / once a month|monthly / once a
    week|weekly / daily|every day|daily or almost daily
frequency from 0: never / once or twice / monthly / weekly / daily or almost daily|daily
frequency from 0: not during the past month / less than once a week / once or twice a week / three or more
    times a week|3 or more times a week
amount from 0: none / some / a lot|all
amount from 0: not at all / a little|slightly / a lot|very much|very
amount from 0: not at all / a little bit|a little|slightly / moderately|somewhat / quite a bit|quite a lot
    / extremely|very much|a great deal|a lot
amount from 0: not at all / a little|a little bit|slightly / quite a bit|moderately|somewhat / very
    much|extremely|very|a lot
amount from 1: very slightly or not at all / a little / moderately / quite a bit / extremely
amount from 1: not at all / somewhat|a little / moderately so|moderately / very much so|very much
amount from 0: not at all / no more than usual / rather more than usual / much more than usual
amount from 0: better than usual / same as usual / less than usual / much less than usual
amount from 0: more so than usual / same as usual / less so than usual / much less than usual
intensity from 0: not at all / mildly / moderately / severely
intensity from 0: not at all / mildly but it didnt bother me much / moderately it wasnt pleasant at times
    / severely it bothered me a lot
severity from 0: none|absent|no / mild|slight / moderate / severe|marked
severity from 0: none|absent / very mild|minimal / mild|slight / moderate / severe|marked / very
    severe|extreme
severity from 0: none|absent|no problem|no difficulty / mild|slight / moderate / severe|marked / very
    severe|extreme|unbearable
difficulty from 0: not difficult at all|not at all difficult / somewhat difficult / very difficult /
    extremely difficult
difficulty from 1: very difficult / difficult|somewhat difficult / neutral|neither easy nor difficult /
    easy|somewhat easy / very easy
importance from 1: not at all important|not important|unimportant / slightly important|somewhat
    important|of little importance / moderately important|important / very important / extremely important
concern from 1: not at all concerned / slightly concerned / somewhat concerned / moderately concerned /
    extremely concerned|very concerned
likelihood from 1: unlikely / likely
likelihood from 1: very unlikely|extremely unlikely / unlikely|somewhat unlikely / neutral|neither likely
    nor unlikely|neither unlikely nor likely|unsure / likely|somewhat likely / very likely|extremely
    likely
likelihood from 1: not at all likely / slightly likely / moderately likely|somewhat likely / very likely /
    extremely likely|completely likely
likelihood from 1: definitely not / probably not / possibly|maybe|might or might not|not sure /
    probably|probably yes / definitely|definitely yes
confidence from 1: not at all confident / slightly confident|a little confident / somewhat
    confident|moderately confident / very confident|fairly confident / extremely confident|completely
    confident
satisfaction from 1: dissatisfied / satisfied
satisfaction from 1: very dissatisfied|extremely dissatisfied / dissatisfied|somewhat dissatisfied /
    neutral|neither satisfied nor dissatisfied|neither dissatisfied nor satisfied|neither /
    satisfied|somewhat satisfied / very satisfied|extremely satisfied
satisfaction from 1: not at all satisfied / slightly satisfied / somewhat satisfied|moderately satisfied /
    very satisfied / extremely satisfied|completely satisfied
quality from 1: poor / fair / good
quality from 1: poor / fair / good / very good / excellent
quality from 1: very poor|very bad / poor|bad / fair|average|neither good nor bad|neutral / good / very
    good|excellent
yes or no from 0: no / yes
yes or no from 0: no / perhaps|maybe|sometimes|possibly|somewhat|partly|a little|not sure|unsure / yes
yes or no from 0: definitely no|no definitely not / no|probably no|rather no / maybe|perhaps|not
    sure|unsure / yes|probably yes|rather yes / definitely yes|yes definitely
checked from 0: unchecked|not checked|unselected|not selected / checked|selected
"""
_ENTRY = re.compile(r"^(?P<kind>.+?) from (?P<lowest>\d): (?P<steps>.+)")


def _scales(table: str) -> tuple[AnswerScale, ...]:
    scales = []
    for line in table.strip().replace("\n    ", " ").splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"not a scale: {line}")
        steps = (tuple(plain(spelling) for spelling in step.split("|")) for step in entry["steps"].split("/"))
        scales.append(AnswerScale(entry["kind"], tuple(steps), int(entry["lowest"])))
    return tuple(scales)


# A text that consists of one of these, or of several joined, means no answer.
_NO_ANSWER_PHRASES = (
    r"missing( (value|data|answer|response|item)s?)?|(system|user|item|data|answer|value) missing|sysmis",
    r"((participant|respondent|subject|patient|parent|child|r) )?(refus(ed?|es|al)|declined?|declines)"
    r"( to (answer|say|state|respond|tell))?",
    r"(i )?(do not|does not|dont|doesnt|did not|didnt) (know|answer|respond|want to (say|answer|tell)"
    r"|wish to (say|answer))|dk",
    r"(i |id |i would |would )?(prefers?|rather|preferred) not( to)? (say|answer|tell|respond|disclose|state)"
    r"|prefer no answer",
    r"(no|not|never) (answer(ed)?|response|asked|applicable|available|done|reported|stated|specified"
    r"|ascertained|assessed|administered|collected|recorded)|inapplicable|no (answer|response) given",
    r"((question|item) (was )?)?not (asked|administered)( (in|at|by|due|because) .*)?",
    r"(cant|cannot|can not|unable to) (say|answer|choose|tell)|none given|no data|non ?response|unanswered",
    r"skip(ped)?|(valid|legitimate|logical) skip|unknown|n ?a|(left )?blank",
)
_NO_ANSWER = re.compile(r"(\d+ )?(?:{0})( (or |and )?(?:{0}))*".format("|".join(_NO_ANSWER_PHRASES)))
# in brackets, or after a dash or colon
_DETAIL = re.compile(r"\([^)]*\)|\[[^\]]*\]|\s+[-–—]\s.*|[:;].*", re.DOTALL)
_NUMBER = re.compile(
    r"[\[(]?(?P<front>[+-]?\d+(?:\.\d+)?)(?:\s*[\])]|\s*[.:=)–—-])+\s*(?P<after>\D.*)"
    r"|(?P<spaced>[+-]?\d+)\s+(?P<rest>[^\W\d].*)"
    r"|(?P<before>.*\D)\s*[\[(]\s*=?(?P<back>[+-]?\d+(?:\.\d+)?)\s*[\])]"
    r"|(?P<alone>[+-]?\d+(?:\.\d+)?)",
    re.DOTALL,
)
_LONGEST = 500  # characters of an answer; in a longer text, brackets take long to find
_UNIT = re.compile(r"(day|time|hour|week|month|year|minute|point|or|to|and|per|in|out)s?\b", re.IGNORECASE)


def plain(text: object) -> str:
    """Return a text without case, punctuation, apostrophes and extra spaces, for comparison."""
    folded = unicodedata.normalize("NFKC", str(text)).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", re.sub(r"['’`´]", "", folded)).split())


SCALES = _scales(_TABLE)


def means_no_answer(text: object) -> bool:
    """Return whether a whole text means that there is no answer."""
    text = str(text)[:_LONGEST]
    forms = plain(text), plain(_DETAIL.sub(" ", text))
    return any(_NO_ANSWER.fullmatch(form) is not None for form in forms)


def no_answer_values(labels: Mapping[float, str], known: Iterable[float | str] = ()) -> list[float]:
    """Return the values that mean no answer by their labels and lie beyond the answers.

    Two neighbouring values are both answers, whatever their labels: 0 = not done, 1 = done. So is the next
    value, if it denies another: 3 = not available after 1 = fully available, 2 = partly available.
    """
    codes = set(known)
    silent = {value for value, text in labels.items() if value not in codes and means_no_answer(text)}
    answers = [value for value in labels if value not in codes and value not in silent]
    beside = {value for value in silent if {value - 1, value + 1} & {*answers}}
    answers += [value for value in beside if _opposite(labels[value], (labels[each] for each in answers))]
    if not answers:
        return []
    low, high = min(answers), max(answers)
    near = 0 if len(answers) > 1 else 1
    return sorted(value for value in silent if not low - near <= value <= high + near)


def _opposite(text: str, others: Iterable[str]) -> bool:
    """Whether a text denies an answer, as "not available" does beside "partly available"."""
    word = re.fullmatch(r"(?:no|not|never) (\w+)", plain(text))
    return word is not None and any(word[1] in plain(other).split() for other in others)


def order_of(texts: Iterable[str]) -> Order | None:
    """Return the order of answers in words, from numbers inside them or a well-known scale."""
    return _order(tuple(dict.fromkeys(text.strip() for text in texts if text.strip())))


@lru_cache(maxsize=1024)
def _order(texts: tuple[str, ...]) -> Order | None:
    missing = tuple(text for text in texts if means_no_answer(text))
    answers = [text for text in texts if text not in missing]
    by_number = _numbered(answers)
    if by_number is not None:
        return Order(by_number, missing, "the numbers in the answers")
    if len(answers) < 2 or any(_plain_number(text) for text in answers):
        return None
    fitting = [(scale, steps) for scale in SCALES if (steps := _on_scale(scale, answers)) is not None]
    orders = {tuple(text for _, text in sorted(steps.items())) for _, steps in fitting}
    if len(orders) != 1:  # no scale fits, or scales differ in the order
        return None
    scale, steps = min(fitting, key=lambda pair: len(pair[0].steps))
    return Order(_labels(scale, steps), missing, f"the usual wording of {scale.kind}")


def is_known(text: str) -> bool:
    """Return whether a text is an answer on a well-known scale, such as "perhaps" or "Very often"."""
    return any(form in _steps(scale) for scale in SCALES for form in _forms(text))


def _plain_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", text) is not None


def _numbered(answers: list[str]) -> tuple[tuple[float, str], ...] | None:
    """The answers by the numbers inside them, if each has its own number and some have words."""
    labels: dict[float, str] = {}
    for text in answers:
        match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None or (match["rest"] and _UNIT.match(match["rest"])):
            return None
        if match["after"] and _UNIT.match(match["after"]):
            return None
        value = float(match["front"] or match["spaced"] or match["back"] or match["alone"])
        if value in labels and plain(labels[value]) != plain(text):
            return None
        labels.setdefault(value, text)
    if len(labels) < 2 or all(_plain_number(text) for text in answers):
        return None
    return tuple(sorted(labels.items()))


def _on_scale(scale: AnswerScale, answers: list[str]) -> dict[int, str] | None:
    """The answers by step of a scale; None if one is not on it, or two share a step."""
    at: dict[int, str] = {}
    for text in answers:
        step = next((_steps(scale)[form] for form in _forms(text) if form in _steps(scale)), None)
        if step is None or (step in at and plain(at[step]) != plain(text)):
            return None
        at.setdefault(step, text)
    return at


def _labels(scale: AnswerScale, steps: dict[int, str]) -> tuple[tuple[float, str], ...]:
    """The scale in the spelling of the answers; only these, if many of its steps were not given."""
    n = len(scale.steps)
    if n - len(steps) > max(1, n // 3):
        steps = dict(enumerate(text for _, text in sorted(steps.items())))
    else:
        steps = {step: spellings[0] for step, spellings in enumerate(scale.steps)} | steps
    return tuple((float(scale.lowest + step), text) for step, text in sorted(steps.items()))


@cache
def _steps(scale: AnswerScale) -> dict[str, int]:
    return {spelling: step for step, spellings in enumerate(scale.steps) for spelling in spellings}


def _forms(text: str) -> tuple[str, ...]:
    """A text with and without what is in brackets."""
    text = text[:_LONGEST]
    return plain(text), plain(re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", text))
