"""A first run on simulated data: ``python -m baldur.demo``."""

import numpy as np
from rich.console import Console
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from baldur.datasets import make_multiview
from baldur.prepare import Preparation

__all__ = ["main"]


def main() -> None:
    """Simulate two views, screen and fit on 200 rows, print what it found."""
    console = Console()
    sim = make_multiview(
        1200,
        {"clinical": 20, "genes": 2000},
        informative={"clinical": 3, "genes": 5},
        random_state=0,
    )
    console.print(sim.data, highlight=False)
    train, test = np.arange(200), np.arange(200, 1200)
    preparation = Preparation().fit(sim.data[train])
    Z_train, Z_test = (
        np.hstack([view.dense() for view in preparation.transform(sim.data[rows]).values()])
        for rows in (train, test)
    )
    model = make_pipeline(SelectKBest(f_classif, k=20), LogisticRegression(C=0.1))
    model.fit(Z_train, sim.target[train])
    auc = roc_auc_score(sim.target[test], model.decision_function(Z_test))
    kept = model[0].get_support()
    true = np.concatenate([sim.truth.support(v) for v in sim.data.view_names])
    console.print(f"\n20 screened features, logistic regression, {len(train)} training rows")
    console.print(f"  test AUC on {len(test)} rows: {auc:.3f}")
    console.print(f"  true features among the 20: {(kept & true).sum()} of {true.sum()}")


if __name__ == "__main__":
    main()
