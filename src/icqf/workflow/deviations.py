"""What a fit does otherwise than its preregistered plan, and what was found of what was expected."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from icqf import __version__
from icqf.data.settings import options_in
from icqf.data.study import Study
from icqf.errors import counted
from icqf.io.codebook import entry_of, read_codebook
from icqf.io.preregistration import Preregistration
from icqf.models.icqf import ICQF
from icqf.report.words import spelled
from icqf.workflow.options import StudyOptions, planned_names
from icqf.workflow.preregistration import expected_sentences, planned_items, span

_NAMED = 12  # items that a deviation names
_FIELDS = {
    "wording": "Wording",
    "min": "Lowest answer",
    "max": "Highest answer",
    "direction": "Direction",
    "subscale": "Subscale",
    "missing": "Missing codes",
    "labels": "Meaning of answers",
}
_UNSET = {"min": "not declared", "max": "not declared", "direction": "forward"}


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
    def sentence(self) -> str:
        """The plan and the number of deviations, for a Methods text and the model file."""
        n, plan = self.number, self.plan
        deviations = f"with {spelled(n)} deviation{'' if n == 1 else 's'}" if n else "without deviations"
        return (
            f"The analysis followed a preregistered plan (frozen on {plan.day}; SHA-256 checksum beginning "
            f"{plan.sha256[:12]}) {deviations}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for the report and the provenance."""
        plan = self.plan
        return {
            "title": plan.decisions.get("title", ""),
            "file": plan.source,
            "sha256": plan.sha256,
            "frozen": plan.day,
            "version": plan.version,
            "n_deviations": self.number,
            "sentence": self.sentence,
            "deviations": [
                {"what": d.what, "planned": d.planned, "done": d.done, "reason": d.reason}
                for d in self.deviations
            ],
            "declared": list(self.declared),
            "participants": self.participants,
            "found": [{"expected": e, "found": f, "agrees": agrees} for e, f, agrees in self.found],
            "decisions": dict(plan.decisions),
        }


def compared(
    plan: Preregistration,
    options: StudyOptions,
    study: Study,
    model: ICQF | None = None,
) -> Compared:
    """Compare a fit with its plan; without a model, before the fit."""
    found = [
        *_version(plan),
        *_settings(plan, options),
        *_codebook(plan, options),
        *_columns(plan, options, study),
    ]
    if model is not None:
        found += _participants(plan, model)
    found, declared = _with_reasons(found, options.deviation)
    if model is None:
        return Compared(plan, tuple(found), tuple(declared))
    rows = study.rows_of_everyone or study.n_rows or study.questionnaire.n_participants
    people = f"Of {counted(rows, 'row')} that were read, {model.n_participants_} participants were fitted."
    checks = tuple(_checks(plan, model))
    return Compared(plan, tuple(found), tuple(declared), people, checks)


def _version(plan: Preregistration) -> list[Deviation]:
    if plan.version == __version__:
        return []
    return [Deviation("Version of icqf", plan.version, __version__, frozenset({"version"}))]


def _settings(plan: Preregistration, options: StudyOptions) -> list[Deviation]:
    """The settings that are not those of the plan."""
    given = {name: value for name, value in plan.options.items() if value not in ("", [])}
    planned, declared = StudyOptions.of({"answers": "-"} | given), options_in(StudyOptions)
    plain, used = planned.to_dict(), options.to_dict()
    deviations = []
    for name in planned_names():
        if getattr(planned, name) != getattr(options, name):
            what = declared[name].label or name.replace("_", " ").capitalize()
            before, after = (_in_words(values.get(name)) for values in (plain, used))
            deviations.append(Deviation(what, before, after, frozenset({name, _key(what)})))
    return deviations


def _in_words(value: Any) -> str:
    """A setting as text."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {' to '.join(f'{end:g}' for end in part) if isinstance(part, list) else part}"
            for name, part in value.items()
        )
    if isinstance(value, list):
        return ", ".join(_in_words(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _codebook(plan: Preregistration, options: StudyOptions) -> list[Deviation]:
    """How a codebook given for the fit differs from that of the plan."""
    if options.codebook is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given when the answers were read
        items = read_codebook(options.codebook)
    used = {item.name: entry_of(item) for item in items}
    planned = {item.name: entry_of(item) for item in plan.items}
    about = frozenset({"codebook"})
    deviations = []
    changes: dict[tuple[str, str, str], list[str]] = {}
    common = [name for name in planned if name in used]
    for name in common:
        for key, what in _FIELDS.items():
            before, after = (
                _in_words(entry[key]) if key in entry else _UNSET.get(key, "none")
                for entry in (planned[name], used[name])
            )
            if before != after:
                changes.setdefault((what, before, after), []).append(name)
    for (what, before, after), names in changes.items():
        keys = about | {_key(what), *map(_key, names)}
        deviations.append(Deviation(f"{what} of {_list(names)} in the codebook", before, after, keys))
    dropped, added = [n for n in planned if n not in used], [n for n in used if n not in planned]
    for names, before, after in ((dropped, "in", "not in"), (added, "not in", "in")):
        if names:
            keys = about | {*map(_key, names)}
            deviations.append(Deviation(_list(names, "I"), f"{before} the codebook", f"{after} it", keys))
    if common != [name for name in used if name in planned]:
        what = "Order of items in the codebook"
        deviations.append(Deviation(what, "that of the plan", "another one", about))
    return deviations


def _columns(plan: Preregistration, options: StudyOptions, study: Study) -> list[Deviation]:
    """Planned items that are not in the file of answers."""
    if options.codebook is not None:  # its items must be there
        return []
    analysed = {item.name for item in study.questionnaire.items}
    there = analysed | {column.name for column in study.questionnaire.left_out}
    absent = [item.name for item in planned_items(plan, options) if item.name not in there]
    if not absent:
        return []
    keys = frozenset({"items", *map(_key, absent)})
    return [Deviation(_list(absent, "I"), "analysed", "not in the file of answers", keys)]


def _participants(plan: Preregistration, model: ICQF) -> list[Deviation]:
    """A number of participants outside the planned one."""
    if "participants" not in plan.expected:
        return []
    low, high = span(plan.expected["participants"])
    if low <= model.n_participants_ <= high:
        return []
    planned = str(low) if low == high else f"{low} to {high}"
    keys = frozenset({"participants", "sample_size", "sample size"})
    return [Deviation("Participants in the fit", planned, str(model.n_participants_), keys)]


def _with_reasons(deviations: Iterable[Deviation], texts: Sequence[str]) -> tuple[list[Deviation], list[str]]:
    """Give each deviation its reason; texts that name none are deviations of their own."""
    known, declared = list(deviations), []
    for text in texts:
        key, colon, reason = text.partition(":")
        at = [at for at, each in enumerate(known) if colon and _key(key) in each.keys]
        for place in at:
            each = known[place]
            both = " ".join(part for part in (each.reason, reason.strip()) if part)
            known[place] = Deviation(each.what, each.planned, each.done, each.keys, both)
        if not at:
            declared.append(text)
    return known, declared


def _key(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _list(names: Sequence[str], first: str = "i") -> str:
    rest = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return f"{first}tem{'' if len(names) == 1 else 's'} {shown}"


def _checks(plan: Preregistration, model: ICQF) -> list[tuple[str, str, bool | None]]:
    """What was expected, what was found, and whether they agree; None where the fit cannot show it."""
    expected, k = plan.expected, len(model.components_)
    chosen = len(model.record_.tried) > 1
    answers: list[tuple[str, bool | None]] = []
    if "participants" in expected:
        low, high = span(expected["participants"])
        n = int(model.n_participants_)
        answers.append((counted(n, "participant"), low <= n <= high))
    if "n_factors" in expected:
        low, high = span(expected["n_factors"])
        set_before = "" if chosen else "; the number was set, not found, so this shows nothing"
        answers.append((counted(k, "factor") + set_before, low <= k <= high if chosen else None))
    groups, strongest = expected.get("same_factor", []), _strongest(model)
    matched = [[name for name in strongest if name in set(group)] for group in groups]
    for group, names in zip(groups, matched, strict=True):
        answers.append(_together(group, names, strongest, k))
    if len(groups) > 1:
        answers.append(_apart(matched, strongest, k))
    if "replication" in expected:
        answers.append(_replication(model, float(expected["replication"])))
    pairs = zip(expected_sentences(expected), answers, strict=True)
    return [(sentence, found, agrees) for sentence, (found, agrees) in pairs]


def _strongest(model: ICQF) -> dict[str, int | None]:
    """The number of the factor with an item's highest loading; None for an item without any loading."""
    loadings = model.loadings_.to_numpy(dtype=float)
    names = (str(name) for name in model.loadings_.index)
    return {
        name: int(row.argmax()) if row.max() > 0 else None for name, row in zip(names, loadings, strict=True)
    }


def _together(
    group: Sequence[str], names: Sequence[str], strongest: dict[str, int | None], k: int
) -> tuple[str, bool | None]:
    """Whether the items of a group have their highest loading on one factor."""
    absent = [name for name in group if name not in strongest]
    without = f"; not analysed: {', '.join(absent)}" if absent else ""
    if len(names) < 2:
        return f"fewer than two of the items were analysed{without}", None
    by_factor: dict[int | None, list[str]] = {}
    for name in names:
        by_factor.setdefault(strongest[name], []).append(name)
    if k == 1:
        return f"there is only one factor, so this shows nothing{without}", None
    if len(by_factor) == 1 and None not in by_factor:
        return f"all on one factor{without}", True
    parts = [
        f"{', '.join(each)}{' (no loading)' if factor is None else ''}" for factor, each in by_factor.items()
    ]
    return f"on different factors: {' | '.join(parts)}{without}", False


def _apart(
    groups: Sequence[Sequence[str]], strongest: dict[str, int | None], k: int
) -> tuple[str, bool | None]:
    """Whether no two groups have a factor in common."""
    factors = [{strongest[name] for name in names if strongest[name] is not None} for names in groups]
    if not all(factors):
        return "a group has no loading on any factor", False
    shared = sum(bool(a & b) for at, a in enumerate(factors) for b in factors[at + 1 :])
    if not shared:
        return "no two of the groups have a factor in common", True
    return (
        f"{counted(shared, 'pair')} of the groups {'has' if shared == 1 else 'have'} a factor in common",
        False,
    )


def _replication(model: ICQF, least: float) -> tuple[str, bool | None]:
    """Whether every factor is as likely to be found again as expected."""
    if model.replication_ is None:
        return "replication probabilities were not estimated", None
    chances = model.replication_["probability"]
    reached = int((chances >= least).sum())
    text = f"{reached} of {counted(len(chances), 'factor')}; the lowest is {chances.min():.2f}"
    return text, reached == len(chances)
