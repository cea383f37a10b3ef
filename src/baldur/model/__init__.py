"""The equations: likelihoods, priors, quadrature and the Gaussian posterior of the weights."""
