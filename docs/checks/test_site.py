"""The built site: links resolve, nothing is asked of a network, and axe-core finds nothing serious.

``make docs`` builds it into ``build/docs``; ``make docs-check`` builds it and runs these tests.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from report.browser import Browser

SITE = Path(__file__).parents[2] / "build" / "docs"
SHOWN = (
    "index.html",
    "start/tutorial.html",
    "howto/missing-views.html",
    "understand/equations.html",
    "gallery/index.html",
    "gallery/plot_01_which_features_decide.html",
    "_generated/api/names/baldur.BaldurClassifier.html",
)
EXTERNAL = ("http", "https", "mailto", "data", "javascript")


class Page(HTMLParser):
    """Links, and places that can be linked to, of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag in ("a", "link") and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script", "source", "iframe") and found.get("src"):
            self.links.append(found["src"])


@pytest.fixture(scope="session")
def pages():
    if not (SITE / "index.html").is_file():
        pytest.fail(f"there is no site at {SITE}; run 'make docs' first")
    files = [file for file in sorted(SITE.rglob("*.html")) if "_static" not in file.parts]
    return {file: Page(file.read_text("utf-8")) for file in files}


def test_internal_links_resolve(pages):
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in EXTERNAL or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target = target / "index.html"
            place = unquote(parts.fragment)
            known = target in pages and file.name != "report-of-the-tutorial.html"
            if not target.exists() or (known and place and place not in pages[target].ids):
                broken.append(f"{file.relative_to(SITE)} -> {link}")
    assert not broken, "\n".join(sorted(set(broken))[:40])


def test_pages_load_nothing_from_a_network(pages):
    """Links may lead elsewhere; scripts, styles, fonts and pictures may not."""
    loaded = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"'](?:https?:)?//[^\"']*"
        r"|<link\b[^>]*rel=[\"'](?:stylesheet|preload|preconnect)[\"'][^>]*href=[\"'](?:https?:)?//"
    )
    found = [
        (file.relative_to(SITE).as_posix(), match[0])
        for file in pages
        for match in [loaded.search(file.read_text("utf-8"))]
        if match
    ]
    assert not found


def test_from_every_equation_to_its_code_and_back(pages):
    """Each function on the two pages has a link to its source, which has one back to the place."""
    for name in ("equations", "paper"):
        page = SITE / "understand" / f"{name}.html"
        links = [link for link in pages[page].links if "_modules/" in link]
        assert len(links) > 20
        for link in links:
            parts = urlsplit(link)
            source = (page.parent / parts.path).resolve()
            block = source.read_text("utf-8").split(f'id="{parts.fragment}"')[1][:2000]
            back = re.search(rf'href="([^"]*understand/{name}\.html)#([^"]+)">\[equation', block)
            assert back, (name, link)
            assert (source.parent / back[1]).resolve() == page
            assert back[2] in pages[page].ids


@pytest.fixture(scope="session")
def browser():
    made = Browser()
    yield made
    made.driver.quit()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_is_accessible_and_asks_nothing(browser, pages, name, dark):
    browser.open(SITE / name, dark=dark)
    theme = browser.run("return document.documentElement.dataset.theme")
    assert theme == ("dark" if dark else "light")
    asked = [one for one in browser.requests() if not one.startswith(("file:", "data:", "about:"))]
    assert asked == []
    assert browser.violations() == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_fits_on_a_phone(browser, pages, name):
    browser.open(SITE / name, width=390)
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_the_search_works_without_a_network(browser, pages):
    browser.open(SITE / "index.html")
    browser.driver.get((SITE / "search.html").as_uri() + "?q=missing+view")

    def has_found(_):  # results are listed one after the other
        titles = [one.text for one in browser.all("#search-results li a")]
        return any("missing" in title.lower() for title in titles)

    WebDriverWait(browser.driver, 20).until(has_found)


def test_formulas_are_drawn(browser, pages):
    browser.open(SITE / "understand" / "equations.html")
    drawn = "mjx-container svg"
    WebDriverWait(browser.driver, 20).until(lambda _: len(browser.all(drawn)) > 20)
    assert browser.all("[data-mjx-error], mjx-merror") == []
