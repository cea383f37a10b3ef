"""Competitors behind one scikit-learn interface, and the registry of their search grids.

What comes in: a `MultiView`, or one matrix with ``views=``, and labels or numbers. What goes out:
fitted classifiers and regressors with ``selected_features_`` over all columns of the input. Random
forests, boosted trees, ridge models, the elastic net for numbers and the base rate are scikit-learn
estimators in the table; methods that scikit-learn does not have are classes.

>>> from baldur.baselines import BASELINES
>>> BASELINES["MV-PLS"].make(random_state=0)
MVPLSClassifier()

``BASELINES[name].grid`` is the search space for the inner loop of a nested cross-validation, sized
for a first run; ``full_grid`` is the larger one for a publication. SGP+ARD and CPM-Nets need the
``torch`` extra. RF, Boosted trees, MV-PLS and Dummy also predict numbers, and Ridge and Elastic net
predict nothing else (``make(classification=False)``).
"""

from baldur.baselines.awdr import AWDRClassifier
from baldur.baselines.cpm_nets import CPMNetsClassifier
from baldur.baselines.lasso_mksvm import LassoMkSVMClassifier
from baldur.baselines.linear import (
    ElasticNetLogisticClassifier,
    L1SVMClassifier,
)
from baldur.baselines.mccd import MCCDClassifier
from baldur.baselines.mv_pls import MVPLSClassifier, MVPLSRegressor
from baldur.baselines.pb_mvboost import PBMVBoostClassifier
from baldur.baselines.registry_with_grids import BASELINES
from baldur.baselines.sgp_ard import SGPARDClassifier
from baldur.baselines.stacking import StackingClassifier

__all__ = [
    "BASELINES",
    "AWDRClassifier",
    "CPMNetsClassifier",
    "ElasticNetLogisticClassifier",
    "L1SVMClassifier",
    "LassoMkSVMClassifier",
    "MCCDClassifier",
    "MVPLSClassifier",
    "MVPLSRegressor",
    "PBMVBoostClassifier",
    "SGPARDClassifier",
    "StackingClassifier",
]
