"""The fixtures of a small study with everything a report may hold."""

from small_report import *  # noqa: F403
