"""Repeated visits: patients' mood at detoxification, and two years later

470 patients were asked about their mood when they entered detoxification and 6, 12, 18 and 24 months later;
of 2350 possible visits 1472 took place. The factors are the same at every visit, and every patient has scores
at each: their course is change. Low mood falls most in the first half year.

The figure shows the mean scores and the middle half of the patients. [Repeated
visits](../docs/longitudinal.md) tests whether the factors are the same.
"""

from icqf.datasets import load_help_visits
from icqf.models import LongitudinalICQF
from icqf.plotting import score_courses
from icqf.workflow.longitudinal import score_summary

visits = load_help_visits()
model = LongitudinalICQF(2, participant="patient", age="month", n_init=1)
scores = model.fit_transform(visits)
print(f"{model.gaps_}\n")
table = score_summary(scores, model.bins_.labels)
print("Scores at each month:")
print(table.round(2))

axes = score_courses(table, places=model.bins_.places, age="month")
axes.figure.savefig("repeated_visits.png", dpi=110, bbox_inches="tight")
