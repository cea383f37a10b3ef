"""`views` of a model and `baseline_views` in a study file."""

import pytest

from baldur.baselines import BASELINES
from baldur.exceptions import StudyError
from baldur.study import evaluate_study, fit_study, load_study

MODEL = {"name": "Ridge logistic", "grid": {"C": [1.0]}}


def test_rows_of_one_model_have_names_with_their_views(parts, tables, write):
    parts["models"] = [MODEL, {**MODEL, "views": ["blood"]}, {**MODEL, "views": ["brain"]}]
    config = load_study(write(parts, tables))
    done = evaluate_study(config)
    names = ["Ridge logistic", "Ridge logistic (blood)", "Ridge logistic (brain)"]
    assert done.run.table()["model"].tolist() == names
    used = done.run.selection.groupby("model")["view"].unique().map(set).to_dict()
    assert used == dict(zip(names, [{"blood", "brain"}, {"blood"}, {"brain"}], strict=True))
    # The study as resolved can be run again, and one of the rows can be fitted.
    assert load_study(done.folder / "study.toml", roots=[config.folder]).models[1].label == names[1]
    saved, _ = fit_study(config, names[1])
    assert list(saved.n_features) == ["blood"]


def test_interrupted_view_sets_continue(parts, tables, write):
    parts["models"] = [MODEL]
    file = write(parts, tables)
    evaluate_study(load_study(file))
    parts["report"] = {"baseline_views": ["blood"]}
    config = load_study(write(parts, tables))
    states = []
    done = evaluate_study(config, progress=lambda s: states.append((s.reused, s.done, s.total)))
    assert states[-1] == (3, 9, 9)
    files = {f.name: f.read_bytes() for f in done.folder.glob("*.csv")}
    for job in sorted(done.folder.glob("jobs/*/*.job"))[::2]:
        job.unlink()
    again = evaluate_study(config)
    assert {f.name: f.read_bytes() for f in again.folder.glob("*.csv")} == files


def test_added_value_uses_thresholds_that_are_stated_and_not_chosen_ones(parts, tables, write):
    parts["models"] = [MODEL]
    found = []
    for stated in ({"sensitivities": [0.8], "prevalence": 0.3}, {"thresholds": [0.2]}):
        parts["report"] = {"baseline_views": ["blood"], **stated}
        done = evaluate_study(load_study(write(parts, tables)))
        table = done.table("added_value")
        found.append(sorted(table["threshold"].dropna().unique()))
    assert found == [[0.3, 0.5], [0.2]]


def test_the_log_and_the_record_say_why_there_is_no_added_value(parts, tables, write, monkeypatch):
    ridge = type(BASELINES["Ridge logistic"].make())
    fit = ridge.fit

    def needs_two_views(self, X, y):
        if len(X.n_features) < 2:
            raise RuntimeError("there is one view only")
        return fit(self, X, y)

    monkeypatch.setattr(ridge, "fit", needs_two_views)
    parts["models"] = [MODEL]
    parts["report"] = {"baseline_views": ["blood"]}
    done = evaluate_study(load_study(write(parts, tables)))
    assert not len(done.table("added_value"))
    why = (
        "There are no two view sets of 'Ridge logistic' to compare, because these models failed: "
        "'Ridge logistic (blood)', 'Ridge logistic (brain)'"
    )
    assert done.record["added_value_missing"] == f"{why}."
    assert f"note: Added value: {why}\n" in (done.folder / "log.txt").read_text()


@pytest.mark.parametrize(
    ("models", "report", "said"),
    [
        (
            [{**MODEL, "views": ["bloot"]}],
            {},
            r"models\[1\].views: .* 'bloot'.*blood",
        ),
        ([{**MODEL, "views": []}], {}, r"models\[1\].views"),
        ([{**MODEL, "views": ["blood"]}] * 2, {}, r"'Ridge logistic \(blood\)' occurs twice"),
        ([MODEL], {"baseline_views": ["mri"]}, "report.baseline_views: there is no view 'mri'"),
        ([MODEL], {"baseline_views": ["brain", "blood"]}, "none to add"),
        ([{**MODEL, "views": ["blood"]}], {"baseline_views": ["blood"]}, "no model gets all views"),
    ],
)
def test_wrong_views_are_one_line(parts, tables, write, models, report, said):
    parts["models"] = models
    if report:
        parts["report"] = report
    with pytest.raises(StudyError, match=said) as error:
        evaluate_study(load_study(write(parts, tables)))
    assert "\n" not in str(error.value)
