from .dask import Dask as Dask
from .journal import fingerprint as fingerprint
from .progress import Forecast as Forecast
from .progress import Progress as Progress
from .progress import Stages as Stages
