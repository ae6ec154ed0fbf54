"""Norms: which share of a reference sample of the same age, sex or other covariates has a lower score.

At about 25 thresholds of each factor's scores, the share of the reference sample at or below is modelled by
logistic regression on splines of the numeric covariates and on categories, all thresholds at once:
logit F(tⱼ | x) = αⱼ + B(x) Θ v(tⱼ). Scores that many share, such as 0, are thresholds of their own, and are
given the middle of the percentiles they occupy. Where fitted shares cross, they are sorted. Candidates differ
in how smooth the splines are, in whether the spread changes as well as the level, and in whether categories
have curves of their own; they are averaged by their error in cross-validation (the Brier score over
thresholds, which is pinball loss over percentiles).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import block_diag
from scipy.special import expit, logit, ndtri

from icqf.data.confounds import ConfoundEncoder, category_key, table_of_confounds
from icqf.data.disclosure import SMALLEST_CATEGORY, effective_numbers, tens
from icqf.data.frames import as_pandas, refuse_other_rows
from icqf.engines.journal import fingerprint
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.io.model_file import damage_refused, read_norms, write_norms
from icqf.resampling.folds import nine_tenths

Array = NDArray[Any]
FEWEST = 60  # participants for norms
LOWEST, HIGHEST = 0.1, 99.9  # percentiles are reported between these
_THRESHOLDS = 25
_FOLDS = 10
_BIAS = 1.15  # root mean squared errors over jackknife standard errors, in laws other than the reported ones
OTHER = "other"  # categories with fewer than 20 participants
_ROUGHNESS = (10.0, 1.0, 0.1, 0.01, 0.001)  # candidate penalties on roughness, the smoothest first
_GRID = np.linspace(0, 1, 201)
_KNOTS = 6  # inner knots of a spline
_MOST_COLUMNS, _MOST_CURVES, _MOST_RANK = 2000, 200, 3  # in a file
_CELLS = 100  # steps of a numeric covariate
_RIDGE = 0.02
_WEIGHT = 3.0  # by which a candidate's weight falls with its error in cross-validation
_HEAP = 0.02  # share of the participants from which a score is a threshold of its own
_DIGITS = 4  # of coefficients in a file
_SAME = 1e-6  # scores this close are equal; files of scores have six decimals


def learn_norms(
    scores: Any,
    covariates: Any = None,
    *,
    by: Sequence[str] | None = None,
    sample_weight: Any = None,
    model: Any = None,
    sample: str = "",
) -> Norms:
    """Learn percentiles of scores by age, sex or other covariates from a reference sample.

    Parameters
    ----------
    scores : DataFrame of shape (n, k)
        Scores of the reference sample, one column per factor; those that are missing are left out.
    covariates : DataFrame of shape (n, c), optional
        Numbers, such as an age in years, or categories. Participants with a missing value are left out.
    by : sequence of str, optional
        Columns of `covariates` to use; by default, all. None for one norm for everybody.
    sample_weight : array of shape (n,), optional
        Survey weights.
    model : ICQF, optional
        The model of the scores; its fingerprint is kept, and the norms are refused for any other model.
    sample : str
        Who the reference sample is, in a few words, such as "US adults, NHANES 2017–2018".

    Notes
    -----
    Norms reach from the 20th lowest to the 20th highest value of a numeric covariate (of fewer than 1000
    participants, a fiftieth), rounded inward; nothing is extrapolated. Categories with fewer than 20
    participants are merged into "other"; if all of them together are fewer than 20, they have no norms.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from icqf.analyses import learn_norms
    >>> rng = np.random.default_rng(0)
    >>> age = pd.DataFrame({"age": rng.uniform(6, 18, 500)})
    >>> scores = pd.DataFrame({"mood": np.clip(rng.normal(age["age"] / 30, 0.2), 0, 1)})
    >>> norms = learn_norms(scores, age, sample="a school")
    >>> norms.reference
    'Reference sample: a school, about 480 participants (age 6.3 to 17.8).'
    >>> same = pd.DataFrame({"mood": [0.4, 0.4, 0.4]})
    >>> norms.percentiles(same, {"age": [8, 16, 30]}).round(-1)["mood"].tolist()
    [80.0, 30.0, nan]
    """
    table = _score_table(scores)
    weights = np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != (len(table),) or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(
            f"sample_weight must be {len(table)} numbers of 0 or more, one for each participant."
        )
    refuse_other_rows(scores, to="scores", covariates=covariates)
    frame = _covariate_table(covariates, by, len(table)).copy()
    present = (weights > 0) & table.notna().any(axis=1).to_numpy() & frame.notna().all(axis=1).to_numpy()
    _require_enough(present, weights)
    known = tuple(_Covariate.of(frame.loc[present, name], weights[present]) for name in frame.columns)
    for each in known:
        if each.categories is not None and OTHER in each.categories:
            keys = frame[each.name].map(category_key, na_action="ignore")
            frame[each.name] = keys.where(keys.isin(each.categories) | keys.isna(), OTHER)
    numbers, indicators, reasons = _encoded(known, frame)
    used = present & (reasons == "")
    _require_enough(used, weights)
    # With survey weights, smoothing and its choice go by the number of participants that they are worth.
    weights = (weights * weights[used].sum() / (weights[used] ** 2).sum()).round(6)
    drawn = _drawn(table, numbers, indicators, weights, used)
    knots = tuple(_knots(x) for x in numbers[drawn].T)
    curves: dict[str, _Curves | None] = {}
    errors: dict[str, float] = {}
    for name in table.columns:
        has = table[name].notna().to_numpy()
        few, mine = _few(int((used & has).sum())), drawn & has
        data = (table[name].to_numpy()[mine], numbers[mine], indicators[mine])
        learned = _learn(*data, knots, weights[mine], few) if mine.any() else None
        curves[name], errors[name] = learned or (None, float("nan"))
    return Norms(
        tuple(table.columns),
        known,
        tuple(curves.values()),
        tuple(None if np.isnan(error) else round(error, 1) for error in errors.values()),
        _reference(sample, known, frame[used], weights=sample_weight is not None),
        tens(int(used.sum())),
        "" if model is None else model_fingerprint(model),
    )


@dataclass(frozen=True, eq=False)
class Norms:
    """Percentiles of scores by covariates, learned from a reference sample by `learn_norms`.

    Parameters
    ----------
    factors : tuple of str
        Names of the scores.
    covariates, curves
        What was learned, without any participant.
    errors : tuple of float or None
        By factor, the mean standard error of a percentile, in points, over the reference sample.
    reference : str
        Who the reference sample is; to be shown with every percentile.
    n_participants : int
        Participants of the reference sample.
    model : str
        Fingerprint of the model of the scores; empty where it is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from icqf.analyses import learn_norms
    >>> scores = pd.DataFrame({"mood": np.linspace(0, 1, 200)})
    >>> norms = learn_norms(scores)
    >>> norms.t_scores(pd.DataFrame({"mood": [0.5]})).round()["mood"].tolist()
    [50.0]
    """

    factors: tuple[str, ...]
    covariates: tuple[_Covariate, ...]
    curves: tuple[_Curves | None, ...]
    errors: tuple[float | None, ...]
    reference: str
    n_participants: int
    model: str = ""

    @property
    def by(self) -> tuple[str, ...]:
        """The covariates' names."""
        return tuple(each.name for each in self.covariates)

    def percentiles(self, scores: Any, covariates: Any = None) -> pd.DataFrame:
        """The percentage of the reference sample with lower scores at the same covariates.

        Half of those with the same score are counted. Percentiles are between 0.1 and 99.9, and missing where
        the score or a covariate is missing, or a covariate is outside the reference sample (`reasons`).

        Parameters
        ----------
        scores : DataFrame of shape (n, k)
            Scores; columns that are not factors of the norms are ignored.
        covariates : DataFrame of shape (n, c), optional
            Needed where the norms have covariates; further columns are ignored.
        """
        table = _score_table(scores)
        absent = [name for name in self.factors if name not in table.columns]
        if absent:
            raise InputError(
                f"The norms are for the factor {absent[0]!r}, which is not among the scores "
                f"({listed(table.columns)}).{did_you_mean(absent[0], table.columns)}"
            )
        refuse_other_rows(scores, to="scores", covariates=covariates)
        frame = _covariate_table(covariates, self.by, len(table))
        numbers, indicators, reasons = _encoded(self.covariates, frame)
        out = pd.DataFrame(np.nan, index=table.index, columns=list(self.factors))
        for name, curves in zip(self.factors, self.curves, strict=True):
            own = table[name].to_numpy(dtype=float)
            known = (reasons == "") & np.isfinite(own)
            if curves is not None and known.any():
                shares = curves.percentiles(own[known], numbers[known], indicators[known])
                out.loc[known, name] = np.clip(100 * shares, LOWEST, HIGHEST)
        return out

    def t_scores(self, scores: Any, covariates: Any = None) -> pd.DataFrame:
        """Percentiles as T-scores: normally distributed in the reference sample, mean 50, deviation 10."""
        return 50 + 10 * self.percentiles(scores, covariates).apply(lambda p: ndtri(p / 100))

    def reasons(self, covariates: Any, n: int | None = None) -> pd.Series:
        """Why participants have no percentiles; empty for those who have."""
        frame = _covariate_table(covariates, self.by, n)
        return pd.Series(_encoded(self.covariates, frame)[2], index=frame.index, dtype=object)

    def score_at(self, percentile: float, covariates: Any = None) -> pd.DataFrame:
        """The scores (n, k) at a percentile; missing outside the reference sample."""
        frame = _covariate_table(covariates, self.by, None if self.by else 1)
        numbers, indicators, reasons = _encoded(self.covariates, frame)
        known = reasons == ""
        out = pd.DataFrame(np.nan, index=frame.index, columns=list(self.factors))
        for name, curves in zip(self.factors, self.curves, strict=True):
            if curves is not None and known.any():
                out.loc[known, name] = curves.scores(percentile / 100, numbers[known], indicators[known])
        return out

    def places(self, points: int = 25) -> pd.DataFrame:
        """Covariates at which norms are shown: all categories, and the range of the first number.

        Further numbers are in the middle of their range.
        """
        values: list[Sequence[Any]] = []
        for each in self.covariates:
            first = each.categories is None and all(
                other.categories is not None for other in self.covariates[: len(values)]
            )
            values.append(each.shown(points if first else 1))
        return pd.DataFrame(list(product(*values)), columns=list(self.by))

    def for_model(self, model: Any) -> Norms:
        """The norms with the model's names of the factors; norms of another model are refused."""
        names = tuple(map(str, model.get_feature_names_out()))
        other = self.model != model_fingerprint(model) if self.model else self.factors != names
        if other or len(self.factors) != len(names):
            raise InputError(
                "The norms belong to another model than this one, so their percentiles do not apply to its "
                "scores.",
                code="other-norms",
                remedy="Give the norms made from this model's results (icqf norms).",
            )
        return replace(self, factors=names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the norms to a file, which holds nothing about single participants."""
        write_norms(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Norms:
        """Read a file written by `save`."""
        content = read_norms(path)
        with damage_refused(path, "norms file"):
            return cls.from_dict(content)

    def to_dict(self) -> dict[str, Any]:
        """Return the norms as plain values."""
        return {
            "model": self.model,
            "reference": self.reference,
            "n_participants": self.n_participants,
            "covariates": [each.to_dict() for each in self.covariates],
            "factors": [
                {"name": name, "error": error, "curves": None if curves is None else curves.to_dict()}
                for name, error, curves in zip(self.factors, self.errors, self.curves, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Norms:
        """Return the norms that `to_dict` described; anything else is a ValueError."""
        factors = stored["factors"]
        covariates = tuple(_Covariate.from_dict(each) for each in stored["covariates"])
        norms = cls(
            tuple(each["name"] for each in factors),
            covariates,
            tuple(
                None if each["curves"] is None else _Curves.from_dict(each["curves"], covariates)
                for each in factors
            ),
            tuple(each["error"] for each in factors),
            stored["reference"],
            stored["n_participants"],
            stored["model"],
        )
        texts = (norms.reference, norms.model, *norms.factors)
        right = all(isinstance(each, str) for each in texts) and type(norms.n_participants) is int
        right = (
            right and norms.n_participants > 0 and len({each.name for each in covariates}) == len(covariates)
        )
        right = right and all(
            each is None or (type(each) is float and np.isfinite(each)) for each in norms.errors
        )
        if not right or len({*norms.factors}) < len(factors) or norms.to_dict() != stored:
            raise ValueError("it does not hold norms")
        return norms


def model_fingerprint(model: Any) -> str:
    """A fingerprint of what a model's scores depend on; the names of its factors are not part of it."""
    if not hasattr(model, "components_") or not hasattr(model, "item_range_"):
        raise InputError(
            "Norms need the model of one questionnaire (icqf fit), not of a battery or of visits."
        )
    arrays = (model.components_, model.confound_components_, model.item_range_.to_numpy())
    return fingerprint(list(map(str, model.item_range_.index)), *(np.asarray(a, dtype=float) for a in arrays))


def _score_table(scores: Any) -> pd.DataFrame:
    table = as_pandas(scores)
    if not isinstance(table, pd.DataFrame):
        raise InputError("The scores must be a table with one column per factor, named after it.")
    table = table.set_axis(table.columns.map(str), axis=1)
    return table.select_dtypes("number").astype(float)


def _covariate_table(covariates: Any, by: Sequence[str] | None, n: int | None) -> pd.DataFrame:
    """The covariates `by` of `n` participants."""
    if covariates is None and n is not None and not by:
        return pd.DataFrame(index=range(n))
    if covariates is None:
        raise InputError(f"The norms are by {listed(by or ())}; give covariates with these columns.")
    frame = table_of_confounds(covariates, n)
    names = list(frame.columns) if by is None else list(by)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(
            f"The norms are by {absent[0]!r}, which is not among the columns given ({listed(frame.columns)})."
            f"{did_you_mean(absent[0], frame.columns)}"
        )
    return frame[names]


def _require_enough(used: Array, weights: Array) -> None:
    n, mine = int(used.sum()), weights[used]
    effective = mine.sum() ** 2 / (mine**2).sum() if n else 0.0
    if effective < FEWEST:
        by_weight = f", who count as {effective:.0f} by their weights" if effective < n - 0.5 else ""
        raise InputError(
            f"Only {counted(n, 'participant')} have scores and all covariates{by_weight}; norms need at "
            f"least {FEWEST}.",
            code="few-for-norms",
            remedy="Use a larger reference sample, or fewer covariates.",
            count=n,
        )


def _reference(sample: str, known: Sequence[_Covariate], frame: pd.DataFrame, *, weights: bool) -> str:
    parts = [each.described(frame[each.name]) for each in known]
    about = f" ({'; '.join(parts)})" if parts else ""
    who = f"{sample.strip().rstrip('.')}, " if sample.strip() else ""
    weighted = ", weighted by their survey weights" if weights else ""
    return f"Reference sample: {who}about {tens(len(frame))} participants{about}{weighted}."


@dataclass(frozen=True)
class _Covariate:
    """A number with its range, or categories with norms; merged ones are in one group."""

    name: str
    low: float = 0.0
    high: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def of(cls, values: pd.Series, weights: Array) -> _Covariate:
        """Learn the range or the categories of a covariate that is nowhere missing."""
        name = str(values.name)
        (column,) = ConfoundEncoder(smallest_category=1).fit(values.to_frame()).columns
        if column.categories is not None:
            return cls(name, categories=_merged(name, values.map(category_key), weights))
        numbers = np.sort(pd.to_numeric(values).to_numpy(dtype=float))
        few = _few(len(numbers))
        low, high = numbers[few - 1], numbers[-few]
        if (numbers != np.rint(numbers)).any():
            step = 10 ** np.floor(np.log10(max(high - low, 1e-9) / 20))
            low, high = np.ceil(low / step - 1e-9) * step, np.floor(high / step + 1e-9) * step
        if not low < high:
            raise InputError(
                f"Covariate {name!r} is {numbers[0]:g} to {numbers[-1]:g}, but nearly everyone has the same "
                "value; leave it out."
            )
        return cls(name, float(np.round(low, 9)), float(np.round(high, 9)))

    def encode(self, values: pd.Series) -> tuple[Array, Array]:
        """The columns of the values (n, columns), and why they have no norms."""
        gaps = values.isna().to_numpy()
        if self.categories is None:
            numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            inside = (numbers >= self.low) & (numbers <= self.high)
            span = np.where(
                np.isnan(numbers),
                f"{self.name} is not a number",
                f"{self.name} is outside {self.low:g} to {self.high:g}",
            )
            columns = np.where(inside, (numbers - self.low) / (self.high - self.low), 0.5)[:, None]
        else:
            keys = values.map(category_key)
            self._refuse_other_codes(keys[~gaps])
            at = pd.Index(self.categories).get_indexer(pd.Index(keys))
            inside = at >= 0
            span = np.array(f"{self.name} is not one of {', '.join(self.categories)}")
            columns = (at[:, None] == np.arange(1, len(self.categories))).astype(float)
        return columns, np.where(gaps, f"{self.name} is missing", np.where(inside, "", span)).astype(object)

    @property
    def coded(self) -> bool:
        """Whether it has categories that are numbers, such as 1 and 2."""
        return self.categories is not None and all(map(_is_number, self.categories))

    def _refuse_other_codes(self, keys: pd.Series) -> None:
        """Refuse values that seem to be the same categories in other words, such as 1 for female."""
        own, found = {*(self.categories or ())}, {*keys}
        unknown = sorted(found - own)
        other_kind = any(_is_number(each) != self.coded for each in unknown)
        shifted = self.coded and bool(own - found) and any(map(_is_number, unknown))
        if not unknown or not (shifted if found & own else other_kind or len(unknown) > 1):
            return
        raise InputError(
            f"The norms are by {self.name!r} with the categories {listed(sorted(own))}, but here it is "
            f"{listed(sorted(found))}.",
            code="other-categories",
            remedy=f"Write the categories of the norms into {self.name!r}, or give a codebook with labels "
            "such as 1=female;2=male; leave it empty for participants of no such category.",
            found=unknown[0],
        )

    def shown(self, points: int) -> list[Any]:
        """Values at which norms are shown."""
        if self.categories is not None:
            return list(self.categories)
        if points == 1:
            return [round((self.low + self.high) / 2, 6)]
        least = (self.high - self.low) / points
        power = 10.0 ** np.floor(np.log10(least))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        return (np.arange(first, last + 1) * step).round(9).tolist()

    def described(self, values: pd.Series) -> str:
        """The range, or the categories with their numbers of participants."""
        if self.categories is None:
            return f"{self.name} {self.low:g} to {self.high:g}"
        counts = values.map(category_key).value_counts()
        coded = "coded " if self.coded else ""
        return f"{self.name}: {', '.join(f'{tens(counts[each])} {coded}{each}' for each in self.categories)}"

    def to_dict(self) -> dict[str, Any]:
        if self.categories is None:
            return {"name": self.name, "low": self.low, "high": self.high}
        return {"name": self.name, "categories": list(self.categories)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> _Covariate:
        known = {**stored}
        if "categories" in known:
            known["categories"] = tuple(known["categories"])
        made = cls(**known)
        names = (made.name, *(made.categories or ()))
        if not all(isinstance(each, str) for each in names) or len({*names[1:]}) < len(names) - 1:
            raise ValueError("a covariate is not valid")
        if not -np.inf < made.low < made.high < np.inf or made.categories == ():
            raise ValueError("a covariate has no range")
        return made


def _drawn(table: pd.DataFrame, numbers: Array, indicators: Array, weights: Array, used: Array) -> Array:
    """The random nine tenths from whom norms are learned: others as soon as one participant more is used.

    The draw depends on all participants, but neither on their order nor on how far out the extremes are.
    """
    columns = [numbers[used], indicators[used], weights[used, None]]
    for scores in table.to_numpy()[used].T:
        known = np.sort(scores[np.isfinite(scores)])
        few = min(_few(len(known)), len(known))
        ends = known[[few - 1, -few]] if few else (0.0, 0.0)
        columns.append(np.nan_to_num(np.clip(scores, *ends), nan=-1.0).round(6)[:, None])
    drawn = used.copy()
    drawn[used] = nine_tenths(np.hstack(columns))
    return drawn


def _few(n: int) -> int:
    """Participants who lie at or beyond the ends of what norms show."""
    return int(np.clip(n // 50, 3, SMALLEST_CATEGORY))


def _is_number(key: str) -> bool:
    try:
        return np.isfinite(float(key))
    except ValueError:
        return False


def _merged(name: str, values: pd.Series, weights: Array) -> tuple[str, ...]:
    """Categories, the largest first; those with few participants are "other", or none if still too few."""
    codes, keys = pd.factorize(values.to_numpy(object), sort=True)
    members = effective_numbers(codes, weights)
    large = dict(zip(keys[members >= SMALLEST_CATEGORY], members[members >= SMALLEST_CATEGORY], strict=True))
    rest = weights[~values.isin([*large]).to_numpy() | (values == OTHER).to_numpy()]
    if len(rest) and rest.sum() ** 2 / (rest**2).sum() >= SMALLEST_CATEGORY:
        large.pop(OTHER, None)
        large[OTHER] = 0.0
    if len(large) < 2:
        raise InputError(
            f"Covariate {name!r} has fewer than two categories of at least {SMALLEST_CATEGORY} participants.",
            code="small-category",
            remedy="Leave it out.",
        )
    return tuple(sorted(large, key=lambda each: -large[each]))


def _encoded(known: Sequence[_Covariate], frame: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Numeric covariates (n, c) between 0 and 1, indicators (n, g), and why there are no norms (n,)."""
    n, reasons = len(frame), np.full(len(frame), "", dtype=object)
    numbers, indicators = [np.empty((n, 0))], [np.empty((n, 0))]
    for each in known:
        columns, why = each.encode(frame[each.name])
        (numbers if each.categories is None else indicators).append(columns)
        reasons = np.where(reasons == "", why, reasons)
    return np.hstack(numbers), np.hstack(indicators), reasons


def _knots(x: Array) -> tuple[float, ...]:
    """Inner knots, at rounded quantiles of the sample; none where there are few different values."""
    inner = np.unique(np.quantile(x, np.linspace(0, 1, _KNOTS + 2)[1:-1]).round(2))
    few = len(np.unique(x)) <= _KNOTS + 3
    return () if few else tuple(inner[(inner > 0.02) & (inner < 0.98)].tolist())


@dataclass(frozen=True, eq=False)
class _Design:
    """The columns B(x) for encoded covariates between 0 and 1."""

    knots: tuple[tuple[float, ...], ...]  # inner knots of each numeric covariate; none where it has no effect
    crossed: bool = False  # whether categories have curves of their own

    def columns(self, numbers: Array, indicators: Array) -> Array:
        """B(x), (n, p), from numeric covariates (n, c) between 0 and 1 and indicators (n, g)."""
        splines = [
            _spline(inner)(np.clip(x, 0, 1))[:, 1:]  # thresholds take the place of the first
            for x, inner in zip(numbers.T, self.knots, strict=True)
        ]
        own = [each[:, None] * basis for basis in splines for each in indicators.T] if self.crossed else []
        return np.hstack([indicators, *splines, *own])

    def width(self, groups: int) -> int:
        """The number of columns with this many indicators."""
        splines = sum(len(inner) + 3 for inner in self.knots)
        return groups + splines * (1 + groups * self.crossed)

    def penalty(self, groups: int, roughness: float) -> Array:
        """A small ridge, and the roughness of the splines: their mean squared second derivative (p, p)."""
        bends = [_spline(inner).derivative(2)(_GRID)[:, 1:] for inner in self.knots]
        rough = [roughness * bend.T @ bend / len(_GRID) + _RIDGE * np.eye(bend.shape[1]) for bend in bends]
        own = [each for each in rough for _ in range(groups)] if self.crossed else []
        return np.asarray(block_diag(_RIDGE * np.eye(groups), *rough, *own))


def _spline(inner: Sequence[float]) -> BSpline:
    """Cubic B-splines on [0, 1]."""
    knots = [*[0.0] * 4, *inner, *[1.0] * 4]
    return BSpline(np.array(knots), np.eye(len(knots) - 4), 3)


_STORED = {"thresholds": float, "below": int, "upto": int, "levels": float, "shape": float, "slopes": float}


@dataclass(frozen=True, eq=False)
class _Curves:
    """The norms of one factor: the share of participants at or below scores, by covariates.

    Curves are numbered from 1; number 0 is a share of 0, and the last plus 1 a share of 1.
    """

    thresholds: Array  # (m,)
    below: Array  # (m,) number of the curve of scores below the threshold
    upto: Array  # (m,) number of the curve of scores at or below; differs where many share the score
    levels: Array  # α (j,)
    shape: Array  # v(t) (j, r)
    slopes: Array  # Θ (p, r)
    design: _Design
    tails: tuple[float, float]  # distance over which a tail shrinks to 1/e, below and above

    def sides(self, numbers: Array, indicators: Array) -> tuple[Array, Array]:
        """Shares below, and at or below, every threshold (n, m)."""
        columns = self.design.columns(numbers, indicators)
        F = np.sort(expit(self.levels + columns @ self.slopes @ self.shape.T), axis=1)
        F = np.pad(F, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        return F[:, self.below], F[:, self.upto]

    def percentiles(self, scores: Array, numbers: Array, indicators: Array) -> Array:
        """The share (n,) with a lower score, and half of those with the same."""
        below, upto = self.sides(numbers, indicators)
        t, rows = self.thresholds, np.arange(len(scores))
        right = np.searchsorted(t, scores - _SAME)  # the first threshold that is not lower
        left = np.maximum(right - 1, 0)
        inside = np.minimum(right, len(t) - 1)
        same = np.abs(t[inside] - scores) <= _SAME
        low, high = upto[rows, left], below[rows, inside]
        way = (scores - t[left]) / np.where(left < inside, t[inside] - t[left], 1.0)
        F = low + way * np.maximum(high - low, 0)
        under, over = right == 0, right == len(t)
        F = np.where(under, below[:, 0] * np.exp(np.minimum(scores - t[0], 0) / self.tails[0]), F)
        F = np.where(over, 1 - (1 - upto[:, -1]) * np.exp(np.minimum(t[-1] - scores, 0) / self.tails[1]), F)
        return np.where(same, (below[rows, inside] + upto[rows, inside]) / 2, F)

    def scores(self, share: float, numbers: Array, indicators: Array) -> Array:
        """The score (n,) that a share of the participants have at most."""
        below, upto = self.sides(numbers, indicators)
        steps = np.repeat(self.thresholds, 2)
        shares = np.stack([below, upto], axis=2).reshape(len(below), -1)
        found = np.array([np.interp(share, each, steps) for each in shares])
        with np.errstate(divide="ignore"):
            under = self.thresholds[0] + self.tails[0] * np.log(share / below[:, 0])
            over = self.thresholds[-1] - self.tails[1] * np.log((1 - share) / (1 - upto[:, -1]))
        found = np.where(share < below[:, 0], under, found)
        return np.where(share > upto[:, -1], over, found)

    def to_dict(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in _STORED}
        return {
            **arrays,
            "knots": [list(each) for each in self.design.knots],
            "crossed": self.design.crossed,
            "tails": list(self.tails),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], covariates: Sequence[_Covariate]) -> _Curves:
        design = _Design(tuple(tuple(map(float, each)) for each in stored["knots"]), stored["crossed"])
        numeric = sum(each.categories is None for each in covariates)
        groups = sum(len(each.categories) - 1 for each in covariates if each.categories is not None)
        if len(design.knots) != numeric or design.width(groups) > _MOST_COLUMNS:
            raise ValueError("it has more knots or categories than norms have")
        if len(stored["thresholds"]) > _MOST_CURVES or len(stored["levels"]) > _MOST_CURVES:
            raise ValueError("it has more curves than norms have")
        low, high = map(float, stored["tails"])
        arrays: dict[str, Any] = {name: np.array(stored[name], dtype=kind) for name, kind in _STORED.items()}
        if not arrays["slopes"].size and not covariates:  # an empty list has no second dimension
            arrays["slopes"] = np.zeros((0, arrays["shape"].shape[-1]))
        made = cls(design=design, tails=(low, high), **arrays)
        width = design.columns(np.zeros((1, numeric)), np.zeros((1, groups))).shape[1]
        m, j = len(made.thresholds), len(made.levels)
        places = np.stack([made.below, made.upto], axis=1).ravel()
        right = [
            m > 0 < j and made.below.shape == made.upto.shape == (m,),
            (np.diff(made.thresholds) > 0).all() and (np.diff(places) >= 0).all(),
            made.shape.shape == (j, made.slopes.shape[1]) and made.slopes.shape[1] <= _MOST_RANK,
            made.slopes.shape[0] == width and places.min() >= 0 and places.max() <= j + 1,
            0 < min(low, high) <= max(low, high) < np.inf,
        ]
        if not all(right):
            raise ValueError("its curves are not valid")
        return made


@dataclass(frozen=True, eq=False)
class _Cells:
    """Participants with the same covariates, counted: all that a fit needs, whatever their number."""

    numbers: Array  # (c, numeric covariates)
    indicators: Array  # (c, g)
    size: Array  # Σω (folds, c)
    lower: Array  # Σω of those below each curve's score (folds, c, j)

    def fit(self, choice: _Choice, order: Array, folds: Array, start: _Fit | None = None) -> _Fit:
        """α and Θ for the participants of some folds, by Newton's method."""
        design, roughness, rank = choice
        B, V = design.columns(self.numbers, self.indicators), order[:, None] ** np.arange(rank)
        N, K = self.size[folds].sum(axis=0)[:, None], self.lower[folds].sum(axis=0)
        J, p = len(order), B.shape[1]
        level, slopes = start or (logit((K.sum(axis=0) + 0.5) / (N.sum() + 1)), np.zeros((p, rank)))
        penalty = J * np.kron(design.penalty(self.indicators.shape[1], roughness), np.eye(rank))
        for _ in range(25):
            F = expit(level + B @ slopes @ V.T)
            residual, weight = K - N * F, N * F * (1 - F) + 1e-9
            both = ((B.T @ weight).T[:, :, None] * V[:, None, :]).reshape(J, -1)
            inner = np.empty((p, rank, p, rank))
            for at, to in product(range(rank), repeat=2):
                inner[:, at, :, to] = B.T @ ((weight @ (V[:, at] * V[:, to]))[:, None] * B)
            # The levels are eliminated: their block is diagonal.
            own, above = weight.sum(axis=0), residual.sum(axis=0)
            matrix = inner.reshape(p * rank, p * rank) + penalty - both.T @ (both / own[:, None])
            right = (B.T @ residual @ V).ravel() - penalty @ slopes.ravel() - both.T @ (above / own)
            step = np.linalg.solve(matrix, right)
            move = (above - both @ step) / own
            level, slopes = level + move, slopes + step.reshape(p, rank)
            if max(np.abs(move).max(), np.abs(step).max(initial=0)) < 1e-5:
                break
        return level, slopes

    def error(self, choice: _Choice, order: Array, fold: int, fitted: _Fit) -> float:
        """The Brier score of a fit, summed over the participants of a fold and all curves."""
        level, slopes = fitted
        B, V = choice[0].columns(self.numbers, self.indicators), order[:, None] ** np.arange(choice[2])
        F = np.sort(expit(level + B @ slopes @ V.T), axis=1)
        N, K = self.size[fold][:, None], self.lower[fold]
        return float((N * F**2 - 2 * F * K + K).sum())

    def std_error(self, without: Sequence[_Curves]) -> float:
        """The mean standard error of a percentile, in points, from curves without each fold (jackknife)."""
        k = len(without)
        at = np.array([np.mean(each.sides(self.numbers, self.indicators), axis=0) for each in without])
        variance = (k - 1) * np.var(at, axis=0)
        mean = np.mean(at, axis=0)
        size = self.size.sum(axis=0)[:, None] * ((mean > 0.05) & (mean < 0.95))
        return float(100 * (size * np.sqrt(variance)).sum() / max(size.sum(), 1e-9))


def _learn(
    scores: Array, numbers: Array, indicators: Array, knots: _Knots, weights: Array, few: int
) -> tuple[_Curves, float] | None:
    """The curves of one factor and their mean standard error in points; None where scores hardly differ."""
    events = _Events.of(scores, weights, few)
    if events is None:
        return None
    cells = _cells(scores, numbers, indicators, weights, events)
    whole, folds = cells.lower.sum(axis=(0, 1)) / cells.size.sum(), np.arange(_FOLDS)
    order = logit(whole)
    order = ((order - order.mean()) / max(np.ptp(order) / 2, 1e-9)).round(_DIGITS)
    fits: dict[_Choice, tuple[_Fit, list[_Fit]]] = {}
    errors: dict[_Choice, float] = {}

    def best(choices: Iterable[_Choice]) -> _Choice:
        for each in choices:
            if each not in fits:
                every = cells.fit(each, order, folds)
                parts = [cells.fit(each, order, folds[folds != fold], every) for fold in folds]
                fits[each] = every, parts
                errors[each] = sum(cells.error(each, order, fold, fit) for fold, fit in enumerate(parts))
        return min(errors, key=errors.__getitem__)

    plain, rank = _Design(knots), min(2, len(order))
    chosen = best((plain, each, rank) for each in (_ROUGHNESS if knots else _ROUGHNESS[:1]))
    crossed = replace(plain, crossed=True)
    if knots and indicators.shape[1] > 0 and crossed.width(indicators.shape[1]) <= _MOST_COLUMNS / 4:
        chosen = best((crossed, each, rank) for each in _ROUGHNESS)
    chosen = best((*chosen[:2], each) for each in (1, 3) if each <= len(order))
    ranks = max(each[2] for each in fits)
    weight = {
        each: np.exp(-_WEIGHT * (error - errors[chosen]) / len(order)) for each, error in errors.items()
    }

    def mean(pick: Callable[[tuple[_Fit, list[_Fit]]], _Fit]) -> _Fit:
        """All candidates' coefficients, averaged by their weights; those that one lacks are 0."""
        parts = [(each / sum(weight.values()), pick(fits[choice])) for choice, each in weight.items()]
        level = np.zeros(len(order))
        slopes = np.zeros((max(len(own) for _, (_, own) in parts), ranks))
        for share, (own, slope) in parts:
            level += share * own
            slopes[: len(slope), : slope.shape[1]] += share * slope
        return level, slopes

    level, slopes = mean(lambda fit: fit[0])
    curves = _Curves(
        events.at,
        events.below,
        events.upto,
        level.round(_DIGITS),
        (order[:, None] ** np.arange(ranks)).round(_DIGITS),
        slopes.round(_DIGITS),
        crossed if crossed in (each[0] for each in fits) else plain,
        events.tails(whole),
    )
    without = []
    for fold in folds:
        level, slopes = mean(lambda fit, fold=fold: fit[1][fold])  # type: ignore[misc]
        without.append(replace(curves, levels=level, slopes=slopes))
    return curves, _BIAS * cells.std_error(without)


_Knots = tuple[tuple[float, ...], ...]
_Choice = tuple[_Design, float, int]  # design, penalty on roughness, rank
_Fit = tuple[Array, Array]  # levels and slopes


@dataclass(frozen=True, eq=False)
class _Events:
    """Thresholds of a factor's scores, and what is counted at each: below it, half of those at it, or all."""

    at: Array  # (m,)
    below: Array  # (m,) numbers of curves
    upto: Array
    curves: tuple[tuple[float, float], ...]  # threshold, and the share counted of those at it

    @classmethod
    def of(cls, scores: Array, weights: Array, few: int) -> _Events | None:
        """`few` participants are beyond the outer thresholds."""
        share = weights / weights.sum()
        most = min(_THRESHOLDS, 1 / (SMALLEST_CATEGORY * (share**2).sum()))
        values, place, counts = np.unique(scores.round(6), return_inverse=True, return_counts=True)
        held = np.bincount(place, share)
        heaped = (held >= _HEAP) & ((counts >= SMALLEST_CATEGORY) | np.isin(values, (0.0, 1.0)))
        rest = np.sort(scores[~heaped[place]])
        thresholds: Array = np.empty(0)
        if len(rest) > 2 * few:
            order = np.argsort(scores[~heaped[place]], kind="stable")
            mass = share[~heaped[place]][order]
            upto = (mass.cumsum() - mass / 2) / mass.sum()
            m = max(4, round(most * mass.sum()))
            thresholds = np.interp(np.linspace(0, 1, m), upto, rest)
            thresholds = np.clip(thresholds, rest[few], rest[-few - 1])
            step = 10 ** np.floor(np.log10(max(rest[-few - 1] - rest[few], 1e-4) / 50))
            thresholds = (np.unique(np.rint(thresholds / step)) * step).round(9)
            beyond = np.minimum(
                (scores < thresholds[:, None]).sum(axis=1), (scores > thresholds[:, None]).sum(axis=1)
            )
            thresholds = np.setdiff1d(thresholds[beyond >= few], values[heaped])
        at = np.sort(np.concatenate([values[heaped], thresholds]))
        curves: list[tuple[float, float]] = []
        below, above = [], []
        for t in at:
            if t in thresholds:
                curves.append((t, 0.5))
                below.append(len(curves))
                above.append(len(curves))
                continue
            if (scores < t - _SAME).sum() >= few:
                curves.append((t, 0.0))
            below.append(len(curves))
            above.append(-1)
            if (scores > t + _SAME).sum() >= few:
                curves.append((t, 1.0))
                above[-1] = len(curves)
        if not curves:
            return None
        last = len(curves) + 1
        return cls(at, np.array(below), np.array([last if a < 0 else a for a in above]), tuple(curves))

    def tails(self, whole: Array) -> tuple[float, float]:
        """How far the tails reach below and above all thresholds, from the outer two."""
        F = np.concatenate([[0.0], whole, [1.0]])
        lengths = []
        for t, inner, outer in (
            (self.at[:2], F[self.below[1:2]], F[self.upto[:1]]),
            (self.at[-2:], 1 - F[self.upto[-2:-1]], 1 - F[self.below[-1:]]),
        ):
            falls = len(t) == 2 and 0 < outer[0] < inner[0]
            length = np.ptp(t) / np.log(inner[0] / outer[0]) if falls else max(np.ptp(self.at), 0.1) / 4
            lengths.append(float(f"{length:.2g}"))
        return lengths[0], lengths[1]


def _cells(scores: Array, numbers: Array, indicators: Array, weights: Array, events: _Events) -> _Cells:
    """Count the participants in cells of the covariates; folds do not depend on their order."""
    steps = np.rint(numbers * _CELLS) / _CELLS
    rows, cell = np.unique(np.hstack([steps, indicators]), axis=0, return_inverse=True)
    order = np.lexsort((weights, cell.ravel(), scores))
    fold = np.empty(len(scores), dtype=int)
    fold[order] = np.random.default_rng(0).permutation(len(scores)) % _FOLDS
    at, size = fold * len(rows) + cell.ravel(), _FOLDS * len(rows)

    def counted_(amount: Array) -> Array:
        return np.bincount(at, amount, minlength=size).reshape(_FOLDS, -1)

    lower = [
        counted_(weights * ((scores < t - _SAME) + share * (np.abs(scores - t) <= _SAME)))
        for t, share in events.curves
    ]
    c = numbers.shape[1]
    return _Cells(rows[:, :c], rows[:, c:], counted_(weights), np.stack(lower, axis=2))
