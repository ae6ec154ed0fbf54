"""The library's errors, warnings and findings in the words of the command line.

A remedy marks the settings it names (`icqf.errors.Advice`), which are written here as they are typed. The few
sentences that differ on the command line, because it has commands where Python has functions, stand in WORDS.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icqf.errors import Setting, readable, sentence

_OTHERWISE_CALLED = {"betas": "beta", "other_machines": "allow_other_machines"}
_OF_ITEMS = ("items", "reverse")  # options that take patterns


def worded(said: Any) -> str:
    """Return what an error, a warning or a finding says, with options as they are typed.

    Examples
    --------
    >>> from icqf.errors import Advice, InputError
    >>> worded(InputError("Item 'q1' holds 9.", remedy=Advice("Add {missing_codes=}.", missing_codes=[9.0])))
    "Item 'q1' holds 9. Add --missing-codes 9."
    """
    code = getattr(said, "code", "")
    return readable(WORDS[code](said)) if code in WORDS else sentence(said, typed_setting)


def typed_setting(setting: Setting) -> str:
    """Return a setting as it is typed.

    Examples
    --------
    >>> print(typed_setting(Setting("visit", {"wave": "year 1"}, assigned=True)))
    --visit 'wave=year 1'
    >>> print(typed_setting(Setting("force", True, assigned=True)), typed_setting(Setting("max_iter")))
    --force --max-iter
    """
    name, value = option(_OTHERWISE_CALLED.get(setting.name, setting.name)), setting.value
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
    """Return a parameter's name as it is typed.

    Examples
    --------
    >>> option("n_components")
    '--n-components'
    """
    return "--" + name.replace("_", "-")


def typed_names(name: str, items: Sequence[str]) -> str:
    """Return an option with names of items as a shell takes them.

    A comma would separate names and the word "auto" has a meaning of its own, so a pattern stands for these;
    a name that begins like an option follows an equals sign.

    Examples
    --------
    >>> print(typed_names("--reverse", ["q1", "sad, blue", "--out"]))
    --reverse q1 'sad? blue' --reverse=--out
    """
    words, dashed = [], []
    for item in items:
        item = re.sub(r"[],*?[]", "?", item) if "," in item else "aut?" if item == "auto" else item
        if item.startswith("-"):
            dashed.append(f"{name}={shlex.quote(item)}")
        else:
            words.append(shlex.quote(item))
    return " ".join([*([name, *words] if words else []), *dashed])


def _suggesting(said: Any) -> str:
    """The command that writes a codebook."""
    return shlex.join(["icqf", "codebook", said.fields["source"], "--out", "items.csv"])


def _end_code(said: Any) -> str:
    if not said.fields["shared"]:
        return sentence(said, typed_setting)
    return (
        f"{said.message} Other items have {said.fields['value']:g} as an answer: if it means no answer here, "
        f"let `{_suggesting(said)}` write a codebook that says so, confirm it, and add --codebook items.csv."
    )


def _text_answers(said: Any) -> str:
    if said.fields["codebook"]:
        return sentence(said)
    proposed = f"proposes the order {said.fields['order']}, for you to confirm"
    does = proposed if said.fields["labels"] else "lists them for you to put in order"
    return f"{said.message} `{_suggesting(said)}` {does}; then add --codebook items.csv."


def _parameter(said: Any) -> str:
    name, complaint = said.fields["name"], said.fields["complaint"]
    if said.message != name + complaint:  # read from a file, whose name stands in front
        return str(said)
    remedy = sentence(said, typed_setting).removeprefix(said.message)
    return f"{option(name)} {complaint.lstrip('= ')}{remedy}"


def _look_reversed(said: Any) -> str:
    return (
        f"{sentence(said, typed_setting)} icqf check says how sure this is; icqf codebook --suggest writes a "
        "codebook."
    )


def _with(remedy: str) -> Callable[[Any], str]:
    return lambda said: f"{said.message} {remedy}"


WORDS: dict[str, Callable[[Any], str]] = {
    "end-code": _end_code,
    "text-answers": _text_answers,
    "parameter": _parameter,
    "look-reversed": _look_reversed,
    "swapped-names": _with(
        "A name belongs to a factor's content, so give names in this model's order; or edit the column name "
        "of the table of factors, where the top items stand beside it."
    ),
    "not-named": _with("Name them after reading, with icqf report."),
    "battery-model": _with("Use icqf score, icqf show or icqf shortform with it."),
    "no-battery-model": _with("Name a file that icqf meta wrote."),
    "one-instrument": _with("Analyse a single questionnaire with icqf fit."),
    "one-visit": _with("Fit one visit by itself with icqf fit --visit, or ask for narrower --bins."),
    "longitudinal-model": _with("Use it with icqf score."),
    "no-client": lambda said: "No Dask cluster is named. Give its scheduler with --scheduler tcp://….",
    "workers-killed": _with("They may need more memory."),
}
