"""`icqf federate`: what hospitals and their coordinator type, and what they are told."""

import json

import pandas as pd
import pytest

from federation import ITEMS, SITES, SIZES, M, federate, table, write_sites
from icqf.io.codebook import write_codebook
from icqf.workflow import read_federated_plan


@pytest.fixture(scope="module")
def hospitals(run, tmp_path_factory):
    """A folder with a plan, the answers of three hospitals, and a finished exchange."""
    folder = tmp_path_factory.mktemp("federation")
    paths = write_sites(folder, table())
    write_codebook(ITEMS, folder / "items.csv")
    result = run(
        *("federate", "plan", folder / "items.csv", "--sites", *SITES, "--n-components", "2"),
        *("--beta", "0.2", "--confound-ranges", "age=5:19", "--categories", "sex=male,female"),
        *("--weights", "weight", "--n-init", "1", "--smallest-site", "40", "--smallest-category", "10"),
        *("--out", folder / "plan.toml"),
    )
    assert result.exit_code == 0, result.stderr
    assert "The plan of 3 sites, 11 items and 2 factors is in" in result.stderr
    federate(read_federated_plan(folder / "plan.toml"), folder, paths)
    return folder


def site(folder, *words, answers="answers-1.csv", name="Hospital B"):
    return (
        *("federate", "site", folder / answers, "--plan", folder / "plan.toml"),
        *("--folder", folder / "shared", "--name", name, "--log", folder / "log", "--once", *words),
    )


def test_the_coordinator_gets_a_model_that_scores(run, hospitals, tmp_path):
    out = tmp_path / "results"
    result = run("federate", "fit", hospitals / "plan.toml", "--folder", hospitals / "shared", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "3 sites took part (Hospital A 83, Hospital B 61, Hôpital C 47)" in result.stdout
    names = ["confound_loadings.csv", "factors.csv", "loadings.csv", "model.icqf"]
    names += ["plan.toml", "provenance.json", "sites.csv"]
    assert sorted(path.name for path in out.iterdir()) == names
    account = json.loads((out / "provenance.json").read_text())["result"]
    assert account["sites"] == dict(zip(SITES, SIZES, strict=True)) and account["converged"]
    assert read_federated_plan(out / "plan.toml") == read_federated_plan(hospitals / "plan.toml")
    scores = tmp_path / "scores.csv"
    result = run("score", out / "model.icqf", hospitals / "answers-1.csv", "--out", scores)
    assert result.exit_code == 0, result.stderr
    assert pd.read_csv(scores).shape == (SIZES[1], 3)


def test_a_site_answers_what_is_there(run, hospitals):
    result = run(*site(hospitals))
    assert result.exit_code == 0, result.stderr
    assert "The fit is finished" in result.stderr and "requests are answered" in result.stderr


def test_a_site_is_told_what_was_made_of_its_answers(run, hospitals, tmp_path):
    table().iloc[: SIZES[0]].assign(age=lambda frame: frame["age"] + 5).to_csv(tmp_path / "answers.csv")
    (tmp_path / "shared").mkdir()
    result = run(
        *("federate", "site", tmp_path / "answers.csv", "--plan", hospitals / "plan.toml", "--once"),
        *("--folder", tmp_path / "shared", "--name", "Hospital A", "--log", tmp_path / "log", "--id", "code"),
    )
    assert result.exit_code == 0, result.stderr
    assert "Note: Confound 'age' is outside the fitted range 5 to 19" in result.stderr
    assert "were left out at random, because fewer than 5 participants had left" in result.stderr
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["site-hospital-a.zip"]


def test_a_data_officer_can_read_every_file(run, hospitals):
    result = run("federate", "show", hospitals / "shared" / "round-0001-hospital-a.zip")
    assert result.exit_code == 0
    assert '"answers": "sum of the answers to each item"' in result.stdout
    assert f"count ({M})" in result.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.assign(q01=7), "holds 7, above its highest answer 5"),
        (lambda frame: frame.drop(columns="q07"), "'q07' is no column of the table"),
        (lambda frame: frame.drop(columns="weight"), "weight"),
        (lambda frame: frame.assign(sex="diverse"), "'diverse'"),
        (
            lambda frame: frame.assign(age=frame["age"].mask(frame.index == 2)),
            "leave these participants out.",
        ),
        (lambda frame: frame.iloc[:30], "30 participants answered, fewer than the 40"),
    ],
)
def test_a_file_that_cannot_take_part_is_refused_before_anything_is_sent(
    run, hospitals, tmp_path, change, said
):
    change(table().iloc[: SIZES[0]].copy()).to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "shared").mkdir()
    result = run(
        *("federate", "site", tmp_path / "answers.csv", "--plan", hospitals / "plan.toml", "--once"),
        *("--folder", tmp_path / "shared", "--name", "Hospital A", "--log", tmp_path / "log"),
    )
    assert result.exit_code == 2
    assert said in result.stderr and "Traceback" not in result.stderr
    assert not any((tmp_path / "shared").iterdir()) and not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "Hospital Z"), "knows no site 'Hospital Z'"),
        (("--folder", "nowhere"), "nowhere: there is no such folder"),
        (("--plan", "nothing.toml"), "nothing.toml: there is no such file"),
        (("--name", "Hospital A"), "a site with other data has announced itself as 'Hospital A'"),
    ],
)
def test_what_is_mistyped_at_a_site_is_said(run, hospitals, words, said):
    result = run(*site(hospitals, *words))
    assert result.exit_code == 2 and said in result.stderr


@pytest.mark.parametrize("part", ["fit", "site"])
def test_who_is_interrupted_is_told_how_to_go_on(run, hospitals, tmp_path, monkeypatch, part):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("icqf.io.exchange.Exchange.wait_for", interrupted)
    folder = hospitals / "shared"
    words = {
        "fit": (hospitals / "plan.toml", "--folder", folder, "--out", tmp_path / "results"),
        "site": site(hospitals)[2:],
    }[part]
    result = run("federate", part, *words)
    assert result.exit_code == 130
    assert f"Give the same command again to go on:\n  icqf federate {part} " in result.stderr
    assert f"--folder {folder}" in result.stderr


def test_a_site_that_is_late_is_named(run, hospitals, tmp_path):
    (tmp_path / "shared").mkdir()
    words = ("--folder", tmp_path / "shared", "--out", tmp_path / "results", "--wait", "0.001")
    result = run("federate", "fit", hospitals / "plan.toml", *words)
    assert result.exit_code == 2
    assert "'Hospital A' has not announced itself" in result.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sites", "A"), "--sites must name at least two sites"),
        (("--sites", "A", "B", "--categories", "sex"), "--categories must be a confound and its categories"),
        (("--sites", "A", "B", "--n-components", "40"), "--n-components 40 is more than the 11 items"),
        (("--sites", "A", "B", "--noise", "-1"), "--noise must be a whole number of at least 0"),
        (("--sites", "A", "B", "--confound-ranges", "age=9"), "as in age=5:21"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(run, hospitals, tmp_path, words, said):
    usual = () if "--n-components" in words else ("--n-components", "2")
    result = run("federate", "plan", hospitals / "items.csv", *usual, *words, "--out", tmp_path / "plan.toml")
    assert result.exit_code == 2 and said in result.stderr, result.stderr
    assert not (tmp_path / "plan.toml").exists()


def test_a_plan_is_not_replaced_unasked(run, hospitals):
    words = ("--sites", "A", "B", "--n-components", "2", "--out", hospitals / "plan.toml")
    result = run("federate", "plan", hospitals / "items.csv", *words)
    assert result.exit_code == 2 and "already there" in result.stderr
