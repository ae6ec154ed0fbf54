"""Fitted models as text for the terminal, and messages with options as typed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icqf.errors import Setting, counted, sentence, shown_share

if TYPE_CHECKING:
    from icqf.baselines.retention import RuleTable
    from icqf.data.questionnaire import Item
    from icqf.models.icqf import ICQF
    from icqf.models.meta import MetaICQF
    from icqf.resampling.hidden import HiddenFit
    from icqf.workflow.deviations import Compared

LEAST_LOADING = 0.05
LEAST_META = 0.1


def model_text(
    model: ICQF, items: Iterable[Item], *, top: int, hidden: HiddenFit | None = None, not_asked: float = 0.0
) -> str:
    """Return a summary of the model, and each factor with its strongest items.

    If hidden answers are predicted no better than by the items' means, no factors are announced. `not_asked`
    is the share of answers that were not asked for.
    """
    from icqf.models.multistart import doubtful_factors
    from icqf.resampling.replication import LIKE_THIS

    summary = model.summary()
    by_factors, by_confounds = (
        table["variance_explained"].sum() for table in (summary.factors, summary.confounds)
    )
    parts = (
        f": the factors {shown_share(float(by_factors))}, the confounds {shown_share(float(by_confounds))}"
        if model.confound_encoder_.columns
        else ""
    )
    k, n_items = counted(len(summary.factors), "factor"), counted(len(summary.items), "item")
    what = f"{k} behind {n_items}, from"
    if no_structure(hidden, model=model):
        what = f"{k} {'was' if len(summary.factors) == 1 else 'were'} fitted to {n_items} of"
    missing = f"{summary.share_missing:.1%} of the answers were missing" if summary.share_missing else ""
    head = [
        f"{what} {counted(summary.n_participants, 'participant')}; {missing or 'no answer was missing'}"
        f"{f', {not_asked:.1%} because they were not asked for' if not_asked else ''}.",
        f"The model (beta {model.beta:g}) explains {shown_share(summary.variance_explained)} of the variance "
        f"of the answers{parts}.",
    ]
    doubtful = doubtful_factors(model.starts_)
    if doubtful:
        head.append(
            f"Another start fits the answers equally well without {', '.join(doubtful)}; interpret with care."
        )
    if model.n_averaged_:
        head.append(f"Its loadings are averages over {model.n_averaged_} fits.")
    elif not model.converged_:
        head.append(f"It had not converged after {model.n_iter_} iterations; interpret with care.")
    factors = _factors(model, {item.name: item for item in items}, top)
    about = [] if model.replication_ is None else ["", f"Studies like this one: {LIKE_THIS}."]
    return "\n".join([*head, "", *factors, *about])


def no_structure(hidden: HiddenFit | None, *, model: ICQF | None = None, n_set: int | None = None) -> str:
    """Return a warning if hidden answers are predicted no better than by the items' means, or if no factor
    of the model is likely to be found by another study; else nothing.

    `n_set` is the number of factors if the user set it: fewer factors may show a structure.
    """
    from icqf.resampling.replication import NOT_REPLICABLE, no_factor_replicates

    given = f" with {counted(n_set, 'factor')}" if n_set else ""
    if hidden is None or not hidden.no_better_than_means:
        why = "" if model is None else no_factor_replicates(model.replication_)
        other = " Fewer factors may replicate." if (n_set or 0) > 1 else ""
        return f"{NOT_REPLICABLE}{given}: {why}.{other}" if why else ""
    other = " Fewer factors or a larger beta may predict better." if (n_set or 0) > 1 else ""
    return (
        f"{NOT_REPLICABLE}{given}: hidden answers are predicted no better than by the items' means (R² "
        f"of hidden answers {hidden.overall:.2f}, standard error {hidden.std_error:.2f}). Do not interpret "
        f"the factors.{other}"
    )


def meta_text(model: MetaICQF, *, top: int) -> str:
    """Return a summary of a battery's model, and each meta-factor with its factors and items."""
    table, items = model.loadings_, model.item_loadings_
    about = {
        (name, item.name): item.wording + (" (reversed)" if item.reverse else "")
        for name, each in model.instruments_.items()
        for item in each.codebook_.items
    }
    spans = {
        (name, str(item)): float(high - low)
        for name, each in model.instruments_.items()
        for item, low, high in each.item_range_.itertuples()
    }
    width = shutil.get_terminal_size((100, 24)).columns
    data = (
        f"{counted(len(table), 'factor')} of {counted(len(model.instruments_), 'instrument')}, from "
        f"{counted(model.n_participants_, 'participant')}."
    )
    if model.meta_ is None:
        from icqf.workflow.meta import no_common_factor

        return f"No common factor behind {data}\n" + "\n".join(textwrap.wrap(no_common_factor(model), width))
    lines = [f"{counted(table.shape[1], 'meta-factor')} behind {data}"]
    for name in table.columns:
        strong = table[name].sort_values(ascending=False, kind="stable")
        parts = [
            f"{key[0]} {str(key[1]).removeprefix('factor')} ({v:.2f})"
            for key, v in zip(strong.index, strong, strict=True)
            if v >= LEAST_META
        ]
        title = f"{name}: {', '.join(parts)}" if parts else f"No factor loads on {name}."
        lines += ["", *textwrap.wrap(title, width)]
        shares = (items[name] / [spans[key] for key in items.index]).clip(upper=1)
        for key in shares.sort_values(ascending=False, kind="stable").index[:top]:
            if shares[key] > LEAST_LOADING:
                line = f"  {shares[key]:4.0%} of the range  {key[0]} {key[1]}  {about.get(key, '')}"
                lines.append(line.rstrip() if len(line) <= width else line[: width - 1] + "…")
    return "\n".join(lines)


def plan_text(found: Compared) -> str:
    """Return the deviations from a preregistered plan, and what was found of what was expected."""
    lines = [f"{found.plan.decisions['title']}: {found.headline}"]
    lines += [f"  {each.sentence}" for each in found.deviations] + [f"  {text}" for text in found.declared]
    for expected, what, agrees in found.found:
        how = {True: "As expected", False: "Not as expected", None: "Not shown"}[agrees]
        lines.append(f"{how}: {expected} Found: {what}.")
    return "\n".join(lines)


def choice_text(search: Any, rule: str) -> str:
    """Return the choice of cross-validation, and its certainty."""
    factors, tried = counted(int(search.n_components_), "factor"), search.errors_["beta"]
    text = f"Chosen by cross-validation ({rule}): "
    if search.errors_["n_components"].nunique() > 1:
        text += (
            f"{factors}, beta {search.beta_:g}. Another sample of this size would choose: "
            f"{search.sample_choice_}. Other folds of these answers: {search.choice_}."
        )
        for other in search.level_:
            text += f" {other} and {search.n_components_} factors predict hidden answers equally well."
    else:
        text += f"beta {search.beta_:g}, for the {factors} that you set."
    if tried.nunique() > 1 and search.beta_ == tried.max():
        text += f" Beta is the largest value tried; try more than {tried.max():g} before relying on it."
    return text


def rules_text(rules: RuleTable) -> str:
    """Return the result of every rule, one line each, and why they differ."""
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    rows = rules.to_dict()["rules"]
    longest = max(len(row["rule"]) for row in rows)
    lines = ["Number of factors by rule:"]
    for row in rows:
        number = "–" if row["n_components"] is None else row["n_components"]
        head = f"  {row['rule']:<{longest}}  {number!s:>3}  "
        lines += textwrap.wrap(row["reason"], width, initial_indent=head, subsequent_indent=" " * len(head))
    return "\n".join([*lines, *textwrap.wrap(" ".join(rules.explanation), width)])


def _factors(model: ICQF, items: dict[str, Item], top: int) -> list[str]:
    loadings, shares = model.loadings_, model.summary().factors
    spans = model.item_range_["max"] - model.item_range_["min"]
    width = shutil.get_terminal_size((100, 24)).columns
    longest = max(len(str(name)) for name in loadings.index)
    lines = []
    for name in loadings.columns:
        relative = (loadings[name] / spans).sort_values(ascending=False, kind="stable")
        strong = [str(item) for item in relative.index[:top] if relative[item] > LEAST_LOADING]
        share, n = float(shares["variance_explained"][name]), int(shares["n_items"][name])
        lines.append(
            f"{name}: {counted(n, 'item')}{_scale(strong, items)}; explains {shown_share(share)} of the "
            f"variance{_replication(model, str(name))}"
        )
        for item in strong:
            entry = items.get(item)
            words = "" if entry is None else entry.wording + (" (reversed)" if entry.reverse else "")
            line = f"  {float(loadings[name][item]):5.2f} of {spans[item]:g}  {item:<{longest}}  {words}"
            lines.append(line.rstrip() if len(line) <= width else line[: width - 1] + "…")
        if not strong:
            lines.append("  no item loads on it noticeably")
        lines.append("")
    return lines[:-1]


def _replication(model: ICQF, name: str) -> str:
    """Return how likely another study finds the factor, if that was estimated."""
    from icqf.resampling.replication import ONE_ITEM, replication_in_words

    if model.replication_ is None:
        return ""
    mine = {str(key): row for key, row in model.replication_.iterrows()}[name]
    words = replication_in_words(float(mine["probability"]), float(mine["largest"]))
    fragile = mine["fragile"] and mine["largest"] <= ONE_ITEM
    return f"; {'fragile: ' if fragile else ''}{words}"


def _scale(strong: list[str], items: dict[str, Item]) -> str:
    scales = Counter(items[name].subscale for name in strong if name in items and items[name].subscale)
    if not scales:
        return ""
    scale, n = scales.most_common(1)[0]
    return f"; {n} of its {len(strong)} strongest belong to {scale!r}" if n > 1 else ""


_OPTION_NAMES = {"betas": "beta", "other_machines": "allow_other_machines"}
_OF_ITEMS = ("items", "reverse")  # options that take patterns


CALLER = "ICQF_CALLER"  # in the environment: "R" if the R package runs the program
_FUNCTIONS_IN_R = re.compile(r"\bicqf (check|fit|score)\b")
_OPTION = re.compile(r"'?--(?:no-)?([a-z][a-z-]*)'?")


def from_r() -> bool:
    """Whether the R package runs the program."""
    return os.environ.get(CALLER) == "R"


def worded(message: Any) -> str:
    """Return the text of an error, a warning or a finding, with options as typed, or as arguments in R."""
    if not from_r():
        return sentence(message, typed_setting, typed=True)
    return _FUNCTIONS_IN_R.sub(r"icqf_\1()", sentence(message, setting_in_r, typed=True))


def arguments_in_r(complaint: str) -> str:
    """Return a complaint about options as one about arguments of a function in R."""
    renamed = _OPTION.sub(lambda found: found[1].replace("-", "_"), complaint)
    return renamed.replace("No such option", "There is no argument")


def setting_in_r(setting: Setting) -> str:
    """Return a setting as an argument of a function in R."""
    name, value = _OPTION_NAMES.get(setting.name, setting.name), setting.value
    if not setting.assigned:
        return name
    if isinstance(value, Mapping):
        return f"{name} = c({', '.join(f'`{key}` = {_in_r(each)}' for key, each in value.items())})"
    return f"{name} = {_in_r(value)}"


def _in_r(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _in_r(value[0]) if len(value) == 1 else f"c({', '.join(map(_in_r, value))})"
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def typed_setting(setting: Setting) -> str:
    """Return a setting as typed on the command line."""
    name, value = option(_OPTION_NAMES.get(setting.name, setting.name)), setting.value
    if not setting.assigned or value is True:
        return name
    if value is False:
        return f"--no-{name.removeprefix('--')}"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {shlex.quote(f'{key}={each}')}" for key, each in value.items())
    values = value if isinstance(value, list | tuple) else [value]
    if setting.name in _OF_ITEMS and value != "auto":
        return typed_names(name, values)
    return " ".join([name, *(f"{v:g}" if isinstance(v, float) else shlex.quote(str(v)) for v in values)])


def option(name: str) -> str:
    """Return a parameter's option."""
    return "--" + name.strip("_").replace("_", "-")


def typed_names(name: str, items: Sequence[str]) -> str:
    """Return an option with names of items, quoted for the shell.

    Names with a comma, and the reserved name "auto", are replaced by patterns; a name that looks like an
    option follows an equals sign.
    """
    words, dashed = [], []
    for item in items:
        item = re.sub(r"[],*?[]", "?", item) if "," in item else "aut?" if item == "auto" else item
        if item.startswith("-"):
            dashed.append(f"{name}={shlex.quote(item)}")
        else:
            words.append(shlex.quote(item))
    return " ".join([*([name, *words] if words else []), *dashed])
