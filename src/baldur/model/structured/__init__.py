"""Family B, the default: weights of all views jointly Gaussian per factor."""
