"""What every class of a model file must look like, so that no shape in a file is taken on trust."""

from __future__ import annotations

from collections.abc import Mapping

from baldur.persist.shapes import (
    Check,
    anything,
    by_view,
    each,
    each_view,
    flags,
    floats,
    number,
    numbers,
    object_of,
    one_of,
    optional,
    places,
    text,
    texts,
    truth,
    whole,
    whole_numbers,
)

__all__ = ["FORMS", "LATER"]

_ESTIMATOR: dict[str, Check] = {
    "view_names_": anything,
    "preparation_": object_of("Preparation"),
    "_posterior": anything,
    "feature_names_": by_view(texts("D")),
    "coef_": by_view(numbers("C", "D")),
    "coef_std_": by_view(numbers("C", "D")),
    "coef_scaled_": by_view(numbers("C", "D")),
    "coef_scaled_std_": by_view(numbers("C", "D")),
    "intercept_": numbers("C"),
    "selected_features_": by_view(flags("D")),
    "view_relevance_": by_view(number),
    "loadings_": numbers("C", "K"),
    "n_factors_": whole,
}
_CLASSIFIER = {**_ESTIMATOR, "_task": one_of("binary", "multiclass", "multilabel")}
_REGRESSOR = {
    **_ESTIMATOR,
    "_center": numbers("C"),
    "_spread": numbers("C"),
    "noise_std_": numbers("C"),
    "_one_output": truth,
}

_SIDES = ("SampleSide", "FeatureSide")
_COMPONENT: dict[str, Check] = {
    "index": each_view(places("*", "D")),
    "noise": numbers("C"),
    "signal": numbers("M", "K"),
    "lacking": numbers("M", "K"),
}

FORMS: Mapping[str, Mapping[str, Check]] = {
    "BaldurClassifier": _CLASSIFIER,
    "MeanFieldClassifier": _CLASSIFIER,
    "BaldurRegressor": _REGRESSOR,
    "MeanFieldRegressor": _REGRESSOR,
    "SideBySide": {"preparation_": object_of("Preparation"), "estimator_": anything},
    "NormalScores": {
        "position": whole_numbers("D"),
        "knots": numbers("k", "r"),
        "scores": numbers("k", "r"),
    },
    # Learned preparations are checked by `Preparation.from_state`.
    "Preparation": {},
    "Fitted": {
        "latent": anything,
        "moments": anything,
        "noise": numbers("C"),
        "selected": each_view(flags("D")),
        "coef": each_view(numbers("C", "D")),
        "coef_std": each_view(numbers("C", "D")),
        "intercept": numbers("C"),
        "signal": numbers("M", "K"),
        "V": numbers("C", "K"),
        "spaces": each(text, "M"),
        "converged": truth,
        "history": each(anything),
        "answer": anything,
        "weights": numbers("J", "C"),
        "factor_weights": numbers("J", "K"),
    },
    "Mixture": {
        "components": each(object_of("Explicit", "Implicit"), "G"),
        "weights": numbers("G", "K"),
        "widths": each_view(whole),
        "loadings": optional(object_of("Loadings")),
    },
    "Pool": {
        "level": numbers("K"),
        "slope": number,
        "shrink": numbers("K"),
        "spread": numbers("K"),
    },
    "Loadings": {
        "V": numbers("C", "K"),
        "V_cov": numbers("C", "K", "K"),
        "b": numbers("C"),
        "b_var": anything,
    },
    "Explicit": {**_COMPONENT, "mean": numbers("K", "l"), "cov": numbers("K", "l", "l")},
    "Implicit": {
        **_COMPONENT,
        "features": object_of("Columns", "Grams"),
        "s": numbers("K", "l"),
        "sides": each(object_of(*_SIDES), "K"),
        "train": each(object_of("PreparedView")),
    },
    "Columns": {
        "X": numbers("n", "l"),
        "owner": places("l", "M"),
        "n_views": whole,
        "intercept_var": number,
    },
    "Grams": {"grams": each(numbers("N", "N"), "M"), "n_views": whole},
    "SampleSide": {
        "alpha": numbers("n"),
        "half": numbers("n", "n"),
        "mean": numbers("n"),
        "var": numbers("n"),
        "kl": number,
    },
    "FeatureSide": {"w": numbers("l"), "half": numbers("*", "l"), "kl": number},
    "PreparedView": {
        "name": text,
        "absent": flags("N"),
        "_cells": object_of("Kept", "Standardised"),
    },
    "Kept": {"array": numbers("N", "d"), "rows": one_of(None)},
    "Standardised": {
        "source": object_of("ArraySource"),
        "rows": one_of(None),
        "mean": numbers("d"),
        "factor": numbers("d"),
        "absent": flags("N"),
        "lower": optional(floats("d")),
        "upper": optional(floats("d")),
        "score_factor": optional(numbers("d")),
        "design": optional(numbers("N", "q")),
        "confound_coef": optional(numbers("q", "d")),
        "max_bytes": whole,
    },
    "ArraySource": {},
    "_Predict": {"result": object_of("MeanFieldResult"), "rule": anything},
    "_Latent": {"result": object_of("MeanFieldResult")},
    "MeanFieldResult": {
        "W": each_view(numbers("K", "D")),
        "W_std": each_view(numbers("K", "D")),
        "V": numbers("C", "K"),
        "V_cov": numbers("K", "K"),
        "b": numbers("C"),
        "b_var": number,
        "tau": number,
        "psi": number,
        "features": each_view(flags("D")),
        "factors": flags("K"),
        "views": flags("M"),
        "spread": each_view(object_of("WeightSpread")),
    },
    "WeightSpread": {
        "basis": numbers("l", "r"),
        "coef_var": numbers("r", "k"),
        "null_scale": numbers("*"),
        "null_var": numbers("k"),
    },
    "Answer": {"path": each(anything), "signal": object_of("Gap")},
    "Gap": {"mean": number, "error": number},
    "StandIns": {"view": whole, "feature": whole, "probability": numbers("n")},
}
"""Attributes that must be there, and what they must be, by class. Others may be there."""

LATER: Mapping[str, Mapping[str, Check]] = {
    "Grams": {"intercept_var": number},
    "Mixture": {"pool": optional(object_of("Pool"))},
    "Pool": {"slope_var": number},
}
"""The same for attributes that folders of an older version do not have."""
