from .collect import build_report as build_report
from .compose import renamed as renamed
from .kept import from_json as from_json
from .render import as_html as as_html
from .render import as_json as as_json
from .render import as_markdown as as_markdown
from .render import write_report as write_report
from .schema import Report as Report
