"""A check on the plumbing: published figures of a real data set with a fixed split."""

import pandas as pd
import pytest
import tomli_w

from baldur.study import evaluate_study, load_study
from shared_cohorts import load_shared

# Test AUC with all 132 predictors, Kuhn and Johnson (2013), chapter 19.
LDA, FOREST = 0.8981, 0.9034


@pytest.fixture
def study(shared_data, tmp_path):
    cohort = load_shared(shared_data / "ad_csf")
    ids = cohort.sample_ids
    samples = pd.DataFrame({"sample": ids, "class": cohort.target, "split": cohort.split})
    samples.to_csv(tmp_path / "samples.csv", index=False)
    for view in cohort.data.view_names:
        frame = pd.DataFrame(cohort.data.view(view).read(), columns=cohort.data.feature_names[view])
        frame.insert(0, "sample", ids)
        frame.to_csv(tmp_path / f"{view}.csv", index=False)
    file = tmp_path / "study.toml"
    file.write_text(
        tomli_w.dumps(
            {
                "samples": {"file": "samples.csv", "id": "sample", "split": "split"},
                "outcome": {"column": "class", "positive": "Impaired"},
                # As published: predictors were centred and scaled, not clipped.
                "preparation": {"scale": "standard"},
                "views": {v: {"file": f"{v}.csv"} for v in cohort.data.view_names},
                "models": [
                    {
                        "name": "LDA",
                        "estimator": "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
                    },
                    {
                        "name": "RF",
                        "settings": {"n_estimators": 1000, "max_features": "sqrt"},
                        "grid": {},
                    },
                ],
            }
        )
    )
    return load_study(file)


def test_published_competitors_are_reproduced(study):
    table = evaluate_study(study, n_jobs=2).run.table().set_index("model")
    lda, forest = table.loc["LDA", "auc"], table.loc["RF", "auc"]
    print(f"ad_csf, fixed split: LDA {lda:.4f} (published {LDA}), RF {forest:.4f} ({FOREST})")
    assert lda == pytest.approx(LDA, abs=5e-4)
    assert forest == pytest.approx(FOREST, abs=0.02)
    assert table["folds"].tolist() == [1, 1]
