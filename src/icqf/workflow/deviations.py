"""What a fit does otherwise than its preregistered plan, and what was found of what was expected."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from icqf import __version__
from icqf.data.settings import options_in
from icqf.data.study import Study
from icqf.errors import counted
from icqf.io.codebook import entry_of, read_codebook
from icqf.io.preregistration import ANALYSED, CREATION, Preregistration, span
from icqf.models.icqf import ICQF
from icqf.report.words import spelled
from icqf.screening.missing_codes import number
from icqf.workflow.options import StudyOptions, planned_names
from icqf.workflow.preregistration import expected_sentences, planned_items, planned_options, span_words

_NAMED = 12  # items that a deviation names
_FIELDS = {  # of an item: what it is called, and what it is where it is not declared
    "wording": ("Wording", "none"),
    "min": ("Lowest answer", "not declared"),
    "max": ("Highest answer", "not declared"),
    "direction": ("Direction", "forward"),
    "subscale": ("Subscale", "none"),
    "missing": ("Missing codes", "none"),
    "labels": ("Meaning of answers", "none"),
}
_EVERYTHING = ("items", "subscales")  # options that mean all if they are not given
Checks = list[tuple[str, bool | None]]  # what was found, and whether it agrees; None where nothing shows it


@dataclass(frozen=True)
class Deviation:
    """Something that was done otherwise than planned; `keys` are the names by which a reason refers to it."""

    what: str
    planned: str
    done: str
    keys: frozenset[str] = frozenset()
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The deviation in words."""
        reason = f" Reason: {self.reason.rstrip('.')}." if self.reason else " No reason is given."
        return f"{self.what}: planned {self.planned}; done {self.done}.{reason}"


@dataclass(frozen=True)
class Compared:
    """A fit compared with its plan: deviations, others that only its user knows of, and expectations.

    `found` has a sentence on what was expected, one on what was found, and whether they agree; None where
    the fit cannot show it.
    """

    plan: Preregistration
    deviations: tuple[Deviation, ...]
    declared: tuple[str, ...] = ()
    participants: str = ""  # how many were read and fitted
    found: tuple[tuple[str, str, bool | None], ...] = ()

    @property
    def number(self) -> int:
        """How many deviations there are."""
        return len(self.deviations) + len(self.declared)

    @property
    def headline(self) -> str:
        """The number of deviations."""
        what = "preregistered plan"
        if self.plan.decisions["existing_data"] == ANALYSED:
            what = "plan, which was made after an analysis of the data"
        n = f"{spelled(self.number).capitalize()} deviation{'' if self.number == 1 else 's'}"
        return f"{n} from the {what}."

    @property
    def sentence(self) -> str:
        """The plan and the number of deviations, for a Methods text and the model file."""
        n, plan, what = self.number, self.plan, "preregistered plan"
        if plan.decisions["existing_data"] == ANALYSED:
            what = "plan that was made after an analysis of the data"
        deviations = f"with {spelled(n)} deviation{'' if n == 1 else 's'}" if n else "without deviations"
        return (
            f"The analysis followed a {what} (frozen on {plan.day}; SHA-256 checksum beginning "
            f"{plan.sha256[:12]}) {deviations}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for the report and the provenance."""
        plan, names = self.plan, ("what", "planned", "done", "reason")
        return {
            "title": plan.decisions["title"],
            "file": plan.source,
            "sha256": plan.sha256,
            "frozen": plan.day,
            "version": plan.version,
            "n_deviations": self.number,
            "headline": self.headline,
            "sentence": self.sentence,
            "deviations": [{name: getattr(each, name) for name in names} for each in self.deviations],
            "declared": list(self.declared),
            "participants": self.participants,
            "found": [dict(zip(("expected", "found", "agrees"), each, strict=True)) for each in self.found],
            "decisions": dict(plan.decisions),
        }


def compared(
    plan: Preregistration, options: StudyOptions, study: Study, model: ICQF | None = None
) -> Compared:
    """Compare a fit with its plan; without a model, before the fit."""
    found = [*_settings(plan, options), *_codebook(plan, options, study), *_data(plan, options, study)]
    if plan.version != __version__:
        found.insert(0, _deviation("Version of icqf", plan.version, __version__, "version"))
    people, checks = "", []
    if model is not None:
        n, rows = int(model.n_participants_), study.rows_of_everyone or study.n_rows
        rows = rows or study.questionnaire.n_participants
        people = f"Of {counted(rows, 'row')} that were read, {n} participants were fitted."
        planned = plan.expected.get("participants", n)
        if not _within(n, planned):
            names = ("participants", "sample size")
            found.append(_deviation("Participants in the fit", span_words(planned), str(n), *names))
        checks = _checks(plan, model)
    with_reasons, declared = _with_reasons(found, options.deviation)
    expected = expected_sentences(plan.expected) if checks else []
    agreement = tuple((said, *check) for said, check in zip(expected, checks, strict=True))
    return Compared(plan, tuple(with_reasons), tuple(declared), people, agreement)


def _deviation(what: str, planned: str, done: str, *names: str) -> Deviation:
    return Deviation(what, planned, done, frozenset(map(_key, (what, *names))))


def _within(n: int, planned: Any) -> bool:
    low, high = span(planned)
    return low <= n <= high


def _settings(plan: Preregistration, options: StudyOptions) -> list[Deviation]:
    """The settings that are not those of the plan."""
    planned, declared, deviations = planned_options(plan), options_in(StudyOptions), []
    plain, used = planned.to_dict(), options.to_dict()
    chosen = replace(planned, items=options.items, subscales=options.subscales)
    same = _EVERYTHING if planned_items(plan, planned) == planned_items(plan, chosen) else ()
    for name in planned_names():
        one, other = (_in_any_order(getattr(each, name)) for each in (planned, options))
        if one != other and name not in same:
            what, unset = declared[name].label or name, "all" if name in _EVERYTHING else "none"
            before, after = (_in_words(values.get(name), unset) for values in (plain, used))
            what = what.replace("_", " ")
            deviations.append(_deviation(what[:1].upper() + what[1:], before, after, name))
    return deviations


def _in_any_order(value: Any) -> Any:
    """A setting, of which the order of several values makes no difference."""
    return sorted(map(str, value)) if isinstance(value, tuple) else value


def _in_words(value: Any, unset: str = "none") -> str:
    """A setting as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {' to '.join(f'{end:g}' for end in part) if isinstance(part, list) else part}"
            for name, part in value.items()
        )
    if isinstance(value, list):
        return ", ".join(_in_words(part) for part in value)
    return unset if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


def _codebook(plan: Preregistration, options: StudyOptions, study: Study) -> list[Deviation]:
    """How a codebook given for the fit differs from that of the plan, and missing codes of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given when the answers were read
        book = plan.items if options.codebook is None else read_codebook(options.codebook)
    used = {item.name: entry_of(item) for item in book}
    planned = {item.name: entry_of(item) for item in plan.items}
    changes: dict[tuple[str, str, str], list[str]] = {}
    common = [name for name in planned if name in used]
    for name in common:
        for key, (what, unset) in _FIELDS.items():
            before, after = (_in_words(entry[name].get(key), unset) for entry in (planned, used))
            if before != after:
                changes.setdefault((what, before, after), []).append(name)
    deviations = [
        _deviation(f"{what} of {_list(names)} in the codebook", before, after, "codebook", what, *names)
        for (what, before, after), names in changes.items()
    ]
    dropped, added = [n for n in planned if n not in used], [n for n in used if n not in planned]
    for names, before, after in ((dropped, "in", "not in"), (added, "not in", "in")):
        if names:
            what = _list(names, "I")
            deviations.append(_deviation(what, f"{before} the codebook", f"{after} it", "codebook", *names))
    if common != [name for name in used if name in planned]:
        what = "Order of items in the codebook"
        deviations.append(_deviation(what, "that of the plan", "another one", "codebook"))
    known, added_codes = {item.name: item.missing_codes for item in book}, dict[str, list[str]]()
    for item in study.questionnaire.items:
        stated = (*known.get(item.name, ()), *options.missing_codes)
        more = ", ".join(number(code) for code in item.missing_codes if code not in stated)
        if more:
            added_codes.setdefault(more, []).append(item.name)
    for codes, names in added_codes.items():
        what = f"Missing codes of {_list(names)} that the file or its dictionary declares"
        deviations.append(_deviation(what, "none", codes, "dictionary", "missing codes", *names))
    return deviations


def _data(plan: Preregistration, options: StudyOptions, study: Study) -> list[Deviation]:
    """Data that were there before the plan although it denies it, and planned items that are not in them."""
    deviations = []
    changed = options.answers.stat().st_mtime if options.answers.is_file() else float("inf")
    stated = plan.decisions["existing_data"]
    if stated == CREATION and changed < plan.seconds:
        day = f"{datetime.fromtimestamp(changed, UTC):%Y-%m-%d}"
        done = f"{options.answers.name} was last changed on {day}, before the plan was frozen"
        deviations.append(_deviation("Existing data", f"“{stated}”", done))
    there = {item.name for item in study.questionnaire.items}
    there |= {column.name for column in study.questionnaire.left_out}
    absent = [item.name for item in planned_items(plan, options) if item.name not in there]
    if absent and options.codebook is None:  # the items of a codebook must be there
        what = _list(absent, "I")
        deviations.append(_deviation(what, "analysed", "not in the file of answers", "items", *absent))
    return deviations


def _with_reasons(deviations: Iterable[Deviation], texts: Sequence[str]) -> tuple[list[Deviation], list[str]]:
    """Give each deviation its reason; texts that name none are deviations of their own."""
    known, declared = list(deviations), []
    for text in texts:
        key, colon, reason = text.partition(":")
        places = [at for at, each in enumerate(known) if colon and _key(key) in each.keys]
        for at in places:
            known[at] = replace(known[at], reason=f"{known[at].reason} {reason.strip()}".strip())
        if not places:
            declared.append(text)
    return known, declared


def _key(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _list(names: Sequence[str], first: str = "i") -> str:
    rest = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return f"{first}tem{'' if len(names) == 1 else 's'} {shown}"


def _checks(plan: Preregistration, model: ICQF) -> Checks:
    """What was found of what was expected, in the order of its sentences."""
    expected, n, k = plan.expected, int(model.n_participants_), len(model.components_)
    answers: Checks = []
    if "participants" in expected:
        answers.append((counted(n, "participant"), _within(n, expected["participants"])))
    if "n_factors" in expected:
        if len(model.record_.tried) > 1:
            answers.append((counted(k, "factor"), _within(k, expected["n_factors"])))
        else:
            answers.append(
                (f"{counted(k, 'factor')}; the number was set, not found, so this shows nothing", None)
            )
    groups = expected.get("same_factor", [])
    loadings = model.loadings_
    strongest = {
        str(name): int(row.argmax()) if row.max() > 0 else None
        for name, row in zip(loadings.index, loadings.to_numpy(dtype=float), strict=True)
    }
    answers += [_together(group, strongest, k) for group in groups]
    if len(groups) > 1:
        answers.append(_apart(groups, strongest))
    if "replication" in expected:
        answers.append(_replication(model, float(expected["replication"])))
    return answers


def _together(group: Sequence[str], strongest: dict[str, int | None], k: int) -> tuple[str, bool | None]:
    """Whether the items of a group have their highest loading on one factor."""
    names = [name for name in strongest if name in set(group)]
    absent = [name for name in group if name not in strongest]
    without = f"; not analysed: {', '.join(absent)}" if absent else ""
    if len(names) < 2:
        return f"fewer than two of the items were analysed{without}", None
    if k == 1:
        return f"there is only one factor, so this shows nothing{without}", None
    by_factor: dict[int | None, list[str]] = {}
    for name in names:
        by_factor.setdefault(strongest[name], []).append(name)
    if len(by_factor) == 1 and None not in by_factor:
        return f"all on one factor{without}", True
    parts = [f"{', '.join(each)}{' (no loading)' * (factor is None)}" for factor, each in by_factor.items()]
    return f"on different factors: {' | '.join(parts)}{without}", False


def _apart(groups: Sequence[Sequence[str]], strongest: dict[str, int | None]) -> tuple[str, bool | None]:
    """Whether no two groups have a factor in common."""
    factors = [{strongest.get(name) for name in names} - {None} for names in groups]
    if not all(factors):
        return "a group has no loading on any factor", False
    shared = sum(bool(a & b) for at, a in enumerate(factors) for b in factors[at + 1 :])
    if not shared:
        return "no two of the groups have a factor in common", True
    have = "has" if shared == 1 else "have"
    return f"{counted(shared, 'pair')} of the groups {have} a factor in common", False


def _replication(model: ICQF, least: float) -> tuple[str, bool | None]:
    """Whether every factor is as likely to be found again as expected."""
    if model.replication_ is None:
        return "replication probabilities were not estimated", None
    chances = model.replication_["probability"]
    reached = int((chances >= least).sum())
    text = f"{reached} of {counted(len(chances), 'factor')}; the lowest is {chances.min():.2f}"
    return text, reached == len(chances)
