"""Baselines as skops stores them; only objects of listed types are ever built.

The state of a baseline is its preparation, which is ours and validated like any other, and the
bytes of a skops archive with the rest of it. Loading a model of another kind does not import skops.
"""

from __future__ import annotations

import copy
import warnings
from inspect import signature
from typing import Any

import numpy as np

from baldur.core.state import Fields, State
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.saving.setting_state import read_setting, setting_state
from baldur.views import MultiView

TRUSTED = (
    "baldur.baselines.awdr.AWDRClassifier",
    "baldur.baselines.cpm_nets.CPMNetsClassifier",
    "baldur.baselines.linear.ElasticNetLogisticClassifier",
    "baldur.baselines.lasso_mksvm.LassoMkSVMClassifier",
    "baldur.baselines.linear.L1SVMClassifier",
    "baldur.baselines.mccd.MCCDClassifier",
    "baldur.baselines.mv_pls.MVPLSClassifier",
    "baldur.baselines.mv_pls.MVPLSRegressor",
    "baldur.baselines.pb_mvboost.Ensemble",
    "baldur.baselines.pb_mvboost.PBMVBoostClassifier",
    "baldur.baselines.plain.SideBySideClassifier",
    "baldur.baselines.plain.SideBySideRegressor",
    "baldur.baselines.sgp_ard.SGPARDClassifier",
    "baldur.baselines.sgp_ard.SGPFit",
    "baldur.baselines.stacking.StackingClassifier",
    "baldur.evaluation.models.SideBySide",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)
"""Types beside those that skops itself trusts (scikit-learn's public estimators, NumPy, SciPy)."""

_MODULES = ("baldur.baselines.", "baldur.evaluation.models.")


def is_baseline(estimator: Any) -> bool:
    """Return whether an estimator is stored as a baseline."""
    kind = type(estimator)
    path = f"{kind.__module__}.{kind.__qualname__}"
    return path in TRUSTED and path.startswith(_MODULES)


def baseline_state(estimator: Any) -> State:
    """Return the state of a fitted baseline."""
    from skops.io import dumps, get_untrusted_types

    name = type(estimator).__name__
    rest = copy.copy(estimator)
    preparation = rest.__dict__.pop("preparation_")
    template = getattr(rest, "preparation", None)
    if template is not None:
        rest.preparation = None
    try:
        content = dumps(rest)
        others = sorted(set(get_untrusted_types(data=content)) - set(TRUSTED))
    except Exception as error:  # whatever skops meets inside of a foreign estimator
        raise InputError(
            f"{name} cannot be saved: skops does not know a part of it ({error}). Save the data "
            "and the settings, and fit it again where it is needed."
        ) from error
    if others:
        raise InputError(
            f"{name} cannot be saved: it holds {', '.join(others[:3])}, which model files do not "
            "trust. Save the data and the settings, and fit it again where it is needed."
        )
    return {
        "kind": "baseline",
        "class": name,
        "template": setting_state(template, "preparation"),
        "preparation": preparation.to_state(),
        "skops": np.frombuffer(content, dtype=np.uint8),
    }


def read_baseline(state: Any, read_preparation: Any) -> Any:
    """Build a baseline; anything that is not of a trusted type is an InputError."""
    with Fields(state, "baseline") as read:
        name = read.text("class")
        preparation = read.part("preparation", read_preparation)
        template = read.part("template", read_setting) if read.has("template") else None
        sound = template is None or isinstance(template, Preparation)
        read.need(sound, "expected a template of a preparation", "template")
        content = read.array("skops", (None,), "int")
        read.need(content.dtype == np.uint8, "expected bytes", "skops")
        made = read.part("skops", _unpack)
        sound = is_baseline(made) and type(made).__name__ == name
        read.need(sound, "expected a baseline of the class that it names", "skops")
        read.need("preparation_" not in vars(made), "expected no second preparation", "skops")
        settings = signature(type(made)).parameters
        complete = {*settings, "view_names_", "selected_features_"} - {"preparation"}
        read.need(complete <= set(vars(made)), "expected all settings, and a fit", "skops")
        same = made.view_names_ == list(preparation.n_features_)
        read.need(same, "expected the views of the preparation", "skops")
        if hasattr(made, "classes_"):
            read.part("skops", _check_labels, labels=made.classes_)
        made.preparation_ = preparation
        if template is not None:
            made.preparation = template
        read.part("class", lambda _: _check_prediction(made))
    return made


def _unpack(content: np.ndarray) -> Any:
    from skops.io import loads

    from baldur.saving.compiled_parts import check_archive, check_parts

    raw = content.tobytes()
    try:
        check_archive(raw)
        made = loads(raw, trusted=list(TRUSTED))
        check_parts(made)
    except InputError:
        raise
    except Exception as error:  # a damaged archive can raise any error
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"an archive that skops refuses ({said})") from None
    return made


def _check_labels(_: Any, labels: Any) -> None:
    with Fields({"classes_": labels}) as read:
        read.labels("classes_")


def _check_prediction(model: Any) -> None:
    """Predict for three rows, so that parts which do not fit together are found on loading."""
    scaling = copy.copy(model.preparation_.scaling_)
    # The rows stand behind the steps, and have neither covariates nor alleles.
    scaling.covariates_, scaling.alleles_ = None, {}
    statistics = (scaling.minimum_, scaling.mean_, scaling.maximum_)
    rows = MultiView(
        {
            name: np.nan_to_num([np.asarray(one[name], dtype=float) for one in statistics])
            for name in scaling.n_features_
        }
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = np.asarray(model.predict_prepared(scaling.transform(rows)))
    except InputError:
        raise
    except Exception as error:  # whatever a forged estimator runs into
        raise InputError(f"it cannot predict ({type(error).__name__})") from None
    if answer.shape[:1] != (3,):
        raise InputError("it does not predict one value for each row")
