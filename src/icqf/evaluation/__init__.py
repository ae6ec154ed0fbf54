"""How good factors are: whether they agree between fits, studies and samples."""

from icqf.evaluation.matching import Match, match_factors

__all__ = ["Match", "match_factors"]
