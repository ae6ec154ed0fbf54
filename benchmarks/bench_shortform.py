"""Short forms of 1 335 participants x 119 items: 25 items, and the same number with the largest loadings.

What is said about both, cross-validated, is compared with a second simulated study, which had no part in the
model, either.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from _measure import heading, report, run_script
from icqf import ICQF
from icqf.analyses import shortform
from icqf.analyses.short_forms import ModelRecovery, correlation_by_row, top_loading
from icqf.datasets import make_cohort

ITEMS = 25
SECONDS = 240.0  # six searches: one with everybody, and one without each fold


def main() -> None:
    """Print the ratios."""
    heading(f"{ITEMS} of 119 items, 1 335 participants, one thread")
    study, other = (make_cohort("hbn", random_state=seed).questionnaire for seed in (0, 1))
    model = ICQF(8, beta=0.1).fit(study)
    clock = time.process_time()
    form = shortform(model, study, max_items=ITEMS)
    spent = time.process_time() - clock
    print(f"  it took {spent:.1f} s; cross-validated:")
    print(form.factors.to_string(index=False, float_format="{:.3f}".format))
    elsewhere = ModelRecovery.of(model, other)
    forms = {
        "search": [elsewhere.items.index(name) for name in form.items],
        "largest loadings": list(top_loading(elsewhere.shares, ITEMS)),
    }
    said = {"search": form.correlation, "largest loadings": form.curve["top_loading"].iloc[-1]}
    found = {}
    for name, items in forms.items():
        short, asked = elsewhere.exact(items), ~np.isnan(elsewhere.exact(items)).any(axis=0)
        found[name] = correlation_by_row(short[:, asked], elsewhere.wanted[:, asked])
        shown = f"{found[name].mean():.3f} (worst {found[name].min():.3f})"
        print(f"  {name:<17} cross-validated {said[name]:.3f}, another study {shown}")
    inside = []
    whole = elsewhere.complete(forms["search"])
    short, full = elsewhere.exact(forms["search"])[:, whole], elsewhere.wanted[:, whole]
    for r, (_, band) in enumerate(form.bands.groupby("factor", sort=False)):
        low, high = (np.interp(short[r], band["score"], band[end]) for end in ("low", "high"))
        inside.append(((full[r] - short[r] >= low - 1e-9) & (full[r] - short[r] <= high + 1e-9)).mean())
    print(f"  intervals of nine in ten hold {np.mean(inside):.1%} of another study")
    never = (form.curve["top_loading"] / form.curve["correlation"]).max()
    report("0.9 against the mean correlation, cross-validated", 0.9 / form.correlation, 1.0)
    report("0.9 against that of the worst factor", 0.9 / form.worst[1], 1.0)
    report("0.9 against the mean correlation in another study", 0.9 / found["search"].mean(), 1.0)
    report(f"largest loadings against the search, worst of {ITEMS} lengths", float(never), 1.0)
    report(f"time against {SECONDS:g} s", spent / SECONDS, 1.0)


if __name__ == "__main__":
    run_script(main)
