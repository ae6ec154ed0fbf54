"""Lattice reduction and integer programming on all numbers of a small site's model file find no answers."""

import numpy as np
import pytest

from hostile import sums
from hostile.leaks import BEYOND_CHANCE

ATTACKS = (sums.by_integer_programming, sums.by_lattice_reduction)


def best(attacked):
    return max(sums.share_found(attacked, attack(attacked)) for attack in ATTACKS)


def test_the_equations_are_right():
    """Those of the participants who are there agree with every number."""
    for exact in (True, False):
        attacked = sums.site(50, 3, exact=exact)
        numbers = attacked.equations @ attacked.truth
        assert (numbers >= attacked.low - 1e-9).all() and (numbers <= attacked.high + 1e-9).all()
        assert len(np.flatnonzero(np.isfinite(attacked.high))) > 15


def test_the_attack_works_on_sums_with_all_digits():
    assert best(sums.site(100, 3, exact=True)) > sums.by_chance(100, 3) + BEYOND_CHANCE


@pytest.mark.parametrize("n", [50, pytest.param(100, marks=pytest.mark.long)])
def test_answers_to_three_items_are_not_found(n):
    assert best(sums.site(n, 3, exact=False)) <= sums.by_chance(n, 3) + BEYOND_CHANCE


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("n", [50, 100, 150])
def test_answers_to_four_items_are_not_found(n):
    assert best(sums.site(n, 4, exact=False)) <= sums.by_chance(n, 4) + BEYOND_CHANCE
