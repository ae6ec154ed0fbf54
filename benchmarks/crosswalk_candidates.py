"""How to predict the sum of one questionnaire from the answers to another: candidates and the rule of choice.

Candidates, from simple to complex:

- sum: regression on the sum of the source, a straight line
- sum, curve: the same, corrected by what it misses at about the same prediction
- factors: regression on the scores of an ICQF of the source (3 factors), corrected likewise
- items: regression on items, drawn towards equal weights, a straight line
- items, curve: the same, corrected likewise
- joint: an ICQF of both questionnaires (4 factors), scores from the source alone, the target's answers
  reconstructed and summed, then corrected likewise

Rule, fixed before the first run: in every study, the root mean squared error of held-out participants is
divided by the lowest of all candidates. The simplest candidate whose mean over studies is within 1 % of the
best mean is chosen, provided that its 90 % intervals hold 87 to 94 % over all studies.

Studies: simulated batteries (graded and yes/no, strong, weak and no relation, 200 and 800 participants), and
halves or pairs of scales of public studies other than those that `icqf reproduce calibration --statement
crosswalk` reports. Half of the participants (at most 1000) are for learning; the others are held out.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd

from icqf import ICQF
from icqf.analyses.crosswalk import Rules
from icqf.datasets import load_bfi, load_help_battery, make_battery
from icqf_experiments.split_studies import psychtools_table

CANDIDATES = ("sum", "sum, curve", "factors", "items", "items, curve", "joint")
LEVEL = 0.9


def simulated():
    """Pairs of simulated questionnaires, answers from 0 to 1."""
    for number, (n, highest, shared) in enumerate(product((400, 1600), (1, 3), (0.0, 0.5, 1.0))):
        made = make_battery(
            n, n_items=(20, 9), n_meta=2, absent=0.0, own=0.6, shared=shared, noise=0.3,
            highest=(highest,), random_state=700 + number,
        )  # fmt: skip
        A, B = (each.answers.to_numpy(float) for each in made.battery.instruments.values())
        yield f"simulated, {n // 2}, 0-{highest}, shared {shared:g}", A / highest, B, (0, highest)


def public():
    """Pairs of scales of public studies."""
    parts = load_help_battery().instruments
    for source, target in (("InDUC", "ADS"), ("SOCRATES", "InDUC"), ("PSS friends", "PSS family")):
        a, b = parts[source], parts[target]
        ids = a.answers.index.intersection(b.answers.index)
        low, high = b.ranges().to_numpy().T
        yield (
            f"HELP {source} to {target}",
            unit(a).loc[ids].to_numpy(),
            b.keyed_answers().loc[ids].to_numpy(),
            (low, high),
        )
    bfi = load_bfi()
    for one, other in (("N", "C"), ("E", "A"), ("N", "O")):
        names = [item.name for item in bfi.items]
        a, b = (bfi.select([name for name in names if name[0] == x]) for x in (one, other))
        yield f"bfi {one} to {other}", unit(a).to_numpy(), b.keyed_answers().to_numpy(), (1, 6)
    spi = psychtools_table("spi")
    items = [name for name in spi if name.startswith("q_")]
    R = spi[items].corr().to_numpy()
    lead = np.argsort(-np.abs(R[items.index("q_578")]))[:20]  # the items most like one about worry
    sign = np.sign(R[items.index("q_578")])
    X = (spi[items].to_numpy(float) - 1) / 5
    X = np.where(sign > 0, X, 1 - X)
    yield "spi halves", X[:, lead[::2]], 5 * X[:, lead[1::2]], (0, 5)


def unit(questionnaire):
    low, high = questionnaire.ranges().to_numpy().T
    return (questionnaire.keyed_answers() - low) / (high - low)


def judge(X, B, ends):
    """Errors and coverage of all candidates in held-out participants."""
    low, high = (np.broadcast_to(np.asarray(end, float), B.shape[1]) for end in ends)
    known = ~np.isnan(B).any(axis=1) & ~np.isnan(X).all(axis=1)
    X, B = X[known], B[known]
    y, order = B.sum(axis=1), np.random.default_rng(1).permutation(len(X))
    half = min(len(X) // 2, 1000)
    learn, test = order[:half], order[half : half + 2000]
    total, ends = np.ones(X.shape[1]), (low.sum(), high.sum())
    Y01 = (B - low) / (high - low)
    made = {}
    model = ICQF(3, item_range=(0, 1), random_state=0, max_iter=200).fit(X[learn])
    F = np.asarray(model.transform(X))
    both = np.hstack([X, Y01])
    joint = ICQF(4, item_range=(0, 1), random_state=0, max_iter=200).fit(both[learn])
    blind = both.copy()
    blind[:, X.shape[1] :] = np.nan
    J = np.asarray(joint.inverse_transform(joint.transform(blind)))[:, X.shape[1] :] @ (high - low)
    J = (J + low.sum())[:, None]
    features = {"sum": X, "factors": F, "items": X, "joint": J}
    for name in CANDIDATES:
        kind = name.split(",")[0]
        Z = features[kind]
        weights = total if Z is X else np.ones(Z.shape[1])
        ranges, items = [(*ends, True)], kind in ("items", "factors")
        fitted = Rules.fit(Z[learn], y[learn, None], ranges, total=weights, items=items)
        (found,), (rule,) = fitted.predict(Z[test], LEVEL), fitted.rules
        value = found.value
        if name not in ("sum", "items"):
            line = rule.intercept + fitted.normal.completed(Z[test])[0] @ rule.weights
            value = np.clip(line + np.interp(line, rule.errors.at, rule.errors.mean), *ends)
        made[name] = {
            "r": np.corrcoef(value, y[test])[0, 1] if value.std() > 0 else 0.0,
            "rmse": np.sqrt(((value - y[test]) ** 2).mean()),
            "held": ((found.low <= y[test]) & (y[test] <= found.high)).mean(),
        }
    return made


def main():
    warnings.simplefilter("ignore")
    rows = []
    for name, *data in (*simulated(), *public()):
        found = judge(*data)
        best = min(each["rmse"] for each in found.values())
        rows += [
            {"study": name, "candidate": c, **each, "ratio": each["rmse"] / best} for c, each in found.items()
        ]
    table = pd.DataFrame(rows)
    for column in ("r", "ratio", "held"):
        print(f"\n{column}")
        wide = table.pivot(index="study", columns="candidate", values=column)[list(CANDIDATES)]
        print(wide.round(3).to_string())
    means = table.groupby("candidate")[["ratio", "held"]].mean().loc[list(CANDIDATES)]
    print("\nmeans\n", means.round(4).to_string())
    good = means[(means["ratio"] <= means["ratio"].min() * 1.01) & means["held"].between(0.87, 0.94)]
    print("\nchosen:", good.index[0] if len(good) else "none")


if __name__ == "__main__":
    main()
