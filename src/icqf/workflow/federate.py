"""The coordinator of a federated fit: asks the sites, adds up what they send, and writes the results."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.engines.federated import Federated, Participation, RoundDone
from icqf.errors import InputError, listed
from icqf.estimator import ICQF, warned_if_empty
from icqf.io.exchange import Exchange, Message
from icqf.io.write import write_table
from icqf.solvers.observations import Elsewhere
from icqf.solvers.penalties import PENALTIES
from icqf.solvers.problem import Bounds, Problem
from icqf.solvers.scaling import weighed
from icqf.stated import StatedProblem
from icqf.workflow.federation import FederatedPlan
from icqf.workflow.fit import said
from icqf.workflow.folders import tool_account, write_folder
from icqf.workflow.named import DECIMALS, write_named


@dataclass(frozen=True, eq=False)
class FederatedFit:
    """A fit to the participants of several sites.

    Attributes
    ----------
    plan : FederatedPlan
    model : ICQF
    sites : DataFrame
        Participants of each site.
    rounds : int
        How often the sites were asked.
    exchanged : int
        Bytes of all files in the shared folder.
    warnings : tuple of Warning
    started : datetime
    seconds : float

    Examples
    --------
    >>> from icqf.workflow import FederatedFit
    >>> [name for name in FederatedFit.__annotations__][:4]
    ['plan', 'model', 'sites', 'rounds']
    """

    plan: FederatedPlan
    model: ICQF
    sites: pd.DataFrame
    rounds: int
    exchanged: int
    warnings: tuple[Warning, ...]
    started: datetime
    seconds: float


def fit_federated(
    plan: FederatedPlan,
    exchange: Exchange,
    *,
    callback: Callable[[RoundDone], object] | None = None,
) -> FederatedFit:
    """Fit the model of a plan to the participants of its sites, which answer in a shared folder.

    A fit that was broken off goes on where it stopped, because requests and answers are files.

    Parameters
    ----------
    plan : FederatedPlan
    exchange : Exchange
        The shared folder, which is empty at first.
    callback : callable, optional
        Told of each round.

    Examples
    --------
    Who is awaited is said, when there is no more patience:

    >>> import pathlib, tempfile
    >>> from icqf.data import Item
    >>> from icqf.io.exchange import Exchange
    >>> from icqf.workflow import FederatedPlan, fit_federated
    >>> plan = FederatedPlan(("A", "B"), (Item("q1", min=0, max=3), Item("q2", min=0, max=3)), n_components=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit_federated(plan, Exchange(pathlib.Path(folder), patience=0))
    Traceback (most recent call last):
    ...
    icqf.errors.InputError: 'A' has not announced itself in ... within 0 minutes. See that it runs; ...
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    exchange.require()
    sites = [_participation(plan, exchange, site) for site in plan.sites]
    stated = _stated(plan, sites)
    engine = Federated(exchange, sites, k=plan.n_components, plan=plan.digest, callback=callback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = plan.model().set_params(engine=engine)
        model = warned_if_empty(model.keep(stated, model.solve(stated)))
    engine.finish()
    table = pd.DataFrame(
        {"participants": [site.n for site in sites]}, index=pd.Index(plan.sites, name="site")
    )
    exchanged = sum(path.stat().st_size for path in exchange.folder.glob("*.zip"))
    seconds = time.perf_counter() - clock
    return FederatedFit(plan, model, table, engine.rounds, exchanged, said(caught), started, seconds)


def write_federated(
    fit: FederatedFit, folder: str | os.PathLike[str], *, plan: str | os.PathLike[str], force: bool = False
) -> list[str]:
    """Write loadings, factors, the model, the sites and the plan into `folder`; returns the files' names.

    There are no scores and no report, for which the participants would be needed: each site scores its own
    participants with the model (`icqf score`).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from datetime import UTC, datetime
    >>> import pandas as pd
    >>> from icqf import ICQF
    >>> from icqf.data import Item
    >>> from icqf.workflow import FederatedFit, FederatedPlan, write_federated
    >>> plan = FederatedPlan(("A", "B"), (Item("q1", min=0, max=3), Item("q2", min=0, max=3)), n_components=1)
    >>> model = ICQF(1, item_range=(0, 3)).fit(pd.DataFrame({"q1": [0, 3, 1], "q2": [1, 3, 0]}))
    >>> sites = pd.DataFrame({"participants": [2, 1]}, index=["A", "B"])
    >>> fit = FederatedFit(plan, model, sites, 20, 10_000, (), datetime.now(UTC), 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plan.toml")
    ...     _ = file.write_text(plan.to_toml())
    ...     write_federated(fit, f"{folder}/results", plan=file)[-3:]
    ['plan.toml', 'provenance.json', 'sites.csv']
    """
    model = fit.model

    def write(place: Path) -> None:
        write_named(place, model, None, format="csv", figures=False)
        confounds = model.confound_loadings_.rename_axis("item")
        write_table(confounds, place / "confound_loadings.csv", decimals=DECIMALS)
        write_table(fit.sites, place / "sites.csv")
        (place / "plan.toml").write_text(fit.plan.to_toml(), encoding="utf-8")

    account = tool_account(
        "federate",
        files=[Path(plan)],
        options={"plan": fit.plan.digest},
        started=fit.started,
        notes=[str(each) for each in fit.warnings],
        result={
            "seconds": round(fit.seconds, 3),
            "sites": fit.sites["participants"].to_dict(),
            "rounds": fit.rounds,
            "bytes_exchanged": fit.exchanged,
            "objective": float(model.objective_),
            "converged": bool(model.converged_),
            "iterations": int(model.n_iter_),
            "certificate": vars(model.certificate_),
        },
    )
    return write_folder(Path(folder), write, account, force=force)


def _participation(plan: FederatedPlan, exchange: Exchange, site: str) -> Participation:
    """What a site has announced, which is waited for."""
    path = exchange.announcement(site)

    def late(seconds: float) -> InputError:
        return InputError(
            f"{site!r} has not announced itself in {exchange.folder} within {seconds / 60:.3g} minutes.",
            code="site-late",
            remedy="See that it runs; then give the same command again.",
            site=site,
        )

    message = exchange.wait_for(path, late)
    if message is None:
        raise late(exchange.patience)
    if message.header.get("plan") != plan.digest:
        raise InputError(
            f"{path.name}: {site!r} has another plan than this one.",
            code="other-plan",
            remedy="Send all sites the same plan, and begin again in an empty folder.",
            site=site,
        )
    try:
        return _announced(plan, site, message)
    except (ValueError, TypeError, LookupError) as error:
        raise InputError(
            f"{path.name}: what {site!r} announced cannot be used ({error}).",
            code="site-nonsense",
            remedy="Ask the site which version of icqf it runs, and whether the file came through.",
            site=site,
        ) from None


def _announced(plan: FederatedPlan, site: str, message: Message) -> Participation:
    said, counts = message.header, message.arrays["counts"]
    n, size, token = said["participants"], said["size"], said["token"]
    if said["site"] != site:
        raise ValueError(f"it is that of {said['site']!r}")
    if type(n) is not int or n < plan.smallest_site:
        raise ValueError(f"it has {n!r} participants, and a site must have {plan.smallest_site}")
    if n > 1e9 or type(size) is not float or not 0 < size < 1e15 or type(token) is not str:
        raise ValueError("its numbers cannot be")
    if counts.shape != (len(plan.items),) or not np.isin(counts, np.arange(n + 1)).all():
        raise ValueError("its numbers of answers cannot be")
    return Participation(site, n, size, counts, token)


def _stated(plan: FederatedPlan, sites: list[Participation]) -> StatedProblem:
    """The problem of all sites' participants, of whom nothing is here."""
    model, ranges, items = plan.model(), plan.ranges.to_numpy(), [item.name for item in plan.items]
    n, counts = sum(site.n for site in sites), np.sum([site.counts for site in sites], axis=0)
    unanswered = [name for name, count in zip(items, counts, strict=True) if count == 0]
    if unanswered:
        raise InputError(f"Nobody at any site answered {listed(unanswered)}; leave it out of the plan.")
    encoder, span = model.confound_encoder_, ranges[:, 1] - ranges[:, 0]
    c = len(encoder.names)
    observations = Elsewhere(
        np.empty((0, len(items))),
        np.empty((c, 0)),
        dtype=np.float64,
        counts=tuple(site.n for site in sites),
        answered=counts,
        total_weight=sum(site.size for site in sites),
    )
    problem = Problem(
        observations,
        span,
        Bounds(score=model.score_max, loading=span, reconstruction=span),
        PENALTIES[plan.penalty](float(plan.beta)),
        partitions=encoder.partitions,
        intercept=c - 1 if plan.intercept else None,
    )
    everybody: Any = np.ones(n, dtype=bool)
    return StatedProblem(
        weighed(problem, model.item_weight),
        everybody,
        everybody,
        range(n),
        tuple(items),
        True,
        ranges,
        encoder,
        codebook=plan.codebook,
    )
