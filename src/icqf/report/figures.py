"""The drawings of a report, from its tree."""

from __future__ import annotations

import numpy as np
import pandas as pd

from icqf.plotting import convergence, cv_curve, scree, split_tree
from icqf.plotting.loadings import grouped_order
from icqf.report.gallery import eigenvalue_table
from icqf.report.schema import Report
from icqf.report.svg import svg


def figures(report: Report) -> dict[str, str]:
    """All figures that need drawing, by name; those without data are left out."""
    drawn: dict[str, str] = {}
    count = report.count
    if len(count.candidates) > 1:
        table = pd.DataFrame([vars(candidate) for candidate in count.candidates])
        chosen = (count.n_components, count.beta)
        drawn["cv"] = svg("cv", lambda ax: cv_curve(table, chosen=chosen, every=False, ax=ax))
        if table["beta"].nunique() > 1:
            drawn["cv-all"] = svg("cv-all", lambda ax: cv_curve(table, chosen=chosen, ax=ax))
    if count.eigenvalues and count.parallel is not None:
        curve = eigenvalue_table(report)
        drawn["scree"] = svg("scree", lambda ax: scree(curve, kept=count.parallel, ax=ax))
    if report.fit.trace:
        trace, tol = pd.DataFrame({"step": report.fit.trace}), report.fit.tol
        drawn["convergence"] = svg(
            "convergence", lambda ax: convergence(trace, tol=tol, ax=ax), size=(4.7, 2.6)
        )
    if report.splits:
        links, names = pd.DataFrame([vars(split) for split in report.splits]), None
        largest = max(report.models, key=lambda view: view.n_components)
        if largest is report.model:
            names = [factor.name.replace("$", r"\$") for factor in largest.factors]  # no formula begins
        size = (5.4, 0.38 * largest.n_components + 1.0)
        drawn["splits"] = svg("splits", lambda ax: split_tree(links, names=names, ax=ax), size=size)
    return drawn


def item_groups(report: Report) -> tuple[list[int], list[tuple[str, int, int]]]:
    """Order in which items are shown (by subscale, then strongest factor), and where each subscale stands."""
    shares = np.array([[loading.share for loading in factor.loadings] for factor in report.model.factors]).T
    return grouped_order([row.subscale for row in report.items], shares)
