"""Errors and warnings raised by the package."""

__all__ = [
    "BaldurError",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "OutputError",
    "StudyError",
    "UnfinishedError",
    "InputWarning",
    "NoSignalWarning",
    "NotConvergedWarning",
    "ShiftWarning",
]


class BaldurError(Exception):
    """Base of every error the package raises on purpose."""


class InputError(BaldurError, ValueError):
    """Data or a parameter cannot be used as given; the message says what to do."""


class InputTypeError(InputError, TypeError):
    """The same, for what is of a type that cannot be used at all."""


class MissingExtraError(BaldurError, ImportError):
    """An optional library is needed and not installed; the message names the extra."""


class OutputError(BaldurError, OSError):
    """A file or folder cannot be written: a full disk, a read-only place, a limit."""


class StudyError(BaldurError):
    """A study cannot be run or continued as described."""


class UnfinishedError(StudyError):
    """The jobs asked for are done, and others of the study are not yet in the store.

    Attributes
    ----------
    missing : int
        How many, as far as is known by now.
    failures : dict of str to str
        Models that failed so far, and why.
    """

    def __init__(self, text: str, missing: int = 0, failures: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.missing = missing
        self.failures = failures or {}


class InputWarning(UserWarning):
    """Data are used otherwise than given; the message says how, and what to do about it."""


class NoSignalWarning(UserWarning):
    """Held-out rows do not show that the model predicts better than the base rate."""


class NotConvergedWarning(UserWarning):
    """The optimisation stopped before its tolerance was met."""


class ShiftWarning(UserWarning):
    """New rows are not on the scale of the training rows; the message names view and columns."""
