"""Methods under one interface, compared over splits: stability, replication in another study, diagnoses."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from icqf.baselines import FactorAnalysis, parallel_analysis
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import BETAS, FACTORIZATIONS, TRAINING_SHARES
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.models import L1NMF
from icqf.models.icqf import ICQF
from icqf.models.icqfcv import ICQFCV
from icqf.resampling.folds import FULL, make_splits
from icqf.resampling.matching import agreement, match_factors

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Array = NDArray[Any]
STRENGTHS = tuple(10.0**power for power in range(-4, 5))


def held_out_auc(scores: Sequence[Array], labels: Sequence[Array]) -> float:
    """Area under the ROC curve in the held-out participants; NaN without both classes.

    Scores are standardised by the training participants, missing ones set to the mean, and the ℓ2 penalty is
    chosen in the validation participants.
    """
    from sklearn.metrics import roc_auc_score  # slow to import

    center, spread = np.nanmean(scores[0], axis=0), np.nanstd(scores[0], axis=0)
    parts = []
    for values, label in zip(scores, labels, strict=True):
        seen = ~np.isnan(label)
        standard = (values[seen] - center) / np.where(spread > 0, spread, 1)
        parts.append((np.nan_to_num(standard), label[seen]))
    (X, y), (X_validation, y_validation), (X_held_out, y_held_out) = parts
    if not (_both(y) and _both(y_held_out)):
        return float("nan")
    models = [_regression(X, y, C) for C in (STRENGTHS if _both(y_validation) else (1.0,))]
    if len(models) > 1:
        areas = [roc_auc_score(y_validation, model.decision_function(X_validation)) for model in models]
        models = [models[int(np.argmax(areas))]]
    return float(roc_auc_score(y_held_out, models[0].decision_function(X_held_out)))


def _regression(X: Array, y: Array, C: float) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, class_weight="balanced", solver="newton-cholesky", max_iter=200)
    with warnings.catch_warnings(action="ignore"):
        return model.fit(X, y)


def _both(label: Array) -> bool:
    return len(np.unique(label)) == 2


FACTORS = tuple(range(1, 17))


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
        The penalty, if there is one.
    loadings : DataFrame (n_items, k) or None
        The factors' loadings, for methods that have factors.
    model : estimator or None
        The fitted estimator, if there is one.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import SubscaleMethod
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
            raise InputError("This method has no factors, so it has no loadings.")
        return self.loadings


class Method(ABC):
    """A way to summarise answers, with a `name` and a `fit` to training participants.

    A subclass is a frozen dataclass: its ``repr`` identifies its settings in the journal.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import Fitted, Method
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

    @property
    def follows(self) -> str:
        """The name of the method whose number of factors it takes; empty if it chooses its own."""
        return ""

    @abstractmethod
    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Learn from the training participants."""


@dataclass(frozen=True)
class ICQFMethod(Method):
    """ICQF with the number of factors and the penalty chosen by blockwise cross-validation.

    Parameters
    ----------
    n_components, betas : sequence
        Candidates; with one of each, the model is fitted without a search. `n_components` may be "auto", as
        for `icqf.ICQFCV`.
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
    >>> from icqf.analyses import ICQFMethod
    >>> method = ICQFMethod(n_components=(8,), betas=(0.1,))
    >>> method.fit(load_demo(), random_state=0).loadings.shape
    (119, 8)
    """

    n_components: tuple[int, ...] | Literal["auto"] = FACTORS
    betas: tuple[float, ...] = BETAS
    n_splits: int = 10
    bounded: bool = True
    name: str = "ICQF"
    n_repeats: Literal["auto"] | int = 1
    rule: str = "min"
    parameters: tuple[tuple[str, Any], ...] = ()

    def fit(self, training: Questionnaire, *, random_state: int) -> Fitted:
        """Choose by cross-validation within the training participants, and fit to all of them."""
        # These fits are not shared, and a category may be small in a part of a study.
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
                rule=self.rule,
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
    n_components : int or str, optional
        Number of factors; by default that of parallel analysis. The name of another method, such as "ICQF",
        takes its number in the same participants, where both are compared (`icqf.analyses.stability`).
    n_iter : int
        Random data sets of parallel analysis.
    name : str

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import FactorAnalysisMethod
    >>> FactorAnalysisMethod(3).fit(load_demo(), random_state=0).loadings.shape
    (119, 3)
    """

    n_components: int | str | None = None
    n_iter: int = 20
    name: str = "FA-promax"

    @property
    def follows(self) -> str:
        """The name of the method whose number of factors it takes."""
        return self.n_components if isinstance(self.n_components, str) else ""

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
        if isinstance(k, str):
            raise InputError(
                f"{self.name} takes the number of factors of {k}, which has none here; give a number."
            )
        if k is None:
            count = parallel_analysis(seen, n_iter=self.n_iter, random_state=random_state)
            k = max(1, count.n_components)
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
    >>> from icqf.analyses import SubscaleMethod
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
    """The answers themselves, without any summary.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import ItemsMethod
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
    "fa-promax-same-k": FactorAnalysisMethod("ICQF", name="FA-promax same k"),
    "subscales": SubscaleMethod(),
    "items": ItemsMethod(),
}


def resolve(methods: Sequence[str | Method]) -> tuple[Method, ...]:
    """Methods by name, or as given; their names must differ."""
    chosen = []
    for method in methods:
        if isinstance(method, str):
            if method not in METHODS:
                raise InputError(
                    f"There is no method {method!r}.{did_you_mean(method, METHODS)} Choose from "
                    f"{listed(METHODS)}."
                )
            method = METHODS[method]
        chosen.append(method)
    names = [method.name for method in chosen]
    if not names:
        raise InputError("No method is given; give at least one.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"Two methods have the name {twice[0]!r}; give each a name of its own.")
    for method in chosen:
        if method.follows and method.follows not in names:
            raise InputError(
                f"{method.name} takes the number of factors of {method.follows}, which is not among the "
                f"methods; add {method.follows}, or leave {method.name} out."
            )
    return tuple(chosen)


def trained(method: Method, training: Questionnaire, *, random_state: int) -> Fitted | str:
    """The fitted method, or the message of an InputError; warnings are ignored."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return method.fit(training, random_state=random_state)
        except InputError as error:
            return str(error)


Callback = Callable[[Progress], object]
FEWEST_CASES = 10


@dataclass(frozen=True, eq=False)
class Part:
    """One method fitted to one training set."""

    split: int
    size: float
    n_training: int
    method: str
    n_components: int | None = None
    beta: float | None = None
    loadings: pd.DataFrame | None = None
    auc: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    @property
    def factors(self) -> pd.DataFrame:
        """The loadings; an error for a method without factors."""
        if self.loadings is None:
            raise InputError(f"The method {self.method!r} has no loadings to compare; leave it out.")
        return self.loadings


def fit_parts(
    questionnaire: Questionnaire,
    labels: pd.DataFrame | None,
    methods: Sequence[Method],
    *,
    sizes: Sequence[float],
    n_splits: int,
    random_state: int,
    n_jobs: int | None,
    checkpoint: Any,
    callback: Callback | None,
) -> list[Part]:
    """Every method on every training set; with labels, also how well it predicts those held out."""
    study = answered(questionnaire).with_observed_ranges()
    _refuse_unknown_confounds(study)
    known = None if labels is None else checked_labels(labels, study)
    splits = make_splits(study, known, sizes=sizes, n_splits=n_splits, random_state=random_state)
    jobs: dict[str, Any] = {}
    later: dict[str, Any] = {}
    places = {}
    for size in sorted(set(sizes), reverse=True):
        for number, split in enumerate(splits):
            seed = int(np.random.SeedSequence([random_state, number]).generate_state(1)[0] // 2)
            rows = (split.training[size], split.validation, split.held_out)
            tested = known if size != FULL else None
            for method in methods:
                name = f"{size} {number} {method!r}"
                places[name] = (number, size, len(rows[0]), method.name)
                (later if method.follows else jobs)[name] = (study, tested, method, rows, seed)
    how: Any = {"n_jobs": n_jobs, "checkpoint": checkpoint, "callback": callback}
    results = run_all(jobs, fit_part, **how)
    found = {places[name]: results[name] for name in jobs}
    if later:
        results |= run_all(
            {name: _following(job, found, places[name]) for name, job in later.items()},
            fit_part,
            mixed=True,
            **how,
        )
    parts = [_part(place, results[name], study) for name, place in places.items()]
    if all(part.failed for part in parts):
        raise InputError(f"No fit was possible. {parts[0].method}: {parts[0].failed}")
    return parts


def _following(job: tuple[Any, ...], found: Mapping[Any, Any], place: tuple[Any, ...]) -> tuple[Any, ...]:
    """The job of a method that takes the number of factors of another one, as found at the same place.

    Where the other method failed, so does this one.
    """
    study, tested, method, rows, seed = job
    k = found[(*place[:-1], method.follows)].get("n_components")
    return study, tested, method if k is None else replace(method, n_components=k), rows, seed


def failures(parts: Sequence[Part]) -> tuple[str, ...]:
    """The fits that were not possible, and why."""
    return tuple(
        f"{part.method}, size {part.size:g}, split {part.split + 1}: {part.failed}"
        for part in parts
        if part.failed
    )


def fit_part(
    study: Questionnaire,
    labels: pd.DataFrame | None,
    method: Method,
    rows: tuple[Array, Array, Array],
    seed: int,
) -> dict[str, Any]:
    """Fit a method to the training rows, and score all; `rows`: training, validation, held-out."""
    fitted = trained(method, study.take(rows[0]), random_state=seed)
    if isinstance(fitted, str):
        return {"failed": fitted}
    result: dict[str, Any] = {"n_components": fitted.n_components, "beta": fitted.beta}
    if fitted.loadings is not None:
        result["loadings"] = fitted.loadings.to_numpy(dtype=float).tolist()
    if labels is not None:
        with warnings.catch_warnings(action="ignore"):
            scores = [fitted.features(study.take(part)) for part in rows]
        result["auc"] = {
            str(name): held_out_auc(scores, [labels[name].to_numpy()[part] for part in rows])
            for name in labels
        }
    return result


def answered(questionnaire: Questionnaire) -> Questionnaire:
    """The questionnaire without participants who answered nothing."""
    some = questionnaire.answers.notna().any(axis=1).to_numpy()
    return questionnaire if some.all() else questionnaire.take(np.flatnonzero(some))


def _refuse_unknown_confounds(study: Questionnaire) -> None:
    if study.confounds is None:
        return
    for name, column in study.confounds.items():
        unknown = column.index[column.isna()]
        if len(unknown):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise InputError(
                f"The confound {str(name)!r} is missing for participant {str(unknown[0])!r}{more}; leave "
                "them out, or leave out the confound."
            )


def checked_labels(labels: pd.DataFrame, study: Questionnaire) -> pd.DataFrame:
    """The labels of the study's participants as 1, 0 or NaN."""
    if isinstance(labels, pd.Series):
        labels = labels.to_frame()
    known = study.answers.index.intersection(labels.index)
    if not len(known):
        raise InputError(
            f"No participant of the labels is in the answers (the answers have "
            f"{listed(study.answers.index, most=3)}, the labels {listed(labels.index, most=3)}); index both "
            "by participant."
        )
    if not labels.index.is_unique:
        again = labels.index[labels.index.duplicated()][0]
        raise InputError(f"The labels have the participant {str(again)!r} twice; keep one row each.")
    table = labels.reindex(study.answers.index)
    for name in table:
        try:
            table[name] = table[name].astype(float)
        except (TypeError, ValueError):
            raise InputError(f"The label {str(name)!r} is not numeric; code it as 1 and 0.") from None
        other = table[name][table[name].notna() & ~table[name].isin([0, 1])]
        if len(other):
            raise InputError(
                f"The label {str(name)!r} is {other.iloc[0]:g} for participant {str(other.index[0])!r}; a "
                "label must be 1, 0 or missing."
            )
        for value, what in ((1, "case"), (0, "control")):
            number = int((table[name] == value).sum())
            if number < FEWEST_CASES:
                raise InputError(
                    f"The label {str(name)!r} has {counted(number, what)}; at least {FEWEST_CASES} are "
                    "needed to divide them into parts. Leave the label out."
                )
    return table


def _part(place: tuple[int, float, int, str], result: dict[str, Any], study: Questionnaire) -> Part:
    if "failed" in result:
        return Part(*place, failed=result["failed"])
    loadings = None
    if "loadings" in result:
        names = [f"factor{r + 1}" for r in range(result["n_components"])]
        loadings = pd.DataFrame(result["loadings"], index=study.answers.columns, columns=names)
    return Part(*place, result["n_components"], result["beta"], loadings, result.get("auc", {}))


def over_splits(
    table: pd.DataFrame, by: list[str], measures: Sequence[str], medians: Sequence[str]
) -> pd.DataFrame:
    """Means and standard deviations of measures over splits, and medians of counts."""
    grouped = table.groupby(by, sort=False)
    columns = {}
    for name in table.columns:
        if name in medians:
            columns[name] = grouped[name].median()
        elif name in measures:
            columns[name] = grouped[name].mean()
            columns[f"{name}_spread"] = grouped[name].std()
    return pd.DataFrame(columns).reset_index()


def bands(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """The mean of a value for each method and size, with its 95 % t interval (from 3 values on).

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": "ICQF", "size": 0.2, "auc": [0.70, 0.72, 0.74]})
    >>> bands(table, "auc").round(3)
      method  size   auc   low  high
    0   ICQF   0.2  0.72  0.67  0.77
    """
    rows = []
    for (method, size), values in table.groupby(["method", "size"], sort=False)[value]:
        n, mean = len(values), float(values.mean())
        half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 2 else 0.0
        rows.append({"method": method, "size": size, value: mean, "low": mean - half, "high": mean + half})
    return pd.DataFrame(rows)


ALPHA = 0.01


def compare_methods(
    table: pd.DataFrame,
    value: str,
    *,
    method: str = "ICQF",
    by: Sequence[str] = ("size",),
) -> pd.DataFrame:
    """Test one method against each other one, split by split.

    One-sided Wilcoxon signed-rank tests in both directions; the p-values of each direction are adjusted for
    the false discovery rate (Benjamini and Hochberg), of which 1 % counts as a difference.

    Parameters
    ----------
    table : DataFrame
        Columns ``split``, ``method``, `value`, and those of `by`.
    value : str
        What is compared; more is better.
    method : str
        The method to test.
    by : sequence of str
        A separate test for each value of these columns.

    Returns
    -------
    DataFrame
        Columns of `by`, ``against``, ``n_splits``, ``difference`` (mean), ``p_better``, ``p_worse``,
        ``q_better``, ``q_worse`` (adjusted) and ``verdict`` (better, worse, no difference, too few splits).

    Notes
    -----
    Splits of one study share most of their participants: the tests show whether a difference is systematic in
    this sample, not whether it would hold in another.

    Examples
    --------
    >>> import pandas as pd
    >>> fa = pd.DataFrame({"split": range(12), "method": "FA", "auc": 0.7, "size": 0.8})
    >>> table = pd.concat([fa.assign(method="ICQF", auc=0.72), fa])
    >>> compare_methods(table, "auc")[["against", "difference", "verdict"]].round(3)
      against  difference verdict
    0      FA        0.02  better
    """
    names = list(dict.fromkeys(table["method"]))
    if method not in names:
        raise InputError(f"There is no method {method!r} in the table; it has {listed(names)}.")
    rows = []
    for level, part in table.groupby(list(by), sort=False):
        wide = part.pivot_table(index="split", columns="method", values=value)
        for other in names:
            if other == method or other not in wide or method not in wide:
                continue
            gain = (wide[method] - wide[other]).dropna().to_numpy()
            rows.append(
                dict(zip(by, level, strict=True))
                | {"against": other, "n_splits": len(gain), "difference": float(gain.mean())}
                | {"p_better": _one_sided(gain), "p_worse": _one_sided(-gain)}
            )
    tests = pd.DataFrame(rows, columns=[*by, "against", "n_splits", "difference", "p_better", "p_worse"])
    for side in ("better", "worse"):
        tests[f"q_{side}"] = stats.false_discovery_control(tests[f"p_{side}"]) if len(tests) else []
    tests["verdict"] = np.select(
        [tests["q_better"] <= ALPHA, tests["q_worse"] <= ALPHA, 0.5 ** tests["n_splits"] > ALPHA],
        ["better", "worse", "too few splits"],
        "no difference",
    )
    return tests


def _one_sided(gain: np.ndarray) -> float:
    """p-value of the hypothesis that gains are not above 0."""
    if not len(gain) or not np.any(gain):
        return 1.0
    with warnings.catch_warnings(action="ignore"):  # few splits with ties
        return float(stats.wilcoxon(gain, alternative="greater").pvalue)


MEASURES = ("pearson", "pearson_optimal", "congruence")


@dataclass(frozen=True, eq=False)
class Stability:
    """Agreement of factors from parts of a study with those of the whole; see `stability`.

    Attributes
    ----------
    table : DataFrame
        One row per split, size and method: ``n_training``, ``k_full`` and ``k`` (factors in the development
        set and in the part), ``beta``, ``pearson`` and ``pearson_sd`` (greedy pairs), ``pearson_optimal``,
        ``congruence``, and ``truth`` (greedy Pearson correlation with true loadings, if given).
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by size and method."""
        measures = [name for name in (*MEASURES, "truth") if name in self.table]
        return over_splits(self.table, ["size", "method"], measures, ["n_training", "k_full", "k"])

    def tests(self) -> pd.DataFrame:
        """Tests of ICQF's agreement against that of the others; see `compare_methods`."""
        return compare_methods(self.table, "pearson")


def stability(
    questionnaire: Questionnaire,
    *,
    labels: pd.DataFrame | None = None,
    methods: Sequence[str | Method] = FACTORIZATIONS,
    sizes: Sequence[float] = TRAINING_SHARES,
    n_splits: int = 30,
    random_state: int = 0,
    truth: pd.DataFrame | None = None,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> Stability:
    """Compare the loadings from parts of a study with those from its whole development set.

    In each split a fifth of the participants is held out; the others are the development set. Each method is
    fitted to it and to parts of it, choosing its number of factors each time, and factors are matched.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study.
    labels : DataFrame (n, labels), optional
        Labels to balance over all parts, in addition to the confounds.
    methods : sequence
        Names ("icqf", "l1-nmf", "fa-promax", "fa-promax-same-k") or `Method` objects, such as
        ``ICQFMethod((8,), (0.1,))``.
    sizes : sequence of float
        Parts, as shares of the development set, up to 0.8.
    n_splits : int
        How often the study is divided.
    random_state : int
        Seed of the splits and fits.
    truth : DataFrame (n_items, factors), optional
        True loadings of simulated answers, to compare with as well.
    n_jobs : int, optional
        Processes.
    checkpoint : path, optional
        Journal from which an interrupted run continues; shared with `diagnostic_auc` and `replication` of the
        same study and splits.
    callback : callable, optional
        Called with the progress.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import ICQFMethod, stability
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> found = stability(demo, methods=[ICQFMethod((3,), (0.1,))], sizes=[0.8, 0.2], n_splits=2)
    >>> found.summary()[["size", "method", "n_training", "k"]]
       size method  n_training    k
    0   0.8   ICQF       384.0  3.0
    1   0.2   ICQF        96.0  3.0
    """
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    parts = fit_parts(
        questionnaire, labels, resolve(methods), sizes=[*sizes, FULL], checkpoint=checkpoint, **how
    )
    usable = [part for part in parts if not part.failed]
    whole = {(part.split, part.method): part for part in usable if part.size == FULL}
    rows = []
    for part in usable:
        reference = whole.get((part.split, part.method))
        if part.size == FULL or reference is None:
            continue
        row = {"split": part.split, "size": part.size, "n_training": part.n_training, "method": part.method}
        row |= {"k_full": reference.n_components, "k": part.n_components, "beta": part.beta}
        row |= agreement(reference.factors, part.factors)
        if truth is not None:
            row["truth"] = match_factors(truth, part.factors).mean
        rows.append(row)
    return Stability(pd.DataFrame(rows), failures(parts))


@dataclass(frozen=True, eq=False)
class Replication:
    """Agreement of the factors of two studies; see `replication`.

    Attributes
    ----------
    table : DataFrame
        One row per split and method: ``k_a`` and ``k_b`` (factors found in each study), ``pearson`` and
        ``pearson_sd`` (greedy pairs), ``pearson_optimal``, ``congruence``.
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """Mean over splits of each measure, and the median number of factors, by method."""
        return over_splits(self.table, ["method"], (*MEASURES, "pearson_sd"), ["k_a", "k_b"])

    def tests(self) -> pd.DataFrame:
        """Tests of ICQF's agreement against that of the others; see `compare_methods`."""
        return compare_methods(self.table.assign(size=FULL), "pearson")


def replication(
    a: Questionnaire,
    b: Questionnaire,
    *,
    labels: tuple[pd.DataFrame | None, pd.DataFrame | None] = (None, None),
    methods: Sequence[str | Method] = FACTORIZATIONS,
    n_splits: int = 30,
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoints: tuple[str | Path | None, str | Path | None] = (None, None),
    callback: Callback | None = None,
) -> Replication:
    """Compare the loadings that methods find in the development sets of two studies.

    Each method chooses its number of factors in each study; factors are matched on the items that the two
    questionnaires share, by name.

    Parameters
    ----------
    a, b : Questionnaire
        The studies.
    labels : pair of DataFrame
        Labels of their participants, balanced over all parts.
    methods, n_splits, random_state, n_jobs, callback
        As for `stability`.
    checkpoints : pair of paths
        A journal for each study.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.analyses import ICQFMethod, replication
    >>> a, b = (make_cohort(name, 200).questionnaire for name in ("hbn", "abcd"))
    >>> replication(a, b, methods=[ICQFMethod((4,), (0.1,))], n_splits=2).table[["split", "k_a", "k_b"]]
       split  k_a  k_b
    0      0    4    4
    1      1    4    4
    """
    chosen = resolve(methods)
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    sides = [
        fit_parts(study, known, chosen, sizes=[FULL], checkpoint=checkpoint, **how)
        for study, known, checkpoint in zip((a, b), labels, checkpoints, strict=True)
    ]
    second = {(part.split, part.method): part for part in sides[1] if not part.failed}
    rows = []
    for part in sides[0]:
        other = second.get((part.split, part.method))
        if other is None or part.failed:
            continue
        row = {"split": part.split, "method": part.method}
        row |= {"k_a": part.n_components, "k_b": other.n_components}
        rows.append(row | agreement(part.factors, other.factors))
    return Replication(pd.DataFrame(rows), failures([*sides[0], *sides[1]]))


@dataclass(frozen=True, eq=False)
class DiagnosticAUC:
    """Prediction of diagnoses from scores; see `diagnostic_auc`.

    Attributes
    ----------
    table : DataFrame
        One row per split, size, method and label: ``n_training``, ``n_components``, ``beta`` and ``auc``, the
        area under the ROC curve in the held-out participants.
    failures : tuple of str
        Fits that were not possible, and why.
    """

    table: pd.DataFrame
    failures: tuple[str, ...] = ()

    def over_labels(self) -> pd.DataFrame:
        """Mean area over the labels, one row per split, size and method."""
        keys = ["split", "size", "n_training", "method", "n_components", "beta"]
        return self.table.groupby(keys, sort=False, dropna=False)["auc"].mean().reset_index()

    def summary(self) -> pd.DataFrame:
        """Mean area with its 95 % interval over splits, and the median number of factors."""
        means = self.over_labels()
        counts = means.groupby(["method", "size"], sort=False)[["n_training", "n_components"]].median()
        return bands(means, "auc").merge(counts.reset_index(), on=["method", "size"])

    def by_label(self) -> pd.DataFrame:
        """Mean area of each label (rows) by size and method (columns)."""
        return self.table.pivot_table(
            index="label", columns=["size", "method"], values="auc", sort=False, observed=True
        )

    def tests(self, *, each_label: bool = False) -> pd.DataFrame:
        """Tests of ICQF's area against that of the others; see `compare_methods`."""
        if each_label:
            return compare_methods(self.table, "auc", by=("size", "label"))
        return compare_methods(self.over_labels(), "auc")


def diagnostic_auc(
    questionnaire: Questionnaire,
    labels: pd.DataFrame,
    *,
    methods: Sequence[str | Method] = tuple(METHODS),
    sizes: Sequence[float] = TRAINING_SHARES,
    n_splits: int = 30,
    random_state: int = 0,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callback | None = None,
) -> DiagnosticAUC:
    """Measure how well the scores of each method predict diagnoses in held-out participants.

    In each split a fifth of the participants is held out, and a fifth of the others is for validation,
    balanced for confounds and labels. A method is fitted to parts of the rest, and scores the others. For
    each label a logistic regression with an ℓ2 penalty and balanced classes is trained on the training
    scores, with the penalty chosen in the validation participants, and evaluated in the held-out ones.

    Parameters
    ----------
    questionnaire : Questionnaire
        The study. Every item's answer range must be declared.
    labels : DataFrame (n, labels)
        1, 0, or missing, indexed by participant.
    methods : sequence
        Names (those of `stability`, "subscales", "items") or `Method` objects.
    sizes : sequence of float
        Training sets, as shares of the development set (all but the held-out participants), up to 0.8.
    n_splits, random_state, n_jobs, checkpoint, callback
        As for `stability`.

    Examples
    --------
    >>> from icqf.datasets import make_cohort
    >>> from icqf.analyses import ICQFMethod, diagnostic_auc
    >>> cohort = make_cohort("hbn", 300)
    >>> methods = [ICQFMethod((8,), (0.1,)), "subscales"]
    >>> labels = cohort.diagnoses[["adhd"]]
    >>> found = diagnostic_auc(cohort.questionnaire, labels, methods=methods, sizes=[0.8], n_splits=2)
    >>> found.table[["split", "method", "label", "n_components"]]
       split         method label  n_components
    0      0           ICQF  adhd             8
    1      0  subscale sums  adhd             8
    2      1           ICQF  adhd             8
    3      1  subscale sums  adhd             8
    """
    open_ended = [item.name for item in questionnaire.items if not item.declared]
    if open_ended:
        raise InputError(
            f"The answer range of {listed(open_ended, most=3)} is not declared, and the observed range would "
            "depend on held-out participants; declare min and max in the codebook."
        )
    if FULL in sizes:
        raise InputError("The whole development set leaves nobody for validation; give sizes up to 0.8.")
    how: Any = {"n_splits": n_splits, "random_state": random_state, "n_jobs": n_jobs, "callback": callback}
    parts = fit_parts(questionnaire, labels, resolve(methods), sizes=sizes, checkpoint=checkpoint, **how)
    own = ("split", "size", "n_training", "method", "n_components", "beta")
    rows = [
        {name: getattr(part, name) for name in own} | {"label": label, "auc": auc}
        for part in parts
        for label, auc in part.auc.items()
    ]
    return DiagnosticAUC(pd.DataFrame(rows), failures(parts))
