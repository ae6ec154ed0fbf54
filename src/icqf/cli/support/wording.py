"""The library's errors, warnings and findings in the words of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from icqf.errors import Setting, sentence

_OTHERWISE_CALLED = {"betas": "beta", "other_machines": "allow_other_machines"}
_OF_ITEMS = ("items", "reverse")  # options that take patterns


def worded(said: Any) -> str:
    """Return what an error, a warning or a finding says, with options as they are typed."""
    return sentence(said, typed_setting, typed=True)


def typed_setting(setting: Setting) -> str:
    """Return a setting as it is typed."""
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
    """Return a parameter's name as it is typed."""
    return "--" + name.replace("_", "-")


def typed_names(name: str, items: Sequence[str]) -> str:
    """Return an option with names of items as a shell takes them.

    A comma would separate names and the word "auto" has a meaning of its own, so a pattern stands for these;
    a name that begins like an option follows an equals sign.
    """
    words, dashed = [], []
    for item in items:
        item = re.sub(r"[],*?[]", "?", item) if "," in item else "aut?" if item == "auto" else item
        if item.startswith("-"):
            dashed.append(f"{name}={shlex.quote(item)}")
        else:
            words.append(shlex.quote(item))
    return " ".join([*([name, *words] if words else []), *dashed])
