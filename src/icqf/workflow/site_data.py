"""The participants of a site as a federated fit sees them: checked, and such that no sum is about a few."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icqf.data.disclosure import effective_numbers, few_answers, refuse_lone_value, refuse_small_categories
from icqf.data.questionnaire import Questionnaire
from icqf.data.validate import weights_of
from icqf.errors import InputError, counted, listed
from icqf.solvers.problem import Problem
from icqf.stated import state_others
from icqf.workflow.federation import FederatedPlan
from icqf.workflow.fit import said


@dataclass(frozen=True, eq=False)
class SiteParticipants:
    """The participants of a site.

    Attributes
    ----------
    problem : Problem
        Their answers, as far as they take part.
    secret : bytes
        What is random here is drawn from it; it depends on all answers and never leaves the site.
    notes : tuple of str
        What was left out so that no sum is about a few.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.workflow import draw_up_plan, site_participants
    >>> demo = load_demo().select(["q00*"])
    >>> plan = draw_up_plan(demo.items, sites=["A", "B"], n_components=2)
    >>> here = site_participants(plan, demo.with_confounds(None))
    >>> here.problem.n, len(here.notes)
    (600, 0)
    """

    problem: Problem
    secret: bytes
    notes: tuple[str, ...]


def site_participants(plan: FederatedPlan, questionnaire: Questionnaire) -> SiteParticipants:
    """The participants of this site, refused where what would leave it were about a few of them.

    Sums of products with an item tell the answers of those few who answered it otherwise than all others, and
    differences of sums tell about the few who left it out. So with a smallest group above 1, an item that
    fewer participants answered otherwise counts as not asked at this site, and of an item that fewer left out
    some more answers are left out, at random.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.workflow import draw_up_plan, site_participants
    >>> demo = load_demo().select(["q00*"])
    >>> plan = draw_up_plan(demo.items, sites=["A", "B"], n_components=2)
    >>> here = site_participants(plan, demo.with_confounds(None))
    >>> here.problem.n, len(here.notes)
    (600, 0)
    """
    problem, rows, told = _stated(plan, questionnaire)
    source, observations = questionnaire.source, problem.observations
    secret = hashlib.sha256(plan.digest.encode())
    for array in (observations.answers, observations.design, observations.weights):
        secret.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    if problem.n < plan.smallest_site:
        raise InputError(
            f"{source}: {problem.n} participants answered, fewer than the {plan.smallest_site} that the plan "
            "asks of a site. Nothing was sent.",
            code="small-site",
            remedy="Take no part, or agree on another smallest_site for all sites.",
            count=problem.n,
        )
    problem, notes = _without_few(plan, problem, secret.digest())
    try:
        _refuse_few(plan, problem, rows)
    except InputError as error:
        raise InputError(
            f"{source}: {error.message} Nothing was sent.",
            code="few-at-site",
            remedy="Pool the category with another one in the plan, or leave the item, the confound or these "
            "participants out.",
            **error.fields,
        ) from None
    if plan.noise:
        problem = _with_made_up(plan, problem, secret.digest())
        notes = (*notes, f"{counted(plan.noise, 'made-up participant')} were added, as the plan says.")
    return SiteParticipants(problem, secret.digest(), (*told, *notes))


def _stated(plan: FederatedPlan, questionnaire: Questionnaire) -> tuple[Problem, Any, tuple[str, ...]]:
    """The problem of all who answered anything and have a weight above 0, their names here, and notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            problem, answered = state_others(plan.model(), questionnaire, None)
        except InputError as error:
            if error.code != "missing-confound":
                raise
            remedy = "Fill it in, or leave these participants out."
            raise InputError(error.message, code="missing-at-site", remedy=remedy, **error.fields) from None
    weights = weights_of(questionnaire.weights, questionnaire.answers.to_numpy())
    rows = questionnaire.answers.index[answered]
    notes = tuple(str(each) for each in said(caught))
    if weights is None:
        return problem, rows, notes
    kept = np.flatnonzero(weights[answered] > 0)
    problem = problem.of_rows(kept)
    weighted = replace(problem.observations, weights=weights[answered][kept])
    return replace(problem, observations=weighted), rows[kept], notes


def _without_few(plan: FederatedPlan, problem: Problem, secret: bytes) -> tuple[Problem, tuple[str, ...]]:
    """Leave out what would make sums about fewer than the smallest group; says what was left out."""
    group, answers, seen = plan.smallest_group, problem.answers, problem.observations.observed
    if group < 2:
        return problem, ()
    rng = np.random.default_rng(int.from_bytes(secret))
    hidden = np.zeros(seen.shape, dtype=bool)
    unasked, thinned = [], []
    for j, item in enumerate(plan.items):
        there = np.flatnonzero(seen[:, j])
        more = group - (problem.n - len(there))
        if 0 < more < group:
            left_out = rng.choice(there, min(more, len(there)), replace=False)
            hidden[left_out, j] = True
            there = np.setdiff1d(there, left_out)
            thinned.append(len(left_out))
        _, numbers = np.unique(answers[there, j], return_counts=True)
        if len(there) and 0 < len(there) - numbers.max() < group:
            hidden[there, j] = True
            unasked.append(item.name)
    if not hidden.any():
        return problem, ()
    notes = []
    if unasked:
        notes.append(
            f"Treated as not asked here, because fewer than {group} participants answered otherwise than all "
            f"others: {listed(unasked)}."
        )
    if thinned:
        notes.append(
            f"{counted(sum(thinned), 'answer')} to {counted(len(thinned), 'item')} were left out at random, "
            f"because fewer than {group} participants had left these items out."
        )
    return problem.hide(hidden), tuple(notes)


def _with_made_up(plan: FederatedPlan, problem: Problem, secret: bytes) -> Problem:
    """The problem with made-up participants, each of whose answers and confounds is somebody else's.

    They keep every item's and confound's own distribution. As participants like all others they are noise
    that fits together: a fit of blurred sums would have no solution.
    """
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(b"noise " + secret).digest()))
    observations, many = problem.observations, plan.noise
    seen = np.where(observations.observed, observations.answers, np.nan)
    answers = np.column_stack([column[rng.integers(problem.n, size=many)] for column in seen.T])
    silent = np.isnan(answers).all(axis=1)
    answers[silent, 0] = 0.0
    design = np.ones((problem.c, many))
    for columns in plan.encoder().partitions:
        design[list(columns)] = problem.design[:, rng.integers(problem.n, size=many)][list(columns)]
    weights = problem.weights
    if weights is not None:
        weights = np.concatenate([weights, weights[rng.integers(problem.n, size=many)]])
    return replace(
        problem,
        observations=replace(
            observations,
            answers=np.concatenate([seen, answers]),
            design=np.concatenate([problem.design, design], axis=1),
            weights=weights,
            hidden=None,
        ),
    )


def _refuse_few(plan: FederatedPlan, problem: Problem, rows: Any) -> None:
    """Refuse sums over a few: small categories and cells, lone confounds, items that a few answered."""
    encoder, design, limit = plan.encoder(), problem.design, plan.smallest_category
    weights = np.ones(problem.n) if problem.weights is None else problem.weights / problem.weights.max()
    groups: list[tuple[str, np.ndarray, tuple[str, ...]]] = []
    for confound, columns in zip(plan.confounds, encoder.partitions, strict=True):
        part = design[list(columns)]
        if confound.categories:
            codes = part.argmax(axis=0)
            refuse_small_categories(confound.name, confound.categories, codes, weights, limit=limit)
            groups.append((confound.name, codes, confound.categories))
        else:
            refuse_lone_value(confound.name, rows, part[0], weights, limit=limit)
    for at, (name, codes, categories) in enumerate(groups):
        for other, others, kinds in groups[at + 1 :]:
            cells = effective_numbers(codes * len(kinds) + others, weights)
            few = np.flatnonzero((cells > 0) & (cells < plan.smallest_group))
            if len(few):
                one, two = divmod(int(few[0]), len(kinds))
                raise InputError(
                    f"Fewer than {plan.smallest_group} participants have {name} {categories[one]!r} and "
                    f"{other} {kinds[two]!r}."
                )
    seen = np.where(problem.observations.observed, 1.0, np.nan)
    named = encoder.categories()
    members = design[list(named)].T if named else np.ones((problem.n, 1))
    labels = [*named.values()] or ["all"]
    few_said = few_answers(seen, [item.name for item in plan.items], members, labels, limit=limit)
    if few_said is not None:
        raise InputError(few_said.message)
    if any(block.sparse for block in problem.blocks()):
        raise InputError("More than half of the answers are missing.")
