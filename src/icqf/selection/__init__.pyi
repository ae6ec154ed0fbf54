from .icqfcv import ICQFCV as ICQFCV
