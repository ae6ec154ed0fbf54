from .parallel import Progress as Progress
