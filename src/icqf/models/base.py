"""What a fitted model can do: score, reconstruct, summarise and save."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icqf.core.certificate import score_tolerance, solve_scores_inside
from icqf.core.problem import Problem
from icqf.core.result import Certificate
from icqf.data.about import About
from icqf.data.confounds import ConfoundEncoder
from icqf.data.frames import AnswersInParts, as_pandas, is_dask_array, like, refuse_other_rows
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.data.validate import weights_of
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError
from icqf.models.factor_names import checked_names
from icqf.models.statement import NewAnswers, state
from icqf.models.summary import FitRecord, FitStatistics, Summary

if TYPE_CHECKING:
    from icqf.io.model_file import StoredModel
    from icqf.models.score_intervals import ScoreDistribution, ScoreIntervals

Array = NDArray[Any]


class FittedModel(TransformerMixin, BaseEstimator):
    """The part of `ICQF` that is used after `fit`; see there for settings and attributes."""

    beta: float
    item_range: Any
    item_weight: Any
    loading_beta: float | None = None
    stop: Literal["certificate", "objective"] = "certificate"
    confound_ranges: Mapping[str, tuple[float, float]] | None
    missing_confounds: Literal["error", "mean"]
    smallest_category: int
    dtype: Any
    penalty: str
    intercept: bool
    score_max: float | None
    loading_max: float | Literal["item_range"] | None
    reconstruction_max: Literal["item_range"] | None
    tol: float
    init: Any
    n_components: int | None

    components_: Array
    confound_components_: Array
    confound_encoder_: ConfoundEncoder
    confound_names_: list[str]
    item_range_: pd.DataFrame
    item_scale_: Array
    solving_order_: Array
    dtype_: np.dtype[Any]
    fit_statistics_: FitStatistics
    objective_: float
    certificate_: Certificate
    trace_: pd.DataFrame
    starts_: pd.DataFrame
    replication_: pd.DataFrame | None
    n_averaged_: int
    converged_: bool
    n_iter_: int
    n_participants_: int
    record_: FitRecord
    n_features_in_: int
    codebook_: StoredCodebook
    factor_names_: list[str]
    score_distribution_: ScoreDistribution | None = None

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Scores (n, k) of these participants, estimated one by one with the loadings fixed.

        A participant who answered nothing gets NaN, with a warning. The scores of a dask array are a dask
        array, computed where its parts are.
        """
        check_is_fitted(self)
        if is_dask_array(X):
            from icqf.models.sources import lazy_scores

            return lazy_scores(self, X, confounds)
        source, confounds = in_parts(X, confounds)
        if source is not None:
            return self._transform_in_parts(source, confounds)
        stated = state(self, NewAnswers(self, X, confounds))
        scores = np.full((len(stated.kept), len(self.components_)), np.nan)
        if stated.kept.any():
            scores[stated.kept] = self.solve_scores(stated.problem).T
        return scores

    def _transform_in_parts(self, source: AnswersInParts, confounds: Any) -> Array:
        table, first, scores = as_pandas(confounds), 0, []
        for part in source.parts():
            answers, design = part.answers, part.confounds
            n = answers.n_participants if isinstance(answers, Questionnaire) else len(answers)
            if table is not None:
                design = pd.DataFrame(table).iloc[first : first + n]
                if len(design) == n and isinstance(answers, pd.DataFrame):
                    design = design.set_axis(answers.index)
            first += n
            if design is None or len(design) == n:
                scores.append(np.asarray(self.transform(answers, confounds=design)))
        if table is not None and first != len(table):
            raise InputError(
                f"There are {first} participants but {len(table)} rows of confounds; give one row per "
                "participant, in the same order."
            )
        return np.concatenate(scores)

    def score_intervals(self, X: Any, *, confounds: Any = None, level: float = 0.9) -> ScoreIntervals:
        """Scores with intervals that hold the true score with this probability, and their information.

        The true score is what the model would find if the same items were answered without error. The
        interval comes from simulated participants like those of the fit, who are scored by the items that
        this participant answered; fewer answers give wider intervals. A score about which the answers say
        next to nothing is NaN, and `reasons` tells why. The first call takes a second for the simulation,
        which has a fixed seed.

        Parameters
        ----------
        X, confounds
            Answers and confounds in memory, as for `transform`.
        level : float
            Probability of the interval, at least 0.5.

        Examples
        --------
        >>> from icqf import ICQF
        >>> from icqf.datasets import load_demo
        >>> study = load_demo()
        >>> found = ICQF(4).fit(study).score_intervals(study)
        >>> list(found.table().columns[:4])
        ['factor1', 'factor1_low', 'factor1_high', 'factor1_information']
        >>> bool((found.low <= found.high).all(axis=None))
        True
        """
        from icqf.models.score_intervals import score_intervals

        return score_intervals(self, X, confounds=confounds, level=level)

    def solve_scores(self, problem: Problem) -> Array:
        """Scores (k, n) for a stated problem, with the factors in the order of the fit."""
        loadings = np.concatenate(
            [self.components_[np.argsort(self.solving_order_)], self.confound_components_]
        )
        loadings = problem.scaled_loadings(loadings)
        with one_blas_thread():
            scores = solve_scores_inside(problem, loadings, tol=score_tolerance(self.tol))
        return scores[self.solving_order_]

    def inverse_transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Reconstructed answers (n, m) in the items' own units from scores X (n, k); a table for a table."""
        check_is_fitted(self)
        try:
            scores = np.asarray(X, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"The scores must be numbers ({error}).") from None
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise InputError(
                f"The scores have the shape {scores.shape}; the model has {len(self.components_)} factors, "
                f"so give (participants, {len(self.components_)})."
            )
        refuse_other_rows(X, to="scores", confounds=confounds)
        design = self.confound_encoder_.transform(confounds, n_rows=len(scores))
        R = scores @ self.components_ + design @ self.confound_components_
        low, high = self.item_range_["min"].to_numpy(), self.item_range_["max"].to_numpy()
        answers = low + R
        if self.reconstruction_max == "item_range":
            answers = np.minimum(answers, high)
        return like(X, answers, list(self.item_range_.index))

    def score(self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean squared error of the observed answers, in the units of the fit (`item_scale_`)."""
        check_is_fitted(self)
        refuse_other_rows(X, sample_weight=sample_weight)
        stated = state(self, NewAnswers(self, X, confounds))
        problem, filled = stated.problem, stated.kept
        if not filled.any():
            raise InputError("No participant in this table answered anything, so there is nothing to score.")
        weights = None if sample_weight is None else weights_of(sample_weight, filled)
        loadings = problem.scaled_loadings(np.concatenate([self.components_, self.confound_components_]))
        A = problem.with_confounds(self.solve_scores(problem), np.float64)
        total, count = 0.0, 0.0
        for block in problem.precise_blocks():
            D = block.masked(block.X - A[:, block.rows].T @ loadings)
            weight = np.ones(len(D)) if weights is None else weights[filled][block.rows]
            total += float(weight @ (D**2).sum(axis=1))
            count += float(
                weight @ (block.O.sum(axis=1) if block.O is not None else np.full(len(D), D.shape[1]))
            )
        return -total / count

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings, items × factors."""
        check_is_fitted(self)
        return pd.DataFrame(
            self.components_.T, index=list(self.item_range_.index), columns=self.get_feature_names_out()
        )

    @property
    def confound_loadings_(self) -> pd.DataFrame:
        """Loadings of the confounds, items × confound columns."""
        check_is_fitted(self)
        return pd.DataFrame(
            self.confound_components_.T, index=list(self.item_range_.index), columns=self.confound_names_
        )

    @property
    def weighted_loadings_(self) -> pd.DataFrame:
        """Loadings, items × factors, in the units of the fit (`item_scale_`), as used for matching."""
        return self.loadings_.mul(self.item_scale_, axis=0)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The factors' names: factor1, factor2, … or those given with `name_factors`."""
        check_is_fitted(self)
        return np.array(self.factor_names_, dtype=object)

    def name_factors(self, names: Sequence[str] | Mapping[str, str]) -> Self:
        """Name the factors: one name each in their order, or a mapping from old to new names."""
        check_is_fitted(self)
        old = self.factor_names_
        new = checked_names(old, names, taken=self.confound_names_)
        renamed = dict(zip(old, new, strict=True))
        self.factor_names_ = new
        self.starts_ = self.starts_.rename(columns=renamed)
        if self.replication_ is not None:
            self.replication_ = self.replication_.rename(index=renamed)
        return self

    @property
    def about_(self) -> About:
        """What is stated about instrument, sample, licence and citation."""
        check_is_fitted(self)
        return self.codebook_.about

    def set_about(self, **fields: str) -> Self:
        """State fields of `icqf.data.About`, as in ``licence="CC-BY-4.0"``; an empty text takes one back."""
        check_is_fitted(self)
        self.codebook_ = replace(self.codebook_, about=self.codebook_.about.changed(fields))
        return self

    def summary(self, *, n_top: int = 5) -> Summary:
        """Each factor's share of variance and top items, and each item's fit."""
        check_is_fitted(self)
        return Summary.of(self, n_top=n_top)

    def describe(self) -> StoredModel:
        """The fitted model as plain values."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], *, items: Iterable[Item] = (), id: str = "") -> None:
        """Write the fitted model to a file. It holds no participant's data.

        Parameters
        ----------
        items : iterable of Item, optional
            The codebook, saved in the file so that new answers are read in the same way. A model that was
            fitted to a questionnaire or loaded from a file already has one (`codebook_`).
        id : str
            Name of the id column.
        """
        from icqf.io.model_file import write_model
        from icqf.models.persistence import described

        stored, items = self.describe(), tuple(items)
        if items or id:
            known = self.codebook_
            given = replace(known, items=items or known.items, id=id or known.id)
            stored = replace(stored, codebook=described(self, given))
        write_model(path, stored)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote. An ℓ1-NMF is also read as an `ICQF` without bounds."""
        from icqf.io.model_file import damage_refused, read_model
        from icqf.models.persistence import rebuild

        stored = read_model(path)
        if "longitudinal" in stored.header:
            raise InputError(
                f"{os.fspath(path)}: this is a model of repeated visits, whose loadings change with age.",
                code="longitudinal-model",
                remedy=Advice(
                    "Read it with icqf.models.LongitudinalICQF.load.", typed="Use it with icqf score."
                ),
            )
        with damage_refused(path):
            return rebuild(cls, stored)


def in_parts(X: Any, confounds: Any = None) -> tuple[AnswersInParts | None, Any]:
    """The parts of a file, folder, Arrow dataset, memory map or dask array (else None), and the confounds."""
    if isinstance(X, (str, os.PathLike)) or hasattr(X, "get_fragments"):
        from icqf.io.readers.streams import parts_of_file

        names = [confounds] if isinstance(confounds, str) else confounds
        named = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        return parts_of_file(X, names if named else ()), None if named else confounds
    return AnswersInParts.of(X), confounds
