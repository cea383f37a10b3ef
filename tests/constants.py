"""Constants of the package that tests change: fits are short, and small data take the way of large.

Where a constant lies is known here alone. A test takes the fixture ``constants`` and says
``constants(SEARCHED=3)``; what lives longer than a test says ``with constants(SEARCHED=3):``.
"""

from contextlib import contextmanager

import pytest

MODULES = {
    "estimators.default_fit": "EVERY",
    "evaluation.clinical.bootstrap_intervals": "_BLOCK_CELLS _KEEP_CELLS",
    "evaluation.dask_runner": "_AHEAD_PER_THREAD _FEWEST_AHEAD",
    "evaluation.preview": "_LONG_TRIAL _SHORT_TRIAL",
    "evaluation.shared_data": "MAP_BYTES",
    "inference.dense_members": "SCALE_DROP SCALE_STEP SCREENED_TOLERANCE",
    "inference.inner_folds": "CANDIDATES MOST_REPEATS N_FOLDS PER_VIEW SMALL",
    "inference.path_search": "SEARCHED SEARCH_BYTES",
    "inference.spike_slab_member": "MANY_COLUMNS NEGLIGIBLE TOLERANCE",
    "inference.stacking": "BATCH_SIZE TOLERANCE",
    "inference.weight_posterior": "MEAN_STEPS MEAN_TOLERANCE",
    "io.hdf5": "BLOCK_BYTES",
    "io.numpy_files": "LAZY_BYTES",
    "io.parquet": "LAZY_BYTES",
    "model.predictions": "DRAWN",
    "model.posterior": "MOST_SINGLE SINGLE_FROM",
    "paper.run": "N_INNER",
    "preparation.column_statistics": "_LIMIT_BYTES",
    "preparation.sites": "_KEEP_BYTES",
    "saving.printed_model": "MAX_NUMBERS",
    "study.simulate": "WIDEST_CSV",
    "views.sources": "FILE_READ_BYTES READ_BYTES",
    "views.standardised_blocks": "FLOAT64_LIMIT_BYTES TILE_BYTES",
}


def set_constants(patch, **values):
    """Set constants by name wherever they lie, until the patch ends."""
    for name, value in values.items():
        modules = [module for module, names in MODULES.items() if name in names.split()]
        assert modules, f"no module is known to have {name}"
        for module in modules:
            patch.setattr(f"baldur.{module}.{name}", value)


@contextmanager
def constants(**values):
    with pytest.MonkeyPatch.context() as patch:
        set_constants(patch, **values)
        yield
