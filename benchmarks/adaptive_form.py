"""How many questions an adaptive form saves at equal error, and whether its intervals hold the full score.

Models, short forms and adaptive forms are made in one half of a study, and tried on participants of the
other half who answered the whole form: one question at a time until every interval is at most so wide, and
fixed forms of every length. The error is the root mean square difference from the full form's scores.
Simulated studies have four factors and 32 items with four answers; noise is the standard deviation of the
answers' errors in steps, and the error is also given against the true scores.
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from icqf import ICQF
from icqf.analyses import adaptive_form, shortform
from icqf.analyses.short_forms import reduced_model
from icqf.datasets import load_bfi, load_demo, load_help, load_phq9

STUDIES = {  # factors, longest form
    "bfi": (load_bfi, 5, 15),
    "demo": (load_demo, 5, 20),
    "phq9": (load_phq9, 2, 6),
    "help": (load_help, 4, 20),
}
NOISES = {"strong signal": 0.5, "weak signal": 1.2}
WIDTHS = (0.2, 0.3, 0.4, 0.5)
MOST, NEW = 1000, 120  # participants of the fit, and new ones


def simulated(noise: float):
    """Answers of two samples, and the true scores of the second."""
    rng = np.random.default_rng([28, int(10 * noise)])
    loadings = np.where(np.arange(32) % 4 == np.arange(4)[:, None], rng.uniform(1.2, 2.7, 32), 0)
    loadings += np.where(rng.random((4, 32)) < 0.08, 0.6, 0)
    scores = np.maximum(rng.random((MOST + NEW, 4)) * 1.5 - 0.5, 0)
    answers = np.rint(np.clip(scores @ loadings + noise * rng.standard_normal((MOST + NEW, 32)), 0, 3))
    return answers[:MOST], answers[MOST:], scores[MOST:]


def error(found, wanted) -> float:
    """Root mean square difference."""
    return float(np.sqrt(np.nanmean((np.asarray(found) - wanted) ** 2)))


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    head = "study, width: asked | error, adaptive | fixed form of that length | fixed form with that error"
    print(f"{head} | coverage (scores above 0.1) | asked all")
    for name in sys.argv[1:] or (*STUDIES, *NOISES):
        truth = None
        if name in STUDIES:
            load, k, longest = STUDIES[name]
            study = load()
            order = np.random.default_rng(28).permutation(study.n_participants)
            half = len(order) // 2
            old, new = study.take(np.sort(order[:half][:MOST])), study.take(np.sort(order[half:]))
            model = ICQF(k, smallest_category=1, random_state=0).fit(old)
        else:
            k, longest = 4, 16
            old, new, truth = simulated(NOISES[name])
            model = ICQF(k, item_range=(0, 3), random_state=0).fit(old)
        form = shortform(model, old, max_items=longest)
        if name in STUDIES:
            whole = new.select(form.items).answers.notna().all(axis=1).to_numpy()
            new = new.take(np.flatnonzero(whole)[:NEW])
        full = model.transform(new)
        fixed, chosen = [], []
        for added, dropped in form.curve[["added", "dropped"]].itertuples(index=False):
            chosen = [each for each in chosen if each not in dropped.split("; ")]
            chosen += [each for each in added.split("; ") if each]
            short = reduced_model(model, chosen)
            part = (
                new.select(chosen)
                if name in STUDIES
                else new[:, [int(item.removeprefix("item")) - 1 for item in short.item_range_.index]]
            )
            fixed.append(error(short.transform(part), full))
        lengths, adaptive = np.arange(1, len(fixed) + 1), adaptive_form(model, form.items)
        asked_of = new if name in STUDIES else new[:, [int(x.removeprefix("item")) - 1 for x in form.items]]
        for width in WIDTHS:
            asked, names = adaptive.ask(asked_of, width=width), model.get_feature_names_out()
            mean, low, high = (
                asked[[f"{x}{end}" for x in names]].to_numpy() for end in ("", "_low", "_high")
            )
            inside = (full >= low - 0.005) & (full <= high + 0.005)
            number, mine = asked["n_asked"].mean(), error(mean, full)
            smallest = np.minimum.accumulate(fixed)
            same = np.interp(-mine, -smallest, lengths) if mine > smallest[-1] else np.inf
            longer = f"{same:.1f}" if np.isfinite(same) else f"more than {len(fixed)}"
            own = ""
            if truth is not None:
                match = [int(np.argmax(np.corrcoef(row, truth.T)[0, 1:])) for row in full.T]
                against = (error(mean, truth[:, match]), error(full, truth[:, match]))
                own = f" | against the truth {against[0]:.3f} (full form {against[1]:.3f})"
            print(
                f"{name}, {width}: {number:.1f} | {mine:.3f} | {np.interp(number, lengths, fixed):.3f} | "
                f"{longer} | {inside.mean():.3f} ({inside[full > 0.1].mean():.3f}) | "
                f"{(asked['n_asked'] == len(form.items)).mean():.2f}{own}",
                flush=True,
            )


if __name__ == "__main__":
    main()
