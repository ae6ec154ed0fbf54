"""The app: its first page, a large file opened and checked, and clicks while ten tabs watch a fit.

Needs Chromium and its driver. Each figure is a time divided by its limit; the machine's load is printed with
them, as the time of a click says little on a machine that others use.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from _measure import heading, report, run_script
from bench_check import ITEMS, PARTICIPANTS, study

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from app_server import QUICK, Server

FIRST_PAGE, CHECKED, ROWS, CLICK = 2.0, 10.0, 1.0, 0.3  # seconds
TABS, CLICKS = 10, 60
TIMES = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"


def browser() -> Any:
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.binary_location = str(shutil.which("chromium"))
    return webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))


def until(there: Callable[[], Any]) -> Any:
    while not (found := there()):
        time.sleep(0.02)
    return found


def first_page(page: Any, folder: Path) -> float:
    """Seconds from the start of the command to the first page in the browser."""
    began = time.perf_counter()
    server = Server(folder)
    page.get(server.url)
    until(lambda: page.find_elements("id", "own"))
    spent = time.perf_counter() - began
    server.end()
    return spent


def checked(page: Any, server: Server, path: Path) -> tuple[float, list[str]]:
    """Seconds from the click to what was found in a file, and what was said meanwhile."""
    page.get(f"http://{server.host}/")
    page.find_element("id", "answers").send_keys(str(path))
    began, said = time.perf_counter(), []
    page.execute_script("document.querySelector('form[action=\"/open\"] button').click()")

    def there() -> bool:
        found: list[str] = page.execute_script(
            "return [...document.querySelectorAll('.progress-text, #busy:not([hidden])')]"
            ".map((e) => e.textContent)"
        )
        said.extend(text for text in found if text not in said)
        return bool(page.find_elements("id", "analysed"))

    until(there)
    return time.perf_counter() - began, said


def clicks(page: Any, server: Server) -> list[float]:
    """Seconds that each of many clicks takes while a fit runs and ten tabs look at the app."""
    run = server.post("/demo").getheader("location").split("/")[2]
    server.page(f"/runs/{run}/check")
    server.post(f"/runs/{run}/fit", {**QUICK, "n_components": "auto", "beta": "auto", "n_repeats": "12"})
    for _ in range(TABS - 1):
        page.switch_to.new_window("tab")
        page.get(f"http://{server.host}/runs/{run}/fit")
    page.switch_to.new_window("tab")
    spent, path = [], f"http://{server.host}/runs/{run}"
    for at in range(CLICKS):
        page.get(f"{path}/fit" if at == 0 else page.current_url)
        link = page.find_elements("css selector", ".topbar a, .steps a")[at % 6]
        page.execute_script("arguments[0].click()", link)
        until(lambda: page.execute_script("return document.readyState") == "complete")
        spent.append(page.execute_script(TIMES))
        if not page.find_elements("css selector", ".steps"):
            page.get(f"{path}/fit")
    running = "data-poll" in server.get(f"/runs/{run}/fit").text
    print(f"  the fit was {'still running' if running else 'ALREADY DONE'} at the last click")
    server.post(f"/runs/{run}/remove")
    return spent


def main() -> None:
    """Print the ratios."""
    heading(f"The app (load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors)")
    with tempfile.TemporaryDirectory() as folder:
        page = browser()
        try:
            starts = [first_page(page, Path(folder, f"start{n}")) for n in range(3)]
            report(f"first page {min(starts):.2f} s", min(starts) / FIRST_PAGE, 1.0)
            server = Server(Path(folder, "runs"), limit=1000)
            try:
                page.get(server.url)
                time.sleep(3)  # the app imports what the first check needs
                seconds, said = checked(page, server, study(Path(folder)))
                print(f"  said meanwhile: {'; '.join(said)}")
                what = f"{PARTICIPANTS} x {ITEMS} opened and checked {seconds:.1f} s"
                report(what, seconds / CHECKED, 1.0)
                rows = page.current_url.replace("/check", "/data?row=20000&column=24")
                page.get(rows)  # reads the table once more
                page.get(rows)
                seconds = page.execute_script(TIMES)
                report(f"rows of this file as a spreadsheet {seconds * 1e3:.0f} ms", seconds / ROWS, 1.0)
                spent = np.quantile(clicks(page, server), [0.5, 0.95])
                what = f"a click, median {spent[0] * 1e3:.0f} ms, p95 {spent[1] * 1e3:.0f} ms"
                report(what, spent[1] / CLICK, 1.0)
                print(f"  load after: {os.getloadavg()[0]:.1f}")
            finally:
                server.end()
        finally:
            page.quit()


if __name__ == "__main__":
    run_script(main)
