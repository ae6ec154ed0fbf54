"""How many factors: what another sample would choose, what other folds would, and numbers that are level."""

import numpy as np
import pandas as pd
import pytest

from icqf import ICQF, ICQFCV
from icqf.datasets import make_synthetic
from icqf.models.selection_rules import Choice
from icqf.report.sections.methods import _chosen
from icqf.report.sections.number_of_factors import _lineages, _shares, count_values
from icqf.report.words import Values


def choice(**shares):
    rows = [(int(k[1:]), 0.1, share) for k, share in shares.items()]
    return Choice(pd.DataFrame(rows, columns=["n_components", "beta", "share"]))


@pytest.fixture(scope="module")
def found():
    """A search that chose 2 factors, and that 3 are level with: the second splits in two."""
    answers = make_synthetic(60, 12, 2, noise=0.3, random_state=1).answers
    search = ICQFCV(
        ICQF(item_range=(0, 100), n_init=1), n_components=[2], betas=[0.1], n_splits=3, random_state=0
    )
    search.fit(answers)
    search.choice_, search.sample_choice_ = choice(k2=0.97, k3=0.03), choice(k2=0.58, k3=0.42)
    own = search.best_estimator_.weighted_loadings_
    second = own.iloc[:, 1].to_numpy()
    split = np.array([own.iloc[:, 0], second * (np.arange(12) % 2), second * (1 - np.arange(12) % 2)]).T
    search.level_ = {3: pd.DataFrame(split, index=own.index)}
    known = Values(model=search.best_estimator_, search=search, parallel=None, rules=None)
    return count_values(known)


def test_the_results_text_says_what_another_sample_would_choose_and_nothing_of_folds(found):
    said = _chosen(Values(count=found))
    assert "another sample of this size would be expected to choose the same number in 58% of cases" in said
    assert "3 in 42%" in said and "97%" not in said and "fold" not in said
    assert "58%" in found.words[0] and any("97%" in words for words in found.words)


def test_level_numbers_are_named_with_how_the_factors_split(found):
    assert any("3 factors predict hidden answers as well as 2" in words for words in found.words)
    report = Values(count=found, model=Values(factors=[Values(name="A"), Values(name="B")]))
    (grid,) = _lineages(report)
    links = [(row[0], row[1]) for row in grid.rows]
    assert ("A", "1") in links and ("B", "2") in links and ("B", "3") in links
    assert [row[2:] for row in _shares(found).rows] == [["58%", "97%"], ["42%", "3%"]]
