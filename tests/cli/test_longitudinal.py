"""``icqf longitudinal``: a file of visits becomes tables, figures, a page and a model that scores visits."""

import json

import numpy as np
import pandas as pd
import pytest

from hostile.model_files import contents, sealed
from icqf.datasets import make_longitudinal
from icqf.engines.journal import Journal
from icqf.models import LongitudinalICQF

QUICK = ("--n-components", "2", "--beta", "0.1", "--smoothness", "1")
SHORT = ("--bootstrap", "0", "--permutations", "0", "--no-report")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A file of visits; not to be written to."""
    folder = tmp_path_factory.mktemp("visits")
    data = make_longitudinal(n=120, n_items=9, n_bins=3, k=2, unanswered=0.05, random_state=1)
    data.visits.to_csv(folder / "visits.csv", index=False)
    items = pd.DataFrame({"name": data.visits.columns[2:], "min": 0, "max": 4})
    items.assign(wording=[f"Question {j + 1}" for j in range(9)]).to_csv(folder / "items.csv", index=False)
    return folder / "visits.csv"


@pytest.fixture(scope="module")
def fitted(run, visits, tmp_path_factory):
    """A folder of results with everything in it, and what was said; not to be written to."""
    out = tmp_path_factory.mktemp("fitted") / "results"
    book = ("--codebook", visits.with_name("items.csv"))
    words = ("--bootstrap", "5", "--permutations", "99", "--out", out)
    result = run("longitudinal", visits, *book, *QUICK, *words)
    assert result.exit_code == 0, result.stderr
    return out, result


def test_visits_without_an_id_are_refused_with_what_to_add(run, visits, tmp_path):
    frame = pd.read_csv(visits, dtype={"participant": object})
    frame.loc[[3, 5], "participant"] = None
    frame.to_csv(tmp_path / "visits.csv", index=False)
    words = ("longitudinal", tmp_path / "visits.csv", *QUICK, *SHORT, "--out", tmp_path / "results")
    refused = run(*words)
    assert refused.exit_code == 2 and "Fill it in, or add --without-id leave-out." in refused.stderr
    assert run(*words, "--without-id", "leave-out").exit_code == 0


def test_everything_is_written_and_said(fitted, visits):
    out, result = fitted
    names = sorted(path.name for path in out.iterdir())
    assert names == [
        *("config.toml", "confound_loadings.csv", "courses.png", "factor1.png", "factor2.png"),
        *(
            "factor_changes.csv",
            "gaps.csv",
            "item_changes.csv",
            "level_changes.csv",
            "loadings.csv",
            "model.icqf",
            "provenance.json",
            "report.html",
        ),
        *("report.md", "scores.csv"),
    ]
    frame = pd.read_csv(visits)
    open_answers = int(frame.iloc[:, 2:].isna().sum().sum())
    assert f"120 participants in 3 bins: {len(frame)} of 360 possible visits took place" in result.stdout
    assert f"{open_answers} of the {9 * len(frame)} answers at those visits are missing" in result.stdout
    assert "Fitted with your settings: 2 factors, beta 0.1, smoothness 1." in result.stdout
    assert "factor1: " in result.stdout
    scores = pd.read_csv(out / "scores.csv")
    assert list(scores) == ["participant", "age", "factor1", "factor2"] and len(scores) == len(frame)
    loadings = pd.read_csv(out / "loadings.csv")
    assert list(loadings) == ["item", "factor", "bin", "age", "loading", "low", "high"]
    assert len(loadings) == 9 * 2 * 3
    page = (out / "report.html").read_text(encoding="utf-8")
    assert (
        "gaps by design or drop-out" in page
        and "gaps by non-response" in page
        and page.count("data:image/png") == 3
    )
    account = json.loads((out / "provenance.json").read_text())
    assert account["bins"] == ["0", "1", "2"] and account["model"]["smoothness"] == 1
    assert str(visits.parent) not in json.dumps(account) and "P0001" not in page + json.dumps(account)


def test_means_of_other_people_are_not_called_change(run, fitted, visits, tmp_path):
    counts = pd.read_csv(visits)["age"].value_counts().sort_index()
    page = (fitted[0] / "report.md").read_text(encoding="utf-8")
    assert f"| participants | {' | '.join(map(str, counts))} |" in page
    frame = pd.read_csv(visits)
    few = frame[(frame["age"] < 2) | (frame["participant"] < "P0081")]
    few.to_csv(tmp_path / "few.csv", index=False)
    words = ("--codebook", visits.with_name("items.csv"), *QUICK, "--bootstrap", 0, "--permutations", 0)
    result = run("longitudinal", tmp_path / "few.csv", *words, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "a mean may differ because other people were seen" in page


def test_the_model_scores_visits_as_the_fit_did_and_any_subset(run, fitted, visits, tmp_path):
    out, _ = fitted
    scored = run("score", out / "model.icqf", visits)
    assert scored.exit_code == 0 and scored.stdout == (out / "scores.csv").read_text()
    pd.read_csv(visits).query("age == 2").to_csv(tmp_path / "last.csv", index=False)
    last = run("score", out / "model.icqf", tmp_path / "last.csv", "--out", tmp_path / "scores.csv")
    assert last.exit_code == 0
    assert len(pd.read_csv(tmp_path / "scores.csv")) == len(pd.read_csv(tmp_path / "last.csv"))
    refused = run("score", out / "model.icqf", visits, "--visit", "age=2")
    assert refused.exit_code == 2 and "--visit does not apply to a model of repeated visits" in refused.stderr
    shown = run("show", out / "model.icqf")
    assert shown.exit_code == 2 and "Use it with icqf score." in shown.stderr


def test_the_config_repeats_the_run(run, fitted, tmp_path):
    out, _ = fitted
    again = run("longitudinal", "--config", out / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    for name in ("scores.csv", "loadings.csv", "item_changes.csv", "model.icqf"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()
    refused = run("fit", "--config", out / "config.toml", "--out", tmp_path / "no")
    assert (
        refused.exit_code == 2 and "There is no option 'age'" in refused.stderr
    ) or "'binning'" in refused.stderr


def test_a_stopped_run_continues_where_it_stopped(run, visits, tmp_path, monkeypatch):
    words = ("longitudinal", visits, "--n-components", "1-2", "--beta", "0.1", "--n-repeats", "1")
    words += ("--n-splits", "3", "--permutations", "99", "--bootstrap", "0", "--no-report")
    whole = run(*words, "--out", tmp_path / "whole")
    assert whole.exit_code == 0, whole.stderr
    assert "Loadings by visit: 3 of 3 fits" in whole.stderr and not list(tmp_path.glob("*.journal"))

    append, calls = Journal.append, []

    def stopped(self, records):
        append(self, records)
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", stopped)
    result = run(*words, "--out", tmp_path / "part")
    monkeypatch.undo()
    assert result.exit_code == 130 and "--resume" in result.stderr and (tmp_path / "part.journal").exists()
    refused = run(*words, "--out", tmp_path / "part")
    assert refused.exit_code == 2 and "Add --resume" in refused.stderr
    again = run(*words, "--out", tmp_path / "part", "--resume")
    assert again.exit_code == 0, again.stderr
    for name in ("scores.csv", "loadings.csv", "cv_smoothness.csv"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "part.journal").exists()


@pytest.mark.parametrize(
    ("spoil", "words", "said"),
    [
        (lambda d: d.drop_duplicates("participant"), (), "Fit one visit by itself with icqf fit --visit"),
        (lambda d: d[d["age"] == 1], (), "has only one value (1)"),
        (lambda d: d.drop(d.index[(d["age"] == 2)][5:]), (), "The bin 2 holds 5 participants"),
        (
            lambda d: d.assign(age=d["age"].where(d.index > 2)),
            (),
            "The age in column 'age' is missing in row 2",
        ),
        (lambda d: pd.concat([d, d.iloc[[4]]]), (), "(row 6 and row"),
        (lambda d: d.iloc[:, :4], (), "The table has 2 items"),
        (lambda d: d.rename(columns={"participant": "zz"}), (), "Name it with --id."),
        (lambda d: d, ("--age", "agee"), "Did you mean 'age'?"),
        (lambda d: d.assign(age=d["age"].map(dict(enumerate("xyz")))), (), "--bins baseline 'year 1'"),
        (lambda d: d, ("--bins", "2", "1", "0"), "--bins must be increasing edges"),
        (lambda d: d, ("--bins", "0", "1"), "--bins must be increasing edges"),
        (lambda d: d, ("--smoothness", "-1"), "--smoothness must be a number of at least 0"),
        (
            lambda d: d,
            ("--item-weight", "variance"),
            "--item-weight 'variance' would give an item different units",
        ),
        (lambda d: d, ("--permutations", "3"), "too few to tell change from chance"),
    ],
)
def test_what_cannot_be_is_said_in_the_words_of_the_command(run, visits, tmp_path, spoil, words, said):
    spoil(pd.read_csv(visits)).to_csv(tmp_path / "bad.csv", index=False)
    result = run("longitudinal", tmp_path / "bad.csv", *QUICK, *SHORT, *words, "--out", tmp_path / "out")
    assert result.exit_code == 2 and said in result.stderr, result.stderr
    assert not (tmp_path / "out").exists()


def test_visits_in_words_have_the_order_that_is_given(run, visits, tmp_path):
    frame = pd.read_csv(visits)
    frame["age"] = frame["age"].map({0: "before", 1: "during", 2: "after"})
    frame.to_csv(tmp_path / "words.csv", index=False)
    words = ("--bins", "before", "during", "after", "--out", tmp_path / "out")
    result = run("longitudinal", tmp_path / "words.csv", *QUICK, *SHORT, *words)
    assert result.exit_code == 0, result.stderr
    assert LongitudinalICQF.load(tmp_path / "out" / "model.icqf").bins_.labels == (
        "before",
        "during",
        "after",
    )


def test_ages_are_cut_into_bins_and_several_visits_in_one_are_said(run, visits, tmp_path):
    frame = pd.read_csv(visits)
    frame["age"] = 8 + 2 * frame["age"] + np.random.default_rng(0).random(len(frame))
    frame.to_csv(tmp_path / "ages.csv", index=False)
    result = run(
        "longitudinal", tmp_path / "ages.csv", *QUICK, *SHORT, "--bins", "2", "--out", tmp_path / "out"
    )
    assert result.exit_code == 0, result.stderr
    assert (
        "their answers are averaged. Choose narrower --bins, or --within-bin first, last or mean."
        in result.stderr
    )


def test_the_first_answer_is_whether_the_factors_are_the_same(run, tmp_path):
    """Everybody's moods are other ones at every visit: the factors can still be the same."""
    rng = np.random.default_rng(0)
    for name, late in (("same", slice(None)), ("other", [0, 1, 5, 6, 7, 2, 3, 4, 8, 9])):
        frames = []
        for age in range(3):
            belongs = np.repeat(np.eye(2), 5, axis=1)[:, late if age == 2 else slice(None)]
            mood = rng.random((120, 2)) ** 1.5
            answers = np.clip(np.rint(4 * mood @ belongs + rng.normal(0, 0.4, (120, 10))), 0, 4) + 0.0
            frame = pd.DataFrame(answers, columns=[f"q{j}" for j in range(10)])
            frames.append(frame.assign(participant=[f"P{i}" for i in range(120)], age=age))
        pd.concat(frames).to_csv(tmp_path / f"{name}.csv", index=False)
    words = ("--n-components", "2", "--beta", "0.1", "--n-repeats", "1", "--bootstrap", "0")
    same = run("longitudinal", tmp_path / "same.csv", *words, "--out", tmp_path / "same")
    assert same.exit_code == 0 and "The factors are the same at every visit" in same.stdout
    other = run("longitudinal", tmp_path / "other.csv", *words, "--out", tmp_path / "other")
    assert "The factors are not the same ones at every visit" in other.stdout and "change." in other.stdout
    page = (tmp_path / "other" / "report.md").read_text(encoding="utf-8")
    assert "its loadings differ between visits" not in page and "not drawn over time" in page
    assert not (tmp_path / "other" / "courses.png").exists() and (tmp_path / "same" / "courses.png").exists()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("bins", "edges", 1), "x"),
        (("bins", "edges", 1), 99.0),
        (("bins", "places", 0), "x"),
        (("bins", "labels", 0), ["x"]),
        (("gaps", "seen", 0), -1),
        (("gaps", "given", 0), "x"),
    ],
)
def test_a_model_file_whose_ages_are_made_up_is_refused(run, visits, tmp_path, place, value):
    """Its checksums are right, but no model has such bins or counts."""
    settings = {"participant": "participant", "age": "age", "bins": [0, 1, 2, 3], "item_range": (0, 4)}
    LongitudinalICQF(2, **settings).fit(pd.read_csv(visits)).save(tmp_path / "model.icqf")
    members = contents((tmp_path / "model.icqf").read_bytes())
    header = json.loads(members["model.json"])
    *path, last = place
    at = header["longitudinal"]
    for step in path:
        at = at[step]
    at[last] = value
    members["model.json"] = json.dumps(header).encode()
    (tmp_path / "forged.icqf").write_bytes(sealed(members))
    assert run("score", tmp_path / "model.icqf", visits, "-q").exit_code == 0
    refused = run("score", tmp_path / "forged.icqf", visits)
    assert refused.exit_code == 2 and "forged.icqf: " in refused.stderr, refused.stderr


def test_a_doubled_row_is_named_and_left_out_on_request(run, visits, tmp_path):
    frame = pd.read_csv(visits)
    doubled = tmp_path / "doubled.csv"
    pd.concat([frame, frame.iloc[[4]]]).to_csv(doubled, index=False)
    words = (*QUICK, *SHORT, "--out", tmp_path / "out")
    refused = run("longitudinal", doubled, *words)
    assert refused.exit_code == 2 and "Use one of them with --doubled first;" in refused.stderr
    done = run("longitudinal", doubled, "--doubled", "first", *words)
    assert done.exit_code == 0, done.stderr
    assert f"in rows 6 and {len(frame) + 2}" in done.stderr
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(scores) == len(frame) and not scores.duplicated(scores.columns[:2].tolist()).any()
