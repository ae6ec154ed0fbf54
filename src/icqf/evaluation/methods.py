"""Ways to turn answers into a few numbers per participant, each choosing its own number of factors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.baselines import L1NMF, FactorAnalysis, parallel_analysis
from icqf.data.parameters import BETAS
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.models.icqf import ICQF
from icqf.selection.icqfcv import ICQFCV

Array = NDArray[Any]
FACTORS = tuple(range(2, 17))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method after training.

    Attributes
    ----------
    features : callable
        From a `Questionnaire` of other participants to an array (n, k) of their scores.
    n_components : int
        Number of scores per participant.
    beta : float or None
        The penalty, where there is one.
    loadings : DataFrame (n_items, k) or None
        The factors' loadings, for methods that have factors.
    model : estimator or None
        The fitted estimator, where there is one.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import SubscaleMethod
    >>> demo = load_demo()
    >>> fitted = SubscaleMethod().fit(demo, random_state=0)
    >>> fitted.features(demo).shape, fitted.n_components
    ((600, 8), 8)
    """

    features: Callable[[Questionnaire], Array]
    n_components: int
    beta: float | None = None
    loadings: pd.DataFrame | None = None
    model: Any = None

    @property
    def factors(self) -> pd.DataFrame:
        """The loadings; an error for a method without factors."""
        if self.loadings is None:
            raise InputError("This method has no factors, so there are no loadings to look at.")
        return self.loadings


class Method(ABC):
    """A way to summarise answers: has a `name`, and `fit` learns from training participants alone.

    A subclass is a frozen dataclass: its ``repr`` tells one setting from another in the journal.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import Fitted, Method
    >>> @dataclass(frozen=True)
    ... class SumMethod(Method):
    ...     name: str = "sum of all items"
    ...
    ...     def fit(self, training, *, random_state):
    ...         return Fitted(lambda others: others.keyed_answers().mean(axis=1).to_numpy()[:, None], 1)
    >>> demo = load_demo()
    >>> SumMethod().fit(demo, random_state=0).features(demo).shape
    (600, 1)
    """

    name: str

    @abstractmethod
    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Learn from the training participants."""


@dataclass(frozen=True)
class ICQFMethod(Method):
    """ICQF with the number of factors and the penalty chosen by blockwise cross-validation.

    Parameters
    ----------
    n_components, betas : sequence
        Candidates; one of each leaves nothing to choose, and the model is fitted at once. For `n_components`
        also "auto": those around the number that parallel analysis suggests, as for `icqf.ICQFCV`.
    n_splits : int
        Folds of the cross-validation.
    bounded : bool
        False uses ℓ1-NMF instead: no bounds, no confounds and no intercept.
    name : str
    n_repeats, rule
        How often the folds are drawn, and how the cross-validation chooses; see `icqf.ICQFCV`.
    parameters : tuple of (name, value)
        Further parameters, as in `icqf.ICQF`.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import ICQFMethod
    >>> method = ICQFMethod(n_components=(8,), betas=(0.1,))
    >>> method.fit(load_demo(), random_state=0).loadings.shape
    (119, 8)
    """

    n_components: tuple[int, ...] | Literal["auto"] = FACTORS
    betas: tuple[float, ...] = BETAS
    n_splits: int = 10
    bounded: bool = True
    name: str = "ICQF"
    n_repeats: int = 1
    rule: str = "min"
    parameters: tuple[tuple[str, Any], ...] = ()

    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Choose by cross-validation within the training participants, and fit to all of them."""
        # These fits serve a comparison and are not shared, and in a part of a study a category may be small.
        options = {"smallest_category": 1, **dict(self.parameters), "random_state": random_state}
        model = ICQF() if self.bounded else L1NMF()
        model.set_params(**{name: value for name, value in options.items() if name in model.get_params()})
        ks: Any = self.n_components
        if ks != "auto":
            ks = [k for k in ks if k <= min(training.answers.shape)]
        given = training if self.bounded else training.with_confounds(None)
        if ks != "auto" and len(ks) == len(self.betas) == 1:
            model.set_params(n_components=ks[0], beta=self.betas[0]).fit(given)
        else:
            search = ICQFCV(
                model,
                n_components=ks,
                betas=self.betas,
                n_splits=self.n_splits,
                n_repeats=self.n_repeats,
                rule=self.rule,  # type: ignore[arg-type]
                random_state=random_state,
            )
            search.fit(given)
            model = search.best_estimator_

        def features(others: Questionnaire) -> Array:
            return np.asarray(model.transform(others if self.bounded else others.with_confounds(None)))

        return Fitted(features, model.loadings_.shape[1], float(model.beta), model.weighted_loadings_, model)


@dataclass(frozen=True)
class FactorAnalysisMethod(Method):
    """Exploratory factor analysis (minimum residual, promax); as many factors as parallel analysis finds.

    Items that do not vary among the training participants are left out; their loadings are 0.

    Parameters
    ----------
    n_components : int, optional
        A number of factors instead of parallel analysis's.
    n_iter : int
        Random data sets of parallel analysis.
    name : str

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import FactorAnalysisMethod
    >>> FactorAnalysisMethod(3).fit(load_demo(), random_state=0).loadings.shape
    (119, 3)
    """

    n_components: int | None = None
    n_iter: int = 20
    name: str = "FA-promax"

    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Find the number of factors and fit to the training participants."""
        answers = training.keyed_answers()
        varying = list(answers.columns[answers.nunique() > 1])
        if len(varying) < 2:
            raise InputError(
                f"Of {counted(answers.shape[1], 'item')}, {len(varying)} vary among the training "
                "participants; factor analysis needs at least 2."
            )
        seen = answers[varying].astype(float)
        k = self.n_components
        if k is None:
            found = parallel_analysis(seen, n_iter=self.n_iter, random_state=random_state)
            k = max(1, found.n_components)
        model = FactorAnalysis(k).fit(seen)
        loadings = pd.DataFrame(
            model.loadings_, index=varying, columns=[f"factor{r + 1}" for r in range(k)]
        ).reindex(answers.columns, fill_value=0.0)

        def features(others: Questionnaire) -> Array:
            return np.asarray(model.transform(others.keyed_answers()[varying].astype(float)))

        return Fitted(features, k, None, loadings, model)


@dataclass(frozen=True)
class SubscaleMethod(Method):
    """Sums of each subscale's items by the codebook; missing answers count as the participant's mean.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import SubscaleMethod
    >>> SubscaleMethod().fit(load_demo(), random_state=0).n_components
    8
    """

    name: str = "subscale sums"

    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Learn nothing: the subscales are given."""
        scales: dict[str, list[str]] = {}
        for item in training.items:
            if item.subscale:
                scales.setdefault(item.subscale, []).append(item.name)
        if not scales:
            raise InputError(
                f"{training.source or 'The questionnaire'}: no item has a subscale in the codebook, so there "
                "are no subscale sums; declare subscales or leave that method out."
            )

        def features(others: Questionnaire) -> Array:
            answers = others.keyed_answers()
            return np.column_stack(
                [answers[names].mean(axis=1).to_numpy(dtype=float) * len(names) for names in scales.values()]
            )

        return Fitted(features, len(scales))


@dataclass(frozen=True)
class ItemsMethod(Method):
    """The answers themselves: how much there is to know without any summary.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import ItemsMethod
    >>> ItemsMethod().fit(load_demo(), random_state=0).n_components
    119
    """

    name: str = "all items"

    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Learn nothing."""
        return Fitted(lambda others: others.keyed_answers().to_numpy(dtype=float), len(training.items))


METHODS: dict[str, Method] = {
    "icqf": ICQFMethod(),
    "l1-nmf": ICQFMethod(bounded=False, name="l1-NMF"),
    "fa-promax": FactorAnalysisMethod(),
    "subscales": SubscaleMethod(),
    "items": ItemsMethod(),
}
FACTORIZATIONS = ("icqf", "l1-nmf", "fa-promax")


def resolve(methods: Sequence[str | Method]) -> tuple[Method, ...]:
    """Return methods by name, or as given; their names must differ."""
    found = []
    for method in methods:
        if isinstance(method, str):
            if method not in METHODS:
                raise InputError(
                    f"There is no method {method!r}.{did_you_mean(method, METHODS)} Choose from "
                    f"{listed(METHODS)}."
                )
            method = METHODS[method]
        found.append(method)
    names = [method.name for method in found]
    if not names:
        raise InputError("No method is named; give at least one.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"Two methods have the name {twice[0]!r}; give each a name of its own.")
    return tuple(found)


def trained(method: Method, training: Questionnaire, *, random_state: int) -> Fitted | str:
    """Fit, or return why that is not possible with these participants; warnings are left to direct fits.

    Only `InputError` says so; any other error is a defect, and is raised.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return method.fit(training, random_state=random_state)
        except InputError as error:
            return str(error)
