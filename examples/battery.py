"""A battery: factors across seven questionnaires

Patients of the HELP study answered several questionnaires: quality of life (SF-36), mood
(CES-D), dependence (ADS), consequences (InDUC), support by friends and family (PSS), readiness to change
(SOCRATES). Each is factorized separately, and then the joined scores are, which gives meta-factors behind
the factors of all questionnaires. A patient who did not get one of them is scored from the others.

[Batteries](../docs/battery.md) discusses this example in full, and when the second level is worthwhile.
"""

from icqf import ICQF, ICQFCV
from icqf.datasets import load_help_battery
from icqf.models import MetaICQF
from icqf.plotting import three_levels

battery = load_help_battery()
each = ICQFCV(n_components=range(1, 7), betas=[0.1], n_splits=5, random_state=0)
model = MetaICQF(each, meta_estimator=ICQF(3, beta=0.05, item_weight="variance")).fit(battery)
for name, questionnaire in battery.instruments.items():
    k = len(model.instruments_[name].components_)
    print(f"{name}: {questionnaire.n_items} items, {questionnaire.n_participants} patients; factors: {k}")
print(f"\nWhat each meta-factor adds to the factors:\n{model.loadings_.round(2)}")

only_drinking = battery.instruments["ADS"].take([1, 3, 4])
print(f"\nThree patients of whom only the ADS is known:\n{model.transform({'ADS': only_drinking}).round(2)}")

axes = three_levels(model.loadings_, model.top_items(), names=["Distress", "Drinking", "No support"])
axes.figure.savefig("battery.png", dpi=110)
