"""The report of a fitted model: one offline HTML page, and the same content as Markdown and JSON."""

from icqf.report.collect import build_report
from icqf.report.render import write_report
from icqf.report.tree import Report

__all__ = ["Report", "build_report", "write_report"]
