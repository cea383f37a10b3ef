"""The Gaussian posterior of the weights taken literally: loops and explicit inverses.

Nothing here is shared with the package. For tiny problems only. The intercept is
weight number 0, on a column of ones.
"""

import math

import numpy as np

LOG_2PI = np.log(2 * np.pi)


def weights_posterior(X, s, intercept_var, h, j):
    """Mean (D + 1,) and covariance of q(w); weights of prior variance 0 are left out, then 0."""
    N, D = X.shape
    X1 = np.column_stack([np.ones(N), X])
    prior = np.concatenate([[intercept_var], s])
    used = [d for d in range(D + 1) if prior[d] > 0]
    precision = np.diag([1.0 / prior[d] for d in used])
    linear = np.zeros(len(used))
    for n in range(N):
        x = X1[n, used]
        precision = precision + h[n] * np.outer(x, x)
        linear = linear + j[n] * x
    small = np.linalg.inv(precision)
    mean, cov = np.zeros(D + 1), np.zeros((D + 1, D + 1))
    mean[used] = small @ linear
    cov[np.ix_(used, used)] = small
    return mean, cov


def gaussian_kl(mean, cov, prior_var):
    """KL(N(mean, cov) || N(0, diag prior_var)) over the weights that have a prior variance."""
    used = prior_var > 0
    m, S, p = mean[used], cov[np.ix_(used, used)], prior_var[used]
    total = 0.0
    for d in range(len(m)):
        total += (S[d, d] + m[d] ** 2) / p[d] - 1.0 + np.log(p[d])
    return 0.5 * (total - np.linalg.slogdet(S)[1])


def gaussian(x, mean, sd):
    """The density at one point; scipy's own spends its time on checking arguments."""
    return math.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
