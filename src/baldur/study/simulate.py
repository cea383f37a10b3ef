"""Simulated studies as files, and the one that ``baldur demo`` runs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from baldur.core.atomic_io import atomic_file, make_folder, write_atomically
from baldur.core.escape import csv_text
from baldur.core.optional import import_extra
from baldur.datasets import make_adni_like, make_biofind_like, make_multiview
from baldur.exceptions import InputError
from baldur.views import MultiView
from baldur.views.view import View

_LEVEL = 1  # of compression: noise does not become smaller, and the empty surroundings do


def write_images(folder: Path, name: str, view: View, ids: np.ndarray) -> dict[str, Any]:
    """Write ``NAME/ID.nii.gz`` and ``NAME_mask.nii.gz``; return the view's section of the study."""
    nib = import_extra("nibabel", "imaging", "Writing simulated images")
    info = view.feature_info
    assert info is not None
    shape, affine = tuple(info.attrs["shape"]), np.asarray(info.attrs["affine"], dtype=float)
    voxels = tuple(info[axis].to_numpy() for axis in "ijk")

    def write(path: Path, values: np.ndarray) -> None:
        cells = np.zeros(shape, dtype=values.dtype)
        cells[voxels] = values
        content = nib.Nifti1Image(cells, affine).to_bytes()
        # Thousands of files: waiting for the disk after each would take minutes. The study file,
        # without which nothing is read, is written last.
        write_atomically(path, gzip.compress(content, _LEVEL, mtime=0), sync=False)

    make_folder(folder / name)
    for sample, row in zip(ids, view.raw(), strict=True):
        write(folder / name / f"{sample}.nii.gz", row)
    mask = f"{name}_mask.nii.gz"
    write(folder / mask, np.ones(len(info), dtype=np.uint8))
    file = f"{name}/*.nii.gz"
    return {"file": file, "kind": "nifti", "mask": mask, "id_pattern": "{id}.nii.gz"}


# PLINK's two bits count copies of the second allele: 00 is two copies of the first, 01 missing.
_BITS = np.array([0b11, 0b10, 0b00], dtype=np.uint8)
_MISSING_BITS = 0b01


def write_bed(path: Path, view: View, ids: np.ndarray) -> None:
    """Write ``.bed``, ``.bim`` and ``.fam``; cells count copies of the first allele, A1."""
    d = view.shape[1]
    with atomic_file(path) as file:
        file.write(bytes([0x6C, 0x1B, 0x01]))  # mark of the format, variant by variant
        for start in range(0, d, 4096):
            file.write(_packed(view.raw(slice(start, min(start + 4096, d)))).tobytes())
    info = view.feature_info
    chromosome, position = np.ones(d, dtype=int), np.arange(1, d + 1)
    if info is not None and {"chromosome", "position"} <= set(info.columns):
        chromosome, position = info["chromosome"].to_numpy(), info["position"].to_numpy()
    bim = pd.DataFrame(
        {"c": chromosome, "id": view.feature_names, "cm": 0, "bp": position, "a1": "A", "a2": "G"}
    )
    fam = pd.DataFrame({"f": ids, "i": ids, "p": 0, "m": 0, "s": 0, "y": -9})
    for suffix, table in {".bim": bim, ".fam": fam}.items():
        text = table.to_csv(sep="\t", header=False, index=False)
        write_atomically(path.with_suffix(suffix), text.encode())


def _packed(cells: np.ndarray) -> np.ndarray:
    """Return genotypes as bytes of four samples each, the first sample in the lowest bits.

    Shapes: cells (n samples, d variants) of allele counts; returns (d, n / 4 rounded up).
    """
    n, d = cells.shape
    codes = np.zeros((d, -(-n // 4) * 4), dtype=np.uint8)
    known = (cells >= 0) & (cells <= 2)
    codes[:, :n] = np.where(known, _BITS[np.where(known, cells, 0)], _MISSING_BITS).T
    quads = codes.reshape(d, -1, 4)
    return quads[..., 0] | quads[..., 1] << 2 | quads[..., 2] << 4 | quads[..., 3] << 6


# Simulator, usual scale, classes with the positive one last, and outer and inner folds, of which
# the first two are those of the paper.
_KINDS: dict[str, tuple[Callable[..., Any], float | None, tuple[str, str], int]] = {
    "biofind": (make_biofind_like, 0.001, ("control", "PD"), 5),
    "adni": (make_adni_like, 0.004, ("EMCI", "LMCI"), 10),
    "multiview": (make_multiview, None, ("control", "case"), 5),
}
WIDEST_CSV = 5000


def simulate_study(
    kind: str,
    folder: str | Path,
    *,
    scale: float | None = None,
    seed: int = 0,
    models: list[Any] | None = None,
    folds: dict[str, Any] | None = None,
    in_memory: bool = False,
    more: dict[str, Any] | None = None,
) -> Path:
    """Write a simulated study, ready to be evaluated.

    Parameters
    ----------
    kind : {"biofind", "adni", "multiview"}
        Which simulator of `baldur.datasets`. Images of "adni" are written as NIfTI files, which
        needs the extra ``imaging``.
    folder : str or Path
        Where to; made if needed. A study file that is there is refused.
    scale : float, optional
        Share of the full width of the wide views: for "biofind" of 841,685 genotypes, default
        0.001; for "adni" of 37,643 voxels, default 0.004 and at least 0.0036. Not used for
        "multiview".
    seed : int, default=0
        The same seed gives the same files.
    models : list, optional
        Models of the study file.
    folds : dict, optional
        The [folds] section; default five outer and inner folds, ten for "adni" as in the paper.
    in_memory : bool, default=False
        Whether the study reads PLINK genotypes into memory at once, which is quicker.
    more : dict, optional
        Further keys and sections of the study file, such as its title.

    Returns
    -------
    Path
        The study file. ``truth.csv`` lists view, feature and effect of what was simulated.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"])
    >>> file.name, sorted(path.name for path in file.parent.glob("s*.csv"))
    ('study.toml', ['samples.csv', 'sleep.csv', 'socio-economic.csv'])
    >>> (file.parent / "truth.csv").read_text().splitlines()[0]
    'view,feature,effect'
    >>> folder.cleanup()
    """
    if kind not in _KINDS:
        raise InputError(f"kind must be one of {', '.join(_KINDS)}, but got {kind!r}.")
    folder = Path(folder)
    file = folder / "study.toml"
    if file.exists():
        raise InputError(f"{file} exists; choose another folder, or remove it.")
    simulate, default_scale, classes, n_folds = _KINDS[kind]
    options = {}
    if default_scale is not None:
        options["scale"] = default_scale if scale is None else scale
    sim = simulate(random_state=seed, **options)
    make_folder(folder)
    ids = sim.data.sample_ids
    ids = np.array([f"s{i:04d}" for i in ids]) if ids.dtype.kind in "iu" else ids.astype(str)
    _write(
        folder / "samples.csv",
        pd.DataFrame({"sample": ids, "diagnosis": np.array(classes)[sim.target]}),
    )
    views = {v: _write_view(folder, sim.data, v, ids, in_memory) for v in sim.data.view_names}
    _write(folder / "truth.csv", _truth(sim))
    study = {
        "title": f"Simulated study ({kind})",
        "seed": seed,
        "output": "results",
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": classes[1]},
        "views": views,
        "folds": folds or {"outer": n_folds, "inner": n_folds},
        "models": models or [{"name": n} for n in ("BALDUR", "LSVM-l1", "Lasso-MkSVM")],
        **(more or {}),
    }
    write_atomically(file, tomli_w.dumps(study).encode())
    return file


def _write(path: Path, frame: pd.DataFrame) -> None:
    write_atomically(path, csv_text(frame).encode())


def _write_view(
    folder: Path, data: MultiView, view: str, ids: np.ndarray, in_memory: bool
) -> dict[str, Any]:
    """Write a view in the format that suits it; return its section of the study file."""
    cells = data.view(view)
    if cells.feature_info is not None and "affine" in cells.feature_info.attrs:
        return write_images(folder, view, cells, ids)
    if cells.dtype == np.int8 and cells.shape[1] > WIDEST_CSV:
        write_bed(folder / f"{view}.bed", cells, ids)
        return {"file": f"{view}.bed", "kind": "plink"} | ({"in_memory": True} if in_memory else {})
    if cells.shape[1] > WIDEST_CSV:
        with atomic_file(folder / f"{view}.npz") as file:
            np.savez(file, X=cells.raw(), features=cells.feature_names, samples=ids)
        return {"file": f"{view}.npz", "kind": "table"}
    frame = pd.DataFrame(cells.read(), columns=cells.feature_names)
    if cells.dtype == np.int8:
        frame = frame.astype("Int8")
    frame.insert(0, "sample", ids)
    _write(folder / f"{view}.csv", frame)
    return {"file": f"{view}.csv", "kind": "table"}


def _truth(sim: Any) -> pd.DataFrame:
    """Return the features with an effect, and its size (over several outcomes the norm)."""
    parts = []
    for view, columns in sim.truth.features.items():
        effects = np.asarray(sim.truth.effects[view])
        size = effects if effects.ndim == 1 else np.linalg.norm(effects, axis=1)
        names = sim.data.view(view).names_of(columns)
        parts.append(pd.DataFrame({"view": view, "feature": names, "effect": size}))
    return pd.concat([p for p in parts if len(p)], ignore_index=True)


_DEMO_MODELS: list[dict[str, Any]] = [
    {"name": "LSVM-l1", "grid": {"c_ratio": [3.0, 10.0]}},
    {"name": "RF", "settings": {"n_estimators": 100}, "grid": {"max_features": ["sqrt", 0.1]}},
    {"name": "MV-PLS", "grid": {"n_components": [1, 2]}},
    {"name": "Lasso-MkSVM", "settings": {"p": 1.0}, "grid": {"fraction": [0.2, 0.4]}},
    {"name": "BALDUR"},
]


def write_demo(folder: str | Path) -> Path:
    """Write the demonstration study."""
    folds = {"outer": 5, "inner": 3}
    return simulate_study("biofind", folder, scale=0.002, models=_DEMO_MODELS, folds=folds)
