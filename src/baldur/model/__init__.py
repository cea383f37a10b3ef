"""The model: priors, updates and bounds of both inference families."""
