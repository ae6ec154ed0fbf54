"""Studies on which rules for the number of factors are evaluated: public ones, and simulated ones with minor
factors.

Every study is split into independent parts. The list, the sizes of the parts, and which studies are used to
develop rules (`DEVELOPMENT`) and which to evaluate them were fixed before any rule was run on them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.direction import find_reversed
from icqf.data.questionnaire import Item, Questionnaire
from icqf.datasets import load_bfi, load_help, load_msq, load_phq9, make_cohort
from icqf.errors import InputError, did_you_mean, listed

MOST_PARTS = 4
SMALL_PART = 350
# The first may be inspected while a rule is developed; the others are used only to evaluate it.
DEVELOPMENT = ("bfi", "epi", "tai", "athenstaedt")
JUDGES = ("spi", "msq", "sai", "phq9", "help", "adjectives", "geras", "ability")
SIMULATED = {200: ("hbn", "abcd"), 500: ("hbn", "abcd"), 1335: ("hbn", "abcd"), 5000: ("abcd",)}
# The keys of psychTools for state and trait anxiety, half of whose items are worded positively.
PUBLISHED = {
    "sai": (
        *("calm", "secure", "at.ease", "rested", "comfortable"),
        *("confident", "relaxed", "content", "joyful", "pleasant"),
    ),
    "tai": ("pleasant", "rested", "calm", "happy", "secure", "content", "steady"),
}
LARGE = ("bfi", "epi", "tai", "spi", "msq", "sai", "phq9")  # also split into small parts


@dataclass(frozen=True, eq=False)
class SplitStudy:
    """A study to be split into independent parts."""

    name: str
    load: Callable[[], Questionnaire]  # returns the whole questionnaire
    size: int | None = None  # participants in a part; None: quarters, or halves below 1 400
    n_parts: int = MOST_PARTS  # number of parts of that size
    n_major: int | None = None  # the number of major factors of a simulated study

    def parts(self) -> list[Questionnaire]:
        """Return the independent parts, of participants in random order."""
        whole = self.load()
        n = whole.n_participants
        n_parts = 2 if self.size is None and n < MOST_PARTS * SMALL_PART else self.n_parts
        size = self.size or n // n_parts
        order = np.random.default_rng(0).permutation(n)
        return [whole.take(np.sort(order[at * size : (at + 1) * size])) for at in range(n_parts)]


def public_studies() -> list[SplitStudy]:
    """Return the public studies; large ones also in small parts."""
    grounds = []
    for name in (*DEVELOPMENT, *JUDGES):
        load = partial(load_public, name)
        grounds.append(SplitStudy(name, load))
        if name in LARGE:
            grounds.append(SplitStudy(f"{name}-{SMALL_PART}", load, size=SMALL_PART))
    return grounds


def studies_named(names: Iterable[str] = ()) -> list[SplitStudy]:
    """Return these studies, split in all ways, or all studies.

    Examples
    --------
    >>> [study.name for study in studies_named(["bfi"])]
    ['bfi', 'bfi-350']
    """
    every = [*public_studies(), *simulated_studies()]
    wanted = list(names)
    known = dict.fromkeys(study_of(ground.name) for ground in every)
    for name in wanted:
        if name not in known:
            raise InputError(
                f"There is no study {name!r}.{did_you_mean(name, known)} There are {listed(known)}."
            )
    return [ground for ground in every if not wanted or study_of(ground.name) in wanted]


def study_of(ground: str) -> str:
    """Return the name of a split study without the size of its parts.

    Examples
    --------
    >>> study_of("bfi-350"), study_of("bfi")
    ('bfi', 'bfi')
    """
    return ground.rpartition("-")[0] or ground


def simulated_studies() -> list[SplitStudy]:
    """Return cohorts with eight major factors, and many minor ones of no, fair or strong influence."""
    return [
        SplitStudy(
            f"simulated {name}, {error} minor factors-{n}",
            partial(_cohort, name, 2 * n, error),
            size=n,
            n_parts=2,
            n_major=8,
        )
        for n, names in SIMULATED.items()
        for name in names
        for error in ("none", "fair", "poor")
    ]


def _cohort(name: str, n: int, error: str) -> Questionnaire:
    return make_cohort(name, n, minor=error, random_state=7).questionnaire


def load_public(name: str) -> Questionnaire:
    """Load a public study, without confounds; items that run against the others are reversed."""
    loaders: dict[str, Callable[[], Questionnaire]] = {
        "bfi": load_bfi,
        "help": load_help,
        "phq9": load_phq9,
        "msq": load_msq,
    }
    if name in loaders:
        return replace(loaders[name](), confounds=None)
    table, low, high = _psychtools(name)
    items = tuple(Item(column, min=low, max=high) for column in table.columns)
    index = pd.Index([str(i) for i in range(1, len(table) + 1)], name="participant")
    study = Questionnaire(answers=table.set_axis(index, axis=0), items=items, source=f"psychTools {name}")
    return keyed(study, PUBLISHED.get(name))


def _psychtools(name: str) -> tuple[pd.DataFrame, float, float]:
    """Return the items of a study in psychTools, and their lowest and highest answer."""
    sources: dict[str, tuple[str, Callable[[pd.DataFrame], Any], float, float]] = {
        "epi": ("epi", lambda t: [f"V{i}" for i in range(1, 58)], 1, 2),
        "tai": ("tai", lambda t: t.columns.drop(["study", "time", "id"]), 1, 4),
        "sai": ("sai", lambda t: t.columns.drop(["study", "time", "id"]), 1, 4),
        "spi": ("spi", lambda t: [name for name in t.columns if name.startswith("q_")], 1, 6),
        "athenstaedt": ("Athenstaedt", lambda t: [f"V{i}" for i in range(1, 75)], 1, 7),
        "adjectives": ("big5.100.adjectives", lambda t: t.columns.drop(["study", "id"]), 1, 9),
        "geras": ("GERAS.items", lambda t: t.columns.drop("gender", errors="ignore"), 2, 6),
        "ability": ("ability", lambda t: t.columns, 0, 1),
    }
    source, columns, low, high = sources[name]
    table = psychtools_table(source)
    if "time" in table.columns:  # several occasions: the first of each participant
        table = table.sort_values("time", kind="stable").drop_duplicates(["study", "id"]).sort_index()
    answers = table[list(columns(table))].astype(float)
    return answers[answers.notna().any(axis=1)].reset_index(drop=True), low, high


def keyed(study: Questionnaire, published: Iterable[str] | None = None) -> Questionnaire:
    """Reverse items by the published key, or else those that look reversed, and one of two opposite ends."""
    if published is None:
        keying = find_reversed(study)
        flipped = {*keying.looks_reversed, *(name for ends in keying.ends for name in ends.other)}
    else:
        flipped = {*published}
    items = tuple(replace(item, reverse=item.name in flipped) for item in study.items)
    return replace(study, items=items)


def psychtools_table(name: str) -> pd.DataFrame:
    """Return a data set of the R package psychTools, read by R once and cached in the user's folder."""
    kept = Path.home() / ".cache" / "icqf" / "psychTools" / f"{name}.csv"
    if not kept.is_file():
        program = shutil.which("Rscript")
        if program is None:
            raise InputError(
                f"The {name} data come with the R package psychTools; install R and that package."
            )
        kept.parent.mkdir(parents=True, exist_ok=True)
        script = (
            f'e <- new.env(); n <- {name!r}; d <- data(package = "psychTools")$results[, "Item"]; '
            'f <- sub("^.*\\\\((.*)\\\\)$", "\\\\1", d[sub(" .*$", "", d) == n]); '
            'data(list = f, package = "psychTools", envir = e); '
            f"write.csv(get(n, e), {str(kept)!r}, row.names = FALSE)"
        )
        done = subprocess.run([program, "-e", script], capture_output=True, text=True, check=False)
        if done.returncode or not kept.is_file():
            raise InputError(
                f"R could not read {name} from its package psychTools; install r-cran-psychtools."
            )
    return pd.read_csv(kept)
