"""The pages in a real browser: no network, no errors, sorting, keyboard, print, accessibility."""

import base64
import io
import json
import time

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.report import report_model, report_result
from report.conftest import NASTY, small_data

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def pages(browser, run_page, result, model, model_page, tmp_path_factory):
    """Three pages, made once; after the browser, without which nobody needs them."""
    place = tmp_path_factory.mktemp("pages")
    return {
        "run": run_page,
        "both": report_result(result, place / "both.html", model=model),
        "model": model_page,
    }


@pytest.mark.parametrize("name", ["run", "both", "model"])
def test_it_opens_from_its_file_without_network_or_errors(browser, pages, name):
    browser.open(pages[name])
    assert browser.run("return document.readyState") == "complete"
    asked = [url for url in browser.requests() if not url.startswith("data:")]
    assert asked == [pages[name].as_uri()]
    assert browser.logs() == []
    assert len(browser.all("main > section")) >= 10
    wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


@pytest.mark.parametrize("width", [390, 1366])
def test_no_page_is_wider_than_its_window(browser, pages, width):
    browser.open(pages["both"], width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["run", "both", "model"])
def test_no_table_scrolls_sideways_on_a_phone(browser, pages, name):
    """A table that is too wide has one card per row, with the headings beside the cells."""
    browser.open(pages[name], width=390)
    found = browser.run(
        "return [...document.querySelectorAll('.scroll')].filter(s => s.checkVisibility() && "
        "s.scrollWidth > s.clientWidth + 1).map(s => s.ariaLabel)"
    )
    assert found == []
    stacked = browser.run("return [...document.querySelectorAll('table.stacked')].map(t => t.id)")
    assert "t-features" in stacked
    label = "return document.querySelector('#t-features td:nth-child(2)').dataset.label"
    assert browser.run(label) in ("View", "Feature")
    browser.open(pages[name], width=1366)
    assert browser.run("return document.querySelectorAll('table.stacked').length") == 0


def test_tables_are_stacked_again_when_a_phone_is_turned(browser, pages):
    """From a width at which participants fit side by side to one at which they do not."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(pages["run"], width=600)
    wide = "return document.querySelector('#t-people').classList.contains('stacked')"
    size = {"height": 900, "deviceScaleFactor": 1, "mobile": True}
    assert not browser.run(wide)
    for width, stacked in ((260, True), (600, False)):
        command = "Emulation.setDeviceMetricsOverride"
        browser.driver.execute_cdp_cmd(command, {**size, "width": width})
        # The page hears of its new width a moment later; a wait that ends in vain raises.
        WebDriverWait(browser.driver, 20).until(lambda _, s=stacked: browser.run(wide) is s)


def test_headings_sort_numbers_and_names(browser, pages, result):
    browser.open(pages["both"])
    heads = [h.text.strip() for h in browser.all("#t-models th button")]
    at = next(i for i, h in enumerate(heads) if h.startswith("AUC"))
    script = (
        "return [...document.querySelectorAll('#t-models tbody tr')]"
        ".map(r => r.cells[arguments[0]].dataset.s)"
    )
    button = browser.all("#t-models th button")[at]
    browser.press(button)
    values = [float(v) for v in browser.run(script, at)]
    assert values == sorted(result.table()["auc_pooled"], reverse=True)
    browser.press(button)
    assert [float(v) for v in browser.run(script, at)] == values[::-1]
    assert browser.all("#t-models th")[at].get_attribute("aria-sort") == "ascending"
    browser.press(browser.all("#t-models th button")[0])
    names = browser.run(script, 0)
    assert names == sorted(names)


def test_measurements_are_filtered(browser, pages):
    browser.open(pages["both"])
    box = browser.find("form[data-table='t-features'] input")
    before = browser.shown("#t-features tbody tr")
    assert len(before) > 1
    box.send_keys("clinic_0")
    after = browser.shown("#t-features tbody tr")
    assert after
    assert all("clinic_0" in row for row in after)
    box.clear()
    box.send_keys("no such thing")
    assert browser.shown("#t-features tbody tr") == []
    browser.run(
        "const s = document.querySelector(\"form[data-table='t-features'] select[name='model']\");"
        "s.value = 'Ridge logistic'; s.form.elements.text.value = '';"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    rows = browser.shown("#t-features tbody tr")
    assert rows
    assert all("Ridge logistic" in row for row in rows)


def test_all_rows_are_shown_on_demand(browser, pages, data):
    browser.open(pages["run"])
    assert len(browser.shown("#t-people tbody tr")) == 25
    more = browser.run(
        "const b = document.querySelector('#people .more button'); b.click(); return b.hidden"
    )
    assert more is True
    assert len(browser.shown("#t-people tbody tr")) == len(data[1])


def test_a_person_opens_and_closes_by_keyboard(browser, pages):
    from selenium.webdriver.common.keys import Keys

    browser.open(pages["model"])
    button = browser.find("button.person")
    name = button.text
    button.send_keys(Keys.ENTER)
    assert browser.run("return document.getElementById('person').open") is True
    assert browser.find("#person-name").text == name
    assert "clinic" in browser.find("#person-body").text  # contributions
    browser.find("#person").send_keys(Keys.ESCAPE)
    assert browser.run("return document.getElementById('person').open") is False
    assert browser.run("return document.activeElement.className") == "person"


def test_every_control_is_reached_by_tab_and_theme_changes(browser, pages):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.open(pages["both"])
    seen = []
    for _ in range(22):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        active = "document.activeElement"
        seen.append(browser.run(f"return {active}.id || {active}.textContent"))
    assert seen[0] == "Skip to the answer"
    assert "theme" in seen
    assert "Calculator" in seen
    assert any(s.startswith("Characteristic") for s in seen)  # a heading that sorts
    before = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.find("#theme").send_keys(Keys.ENTER)
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != before


def test_pictures_have_alternative_texts(browser, pages):
    browser.open(pages["both"])
    texts = browser.run(
        "return [...document.querySelectorAll('figure')].map(f => "
        "(f.querySelector('img') || {}).alt || f.querySelector('[role=img]').ariaLabel)"
    )
    assert len(texts) >= 6
    assert all(len(text) > 40 for text in texts)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["both", "model"])
def test_axe_finds_nothing_serious(browser, pages, name, dark):
    browser.open(pages[name], dark=dark)
    assert browser.violations() == []


def test_an_open_person_is_accessible_too(browser, pages):
    browser.open(pages["model"], dark=True)
    browser.press(browser.find("button.person"))
    assert browser.violations() == []


def type_in(browser, X):
    """Return what the calculator says of people, through the inputs of the page."""
    features = browser.run("return baldurPage.data.card.model.features.map(f => [f.view, f.name])")
    cells = {v: X.view(v).read() for v in X.view_names}
    names = {v: list(X.feature_names[v]) for v in X.view_names}
    people = []
    for i in range(len(X)):
        values = [cells[v][i, names[v].index(f)] for v, f in features]
        people.append(
            {
                "inputs": ["" if np.isnan(x) else repr(float(x)) for x in values],
                "has": {v: bool(X.view(v).present[i]) for v in X.view_names},
            }
        )
    found = browser.run(
        """
        const model = baldurPage.data.card.model, form = document.querySelector('#calc form');
        return arguments[0].map(person => {
          model.views.forEach((view, v) => {
            const box = document.getElementById(`has-${v}`);
            if (box) box.checked = person.has[view];
          });
          person.inputs.forEach((value, i) => {
            document.getElementById(`input-${i}`).value = value;
          });
          form.dispatchEvent(new Event('input'));
          return document.querySelector('#calc .result').dataset.value;
        });
        """,
        people,
    )
    return np.array([json.loads(text) for text in found]), people


def test_the_calculator_equals_predict_proba(browser, pages, model):
    """200 people, some without a view, some without single inputs."""
    X, _ = small_data(200, seed=5)
    browser.open(pages["model"])
    found, people = type_in(browser, X)
    assert any("" in p["inputs"] for p in people)
    assert any(not all(p["has"].values()) for p in people)
    assert len(browser.all("#calc fieldset")) == 2  # views can be missing in the page as well
    assert np.abs(found - model.predict_proba(X)).max() < 1e-6


@pytest.mark.slow
def test_the_calculator_of_the_default_equals_predict_proba(browser, data, tmp_path):
    X, y = data
    rows = np.arange(80)
    fitted = BaldurClassifier().fit(X[rows], y[rows])
    browser.open(report_model(fitted, tmp_path / "auto.html", X, y))
    new, _ = small_data(200, seed=5)
    difference = np.abs(type_in(browser, new)[0] - fitted.predict_proba(new)).max()
    print(f"200 people, largest difference {difference:.1e}")
    assert difference < 1e-6
    assert browser.all("#f-path")
    assert browser.logs() == []


def test_the_calculator_tells_contributions_interval_and_range(browser, pages, model):
    X, _ = small_data(40, seed=6)
    browser.open(pages["model"])
    features = browser.run("return baldurPage.data.card.model.features.map(f => [f.view, f.name])")
    i = int(np.flatnonzero(np.isfinite(X.view("clinic").read()).all(axis=1))[0])
    for at, (view, name) in enumerate(features):
        column = list(X.feature_names[view]).index(name)
        value = float(X.view(view).read()[i, column])
        box = browser.find(f"#input-{at}")
        box.clear()
        box.send_keys(repr(value))
    terms = json.loads(browser.find("#calc .result").get_attribute("data-terms"))
    told = model.explain(X[[i]]).set_index(["view", "feature"])["contribution"]
    for (view, name), term in zip(features, terms[1:], strict=True):
        assert term == pytest.approx(told[(view, name)], abs=1e-6)
    p = json.loads(browser.find("#calc .result").get_attribute("data-value"))[1]
    low, high = (
        float(t.rstrip(" %")) / 100
        for t in json.loads(browser.find("#calc .result").get_attribute("data-interval"))
    )
    assert low < p < high
    assert browser.all("#calc .outside") == []
    browser.find("#input-0").clear()
    browser.find("#input-0").send_keys("1e6")
    assert "Outside the training range" in browser.find("#hint-0").text
    assert browser.logs() == []


def test_names_from_files_are_text_and_never_run(browser, data, tmp_path):
    X, y = small_data(60, names={"clinic": NASTY, "genes": NASTY[::-1]})
    renamed = np.array(["</script><b>control", "<img src=x onerror=alert(1)>"])[y]
    fitted = BaldurClassifier(members=("pooled",)).fit(X, renamed)
    page = report_model(fitted, tmp_path / "nasty.html", X, renamed, title=NASTY[0])
    browser.open(page)
    assert browser.run("return document.title") == NASTY[0]
    assert browser.find("h1").text == NASTY[0]
    assert browser.logs() == []
    assert [u for u in browser.requests() if not u.startswith("data:")] == [page.as_uri()]
    shown = browser.run("return document.getElementById('t-features').textContent")
    kept = {f for v in X.view_names for f in X.feature_names[v][fitted.selected_features_[v]]}
    for name in set(NASTY) & kept:
        assert name.strip() in shown
    browser.press(browser.find("button.person"))
    assert (
        "</script><b>control" in browser.find("#person-body").text
        or "<img" in browser.find("#person-body").text
    )
    assert browser.run("return document.documentElement.scrollWidth") <= 1366


def test_the_printed_page_cuts_no_figure(browser, pages):
    """Figures lie within one page each: their height fits, and breaks inside are forbidden."""
    pypdf = pytest.importorskip("pypdf")
    browser.open(pages["both"])
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # A4 less its margins, in CSS pixels.
    width, height = 182 * 96 / 25.4, 269 * 96 / 25.4
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": round(width), "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    figures = browser.run(
        "return [...document.querySelectorAll('figure')].map(f => {const b = f"
        ".getBoundingClientRect(); return [b.width, b.height, getComputedStyle(f).breakInside,"
        "f.querySelector('svg, img').getBoundingClientRect().right]})"
    )
    assert figures
    for wide, tall, inside, right in figures:
        assert tall < height
        assert wide <= width + 1
        assert right <= width + 1
        assert inside == "avoid"
    tables = browser.run(
        "return [...document.querySelectorAll('main table')].filter(t => t.checkVisibility())"
        ".map(t => t.getBoundingClientRect().right)"
    )
    assert max(tables) <= width + 2
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.driver.execute_cdp_cmd(
        "Page.printToPDF", {"preferCSSPageSize": False, "paperWidth": 8.27, "paperHeight": 11.69}
    )
    pdf = pypdf.PdfReader(io.BytesIO(base64.b64decode(printed["data"])))
    text = "\n".join(page.extract_text() for page in pdf.pages)
    assert "The answer" in text
    assert "TRIPOD+AI" in text
    assert len(pdf.pages) < 30


def test_it_opens_quickly(browser, pages):
    started = time.monotonic()
    browser.open(pages["both"])
    assert time.monotonic() - started < 10  # of a loaded machine; a quiet one takes a third of 1 s
