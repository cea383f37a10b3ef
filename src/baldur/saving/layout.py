"""Names of the files of a model folder, and the version of their layout."""

from __future__ import annotations

FORMAT = "baldur model"

SCHEMA = 4
"""Version of the layout; raised when an older package could not read a newer folder."""

MANIFEST = "manifest.json"

DATA_FILES = (
    ("state.json", "arrays.safetensors"),
    ("state-2.json", "arrays-2.safetensors"),
)
"""State and arrays lie in one of two places, and the manifest says in which. A save over an older
model fills the other place and then replaces the manifest, which is one step for the file system:
a reader sees the old model or the new one, whatever happens in between."""

SCORERS = ("score.py", "score.R", "score.js")

PRINTED = ("card.json", "card.md", "card.R", *SCORERS)
"""The files of a card, named here so that loading need not import what prints them."""

KNOWN = (MANIFEST, *DATA_FILES[0], *DATA_FILES[1], *PRINTED)
