"""Exploratory factor analysis as a scikit-learn estimator, with missing answers."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from icqf.baselines.correlation import (
    CorrelationKind,
    Floats,
    as_input_errors,
    bartlett_sphericity,
    is_positive_definite,
    item_moments,
    item_name,
    kmo,
)
from icqf.baselines.extraction import (
    LOWEST_UNIQUENESS,
    Method,
    degrees_of_freedom,
    extract,
    fit_statistics,
)
from icqf.baselines.rotation import Rotation, oblimin, promax, varimax
from icqf.errors import InputError

_ROTATIONS = {"varimax": varimax, "promax": promax, "oblimin": oblimin}


class FactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Exploratory factor analysis: minimum residual extraction, promax rotation, regression scores.

    The items' correlation matrix is modelled as ``R ≈ Λ Φ Λᵀ + Ψ`` with loadings ``Λ``, factor correlations
    ``Φ`` and a diagonal of uniquenesses ``Ψ``. Results follow the conventions of R's ``psych::fa``: every
    factor points in the direction in which its loadings add up to a positive number, and the factor that
    explains most variance comes first.

    Parameters
    ----------
    n_components : int, default=1
        Number of factors; see `parallel_analysis`, `velicer_map` and `bic_factor_analysis` for choosing it.
    rotation : {"promax", "varimax", "oblimin"} or None, default="promax"
        "promax" and "oblimin" (quartimin) allow correlated factors, "varimax" does not. Varimax and promax
        weight all items equally (Kaiser normalisation), oblimin does not.
    method : {"minres", "ml"}, default="minres"
        Minimum residual or maximum likelihood.
    scores : {"regression"}, default="regression"
        Thurstone's regression scores, see Notes.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        How missing answers are treated when items are correlated: each pair of items over the participants
        who answered both, or maximum likelihood from all answers under a multivariate normal. "polychoric"
        takes graded answers for cut normal variables (`icqf.baselines.polychoric_correlation`).
    rotation_tol : float, optional
        Stopping tolerance of the rotation. By default varimax and promax stop as early as they do in R, some
        thousandths short of the best loadings, so that published results come out again; 1e-12 goes on.
    tol : float, default=1e-8
        The extraction stops when no uniqueness has a slope above this.
    max_iter : int, default=200
        Most iterations of the extraction.

    Attributes
    ----------
    loadings_ : ndarray of shape (n_items, n_components)
        Pattern matrix: the weight of each factor in each standardised item.
    components_ : ndarray of shape (n_components, n_items)
        The transpose of `loadings_`.
    factor_correlations_ : ndarray of shape (n_components, n_components)
    structure_ : ndarray of shape (n_items, n_components)
        Correlations between items and factors, ``loadings_ @ factor_correlations_``.
    uniquenesses_ : ndarray of shape (n_items,)
        Each item's variance that no factor explains.
    communalities_ : ndarray of shape (n_items,)
        Each item's variance that the factors explain.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of all items' variance that each factor explains.
    score_weights_ : ndarray of shape (n_items, n_components)
        Weights of the standardised items in the scores of a participant who answered everything.
    mean_, scale_ : ndarray of shape (n_items,)
        Means and standard deviations of the items.
    correlation_ : ndarray of shape (n_items, n_items)
    kmo_ : KMO
        Kaiser-Meyer-Olkin measure of sampling adequacy.
    bartlett_ : Sphericity
        Bartlett's test that the items are uncorrelated.
    chi2_, bic_ : float
        Likelihood-ratio statistic of the model and its BIC, ``chi2_ - dof_ * log(n_participants)``.
    dof_ : int
        Degrees of freedom of the model.
    n_iter_ : int
        Iterations of the extraction.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_items,)
        Only when the answers had column names.

    Notes
    -----
    Missing answers in `transform`: nothing is filled in. A participant's score is the regression of the
    factors on the items this participant answered, ``z_o R_oo⁻¹ S_o`` with the standardised answers ``z_o``
    and the rows of `correlation_` and `structure_` that belong to them. Someone who answered little
    therefore gets scores close to the average; someone who answered nothing gets NaN, with a warning.

    Pairwise correlations need not be positive definite. If they are not, a warning says so, `kmo_` and
    `bartlett_` are NaN, and the scores use the correlations implied by the factors in place of ``R``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(2), np.full((1, 4), 0.8))
    >>> X = rng.normal(size=(500, 2)) @ loadings + 0.6 * rng.normal(size=(500, 8))
    >>> X[0, :3] = np.nan
    >>> model = FactorAnalysis(n_components=2).fit(X)
    >>> sorted(np.abs(model.loadings_).argmax(axis=1).tolist())
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model.transform(X).shape
    (500, 2)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        rotation: Literal["promax", "varimax", "oblimin"] | None = "promax",
        method: Method = "minres",
        scores: Literal["regression"] = "regression",
        correlation: CorrelationKind = "pairwise",
        rotation_tol: float | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.n_components = n_components
        self.rotation = rotation
        self.method = method
        self.scores = scores
        self.correlation = correlation
        self.rotation_tol = rotation_tol
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Estimate loadings, uniquenesses and factor correlations.

        Parameters
        ----------
        X : array-like of shape (n_participants, n_items)
            Answers; NaN is a missing answer.
        y : ignored

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 1)) + rng.normal(size=(200, 5))
        >>> FactorAnalysis().fit(X).loadings_.shape
        (5, 1)
        """
        with as_input_errors():
            answers = validate_data(
                self,
                X,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                ensure_min_features=2,
            )
        m = answers.shape[1]
        self._check_parameters(m)
        names = getattr(self, "feature_names_in_", None)
        n_participants = int(np.sum(~np.isnan(answers).all(axis=1)))
        self.mean_, self.scale_, self.correlation_, _ = item_moments(
            answers, correlation=self.correlation, names=names
        )
        L, psi, self.n_iter_ = extract(
            self.correlation_, self.n_components, method=self.method, tol=self.tol, max_iter=self.max_iter
        )
        low = np.flatnonzero(psi <= LOWEST_UNIQUENESS)
        if len(low):
            which = ", ".join(item_name(names, int(j)) for j in low[:5]) + (", ..." if len(low) > 5 else "")
            warnings.warn(
                f"Heywood case: the factors explain all variance of item {which}, which is rarely true; "
                "try fewer factors, or drop items that nearly repeat others.",
                UserWarning,
                stacklevel=2,
            )
        self._keep(_ordered(self._rotate(L)), psi)
        self._judge(L @ L.T, n_participants)
        return self

    def _check_parameters(self, m: int) -> None:
        k = self.n_components
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= m:
            raise InputError(f"n_components is {k!r}; with {m} items choose a whole number from 1 to {m}.")
        if self.rotation is not None and self.rotation not in _ROTATIONS:
            raise InputError(f"rotation is {self.rotation!r}; choose one of {sorted(_ROTATIONS)} or None.")
        if self.scores != "regression":
            raise InputError(f"scores is {self.scores!r}; only 'regression' is available.")
        if degrees_of_freedom(m, k) < 0:
            warnings.warn(
                f"{k} factors of {m} items have more parameters than there are correlations, so many "
                "loadings fit equally well; use fewer factors.",
                UserWarning,
                stacklevel=3,
            )

    def _rotate(self, L: Floats) -> Rotation:
        k = L.shape[1]
        if self.rotation is None or k == 1:
            return Rotation(L, np.eye(k), np.eye(k))
        options: dict[str, Any] = {} if self.rotation_tol is None else {"tol": self.rotation_tol}
        return _ROTATIONS[self.rotation](L, **options)

    def _keep(self, rotation: Rotation, psi: Floats) -> None:
        L, Phi, _ = rotation
        self.loadings_, self.factor_correlations_ = L, Phi
        self.components_ = L.T
        self.structure_ = L @ Phi
        self.uniquenesses_ = psi
        self.communalities_ = np.sum(L * self.structure_, axis=1)
        self.explained_variance_ratio_ = np.sum(L * self.structure_, axis=0) / len(L)

    def _judge(self, model: Floats, n_participants: int) -> None:
        """Set fit statistics, and the correlations and weights behind the scores."""
        R = self.correlation_
        self.kmo_, self.bartlett_ = kmo(R), bartlett_sphericity(R, n_participants)
        self.chi2_, self.dof_, self.bic_ = fit_statistics(R, model, self.n_components, n_participants)
        self._score_correlation = R
        if not is_positive_definite(R):
            self._score_correlation = model + np.diag(self.uniquenesses_)
            warnings.warn(
                f"The correlations of {len(R)} items from {n_participants} participants are not positive "
                "definite, so KMO and Bartlett's test are NaN and scores use the correlations implied by the "
                "factors; use correlation='em', more participants, or fewer items.",
                UserWarning,
                stacklevel=3,
            )
        self.score_weights_ = linalg.solve(self._score_correlation, self.structure_, assume_a="pos")

    def transform(self, X: npt.ArrayLike) -> Floats:
        """Factor scores, each from the items the participant answered.

        Parameters
        ----------
        X : array-like of shape (n_participants, n_items)
            Answers; NaN is a missing answer. See Notes of the class for how they are treated.

        Returns
        -------
        ndarray of shape (n_participants, n_components)
            A DataFrame after ``set_output(transform="pandas")``.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 1)) + rng.normal(size=(200, 5))
        >>> model = FactorAnalysis().fit(X)
        >>> one = X[:1].copy()
        >>> one[0, 4] = np.nan
        >>> model.transform(one).shape
        (1, 1)
        """
        check_is_fitted(self)
        with as_input_errors():
            answers = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        Z = (answers - self.mean_) / self.scale_
        seen = ~np.isnan(Z)
        whole = seen.all(axis=1)
        result = np.empty((len(Z), self.loadings_.shape[1]))
        result[whole] = Z[whole] @ self.score_weights_
        gappy = np.flatnonzero(~whole)
        patterns, member = np.unique(seen[gappy], axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            rows, items = gappy[member.ravel() == index], np.flatnonzero(pattern)
            if not len(items):
                result[rows] = np.nan
                warnings.warn(
                    f"{len(rows)} of {len(Z)} participants answered nothing (the first is row {rows[0]}, "
                    "counted from 0); their scores are NaN.",
                    UserWarning,
                    stacklevel=2,
                )
                continue
            R = self._score_correlation[np.ix_(items, items)]
            result[rows] = Z[np.ix_(rows, items)] @ linalg.solve(R, self.structure_[items], assume_a="pos")
        return result

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])


def _ordered(rotation: Rotation) -> Rotation:
    """Factors pointing where their loadings add up to a positive number, the strongest first."""
    L, Phi, T = rotation
    sign = np.where(L.sum(axis=0) < 0, -1.0, 1.0)
    L, Phi, T = L * sign, Phi * np.outer(sign, sign), T * sign
    order = np.argsort(-np.sum(L * (L @ Phi), axis=0), kind="stable")
    return Rotation(L[:, order], Phi[np.ix_(order, order)], T[:, order])
