"""``icqf meta``: from a folder of questionnaires to meta-factors, and scores of new participants."""

import json

import numpy as np
import pandas as pd
import pytest

from icqf.datasets import make_battery
from icqf.io import write_codebook
from icqf.models import MetaICQF

GIVEN = ("--n-components", "2", "--beta", "0.1", "--n-meta", "2", "--meta-beta", "0.1")


@pytest.fixture(scope="module")
def battery():
    return make_battery(n=120, n_items=(6, 6, 6), n_factors=2, n_meta=2, absent=0.3, random_state=2).battery


@pytest.fixture(scope="module")
def study(battery, tmp_path_factory):
    """A folder with one file for each instrument and a table of ages; not to be written to."""
    folder = tmp_path_factory.mktemp("battery") / "study"
    folder.mkdir()
    for name, each in battery.instruments.items():
        each.answers.to_csv(folder / f"{name}.csv")
        write_codebook(each.items, folder / f"{name}_codebook.csv")
    rng = np.random.default_rng(0)
    ages = pd.DataFrame({"age": rng.uniform(6, 18, battery.n_participants).round(2)}, index=battery.ids)
    ages.to_csv(folder / "participants.csv")
    return folder


@pytest.fixture(scope="module")
def results(run, study, tmp_path_factory):
    out = tmp_path_factory.mktemp("meta") / "results"
    done = run("meta", study, *GIVEN, "--n-splits", "3", "--confounds", "age", "--out", out)
    assert done.exit_code == 0, done.stderr
    (out.parent / "said.txt").write_text(done.stdout)
    return out


def test_tables_model_page_and_figure_are_written(results, battery):
    names = {path.name for path in results.iterdir()}
    assert names == {
        *("meta_scores.csv", "factor_scores.csv", "meta_loadings.csv", "item_loadings.csv", "hidden.csv"),
        *("meta.icqf", "meta.html", "meta.md", "levels.png", "config.toml", "provenance.json"),
    }
    scores = pd.read_csv(results / "meta_scores.csv", index_col=0)
    assert list(scores.index) == list(battery.ids) and list(scores) == ["meta1", "meta2"]
    items = pd.read_csv(results / "item_loadings.csv")
    assert list(items) == ["instrument", "item", "meta1", "meta2"] and len(items) == 18
    assert set(pd.read_csv(results / "hidden.csv")["hidden"]) == {"answers", "instruments"}
    assert (results / "levels.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_says_whether_the_hierarchy_pays(results):
    text, page = (results / "meta.md").read_text(), (results / "meta.html").read_text()
    assert "Is the second level worthwhile?" in text and "Two stages predict hidden answers" in text
    assert "default-src 'none'" in page and "data:image/png" in page and "<script src" not in page
    assert "2 meta-factors behind 6 factors of 3 instruments" in (results.parent / "said.txt").read_text()


def test_no_participant_or_folder_is_named_in_what_may_be_shared(results, battery):
    for name in ("meta.icqf", "meta.html", "meta.md", "provenance.json"):
        content = (results / name).read_bytes()
        assert not any(str(id).encode() in content for id in battery.ids)
        assert str(results.parent.parent).encode() not in content


def test_the_account_names_models_and_files(results):
    account = json.loads((results / "provenance.json").read_text())
    assert set(account["models"]) == {"A", "B", "C", "meta"}
    assert "participants.csv" in [each["file"] for each in account["inputs"]]


def test_the_run_can_be_repeated_from_its_config(run, results, tmp_path):
    done = run(
        "meta", "--config", results / "config.toml", "--no-compare", "--out", tmp_path / "again", "--quiet"
    )
    assert done.exit_code == 0 and done.stdout == "" and done.stderr == ""
    again, first = ((folder / "meta.icqf").read_bytes() for folder in (tmp_path / "again", results))
    assert again == first


def test_new_participants_are_scored_from_any_instrument(run, results, battery, study, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    battery.instruments["B"].answers.head(7).to_csv(new / "B.csv")
    (new / "Z.csv").write_text("id,z1\n1,2\n")
    (new / "participants.csv").write_text((study / "participants.csv").read_text())
    done = run("score", results / "meta.icqf", new, "--out", tmp_path / "scores.csv")
    assert done.exit_code == 0, done.stderr
    assert "Scored without 'A', 'C'" in done.stderr and "no such instruments: 'Z'" in done.stderr
    scores = pd.read_csv(tmp_path / "scores.csv", index_col=0)
    assert scores[["meta1", "meta2"]].notna().all(axis=None) and len(scores) == 7
    assert scores.filter(like="A:").isna().all(axis=None)
    fitted = MetaICQF.load(results / "meta.icqf")
    ages = pd.read_csv(study / "participants.csv", index_col=0)
    own = fitted.transform({"B": battery.instruments["B"].answers.head(7)}, confounds=ages)
    np.testing.assert_allclose(scores[["meta1", "meta2"]], own, atol=1e-5)


def test_a_wide_table_is_scored_as_a_folder_is(run, results, battery, study, tmp_path):
    ages = pd.read_csv(study / "participants.csv", index_col=0)
    frames = [each.answers for each in battery.instruments.values()]
    pd.concat([*frames, ages], axis=1).rename_axis("id").to_csv(tmp_path / "wide.csv")
    done = run("score", results / "meta.icqf", tmp_path / "wide.csv", "--out", tmp_path / "scores.csv")
    assert done.exit_code == 0, done.stderr
    wide = pd.read_csv(tmp_path / "scores.csv", index_col=0)
    own = pd.read_csv(results / "meta_scores.csv", index_col=0).loc[wide.index]
    np.testing.assert_allclose(wide[["meta1", "meta2"]], own, atol=1e-4)


def test_an_instrument_that_runs_against_the_others_is_named(run, study, tmp_path):
    def reversed_(folder):
        table = pd.read_csv(folder / "C.csv", index_col=0)
        top = pd.read_csv(folder / "C_codebook.csv")["max"].to_numpy()
        (top - table).to_csv(folder / "C.csv")

    folder = changed(study, tmp_path, reversed_)
    done = run("meta", folder, *GIVEN, "--no-compare", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert "Instrument 'C' runs against the others" in done.stderr


def test_show_tells_about_a_battery(run, results):
    done = run("show", results / "meta.icqf", "--all")
    assert done.exit_code == 0 and "\nmeta1\n" in done.stdout and "instruments" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit",), "folder"),
        (("score", "RESULTS/meta.icqf", "STUDY/participants.csv"), "no column is an item"),
        (("score", "RESULTS/meta.icqf", "RESULTS"), "no file is named after an instrument"),
        (
            ("compare", "RESULTS/meta.icqf", "RESULTS/meta.icqf"),
            "Use icqf score, icqf show or icqf shortform with it",
        ),
    ],
)
def test_commands_that_cannot_take_a_battery_say_so(run, results, study, words, said):
    names = [word.replace("RESULTS", str(results)).replace("STUDY", str(study)) for word in words]
    done = run(*names, *([study] if words == ("fit",) else []))
    assert done.exit_code == 2 and said in done.stderr


def changed(study, tmp_path, change):
    folder = tmp_path / "study"
    folder.mkdir()
    for path in study.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    change(folder)
    return folder


def without_ids(folder):
    table = pd.read_csv(folder / "A.csv")
    table.drop(columns="id").to_csv(folder / "A.csv", index=False)


def other_ids(folder):
    table = pd.read_csv(folder / "A.csv")
    table.assign(id=[f"X{i}" for i in range(len(table))]).to_csv(folder / "A.csv", index=False)


def twice(folder):
    table = pd.read_csv(folder / "A.csv")
    pd.concat([table, table.head(1)]).to_csv(folder / "A.csv", index=False)


def two_items(folder):
    pd.read_csv(folder / "A.csv").iloc[:, :3].to_csv(folder / "A.csv", index=False)
    (folder / "A_codebook.csv").unlink()


def one_left(folder):
    for name in "BC":
        (folder / f"{name}.csv").unlink()


def named_meta(folder):
    (folder / "A.csv").rename(folder / "meta.csv")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_ids, "no column of participant ids is recognised"),
        (other_ids, "no participant in common"),
        (twice, "A.csv"),
        (two_items, "'A' has 2 items"),
        (one_left, "Analyse a single questionnaire with icqf fit"),
        (named_meta, "cannot be named 'meta'"),
        (lambda folder: (folder / "B.csv").write_text("nonsense"), "B.csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(run, study, tmp_path, change, said):
    folder = changed(study, tmp_path, change)
    done = run("meta", folder, *GIVEN, "--no-compare", "--out", tmp_path / "results")
    assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "results").exists() and not (tmp_path / "results.journal").exists()


@pytest.mark.parametrize(
    "words", [("--n-meta", "0"), ("--meta-beta", "-1"), ("--n-meta", "99", "--meta-beta", "0.1")]
)
def test_settings_that_mean_nothing(run, study, tmp_path, words):
    """The option that is at fault is named as it is typed."""
    done = run(
        "meta", study, "--n-components", "2", "--beta", "0.1", "--no-compare", *words, "--out", tmp_path / "r"
    )
    assert done.exit_code == 2 and f"Error: {words[0]} " in done.stderr


def test_an_interrupted_run_is_continued(run, study, tmp_path, monkeypatch):
    from icqf.workflow import meta

    searched = (
        "--n-components",
        "1-2",
        "--beta",
        "0.1",
        "--n-meta",
        "1-2",
        "--meta-beta",
        "0.1",
        "--n-splits",
        "3",
    )
    words = ("meta", study, *searched, "--no-compare", "--out", tmp_path / "results")
    real = meta.write_meta

    def interrupted(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(meta, "write_meta", interrupted)
    stopped = run(*words)
    assert stopped.exit_code == 130 and "--resume" in stopped.stderr
    monkeypatch.setattr(meta, "write_meta", real)
    refused = run(*words)
    assert refused.exit_code == 2 and "Add --resume" in refused.stderr
    done = run(*words, "--resume")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "results" / "meta.icqf").is_file() and not (tmp_path / "results.journal").exists()
    again = run(*words)
    assert again.exit_code == 2 and "--force" in again.stderr


def test_ids_that_files_write_differently_are_told(run, study, tmp_path):
    """Spreadsheets drop zeros in front of some ids, and the other ids still join the files."""

    def without_zeros(folder):
        for name in "ABC":
            table = pd.read_csv(folder / f"{name}.csv")
            own = np.array([f"{int(''.join(filter(str.isdigit, each))):03d}" for each in table.iloc[:, 0]])
            short = [each.lstrip("0") or "0" for each in own]
            table.isetitem(0, short if name == "B" else own)
            table.to_csv(folder / f"{name}.csv", index=False)

    folder = changed(study, tmp_path, without_zeros)
    done = run("meta", folder, *GIVEN, "--no-compare", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert "are written differently in different instruments" in done.stderr
    usual = run("meta", study, *GIVEN, "--no-compare", "--out", tmp_path / "usual")
    assert usual.exit_code == 0 and "written differently" not in usual.stderr


def test_instruments_that_do_not_go_together_have_no_meta_factor(run, study, tmp_path):
    """With a penalty that leaves no loading, none is announced, and nobody is told to lower --beta."""
    words = ("--n-components", "2", "--beta", "0.1", "--n-meta", "2", "--meta-beta", "1000")
    out = tmp_path / "results"
    done = run("meta", study, *words, "--out", out)
    assert done.exit_code == 0 and done.stdout.startswith("No common factor behind 6 factors"), done.output
    assert "Lower --beta" not in done.stderr
    assert {path.name for path in out.iterdir()} == {
        *("factor_scores.csv", "meta.icqf", "meta.html", "meta.md", "config.toml", "provenance.json")
    }
    assert "No common factor behind 6 factors of 3 instruments" in (out / "meta.md").read_text()
    assert json.loads((out / "provenance.json").read_text())["common_factor"]["n_components"] == 0
    assert run("show", out / "meta.icqf").stdout.startswith("No common factor behind 6 factors")
    scored = run("score", out / "meta.icqf", study, "--out", tmp_path / "scores.csv")
    assert scored.exit_code == 0, scored.stderr
    assert list(pd.read_csv(tmp_path / "scores.csv", index_col=0)) == [
        f"{q}: factor{r}" for q in "ABC" for r in (1, 2)
    ]


def test_numbers_of_factors_by_instrument(run, study, tmp_path):
    given = ("--n-components", "A=2", "B=1-1", "1", "--beta", "0.1", "--n-meta", "1", "--meta-beta", "0.1")
    done = run("meta", study, *given, "--no-compare", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    models = json.loads((tmp_path / "results" / "provenance.json").read_text())["models"]
    assert [models[name]["n_components"] for name in "ABC"] == [2, 1, 1]
    again = run("meta", "--config", tmp_path / "results" / "config.toml", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    for words, said in (("E=2", "'E', which is not an instrument"), ("A=2 A=3", "each instrument once")):
        done = run("meta", study, "--n-components", *words.split(), "--out", tmp_path / "other")
        assert done.exit_code == 2 and said in done.stderr and "--n-components" in done.stderr, done.stderr
