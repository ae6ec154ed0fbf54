"""A site of a federated fit: reads and checks its own answers, and answers requests with sums over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from icqf.data.parameters import Visit
from icqf.data.questionnaire import Questionnaire
from icqf.engines.sent import Discretion, Quantity, SiteRows, quantities
from icqf.engines.wire import Dimensions, understood
from icqf.errors import InputError, did_you_mean, listed
from icqf.io.codebook import read_codebook
from icqf.io.exchange import Exchange, Message, file_name, write_message
from icqf.io.readers.beside import joined_by_id
from icqf.io.readers.files import read_table
from icqf.io.readers.questionnaires import NOT_IN_CODEBOOK
from icqf.io.readers.visits import keep_visit
from icqf.naming import default_names
from icqf.solvers.rows import RowsHere
from icqf.workflow.federation import FederatedPlan
from icqf.workflow.modelled import answers_for
from icqf.workflow.sent_log import SentLog, token_of
from icqf.workflow.site_data import SiteParticipants

_ANNOUNCED = {"counts": Quantity("number of answers to each item", ("m",))}


@dataclass(frozen=True)
class SiteAnswers:
    """What a site did: how many rounds it has answered by now, and whether the fit is finished.

    Examples
    --------
    >>> from icqf.workflow import SiteAnswers
    >>> SiteAnswers(rounds=12, finished=False).rounds
    12
    """

    rounds: int
    finished: bool


def read_for_plan(
    plan: FederatedPlan,
    answers: str | os.PathLike[str],
    *,
    codebook: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    participants: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
) -> Questionnaire:
    """Read a site's file of answers to the items of a plan, in the ranges and directions of the plan.

    Parameters
    ----------
    plan : FederatedPlan
    answers : path
        A table with the plan's items and confounds.
    codebook : path, optional
        Missing codes and labels of this site; ranges are those of the plan.
    participants : path, optional
        A table with confounds and weights by participant id.
    dictionary, id, missing_codes, visit
        As in `icqf.io.read_questionnaire`.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_codebook
    >>> from icqf.workflow import draw_up_plan, read_for_plan
    >>> files = demo_paths()
    >>> plan = draw_up_plan(read_codebook(files.codebook), sites=["A", "B"], n_components=8)
    >>> read_for_plan(plan, files.answers).answers.shape
    (600, 119)
    """
    given = () if codebook is None else read_codebook(codebook)
    texts = [id] if id else []
    table = keep_visit(read_table(answers, dictionary=dictionary, text=texts), visit)
    if participants is not None:
        wanted = [*(each.name for each in plan.confounds), *([plan.weights] if plan.weights else [])]
        table = joined_by_id(table, read_table(participants, text=texts), wanted, id=id)
    read = answers_for(
        plan.model(), table, given=given, id=id, weights=plan.weights, missing_codes=missing_codes
    )
    notes = tuple(note for note in read.notes if not note.startswith(NOT_IN_CODEBOOK))
    return replace(read, notes=notes)


def answer_requests(
    plan: FederatedPlan,
    participants: SiteParticipants,
    exchange: Exchange,
    *,
    name: str,
    log: str | os.PathLike[str],
    once: bool = False,
    callback: Callable[[int], object] | None = None,
) -> SiteAnswers:
    """Take part in a federated fit: announce the number of participants, and answer requests as they come.

    Scores are kept in memory only. After a break all requests so far are worked through again, in their
    order, and the answers that are in the folder already are left as they are.

    Parameters
    ----------
    plan : FederatedPlan
    participants : SiteParticipants
        Those of this site, see `site_participants`.
    exchange : Exchange
        The shared folder.
    name : str
        This site, as the plan calls it.
    log : path
        Folder for the log of everything that is sent.
    once : bool
        Whether to answer only what is there, instead of waiting for more.
    callback : callable, optional
        Told the number of each round that was answered.

    Examples
    --------
    Before anything is asked, a site announces itself:

    >>> import pathlib, tempfile
    >>> from icqf.datasets import load_demo
    >>> from icqf.io.exchange import Exchange
    >>> from icqf.workflow import answer_requests, draw_up_plan, site_participants
    >>> demo = load_demo().select(["q00*"]).with_confounds(None)
    >>> plan = draw_up_plan(demo.items, sites=["A", "B"], n_components=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place, shared = pathlib.Path(folder), Exchange(pathlib.Path(folder))
    ...     here = site_participants(plan, demo)
    ...     done = answer_requests(plan, here, shared, name="A", log=place / "sent", once=True)
    ...     sorted(path.name for path in place.iterdir())
    ['sent', 'site-a.zip']
    """
    exchange.require()
    if name not in plan.sites:
        raise InputError(
            f"The plan knows no site {name!r}.{did_you_mean(name, plan.sites)} It has {listed(plan.sites)}.",
            code="no-site",
        )
    site = _Site(plan, participants, name)
    written = SentLog(Path(log), site.row_names, [item.name for item in plan.items])
    site.announce(exchange, written)
    answered = 0
    while True:
        if once and not exchange.request(answered + 1).exists():
            return SiteAnswers(answered, exchange.end.exists())
        path = exchange.request(answered + 1)
        request = exchange.wait_for(path, _silent(exchange), or_else=exchange.end)
        if request is None:
            return SiteAnswers(answered, True)
        answered += 1
        site.answer(request, answered, exchange, written, path.name)
        if callback is not None:
            callback(answered)


class _Site:
    """This site, which answers."""

    def __init__(self, plan: FederatedPlan, here: SiteParticipants, name: str) -> None:
        self.plan, self.name, self.problem = plan, name, here.problem
        self.row_names = [*default_names(plan.n_components), *plan.encoder().names]
        self.token = token_of(here.secret)
        self._guard = Discretion(plan.smallest_group, plan.tol, plan.digits)
        self._rows: SiteRows | None = None

    def announce(self, exchange: Exchange, log: SentLog) -> None:
        """Say that this site takes part, and how many participants it has."""
        path, counts = exchange.announcement(self.name), self.problem.observations.answer_counts()
        if path.exists():
            earlier = exchange.wait_for(path, _silent(exchange))
            if earlier is not None and earlier.header.get("plan") != self.plan.digest:
                raise InputError(
                    f"{path.name}: {self.name!r} has announced itself with another plan.",
                    code="other-plan",
                    remedy="Use an empty folder for each plan.",
                )
            if earlier is None or earlier.header.get("token") != self.token:
                raise InputError(
                    f"{path.name}: a site with other data has announced itself as {self.name!r} already.",
                    code="same-name",
                    remedy="Use the name that the plan gives to this site; if its data have changed, begin "
                    "again in an empty folder.",
                    site=self.name,
                )
            return
        log.write(0, path.name, _ANNOUNCED, {"counts": counts}, participants=self.problem.n)
        header = {
            "plan": self.plan.digest,
            "site": self.name,
            "token": self.token,
            "participants": self.problem.n,
            "size": self.problem.size,
        }
        write_message(path, header, {"counts": counts})

    def answer(self, request: Message, number: int, exchange: Exchange, log: SentLog, where: str) -> None:
        """Work a request through, and answer it if it is not answered yet."""
        said = request.header
        if said.get("plan") != self.plan.digest:
            raise InputError(
                f"{where}: the coordinator asks by another plan than this site has.",
                code="other-plan",
                remedy="All must use the same plan; nothing was answered.",
            )
        try:
            if number > self.plan.most_rounds:
                raise ValueError(f"more than the {self.plan.most_rounds} rounds that the plan allows")
            if said.get("round") != number:
                raise ValueError(f"it calls itself round {said.get('round')!r}")
            first = said["first"][self.name]
            if type(first) is not int or not 0 <= first < 2**40:
                raise ValueError("it gives this site no place")
            dimensions = Dimensions(self.plan.n_components, self.problem.c, self.problem.m)
            step = understood(said.get("pass"), request.arrays, dimensions, self.problem.terms)
            if self._rows is None:
                rows = RowsHere(self.problem.observations, first=first)
                self._rows = SiteRows(rows, self.problem.terms, self._guard)
            arrays = self._rows.apply(step)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise InputError(
                f"{where}: this request is none that a fit makes, and was not answered ({error}).",
                code="strange-request",
                remedy="Tell the coordinator, and take part no further before this is explained.",
            ) from None
        path = exchange.answer(number, self.name)
        if path.exists():
            return
        log.write(number, path.name, quantities(step), arrays, participants=self.problem.n)
        header = {
            "plan": self.plan.digest,
            "site": self.name,
            "token": self.token,
            "round": number,
            "request": request.digest,
            "meaning": {name: each.words for name, each in quantities(step).items() if name in arrays},
        }
        write_message(path, header, arrays)


def _silent(exchange: Exchange) -> Callable[[float], InputError]:
    return lambda seconds: InputError(
        f"{exchange.folder}: nothing was asked for {seconds / 60:.3g} minutes.",
        code="coordinator-late",
        remedy="Give the same command again to go on; nothing is lost.",
    )


def log_folder(name: str) -> Path:
    """Where the log of a site is kept unless told otherwise.

    Examples
    --------
    >>> log_folder("Hospital A").as_posix()
    'sent-hospital-a'
    """
    return Path(f"sent-{file_name(name)}")
