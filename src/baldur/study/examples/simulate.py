"""simulate_study: a folder with simulated views, the truth behind them, and a study file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.atomic_io import atomic_file, make_folder, write_atomically
from baldur.datasets import make_adni_like, make_biofind_like, make_multiview
from baldur.exceptions import InputError
from baldur.safety.spreadsheet import csv_text
from baldur.study.examples.image_writer import write_images
from baldur.study.examples.plink_writer import write_bed
from baldur.study.toml_file import toml_text
from baldur.views import MultiView

KINDS = ("biofind", "adni", "multiview")
FOLDS = {"biofind": 5, "adni": 10, "multiview": 5}
"""Outer and inner folds; the first two are those of the paper."""
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
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, but got {kind!r}.")
    folder = Path(folder)
    file = folder / "study.toml"
    if file.exists():
        raise InputError(f"{file} exists; choose another folder, or remove it.")
    if kind == "biofind":
        sim = make_biofind_like(scale=0.001 if scale is None else scale, random_state=seed)
        names = np.asarray(sim.target_names)[sim.target]
    elif kind == "adni":
        sim = make_adni_like(scale=0.004 if scale is None else scale, random_state=seed)
        names = np.asarray(sim.target_names)[sim.target]
    else:
        sim = make_multiview(random_state=seed)
        names = np.array(["control", "case"])[sim.target]
    positive = {"biofind": "PD", "adni": "LMCI", "multiview": "case"}[kind]
    make_folder(folder)
    ids = _ids(sim.data)
    _write(folder / "samples.csv", pd.DataFrame({"sample": ids, "diagnosis": names}))
    views = {v: _write_view(folder, sim.data, v, ids, in_memory) for v in sim.data.view_names}
    _write(folder / "truth.csv", _truth(sim))
    study = {
        "title": f"Simulated study ({kind})",
        "seed": seed,
        "output": "results",
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": positive},
        "views": views,
        "folds": folds or {"outer": FOLDS[kind], "inner": FOLDS[kind]},
        "models": models or [{"name": n} for n in ("BALDUR", "LSVM-l1", "Lasso-MkSVM")],
        **(more or {}),
    }
    write_atomically(file, toml_text(study).encode())
    return file


def _ids(data: MultiView) -> np.ndarray:
    ids = data.sample_ids
    return np.array([f"s{i:04d}" for i in ids]) if ids.dtype.kind in "iu" else ids.astype(str)


def _write(path: Path, frame: pd.DataFrame) -> None:
    write_atomically(path, csv_text(frame).encode())


def _write_view(
    folder: Path, data: MultiView, view: str, ids: np.ndarray, in_memory: bool
) -> dict[str, Any]:
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
    parts = []
    for view, columns in sim.truth.features.items():
        effects = np.asarray(sim.truth.effects[view])
        parts.append(
            pd.DataFrame(
                {
                    "view": view,
                    "feature": sim.data.view(view).names_of(columns),
                    "effect": effects if effects.ndim == 1 else np.linalg.norm(effects, axis=1),
                }
            )
        )
    return pd.concat([p for p in parts if len(p)], ignore_index=True)
