"""The package imports and its errors form one family."""

import re

import baldur
from baldur import exceptions


def test_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", baldur.__version__)


def test_errors_can_be_caught_as_builtin_kinds():
    assert issubclass(exceptions.InputError, (exceptions.BaldurError, ValueError))
    assert issubclass(exceptions.InputError, ValueError)
    assert issubclass(exceptions.MissingExtraError, ImportError)
    assert issubclass(exceptions.StudyError, exceptions.BaldurError)
    assert issubclass(exceptions.NotConvergedWarning, UserWarning)
