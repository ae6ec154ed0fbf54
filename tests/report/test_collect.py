"""Every number of a report is the model's."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF
from icqf.analyses import factor_analysis_counterparts
from icqf.baselines import FactorAnalysis
from icqf.data.answers import missing_bands
from icqf.errors import InputError
from icqf.report import analyse, as_html, as_json, as_markdown, report_of
from icqf.report.sections.factors import NEAR_BOUND


def test_loadings_are_the_models(report, model):
    view = report.model
    for r, factor in enumerate(view.factors):
        np.testing.assert_array_equal([each.value for each in factor.loadings], model.components_[r])
        assert [each.item for each in factor.loadings] == list(model.loadings_.index)
        assert factor.variance == model.summary().factors["variance_explained"].iloc[r]
    for name, confound in zip(model.confound_names_, view.confounds, strict=True):
        np.testing.assert_array_equal(
            [each.value for each in confound.loadings], model.confound_loadings_[name]
        )


def test_an_intercept_near_its_bound_has_no_interval(questionnaire):
    """Resamples of an intercept at its bound do not vary as samples do."""
    fitted = ICQF(2, n_init=1).fit(questionnaire)
    report = report_of(analyse(fitted, questionnaire, n_bootstrap=4, compare=False))
    *_, intercept = report.model.confounds
    near = [each.share < NEAR_BOUND for each in intercept.loadings]
    assert any(near) and not all(near)
    assert [each.low is None and each.high is None for each in intercept.loadings] == near
    assert all(each.low <= each.value <= each.high for each in report.model.factors[0].loadings)


def test_the_shares_add_up_to_the_total_and_the_tables_say_so(report):
    view = report.model
    parts = [*view.factors, *view.confounds]
    assert view.variance == pytest.approx(sum(part.variance for part in parts), abs=1e-12)
    pages = as_html(report), as_markdown(report)
    for page, cell in zip(pages, ('<td class="num">{:.1%}</td>', "| {:.1%} |"), strict=True):
        (row,) = [line for line in page.splitlines() if re.search("(>|[|] )Total( [|]|<)", line)]
        assert cell.format(view.variance) in row and "add up to" in page


def test_top_items_are_the_largest_shares(report):
    for factor in report.model.factors:
        ranked = sorted(factor.loadings, key=lambda each: -each.share)
        assert list(factor.top) == [each for each in ranked[:10] if each.share >= 0.05]


def test_other_models_follow(report, others):
    assert [view.n_components for view in report.models[1:]] == [len(other.components_) for other in others]
    np.testing.assert_array_equal(
        [each.value for each in report.models[1].factors[0].loadings], others[0].components_[0]
    )
    assert {(split.k, split.next_k) for split in report.splits} == set(
        zip(*(lambda ks: (ks, ks[1:]))(sorted(v.n_components for v in report.models)), strict=False)
    )


def test_sample(report, questionnaire):
    answers = questionnaire.keyed_answers()
    assert report.sample.share_missing == answers.isna().to_numpy().mean()
    bands = missing_bands(answers)["n"]
    assert [bin.n for bin in report.sample.missing_by_participant] == [
        n if n == 0 or n >= 10 else None for n in bands
    ]
    assert sum(bin.n for bin in report.sample.confounds[1].categories) == len(answers)
    assert report.sample.confounds[0].mean == pytest.approx(questionnaire.confounds["age"].mean())
    for row in report.items:
        column = answers[row.name]
        assert row.mean == pytest.approx(column.mean())
        assert row.sd == pytest.approx(column.std())
        assert row.floor == pytest.approx((column.dropna() == 0).mean())
        assert row.ceiling == pytest.approx((column.dropna() == 2).mean())
        assert row.n_answered == column.notna().sum()


def test_count(report, search):
    best = [each for each in report.count.candidates if each.chosen]
    assert [(each.n_components, each.beta) for each in best] == [(search.n_components_, search.beta_)]
    assert [each.error for each in report.count.candidates] == list(search.errors_["error"])
    assert dict(report.count.shares) == dict(search.sample_choice_.by_k())
    assert [each.agreement for each in report.count.halves] == list(search.stability_["agreement"])


def test_scores(report, model, questionnaire):
    scores = model.transform(questionnaire.keyed_answers(), confounds=questionnaire.confounds)
    for r, factor in enumerate(report.scores.factors):
        assert factor.mean == pytest.approx(scores[:, r].mean())
        assert factor.none == (scores[:, r] == 0).mean()
        assert factor.present == (scores[:, r] >= 0.1).mean()
        assert sum(factor.histogram) == pytest.approx((scores[:, r] > 0).sum())
    many = (scores >= 0.1).sum(axis=1)
    assert [bin.n for bin in report.scores.n_present] == [
        (many == at).sum() for at in range(scores.shape[1] + 1)
    ]
    np.testing.assert_allclose(report.scores.correlations, np.corrcoef(scores.T))


def test_fit_of_items(report, model):
    items = model.summary().items
    np.testing.assert_array_equal([row.fit for row in report.items], items["r_squared"])
    np.testing.assert_array_equal([row.explained for row in report.items], items["variance_explained"])
    assert report.fit.r_squared == model.summary().r_squared
    assert report.fit.r_squared_hidden < report.fit.r_squared
    assert all(row.fit_hidden < 1 for row in report.items)


def test_comparison_is_the_factor_analysis(report, model, questionnaire):
    answers = questionnaire.keyed_answers()
    analysis = FactorAnalysis(len(model.components_)).fit(answers)
    expected = np.corrcoef(model.components_, analysis.loadings_.T)
    k = len(model.components_)
    np.testing.assert_allclose(report.comparison.matrix, expected[:k, k:], atol=1e-10)
    assert report.comparison.negative == (analysis.loadings_ < 0).mean()
    best = {pair.factor: pair.correlation for pair in report.comparison.pairs}
    assert len(best) == k
    rebuilt = analysis.mean_ + analysis.scale_ * (analysis.transform(answers) @ analysis.loadings_.T)
    error = ((answers - rebuilt) ** 2).sum() / ((answers - answers.mean()) ** 2).sum()
    np.testing.assert_allclose([row.fit_comparison for row in report.items], 1 - error)


def test_no_participant_unless_asked_for(report, model, questionnaire):
    ids = list(questionnaire.answers.index)
    texts = [as_html(report), as_markdown(report), as_json(report)]
    assert not any(str(name) in text for text in texts for name in ids)
    told = report_of(analyse(model, questionnaire, n_bootstrap=0, compare=False), with_participants=True)
    assert [each.id for each in told.participants] == ids
    scores = model.transform(questionnaire.keyed_answers(), confounds=questionnaire.confounds)
    np.testing.assert_array_equal([each.scores for each in told.participants], scores)
    assert all(ids[0] in text for text in (as_html(told), as_markdown(told), as_json(told)))


def test_somebody_silent_and_weights(model, questionnaire):
    answers = questionnaire.answers.copy()
    answers.iloc[4] = np.nan
    silent = replace(questionnaire, answers=answers, notes=())
    weights = np.ones(len(answers))
    weights[7] = 0
    with pytest.warns(UserWarning, match="answered nothing"):
        fitted = ICQF(2, item_range=silent.ranges()).fit(
            silent.keyed_answers(), confounds=silent.confounds, sample_weight=weights
        )
    with pytest.warns(UserWarning, match="answered nothing"):
        stated = fitted.state(silent, sample_weight=weights)
    report = report_of(analyse(fitted, silent, n_bootstrap=4, stated=stated), with_participants=True)
    assert (report.sample.n_participants, report.sample.n_fitted) == (len(answers), len(answers) - 2)
    assert report.scores.n_scored == len(answers) - 1
    assert np.isnan(report.participants[4].scores).all()
    with pytest.raises(InputError, match="fitted to 598 participants, but 599"):
        report_of(analyse(fitted, silent, n_bootstrap=0))


def test_a_factor_alone_no_confounds_no_names():
    rng = np.random.default_rng(0)
    values = np.clip(np.rint(rng.random((40, 1)) * 3 + rng.normal(0, 0.5, (40, 6))), 0, 3)
    from icqf.data.questionnaire import Item, Questionnaire

    table = pd.DataFrame(values, columns=list("abcdef"))
    plain = Questionnaire(table, tuple(Item(name) for name in table))
    model = ICQF(1, item_range=(0, 3), intercept=False).fit(plain.keyed_answers())
    report = report_of(analyse(model, plain, n_bootstrap=5))
    assert report.model.confounds == ()
    assert report.comparison is not None and report.fit.r_squared_hidden is None
    html = as_html(report)
    assert "Confounds" not in html and "Confounds" not in as_markdown(report)
    assert report.headline[0].startswith(
        "One factor describes the answers of 40 participants to 6 items and "
    )
    assert " explains " in report.headline[0]
    assert "set in advance" in report.methods.paragraph


def test_without_bounds_bars_stay_inside(questionnaire):
    free = {"score_max": None, "loading_max": None, "reconstruction_max": None, "penalty": "l2"}
    model = ICQF(2, item_range=questionnaire.ranges(), **free)
    model.fit(questionnaire.keyed_answers(), confounds=questionnaire.confounds)
    html = as_html(report_of(analyse(model, questionnaire, n_bootstrap=3)))
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", html)]
    assert widths and max(widths) <= 100


def test_items_counted_are_the_items_listed(report):
    """One definition of a loaded item: in the summary's count, the page and the sentence about it."""
    html = as_html(report)
    for factor in report.model.factors:
        loaded = [each for each in factor.loadings if each.share >= 0.1]
        assert factor.n_items == len(loaded)
        assert f"{len(loaded)} items with a loading of at least a tenth of the range" in html


def test_references_are_whole(report):
    assert all(reference.endswith(".") for reference in report.methods.references)
    assert report.methods.references[1].endswith("Psychometrika, 30(2), 179–185.")


def test_scores_already_solved_for_are_not_solved_again(model, questionnaire, monkeypatch):
    values = model.transform(questionnaire.keyed_answers(), confounds=questionnaire.confounds)
    scores = pd.DataFrame(values, questionnaire.answers.index, model.get_feature_names_out())
    plain = report_of(analyse(model, questionnaire, n_bootstrap=2, compare=False))
    monkeypatch.setattr(ICQF, "transform", lambda *_, **__: pytest.fail("scores were solved again"))
    assert report_of(analyse(model, questionnaire, n_bootstrap=2, compare=False, scores=scores)) == plain


def test_only_unusable_answers_leave_out_the_comparison(model, questionnaire, monkeypatch):
    """What factor analysis says about the answers is told; a defect in it is not taken for that."""

    def fail(error):
        def run(*_, **__):
            raise error

        for name in ("factor_analysis_counterparts", "parallel_count"):
            monkeypatch.setattr(f"icqf.report.analysis.{name}", run)

    fail(InputError("Two items are the same."))
    told = report_of(analyse(model, questionnaire, n_bootstrap=0))
    assert told.comparison.words == (
        "Factor analysis of the same answers could not be run: Two items are the same.",
    )
    assert told.count.parallel is None and told.comparison.pairs == ()
    assert "could not be run" in as_html(told) and "could not be run" in as_markdown(told)
    fail(ValueError("operands could not be broadcast together"))
    with pytest.raises(ValueError, match="broadcast"):
        report_of(analyse(model, questionnaire, n_bootstrap=0))


def test_what_does_not_belong_together(model, questionnaire, names):
    with pytest.raises(InputError, match="give the questionnaire that the model was fitted to"):
        analyse(model, questionnaire.select(["q00*"]))
    analysis = analyse(model, questionnaire, n_bootstrap=0, compare=False)
    with pytest.raises(InputError, match="one name for each"):
        report_of(analysis, names=[*names, "one more"])
    with pytest.raises(InputError, match="There is no factor 'factor9'"):
        report_of(analysis, names={"factor9": "x"})
    with pytest.raises(InputError, match="n_bootstrap is 1"):
        analyse(model, questionnaire, n_bootstrap=1)


def test_factor_analysis_of_very_many_items_is_left_out():
    rng = np.random.default_rng(0)
    loadings = pd.DataFrame(rng.random((2001, 1)), index=[f"q{j}" for j in range(2001)])
    answers = pd.DataFrame(rng.random((5, 2001)), columns=loadings.index)
    with pytest.raises(InputError, match=r"^The loadings have 2001 items; .* limited to 2000\.$"):
        factor_analysis_counterparts(loadings, answers)
