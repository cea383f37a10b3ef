"""A real Chromium without a window, driven by selenium; and axe-core, where npm has put it."""

import json
import os
import shutil
from pathlib import Path

import pytest

CHROMIUM = next((p for n in ("chromium", "chromium-browser") if (p := shutil.which(n))), None)
DRIVER = shutil.which("chromedriver")
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ.get("BALDUR_NPM", ROOT / "build" / "npm" / "node_modules"))
AXE = PACKAGES / "axe-core" / "axe.min.js"


def start():
    """Return a driver, or skip with the reason."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium with chromedriver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",  # the tests may run as root
        "--disable-gpu",
        # Nothing in the background: no updates, no extensions, no calls home.
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--disable-sync",
        "--no-first-run",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1366,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


class Browser:
    """One session, used for many pages."""

    def __init__(self):
        self.driver = start()

    def open(self, file, *, width=1366, dark=False):
        """Open a page from its file; nothing of the page before is left."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.logs()
        self.requests()
        self.driver.get(Path(file).as_uri())

    def run(self, script, *arguments):
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, css):
        """Return the first element that a selector finds."""
        return self.driver.find_element("css selector", css)

    def all(self, css):
        """Return all of them."""
        return self.driver.find_elements("css selector", css)

    def press(self, element):
        """Click an element where no heading that stays in place covers it."""
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def shown(self, css):
        """Return the texts of elements that are to be seen."""
        script = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(e => e.checkVisibility()).map(e => e.textContent)"
        )
        return self.run(script, css)

    def logs(self):
        """Return what the console said since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return the addresses that were asked for since it was asked last."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                found.append(message["params"].get("request", message["params"])["url"])
        return found

    def violations(self):
        """Return what axe-core calls serious or critical; skips where there is no axe-core."""
        if not AXE.is_file():
            pytest.skip(f"no axe-core at {AXE}: npm install axe-core, or set BALDUR_NPM")
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations));"
        )
        return [
            (v["id"], v["impact"], [n["html"][:200] for n in v["nodes"][:3]])
            for v in found
            if v["impact"] in ("serious", "critical")
        ]
