from .estimator import ICQFCV as ICQFCV
