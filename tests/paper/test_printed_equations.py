"""What the equations do as the paper prints them: the evidence behind ``docs/understand/paper.md``.

Each printed update is put in the place of ours, from the same state. Ours is the maximum of the
bound over the factor that it updates; the page quotes how many nats the printed one lies below.
"""

from dataclasses import replace

import numpy as np
import pytest

from baldur.paper.bound import bound
from baldur.paper.run import run_meanfield
from baldur.paper.state import VAGUE, GammaPosterior
from baldur.paper.updates import MODEL_UPDATES
from paper.meanfield.problems import (
    as_problem,
    cells,
    make_problem,
    predict,
    prepared,
    random_state,
)


def printed_y(state, data):
    """Lambda_xi as the diagonal of xi."""
    psi = float(state.psi.mean[0])
    var = 1 / (psi + 2 * state.xi)
    return replace(state, Y=(data.T - 0.5 + psi * (state.Z @ state.V.T + state.b)) * var, Y_var=var)


def printed_z(state, data):
    """<V^T V> = V^T V + Sigma_V, as in the authors' script; the paper does not expand it."""
    tau, psi = float(state.tau.mean[0]), float(state.psi.mean[0])
    moment = state.V.T @ state.V + state.V_cov
    cov = np.linalg.inv(tau * np.eye(state.n_factors) + psi * moment)
    Z = (tau * state.explained + psi * (state.Y - state.b) @ state.V) @ cov
    return replace(state, Z=Z, Z_cov=cov)


def printed_v(state, data):
    """<Z^T Z> = Z^T Z + Sigma_Z, as in the authors' script; the paper does not expand it."""
    moment = state.Z.T @ state.Z + state.Z_cov
    omega, psi = state.omega.mean, float(state.psi.mean[0])
    cov = np.linalg.inv(np.diag(omega) + psi * moment)
    V = psi * (state.Y - state.b).T @ (data.weight[:, None] * state.Z) @ cov
    return replace(state, V=V, V_cov=cov)


def printed_tau(state, data):
    """The rate of tau without tr(X^T X Sigma_wk)."""
    residual = np.sum((state.Z - state.explained) ** 2) + data.n * np.trace(state.Z_cov)
    shape, rate = VAGUE
    rate = np.array([rate + residual / 2])
    return replace(state, tau=GammaPosterior(shape + data.n * state.n_factors / 2, rate))


COSTS = {
    "Y": (printed_y, 155.7),
    "Z": (printed_z, 4.26),
    "V": (printed_v, 3.19),
    "tau": (printed_tau, 9.18),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_printed_update_misses_the_maximum_of_the_bound(name):
    data = make_problem(N=60, sizes=(5, 40), C=3, seed=1)
    state = random_state(data, K=3, seed=2)
    printed, quoted = COSTS[name]
    best = bound(MODEL_UPDATES[name](state, data), data)
    assert best - bound(printed(state, data), data) == pytest.approx(quoted, rel=0.01)


def test_what_the_other_forms_do_is_what_the_page_says():
    """The second column of the table: which way each of them errs."""
    data = make_problem(N=60, sizes=(5, 40), C=3, seed=1)
    state = random_state(data, K=3, seed=2)
    ours = {name: MODEL_UPDATES[name](state, data) for name in COSTS}
    theirs = {name: printed(state, data) for name, (printed, _) in COSTS.items()}
    # Shrunk too much, wherever xi > lambda(xi), which is below 1/8.
    assert np.all((theirs["Y"].Y_var < ours["Y"].Y_var)[state.xi > 1 / 8])
    assert np.linalg.norm(theirs["Y"].Y) < np.linalg.norm(ours["Y"].Y)
    more = theirs["Z"].Z_cov - ours["Z"].Z_cov  # not certain enough
    assert np.linalg.eigvalsh(more).min() > 0
    assert np.linalg.norm(theirs["V"].V) > np.linalg.norm(ours["V"].V)  # overestimated
    assert theirs["tau"].tau.mean[0] > ours["tau"].tau.mean[0]  # the noise is underestimated


def test_the_printed_predictive_variance_leaves_out_the_weights():
    data = make_problem(N=60, sizes=(5, 40), seed=1)
    X, T = prepared([cells(view) for view in data.views]), data.T
    result = run_meanfield(as_problem(X, T), n_factors=1, max_iter=8, prune=False)
    _, var = predict(result, X)
    _, weights = result.latent_moments(X)
    printed = 1 / result.psi + result.V_cov[0, 0] / result.tau
    assert np.median(printed / var[:, 0]) == pytest.approx(0.68, abs=0.01)
    assert (weights > 0).all()
