from .identity import fingerprint as fingerprint
from .parallel import Progress as Progress
