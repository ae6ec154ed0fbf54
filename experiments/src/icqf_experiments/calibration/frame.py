"""The page "How sure are we when we say so": reliability tables of all statements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.engines.parallel import run_all
from icqf.errors import InputError, counted, listed
from icqf.report.blocks import Block, Bullets, Grid, Prose, Section, Span
from icqf.workflow.evaluation import Design, linked, prose, results_page
from icqf_experiments.made_with import commit_of

BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
ENOUGH = 50  # cases from which a bin is judged
OFF = 0.10  # gap from which it is flagged
COLUMNS = ("said", "happened", "answers", "source")
SIMULATED = "simulated"


@dataclass(frozen=True)
class Statement:
    """Something the package says with a probability, and how to see whether it happens."""

    name: str
    title: str
    setting: str
    cases: Callable[[Design], pd.DataFrame]
    more: Callable[[pd.DataFrame], Sequence[Block]] = lambda table: ()

    def file(self) -> str:
        """The name of its table of cases."""
        return f"calibration-{self.name}.csv"


def run_cases(
    design: Design, name: str, jobs: Mapping[str, tuple[Any, ...]], work: Callable[..., dict[str, Any]]
) -> pd.DataFrame:
    """Call `work` with each job's arguments and join the tables that it returns.

    `work` returns ``{"rows": [{column: value}, ...]}``, plain JSON, and its arguments decide all of it.
    """
    done = run_all(
        {key: (work, *job) for key, job in jobs.items()},
        _quietly,
        n_jobs=design.n_jobs,
        checkpoint=design.journal(f"calibration-{name}"),
        callback=design.callback,
        what=name,
        mixed=True,
    )
    return pd.DataFrame([row for result in done.values() for row in result["rows"]])


def from_jobs(
    name: str, jobs_of: Callable[..., Mapping[str, tuple[Any, ...]]], work: Callable[..., dict[str, Any]]
) -> Callable[[Design], pd.DataFrame]:
    """The cases of a statement that adds nothing to what its jobs return."""
    return lambda design: run_cases(design, name, jobs_of(quick=design.quick), work)


def _quietly(work: Callable[..., dict[str, Any]], *job: Any) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):  # nobody reads the warnings of thousands of fits
        return work(*job)


def reliability(table: pd.DataFrame) -> pd.DataFrame:
    """Compare what was said with what happened, in the committed bins of what was said.

    Returns
    -------
    DataFrame
        By bin that has cases: ``low``, ``high``, ``n``, ``said`` (mean), ``happened`` (share), ``gap`` and
        ``flagged`` (50 cases or more, and a gap of more than 0.10).

    Examples
    --------
    >>> table = pd.DataFrame({"said": [0.9] * 60, "happened": [1] * 42 + [0] * 18})
    >>> reliability(table)[["n", "gap", "flagged"]].to_dict("records")
    [{'n': 60, 'gap': -0.2, 'flagged': True}]
    """
    at = np.searchsorted(BINS[1:-1], table["said"], side="right")
    rows: list[dict[str, Any]] = []
    for number in np.unique(at):
        mine = table[at == number]
        said, happened = float(mine["said"].mean()), float(mine["happened"].mean())
        gap = round(happened - said, 10)
        rows.append(
            {
                "low": BINS[number],
                "high": BINS[number + 1],
                "n": len(mine),
                "said": said,
                "happened": happened,
                "gap": gap,
                "flagged": len(mine) >= ENOUGH and abs(gap) > OFF,
            }
        )
    return pd.DataFrame(rows)


def brier(table: pd.DataFrame) -> tuple[float, float]:
    """Return the mean squared error of what was said, and of always saying the base rate."""
    happened = table["happened"]
    return (
        float(((table["said"] - happened) ** 2).mean()),
        float(((happened.mean() - happened) ** 2).mean()),
    )


def groups_of(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All cases, graded and yes/no items apart, simulated and public studies apart, and both at once."""
    table = table.reset_index(drop=True)
    simulated = table["source"] == SIMULATED
    groups = {"all": table}
    for kind in ("graded", "yes/no"):
        groups[kind] = table[table["answers"] == kind]
    groups["simulated"], groups["public studies"] = table[simulated], table[~simulated]
    for kind in ("graded", "yes/no"):
        groups[f"simulated, {kind}"] = table[simulated & (table["answers"] == kind)]
        groups[f"public studies, {kind}"] = table[~simulated & (table["answers"] == kind)]
    seen: dict[tuple[int, ...], str] = {}
    for name, part in groups.items():
        seen.setdefault(tuple(part.index), name)  # the same cases under another name are not told twice
    return {name: groups[name] for places, name in seen.items() if places}


def calibration_page(statements: Iterable[Statement], names: Sequence[str], design: Design) -> Path:
    """Run the statements of these names, and write the page ``calibration.md``.

    A statement that is not named comes from its table in the folder, and is left out where there is none.
    """
    design.out.mkdir(parents=True, exist_ok=True)
    sections, verdicts, rows = [], [], []
    for statement in statements:
        file = design.out / statement.file()
        if statement.name in names:
            checked(statement, statement.cases(design)).to_csv(file, index=False, float_format="%.6g")
            made_with = design.commit
        elif file.is_file():
            made_with = commit_of(design.out, file.stem)
        else:
            continue
        every = checked(statement, pd.read_csv(file))
        table = every.dropna(subset="said")
        sections.append(_section(statement, table, every, made_with))
        verdicts.append(Prose([Span(f"{statement.title}.", "strong"), f" {verdict(table)}"]))
        error, naive = brier(table)
        rows.append([statement.title, str(len(table)), f"{error:.3f}", f"{naive:.3f}", _worst(table)])
    head = ["statement", "cases", "Brier score", "of the base rate", "largest gap in a bin"]
    return results_page(
        design,
        "calibration",
        "How sure are we when we say so",
        _SETTING,
        [Section("In short", [Bullets(verdicts), Grid("All statements", head, rows)]), *sections],
    )


_SETTING = f"""Every statement below comes with a probability. Each was made many times, in simulations
and in public studies of which something was held back, and is compared with what happened: in bins of
what was said (fixed beforehand), a gap of more than {OFF:.2f} between the mean of what was said and the
share that happened is flagged where there are {ENOUGH} cases or more. A Brier score is the mean squared
error of a probability; always saying the base rate of the same cases is what it must beat. Graded and
yes/no items, and simulations and public studies, are also judged apart, because errors of opposite sign
cancel."""


def checked(statement: Statement, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a statement, or say what it lacks."""
    lacking = [name for name in COLUMNS if name not in table]
    if lacking or table["said"].isna().all():
        raise InputError(f"The cases of {statement.name!r} lack {listed(lacking or ['rows'])}.")
    if not table["said"].dropna().between(0, 1).all() or not table["happened"].isin([0, 1]).all():
        raise InputError(
            f"The cases of {statement.name!r} have values that are not probabilities and 0 or 1."
        )
    return table


def off_bins(table: pd.DataFrame) -> list[str]:
    """The flagged bins of all groups, in words; of groups with the same cases, the first."""
    return [
        f"{name}, {_bin(row)} (said {row['said']:.2f}, happened {row['happened']:.2f})"
        for name, part in groups_of(table).items()
        for row in reliability(part).to_dict("records")
        if row["flagged"]
    ]


def verdict(table: pd.DataFrame) -> str:
    """Say which bins are off, and where the base rate would have done better.

    Examples
    --------
    >>> table = pd.DataFrame({"said": [0.9] * 60, "happened": [1] * 42 + [0] * 18})
    >>> verdict(table.assign(answers="graded", source="bfi"))
    'Off by more than 0.10: all, 0.9–1 (said 0.90, happened 0.70). Worse than the base rate: all.'
    """
    off = off_bins(table)
    worse = [
        name
        for name, part in groups_of(table).items()
        for error, naive in (brier(part),)
        if len(part) >= ENOUGH and round(error, 3) > round(naive, 3)
    ]
    return " ".join(
        [
            f"Off by more than {OFF:.2f}: {'; '.join(off)}."
            if off
            else f"No bin with {ENOUGH} or more cases is off by more than {OFF:.2f}.",
            f"Worse than the base rate: {', '.join(worse)}."
            if worse
            else "Nowhere worse than the base rate.",
        ]
    )


def _worst(table: pd.DataFrame) -> str:
    bins = reliability(table)
    bins = bins[bins["n"] >= ENOUGH]
    return f"{bins['gap'].abs().max():.2f}" if len(bins) else "–"


def _bin(row: Mapping[Any, Any]) -> str:
    return f"{row['low']:g}–{row['high']:g}"


def _section(statement: Statement, table: pd.DataFrame, every: pd.DataFrame, made_with: str) -> Section:
    by = f", made with commit {made_with}" * bool(made_with)
    return Section(
        statement.title,
        [
            prose(statement.setting),
            verdict(table),
            reliability_grid({"all": table}),
            reliability_grid({name: part for name, part in groups_of(table).items() if name != "all"}),
            _by_source(table),
            *statement.more(every),
            linked(f"All {counted(len(table), 'case')}{by}", statement.file()),
        ],
    )


def reliability_grid(groups: Mapping[str, pd.DataFrame]) -> Grid:
    """A reliability table; the groups below each other where there are several."""
    rows = []
    for name, part in groups.items():
        for row in reliability(part).to_dict("records"):
            numbers = [f"{row['said']:.2f}", f"{row['happened']:.2f}", f"{row['gap']:+.2f}"]
            flag = "off" if row["flagged"] else ""
            rows.append([name, _bin(row), str(row["n"]), *numbers, flag])
    head = ["cases", "bin", "n", "said (mean)", "happened", "gap", "flagged"]
    return Grid("Said and happened", head, rows)


def _by_source(table: pd.DataFrame) -> Grid:
    rows = []
    for (source, answers), part in table.groupby(["source", "answers"]):
        error, naive = brier(part)
        numbers = [f"{part['said'].mean():.2f}", f"{part['happened'].mean():.2f}"]
        rows.append([str(source), str(answers), str(len(part)), *numbers, f"{error:.3f}", f"{naive:.3f}"])
    head = ["source", "answers", "n", "said (mean)", "happened", "Brier score", "of the base rate"]
    return Grid("By source", head, rows)
