"""Items that run against the others are found, whatever their scale and order, and traits with two ends are
named as such."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icqf.data.check import check
from icqf.data.direction import find_reversed
from icqf.data.questionnaire import Draft, Item, Questionnaire
from icqf.datasets import load_bfi, load_demo, load_help, load_msq, load_phq9, make_cohort

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BFI = ("A1", "C4", "C5", "E1", "E2", "O2", "O5")
CESD = ("F1D", "F1H", "F1L", "F1P")


def unkeyed(questionnaire, *, subscales=False):
    """The same answers, their directions forgotten."""
    items = (
        replace(item, reverse=False, subscale=item.subscale if subscales else "")
        for item in questionnaire.items
    )
    return Draft(questionnaire.answers, tuple(items))


def undescribed(questionnaire):
    """The same answers without any codebook."""
    return Draft(questionnaire.answers, tuple(Item(item.name) for item in questionnaire.items))


def simulated(signs, *, n=400, seed=0, noise=0.8, steps=5):
    """Answers to items of several traits: one row of signs for each trait."""
    rng = np.random.default_rng(seed)
    columns = {}
    for trait, row in enumerate(signs):
        scores = rng.normal(size=n)
        for j, sign in enumerate(row):
            raw = sign * scores + noise * rng.normal(size=n)
            columns[f"t{trait}_{j}"] = np.clip(np.rint(raw + (steps - 1) / 2), 0, steps - 1)
    return pd.DataFrame(columns)


def found(answers):
    return find_reversed(Questionnaire.of(answers)).looks_reversed


@pytest.fixture(scope="module")
def answers():
    return simulated([[1, 1, 1, -1, 1], [1, 1, 1, 1, 1, 1, 1, -1, -1]])


REVERSED = ("t0_3", "t1_7", "t1_8")


# --- laws -------------------------------------------------------------------------------------------------


def suspects_in(questionnaire):
    """The items that run against the others, as a table indexed by item."""
    return pd.DataFrame([vars(each) for each in find_reversed(questionnaire).suspects]).set_index("item")


def test_reversed_items_are_found_with_strength_and_certainty(answers):
    keying = find_reversed(Questionnaire.of(answers))
    assert keying.looks_reversed == REVERSED
    first = keying.suspects[0]
    assert set(first.against) == {"t0_0", "t0_1", "t0_2", "t0_4"}
    assert -1 < first.low < first.correlation < first.high < -0.3
    assert first.found_again == 1.0
    against = answers[list(first.against)]
    mean = ((against - against.mean()) / against.std()).mean(axis=1)
    assert first.correlation == pytest.approx(answers["t0_3"].corr(mean))


def test_the_standard_error_is_that_of_the_bootstrap(answers):
    (suspect, *_) = find_reversed(Questionnaire.of(answers)).suspects
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        drawn = answers.iloc[rng.integers(len(answers), size=len(answers))]
        drawn = (drawn - drawn.mean()) / drawn.std()
        draws.append(drawn["t0_3"].corr(drawn[list(suspect.against)].mean(axis=1)))
    assert (suspect.high - suspect.low) / (2 * 1.96) == pytest.approx(np.std(draws), rel=0.15)


def test_permuting_participants_and_items_changes_nothing(answers):
    rng = np.random.default_rng(1)
    before = suspects_in(Questionnaire.of(answers))
    rows, columns = rng.permutation(len(answers)), rng.permutation(answers.shape[1])
    after = suspects_in(Questionnaire.of(answers.iloc[rows, columns]))
    assert list(after.index) == [name for name in answers.columns[columns] if name in before.index]
    numbers = ["correlation", "low", "high"]
    pd.testing.assert_frame_equal(after.loc[before.index, numbers], before[numbers])
    assert (after.loc[before.index, "against"].map(set) == before["against"].map(set)).all()


@pytest.mark.parametrize("item", ["t0_0", "t0_3", "t1_2", "t1_8"])
def test_reversing_an_item_toggles_it(answers, item):
    turned = answers.assign(**{item: 4 - answers[item]})
    assert set(found(turned)) == set(REVERSED) ^ {item}


def test_reversing_in_the_codebook_is_reversing_the_answers(answers):
    items = tuple(Item(name, min=0, max=4, reverse=name in REVERSED) for name in answers)
    assert find_reversed(Questionnaire(answers, items)).suspects == ()
    items = tuple(Item(name, min=0, max=4, reverse=name == "t0_0") for name in answers)
    keying = find_reversed(Questionnaire(answers, items))
    assert keying.looks_reversed == REVERSED
    assert [suspect.item for suspect in keying.suspects if suspect.reversed] == ["t0_0"]


def test_units_do_not_matter(answers):
    rng = np.random.default_rng(2)
    units, shifts = rng.uniform(0.5, 3, (2, answers.shape[1]))
    before = suspects_in(Questionnaire.of(answers))
    after = suspects_in(Questionnaire.of(answers * units + shifts))
    numbers = ["correlation", "low", "high", "found_again"]
    pd.testing.assert_frame_equal(after[numbers], before[numbers])


def test_the_same_twice(answers):
    assert find_reversed(Questionnaire.of(answers)) == find_reversed(Questionnaire.of(answers))


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_missing_answers(answers, share):
    rng = np.random.default_rng(3)
    assert found(answers.mask(rng.random(answers.shape) < share)) == REVERSED


def test_binary_and_mixed_ranges(answers):
    mixed = answers.copy()
    mixed.iloc[:, ::2] = (mixed.iloc[:, ::2] > 2).astype(float)
    assert found((answers > 2).astype(float)) == REVERSED
    assert found(mixed) == REVERSED


def test_codes_of_missing_answers_and_answers_out_of_range_do_not_count(answers):
    spoiled = answers.copy()
    spoiled.iloc[::4, :] = 99.0
    undeclared = Draft(spoiled, tuple(Item(name) for name in answers))
    assert find_reversed(undeclared).looks_reversed == REVERSED
    items = tuple(Item(name, min=0, max=4) for name in answers)
    assert find_reversed(Draft(spoiled, items)).looks_reversed == REVERSED


def test_items_that_say_nothing_are_passed_over(answers):
    odd = answers.assign(flat=3.0, empty=np.nan, rare=answers["t0_0"].where(np.arange(len(answers)) < 20))
    assert found(odd) == REVERSED


@pytest.mark.parametrize("n", [0, 1, 2, 5, 29])
def test_few_participants_tell_nothing(answers, n):
    keying = find_reversed(Draft(answers.head(n), tuple(Item(name) for name in answers)))
    assert keying.suspects == () and keying.ends == ()


@pytest.mark.parametrize("columns", [[], ["t0_0"], ["t0_0", "t0_3"]])
def test_few_items(answers, columns):
    keying = find_reversed(Draft(answers[columns], tuple(Item(name) for name in columns)))
    assert keying.suspects == ()
    assert bool(keying.ends) == (len(columns) == 2)


def test_large_studies_are_looked_at_in_part():
    answers = simulated([[1, 1, 1, -1, 1]], n=9000)
    assert found(answers) == ("t0_3",)


# --- which side -------------------------------------------------------------------------------------------


def test_two_ends_are_said_rather_than_guessed():
    keying = find_reversed(Questionnaire.of(simulated([[1, 1, 1, 1, -1, -1, -1, -1], [1] * 5])))
    assert keying.suspects == ()
    (ends,) = keying.ends
    assert {ends.one, ends.other} == {
        tuple(f"t0_{j}" for j in range(4)),
        tuple(f"t0_{j}" for j in range(4, 8)),
    }
    assert ends.correlation < -0.5


def test_within_a_subscale_the_majority_decides():
    answers = simulated([[1, 1, 1, 1, -1, -1, -1], [1] * 5])
    assert find_reversed(Questionnaire.of(answers)).suspects == ()
    scales = {name: name[:2] for name in answers}
    keying = find_reversed(Questionnaire.of(answers, subscales=scales))
    assert keying.looks_reversed == ("t0_4", "t0_5", "t0_6")
    assert {suspect.scale for suspect in keying.suspects} == {"t0"}


@pytest.mark.parametrize("pile", ["low", "high"])
def test_where_answers_pile_up_decides_between_two_ends(pile):
    rng = np.random.default_rng(4)
    traits = np.repeat(rng.normal(size=(800, 3)), 4, axis=1)
    raw = traits + 0.7 * rng.normal(size=traits.shape)
    answers = pd.DataFrame(np.clip(np.floor(raw + 0.2), 0, 3), columns=[f"q{j:02d}" for j in range(12)])
    answers[["q01", "q03"]] = 3 - answers[["q01", "q03"]]
    answers = answers if pile == "low" else 3 - answers
    assert found(answers) == ("q01", "q03")


def test_traits_that_are_mildly_opposed_are_two_traits():
    rng = np.random.default_rng(5)
    general = rng.normal(size=(1500, 1))
    one, other = (sign * 0.55 * general + 0.83 * rng.normal(size=(1500, 1)) for sign in (1, -1))
    raw = np.hstack([np.repeat(one, 9, axis=1), np.repeat(other, 4, axis=1)])
    answers = np.clip(np.rint(raw + 0.8 * rng.normal(size=raw.shape) + 2), 0, 4)
    keying = find_reversed(Questionnaire.of(pd.DataFrame(answers, columns=[f"q{j}" for j in range(13)])))
    assert keying.suspects == () and keying.ends == ()


# --- real and simulated studies ---------------------------------------------------------------------------


@pytest.mark.parametrize("prepared", [undescribed, unkeyed, lambda q: unkeyed(q, subscales=True)])
def test_published_keys_are_found_exactly(prepared):
    assert find_reversed(prepared(load_bfi())).looks_reversed == BFI
    assert find_reversed(prepared(load_help().select(["F1*"]))).looks_reversed == CESD
    assert find_reversed(prepared(load_help())).looks_reversed == CESD
    assert find_reversed(prepared(load_demo())).looks_reversed == ("q004", "q006")


def test_declared_keys_leave_nothing_to_find():
    for questionnaire in (load_bfi(), load_help(), load_demo(), load_phq9()):
        assert find_reversed(questionnaire).suspects == ()


def test_moods_have_two_ends():
    keying = find_reversed(undescribed(load_msq()))
    assert keying.suspects == ()
    ends = [(set(each.one), set(each.other)) for each in keying.ends]
    assert any({"sleepy", "tired"} <= other and {"energetic", "wide.awake"} <= one for one, other in ends)


def test_simulated_cohorts_have_none():
    for name in ("hbn", "abcd"):
        keying = find_reversed(undescribed(make_cohort(name, 1500).questionnaire))
        assert keying.suspects == ()


def test_false_alarms_are_rarer_than_one_item_in_five_hundred():
    script = [sys.executable, "bench_keying.py", "40", "50000"]
    done = subprocess.run(script, cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_very_many_items_are_not_compared():
    answers = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (30, 1001))).add_prefix("q")
    questionnaire = Questionnaire.of(answers)
    assert not find_reversed(questionnaire).compared
    (finding,) = check(questionnaire).of("directions")
    assert "1001 items" in finding.message
