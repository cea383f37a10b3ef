"""Inference: members, their ensemble, the submodel path, the selection, and the predictor.

In: prepared views and outputs (`inner_folds.Problem`) and inner folds. Out: a `FitResult` with the
predictor and the evidence for it (`fit`). All steps read one `fit_context`. They are

- members of the ensemble under several priors, for all inner folds at once (`ensemble`,
  `dense_members`, `spike_slab_member`, on `weight_posterior`, `design` and `inner_folds`);
- stacking weights and calibration slope from held-out rows (`stacking`);
- the path of submodels by projection (`path_search`, `submodel_path`, `submodels`), and the
  selection of one, with credible sets of its features (`submodel_selection`, `credible_sets`);
- the Gaussian that predicts, and latent factors that several outputs share (`predictor`).

Nothing here knows estimators, files or feature names. May import: `baldur.model`, `baldur.views`,
`baldur.core` and `baldur.exceptions`.
"""
