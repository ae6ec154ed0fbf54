"""Repeated visits: what an answer means at detoxification, and two years later

470 patients were asked about their mood when they entered detoxification and 6, 12, 18 and 24 months later;
of 2350 possible visits 1472 took place. Each patient has one score per factor for all visits, and each
item's loading may change over the months. "I felt depressed" distinguishes patients less at
detoxification, when nearly all felt that way, than later.

The figure shows the strongest items of the first factor with intervals from resampled patients. [Repeated
visits](../docs/longitudinal.md) tests which changes exceed chance.
"""

from icqf.datasets import load_help_visits
from icqf.models import LongitudinalICQF
from icqf.plotting import loading_courses

visits = load_help_visits()
model = LongitudinalICQF(2, participant="patient", age="month", smoothness=10, n_init=1).fit(visits)
print(f"{model.gaps_}\n")
print("Loadings of 'I felt depressed' (0 to 3) at each month:")
print(model.loadings_.loc["F1F"].round(2))

courses = model.courses(visits, n_resamples=10)  # 100 for a paper
axes = loading_courses(courses, "factor1", ranges=model.item_range_, items=visits.item_table(), age="month")
axes.figure.savefig("repeated_visits.png", dpi=110, bbox_inches="tight")
