"""Every comparison method behind one interface, and a registry of the rows of the tables.

>>> from baldur.baselines import BASELINES
>>> BASELINES["MV-PLS"].make(random_state=0)
MVPLSClassifier()

``BASELINES[row].grid`` is the search space for the inner loop of a nested cross-validation, sized
for a first run; ``full_grid`` is that of a paper. All rows accept a `MultiView`, or one matrix with
``views=``; SGP+ARD and CPM-Nets need the ``torch`` extra when they are fitted. RF, Boosted trees,
MV-PLS and Dummy also predict numbers (``make(classification=False)``).
"""

from baldur.baselines._base import BaselineEstimator
from baldur.baselines.awdr import AWDRClassifier
from baldur.baselines.boosted_trees import BoostedTreesClassifier, BoostedTreesRegressor
from baldur.baselines.cpm_nets import CPMNetsClassifier
from baldur.baselines.dummy import MeanRegressor, PriorClassifier
from baldur.baselines.elastic_net import ElasticNetLogisticClassifier
from baldur.baselines.lasso_mksvm import LassoMkSVMClassifier
from baldur.baselines.lsvm_l1 import L1SVMClassifier
from baldur.baselines.mccd import MCCDClassifier
from baldur.baselines.mv_pls import MVPLSClassifier, MVPLSRegressor
from baldur.baselines.pb_mvboost import PBMVBoostClassifier
from baldur.baselines.random_forest import ForestClassifier, ForestRegressor
from baldur.baselines.registry import BASELINES, Entry
from baldur.baselines.ridge_logistic import RidgeLogisticClassifier
from baldur.baselines.sgp_ard import SGPARDClassifier
from baldur.baselines.stacking import StackingClassifier

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
