"""What scorers outside of Python need: a printed model as R code, and its joint Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baldur.core.types import Array, Index
from baldur.exceptions import InputError
from baldur.model.likelihood import Loadings


def r_code(value: Any) -> str:
    """Return an R expression for a printed model: vectors, matrices, and lists of them."""
    if isinstance(value, dict):
        # An entry that is NULL is left out, which reads as NULL.
        parts = [f"{_name(k)} = {r_code(v)}" for k, v in value.items() if v is not None]
        return f"list({', '.join(parts)})"
    if isinstance(value, list):
        if value and all(_is_number(v) for v in value):
            return f"c({', '.join(map(r_code, value))})"
        if value and all(_is_row(v) and len(v) == len(value[0]) for v in value):
            cells = ", ".join(r_code(v) for row in value for v in row)
            return f"matrix(c({cells}), nrow = {len(value)}, byrow = TRUE)"
        return f"list({', '.join(map(r_code, value))})"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "NULL" if value is None else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_number(v) for v in value)


def _text(value: str) -> str:
    """A string with everything but plain letters written as a code point."""
    plain = (c if c.isascii() and c.isprintable() and c not in '"\\' else _code(c) for c in value)
    return f'"{"".join(plain)}"'


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{{{number:x}}}" if number < 0x10000 else f"\\U{{{number:x}}}"


def _name(text: str) -> str:
    return f"`{text}`" if text.replace("_", "").isalnum() and text.isascii() else _text(text)


MAX_NUMBERS = 500_000
"""Largest number of covariances that is printed, some megabytes of text."""


@dataclass
class JointGaussian:
    """Mean and covariance of the weights of K factors, and what turns factors into C outputs."""

    index: Index  # L in all
    mean: Array  # (K, 1 + L); the intercept first
    cov: Array  # (K, 1 + L, 1 + L)
    missing_variance: Array  # (M, K); variance that a missing view adds
    loadings: Loadings | None  # or None where factor k is output k
    noise_variance: Array  # (C,); variance of the noise in the linear predictor


def joint_gaussian(predictor: Any) -> JointGaussian:
    """Return the posterior of a fitted model; raise InputError where it is too large to print.

    `predictor` is a `baldur.inference.predictor.Predictor` or has the same methods.
    """
    index, _ = predictor.count_joint()
    missing = predictor.joint_missing_variance
    _check_size(missing.shape[1], index)
    joint = predictor.joint()
    return JointGaussian(
        index, joint.mean[0], joint.cov[0], missing, predictor.loadings, predictor.noise
    )


def _check_size(K: int, index: Index) -> None:
    L = sum(map(len, index))
    numbers = K * (1 + L) ** 2
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"A model of {L:,} features is not printed: the covariance of its weights has "
            f"{numbers:,} entries, more than {MAX_NUMBERS:,}. Save the model and load it with "
            "baldur, or fit one of fewer features (a larger margin)."
        )
