"""MuData objects under every release of the library that the package supports."""

from contextlib import nullcontext


def without_pulling():
    """Return a context in which containers do not copy columns of their parts.

    Releases before 0.4 copy unless they are told not to, and warn; later ones have no such option.
    """
    import mudata

    options = getattr(mudata, "set_options", None)
    return nullcontext() if options is None else options(pull_on_update=False)
