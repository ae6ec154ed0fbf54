"""A folder of results under other names: nothing but the names changes."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from icqf import ICQF
from icqf.datasets import demo_paths
from icqf.errors import InputError
from icqf.io.readers.files import read_table
from icqf.report import analyse, as_html, as_json, from_json, renamed, report_of
from icqf.report.gallery import draw_figure, figure_bytes
from icqf.workflow import StudyOptions, fit_study, rewrite_results, score_file, write_results

NAMES = ["Acting out", "Holding in"]


@pytest.fixture(scope="module")
def fit():
    answers, codebook = demo_paths()
    asked = {"answers": answers, "codebook": codebook, "items": ["q00*", "q01*"], "n_components": 2}
    return fit_study(
        StudyOptions.of({**asked, "beta": 0.1, "bootstrap": 20, "confounds": ["age"], "figures": False})
    )


@pytest.fixture(params=["csv", "xlsx", "parquet", "sav"])
def folder(request, fit, tmp_path):
    place, form = tmp_path / "results", request.param
    write_results(replace(fit, options=replace(fit.options, format=form, figures=form == "csv")), place)
    return place


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def table(folder, name):
    path = next(folder.glob(f"{name}.*"))
    return read_table(path).frame


def test_names_reach_every_file(folder, fit):
    before = table(folder, "scores")
    (folder / "notes.txt").write_text("mine")
    done = rewrite_results(folder, names=NAMES)
    assert done.names == tuple(NAMES)
    shown = NAMES if not list(folder.glob("*.sav")) else ["Acting_out", "Holding_in"]
    after = table(folder, "scores")
    assert list(after.columns[1:]) == shown and list(table(folder, "loadings").columns[1:]) == shown
    pd.testing.assert_frame_equal(after.set_axis(before.columns, axis=1), before)
    assert list(table(folder, "factors")["name"]) == NAMES
    assert ICQF.load(folder / "model.icqf").factor_names_ == NAMES
    answers, _ = demo_paths()
    assert list(score_file(folder / "model.icqf", answers).scores.columns[:8:4]) == NAMES
    for name in ("report.html", "report.md", "report.json"):
        text = (folder / name).read_text(encoding="utf-8")
        assert all(each in text for each in NAMES) and "Factor 1 (" not in text
    if (folder / "figures").is_dir():
        drawn = figure_bytes(draw_figure(done.report, "heatmap"), "png")
        assert (folder / "figures" / "heatmap.png").read_bytes() == drawn
        assert NAMES[0] in (folder / "tables.tex").read_text(encoding="utf-8")
    assert (folder / "notes.txt").read_text() == "mine"
    account = json.loads((folder / "provenance.json").read_text())
    assert account["names"] == NAMES and "notes.txt" not in account["outputs"]


def test_the_same_names_give_the_same_bytes_and_no_name_takes_them_back(fit, tmp_path):
    folder = tmp_path / "results"
    write_results(fit, folder)
    first = contents(folder)
    rewrite_results(folder, names=NAMES)
    rewrite_results(folder, names=["factor1", "factor2"])
    again = contents(folder)
    first.pop("provenance.json"), again.pop("provenance.json")
    assert again == first


def test_a_report_named_later_is_the_report_named_before(fit):
    questionnaire, options = fit.study.questionnaire, {"n_bootstrap": 5, "scores": fit.scores}
    later = renamed(report_of(analyse(fit.model, questionnaire, **options)), NAMES)
    assert as_json(later) == as_json(report_of(analyse(fit.model, questionnaire, **options), names=NAMES))
    assert as_html(from_json(as_json(later))) == as_html(later)


def edited(folder, change):
    path = folder / "factors.csv"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def test_an_edited_table_names_the_factors(fit, tmp_path):
    folder = tmp_path / "results"
    write_results(fit, folder)
    # as Excel saves it in much of Europe, and with its rows in another order
    edited(folder, lambda text: text.replace("factor1,,", "factor1,Acting out,"))
    rows = pd.read_csv(folder / "factors.csv").iloc[::-1]
    rows.to_csv(folder / "factors.csv", sep=";", index=False, encoding="utf-8-sig")
    assert rewrite_results(folder).names == ("Acting out", "factor2")


def swap_keys(text):
    return text.replace("factor1,", "F,").replace("factor2,", "factor1,").replace("F,", "factor2,")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (swap_keys, "those of factor1.*change only the column name"),
        (lambda text: text.replace("factor2", "factor1"), "'factor1' occurs twice"),
        (lambda text: text.replace("factor2", "factor7"), "'factor7' is not a factor of this model"),
        (lambda text: "\n".join(text.splitlines()[:2]) + "\n", "the row of 'factor2' is missing"),
        (lambda text: text.replace(",name,", ",called,"), "there is no column 'name'"),
        (
            lambda text: text.replace("factor1,,", "factor1,x,").replace("factor2,,", "factor2,x,"),
            "named 'x'",
        ),
    ],
)
def test_an_edited_table_that_is_not_about_these_factors(fit, tmp_path, change, said):
    folder = tmp_path / "results"
    write_results(fit, folder)
    edited(folder, change)
    before = contents(folder)
    with pytest.raises(InputError, match=said):
        rewrite_results(folder)
    assert contents(folder) == before


def test_names_in_another_order_are_refused(fit, tmp_path):
    folder = tmp_path / "results"
    write_results(fit, folder)
    rewrite_results(folder, names=NAMES)
    with pytest.raises(InputError, match="'Holding in' was given to factor 1"):
        rewrite_results(folder, names=NAMES[::-1])


def test_what_is_no_folder_of_results(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        rewrite_results(tmp_path / "none")
    with pytest.raises(InputError, match="contains no results"):
        rewrite_results(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this is a file"):
        rewrite_results(tmp_path / "file")
