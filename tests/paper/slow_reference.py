"""The mean-field updates and bound taken literally: plain loops and explicit inverses.

Nothing here is shared with the package. Written for tiny problems only; weights and sample
weights are spelled out, every covariance is formed, every expectation is a sum over entries.
"""

import numpy as np
from scipy.special import digamma, gammaln

LOG_2PI = np.log(2 * np.pi)


def weights_posterior(X, gamma, delta, tau, R, s):
    """Means (K, D) and covariances (K, D, D) of q(W): one explicit inverse per factor."""
    D, K = X.shape[1], R.shape[1]
    mean, cov = np.zeros((K, D)), np.zeros((K, D, D))
    for k in range(K):
        precision = delta[k] * np.diag(gamma)
        linear = np.zeros(D)
        for n in range(X.shape[0]):
            precision = precision + tau * s[n] * np.outer(X[n], X[n])
            linear = linear + tau * s[n] * X[n] * R[n, k]
        cov[k] = np.linalg.inv(precision)
        mean[k] = cov[k] @ linear
    return mean, cov


def dual_posterior(X, rows, gamma, delta, tau, R, s):
    """Means (K, r) and covariances (K, r, r) of q(A) over relevance vectors X[rows]."""
    Xs, K = X[rows], R.shape[1]
    r = len(rows)
    mean, cov = np.zeros((K, r)), np.zeros((K, r, r))
    for k in range(K):
        precision = delta[k] * Xs @ np.diag(gamma) @ Xs.T
        linear = np.zeros(r)
        for n in range(X.shape[0]):
            precision = precision + tau * s[n] * np.outer(Xs @ X[n], Xs @ X[n])
            linear = linear + tau * s[n] * (Xs @ X[n]) * R[n, k]
        cov[k] = np.linalg.inv(precision)
        mean[k] = cov[k] @ linear
    return mean, cov


def restored_dual_posterior(X, rows, gamma, delta, tau, R, s):
    """Means (K, D) and covariances (K, D, D): q(A) in the span of Lambda^-1 X~^T, prior outside."""
    D, K = X.shape[1], R.shape[1]
    prior = np.diag(1 / gamma)
    span = prior @ X[rows].T
    inside = span @ np.linalg.inv(X[rows] @ span) @ span.T
    mean, cov = np.zeros((K, D)), np.zeros((K, D, D))
    for k in range(K):
        precision = delta[k] * X[rows] @ span
        linear = np.zeros(len(rows))
        for n in range(X.shape[0]):
            precision = precision + tau * s[n] * np.outer(span.T @ X[n], span.T @ X[n])
            linear = linear + tau * s[n] * (span.T @ X[n]) * R[n, k]
        cov_a = np.linalg.inv(precision)
        mean[k] = span @ cov_a @ linear
        cov[k] = span @ cov_a @ span.T + (prior - inside) / delta[k]
    return mean, cov


def gamma_minus_kl(shape, rate, a0, b0):
    """E[ln p] - E[ln q] of Gammas, entry by entry."""
    total = 0.0
    for r in np.atleast_1d(rate):
        log, mean = digamma(shape) - np.log(r), shape / r
        total += a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * log - b0 * mean
        total += shape - np.log(r) + gammaln(shape) + (1 - shape) * digamma(shape)
    return total


def gaussian_entropy(cov):
    """(1/2) ln |2 pi e Sigma|."""
    d = cov.shape[0]
    return 0.5 * (d * (LOG_2PI + 1) + np.linalg.slogdet(cov)[1])


def weights_bound(mean, cov, delta_shape, delta_rate, gamma_shape, gamma_rate):
    """E[ln p(W|delta, gamma)] - E[ln q(W)] from explicit moments."""
    K, D = mean.shape
    total = 0.0
    for k in range(K):
        for d in range(D):
            log = digamma(delta_shape) - np.log(delta_rate[k])
            log += digamma(gamma_shape) - np.log(gamma_rate[d])
            precision = delta_shape / delta_rate[k] * gamma_shape / gamma_rate[d]
            total += 0.5 * (log - LOG_2PI) - 0.5 * precision * (mean[k, d] ** 2 + cov[k, d, d])
        total += gaussian_entropy(cov[k])
    return total


def latent_bound(X_views, means, covs, Z, Z_cov, tau_shape, tau_rate, s):
    """E[ln p(Z|W, tau)] - E[ln q(Z)] row by row."""
    N, K = Z.shape
    log, tau = digamma(tau_shape) - np.log(tau_rate), tau_shape / tau_rate
    total = 0.0
    for n in range(N):
        row = gaussian_entropy(Z_cov)
        for k in range(K):
            h, spread = 0.0, Z_cov[k, k]
            for X, mean, cov in zip(X_views, means, covs, strict=True):
                h += X[n] @ mean[k]
                spread += X[n] @ cov[k] @ X[n]
            row += 0.5 * (log - LOG_2PI) - 0.5 * tau * ((Z[n, k] - h) ** 2 + spread)
        total += s[n] * row
    return total


def outputs_bound(Y, Y_var, Z, Z_cov, V, V_cov, b, b_var, psi_shape, psi_rate, s, observed):
    """E[ln p(Y|Z, V, b, psi)] - E[ln q(Y)] entry by entry."""
    N, C = Y.shape
    log, psi = digamma(psi_shape) - np.log(psi_rate), psi_shape / psi_rate
    total = 0.0
    for n in range(N):
        zz = np.outer(Z[n], Z[n]) + Z_cov
        for c in range(C):
            vv = np.outer(V[c], V[c]) + V_cov
            second = np.trace(zz @ vv) + 2 * b[c] * Z[n] @ V[c] + b[c] ** 2 + b_var
            residual = Y[n, c] ** 2 + Y_var[n, c] - 2 * Y[n, c] * (Z[n] @ V[c] + b[c]) + second
            entry = 0.5 * (log - LOG_2PI) - 0.5 * psi * residual
            if not observed:
                entry += 0.5 * (LOG_2PI + 1 + np.log(Y_var[n, c]))
            total += s[n] * entry
    return total


def labels_bound(T, Y, Y_var, xi, s):
    """The quadratic bound on E[ln p(T|Y)], entry by entry."""
    total = 0.0
    for n in range(T.shape[0]):
        for c in range(T.shape[1]):
            x = xi[n, c]
            lam = np.tanh(x / 2) / (4 * x)
            value = -np.log1p(np.exp(-x)) + Y[n, c] * T[n, c] - (Y[n, c] + x) / 2
            total += s[n] * (value - lam * (Y[n, c] ** 2 + Y_var[n, c] - x**2))
    return total


def loadings_bound(V, V_cov, omega_shape, omega_rate):
    """E[ln p(V|omega)] - E[ln q(V)] entry by entry."""
    C, K = V.shape
    total = 0.0
    for c in range(C):
        for k in range(K):
            log = digamma(omega_shape) - np.log(omega_rate[k])
            second = V[c, k] ** 2 + V_cov[k, k]
            total += 0.5 * (log - LOG_2PI) - 0.5 * omega_shape / omega_rate[k] * second
        total += gaussian_entropy(V_cov)
    return total
