"""Every page that a command writes: its width at three sizes, both themes, and accessibility."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from icqf.cli.program import cli
from icqf.datasets import demo_paths
from looking import faults_of, show

pytestmark = [pytest.mark.slow, pytest.mark.long]

WIDER = "return document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The HTML pages of all commands, from the demo's first items."""
    place = tmp_path_factory.mktemp("pages")

    def run(*arguments):
        done = CliRunner().invoke(cli, [*map(str, arguments), "--quiet"])
        assert done.exit_code == 0, (arguments, done.output)

    answers, codebook = demo_paths()
    table = pd.read_csv(answers, dtype={"child_id": str})
    items = [name for name in table if name.startswith("q0")][:24]
    few = table[["child_id", "age", "sex", *items]]
    few.to_csv(place / "few.csv", index=False)
    few.head(300).to_csv(place / "first.csv", index=False)
    known = pd.read_csv(codebook).set_index("name").loc[items].reset_index()
    known.assign(instrument=np.repeat(["A", "B"], 12)).to_csv(place / "two.csv", index=False)
    known.to_csv(place / "one.csv", index=False)
    twice = pd.concat([few.assign(month=1), few.assign(month=2)])
    twice.to_csv(place / "twice.csv", index=False)
    few.assign(ill=(table["age"] > 12).astype(int)).to_csv(place / "labelled.csv", index=False)

    fit = ("--codebook", place / "one.csv", "--n-components", "2", "--beta", "0.1", "--n-init", "1")
    quick = ("--bootstrap", "0", "--no-figures")
    confounds = ("--confounds", "age", "sex")
    run("fit", place / "few.csv", *fit, *confounds, *quick, "--out", place / "fit")
    run("fit", place / "first.csv", *fit, *confounds, *quick, "--out", place / "other")
    model = place / "fit" / "model.icqf"
    run("invariance", model, place / "few.csv", "--by", "sex", "--permutations", "19", "--bootstrap", "2",
        "--out", place / "groups")  # fmt: skip
    run("plan", model, "--repeats", "2", "--out", place / "plan")
    run("norms", place / "fit", place / "few.csv", "--by", "age", "--out", place / "norms")
    run("shortform", model, place / "few.csv", "--max-items", "8", "--out", place / "form")
    run("person", model, place / "few.csv", "--id", few["child_id"][0], "--out", place / "person.html")
    run("pool", model, place / "other" / "model.icqf", "--out", place / "pooled.icqf")
    battery = ("--codebook", place / "two.csv", "--n-components", "1", "--beta", "0.1", "--n-init", "1")
    run("batch", place / "few.csv", *battery, *quick, "--out", place / "batch")
    run("meta", place / "few.csv", *battery, "--n-meta", "1", "--out", place / "meta")
    run(
        "stability",
        place / "few.csv",
        *fit,
        "--methods",
        "icqf",
        "--splits",
        "3",
        "--out",
        place / "stability",
    )
    run("diagnosis", place / "labelled.csv", *fit, "--labels", "ill", "--methods", "icqf", "--splits", "3",
        "--out", place / "diagnosis")  # fmt: skip
    run("longitudinal", place / "twice.csv", *fit, "--age", "month", "--permutations", "19",
        "--bootstrap", "0", "--out", place / "visits")  # fmt: skip
    return sorted(place.rglob("*.html"))


def test_every_page_fits_and_is_accessible(browser, pages, axe):
    kinds = {page.parent.name if page.parent.name != "A" else "batch/A" for page in pages}
    assert {
        "fit",
        "groups",
        "plan",
        "norms",
        "form",
        "batch",
        "meta",
        "stability",
        "diagnosis",
        "visits",
    } <= kinds
    found = []
    for page in pages:
        for width in (375, 768, 1440):
            show(browser, page, width=width, opened=True)
            if browser.execute_script(WIDER):
                found.append(f"{page.parent.name}/{page.name}: wider than {width}")
        for dark in (False, True):
            show(browser, page, dark=dark, opened=True)
            found += [f"{page.parent.name}/{page.name}: {fault}" for fault in faults_of(browser, axe)]
    assert found == []
