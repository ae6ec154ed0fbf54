from .count import FactorCount as FactorCount
from .criteria import bic as bic
from .criteria import cophenetic as cophenetic
from .criteria import dispersion as dispersion
from .estimator import ICQFCV as ICQFCV
from .resampled_fits import consensus as consensus
