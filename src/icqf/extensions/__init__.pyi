from .forms import Form as Form
from .forms import Recovery as Recovery
from .forms import search_forms as search_forms
from .reduced import reduced_model as reduced_model
from .short_forms import ShortForm as ShortForm
from .short_forms import shortform as shortform
