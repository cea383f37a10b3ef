"""Searching for the posterior: starts, sweeps, pruning, and the choice of the prior shape."""
