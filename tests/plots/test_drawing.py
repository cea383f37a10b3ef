"""Every figure is drawn, to every format and theme, alone and in given axes."""

import io
import itertools
import sys

import numpy as np
import pandas as pd
import pytest

from baldur import plots
from baldur.exceptions import InputError, MissingExtraError
from baldur.plots import Display
from baldur.plots.style import THEMES
from baldur.plots.text import feature_labels, label, number, plain, short_names

figure = pytest.importorskip("matplotlib.figure")

MAKERS = {
    "forest": lambda f: plots.ForestDisplay.from_estimator(f("model")),
    "forest of ten": lambda f: plots.ForestDisplay.from_estimator(f("ten_classes")),
    "forest of folds": lambda f: plots.ForestDisplay.from_result(f("result")),
    "path": lambda f: plots.PathDisplay.from_estimator(f("model")),
    "few features": lambda f: plots.FewFeaturesDisplay.from_estimator(f("model")),
    "shares": lambda f: plots.ViewShareDisplay.from_result(f("result")),
    "shares of factors": lambda f: plots.ViewShareDisplay.from_estimator(f("ten_classes")),
    "contributions": lambda f: plots.ContributionsDisplay.from_estimator(
        f("model"), f("cohort").data[60:61]
    ),
    "contributions to a number": lambda f: plots.ContributionsDisplay.from_estimator(
        f("regressor"), f("cohort").data[60:61]
    ),
    "comparison": lambda f: plots.ComparisonDisplay.from_result(f("result")),
    "roc": lambda f: plots.RocDisplay.from_result(f("run"), resamples=100),
    "precision": lambda f: plots.PrecisionRecallDisplay.from_result(f("run"), resamples=100),
    "calibration": lambda f: plots.CalibrationDisplay.from_result(f("run")),
    "decision": lambda f: plots.DecisionDisplay.from_result(f("run")),
    "weights per fold": lambda f: plots.FoldWeightsDisplay.from_result(f("run")),
    "heat map": lambda f: plots.FoldHeatmapDisplay.from_result(f("run")),
    "correlation": lambda f: plots.CorrelationDisplay.from_result(f("run")),
    "latent": lambda f: plots.LatentDisplay.from_estimator(
        f("model"), f("cohort").data, f("cohort").target
    ),
    "latent of ten": lambda f: plots.LatentDisplay.from_estimator(
        f("ten_classes"), f("cohort").data, f("ten_classes").predict(f("cohort").data)
    ),
    "latent of labels": lambda f: plots.LatentDisplay.from_estimator(
        f("multilabel"), f("cohort").data, f("labels")
    ),
    "loadings": lambda f: plots.LoadingsDisplay.from_estimator(
        f("multilabel"), list(f("labels").columns)
    ),
    "loadings of ten": lambda f: plots.LoadingsDisplay.from_estimator(f("ten_classes")),
    "outcomes": lambda f: plots.OutcomesDisplay.from_result(f("outcomes")),
    "latent number": lambda f: plots.LatentDisplay.from_estimator(
        f("regressor"), f("cohort").data, f("regressor").predict(f("cohort").data)
    ),
    "missing": lambda f: plots.MissingViewsDisplay.from_result(f("run")),
    "added value": lambda f: plots.AddedValueDisplay.from_result(f("view_sets")),
    "manhattan": lambda f: plots.ManhattanDisplay(
        pd.DataFrame(
            {
                "feature": AWKWARD,
                "chromosome": np.arange(len(AWKWARD)) // 4,
                "value": np.arange(len(AWKWARD)) / 10,
                "selected": True,
            }
        )
    ),
    "history": lambda f: plots.HistoryDisplay.from_estimator(f("model")),
    "history of a bound": lambda f: plots.HistoryDisplay.from_estimator(f("nothing")),
}


@pytest.fixture(scope="module", params=MAKERS)
def display(request):
    return MAKERS[request.param](request.getfixturevalue)


def artists(one):
    return sum(len(ax.lines) + len(ax.patches) + len(ax.collections) for ax in one.axes_)


def test_a_figure_is_drawn_alone(display, tmp_path):
    assert isinstance(display.table, pd.DataFrame)
    assert len(display.table)
    assert display.alt_text.endswith(".")
    assert "\n" not in display.alt_text
    assert display.plot() is display
    assert display.ax_ is display.axes_[0]
    assert artists(display)
    png = display.save(tmp_path / "a.png", dpi=50).read_bytes()
    assert png.startswith(b"\x89PNG")
    nothing_collides(display.figure_)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_a_figure_is_drawn_for_a_phone_and_a_page(display):
    display.plot(width=3.4, theme="both")
    assert display.figure_.get_size_inches()[0] == pytest.approx(3.4)
    text = display.svg("x-")
    assert text.startswith("<svg")
    assert "currentColor" in text
    assert 'id="x-' in text
    assert 'id="figure' not in text
    nothing_collides(display.figure_)


def nothing_collides(drawn):
    """Check that no tick label touches another, and that nothing is cut off."""
    drawn.draw_without_rendering()
    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [
                text
                for tick in axis.get_major_ticks()
                for text in (tick.label1, tick.label2)
                if low <= tick.get_loc() <= high and text.get_visible() and text.get_text()
            ]
            boxes = [text.get_window_extent() for text in shown if ax.axison]
            for box, other in itertools.combinations(boxes, 2):
                assert not box.overlaps(other), [s.get_text() for s in shown]
    inches, tight = drawn.get_size_inches(), drawn.get_tightbbox()
    assert tight.x0 > -0.02
    assert tight.y0 > -0.02
    assert tight.x1 < inches[0] + 0.02
    assert tight.y1 < inches[1] + 0.02


def test_a_notebook_shows_the_figure():
    from matplotlib import image

    display = forest([("v", "f"), ("w", "g")], inclusion_probability=0.4)
    picture = image.imread(io.BytesIO(display._repr_png_()))
    assert isinstance(display.figure_, figure.Figure)
    assert picture.shape[1] == pytest.approx(5.2 * 110, abs=1)
    assert picture[..., :3].std() > 0.01
    assert repr(display) == f"<ForestDisplay: {display.alt_text}>"
    # In given axes the figure belongs to the user, and a notebook shows it once.
    assert display.plot(ax=figure.Figure().add_subplot())._repr_png_() is None


def test_files_are_the_same_on_every_run(tmp_path):
    one = forest([("v", "f"), ("w", "g")], inclusion_probability=0.4)
    for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        first = one.plot().save(tmp_path / f"a.{form}").read_bytes()
        assert first.startswith(start)
        assert one.plot().save(tmp_path / f"b.{form}").read_bytes() == first


def test_a_figure_is_drawn_in_given_axes(display):
    outer = figure.Figure(layout="constrained")
    left, right = outer.subplots(1, 2)
    display.plot(ax=left)
    assert display.figure_ is outer
    assert artists(display)
    assert not right.lines


def test_panels_share_the_place_of_axes_without_a_grid():
    one = forest([("v", "f"), ("w", "g")], inclusion_probability=0.4)
    free = figure.Figure()
    one.plot(ax=free.add_axes((0.2, 0.2, 0.7, 0.7)), theme="dark")
    assert one.figure_ is free
    assert len(one.axes_) == 2
    free.canvas.draw()


@pytest.mark.parametrize("width", [0.5, 100.0, -1.0])
def test_an_absurd_width_is_refused(width):
    with pytest.raises(InputError, match="width"):
        forest([("v", "f")]).plot(width=width)


def test_wrong_themes_formats_and_prefixes_are_refused(tmp_path):
    one = forest([("v", "f")])
    with pytest.raises(InputError, match="theme"):
        one.plot(theme="pink")
    with pytest.raises(InputError, match=r"\.png"):
        one.save(tmp_path / "a.gif")
    with pytest.raises(InputError, match="prefix"):
        one.svg('"><script>')


# -- names and degenerate figures ------------------------------------------------------------

AWKWARD = [
    "<script>alert(1)</script>",
    "$\\frac{1}{0}$",
    "_hidden",
    "$",
    "a$b$c",
    "\\$x",
    "x" * 300,
    "=SUM(A1)",
    "line\nbreak\x1b[31m",
    "",
]


def forest(names, **columns):
    views, features = zip(*names, strict=True)
    n = len(names)
    return plots.ForestDisplay(
        pd.DataFrame(
            {"view": views, "feature": features, "output": "y", "weight_scaled": np.arange(n) + 1.0,
             "lower": np.arange(n) + 0.5, "upper": np.arange(n) + 1.5, **columns}
        )
    )  # fmt: skip


def test_awkward_names_are_shown_as_text():
    one = forest([("view", name) for name in AWKWARD], inclusion_probability=0.5)
    text = one.plot().svg()
    assert "<script" not in text
    shown = [t.get_text() for t in one.ax_.get_yticklabels()]
    assert all(len(t) <= 40 for t in shown)
    from matplotlib.cbook import is_math_text

    assert not any(is_math_text(t) for t in shown)
    assert one.table["feature"].tolist() == AWKWARD


def test_awkward_models_stand_in_the_legend():
    rows = [
        {"model": name or "(none)", "class": "", "predicted": p, "observed": p, "low": p, "high": p}
        for name in AWKWARD
        for p in (0.1, 0.9)
    ]
    one = plots.CalibrationDisplay(pd.DataFrame(rows)).plot()
    one.svg()
    assert len(one.figure_.legends[0].get_texts()) == len(AWKWARD)


def test_labels_are_short_and_safe():
    assert label("a_b") == "a_b"
    assert label("$x$") == r"\$x\$"
    assert label("_x") == " _x"
    assert plain("abc" * 100, 20) == "abcabcabcabc…bcabcab"[:13] + "cabcabc"
    assert len(plain("abc" * 100, 20)) == 20
    assert plain("a\nb") == "a b"


LONG = [
    f"left_hemisphere_superior_temporal_gyrus_{what}_average_{i:03d}"
    for what in ("volume", "thickness")
    for i in range(12)
]


@pytest.mark.parametrize("most", [8, 13, 20, 31, 80])
@pytest.mark.parametrize(
    "names",
    [LONG, AWKWARD, [f"{'x' * 50}{k}{'y' * 50}" for k in range(20)], ["a", "b"], [], ["a" * 90]],
)
def test_short_names_stay_different(names, most):
    short = short_names(names, most)
    assert len(set(short)) == len(set(names))
    assert all(len(made.replace("\\$", "$")) <= most + 1 for made in short)
    for name, made in zip(names, short, strict=True):
        if len(name) <= most and name.isalnum():
            assert made == name


def test_names_lose_what_they_share_first():
    assert short_names(LONG, 24)[0] == "…volume_average_000"
    assert short_names(LONG, 16)[12] == "…thickness…000"
    assert short_names(["short", *LONG], 20)[0] == "short"


@pytest.mark.parametrize("most", [13, 20, 31])
def test_features_of_several_views_stay_different(most):
    views = ["magnetic resonance imaging", "magnetic resonance spectroscopy"]
    pairs = [(view, name) for view in views for name in LONG]
    assert len(set(feature_labels(pairs, most))) == len(pairs)
    assert feature_labels([("age", "age"), ("b", "age")], most) == ["age: age", "b: age"]
    assert feature_labels([("a", "x"), ("a", "y")], most) == ["x", "y"]


def test_the_value_in_a_legend_is_never_cut():
    rows = [
        {"model": "m", "class": f"progressive supranuclear palsy of type {k}",
         "false_positive_rate": x, "sensitivity": x, "low": x, "high": x}
        for k in range(10) for x in (0.0, 1.0)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    areas = table.drop_duplicates("class").assign(measure="auc", estimate=0.86, low=0.8, high=0.9)
    one = plots.RocDisplay(table, areas).plot(width=3.4)
    texts = [text.get_text() for text in one.figure_.legends[0].get_texts()]
    assert all(text.endswith(", AUC 0.86 (0.80 to 0.90)") for text in texts)
    assert len(set(texts)) == 10


def test_one_band_is_drawn_for_several_models_and_none_for_classes():
    def roc(column, names):
        rows = [
            {"model": "m", "class": "c", column: name, "false_positive_rate": x, "sensitivity": x,
             "low": x - 0.1, "high": x + 0.1}
            for name in names for x in (0.0, 0.5, 1.0)
        ]  # fmt: skip
        return plots.RocDisplay(pd.DataFrame(rows)).plot()

    models = roc("model", ["forest", "ridge", "net"])
    assert len(models.ax_.collections) == 1
    assert len(models.figure_.legends[0].get_texts()) == 3
    assert "with a 95 % band for forest" in models.alt_text
    assert len(roc("model", ["forest"]).ax_.collections) == 1
    classes = roc("class", ["a", "b", "c"])
    assert not classes.ax_.collections
    assert "band" not in classes.alt_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (1.0, "1"), (0.12345, "0.123"), (841685.0, "841,685"),
     (float("nan"), "unknown"), (0.00012, "0.00012"), (1e-9, "1e-09")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_no_selected_feature_is_said(nothing, cohort):
    assert not any(m.any() for m in nothing.selected_features_.values())
    one = plots.ForestDisplay.from_estimator(nothing).plot()
    assert "No feature" in one.ax_.texts[0].get_text()
    assert "no feature of 12 features" in one.alt_text
    share = plots.ViewShareDisplay.from_estimator(nothing).plot()
    assert "no feature was selected" in share.alt_text
    one = plots.ContributionsDisplay.from_estimator(nothing, cohort.data[:1]).plot()
    assert one.alt_text.startswith("From the average person's")


EMPTY = {
    "forest": lambda: plots.ForestDisplay(
        pd.DataFrame(columns=["view", "feature", "output", "weight_scaled", "lower", "upper"])
    ),
    "path": lambda: plots.PathDisplay(
        pd.DataFrame(columns=["step", "n_features", "loss_difference", "selected"]), 0.1
    ),
    "few features": lambda: plots.FewFeaturesDisplay(
        pd.DataFrame(columns=["limit", "metric", "estimate", "low", "high", "chance"])
    ),
    "shares": lambda: plots.ViewShareDisplay(pd.DataFrame(columns=["group", "view", "share"])),
    "comparison": lambda: plots.ComparisonDisplay(
        pd.DataFrame(columns=["model", "metric", "estimate", "low", "high"]),
        failures={"broken": "why"},
    ),
    "roc": lambda: plots.RocDisplay(pd.DataFrame(columns=["model", "class"])),
    "precision": lambda: plots.PrecisionRecallDisplay(pd.DataFrame(columns=["model", "class"])),
    "calibration": lambda: plots.CalibrationDisplay(pd.DataFrame(columns=["model", "class"])),
    "decision": lambda: plots.DecisionDisplay(pd.DataFrame(columns=["model"])),
    "weights per fold": lambda: plots.FoldWeightsDisplay(
        pd.DataFrame(columns=["fold", "view", "feature", "weight", "frequency"]), ["1", "2"]
    ),
    "heat map": lambda: plots.FoldHeatmapDisplay(
        pd.DataFrame(columns=["fold", "view", "feature", "weight", "frequency"]), ["1", "2"]
    ),
    "correlation": lambda: plots.CorrelationDisplay(pd.DataFrame()),
    "latent": lambda: plots.LatentDisplay(pd.DataFrame(columns=["sample", "factor0"])),
    "loadings": lambda: plots.LoadingsDisplay(
        pd.DataFrame(columns=["factor", "features", "kind", "name", "value"])
    ),
    "outcomes": lambda: plots.OutcomesDisplay(
        pd.DataFrame(columns=["outcome", "model", "metric", "estimate", "low", "high"])
    ),
    "learning": lambda: plots.LearningCurveDisplay(pd.DataFrame(columns=["model", "class"])),
    "missing": lambda: plots.MissingViewsDisplay(pd.DataFrame(columns=["has_a"])),
    "added value": lambda: plots.AddedValueDisplay(pd.DataFrame()),
    "manhattan": lambda: plots.ManhattanDisplay(pd.DataFrame(columns=["feature"])),
    "history": lambda: plots.HistoryDisplay([]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_table_is_drawn_as_a_sentence(name):
    one = EMPTY[name]()
    assert one.alt_text.endswith(".")
    one.plot()
    assert one.ax_.texts
    assert not one.ax_.axison


def test_only_the_first_of_many_features_are_drawn():
    numbers = np.arange(841_685)
    table = pd.DataFrame({"view": "snps", "feature": numbers, "output": "y"})
    table[["weight_scaled", "lower", "upper"]] = 1.0
    one = plots.ForestDisplay(table).plot(most=10)
    assert len(one.ax_.get_yticks()) == 10
    assert "841,675 more" in one.ax_.texts[-1].get_text()
    assert "841,685 weights" in one.alt_text


def test_every_theme_has_contrast():
    def luminance(colour):
        rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    def contrast(a, b):
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    white, dark = "#ffffff", THEMES["dark"].ground
    assert contrast(THEMES["light"].ink, white) > 7
    assert contrast(THEMES["dark"].ink, dark) > 7
    assert contrast(THEMES["both"].ink, white) >= 4.5
    assert contrast(THEMES["both"].ink, "#000000") >= 4.5


def test_every_display_is_exported():
    def below(kind):
        return {kind.__name__}.union(*map(below, kind.__subclasses__()))

    named = {n for n in plots.__all__ if n.endswith("Display")}
    assert below(Display) - named == {"AccuracyDisplay", "RankingDisplay"}


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch):
    one = forest([("v", "f")])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError, match=r"pip install 'baldur-multiview\[report\]'"
    ) as said:
        one.plot()
    assert "\n" not in str(said.value)
