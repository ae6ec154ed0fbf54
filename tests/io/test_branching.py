"""The language of branching logic: what it means, what it refuses, and who was not asked for which reason."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icqf.data import Item
from icqf.io.readers.branching import DEEPEST, LONGEST, Branching, NotUnderstood, in_circles, parse

number = st.integers(0, 3)


def truth(expression, frame, *, items=None, **others):
    conditions = {"item": parse(expression)}
    conditions |= {name: parse(other) for name, other in others.items()}
    result = Branching(frame, items or {}, conditions).truths()["item"]
    if isinstance(result, NotUnderstood):
        raise result
    return result


def shown(expression, frame, **more):
    return truth(expression, frame, **more).holds


@given(st.lists(st.tuples(number, number), min_size=1, max_size=6), number, number)
def test_branching_means_what_it_says(rows, a, b):
    frame = pd.DataFrame(rows, columns=["x", "y"])
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    for expression, expected in {
        f"[x] = '{a}'": x == a,
        f"[x]<>{a} and [y] >= {b}": (x != a) & (y >= b),
        f"[x] < '{a}' or [y]='{b}' and [x] = [y]": (x < a) | ((y == b) & (x == y)),
        f"not ([x] = '{a}' OR [y] > {b})": ~((x == a) | (y > b)),
        f'([x] != "{a}")': x != a,
        f"((([x]) + [y]) >= {a} && !([y] = {b}))": (x + y >= a) & (y != b),
        f"[x] - [y] * 2 < {a - b}": x - 2 * y < a - b,
        f"(([x] = {a}) or ([y] = {b})) and ([x] <> [y])": ((x == a) | (y == b)) & (x != y),
    }.items():
        result = truth(expression, frame)
        np.testing.assert_array_equal(result.holds, expected)
        assert result.sure.all()  # every answer is known
    np.testing.assert_array_equal(shown(f"x == {a} && y != {b}", frame), (x == a) & (y != b))


def test_sums_and_means_leave_out_empty_cells():
    frame = pd.DataFrame({"x": [1, 2, np.nan], "y": [3, np.nan, np.nan]})
    assert shown("sum([x],[y]) = 4", frame).tolist() == [True, False, False]
    assert shown("mean([x], [y]) = 2 and MAX([x],[y]) >= 2", frame).tolist() == [True, True, False]
    assert truth("sum([x], [y], 1) > 0", frame).sure.tolist() == [True, False, False]


def test_branching_on_empty_and_text():
    frame = pd.DataFrame({"x": [1, None], "t": ["yes", None], "c___2": [1, 0], "neg___n1": [0, 1]})
    assert shown("[x] = ''", frame).tolist() == [False, True]
    assert shown("[x] <> ''", frame).tolist() == [True, False]
    assert shown("[t] = ‘yes’", frame).tolist() == [True, False]
    assert shown("[c(2)] = '1'", frame).tolist() == [True, False]
    assert shown("// a comment\n[x]\n=\n&quot;1&quot;", frame).tolist() == [True, False]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[unknown] = 1", "'unknown', which is not a column"),
        ("[x]", "a field without a comparison"),
        ("[x] = ", "not a complete condition"),
        ("([x] = 1", "a bracket that is not closed"),
        ("round([x],1) > 2", r"the function round\(\)"),
        ("sum() > 2", "not a complete condition"),
        ("datediff([a], 'today', 'y') > 18", r"the function datediff\(\)"),
        ("[event_1_arm_1][x] = 1", r"another event or instance \(\[event_1_arm_1\]\[x\]\)"),
        ("[user-role] = 'site'", r"the smart variable \[user-role\]"),
        ("[x:label] = 'Yes'", r"the smart variable \[x:label\]"),
        ("[x] = 1 [x] = 2", "not a complete condition"),
        ("[x] = 1 = 1", "not a complete condition"),
        ("[x] = '1' '1'", "not a complete condition"),
        ("[x] = (1, 2)", "not a complete condition"),
        ("([x] = 1) + 1 > 1", "not a complete condition"),
        ("[x] ** 2 = 1", "not a complete condition"),
        ("[x] = 'unclosed", "which is not part of it"),
        ("__import__('os').system('x')", r"the function __import__\(\)"),
        ("(" * 5000 + "[x]=1" + ")" * 5000, f"more than {DEEPEST} brackets"),
        ("not " * 4000 + "[x]=1 (", "a bracket that is not closed"),
        ("not " * 4000 + "[x]=1", "not a complete condition|too many parts"),
        ("-" * 15_000 + "[x]=1", "not a complete condition|too many parts"),
        ("+".join(["[x]"] * 4500) + "=1", "not a complete condition|too many parts"),
        ("[x]=1 or " * 120_000 + "[x]=1", "has 1080005 characters"),
        ("[x] = y", "'y' where a field"),
        ("", "not a complete condition"),
    ],
)
def test_what_cannot_be_evaluated_says_why(expression, why):
    frame = pd.DataFrame({"x": [1, 0]})
    with pytest.raises(NotUnderstood, match=why):
        shown(expression, frame)


def test_long_conditions_are_evaluated():
    frame = pd.DataFrame({"x": [1, 5]})
    expression = " or ".join(["[x] = 5"] * (LONGEST // 12))
    assert shown(expression, frame).tolist() == [False, True]
    assert shown("(" * DEEPEST + "[x] = 5" + ")" * DEEPEST, frame).tolist() == [False, True]


def test_a_refused_gate_rules_nothing_out():
    frame = pd.DataFrame({"gate": [1, 0, None, 777], "other": [1, 1, 0, 0]})
    items = {"gate": Item("gate", min=0, max=1, missing_codes=(777,))}
    result = truth("[gate] = '1'", frame, items=items)
    assert result.holds.tolist() == [True, False, False, False]
    assert result.sure.tolist() == [True, True, False, False]
    both = truth("[gate] = '1' and [other] = '1'", frame, items=items)
    assert both.sure.tolist() == [True, True, True, True]  # one "no" decides
    either = truth("[gate] = '1' or [other] = '1'", frame, items=items)
    assert either.sure.tolist() == [True, True, False, False]


def test_gates_behind_gates():
    """Who was not asked the second gate for a reason is sure not to be asked what it opens."""
    frame = pd.DataFrame({"first": [0, 1, None, 1], "second": [None, None, None, 0]})
    result = truth("[second] = '1'", frame, second="[first] = '1'")
    assert result.sure.tolist() == [True, False, False, True]


def test_circles_are_found():
    uses = {"a": "b", "b": "a", "c": "c", "d": "a", "e": "d", "f": "g"}
    conditions = {name: parse(f"[{other}] = '1'") for name, other in uses.items()}
    assert in_circles(conditions) == {"a", "b", "c"}


def test_a_long_chain_of_gates_ends():
    n = 2000
    frame = pd.DataFrame({f"q{i}": [0, 1] for i in range(n)})
    conditions = {f"q{i}": parse(f"[q{i + 1}] = '1'") for i in range(n - 1)}
    assert not in_circles(conditions)
    assert Branching(frame, {}, conditions).truths()["q0"].holds.tolist() == [False, True]
    conditions[f"q{n - 1}"] = parse("[q0] = '1'")
    assert len(in_circles(conditions)) == n


def test_answers_in_words_are_compared_by_their_codes():
    frame = pd.DataFrame({"gate": ["Yes", "No", "yes ", None]})
    items = {"gate": Item("gate", min=0, max=1, labels=((0, "No"), (1, "Yes")))}
    assert shown("[gate] = '1'", frame, items=items).tolist() == [True, False, True, False]
