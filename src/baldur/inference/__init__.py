"""Inference: members, the ensemble, its submodel path, the selection and the predictor."""
