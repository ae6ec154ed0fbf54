"""Many fits at once, on a GPU

A search for the number of factors is a long list of fits that share their answers: one for each number of
factors, penalty and fold. `engine="torch"` (`pip install "icqf[gpu]"`) solves them together on a GPU. It
makes the same choice as the default engine, with errors that agree to three digits or more. Without a GPU,
as for this page, it warns and the default engine does the work.

The figure plots the errors on hidden answers of both engines on top of each other.
[Engines](../docs/engines.md) shows how much time a GPU saves, and when it does not.
"""

from matplotlib.figure import Figure

from icqf import ICQF, ICQFCV
from icqf.datasets import load_bfi

study = load_bfi().take(range(600)).with_confounds(None)
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
axes = figure.add_subplot()
for engine, style in (("local", "o-"), ("torch", "x")):
    settings = {"n_components": range(3, 8), "betas": [0.01], "n_splits": 5, "random_state": 0}
    search = ICQFCV(ICQF(n_init=1), engine=engine, **settings).fit(study)
    errors = search.errors_.set_index("n_components")["error"]
    print(f"{engine}: {search.n_components_} factors, error {errors.min():.3f}")
    axes.plot(errors.index, errors, style, label=engine, markersize=9)
axes.set_xticks(errors.index)
axes.set_xlabel("number of factors")
axes.set_ylabel("squared error of hidden answers")
axes.legend(title="engine", frameon=False)
figure.savefig("gpu.png", dpi=110)
