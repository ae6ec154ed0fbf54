"""Takes the pictures of docs/app.md: `python docs/make_app_pictures.py`; needs Chromium and its driver."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

from app_server import Server  # noqa: E402 - the tests' own way to start the app
from small_study import table  # noqa: E402


def browser() -> Any:
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    options.binary_location = str(shutil.which("chromium"))
    return webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))


def until(there: Callable[[], Any]) -> Any:
    for _ in range(1200):
        found = there()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError


def press(page: Any, text: str) -> None:
    every = page.find_elements("css selector", "button, a.button, .steps a, .views a")
    button = next(each for each in every if text in each.text)
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def picture(
    page: Any, name: str, *, width: int = 1000, height: int = 700, dark: bool = False, at: str = "body"
) -> None:
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [theme]})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.execute_script("document.querySelector(arguments[0]).scrollIntoView()", at)
    time.sleep(0.5)
    taken = b64decode(page.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    image = Image.open(io.BytesIO(taken)).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    image.save(IMAGES / name, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server, page = Server(Path(folder, "runs")), browser()
        try:
            study = table(n=200).replace({"9": "999"})
            study.to_csv(Path(folder, "answers.csv"), index=False)
            page.get(server.url)
            until(lambda: page.find_elements("id", "own"))
            picture(page, "app-open.png", height=620)
            page.find_element("id", "answers").send_keys(str(Path(folder, "answers.csv")))
            press(page, "Open and check")
            until(lambda: page.find_elements("id", "analysed"))
            picture(page, "app-check.png", height=860)
            page.get(f"http://{server.host}/")
            press(page, "Try the demo")
            until(lambda: page.find_elements("id", "analysed"))
            picture(page, "app-columns.png", height=760, at="#roles")
            press(page, "Data")
            until(lambda: page.find_elements("css selector", "table.sheet"))
            picture(page, "app-data.png", width=1200, height=760)
            press(page, "Check")
            until(lambda: page.find_elements("id", "analysed"))
            press(page, "Continue to the fit")
            until(lambda: page.find_elements("css selector", "table.loadings"))
            picture(page, "app-preview.png", height=760, at="#look")
            press(page, "Start the fit")
            until(lambda: page.find_elements("class name", "progress-text"))
            until(lambda: "about" in page.find_element("class name", "progress-text").text)
            picture(page, "app-fit.png", height=420)
            until(lambda: page.find_elements("css selector", "iframe.report"))
            picture(page, "app-results.png", height=900)
            picture(page, "app-telephone.png", width=375, height=760, dark=True)
        finally:
            page.quit()
            server.end()


if __name__ == "__main__":
    main()
