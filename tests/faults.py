"""Stop work at one chosen call to the system, as a kill at that moment would."""

import os
from contextlib import contextmanager

STEPS = ("rename", "replace", "unlink", "mkdir", "fsync", "rmdir")


class StoppedError(BaseException):
    """The work stops here."""


@contextmanager
def stopped_after(monkeypatch, count):
    """Let `count` calls pass; then none is made any more, whoever tries."""
    real = {name: getattr(os, name) for name in STEPS}
    left = count

    def call(name, *arguments, **keywords):
        nonlocal left
        left -= 1
        if left < 0:
            raise StoppedError
        return real[name](*arguments, **keywords)

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, lambda *a, _n=name, **k: call(_n, *a, **k))
        yield
