"""Take the pictures of the report page that the README shows.

    make demo
    python docs/make_screenshots.py build/demo/results/report.html

Needs chromium with chromedriver, selenium and Pillow, which comes with matplotlib. Writes
docs/images/report.png: the answer in light, figures in dark, the calculator.
"""

import base64
import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from selenium import webdriver

IMAGES = Path(__file__).parent / "images"
HEIGHT = 900
# Width of the window, whether it is dark, and the element at the top of the picture.
SHOTS = (
    (960, False, "header h1"),
    (960, True, "#f-fold-weights"),
    (800, False, "#calculator"),
)


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )


def shoot(driver, page, width, dark, top):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get(page.resolve().as_uri())
    driver.execute_script(
        "const b = [...document.querySelectorAll('#calc button')]"
        ".find(one => one.textContent === 'Average person'); if (b) b.click();"
        "const first = document.getElementById('input-0');"
        "if (first) { first.value = Number(first.value) + 1.5; first.dispatchEvent("
        "new Event('input', {bubbles: true})); }"
        "document.documentElement.style.scrollBehavior = 'auto';"
        "const at = document.querySelector(arguments[0]).getBoundingClientRect().top;"
        "scrollTo(0, Math.max(0, at + scrollY - (arguments[0] === 'header h1' ? 20 : 50)));",
        top,
    )
    return Image.open(io.BytesIO(base64.b64decode(driver.get_screenshot_as_base64())))


def main(page):
    driver = start()
    try:
        shots = [shoot(driver, page, *shot) for shot in SHOTS]
    finally:
        driver.quit()
    gap = 16
    total = sum(one.width for one in shots) + gap * (len(shots) - 1)
    joined = Image.new("RGB", (total, HEIGHT), "#8a8f98")
    left = 0
    for one in shots:
        joined.paste(one, (left, 0))
        left += one.width + gap
    IMAGES.mkdir(exist_ok=True)
    # Few colours are enough for text and lines, and make the file small.
    joined.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(
        IMAGES / "report.png", optimize=True
    )
    print(f"{IMAGES / 'report.png'}: {(IMAGES / 'report.png').stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
