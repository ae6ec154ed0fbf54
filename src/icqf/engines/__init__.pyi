from .dask import Dask as Dask
from .journal import fingerprint as fingerprint
from .parallel import Progress as Progress
