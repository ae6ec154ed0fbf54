from .matching import Match as Match
from .matching import match_factors as match_factors
