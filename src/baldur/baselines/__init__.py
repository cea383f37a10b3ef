"""Competitors behind one scikit-learn interface, and the registry of their search grids.

What comes in: a `MultiView`, or one matrix with ``views=``, and labels or numbers. What goes out:
fitted classifiers and regressors with ``selected_features_`` over all columns of the input.
``paper`` has the eleven competitors of the paper, ``additional`` five more, ``shared`` what they
have in common. Baselines may import the estimators and everything below them.

>>> from baldur.baselines import BASELINES
>>> BASELINES["MV-PLS"].make(random_state=0)
MVPLSClassifier()

``BASELINES[name].grid`` is the search space for the inner loop of a nested cross-validation, sized
for a first run; ``full_grid`` is the larger one for a publication. SGP+ARD and CPM-Nets need the
``torch`` extra. RF, Boosted trees, MV-PLS and Dummy also predict numbers
(``make(classification=False)``).
"""

from baldur.baselines.additional.boosted_trees import BoostedTreesClassifier, BoostedTreesRegressor
from baldur.baselines.additional.dummy import MeanRegressor, PriorClassifier
from baldur.baselines.additional.elastic_net import ElasticNetLogisticClassifier
from baldur.baselines.additional.ridge_logistic import RidgeLogisticClassifier
from baldur.baselines.additional.stacking import StackingClassifier
from baldur.baselines.paper.awdr import AWDRClassifier
from baldur.baselines.paper.cpm_nets import CPMNetsClassifier
from baldur.baselines.paper.lasso_mksvm import LassoMkSVMClassifier
from baldur.baselines.paper.lsvm_l1 import L1SVMClassifier
from baldur.baselines.paper.mccd import MCCDClassifier
from baldur.baselines.paper.mv_pls import MVPLSClassifier, MVPLSRegressor
from baldur.baselines.paper.pb_mvboost import PBMVBoostClassifier
from baldur.baselines.paper.random_forest import ForestClassifier, ForestRegressor
from baldur.baselines.paper.sgp_ard import SGPARDClassifier
from baldur.baselines.registry import BASELINES, Entry
from baldur.baselines.shared.base import BaselineEstimator

__all__ = [
    "BASELINES",
    "AWDRClassifier",
    "BaselineEstimator",
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "CPMNetsClassifier",
    "ElasticNetLogisticClassifier",
    "Entry",
    "ForestClassifier",
    "ForestRegressor",
    "L1SVMClassifier",
    "LassoMkSVMClassifier",
    "MCCDClassifier",
    "MVPLSClassifier",
    "MVPLSRegressor",
    "MeanRegressor",
    "PBMVBoostClassifier",
    "PriorClassifier",
    "RidgeLogisticClassifier",
    "SGPARDClassifier",
    "StackingClassifier",
]
