"""The command ``baldur``: arguments to the calls of `baldur.study`."""

from baldur.cli.app import app, main

__all__ = ["app", "main"]
