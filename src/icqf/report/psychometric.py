"""The section on reliability and item statistics, as reviewers ask for them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from icqf.data.confounds import INTERCEPT
from icqf.errors import shown_p
from icqf.evaluation import Psychometry
from icqf.models.summary import Summary
from icqf.report import words
from icqf.report.psychometric_parts import ItemFigures, Psychometrics, ResidualPair, ScaleRow, VarianceRow


def psychometric_section(
    found: Psychometry,
    summary: Summary,
    names: list[str],
    keys: list[str],
    *,
    fa_loadings: pd.DataFrame | None = None,
    fa_communalities: pd.Series | None = None,
) -> Psychometrics:
    """The section; `names` and `keys` are those of the factors in their order, and `fa_loadings` those of
    their counterparts in the factor analysis."""
    scales = tuple(
        ScaleRow(
            key="" if row["kind"] == "subscale" else keys[int(row["place"])],
            name=str(row["name"]) if row["kind"] == "subscale" else names[int(row["place"])],
            n_items=int(row["n_items"]),
            **{end: float(row[end]) for end in _ENDS},
        )
        for row in found.scales.to_dict("records")
    )
    standardised = found.standardised.to_numpy(dtype=float)
    strongest = np.nan_to_num(standardised).argmax(axis=1)
    rivals = None if fa_loadings is None else fa_loadings.to_numpy(dtype=float)
    explained = summary.items["variance_explained"].to_numpy()
    items = []
    for j, name in enumerate(found.items.index):
        skew, kurtosis, rest = (float(found.items[column].iloc[j]) for column in found.items)
        r = int(strongest[j])
        items.append(
            ItemFigures(
                name=str(name),
                skew=skew,
                kurtosis=kurtosis,
                item_rest=rest,
                loading=float(standardised[j, r]),
                communality=float(explained[j]),
                uniqueness=1 - float(explained[j]),
                fa_loading=None if rivals is None else float(rivals[j, r]),
                fa_communality=None if fa_communalities is None else float(fa_communalities.iloc[j]),
            )
        )
    return Psychometrics(
        words=tuple(_words(found)),
        kmo=found.kmo.overall,
        bartlett=found.bartlett.chi2,
        bartlett_dof=found.bartlett.dof,
        bartlett_p=found.bartlett.p_value,
        scales=scales,
        items=tuple(items),
        variance=_variance(summary, names, keys),
        residuals=tuple(ResidualPair(*row) for row in found.residuals.itertuples(index=False)),
    )


_ENDS = ("alpha", "alpha_low", "alpha_high", "omega", "omega_low", "omega_high")


def _variance(summary: Summary, names: list[str], keys: list[str]) -> tuple[VarianceRow, ...]:
    """Factors, confounds and what is left: together all of the variance."""
    shares = summary.factors["variance_explained"].tolist()
    parts = list(zip(keys, names, shares, strict=True))
    confounds = summary.confounds.drop(index=INTERCEPT, errors="ignore")["variance_explained"]
    if len(confounds):
        parts.append(("", "Confounds", float(confounds.sum())))
    parts.append(("", "Not explained", 1 - float(summary.variance_explained)))
    sums = np.cumsum([share for _, _, share in parts])
    return tuple(
        VarianceRow(key, name, float(share), float(total))
        for (key, name, share), total in zip(parts, sums, strict=True)
    )


def _words(found: Psychometry) -> list[str]:
    said = []
    if np.isfinite(found.kmo.overall):
        enough = "enough for factors" if round(found.kmo.overall, 2) >= 0.6 else "little for factors"
        p = shown_p(found.bartlett.p_value, equals="= ")
        said.append(
            f"The items share {enough}: the Kaiser-Meyer-Olkin measure is {words.number(found.kmo.overall)} "
            f"(0.6 or more is usually asked for), and Bartlett's test of sphericity gives "
            f"{found.bartlett.chi2:.1f} on {found.bartlett.dof} degrees of freedom (p {p})."
        )
    else:
        said.append(
            "The correlations of the items are not positive definite, so the Kaiser-Meyer-Olkin measure and "
            "Bartlett's test do not exist."
        )
    said.append(
        "α and ω describe the sum of the items of a scale, not the scores of this model. The interval of α "
        "is Feldt's, that of ω comes from participants drawn again."
    )
    return said
