from .matching import agreement as agreement
from .matching import match_factors as match_factors
