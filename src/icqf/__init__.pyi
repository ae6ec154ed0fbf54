from . import baselines as baselines
from . import data as data
from . import datasets as datasets
from . import evaluation as evaluation
from . import extensions as extensions
from . import io as io
from . import plotting as plotting
from . import report as report
from . import resampling as resampling
from . import selection as selection
from . import workflow as workflow
from .errors import InputError as InputError
from .models.icqf import ICQF as ICQF
from .models.stability import consensus as consensus
from .models.stability import replication_chance as replication_chance
from .selection import ICQFCV as ICQFCV

__version__: str
