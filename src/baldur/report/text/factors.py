"""What the latent factors of a model are, in words."""

from __future__ import annotations

from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, short


def factors_of(model: FittedModel) -> str:
    """Return what the latent factors of a model are: how many, behind which outputs, and names."""
    loadings = getattr(model.inner, "loadings_", None)
    names = getattr(model.inner, "factor_names_", None)
    if loadings is None or names is None:
        return ""
    outputs, factors = loadings.shape
    if outputs == 1:
        return "The model has one output, and so one latent factor, which is its score."
    if factors == outputs:
        return (
            f"The {outputs} outputs of the model share no latent factors: each has a factor of its "
            "own."
        )
    listing = "; ".join(f"factor{k}: {short(name, 120)}" for k, name in enumerate(names[:8]))
    more = f"; {factors - 8} more" if factors > 8 else ""
    return (
        f"{outputs} outputs of the model share {count(factors, 'latent factor')}, here with their "
        f"strongest features: {listing}{more}."
    )
