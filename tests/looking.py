"""How a page is opened in a browser, and what a checker of accessibility says about it."""


def show(browser, page, *, width=1440, dark=False, opened=False):
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [theme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    if opened:
        browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")


def faults_of(browser, axe):
    """The serious faults of the page that is shown."""
    browser.execute_script(axe)
    options = "{iframes: false, resultTypes: ['violations']}"
    found = browser.execute_async_script(
        f"axe.run(document, {options}).then(arguments[arguments.length - 1])"
    )
    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:120]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
