"""BALDUR with default settings where nothing was ever tuned: regimes that no choice has seen.

Usage::

    python benchmarks/untuned.py [--part tiny snp rare] [--seeds 3] [--jobs 2]

The regimes were written down after the default was settled, and no constant was changed for them.
Rivals and bars are those of `regimes.py`; 1,200 rows, of which those that do not train are tested.
"""

import numpy as np
from common import parse
from regimes import baldur_on, compare, draw_labels, rivals_on

from baldur import MultiView

N = 1200


def tiny(rng):
    """Forty people, two effects among 105 features."""
    a, b = gaussian(rng, 5, 100)
    return [a, b], 2.0 * a[:, 0] + 1.5 * b[:, 3]


def few_features(rng):
    """Five features in two views."""
    a, b = gaussian(rng, 3, 2)
    return [a, b], a[:, 0] + 0.5 * b[:, 1]


def one_feature(rng):
    """One view of one feature."""
    (a,) = gaussian(rng, 1)
    return [a], 1.5 * a[:, 0]


def snp(rng):
    """Twenty of 2,000 genotypes with small effects, one clinical item with a larger one."""
    genotypes = rng.binomial(2, rng.uniform(0.05, 0.5, (1, 2000)), (N, 2000)).astype(float)
    (items,) = gaussian(rng, 10)
    return [genotypes, items], 0.5 * genotypes[:, :20].sum(axis=1) + items[:, 0]


def heavy_tails(rng):
    """Student features with two degrees of freedom, and log-normal ones."""
    a, (b,) = rng.standard_t(2, (N, 200)), gaussian(rng, 50)
    return [a, np.exp(1.5 * b)], np.clip(a[:, :5], -4, 4).sum(axis=1) + 1.2 * b[:, :3].sum(axis=1)


def rare(rng):
    """One in 25 is ill."""
    a, b = gaussian(rng, 20, 300)
    return [a, b], 1.5 * a[:, :3].sum(axis=1)


def wrong_labels(rng):
    """A rule without noise, but a tenth of the labels is wrong."""
    a, b = gaussian(rng, 50, 200)
    odds = np.where(a[:, :4].sum(axis=1) > 0, 0.9, 0.1)
    return [a, b], np.log(odds / (1.0 - odds))


def twenty_views(rng):
    """Four effects in three of twenty views."""
    views = gaussian(rng, *[15] * 20)
    effects = views[3][:, 0] + views[7][:, 1] + views[12][:, 2] + views[12][:, 3]
    return views, 1.2 * effects


def copies(rng):
    """Ten nearly equal copies of each of ten features, three of which matter."""
    z, noise, b = gaussian(rng, 10, 100, 200)
    return [z.repeat(10, axis=1) + 0.05 * noise, b], 1.5 * z[:, :3].sum(axis=1)


def interaction(rng):
    """A product of two features, which no linear predictor can see."""
    a, b = gaussian(rng, 10, 100)
    return [a, b], 3.0 * a[:, 0] * a[:, 1]


def dominant(rng):
    """One feature decides nearly alone."""
    a, b = gaussian(rng, 30, 500)
    return [a, b], 8.0 * a[:, 0]


def image(rng):
    """One of five patterns behind 1,500 voxels, and one clinical item."""
    z, noise, items = gaussian(rng, 5, 1500, 8)
    voxels = z @ rng.standard_normal((5, 1500)) + 2.0 * noise
    return [voxels, items], 2.0 * z[:, 0] + items[:, 0]


def many_rows(rng):
    """Nine hundred people, forty small effects."""
    a, b = gaussian(rng, 40, 60)
    return [a, b], a @ rng.normal(0.0, 0.3, 40)


def yes_or_no(rng):
    """Items that are ticked or not, many of them rarely."""
    a, b = gaussian(rng, 60, 200)
    a, b = (a > 0.8).astype(float), (b > 1.5).astype(float)
    return [a, b], 2.0 * (a[:, :5].sum(axis=1) + b[:, :3].sum(axis=1))


REGIMES = {
    draw.__name__.replace("_", " "): draw
    for draw in (
        tiny, few_features, one_feature, snp, heavy_tails, rare, wrong_labels, twenty_views, copies,
        interaction, dominant, image, many_rows, yes_or_no,
    )
}  # fmt: skip
N_TRAIN = {"tiny": 40, "rare": 400, "many rows": 900}
RATE = {"rare": 0.04}


def gaussian(rng, *widths):
    """Return independent standard normal features of several widths."""
    return [rng.standard_normal((N, width)) for width in widths]


def simulate(name, seed):
    """Return views, labels and the number of training rows of a regime."""
    rng = np.random.default_rng([seed, 1000 + list(REGIMES).index(name)])
    views, eta = REGIMES[name](rng)
    y = draw_labels(eta, RATE.get(name, 0.5), rng)
    data = MultiView({f"view{v}": view for v, view in enumerate(views)})
    return data, y, N_TRAIN.get(name, 150)


def baldur(name, seed):
    """Return AUC, log-loss, features kept and seconds of BALDUR."""
    return baldur_on(*simulate(name, seed))


def rivals(name, seed):
    """Return AUC and log-loss of every rival."""
    return rivals_on(*simulate(name, seed))


if __name__ == "__main__":
    compare(parse(__doc__, REGIMES, 3), baldur, rivals)
