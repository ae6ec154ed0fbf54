"""How many factors there are, and how certain that is."""

from __future__ import annotations

from typing import Any

import pandas as pd

from icqf.analyses import factor_lineage
from icqf.baselines.retention import RuleTable
from icqf.data.settings import RULES
from icqf.plotting import cv_curve, scree
from icqf.report import words
from icqf.report.analysis import Analysis
from icqf.report.blocks import Bar, Block, Cell, Column, Details, Grid, Group, Row, Section
from icqf.report.sections import report_section
from icqf.report.svg import drawn
from icqf.report.words import Report, Values

_RARE = 0.005  # share below which a number of factors is not mentioned
_TOP = 3  # items that tell what another model's factor is


@report_section("count", "How many factors, and how certain", title="How many factors")
def count(report: Report) -> list[Block]:
    """Why this number: errors of hidden answers, parallel analysis, other samples, halves, and rules."""
    found = report.count
    curves = [part for part in (_errors(found), _eigenvalues(found)) if part]
    tables = [part for part in (_shares(found), _halves(found), *_lineages(report)) if part]
    groups = [Group(parts) for parts in (curves, tables) if parts]
    return [*found.words, *groups, *([_rules(found)] if found.rules else [])]


def _errors(found: Values) -> list[Block]:
    if not found.candidates:
        return []
    rows = [
        Row(
            [
                str(each.n_components),
                f"{each.beta:g}",
                words.number(each.error, 4),
                words.number(each.standard_error, 4),
                "chosen" if each.chosen else "",
            ],
            "chosen" if each.chosen else "",
        )
        for each in found.candidates
    ]
    head = ["Factors", "β", "Error", "Standard error", Column("Chosen", numeric=False)]
    table = Grid("Cross-validated errors", head, rows, quiet=True)
    if len(rows) < 2:
        return [table]
    data, chosen = words.table_of(found.candidates), (found.n_components, found.beta)
    below: list[Block] = [table]
    if data["beta"].nunique() > 1:
        every = drawn(
            "cv-all",
            lambda ax: cv_curve(data, chosen=chosen, ax=ax),
            "Error of hidden answers for each number of factors and penalty",
            "The same for every penalty β that was tried.",
        )
        below = [every, table]
    curve = drawn(
        "cv",
        lambda ax: cv_curve(data, chosen=chosen, every=False, ax=ax),
        "Error of hidden answers for each number of factors",
        "Squared error of answers that were hidden from the model, for each number of factors at its best "
        "penalty β, with standard errors. Lower is better; the choice is ringed.",
    )
    return [curve, Details("All penalties, and the table behind this figure", below, title="All penalties")]


def _eigenvalues(found: Values) -> list[Block]:
    if not found.eigenvalues or found.parallel is None:
        return []
    rows = [
        [str(each.factor), words.number(each.observed), words.number(each.unrelated)]
        for each in found.eigenvalues
    ]
    table = Grid("Eigenvalues", ["Factor", "Eigenvalue", "Unrelated answers"], rows, quiet=True, scroll=False)
    data = words.eigenvalue_table(found)
    curve = drawn(
        "scree",
        lambda ax: scree(data, kept=found.parallel, ax=ax),
        "Eigenvalues compared with those of unrelated answers",
        "Parallel analysis: factors are kept while their eigenvalue is above that of unrelated answers.",
    )
    return [curve, Details("Table behind this figure", [table], title="Parallel analysis")]


def _shares(found: Values) -> Grid | None:
    if len(found.shares) < 2:
        return None
    folds = dict(found.fold_shares)
    rows = [
        [str(k), Cell(drawing=Bar(share)), words.percent(share), words.percent(folds.get(k, 0.0))]
        for k, share in found.shares
        if share >= _RARE or folds.get(k, 0.0) >= _RARE
    ]
    head = ["Factors", Column("Share", drawn=True, quiet=True), "Other samples", "Other folds"]
    return Grid(
        "Would another sample, or other folds, choose the same?", head, rows, kind="bars", scroll=False
    )


def _lineages(report: Report) -> list[Grid]:
    """How the factors correspond to those of the numbers that predict as well."""
    return [
        Grid(
            f"How the factors correspond to those of a model with {other}",
            ["Factor", f"Of {other}", Column("Its items", numeric=False), "Correlation"],
            [
                [
                    report.model.factors[link.factor - 1].name,
                    str(link.other),
                    link.top,
                    words.number(link.correlation),
                ]
                for link in links
            ],
            scroll=False,
        )
        for other, links in report.count.level
    ]


def _halves(found: Values) -> Grid | None:
    if not found.halves:
        return None
    rows = [
        [
            str(each.n_components),
            Cell(drawing=_bar(each)),
            words.number(each.agreement),
            f"{words.number(each.low)} to {words.number(each.high)}",
        ]
        for each in found.halves
    ]
    head = [
        *("Factors", Column("Agreement", drawn=True, quiet=True), "Agreement"),
        Column("10th to 90th percentile", numeric=True),
    ]
    caption = "Would a second study find the same factors? Agreement between halves of the sample"
    return Grid(caption, head, rows, kind="bars", scroll=False)


def _bar(each: Values) -> Bar:
    """An agreement with its interval; what lies below 0 is not drawn."""
    share, low, high = (
        value if value is not None and value > 0 else 0.0 for value in (each.agreement, each.low, each.high)
    )
    return Bar(share, low, high)


def _rules(found: Values) -> Section:
    title = "Rules for the number of factors"
    rows = [
        [
            each.rule,
            words.LONG_DASH if each.n_components is None else str(each.n_components),
            each.reason,
            each.counts,
            each.reference,
        ]
        for each in found.rules
    ]
    head = ["Rule", Column("Factors", numeric=True), "Why", "What it counts", "Published by"]
    return Section(title, [*found.rules_words, Grid(title, head, rows, quiet=True)])


def count_values(analysis: Analysis) -> Values:
    """The choice with everything behind it."""
    model, search, parallel, rules = analysis.model, analysis.search, analysis.parallel, analysis.rules
    k, beta = len(model.components_), float(model.beta)
    kept = None if parallel is None else parallel.n_components
    found = Values(
        words=(),
        n_components=k,
        beta=beta,
        chosen_by="given",
        **dict.fromkeys(("candidates", "shares", "fold_shares", "level", "halves"), ()),
        parallel=kept,
        eigenvalues=(),
        rules=() if rules is None else _rule_rows(rules),
        rules_words=() if rules is None else rules.explanation,
    )
    if search is not None:
        found.chosen_by = f"cross-validation, rule {search.rule}"
        found.candidates = words.records(search.errors_[["n_components", "beta", "error", "standard_error"]])
        for each in found.candidates:
            each.chosen = (each.n_components, each.beta) == (k, beta)
        found.shares, found.fold_shares = (
            tuple((int(k), float(share)) for k, share in choice.by_k().items())
            for choice in (search.sample_choice_, search.choice_)
        )
        found.level = tuple((other, _links(model, loadings)) for other, loadings in search.level_.items())
        if search.stability_ is not None:
            found.halves = words.records(search.stability_[["n_components", "agreement", "low", "high"]])
    if parallel is not None:
        first = parallel.curve.head(max(10, int(1.5 * parallel.n_components) + 2))
        names = {"n_components": "factor", "eigenvalue": "observed", "random_eigenvalue": "unrelated"}
        found.eigenvalues = words.records(first[[*names]].rename(columns=names))
    found.words = tuple(_words(found, search))
    return found


def _links(model: Any, other: pd.DataFrame) -> tuple[Values, ...]:
    """Which factors of a model correspond to which of another one, with the other's items."""
    own = model.weighted_loadings_
    smaller = own.shape[1] < other.shape[1]
    found = []
    for row in words.records(factor_lineage([own, other] if smaller else [other, own])):
        mine, theirs = (row.factor, row.next_factor) if smaller else (row.next_factor, row.factor)
        top = other.iloc[:, theirs - 1].sort_values(ascending=False, kind="stable").index[:_TOP]
        named = words.joined(list(map(str, top)))
        found.append(Values(factor=mine, other=theirs, top=named, correlation=row.correlation))
    return tuple(sorted(found, key=lambda link: (link.factor, link.other)))


def _rule_rows(rules: RuleTable) -> tuple[Values, ...]:
    """The result of each rule; no number where it could not be run."""
    table = rules.table
    numbers = [None if pd.isna(k) else int(k) for k in table["n_components"]]
    return words.records(table.assign(n_components=pd.Series(numbers, dtype=object)))


def _words(found: Values, search: Any) -> list[str]:
    """The sentences of the section; the first is also part of the headline."""
    k, parallel = found.n_components, found.parallel
    if search is None:
        sentences = [f"The number of factors ({k}) was set in advance, not chosen from these answers."]
    else:
        sentences = [
            f"Cross-validation chose {words.count_of(k, 'factor')}; {in_other_samples(found)}.",
            f"This number {RULES.load(search.rule).description}.",
            "With another seed, which assigns the same answers to other folds, the same number would be "
            f"chosen in {words.percent(dict(found.fold_shares).get(k, 0.0))} of cases.",
        ]
        if found.level:
            numbers = words.joined([str(other) for other, _ in found.level])
            sentences.append(
                f"{numbers} {'factors predict' if len(found.level) == 1 else 'factors each predict'} hidden "
                f"answers as well as {k} (the errors differ by less than the standard error of the "
                "difference): these data cannot decide between them."
            )
    if found.beta == 0:
        sentences.append(
            "β = 0 means that there is no penalty: scores and loadings are not shrunk towards 0 and are "
            "limited only by their bounds."
        )
        if len({each.beta for each in found.candidates}) > 1:
            sentences.append("With this number of factors, no penalty tried predicted hidden answers better.")
    if parallel is not None:
        same = "the same number" if parallel == k else words.count_of(parallel, "factor")
        sentences.append(
            f"Parallel analysis, the usual rule in factor analysis, would keep {same}. It keeps factors that "
            "are stronger than those of unrelated answers, which is a different criterion: in a large sample "
            "even small factors pass it."
        )
    return sentences


def in_other_samples(found: Values) -> str:
    """What another sample would choose, as a clause."""
    k, shares = found.n_components, dict(found.shares)
    often = [(other, share) for other, share in shares.items() if other != k and share >= _RARE]
    others = [f"{other} in {words.percent(share)}" for other, share in often[:3]]
    also = f" ({words.joined(others)})" if others else ""
    return (
        f"another sample of this size would be expected to choose the same number in "
        f"{words.percent(shares.get(k, 0.0))} of cases{also}"
    )


def at_the_edge(found: Values) -> list[str]:
    """Cautions for a choice at the edge of the candidates."""
    sentences = []
    tried = sorted({each.n_components for each in found.candidates})
    if len(tried) > 1 and found.n_components in (tried[0], tried[-1]):
        sentences.append(
            f"The number of factors is at the edge of those tried ({tried[0]} to {tried[-1]}); try a wider "
            "range before relying on it."
        )
    betas = sorted({each.beta for each in found.candidates})
    if len(betas) > 1 and found.beta == betas[-1]:
        sentences.append(
            f"The penalty is the strongest of those tried (β up to {betas[-1]:g}); try stronger ones "
            "before relying on it."
        )
    return sentences
