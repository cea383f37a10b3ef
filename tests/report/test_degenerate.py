"""Studies with nothing, one thing, or far too much of it: the page is made, and opens."""

import json
import shutil
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.baselines import BASELINES
from baldur.evaluation import Model, nested_cv
from baldur.exceptions import NoSignalWarning
from baldur.paper import PaperClassifier
from baldur.report import report_folder, report_model, report_result
from report.conftest import NASTY, small_data

pytestmark = pytest.mark.usefixtures("few_resamples", "one_repeat")


def opened(browser, page):
    """Open a page, and return its text if nothing went wrong."""
    browser.open(page)
    assert browser.logs() == []
    assert [u for u in browser.requests() if not u.startswith("data:")] == [page.as_uri()]
    assert browser.run("return document.documentElement.scrollWidth") <= 1366
    return browser.run("return document.body.innerText")


def compare(models, X, y, **options):
    return nested_cv(models, X, y, **{"outer": 2, "inner": 2, "random_state": 0, **options})


def noise():
    """Forty people of whom four numbers tell nothing; the base rate is shown to be better."""
    X = MultiView({"a": np.random.default_rng(1).normal(size=(40, 4))})
    return X, np.tile(["no", "yes"], 20)


@pytest.mark.slow
def test_no_signal_shown(browser, tmp_path):
    """The default still predicts, and the page says that its features are not to be read."""
    X, y = noise()
    with pytest.warns(NoSignalWarning):
        fitted = BaldurClassifier().fit(X, y)
    text = opened(browser, report_model(fitted, tmp_path / "m.html", X, y))
    assert "B01" in text
    assert "Do not interpret the selected features" in text
    assert "less than 95 % confidence needs" in text


def test_nothing_selected(browser, tmp_path):
    """Noise: the base rate is kept, and the page says that this is an answer."""
    X, y = noise()
    fitted = PaperClassifier(bound="jaakkola").fit(X, y)
    assert not fitted.selected_features_["a"].any()
    text = opened(browser, report_model(fitted, tmp_path / "m.html", X, y))
    assert "everybody gets the base rate" in text
    assert "B13" in text
    result = compare(["Dummy"], X, y)
    text = opened(browser, report_result(result, tmp_path / "r.html"))
    assert "B01" in text


def test_one_feature_and_one_view(browser, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    X = MultiView({"only": x[:, None]}, feature_names={"only": ["x"]})
    y = np.where(x + 0.5 * rng.normal(size=60) > 0, "case", "control")
    model = Model("BALDUR", BaldurClassifier(members=("pooled",)))
    result = compare([model], X, y, positive="case")
    fitted = BaldurClassifier(members=("pooled",)).fit(X, y)
    text = opened(browser, report_result(result, tmp_path / "r.html", model=fitted))
    assert "B06" in text  # one feature does it all
    assert len(browser.all("#calc input[type=number]")) == 1


def test_a_view_emptied_names_that_attack_and_a_failed_model(browser, tmp_path):
    """One study for three: nobody has one view, names are nasty, and one model fails."""
    X, y = small_data(60, names={"clinic": NASTY, "genes": NASTY})
    arrays = {v: X.view(v).read() for v in X.view_names}
    arrays["empty"] = np.zeros((60, 3))
    few = np.arange(60) < 24
    X = MultiView(
        arrays,
        sample_ids=[f"{NASTY[i % 4]}{i}" for i in range(60)],
        feature_names={v: X.feature_names[v] for v in X.view_names},
        present={"genes": X.view("genes").present, "empty": few},
    )
    labels = np.array(["<b>no</b>", "</script>yes"])[y]

    class Broken(type(BASELINES["Dummy"].make())):
        def fit(self, X, y):
            raise ValueError("<script>document.title='run'</script>")

    models = [
        Model("BALDUR", BaldurClassifier(members=("pooled",))),
        Model("<i>Broken</i>", Broken(DummyClassifier(), layout="none")),
    ]
    result = compare([*models, "Ridge logistic"], X, labels)
    assert set(result.failures) == {"<i>Broken</i>"}
    page = report_result(result, tmp_path / "r.html", people="named", title="<script>x</script>")
    text = opened(browser, page)
    assert browser.run("return document.title") == "<script>x</script>"
    assert "B09" in text
    assert "<i>Broken</i>" in text
    assert "B10" in text
    assert "</script>yes" in text
    assert browser.all("main i, main b") == []
    person = next(b for b in browser.all("button.person") if "<" in b.text)
    name = person.text
    browser.press(person)
    assert browser.find("#person-name").text in name
    assert "<" in browser.find("#person-name").text


@pytest.mark.slow
def test_ten_classes(browser, tmp_path):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(10), 8)
    X = MultiView(
        {"a": np.eye(10)[y] * 2 + rng.normal(size=(80, 10)), "b": rng.normal(size=(80, 3))}
    )
    labels = np.array([f"class {c}" for c in range(10)])[y]
    model = Model("BALDUR", BaldurClassifier(members=("pooled",)))
    result = compare([model, "Dummy"], X, labels)
    fitted = BaldurClassifier(members=("pooled",)).fit(X, labels)
    text = opened(browser, report_result(result, tmp_path / "r.html", model=fitted))
    assert "10 classes" in text
    value = json.loads(browser.find("#calc .result").get_attribute("data-value"))
    assert len(value) == 10
    assert sum(value) == pytest.approx(1.0)


def test_regression(browser, tmp_path):
    X, _ = small_data(60)
    rng = np.random.default_rng(2)
    y = 50 + 5 * np.nan_to_num(X.view("clinic").read()[:, 0]) + rng.normal(size=60)
    fitted = BaldurRegressor(members=("pooled",)).fit(X, y)
    model = Model("BALDUR", BaldurRegressor(members=("pooled",)))
    result = compare([model, "Dummy"], X, y, task="regression")
    text = opened(browser, report_result(result, tmp_path / "r.html", model=fitted))
    assert "R²" in text
    page = report_model(fitted, tmp_path / "m.html", X, y)
    opened(browser, page)
    browser.press(browser.find("#calc .buttons button"))
    mean, sd = json.loads(browser.find("#calc .result").get_attribute("data-value"))[0]
    assert mean == pytest.approx(y.mean(), abs=3)
    assert sd > 0


@pytest.mark.slow
def test_the_width_of_a_genome(browser, folder, tmp_path):
    """841,685 features, all of them kept in some fold: less than 8 MB, opened in under 3 s."""
    width = 841_685
    place = tmp_path / "wide"
    shutil.copytree(folder, place)
    rng = np.random.default_rng(0)
    selection = pd.read_csv(place / "selection.csv", keep_default_na=False)
    many = pd.DataFrame(
        {
            "model": "BALDUR", "view": "snps", "feature": [f"rs{i}" for i in range(width)],
            "class": "patient", "n_features": 1, "frequency": rng.choice([1 / 3, 2 / 3], width),
            "mean_weight": rng.normal(size=width), "mean_raw_weight": rng.normal(size=width),
            "sign_agreement": 1.0, "folds": "1;0;0",
        }
    )  # fmt: skip
    whole = {**many.iloc[0], "feature": "*", "class": "*", "n_features": width,
             "folds": ";".join([str(width)] * 3)}  # fmt: skip
    pd.concat([selection, pd.DataFrame([whole]), many]).to_csv(place / "selection.csv", index=False)
    record = json.loads((place / "run.json").read_text())
    record["views"].append({"name": "snps", "features": width, "people": 120})
    (place / "run.json").write_text(json.dumps(record))
    started = time.monotonic()
    page = report_folder(place)
    made = time.monotonic() - started
    started = time.monotonic()
    opened(browser, page)
    seconds = browser.run(
        "return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
    )
    print(f"{page.stat().st_size / 1e6:.2f} MB, made in {made:.1f} s, opened in {seconds:.2f} s")
    assert page.stat().st_size < 8e6
    assert seconds < 3
    assert "more rows are not shown" in browser.find("#features").text
