"""A study from its file to its folder: the figures, the files, and the same again."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest
import tomli_w
from typer.testing import CliRunner

from baldur.cli import app
from baldur.evaluation import evaluate_predictions, nested_cv, threshold_measures
from baldur.exceptions import StudyError
from baldur.report import report_folder
from baldur.study import check_study, evaluate_study, load_study
from baldur.views import MultiView
from study.conftest import make_parts, make_tables, read_file, write_study

FILES = {
    "table.csv", "table.md", "table.tex", "table.txt", "predictions.csv", "selection.csv",
    "folds.csv", "comparisons.csv", "stability.csv", "views.csv", "weights.csv", "settings.csv",
    "correlations.csv", "presence.csv", "view_shares.csv", "run.json", "participants.csv",
    "study.toml", "log.txt", "table_folds.md", "table_folds.tex", "intervals.csv",
    "differences.csv", "calibration.csv", "calibration_curve.csv", "decision.csv",
    "thresholds.csv", "sample_size.csv", "README.txt", ".study.json",
}  # fmt: skip


def read(folder, name):
    text = {"label": str, "predicted": str, "note": str, "failure": str}
    return pd.read_csv(
        folder / name, dtype=text, float_precision="round_trip", keep_default_na=False,
        na_values={c: [""] for c in NUMBERS},
    )  # fmt: skip


NUMBERS = ["mean_weight", "mean_raw_weight", "sign_agreement", "p_control", "p_patient", "score"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The study as it is, evaluated; to be read and not changed."""
    file = write_study(make_parts(), make_tables(), tmp_path_factory.mktemp("plain"))
    return evaluate_study(load_study(file))


def test_the_folder_holds_what_it_should(plain):
    here = {f.name for f in plain.folder.iterdir()}
    assert here == FILES | {"jobs", ".lock"}
    predictions = read(plain.folder, "predictions.csv")
    fixed = ["model", "repeat", "fold", "sample", "label", "predicted"]
    assert list(predictions.columns) == [
        *fixed, "p_control", "p_patient", "probability", "score",
    ]  # fmt: skip
    selection = read(plain.folder, "selection.csv")
    assert {"model", "view", "feature", "frequency", "mean_weight", "sign_agreement"} <= set(
        selection
    )
    log = (plain.folder / "log.txt").read_text()
    assert "60 samples" in log
    assert "finished in" in log


def test_the_file_equals_the_call_from_python(plain, tables):
    X = MultiView(
        {v: tables[v].drop(columns="sample").to_numpy() for v in ("blood", "brain")},
        sample_ids=tables["samples"]["sample"].to_numpy(dtype=str),
    )
    expected = nested_cv(
        {"Ridge logistic": {"C": [0.1, 1.0]}, "LSVM-l1": {"c_ratio": [3.0, 10.0]}},
        X, tables["samples"]["diagnosis"].to_numpy(), positive="patient", outer=3, inner=3,
        random_state=3,
    )  # fmt: skip
    pd.testing.assert_frame_equal(plain.run.table(), expected.table())


def test_the_resolved_study_runs_elsewhere_and_gives_the_same_table(plain, tmp_path):
    copy = tmp_path / "copy.toml"
    copy.write_bytes((plain.folder / "study.toml").read_bytes())
    data = plain.folder.parent
    again = evaluate_study(load_study(copy, roots=[data]), output=tmp_path / "again")
    for name in ("table.csv", "predictions.csv", "selection.csv", "table.tex"):
        assert (again.folder / name).read_bytes() == (plain.folder / name).read_bytes()


def test_rows_follow_ids_whatever_the_order_of_the_files(plain, parts, tables, write):
    mixed = {**tables, "brain": tables["brain"].iloc[::-1], "blood": tables["blood"].sample(60)}
    second = evaluate_study(load_study(write(parts, mixed)))
    assert (plain.folder / "table.csv").read_bytes() == (second.folder / "table.csv").read_bytes()


def test_union_keeps_who_lacks_a_view_and_says_who_is_lost(parts, tables, write):
    tables["brain"] = tables["brain"].iloc[:50]
    tables["samples"].loc[55, "diagnosis"] = ""
    found = read_file(write(parts, tables))
    assert len(found.data) == 50
    (note,) = [n for n in found.notes if "9 samples" in n]
    assert "have a missing view and are left out (brain is missing for 9); write align = " in note
    assert 'align = "union" at the top' in note
    assert any("1 sample has no" in n for n in found.notes)
    parts["align"] = "union"
    found = read_file(write(parts, tables))
    assert len(found.data) == 59
    assert found.data.present["brain"].sum() == 50
    table = evaluate_study(load_study(write(parts, tables))).run.table()
    assert table["failure"].tolist() == ["", ""]


def test_groups_sites_and_splits_come_from_columns(parts, tables, write):
    parts["models"] = [{"name": "Dummy"}, {"name": "Ridge logistic", "grid": {"C": [1.0]}}]
    parts["samples"]["group"] = "family"
    found = read_file(write(parts, tables))
    assert found.groups.tolist() == tables["samples"]["family"].tolist()
    done = evaluate_study(load_study(write(parts, tables)))
    family = dict(zip(tables["samples"]["sample"], tables["samples"]["family"], strict=True))
    folds = done.run.predictions.assign(family=lambda f: f["sample"].map(family))
    assert (folds.groupby(["model", "family"])["fold"].nunique() == 1).all()
    del parts["samples"]["group"]
    parts["samples"]["site"] = "site"
    assert evaluate_study(load_study(write(parts, tables))).run.table()["folds"].tolist() == [
        3,
        3,
    ]
    del parts["samples"]["site"]
    parts["samples"]["split"] = "split"
    assert evaluate_study(load_study(write(parts, tables))).run.table()["folds"].tolist() == [
        1,
        1,
    ]


def test_covariates_are_included_or_regressed_out(parts, tables, write):
    tables["samples"]["age"] = tables["samples"]["age"].astype(object)
    tables["samples"].loc[7, "age"] = "NA"
    parts["covariates"] = {"include": ["sex", "age"]}
    found = read_file(write(parts, tables))
    assert found.data.view_names == ["blood", "brain", "covariates"]
    assert found.data.feature_names["covariates"].tolist() == ["sex=f", "sex=m", "age"]
    assert np.isnan(found.data.view("covariates").read()[7, 2])
    parts["covariates"] = {"regress_out": ["sex", "age", "site"]}
    found = read_file(write(parts, tables))
    assert found.data.view_names == ["blood", "brain"]
    assert found.preparation.regress_out == ["sex", "age", "site"]
    learned = found.preparation.fit(found.data).covariates_
    assert learned.features == ["sex=m", "age", "site=oslo", "site=rome"]
    done = evaluate_study(load_study(write(parts, tables)))
    assert done.run.failures == {}
    assert set(done.run.selection["view"]) == {"blood", "brain"}


def test_regression_repeats_and_permutations(parts, tables, write):
    parts["outcome"] = {"column": "score", "task": "regression"}
    parts["models"] = [{"name": "ridge", "estimator": "sklearn.linear_model.Ridge",
                        "grid": {"alpha": [1.0, 10.0]}}]  # fmt: skip
    parts["folds"] = {"outer": 3, "inner": 3, "repeats": 2}
    parts["report"] = {"permutations": 3, "metrics": ["r2", "rmse"]}
    done = evaluate_study(load_study(write(parts, tables)))
    assert done.run.table()["r2"].item() > 0.8
    assert done.run.table()["folds"].item() == 6
    assert (done.folder / "permutation.csv").is_file()


def test_a_missing_word_none_and_short_forms(parts, tables, write):
    parts["models"] = [{"name": "LSVM-l1", "grid": {"class_weight": ["none", "balanced"]},
                        "settings": {"c_ratio": 3.0}}]  # fmt: skip
    (model,) = evaluate_study(load_study(write(parts, tables))).run.comparison.models
    assert model.grid == {"class_weight": [None, "balanced"]}
    parts["models"] = ["Dummy", "MV-PLS"]
    assert [m.name for m in load_study(write(parts, tables)).models] == ["Dummy", "MV-PLS"]


@pytest.mark.parametrize("kind", ["samples.csv", "samples.tsv"])
def test_byte_order_marks_and_tabs_are_read(kind, parts, tables, write, tmp_path):
    file = write(parts, tables)
    separator = "," if kind.endswith("csv") else "\t"
    content = tables["samples"].to_csv(index=False, sep=separator)
    (tmp_path / kind).write_text("\ufeff" + content)
    file.write_text(tomli_w.dumps({**parts, "samples": {"file": kind, "id": "sample"}}))
    assert len(read_file(file).data) == 60


def test_loading_a_file_makes_no_estimators(parts, tables, write):
    parts["models"].append({"name": "mine", "estimator": "sklearn.nowhere.Missing"})
    config = load_study(write(parts, tables))
    assert [entry.name for entry in config.models] == ["Ridge logistic", "LSVM-l1", "mine"]
    assert config.models[0].grid == {"C": [0.1, 1.0]}
    with pytest.raises(StudyError, match=r"models.*sklearn\.nowhere"):
        check_study(config)


def test_the_schema_describes_every_key():
    schema = json.loads(CliRunner().invoke(app, ["init", "--schema"]).output)
    sections = [schema, *schema["$defs"].values()]
    for section in sections:
        assert section["additionalProperties"] is False
        for key, about in section["properties"].items():
            assert about["description"] == about["description"].strip(), key
            assert "null" not in str(about)
    text = json.dumps(schema)
    assert "leave-one-site-out" in text
    assert "min_maf" in text


def test_one_scale_for_all_models(parts, tables, write, tmp_path):
    tables["blood"].iloc[::7, 1] *= 100
    parts["models"] = [
        {"name": "Ridge logistic", "grid": {"C": [1.0]}},
        {"name": "LSVM-l1", "grid": {"c_ratio": [10.0]}},
    ]
    figures = {}
    for scale in ("clipped", "standard", "rank"):
        study = load_study(write({**parts, "preparation": {"scale": scale}}, tables, tmp_path))
        done = evaluate_study(study, output=tmp_path / scale)
        models = [model.estimator for model in done.run.comparison.models]
        assert {getattr(m, "scale", m.preparation) for m in models} == {scale}
        figures[scale] = (done.folder / "predictions.csv").read_bytes()
        again = tomllib.loads((done.folder / "study.toml").read_text())
        assert again["preparation"] == {"scale": scale}
    assert len(set(figures.values())) == 3
    with pytest.raises(StudyError, match=r"preparation\.scale: 'robust' is not known"):
        load_study(write({**parts, "preparation": {"scale": "robust"}}, tables, tmp_path))


def test_subgroups_thresholds_and_prevalence_are_reported(parts, tables, write):
    parts["samples"]["group"] = "family"
    parts["models"] = parts["models"][:1]
    parts["report"] = {"subgroups": ["sex", "age"], "thresholds": [0.3, 0.6], "prevalence": 0.1}
    done = evaluate_study(load_study(write(parts, tables)))
    predictions = read(done.folder, "predictions.csv")
    family = tables["samples"].set_index("sample")["family"]
    assert predictions["group"].tolist() == family[predictions["sample"]].tolist()
    groups = pd.read_csv(done.folder / "subgroups.csv")
    assert set(groups["subgroup"]) == {"sex", "age"}
    assert set(groups.query("subgroup == 'sex'")["level"]) == set(tables["samples"]["sex"])
    tests = pd.read_csv(done.folder / "thresholds.csv")
    assert set(tests["threshold"]) == {0.3, 0.6}
    decision = pd.read_csv(done.folder / "decision.csv").set_index(["model", "threshold"])
    # Treating all at the threshold of the prevalence neither gains nor loses.
    assert decision.loc[("treat all", 0.1), "net_benefit"] == pytest.approx(0)
    intervals = pd.read_csv(done.folder / "intervals.csv")
    assert (intervals["units"] == family.nunique()).all()
    pd.testing.assert_frame_equal(
        evaluate_predictions(
            predictions, thresholds=[0.3, 0.6], prevalence=0.1, metrics=done.run.metrics
        ).decision,
        done.run.evaluation(prevalence=0.1).decision,
    )


def test_thresholds_are_chosen_for_a_sensitivity_in_the_study_file(parts, tables, write):
    parts["models"] = parts["models"][:1]
    parts["report"] = {"sensitivities": [0.9], "specificities": [0.8]}
    done = evaluate_study(load_study(write(parts, tables)))
    tests = read(done.folder, "thresholds.csv")
    assert set(tests["rule"]) == {"stated", "prevalence", "sensitivity 0.9", "specificity 0.8"}
    expected = threshold_measures(
        read(done.folder, "predictions.csv"), sensitivities=[0.9], specificities=[0.8]
    )
    columns = ["threshold", "rule", "measure", "estimate"]
    pd.testing.assert_frame_equal(tests[columns], expected[columns])
    page = report_folder(done.folder).read_text()
    assert page.index("chosen for sensitivity 0.9") < page.index("chosen for specificity 0.8")
    assert "with the threshold chosen on the other folds." in page


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"sensitivities": [0]}, "report.sensitivities"),
        ({"specificities": [1.2]}, "report.specificities"),
        ({"subgroups": ["height"]}, "report.subgroups"),
        ({"prevalence": 5}, "between 0 and 1"),
        ({"thresholds": 0.5}, "list of numbers"),
        ({"thresholds": [0.5, 2]}, "between 0 and 1"),
    ],
)
def test_wrong_report_settings_are_one_line(parts, tables, write, report, said):
    parts["report"] = report
    with pytest.raises(StudyError, match=said):
        read_file(write(parts, tables))


def test_the_table_shows_intervals_and_the_other_form_folds(plain):
    table = plain.run.table().iloc[0]
    cell = f"{table['auc_pooled']:.2f} [{table['auc_low']:.2f}, {table['auc_high']:.2f}]"
    assert cell in (plain.folder / "table.txt").read_text()
    cell = f"{table['auc']:.2f} ± {table['auc_sd']:.2f}"
    assert cell in (plain.folder / "table_folds.md").read_text()


def test_a_learning_curve_reuses_finished_jobs(parts, tables, write):
    parts["models"] = parts["models"][:1]
    file = write(parts, tables)
    first = evaluate_study(load_study(file))
    jobs = first.folder / "jobs"
    before = {f.name for f in jobs.iterdir()}
    parts["report"] = {"learning_curve": [0.5, 0.7]}
    seen = []
    done = evaluate_study(load_study(write(parts, tables)), progress=lambda s: seen.append(s.total))
    curve = pd.read_csv(done.folder / "learning_curve.csv")
    measured = curve.query("kind == 'measured'")
    sizes = measured.groupby("model")["people"].apply(list).iloc[0]
    assert sizes == [20, 28, 40]
    full = measured[measured["people"] == 40].set_index("model")["estimate"]
    table = done.run.table().set_index("model")["auc_pooled"]
    pd.testing.assert_series_equal(full, table[full.index], check_names=False)
    assert set(curve["kind"]) == {"measured"}
    assert before < {f.name for f in jobs.iterdir()}
    again = evaluate_study(load_study(write(parts, tables)))
    assert (again.folder / "log.txt").read_text().splitlines()[-1].count("jobs were done before")
    assert pd.read_csv(again.folder / "learning_curve.csv").equals(curve)


def test_too_few_people_for_a_learning_curve_is_a_note(parts, tables, write):
    parts["report"] = {"learning_curve": [0.01, 0.5]}
    parts["models"] = parts["models"][:1]
    done = evaluate_study(load_study(write(parts, tables)))
    assert any("no learning curve" in note for note in done.record["notes_on_data"])
    assert not (done.folder / "learning_curve.csv").exists()
    assert (done.folder / "table.csv").exists()


def test_classes_that_look_like_formulas_come_back_from_the_files(parts, tables, write):
    signs = {"control": "-x", "patient": "+x"}
    tables["samples"]["diagnosis"] = tables["samples"]["diagnosis"].map(signs)
    parts["outcome"]["positive"] = "+x"
    parts["models"] = parts["models"][:1]
    done = evaluate_study(load_study(write(parts, tables)))
    predictions = pd.read_csv(done.folder / "predictions.csv", float_precision="round_trip")
    assert set(predictions["label"]) == {"'-x", "'+x"}
    again = evaluate_predictions(predictions)
    pd.testing.assert_frame_equal(again.intervals, done.run.evaluation().intervals)
