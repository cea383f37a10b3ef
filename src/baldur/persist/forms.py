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

_PREPARATION: dict[str, Check] = {
    "scale": one_of("clipped", "standard", "rank"),
    "impute": one_of("mean", "error"),
    "all_missing": one_of("error", "zero"),
    "dtype": one_of("auto", "float32", "float64"),
    "max_bytes": whole,
    "n_features_": by_view(whole),
    "mean_": by_view(numbers("D")),
    "scale_": by_view(numbers("D")),
    "lower_": by_view(floats("D")),
    "upper_": by_view(floats("D")),
    "minimum_": by_view(anything),
    "maximum_": by_view(anything),
    "constant_": by_view(flags("D")),
    "constant_features_": by_view(texts("*")),
    "_scores": by_view(optional(object_of("NormalScores"))),
    "_names": by_view(optional(texts("D"))),
    "confound_design_": optional(object_of("ConfoundDesign")),
    "n_samples_": whole,
}

_ESTIMATOR: dict[str, Check] = {
    "view_names_": anything,
    "preparation_": object_of("Preparation"),
    "_posterior": object_of("Fitted"),
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
    "Deconfounded": {
        "view": text,
        "view_names_": anything,
        "covariate_mean_": numbers("q"),
        "preparation_": object_of("Preparation"),
        "estimator_": anything,
    },
    "SideBySide": {"preparation_": object_of("Preparation"), "estimator_": anything},
    "WithSteps": {"steps_": each(anything), "estimator_": anything},
    "Preparation": _PREPARATION,
    "NormalScores": {
        "position": whole_numbers("D"),
        "knots": numbers("k", "r"),
        "scores": numbers("k", "r"),
    },
    "ConfoundDesign": {"mean": numbers("q"), "scale": numbers("q")},
    "Pooled": {
        "level": numbers("d"),
        "spread": numbers("d"),
        "coef": numbers("q", "d"),
        "held": floats("d"),
        "left_alone": flags("d"),
    },
    "CategoryEncoder": {"levels_": anything, "features_": anything, "reference_": anything},
    "VariantFilter": {"kept_": anything},
    "VoxelMask": {"kept_": anything},
    "SiteHarmoniser": {
        "sites_": each(anything),
        "small_sites_": each(anything),
        "covariate_mean_": numbers("q"),
        "design_": object_of("ConfoundDesign"),
        "pooled_": anything,
        "shift_": anything,
        "factor_": anything,
        "view_names_": each(text),
    },
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
        "elbo": number,
        "converged": truth,
        "history": each(anything),
        "answer": anything,
        "weights": numbers("J", "C"),
        "factor_weights": numbers("J", "K"),
    },
    "Mixture": {
        "components": each(object_of("Explicit", "Implicit"), "J"),
        "weights": numbers("J", "K"),
        "widths": each_view(whole),
        "loadings": optional(object_of("Loadings")),
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
        "features": object_of("Columns", "Grams", "Streamed"),
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
    "Streamed": {
        "views": each(object_of("PreparedView"), "M"),
        "n_views": whole,
        "intercept_var": number,
    },
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
    "Preparation": {"needed_": optional(by_view(flags("D"))), "alleles_": anything},
}
"""The same for attributes that folders of an older version do not have."""
