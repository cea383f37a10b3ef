"""The bound of a sparse variational GP classifier: trained with GPyTorch, predicted with numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from baldur.optional import import_extra
from baldur.types import Array

JITTER = {"float64": 1e-6, "float32": 1e-4}


@dataclass(frozen=True)
class SGPFit:
    """A trained bound: mean, output scale, length-scales, and whitened q(u) = N(m, L L')."""

    mean: float
    outputscale: float
    lengthscale: Array  # (D,) or (V,)
    m: Array  # (M,)
    L: Array  # (M, M)
    jitter: float
    elbo: list[float]

    def predict(self, k_zz: Array, k_xz: Array) -> tuple[Array, Array]:
        """Latent mean and variance from unit-variance kernels (M, M) and (n, M)."""
        s2 = self.outputscale
        chol = np.linalg.cholesky(s2 * k_zz + self.jitter * np.eye(len(k_zz)))
        A = solve_triangular(chol, s2 * k_xz.T, lower=True)  # (M, n)
        variance = s2 - np.sum(A**2, axis=0) + np.sum((self.L.T @ A) ** 2, axis=0)
        return self.mean + A.T @ self.m, np.maximum(variance, 1e-12)


def fit_sgp(
    inputs: Any,
    inducing: NDArray[np.intp],
    y: Array,
    *,
    distances: bool = False,
    lr: float = 0.05,
    max_iter: int = 300,
    tol: float = 1e-4,
    seed: int = 0,
) -> SGPFit:
    """Maximise the bound by Adam, full batch, with the inducing rows fixed.

    Shapes: y (n,).
    """
    torch = import_extra("torch", "torch", "SGP+ARD")
    gpytorch = import_extra("gpytorch", "torch", "SGP+ARD")
    Function: Any = torch.autograd.Function
    Kernel: Any = gpytorch.kernels.Kernel
    ApproximateGP: Any = gpytorch.models.ApproximateGP
    data = torch.as_tensor(inputs)
    dtype = data.dtype
    squares: Any = None if distances else data * data

    chosen = torch.as_tensor(inducing)
    # The bound asks for all rows in order, which needs no copy, or for the inducing rows, which
    # are copied once: at full width a copy takes as long as a product.
    at_chosen: Any = None if squares is None else (data[chosen], squares[chosen])
    # The left rows are always the inducing ones; their products are written to one place.
    work = None if at_chosen is None else torch.empty_like(at_chosen[0])

    def rows(index: Any) -> tuple[Any, Any]:
        """Return the inputs and their squares in the rows ``index``."""
        if len(index) == len(data):
            return data, squares
        return at_chosen if torch.equal(index, chosen) else (data[index], squares[index])

    class SquaredDistance(Function):
        """``sum_d r_d (a_id - b_jd)^2`` with a gradient in r alone: two products, no wide graph."""

        @staticmethod
        def forward(ctx: Any, r: Any, i: Any, j: Any) -> Any:
            (A, A2), (B, B2) = rows(i), rows(j)
            ctx.save_for_backward(i, j)
            own_a, own_b = A2 @ r, B2 @ r
            return (own_a[:, None] + own_b - 2.0 * (torch.mul(A, r, out=work) @ B.T)).clamp(min=0.0)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            (A, A2), (B, B2) = (rows(index) for index in ctx.saved_tensors)
            g = gradients[0]
            total = g.sum(1) @ A2 + g.sum(0) @ B2
            cross = torch.mm(g, B, out=work).mul_(A).sum(0)
            return total - 2.0 * cross, None, None

    class RowKernel(Kernel):
        """``exp(-0.5 sum_d (x_d - x'_d)^2 / l_d^2)`` between training rows given by number."""

        has_lengthscale = True

        def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:
            i, j = x1[..., 0].long(), x2[..., 0].long()
            r = self.lengthscale.reshape(-1) ** -2
            if diag:  # only called for a row with itself
                return torch.ones(len(i), dtype=dtype)
            if distances:
                return torch.exp(-0.5 * torch.einsum("v,vij->ij", r, data[:, i[:, None], j]))
            return torch.exp(-0.5 * SquaredDistance.apply(r, i, j))

    class Model(ApproximateGP):
        def __init__(self, Z: Any, kernel: Any) -> None:
            q = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=False)
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        n = data.shape[1] if distances else data.shape[0]
        x = torch.arange(n, dtype=dtype)[:, None]
        kernel = RowKernel(ard_num_dims=data.shape[0] if distances else data.shape[1])
        kernel.lengthscale = 1.0
        model = Model(x[chosen].clone(), kernel).to(dtype)
        likelihood = gpytorch.likelihoods.BernoulliLikelihood().to(dtype)
        bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
        target = torch.as_tensor(y).to(dtype)
        model.train()
        likelihood.train()
        steps = torch.optim.Adam(model.parameters(), lr=lr)
        history: list[float] = []
        for _ in range(max_iter):
            steps.zero_grad()
            loss = -bound(model(x), target)
            loss.backward()
            steps.step()
            history.append(-float(loss.detach()))
            if len(history) > 20:
                gain = history[-1] - history[-21]
                if gain < tol * abs(history[-21]):
                    break
        q = model.variational_strategy._variational_distribution
        covariance = model.covar_module
        with torch.no_grad():
            L = torch.tril(q.chol_variational_covar)
            return SGPFit(
                float(model.mean_module.constant),
                float(covariance.outputscale),
                covariance.base_kernel.lengthscale.numpy().reshape(-1).astype(np.float64),
                q.variational_mean.numpy().astype(np.float64),
                L.numpy().astype(np.float64),
                JITTER[str(dtype).removeprefix("torch.")],
                history,
            )
