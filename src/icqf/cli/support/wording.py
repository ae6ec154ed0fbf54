"""The library's errors, warnings and findings in the words of the command line.

They carry a code and fields; where the library's own remedy names a parameter of Python, the sentence is made
here from these, with the option to type.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from icqf.errors import readable


def worded(said: Any) -> str:
    """Return what an error, a warning or a finding says, with options as they are typed.

    Examples
    --------
    >>> from icqf.errors import InputError
    >>> fault = InputError("Item 'q1' holds 9.", code="outside-range", remedy="Declare it.", value=9.0)
    >>> worded(fault)
    "Item 'q1' holds 9. If 9 marks a missing answer, add --missing-codes 9."
    """
    code = getattr(said, "code", "")
    return readable(WORDS[code](said) if code in WORDS else _as_it_is(said))


def _as_it_is(said: Any) -> str:
    return str(getattr(said, "sentence", said))


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


def _missing_code(said: Any) -> str:
    value = said.fields.get("value")
    if value is None:
        return _as_it_is(said)
    text = f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))
    shown = text if isinstance(value, float) else repr(value)
    if said.fields.get("answer"):
        return _as_it_is(said)
    other = "; if not, declare the item's range in a codebook" if said.fields.get("apart") else ""
    if said.fields.get("silent") is False:
        other = "; if it is an answer, give its number in the codebook's labels"
    return f"{said.message} If {shown} marks a missing answer, add --missing-codes {text}{other}."


def _end_code(said: Any) -> str:
    value = f"{said.fields['value']:g}"
    if not said.fields["shared"]:
        return (
            f"{said.message} If it does, add --missing-codes {value}; if not, declare the items' range in a "
            "codebook."
        )
    command = shlex.join(["icqf", "codebook", said.fields["source"], "--out", "items.csv"])
    return (
        f"{said.message} Other items have {value} as an answer: if it means no answer here, let `{command}` "
        "write a codebook that says so, confirm it, and add --codebook items.csv."
    )


def _text_answers(said: Any) -> str:
    labels, order = said.fields["labels"], said.fields["order"]
    if said.fields["codebook"]:
        return _as_it_is(said)
    does = (
        f"proposes the order {order}, for you to confirm" if labels else "lists them for you to put in order"
    )
    command = shlex.join(["icqf", "codebook", said.fields["source"], "--out", "items.csv"])
    return f"{said.message} `{command}` {does}; then add --codebook items.csv."


def _repeated_id(said: Any) -> str:
    pairs = said.fields.get("visit")
    if not pairs:
        return _as_it_is(said)
    typed = " ".join(f"--visit {shlex.quote(f'{column}={value}')}" for column, value in pairs)
    return f"{said.message} Keep one of them, for example with {typed}."


def _categories(said: Any) -> str:
    if not said.fields["codes"]:
        return _as_it_is(said)
    name, form = said.fields["confound"], "; ".join(f"{code}=..." for code in said.fields["codes"])
    return (
        f"{said.message} Say which is which: add --codebook with an entry whose name is {name!r} and whose "
        f"labels have the form '{form}'."
    )


def _parameter(said: Any) -> str:
    name, complaint = said.fields["name"], said.fields["complaint"]
    typed = said.message == name + complaint  # not read from a file, whose name would stand in front
    return f"{option(name)} {complaint.lstrip('= ')}" if typed else str(said.message)


def _with(remedy: str) -> Callable[[Any], str]:
    return lambda said: f"{said.message} {remedy}"


def _small_category(said: Any) -> str:
    return (
        f"{said.message} Pool the category with another one, leave the confound or these participants out, "
        f"or, for a model that is not shared, add --smallest-category {said.fields['count']}."
    )


def _few_answers(said: Any) -> str:
    remedy = said.remedy.replace("set smallest_category=", "add --smallest-category ")
    return f"{said.message} {remedy.replace('smallest_category=', '--smallest-category ')}"


def _looks_reversed(said: Any) -> str:
    if said.fields["reversed"]:
        return str(said.sentence)
    return f"{said.message} If it is, add {typed_names('--reverse', [said.fields['item']])}."


def _look_reversed(said: Any) -> str:
    one = len(said.fields["items"]) == 1
    them, name, whose = ("it", "name it", "its") if one else ("them", "name those to reverse", "their")
    return (
        f"{said.message} Add --reverse auto to reverse {them}, {name} after --reverse, or declare {whose} "
        "direction in a codebook (icqf codebook --suggest writes one); icqf check says how sure this is."
    )


def _names(said: Any) -> str:
    number = said.fields["number"]
    return f"--{said.message} Give --n-components {number}, or leave the names out until the number is known."


WORDS: dict[str, Callable[[Any], str]] = {
    "outside-range": _missing_code,
    "suspicious-code": _missing_code,
    "far-answer": _missing_code,
    "text": _missing_code,
    "end-code": _end_code,
    "text-answers": _text_answers,
    "confound-categories": _categories,
    "duplicate-id": _repeated_id,
    "parameter": _parameter,
    "looks-reversed": _looks_reversed,
    "look-reversed": _look_reversed,
    "missing-confound": _with(
        "Fill it in, leave these participants out, or add --missing-confounds mean to use the sample mean."
    ),
    "small-category": _small_category,
    "few-answers": _few_answers,
    "lone-confound": _with(
        "Correct it, leave the participant out, or give the range of the others with --confound-ranges."
    ),
    "dictionary": _with("Give it with --dictionary instead of --codebook."),
    "exists": _with("Choose another place with --out, or add --force to replace it."),
    "not-settled": _with("Raise --max-iter, or loosen --tol if that is close enough."),
    "names": _names,
    "name-count": _with(
        "Give one name for each factor, in their order, or some of them as in --names factor2=NAME."
    ),
    "swapped-names": _with(
        "Names hold to a factor's content, so give them in this model's order; or edit the column name of "
        "the table of factors, where the top items stand beside it."
    ),
    "not-named": _with("Name them after reading, with icqf report."),
    "no-factors": _with("Give the names with --names, one for each factor."),
    "no-report": _with("Fit again without --no-report."),
    "missing-torch": _with("Install it with pip install 'icqf[gpu]', or leave out --engine torch."),
    "gpu-memory": _with("Free memory on it, or leave out --engine torch."),
    "no-items": _with("Name the items with --items, or describe them with --codebook."),
    "too-many-items": _with("Name the items to reverse after --reverse, or declare them with --codebook."),
    "all-zero": _with("Lower --beta."),
    "battery-model": _with("Use icqf score, icqf show or icqf shortform with it."),
    "no-battery-model": _with("Name a file that icqf meta wrote."),
    "one-instrument": _with("Analyse a single questionnaire with icqf fit."),
    "no-instruments": _with(
        "Add --codebook with a column 'instrument', or name a folder with one file for each instrument."
    ),
    "no-id-column": _with("Name the column with --id; it must be called the same in all files."),
    "visit-order": _with(
        "Name the visits in order, as in --bins baseline 'year 1', or use a column of ages."
    ),
    "age-text": _with("Give numbers, or the visits in order, as in --bins baseline 'year 1'."),
    "one-visit": _with("Fit one visit by itself with icqf fit --visit, or ask for narrower --bins."),
    "bins": _with("Correct --bins, or leave these visits out."),
    "small-bin": _with("Ask for fewer or wider --bins, or leave these visits out."),
    "combined-visits": _with("Choose narrower --bins, or --within-bin first, last or mean."),
    "no-id": _with("Name it with --id."),
    "no-age": _with("Name it with --age."),
    "longitudinal-model": _with("Use it with icqf score."),
    "other-machines": _with("Leave --host out, or add --allow-other-machines if that is what you want."),
    "port": _with("Name another one with --port."),
    "scheduler-alone": _with("Add --engine dask, or leave --scheduler out."),
    "no-client": lambda said: "No Dask cluster is named. Give its scheduler with --scheduler tcp://….",
    "workers-killed": _with("They may need more memory."),
    "no-dask": _with("Install them with pip install 'icqf[cluster]', or leave out --engine dask."),
    "too-few": _with("Give --n-components and --beta to try more."),
}
