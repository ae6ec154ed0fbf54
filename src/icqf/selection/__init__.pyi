from .criteria import bic as bic
from .criteria import cophenetic as cophenetic
from .criteria import dispersion as dispersion
from .estimator import ICQFCV as ICQFCV
