"""The eleven competitors in the tables of the paper.

What comes in and goes out: see `baldur.baselines`. Each file states where a method differs from
the code of its authors, with the switch that restores their behaviour.

LSVM-l1 (``lsvm_l1.py``), RF (``random_forest.py``), SGP+ARD (``sgp_ard.py``, its bound in
``sgp_bound.py``), PCA-MCCD and K-MCCD (``mccd.py``), PCA-AWDR and K-AWDR (``awdr.py``), CPM-Nets
(``cpm_nets.py``), PB-MVBoost (``pb_mvboost.py``), MV-PLS (``mv_pls.py``) and Lasso-MkSVM
(``lasso_mksvm.py``).

May import ``baldur.baselines.shared``.
"""
