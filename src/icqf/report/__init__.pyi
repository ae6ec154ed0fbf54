from .collect import build_report as build_report
from .render import write_report as write_report
from .schema import Report as Report
