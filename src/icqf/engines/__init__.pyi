from .dask import Dask as Dask
from .identity import fingerprint as fingerprint
from .parallel import Progress as Progress
