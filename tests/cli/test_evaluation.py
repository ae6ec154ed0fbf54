"""``icqf stability`` and ``icqf diagnosis`` on a study of one's own."""

import pandas as pd
import pytest

from icqf.analyses import ICQFMethod
from icqf.datasets import make_cohort
from icqf.io import write_codebook

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    cohort = make_cohort("hbn", 200)
    study = cohort.questionnaire.select(["q00*", "q01*", "q02*", "q03*"])
    study.answers.join(study.confounds).join(cohort.diagnoses[["adhd", "phobia"]]).to_csv(
        folder / "answers.csv"
    )
    write_codebook(study.items, folder / "items.csv")
    return folder


def test_a_study_of_ones_own_from_the_command_line(run, own, tmp_path):
    usual = (own / "answers.csv", "--codebook", own / "items.csv", "--id", "participant")
    usual += ("--confounds", "age", "sex", "--n-components", 4, "--beta", 0.2, "--sizes", 0.8, 0.4)
    usual += ("--splits", 2, "--out", tmp_path)
    text = run("stability", *usual, "--methods", "icqf", "fa-promax")
    assert text.exit_code == 0, text.stderr
    assert "## answers.csv: 200 participants, 39 items" in text.stdout
    again = run("stability", *usual, "--methods", "icqf")
    assert again.exit_code == 2 and "add --force to replace it" in again.stderr
    table = pd.read_csv(tmp_path / "stability-study.csv")
    assert set(table["method"]) == {"ICQF", "FA-promax"}
    assert (table.loc[table["method"] == "ICQF", "k"] == 4).all()
    found = run("diagnosis", *usual, "--labels", "adhd", "phobia", "--methods", "icqf", "subscales")
    assert found.exit_code == 0, found.stderr
    assert set(pd.read_csv(tmp_path / "diagnosis-study-labelled.csv")["label"]) == {"adhd", "phobia"}


def test_more_splits_add_to_a_first_look(run, own, tmp_path, monkeypatch):
    usual = (own / "answers.csv", "--codebook", own / "items.csv", "--id", "participant", "--out", tmp_path)
    usual += ("--methods", "icqf", "--n-components", 3, "--beta", 0.2, "--sizes", 0.4, "--quiet")
    usual += ("--jobs", 1)
    assert run("stability", *usual, "--splits", 1).exit_code == 0
    first, fitted = pd.read_csv(tmp_path / "stability-study.csv"), []
    fit = ICQFMethod.fit
    monkeypatch.setattr(
        ICQFMethod, "fit", lambda self, training, **seed: fitted.append(1) or fit(self, training, **seed)
    )
    assert run("stability", *usual, "--splits", 3, "--force").exit_code == 0
    both = pd.read_csv(tmp_path / "stability-study.csv")
    assert len(fitted) == 2 * 2  # the part and the development set, of two more splits
    pd.testing.assert_frame_equal(both[both["split"] == 0], first)


def test_what_is_finished_can_be_read_when_it_is_stopped(run, own, tmp_path, monkeypatch):
    usual = (own / "answers.csv", "--codebook", own / "items.csv", "--id", "participant", "--jobs", 1)
    usual += ("--methods", "icqf", "--n-components", 3, "--beta", 0.2, "--sizes", 0.4, "--splits", 3)
    fitted, fit = [], ICQFMethod.fit

    def stopped(self, training, **seed):
        fitted.append(1)
        if len(fitted) == 4:  # in the second split
            raise KeyboardInterrupt
        return fit(self, training, **seed)

    monkeypatch.setattr(ICQFMethod, "fit", stopped)
    done = run("stability", *usual, "--out", tmp_path / "stopped")
    page = tmp_path / "stopped" / "stability.md"
    assert done.exit_code == 130 and "3 of 6 fits are saved" in done.stderr and "--resume" in done.stderr
    assert f"{page} shows what the finished splits say." in done.stderr
    assert "In one split" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(ICQFMethod, "fit", fit)
    assert run("stability", *usual, "--out", tmp_path / "stopped", "--resume").exit_code == 0
    assert run("stability", *usual, "--out", tmp_path / "whole").exit_code == 0
    tables = [pd.read_csv(tmp_path / name / "stability-study.csv") for name in ("stopped", "whole")]
    pd.testing.assert_frame_equal(*tables)
    assert "In each of 3 splits" in page.read_text(encoding="utf-8")


def test_diagnosis_of_ones_own_study_needs_labels(run, own, tmp_path):
    words = (
        own / "answers.csv",
        "--codebook",
        own / "items.csv",
        "--id",
        "participant",
        "--confounds",
        "age",
        "sex",
    )
    result = run("diagnosis", *words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--labels" in result.stderr
    result = run("diagnosis", *words, "--labels", "sex", "--out", tmp_path / "out")
    assert result.exit_code == 2


@pytest.mark.parametrize("method", ["icqf", "subscales"])
def test_one_method_alone_has_nothing_to_be_compared_with(run, own, tmp_path, method):
    words = (own / "answers.csv", "--codebook", own / "items.csv", "--id", "participant", "--labels", "adhd")
    words += ("--methods", method, "--n-components", 4, "--beta", 0.2, "--sizes", 0.8, "--splits", 1)
    result = run("diagnosis", *words, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "There is nothing to compare ICQF with." in result.stdout


def test_candidates_may_stand_in_a_config_file(run, own, tmp_path):
    config = tmp_path / "study.toml"
    config.write_text(
        f'answers = "{own / "answers.csv"}"\ncodebook = "{own / "items.csv"}"\nid = "participant"\n'
        "n_components = 3\nbeta = 0.3\n"
    )
    words = (
        "--config",
        config,
        "--methods",
        "icqf",
        "--sizes",
        0.8,
        "--splits",
        1,
        "--out",
        tmp_path / "out",
        "--quiet",
    )
    result = run("stability", *words)
    assert result.exit_code == 0, result.stderr
    assert pd.read_csv(tmp_path / "out" / "stability-study.csv")[["k", "beta"]].iloc[0].tolist() == [3, 0.3]
