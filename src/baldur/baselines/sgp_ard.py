"""SGP+ARD: a sparse variational Gaussian-process classifier with one length-scale per feature.

The paper names no inference scheme; this is the usual one (inducing points, probit likelihood, Adam
on the evidence bound, GPyTorch). Inputs are divided by the square root of their total variance and
length-scales start at 1: without the division the kernel of wide data is the identity, gradients
vanish and the model predicts the prevalence for all samples (as ``scale_inputs=False`` shows).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state

from baldur.baselines.base import BaselineClassifier, one_against_rest
from baldur.baselines.blocks import (
    Block,
    check_memory,
    dense_concatenation,
    gram_eigh,
    total_width,
)
from baldur.core.optional import import_extra
from baldur.core.parameters import integer, one_of, parameter
from baldur.core.types import Array

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
        """Return latent means and variances (n,), from unit-variance kernels (M, M) and (n, M)."""
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
    """Fit a sparse variational Gaussian-process classifier, by Adam on the evidence bound.

    `inducing` are numbers of rows, which stay fixed.

    Shapes: y (n,) of 0 and 1; inputs (n, D), or with `distances` squared distances (V, n, n) in
    each of V views.
    """
    torch = import_extra("torch", "torch", "SGP+ARD")
    gpytorch = import_extra("gpytorch", "torch", "SGP+ARD")
    Function: Any = torch.autograd.Function
    Kernel: Any = gpytorch.kernels.Kernel
    ApproximateGP: Any = gpytorch.models.ApproximateGP
    data = torch.as_tensor(inputs)
    dtype = data.dtype
    squares: Any = None if distances else data * data

    inducing_rows = torch.as_tensor(inducing)
    # The bound asks for all rows in order, which needs no copy, or for the inducing rows, which
    # are copied once: at full width a copy takes as long as a product.
    at_inducing: Any = None if squares is None else (data[inducing_rows], squares[inducing_rows])
    # The left rows are always the inducing ones; their products are written to one place.
    work = None if at_inducing is None else torch.empty_like(at_inducing[0])

    def rows(index: Any) -> tuple[Any, Any]:
        """Return the inputs and their squares in the rows ``index``."""
        if len(index) == len(data):
            return data, squares
        return at_inducing if torch.equal(index, inducing_rows) else (data[index], squares[index])

    class SquaredDistance(Function):
        """``sum_d r_d (a_id - b_jd)^2`` with a gradient in r alone: two products, no wide graph."""

        @staticmethod
        def forward(ctx: Any, r: Any, i: Any, j: Any) -> Any:
            (A, A2), (B, B2) = rows(i), rows(j)
            ctx.save_for_backward(i, j)
            norm_a, norm_b = A2 @ r, B2 @ r
            return (norm_a[:, None] + norm_b - 2.0 * (torch.mul(A, r, out=work) @ B.T)).clamp(
                min=0.0
            )

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
        model = Model(x[inducing_rows].clone(), kernel).to(dtype)
        likelihood = gpytorch.likelihoods.BernoulliLikelihood().to(dtype)
        bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
        target = torch.as_tensor(y).to(dtype)
        model.train()
        likelihood.train()
        optimiser = torch.optim.Adam(model.parameters(), lr=lr)
        history: list[float] = []
        for _ in range(max_iter):
            optimiser.zero_grad()
            loss = -bound(model(x), target)
            loss.backward()
            optimiser.step()
            history.append(-float(loss.detach()))
            if len(history) > 20:  # the gain of 20 steps, as single ones go up and down
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


@dataclass(eq=False, repr=False)
class SGPARDClassifier(BaselineClassifier):
    """Sparse variational GP classification with automatic relevance determination.

    Parameters
    ----------
    n_inducing : int
        Inducing rows, chosen from the training rows by k-means++; at most n.
    ard : {"feature", "view"}
        One length-scale per feature, or per view from cached distances, which costs n x n per view
        whatever the width. The mode used is recorded in ``ard_``. A fit with "feature" that would
        not fit in memory is refused with the figure: about 4.5 GB for 172 rows and 841,732
        features in single precision.
    learning_rate, max_iter : float, int
        Of Adam.
    scale, preparation, views
        As in `BaselineEstimator`.
    tol : float
        Training stops when the bound has gained less (relative) in 20 steps.
    precision : {"auto", "float64", "float32"}
        "auto": double, or single above 10,000 features.
    scale_inputs : bool
        Divide inputs by the square root of their total variance.
    block_scale : bool
        Give every view the same share of the starting distance.
    random_state : int, RandomState or None
        Inducing rows and starting values.

    Attributes
    ----------
    relevance_ : dict of ndarray
        ``1 / l_d^2``, largest over the one-against-rest models: a ranking, not a selection.
    elbo_ : list of ndarray
        Bound per observation after each step, one array per model.
    ard_, precision_ : str

    Examples
    --------
    >>> from baldur.baselines import BASELINES, SGPARDClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> BASELINES["SGP+ARD"].extra
    'torch'
    >>> model = SGPARDClassifier(n_inducing=5, max_iter=5, random_state=0)
    >>> model = model.fit(X[:40], y[:40])  # doctest: +SKIP
    >>> {name: part.shape for name, part in model.relevance_.items()}  # doctest: +SKIP
    {'a': (4,), 'b': (9,)}
    >>> model.predict_proba(X[40:]).shape  # doctest: +SKIP
    (20, 2)
    """

    n_inducing: int = parameter(50, integer())
    ard: str = parameter("feature", one_of("feature", "view"))
    learning_rate: float = 0.05
    max_iter: int = 300
    _: KW_ONLY
    tol: float = 1e-4
    precision: str = parameter("auto", one_of("auto", "float64", "float32"))
    scale_inputs: bool = True
    block_scale: bool = True
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Choose inducing rows by k-means++, and fit a process for each class against the rest."""
        import_extra("torch", "torch", "SGP+ARD")
        import_extra("gpytorch", "torch", "SGP+ARD")
        rng = check_random_state(self.random_state)
        n, D = len(codes), total_width(blocks)
        m = min(int(self.n_inducing), n)
        wide = D > 10_000 and self.ard == "feature"
        self.precision_ = self.precision
        if self.precision == "auto":
            self.precision_ = "float32" if wide else "float64"
        dtype = np.dtype(self.precision_)
        if self.ard == "feature":
            check_memory(
                6.0 * (n + m) * float(D) * dtype.itemsize,  # about 6 copies of (n + m, D)
                (n, D),
                'SGP+ARD with ard="feature"',
                'Use ard="view" (one length-scale per view), which needs '
                f"{8e-9 * n * n * (len(blocks) + 2):.2g} GB.",
            )
        self.ard_ = self.ard
        grams = [b.gram() for b in blocks]
        total = np.add.reduce(grams)
        self.unit_ = float(np.trace(total) / n) if self.scale_inputs else 1.0
        self.unit_ = self.unit_ if self.unit_ > 0 else 1.0
        U, s = gram_eigh(total)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        scores = U * s if len(s) else np.zeros((n, 1))
        _, rows = kmeans_plusplus(scores, m, random_state=seed)
        inducing = np.unique(rows)
        if self.ard == "feature":
            inputs: Any = np.ascontiguousarray(dense_concatenation(blocks, dtype, "SGP+ARD"))
            inputs /= dtype.type(np.sqrt(self.unit_))
            self.inducing_ = inputs[inducing]
        else:
            inputs = np.stack([_squared_distances(g, self.unit_) for g in grams])
            # X'e_i is the i-th row: inducing rows are stored without a copy of the others.
            unit_vectors = np.eye(n)[:, inducing]
            self.inducing_ = {b.name: b.project(unit_vectors) for b in blocks}
        self.models_ = [
            fit_sgp(
                inputs,
                inducing,
                (y > 0.0).astype(np.float64),
                distances=self.ard == "view",
                lr=self.learning_rate,
                max_iter=self.max_iter,
                tol=self.tol,
                seed=seed,
            )
            for y in one_against_rest(codes, len(self.classes_)).T
        ]
        self.elbo_ = [np.array(fit.elbo) for fit in self.models_]
        self.n_iter_ = max(len(fit.elbo) for fit in self.models_)
        relevance = np.max([fit.lengthscale**-2.0 for fit in self.models_], axis=0)
        if self.ard == "feature":
            self.relevance_ = self._split(relevance, blocks)
        else:
            self.relevance_ = {
                b.name: b.over_input(np.full(b.width, r))
                for b, r in zip(blocks, relevance, strict=True)
            }

    def _scores(self, blocks: list[Block]) -> Array:
        """Return the predictive mean over sqrt(1 + variance), one column per model."""
        if self.ard_ == "feature":
            X = dense_concatenation(blocks, np.float64, "SGP+ARD") / np.sqrt(self.unit_)
        else:
            parts = [self._view_distances(b) for b in blocks]
        out = []
        for fit in self.models_:
            if self.ard_ == "feature":
                Z = self.inducing_ / fit.lengthscale
                zz = cdist(Z, Z, "sqeuclidean")
                xz = cdist(X / fit.lengthscale, Z, "sqeuclidean")
            else:
                weight = fit.lengthscale**-2.0
                zz = sum(w * part[0] for w, part in zip(weight, parts, strict=True))
                xz = sum(w * part[1] for w, part in zip(weight, parts, strict=True))
            # zz (M, M) and xz (n, M) are squared distances in units of the length-scales.
            mean, variance = fit.predict(np.exp(-0.5 * zz), np.exp(-0.5 * xz))
            out.append(mean / np.sqrt(1.0 + variance))
        return np.column_stack(out)

    def _view_distances(self, b: Block) -> tuple[Array, Array]:
        """Return squared distances among inducing rows (M, M) and to new rows (n, M)."""
        Z = self.inducing_[b.name]  # (D, M), inducing rows as columns
        norm = np.sum(Z**2, axis=0)
        zz = norm[:, None] + norm - 2.0 * Z.T @ Z
        # `apply` carries the block factor, and so do the stored rows.
        xz = b.row_norms()[:, None] + norm - 2.0 * b.apply(Z)
        return np.maximum(zz, 0.0) / self.unit_, np.maximum(xz, 0.0) / self.unit_

    def _proba(self, blocks: list[Block]) -> Array:
        """Return probit probabilities (n, C); of several classes they are divided by their sum."""
        p = ndtr(self._scores(blocks))
        if p.shape[1] == 1:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        p = np.maximum(p, 1e-12)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def _squared_distances(gram: Array, unit: float) -> Array:
    norm = np.diag(gram)
    return np.maximum(norm[:, None] + norm - 2.0 * gram, 0.0) / unit
