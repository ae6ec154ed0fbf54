"""Writes docs/api.md, the reference of all public names, from their docstrings: `python docs/make_api.py`."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parent / "api.md"
PACKAGES = (
    "icqf",
    "icqf.data",
    "icqf.io",
    "icqf.datasets",
    "icqf.models",
    "icqf.analyses",
    "icqf.resampling",
    "icqf.baselines",
    "icqf.plotting",
    "icqf.report",
    "icqf.workflow",
    "icqf.engines",
)
HEAD = """\
# Every public name

Written from the docstrings by `python docs/make_api.py`. `help(icqf.ICQF)` says more about each name: its
parameters, their shapes, and what comes back. The examples run as tests.
"""
PIPELINE = """
## In a scikit-learn pipeline

`ICQF` and `ICQFCV` are scikit-learn transformers; confounds are routed to them as metadata:

```python
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from icqf import ICQF
from icqf.datasets import load_demo

study = load_demo()
with sklearn.config_context(enable_metadata_routing=True):
    model = ICQF(3, item_range=(0, 2)).set_fit_request(confounds=True).set_transform_request(confounds=True)
    pipeline = make_pipeline(model, StandardScaler())
    z = pipeline.fit_transform(study.keyed_answers(), confounds=study.confounds)
```
"""


def public(package: ModuleType) -> dict[str, Any]:
    """The functions and classes that a package offers, by name; `icqf` itself offers a few for short."""
    found = {name: getattr(package, name) for name in package.__all__}
    short = () if package.__name__ == "icqf" else importlib.import_module("icqf").__all__
    return {name: thing for name, thing in found.items() if not inspect.ismodule(thing) and name not in short}


def summary(thing: Any) -> str:
    """First paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def example(thing: Any) -> str:
    """The Examples section of a docstring, without its heading."""
    found = re.search(r"^Examples\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    return found[1].strip() if found else ""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *contents(), *sections(), PIPELINE.strip(), ""])


def contents() -> Iterator[str]:
    yield from ("| package | names |", "|---|---|")
    for name in PACKAGES:
        names = ", ".join(f"[`{one}`](#{anchor(name, one)})" for one in public(importlib.import_module(name)))
        yield f"| [`{name}`](#{anchor(name)}) | {names} |"
    yield ""


def sections() -> Iterator[str]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield from (f'<a id="{anchor(name)}"></a>', "", f"## `{name}`", "", summary(package), "")
        for one, thing in public(package).items():
            yield from (
                f'<a id="{anchor(name, one)}"></a>',
                "",
                f"### `{name}.{one}`",
                "",
                summary(thing),
                "",
            )
            yield from ("```pycon", example(thing), "```", "")


def anchor(*names: str) -> str:
    return "-".join(names).replace(".", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
