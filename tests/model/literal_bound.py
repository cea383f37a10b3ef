"""The posterior of weights and loadings and its bound taken literally: loops, explicit inverses.

Nothing here is shared with the package. For tiny problems only. The intercept of a factor is
weight number 0, on a column of ones.
"""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, gammaln, log_expit

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


def gamma_minus_kl(shape, rate, a0, b0):
    """E[ln p] - E[ln q] of one Gamma."""
    log, mean = digamma(shape) - np.log(rate), shape / rate
    prior = a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * log - b0 * mean
    return prior + shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)


def gaussian(x, mean, sd):
    """The density at one point; scipy's own spends its time on checking arguments."""
    return math.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def log_sigmoid_expectation(t, mean, var):
    """E[ln p(t | eta)] under N(mean, var), by adaptive integration."""
    sd = np.sqrt(var)
    sign = 2 * t - 1
    return quad(
        lambda x: log_expit(sign * x) * gaussian(x, mean, sd),
        mean - 12 * sd,
        mean + 12 * sd,
        limit=200,
        epsabs=1e-12,
    )[0]


def output_moments(p):
    """<eta> and Var eta from the parts of `literal_parts`, entry by entry."""
    X1 = np.column_stack([np.ones(len(p["X"])), p["X"]])
    N, (C, K) = len(X1), p["V"].shape
    mean, var = np.zeros((N, C)), np.zeros((N, C))
    for n in range(N):
        f = np.array([X1[n] @ p["w"][k] for k in range(K)])
        f_var = np.array([X1[n] @ p["cov"][k] @ X1[n] + p["extra"][n, k] for k in range(K)])
        for c in range(C):
            mean[n, c] = p["b"][c] + p["V"][c] @ f
            second = np.outer(f, f) + np.diag(f_var)
            vv = p["V_cov"][c] + np.outer(p["V"][c], p["V"][c])
            var[n, c] = p["b_var"][c] + np.trace(vv @ second) - (p["V"][c] @ f) ** 2
    return mean, var


def loadings_term(p):
    """E[ln p(V | omega)] - E[ln q(V)] and the Gamma terms of omega; a point V has no entropy."""
    C, K = p["V"].shape
    total = 0.0
    for k in range(K):
        shape, rate = p["omega_shape"], p["omega_rate"][k]
        total += gamma_minus_kl(shape, rate, *p["omega_prior"])
        for c in range(C):
            second = p["V"][c, k] ** 2 + p["V_cov"][c, k, k]
            total += 0.5 * (digamma(shape) - np.log(rate) - LOG_2PI) - 0.5 * shape / rate * second
    if p["V_cov"].any():
        for c in range(C):
            total += 0.5 * (K * (1 + LOG_2PI) + np.linalg.slogdet(p["V_cov"][c])[1])
    return total


def intercepts_term(p, prior_var):
    """-KL(q(b_c) || N(0, prior_var)), one at a time."""
    total = 0.0
    for b, v in zip(p["b"], p["b_var"], strict=True):
        total += -0.5 * (LOG_2PI + np.log(prior_var)) - 0.5 * (b**2 + v) / prior_var
        total += 0.5 * (1 + LOG_2PI + np.log(v))
    return total


def likelihood_term(p, kind, T, weight, psi=None):
    """E[ln p(T | eta)], entry by entry."""
    mean, var = output_moments(p)
    total = 0.0
    for n in range(T.shape[0]):
        for c in range(T.shape[1]):
            m, v = mean[n, c], var[n, c]
            if kind == "quadrature":
                value = log_sigmoid_expectation(T[n, c], m, v)
            else:
                shape, rate = psi[0], psi[1][c]
                value = 0.5 * (digamma(shape) - np.log(rate) - LOG_2PI)
                value -= 0.5 * shape / rate * ((T[n, c] - m) ** 2 + v)
            total += weight[n, c] * value
    if kind == "gaussian":
        for rate in psi[1]:
            total += gamma_minus_kl(psi[0], rate, 1e-6, 1e-6)
    return total
