"""The files of a model folder, and limits on what they may hold.

Each limit is checked before anything of that size is made. A model is saved only within them, so
that whatever was saved can be loaded.
"""

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

OWN_FILES = (MANIFEST, *DATA_FILES[0], *DATA_FILES[1], *PRINTED, ".lock")

MANIFEST_BYTES = 16 << 20
"""Of ``manifest.json``: it has a line per view and per class, and the settings of a study."""

STATE_BYTES = 64 << 20
"""Of ``state.json``. Models have 5 kB to 2 MB there; long columns and names are arrays."""

PRINTED_BYTES = 64 << 20
"""Of one file of the card: 500,000 numbers of 20 digits, the most that is printed, are 10 MB."""

NODES = 2_000_000
"""Values in one JSON file. Each takes some hundred bytes of memory once it is read."""

DEPTH = 40
"""Levels of nesting. Models have about 12."""

INTEGER = 2**64
"""Whole numbers are smaller than this: seeds have up to 64 bits."""

ARRAYS = 50_000
"""Arrays in one file, which take 3 s to read. A model of ten classes has some hundred."""

HEADER_BYTES = 16 << 20
"""Of the header of ``arrays.safetensors``: up to 150 bytes for each array."""

ARRAY_NAME = 12
"""Letters in the name of an array: they are called a0, a1 and so on."""

DIMENSIONS = 6
"""Axes of an array. Models have up to 4."""

CELLS_OF_NOTHING = 10_000_000
"""Length of an axis of an array without cells, whose length no byte in the file vouches for: the
features of the widest view (genotypes of whole genomes after imputation)."""

LARGEST_TEXT = 256 << 20
"""Bytes of an array of text in NumPy's fixed width, where every entry takes the room of the
longest. Above, it is read as an array of objects, which takes the room of its text."""
