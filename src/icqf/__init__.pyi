from . import analyses as analyses
from . import baselines as baselines
from . import data as data
from . import datasets as datasets
from . import engines as engines
from . import io as io
from . import models as models
from . import plotting as plotting
from . import report as report
from . import resampling as resampling
from . import workflow as workflow
from .errors import InputError as InputError
from .models.consensus import consensus as consensus
from .models.consensus import replication_probability as replication_probability
from .models.icqf import ICQF as ICQF
from .models.icqfcv import ICQFCV as ICQFCV

__version__: str
