"""Draws the pictures of the README and the docs: `python docs/make_pictures.py`."""

from __future__ import annotations

from pathlib import Path

from icqf import ICQF, plotting
from icqf.datasets import load_demo

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    study = load_demo()
    model = ICQF(8, beta=0.1, item_range=study.ranges()).fit(study.oriented(), confounds=study.confounds)
    ax = plotting.loading_heatmap(model, items=study.items, form="wide")
    ax.figure.savefig(IMAGES / "loadings.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
