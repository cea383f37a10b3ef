"""CPM-Nets: a free latent vector per sample, decoded to every view it has, with a class-mean loss.

Cross Partial Multi-View Networks (Zhang, Han, Cui, Fu, Zhou and Hu, NeurIPS 2019). The authors'
decoders are affine, so each view may be replaced by its full-rank principal scores without changing
the optimum, and the width of a view costs nothing. Departures from their code, with switches back:

- decoders are tuned once more on the final latent vectors, as the paper says (``n_retune=0``);
- a new sample's latent vector solves its least-squares problem exactly (``solver="adam"``);
- views are block-scaled, with training statistics (``block_scale=False``);
- the margin of the class loss is 1 against every other class, as in the paper (``margin="code"``:
  only for samples that are assigned to a wrong class).
"""

from __future__ import annotations

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from baldur.baselines.base import BaselineClassifier
from baldur.baselines.blocks import Block, reduce_gram
from baldur.core.optional import import_extra
from baldur.core.parameters import NON_NEGATIVE, integer, one_of, parameter
from baldur.core.types import Array

STEPS = 5
"""Adam steps on the decoders, and then on the latent vectors, in each epoch."""


def class_similarity(H: Any, onehot: Any) -> Any:
    """Return ``m_c(n)``, the mean of h_j'h_n over j in class c, j != n; (n, C), arrays or tensors.

    A class whose only member is n itself has no mean and gets 0.
    """
    itself = (H * H).sum(1)[:, None] * onehot
    count = onehot.sum(0)[None, :] - onehot
    return (H @ (H.T @ onehot) - itself) / (count + (count == 0))


def fit_cpm(
    F: list[Array],
    present: NDArray[np.bool_],
    codes: NDArray[np.intp],
    *,
    latent: int,
    lam: float,
    epochs: int,
    lr_decoder: float = 0.01,
    lr_latent: float = 0.01,
    hidden: int | None = None,
    dropout: float = 0.0,
    margin: str = "paper",
    n_retune: int = 50,
    seed: int = 0,
) -> tuple[Array, list[Array], list[Array], list[float]]:
    """Fit a latent vector for each sample, and decoders of the views from it, by Adam in turn.

    Return the latent vectors H (n, K), the decoders ``x_v = h W_v + b_v`` with W_v (K, r_v), and
    the loss after each epoch.

    ``sum_n [sum_v s_nv ||h_n W_v + b_v - x_vn||^2 + lam max_c(Delta + m_c(n) - m_{y_n}(n))]``.
    Shapes: F_v (n, r_v), present = s (n, V), codes y (n,) in 0..C-1.
    """
    torch = import_extra("torch", "torch", "CPM-Nets")
    n, C = len(codes), int(codes.max()) + 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)

        def xavier(rows: int, cols: int) -> Any:
            bound = (6.0 / (rows + cols)) ** 0.5
            drawn = (2.0 * torch.rand(rows, cols, dtype=torch.float64) - 1.0) * bound
            return drawn.requires_grad_(True)

        def zeros(cols: int) -> Any:
            return torch.zeros(cols, dtype=torch.float64, requires_grad=True)

        X = [torch.as_tensor(f) for f in F]
        S = torch.as_tensor(present.astype(np.float64))
        onehot = torch.as_tensor(np.eye(C)[codes])
        other_class = 1.0 - onehot
        H = xavier(n, latent)
        widths = [[latent, *([hidden] if hidden else []), f.shape[1]] for f in F]
        layers = [[(xavier(a, b), zeros(b)) for a, b in itertools.pairwise(w)] for w in widths]
        decoder_parameters = [p for view in layers for layer in view for p in layer]
        decoder_optimiser = torch.optim.Adam(decoder_parameters, lr=lr_decoder)
        latent_optimiser = torch.optim.Adam([H], lr=lr_latent)

        def reconstruction(drop: float) -> Any:
            total = 0.0
            for v, view in enumerate(layers):
                out = H
                for depth, (W, b) in enumerate(view):
                    if depth and drop:
                        out = torch.nn.functional.dropout(out, drop)
                    out = out @ W + b
                total = total + (S[:, v] * ((out - X[v]) ** 2).sum(1)).sum()
            return total

        def class_loss() -> Any:
            m = class_similarity(H, onehot)
            true = (m * onehot).sum(1)
            if margin == "code":
                best = torch.argmax(m, dim=1)
                delta = (best != torch.as_tensor(codes)).to(m.dtype)
                return (delta + torch.gather(m, 1, best[:, None])[:, 0] - true).sum()
            return (other_class + m - true[:, None]).max(1).values.sum()

        def run(optimiser: Any, loss: Any, steps: int) -> None:
            for _ in range(steps):
                optimiser.zero_grad()
                loss().backward()
                optimiser.step()

        history = []
        for _ in range(epochs):
            run(decoder_optimiser, lambda: reconstruction(dropout), STEPS)
            run(latent_optimiser, lambda: reconstruction(dropout) + lam * class_loss(), STEPS)
            with torch.no_grad():
                history.append(float(reconstruction(0.0) + lam * class_loss()))
        run(decoder_optimiser, lambda: reconstruction(dropout), n_retune)
        # Layers are affine, so those of a view make one affine decoder.
        weights: list[Array] = []
        offsets: list[Array] = []
        for view in layers:
            W, b = (p.detach().numpy().copy() for p in view[0])
            for W2, b2 in view[1:]:
                W, b = W @ W2.detach().numpy(), b @ W2.detach().numpy() + b2.detach().numpy()
            weights.append(W)
            offsets.append(b)
        return H.detach().numpy().copy(), weights, offsets, history


def solve_latent(G: Array, q: Array, ridge: float) -> Array:
    """Return rows h (n, K) that minimise ``h G h' - 2 q h' + ridge ||h||^2``, with q (n, K)."""
    scale = max(float(np.trace(G)) / len(G), np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.solve(G + ridge * scale * np.eye(len(G)), q.T).T)


def adam_latent(G: Array, q: Array, start: Array, steps: int, lr: float) -> Array:
    """Return what `solve_latent` does without ridge, by Adam from one start (K,) for all rows."""
    h = np.tile(start, (len(q), 1))
    first, second = np.zeros_like(h), np.zeros_like(h)
    for t in range(1, steps + 1):
        gradient = 2.0 * (h @ G - q)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        h = h - lr * (first / (1.0 - 0.9**t)) / (np.sqrt(second / (1.0 - 0.999**t)) + 1e-8)
    return h


@dataclass(eq=False, repr=False)
class CPMNetsClassifier(BaselineClassifier):
    """Cross partial multi-view networks with affine decoders.

    Parameters
    ----------
    n_latent : int
        Length K of the latent vectors.
    lam : float
        Weight of the class loss.
    n_epochs : int
        Epochs of five decoder steps and five latent steps.
    scale, preparation, views
        As in `BaselineEstimator`.
    learning_rate, latent_rate : float
        Adam rates of decoders and latent vectors.
    hidden : int or None
        Units of a second affine layer; dropout acts between the two in training.
    dropout : float
    margin : {"paper", "code"}
    n_retune : int
        Decoder steps after the last epoch.
    solver : {"lstsq", "adam"}
        How a new sample's latent vector is found.
    ridge : float
        Of "lstsq", relative to the mean eigenvalue of its matrix.
    n_test_epochs : int
        Of "adam", five steps each at the decoder rate.
    block_scale : bool
        Divide each standardised view by the square root of its width; otherwise the widest view
        dominates the latent vectors.
    random_state : int, RandomState or None
        Starting values.

    Attributes
    ----------
    latent_ : ndarray (n, K)
        Latent vectors of the training rows.
    loss_ : ndarray
        Loss after each epoch.

    Examples
    --------
    >>> from baldur.baselines import BASELINES, CPMNetsClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> BASELINES["CPM-Nets"].extra
    'torch'
    >>> model = CPMNetsClassifier(n_latent=4, n_epochs=5, random_state=0)
    >>> model = model.fit(X[:40], y[:40])  # doctest: +SKIP
    >>> model.latent_.shape  # doctest: +SKIP
    (40, 4)
    >>> model.predict(X[40:]).shape  # doctest: +SKIP
    (20,)
    """

    n_latent: int = parameter(64, integer())
    lam: float = 1.0
    n_epochs: int = 50
    _: KW_ONLY
    learning_rate: float = 0.01
    latent_rate: float = 0.01
    hidden: int | None = None
    dropout: float = 0.0
    margin: str = parameter("paper", one_of("paper", "code"))
    n_retune: int = 50
    solver: str = parameter("lstsq", one_of("lstsq", "adam"))
    ridge: float = parameter(1e-3, NON_NEGATIVE)
    n_test_epochs: int = 50
    block_scale: bool = True
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Fit latent vectors and decoders, and store of these what new rows need."""
        import_extra("torch", "torch", "CPM-Nets")
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self.start_ = rng.uniform(-1.0, 1.0, self.n_latent) * (6.0 / (1 + self.n_latent)) ** 0.5
        reduced = [reduce_gram(b.gram(), rtol=b.rtol) for b in blocks]
        self.latent_, weights, offsets, loss = fit_cpm(
            [features for features, _ in reduced],
            np.column_stack([~b.view.absent for b in blocks]),
            codes,
            latent=self.n_latent,
            lam=self.lam,
            epochs=self.n_epochs,
            lr_decoder=self.learning_rate,
            lr_latent=self.latent_rate,
            hidden=self.hidden,
            dropout=self.dropout,
            margin=self.margin,
            n_retune=self.n_retune,
            seed=seed,
        )
        self.loss_ = np.array(loss)
        self.class_means_ = np.array(
            [self.latent_[codes == c].mean(axis=0) for c in range(len(self.classes_))]
        )
        self.encoders_, self.offsets_, self.grams_ = {}, {}, {}
        for b, (_, lift), W, offset in zip(blocks, reduced, weights, offsets, strict=True):
            # q_v = W_v (x_v - b_v): the view enters prediction only through D x K products.
            self.encoders_[b.name] = b.project(lift @ W.T)
            self.offsets_[b.name] = W @ offset
            self.grams_[b.name] = W @ W.T

    def _latent(self, blocks: list[Block]) -> Array:
        """Return latent vectors of new rows, computed from the views that are present."""
        absent = np.column_stack([b.view.absent for b in blocks])
        # The least-squares problem of h has the matrix sum_v W_v W_v' and the right side sum_v q_v.
        q = {b.name: b.apply(self.encoders_[b.name]) - self.offsets_[b.name] for b in blocks}
        H = np.zeros((len(absent), self.n_latent))
        for pattern in np.unique(absent, axis=0):
            rows = np.flatnonzero(np.all(absent == pattern, axis=1))
            present = [b.name for b, gone in zip(blocks, pattern, strict=True) if not gone]
            if not present:
                continue  # nothing is known: h = 0, all classes equally similar
            G = np.add.reduce([self.grams_[name] for name in present])
            q_sum = np.add.reduce([q[name][rows] for name in present])
            if self.solver == "lstsq":
                H[rows] = solve_latent(G, q_sum, self.ridge)
            else:
                steps = 5 * self.n_test_epochs
                H[rows] = adam_latent(G, q_sum, self.start_, steps, self.learning_rate)
        return H

    def _scores(self, blocks: list[Block]) -> Array:
        return self._latent(blocks) @ self.class_means_.T
