"""Draw the picture of the README: weights with intervals, views, and the sparsity path.

    python docs/make_picture.py

Needs matplotlib (the `report` extra). Writes docs/images/readme.png.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from baldur import BaldurClassifier
from baldur.datasets import make_multiview

COLOURS = {"clinical": "#2b6cb0", "genes": "#c05621"}

sim = make_multiview(
    n=700,
    dims={"clinical": 20, "genes": 2000},
    informative={"clinical": 3, "genes": 5},
    random_state=0,
)
model = BaldurClassifier().fit(sim.data[:300], sim.target[:300])

figure, (weights, views, path) = plt.subplots(1, 3, figsize=(10, 3), width_ratios=(3, 1.2, 2))

position, labels = 0, []
for name in sim.data.view_names:
    truth = sim.truth.weights(name)
    for d in np.flatnonzero(model.selected_features_[name]):
        mean, std = model.coef_[name][0, d], model.coef_std_[name][0, d]
        weights.plot([mean - 1.645 * std, mean + 1.645 * std], [position] * 2, c=COLOURS[name])
        weights.plot(mean, position, "o", c=COLOURS[name])
        weights.plot(truth[d], position, "|", c="black", ms=12)
        labels.append(str(sim.data.feature_names[name][d]))
        position += 1
weights.axvline(0, lw=0.5, c="grey")
weights.set_yticks(range(position), labels)
weights.set_title("kept features: weight, 90 % interval, truth (|)", fontsize=9)

shares = [model.view_relevance_[name] for name in sim.data.view_names]
views.bar(sim.data.view_names, shares, color=[COLOURS[n] for n in sim.data.view_names])
views.set_ylim(0, 1)
views.set_title("share of each view", fontsize=9)

table = model.sparsity_path_[lambda t: t.step == "features"]
path.errorbar(table.n_features, table.loss, table.standard_error, fmt="o-", c="#4a5568", capsize=2)
kept = table[table.kept]
path.plot(kept.n_features, kept.loss, "o", ms=10, mfc="none", c="#c53030")
path.set_xscale("log")
path.set_xlabel("features")
path.set_title("held-out log-loss; circle: kept", fontsize=9)

figure.tight_layout()
target = Path(__file__).parent / "images" / "readme.png"
figure.savefig(target, dpi=110)
print(f"wrote {target}")
