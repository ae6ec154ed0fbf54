"""How good factors are: whether they agree between fits, samples and studies, and what they tell."""

from icqf.evaluation.methods import (
    FactorAnalysisMethod,
    Fitted,
    ICQFMethod,
    ItemsMethod,
    Method,
    SubscaleMethod,
)
from icqf.evaluation.prediction import DiagnosticAUC, diagnostic_auc
from icqf.evaluation.replication import Replication, replication
from icqf.evaluation.stability import Stability, agreement, stability
from icqf.evaluation.wilcoxon import compare_methods
from icqf.resampling.matching import Match, match_factors

__all__ = [
    "DiagnosticAUC",
    "FactorAnalysisMethod",
    "Fitted",
    "ICQFMethod",
    "ItemsMethod",
    "Match",
    "Method",
    "Replication",
    "Stability",
    "SubscaleMethod",
    "agreement",
    "compare_methods",
    "diagnostic_auc",
    "match_factors",
    "replication",
    "stability",
]
