"""``icqf app``: the whole analysis in a browser, on this computer."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from icqf.cli.parsing import FILE, command
from icqf.cli.terminal import echo
from icqf.errors import InputError

_NEEDED = {"starlette": "starlette", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}


@command(
    "The whole analysis in a browser, on this computer.",
    """icqf app
    icqf app --folder ~/studies/runs --no-open""",
)
@click.option("--folder", type=FILE, default=Path("~/icqf-runs"), help="Folder for the runs.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port.  [default: 8765, or another free one]")
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="MB", help="Largest file accepted.  [default: by memory]"
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--allow-other-machines",
    is_flag=True,
    help="Allow a --host that other computers can reach: answers are then sent unencrypted.",
)
def app(
    folder: Path, port: int | None, opens: bool, limit: int | None, host: str, allow_other_machines: bool
) -> None:
    """Check and fit a questionnaire's answers, read the report, and score participants, in the browser.

    The app listens on this computer only, and your data never leave it. Every run is a folder with a
    config.toml, with which icqf fit repeats it. Stop the app with Ctrl-C; a running fit continues.
    """
    absent = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if absent:
        raise InputError(f"The app needs {', '.join(absent)}; pip install 'icqf[app]'.")
    from icqf.app.server import serve

    def begin(address: Any) -> None:
        echo(f"The app is at\n  {address.url}\nRuns are kept in {folder.expanduser()}. Stop it with Ctrl-C.")
        if allow_other_machines:
            echo(
                "Warning: other computers can reach this app. Anyone who has the address with its token can "
                "see and change everything in it, and nothing is encrypted.",
                err=True,
            )
        if opens:
            webbrowser.open(address.url_once)

    most = None if limit is None else limit * 2**20
    serve(folder, host=host, port=port, other_machines=allow_other_machines, limit=most, begin=begin)
