"""Over forty kinds of bad study files: each gives one line that names the key and the fix."""

import pytest

from baldur.exceptions import StudyError
from baldur.study import evaluate_study, load_study


def set_key(*path, value):
    def change(parts, tables):
        at = parts
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value

    return change


def drop(*path):
    def change(parts, tables):
        at = parts
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


def one_class(parts, tables):
    tables["samples"]["diagnosis"] = "patient"


def repeated_id(parts, tables):
    tables["samples"].loc[1, "sample"] = "p00"


def repeated_id_in_view(parts, tables):
    tables["brain"].loc[1, "sample"] = "p00"


def missing_id(parts, tables):
    tables["samples"].loc[4, "sample"] = ""


def other_ids(parts, tables):
    tables["brain"]["sample"] = [f"x{i}" for i in range(60)]


def similar_ids(parts, tables):
    tables["brain"]["sample"] = [f"P{i:02d}" for i in range(60)]


def disjoint_views(parts, tables):
    tables["blood"] = tables["blood"].iloc[:30]
    tables["brain"] = tables["brain"].iloc[30:]


def text_outcome(parts, tables):
    parts["outcome"] = {"column": "diagnosis", "task": "regression"}
    parts["models"] = [{"name": "ridge", "estimator": "sklearn.linear_model.Ridge"}]


def number_outcome(parts, tables):
    parts["outcome"] = {"column": "score"}


def few_of_a_class(parts, tables):
    tables["samples"]["diagnosis"] = ["patient"] * 2 + ["control"] * 58


def empty_covariate(parts, tables):
    tables["samples"]["age"] = ""
    parts["covariates"] = {"regress_out": ["age"]}


def empty_group(parts, tables):
    tables["samples"].loc[5, "family"] = ""
    parts["samples"]["group"] = "family"


def wrong_split(parts, tables):
    tables["samples"].loc[5, "split"] = "validation"
    parts["samples"]["split"] = "split"


def same_model_twice(parts, tables):
    parts["models"] = [{"name": "RF"}, {"name": "RF"}]


# What is changed; what the line must name; what it must say.
CASES = {
    "missing samples file": (set_key("samples", "file", value="no.csv"), "samples.file", "no.csv"),
    "samples file of another kind": (set_key("samples", "file", value="a.docx"), "samples.file",
                                     ".csv"),
    "missing view file": (set_key("views", "brain", "file", value="no.csv"), "views.brain",
                          "no.csv"),
    "view without file": (drop("views", "brain", "file"), "views.brain.file", "give the file"),
    "no views": (set_key("views", value={}), "views", "[views.NAME]"),
    "unknown option of a view": (set_key("views", "brain", "idcolumn", value="x"),
                                 "views.brain.idcolumn", "'id_column'"),
    "unknown kind of view": (set_key("views", "brain", "kind", value="tabel"), "views.brain.kind",
                             "table"),
    "unknown section": (set_key("outcomes", value={"column": "x"}), "outcomes", "'outcome'"),
    "unknown key": (set_key("outcome", "colum", value="x"), "outcome.colum", "'column'"),
    "unknown top key": (set_key("sead", value=1), "sead", "'seed'"),
    "missing section": (drop("outcome"), "outcome", "add [outcome]"),
    "missing key": (drop("samples", "id"), "samples.id", "sample ids"),
    "wrong type": (set_key("seed", value="one"), "seed", "whole number"),
    "number below the least": (set_key("folds", "outer", value=1), "folds.outer", "between 2 and"),
    "section that is a value": (set_key("folds", value=5), "folds", "[folds]"),
    "wrong outcome column": (set_key("outcome", "column", value="diagnose"), "outcome.column",
                             "'diagnosis'"),
    "wrong id column": (set_key("samples", "id", value="Sample"), "samples.id", "'sample'"),
    "wrong group column": (set_key("samples", "group", value="famly"), "samples.group", "'family'"),
    "wrong covariate": (set_key("covariates", value={"regress_out": ["agee"]}),
                        "covariates.regress_out", "'age'"),
    "covariate in both": (set_key("covariates", value={"regress_out": ["age"], "include": ["age"]}),
                          "covariates.include", "one of the two"),
    "outcome as covariate": (set_key("covariates", value={"include": ["diagnosis"]}), "covariates",
                             "outcome"),
    "empty covariate": (empty_covariate, "covariates.regress_out", "'age' has no values"),
    "one class": (one_class, "outcome.column", "one class only"),
    "wrong positive class": (set_key("outcome", "positive", value="sick"), "outcome.positive",
                             "control, patient"),
    "numbers as classes": (number_outcome, "outcome.task", "regression"),
    "text for numbers": (text_outcome, "outcome.column", "'control' for a number"),
    "repeated ids": (repeated_id, "samples.id", "'p00' occurs more than once"),
    "repeated ids in a view": (repeated_id_in_view, "views.brain", "'p00'"),
    "missing id": (missing_id, "samples.id", "row 5"),
    "ids that do not match": (other_ids, "views.brain", "'x0'"),
    "ids written differently": (similar_ids, "views.brain", "look alike"),
    "views without common samples": (disjoint_views, "align", "union"),
    "unknown model": (set_key("models", value=[{"name": "LSVM-l2"}]), "models[1].name",
                      "'LSVM-l1'"),
    "model twice": (same_model_twice, "models[2].name", "twice"),
    "no models": (set_key("models", value=[]), "models", "at least one"),
    "unknown setting": (set_key("models", value=[{"name": "RF", "grid": {"trees": [1]}}]),
                        "models[1]", "'trees'"),
    "grid that is no list": (set_key("models", value=[{"name": "RF", "grid": {"max_depth": 3}}]),
                             "models[1].grid.max_depth", "[3]"),
    "estimator from elsewhere": (
        set_key("models", value=[{"name": "x", "estimator": "os.system"}]),
        "models[1].estimator", "scikit-learn"),
    "estimator that is not there": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.svm.SCV"}]),
        "models[1].estimator", "sklearn.svm.SCV"),
    "function for an estimator": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.datasets.fetch_openml"}]),
        "models[1].estimator", "not an estimator"),
    "clusters for classes": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.cluster.KMeans"}]),
        "models[1].estimator", "not an estimator for classification"),
    "regressor for a classifier": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.linear_model.Ridge"}]),
        "models[1].estimator", "not an estimator for classification"),
    "name of an estimator of thousands of parts": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn." + "a." * 50_000 + "b"}]),
        "models[1].estimator", "scikit-learn"),
    "name of an estimator of a hundred thousand letters": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.svm." + "a" * 100_000}]),
        "models[1].estimator", "aaa ... aaa"),
    "grid of a billion combinations": (
        set_key("models", value=[{"name": "x", "estimator": "sklearn.svm.SVC", "grid": {
            "C": list(range(1, 40_000)), "tol": list(range(1, 40_000))}}]),
        "models[1]", "1,599,920,001 combinations"),
    "unknown metric": (set_key("report", value={"metrics": ["acuracy"]}), "report.metrics",
                       "'accuracy'"),
    "metric of another task": (set_key("folds", "select_by", value="r2"), "folds.select_by",
                               "classification"),
    "unknown scheme": (set_key("folds", "scheme", value="loso"), "folds.scheme",
                       "leave-one-site-out"),
    "scheme without its column": (set_key("folds", "scheme", value="grouped"), "folds.scheme",
                                  "samples.group"),
    "empty group": (empty_group, "samples.group", "'p05'"),
    "wrong split": (wrong_split, "samples.split", "'validation'"),
    "too many folds": (few_of_a_class, "folds", "fewer outer folds"),
    "wrong alignment": (set_key("align", value="inner"), "align", "intersection"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_kind_gives_one_line_with_key_and_fix(case, parts, tables, write):
    change, key, said = CASES[case]
    change(parts, tables)
    file = write(parts, tables)
    with pytest.raises(StudyError) as caught:
        evaluate_study(load_study(file))
    line = str(caught.value)
    print(line)
    assert "\n" not in line
    assert line.startswith(f"study.toml: {key}: "), line
    assert said in line
    assert len(line) < 2_000
    assert line.endswith((".", "?"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("title = My study\n", "not valid TOML"),
        ("[samples\nfile = 3", "not valid TOML"),
        ("a = 1\na = 2\nb = 3\n", "not valid TOML.*occurs twice; remove one of the two"),
        ("[samples]\n[samples]\n", "not valid TOML.*occurs twice; remove one of the two"),
        ("a = {b = 1, b = 2}\n", "not valid TOML.*occurs twice; remove one of the two"),
    ],
)
def test_broken_toml_names_the_line(content, said, tables, write):
    with pytest.raises(StudyError, match=said) as caught:
        load_study(write(content, tables))
    assert "line" in str(caught.value)
    assert ("quotes" in str(caught.value)) != ("twice" in said)


def test_a_file_that_is_not_there_and_one_that_is_no_text(tmp_path):
    with pytest.raises(StudyError, match="baldur init"):
        load_study(tmp_path / "no.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(tmp_path / "x.toml")
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(tmp_path)


def test_there_are_at_least_twenty_kinds():
    assert len(CASES) >= 20
