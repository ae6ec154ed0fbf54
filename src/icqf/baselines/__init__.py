"""Methods to compare with: exploratory factor analysis and its rules for the number of factors."""

from icqf.baselines.correlation import KMO, Moments, Sphericity, bartlett_sphericity, item_moments, kmo
from icqf.baselines.factor_analysis import FactorAnalysis
from icqf.baselines.l1nmf import L1NMF
from icqf.baselines.retention import bic_factor_analysis, parallel_analysis, velicer_map
from icqf.baselines.rotation import Rotation, oblimin, promax, varimax

__all__ = [
    "FactorAnalysis",
    "L1NMF",
    "parallel_analysis",
    "velicer_map",
    "bic_factor_analysis",
    "varimax",
    "promax",
    "oblimin",
    "Rotation",
    "item_moments",
    "Moments",
    "kmo",
    "KMO",
    "bartlett_sphericity",
    "Sphericity",
]
