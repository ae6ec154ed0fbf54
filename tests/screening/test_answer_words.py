"""Well-known wordings are put in their order, whatever way they are written; unknown ones never are."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf.screening.answer_words import SCALES, is_known, means_no_answer, order_of, plain

scales = st.sampled_from(SCALES)


def as_written(draw, text):
    """A text as somebody may have typed it."""
    change = draw(st.sampled_from([str.upper, str.title, str.capitalize, str]))
    return draw(st.sampled_from(["{}", " {} ", "{}.", "  {}"])).format(change(text).replace(" ", "  "))


@given(scales, st.data())
def test_a_whole_scale_in_any_order_and_spelling_comes_back_in_order(scale, data):
    chosen = [data.draw(st.sampled_from(spellings)) for spellings in scale.steps]
    written = [as_written(data.draw, text) for text in chosen]
    order = order_of(data.draw(st.permutations([*written, "Prefer not to say"])))
    assert order is not None
    assert order.missing == ("Prefer not to say",)
    # On a longer scale between the same answers there may be others that nobody gave.
    texts = [text for _, text in order.labels]
    assert [text for text in texts if text in {t.strip() for t in written}] == [t.strip() for t in written]
    assert [value for value, _ in order.labels] == sorted(value for value, _ in order.labels)


def test_no_two_scales_put_the_same_answers_in_different_orders():
    """But for "somewhat difficult" and "very difficult", of which nothing is then said."""
    for one, two in combinations(SCALES, 2):
        steps = [{text: at for at, texts in enumerate(scale.steps) for text in texts} for scale in (one, two)]
        shared = sorted(steps[0].keys() & steps[1].keys(), key=lambda text: steps[0][text])
        for low, high in combinations(shared, 2):
            if steps[0][low] < steps[0][high] and steps[1][low] > steps[1][high]:
                assert (low, high) == ("somewhat difficult", "very difficult")
                assert order_of([low, high]) is None


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["yes", "perhaps", "no"], "no < perhaps < yes"),
        (["Very Accurate", "Very Inaccurate", "Moderately Accurate", "Moderately Inaccurate",
          "Slightly Accurate", "Slightly Inaccurate"],
         "Very Inaccurate < Moderately Inaccurate < Slightly Inaccurate < Slightly Accurate < "
         "Moderately Accurate < Very Accurate"),
        (["Agree", "Strongly agree", "Neutral", "Disagree", "Strongly disagree"],
         "Strongly disagree < Disagree < Neutral < Agree < Strongly agree"),
        (["Nearly every day", "Not at all", "More than half the days", "Several days"],
         "Not at all < Several days < More than half the days < Nearly every day"),
        (["Most or all of the time (5-7 days)", "Rarely or none of the time (less than 1 day)",
          "Some or a little of the time (1-2 days)", "Occasionally or a moderate amount of time (3-4 days)"],
         "Rarely or none of the time (less than 1 day) < Some or a little of the time (1-2 days) < "
         "Occasionally or a moderate amount of time (3-4 days) < Most or all of the time (5-7 days)"),
        (["3 - Often", "0 - Never", "1 - Rarely"], "0 - Never < 1 - Rarely < 3 - Often"),
        (["Oft (3)", "Nie (0)", "N/A"], "Nie (0) < Oft (3)"),
        (["5 - stimme voll zu", "1 - stimme nicht zu", "2", "3", "4"],
         "1 - stimme nicht zu < 2 < 3 < 4 < 5 - stimme voll zu"),
        (["2 Agree", "1 Disagree"], "1 Disagree < 2 Agree"),
        (["Never", "Sometimes", "don't know"], "Never < Sometimes < often"),
    ],
)  # fmt: skip
def test_orders(texts, order):
    assert str(order_of(texts)) == order


@pytest.mark.parametrize(
    "texts",
    [
        ["Male", "Female"],
        ["nie", "manchmal", "oft"],
        ["yes"],
        ["N/A", "refused"],
        ["1 day", "3 days"],
        ["1", "2", "3"],
        ["1", "2", "refused"],
        ["often", "1", "2"],
        ["never", "NEVER EVER", "often"],
        ["rarely", "seldom", "often"],  # two words for one answer
        ["1 - no", "1 - yes"],
        [],
    ],
)
def test_an_unknown_order_is_not_guessed(texts):
    assert order_of(texts) is None


def test_no_answers():
    for text in ("Prefer not to say", "DON'T KNOW", "N/A", "refused", "Not applicable", "I'd rather not say",
                 "skipped", "No response", "Prefer not to answer.", "unknown"):  # fmt: skip
        assert means_no_answer(text) and order_of([text, "no", "yes"]).missing == (text,)
    for text in ("no", "not at all", "never", "none", "not sure", "does not apply to me at all", "perhaps"):
        assert not means_no_answer(text)
        assert is_known(text)


def test_plain():
    assert plain("Don’t   Know!") == plain("dont know") == "dont know"
    assert plain("Neither agree/nor disagree") == "neither agree nor disagree"


@pytest.mark.parametrize("sign", [" ", "(", "[", "(1", " - "])
def test_long_texts_are_read_in_time(sign):
    text = sign * 20_000 + "x"
    assert order_of([text, "never", "often"]) is None
    assert not is_known(text) and not means_no_answer(f"x{text}")
