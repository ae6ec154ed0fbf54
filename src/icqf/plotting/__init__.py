"""Plots of answers, fitted models and comparisons: each takes a matplotlib Axes and returns it."""

from icqf.plotting.comparison import auc_by_sample_size, by_method, by_sample_size, factor_match, split_tree
from icqf.plotting.loadings import loading_heatmap, top_items
from icqf.plotting.people import missingness_map, score_correlations, score_distributions
from icqf.plotting.search import convergence, cv_curve, error_and_stability, scree
from icqf.plotting.triptych import triptych

__all__ = [
    "auc_by_sample_size",
    "by_method",
    "by_sample_size",
    "convergence",
    "cv_curve",
    "error_and_stability",
    "factor_match",
    "loading_heatmap",
    "missingness_map",
    "score_correlations",
    "score_distributions",
    "scree",
    "split_tree",
    "top_items",
    "triptych",
]
