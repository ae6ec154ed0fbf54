"""An evaluation of one's own study uses every option that a fit would use."""

from pathlib import Path

import pytest

from icqf.analyses.method_comparison import ICQFMethod
from icqf.data.study import Study
from icqf.datasets import load_demo
from icqf.errors import InputError
from icqf.workflow.evaluation import evaluate_study
from icqf.workflow.options import StabilityOptions

ASKED = {
    "answers": "answers.csv",
    "n_components": [2, 3],
    "beta": [0.1, 0.2],
    "rule": "one_se",
    "n_splits": 4,
    "n_repeats": 2,
    "tol": 0.01,
    "max_iter": 77,
    "n_init": 2,
    "item_weight": "none",
    "penalty": "l2",
    "intercept": False,
    "confound_ranges": {"age": [4, 20]},
    "seed": 5,
    "jobs": 2,
}


@pytest.fixture
def design(tmp_path):
    seen, out = [], tmp_path / "out"

    def experiment(studies, design):
        seen.append(design)
        return design.out / "page.md"

    options = StabilityOptions.of({**ASKED, "methods": ["icqf", "l1-nmf"]})
    assert (
        evaluate_study(experiment, Study(load_demo()), options, tool="stability", out=out) == out / "page.md"
    )
    return seen[0]


def test_no_option_is_left_unused(design):
    icqf, nmf = design.methods(["icqf", "l1-nmf"])
    assert (icqf.n_components, icqf.betas, icqf.rule) == ((2, 3), (0.1, 0.2), "one_se")
    assert (icqf.n_splits, icqf.n_repeats) == (4, 2)
    given = dict(icqf.parameters)
    assert given == {
        **{name: ASKED[name] for name in ("tol", "max_iter", "n_init", "penalty", "intercept")},
        **{"confound_ranges": {"age": (4, 20)}, "missing_confounds": "error", "item_weight": None},
    }
    assert (design.random_state, design.n_jobs) == (5, 2)
    assert not nmf.bounded and nmf.parameters == icqf.parameters and nmf.rule == "one_se"


def test_the_model_has_the_parameters_and_the_weights():
    demo = load_demo()
    weights = demo.answers.index.to_series().rank() % 2
    weighted = type(demo)(**vars(demo) | {"weights": weights})
    parameters = (("tol", 0.5), ("max_iter", 3), ("confound_ranges", {"age": (0, 99)}))
    method = ICQFMethod((2,), (0.1,), parameters=parameters)
    model = method.fit(weighted, random_state=0).model
    assert (model.tol, model.max_iter, model.confound_ranges) == (0.5, 3, {"age": (0, 99)})
    assert model.n_participants_ == 300
    nmf = ICQFMethod((2,), (0.1,), bounded=False, parameters=parameters).fit(weighted, random_state=0).model
    assert (nmf.tol, nmf.max_iter, nmf.n_participants_) == (0.5, 3, 300)


def test_small_categories_are_refused_in_the_study_and_taken_in_its_parts():
    demo = load_demo()
    few = demo.confounds.assign(sex=["other"] * 12 + list(demo.confounds["sex"][12:]))
    asked = StabilityOptions.of(
        {"answers": "answers.csv", "n_components": 2, "beta": 0.1, "smallest_category": 13}
    )
    with pytest.raises(InputError, match="12 participants in the category 'other', fewer than 13"):
        evaluate_study(
            lambda *_: Path(), Study(demo.with_confounds(few)), asked, tool="stability", out=Path("out")
        )
    part = demo.with_confounds(few).take(range(11, 300))
    assert "other" in ICQFMethod((2,), (0.1,)).fit(part, random_state=0).model.confound_names_
