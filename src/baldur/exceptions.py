"""Errors and warnings raised by the package."""

__all__ = [
    "BaldurError",
    "InputError",
    "MissingExtraError",
    "StudyError",
    "NotConvergedWarning",
]


class BaldurError(Exception):
    """Base of every error the package raises on purpose."""


class InputError(BaldurError, ValueError):
    """Data or a parameter cannot be used as given; the message says what to do."""


class MissingExtraError(BaldurError, ImportError):
    """An optional library is needed and not installed; the message names the extra."""


class StudyError(BaldurError):
    """A study cannot be run or continued as described."""


class NotConvergedWarning(UserWarning):
    """The optimisation stopped before its tolerance was met."""
