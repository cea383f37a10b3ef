"""Errors and warnings raised by the package."""


class BaldurError(Exception):
    """Base of every error the package raises on purpose."""


class InputError(BaldurError, ValueError):
    """Data or a parameter cannot be used as given; the message says what to do."""


class InputTypeError(InputError, TypeError):
    """Data or a parameter have a type that cannot be used at all."""


class MissingExtraError(BaldurError, ImportError):
    """An optional library is needed and not installed; the message names the extra."""


class OutputError(BaldurError, OSError):
    """A file or folder cannot be written: a full disk, a read-only folder, a limit."""


class StudyError(BaldurError):
    """A study cannot be run or continued as described."""


class UnfinishedError(StudyError):
    """The requested jobs are done, but other jobs of the study are not in the store yet.

    Attributes
    ----------
    missing : int
        Number of missing jobs, as far as it is known.
    failures : dict of str to str
        Models that failed so far, with the reason.
    """

    def __init__(self, text: str, missing: int = 0, failures: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.missing = missing
        self.failures = failures or {}


class InputWarning(UserWarning):
    """Data were changed before use; the message says how, and what to do about it."""


class NoSignalWarning(UserWarning):
    """There is no evidence on held-out data that the model is better than the base rate."""


class NotConvergedWarning(UserWarning):
    """The optimisation did not converge within its iterations."""


class ShiftWarning(UserWarning):
    """New samples differ from the training samples; the message names view and columns."""
