"""read_mudata: .h5mu and .h5ad, one view per modality, left on disk when large."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import check_names
from baldur.core.limits import (
    LAZY_BYTES,
    MAX_BYTES,
    ReadLimits,
    check_size,
    no_bare_memory_error,
)
from baldur.exceptions import InputError
from baldur.io.files import check_ids, find_file, parsing
from baldur.io.hdf5 import (
    DenseMatrix,
    SparseMatrix,
    check_inside,
    has_member,
    is_dataset,
    member,
    open_file,
    read_frame,
    read_index,
)
from baldur.io.sandboxed_read import first_look
from baldur.views.container import MultiView
from baldur.views.sources import as_source
from baldur.views.table_encoding import feature_names
from baldur.views.validate import some
from baldur.views.view import View

_SUFFIXES = (".h5mu", ".h5ad")
_WHAT = "a MuData or AnnData file"


@no_bare_memory_error
def read_mudata(
    file: str | os.PathLike[str],
    *,
    name: str | None = None,
    modalities: str | Sequence[str] | None = None,
    layers: str | Mapping[str, str] | None = None,
    backed: bool | None = None,
    trusted: bool = False,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read a MuData (``.h5mu``) or AnnData (``.h5ad``) file.

    Parameters
    ----------
    file : str or path-like
        The file.
    name : str, optional
        Name of the view, where there is one (by default the modality's, or the file's name);
        several are called ``name:modality``.
    modalities : str or sequence of str, optional
        Which modalities to read, in this order; all by default. Not for ``.h5ad``.
    layers : str or dict of str to str, optional
        Layer to read in place of ``X``, the same for all or by modality.
    backed : bool, optional
        Leave the matrices in the file and read them by blocks. By default dense matrices above
        64 MB stay in the file and sparse ones are held in memory if they fit `max_bytes`.
    trusted : bool, default=False
        Skip the first pass over the file. That pass is made by another process, because a damaged
        file can crash the HDF5 library and with it the session.
    max_bytes : int, default=4 GB
        Memory that reading may take; matrices left in the file do not count.

    Returns
    -------
    MultiView
        One view per modality over all observations of the file; an observation that a modality
        lacks is absent from its view. `feature_info` is the modality's ``var`` table.

    Raises
    ------
    InputError
        Where the file is damaged, of another kind, or refers to other files.
    MissingExtraError
        Without the extra ``mudata``.

    See Also
    --------
    read_obs : The table about the observations of the same file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import anndata, numpy as np, pandas as pd
    >>> from baldur.io import read_mudata
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "rna.h5ad"
    >>> obs, var = pd.DataFrame(index=["s1", "s2"]), pd.DataFrame(index=["g1", "g2"])
    >>> anndata.AnnData(np.eye(2, dtype=np.float32), obs=obs, var=var).write_h5ad(file)
    >>> X = read_mudata(file)
    >>> X
    MultiView: 2 samples, 2 features in 1 view
      rna  2  float32
    >>> X.sample_ids, X.feature_names["rna"]
    (array(['s1', 's2'], dtype='<U2'), array(['g1', 'g2'], dtype='<U2'))
    >>> folder.cleanup()
    """
    with _opened(file, trusted, max_bytes) as (path, h5):
        groups = _modalities(path, h5, modalities)
        ids = _ids(path, h5, max_bytes)
        names = _view_names(path, list(groups), name)
        wanted = _layers(path, layers, list(groups))
        views = []
        # The tables of all modalities share half of the budget; the rest is for a matrix.
        bytes_left = max_bytes // 2
        for key, group in groups.items():
            obs = _ids(path, group, bytes_left)
            var = read_frame(path, member(path, group, "var"), bytes_left)
            features = feature_names(var.index, f"{path}, var", bytes_left)
            bytes_left -= int(obs.nbytes + features.nbytes + var.memory_usage(deep=True).sum())
            info = var.reset_index(drop=True) if var.shape[1] else None
            shape = (len(obs), len(var))
            matrix = _matrix(path, group, wanted[key], shape, backed, max_bytes)
            rows = pd.Index(obs).get_indexer(pd.Index(ids))  # -1: not in this modality
            if set(obs) - set(ids):
                raise InputError(
                    f"{path}: modality {key!r} has observations that are not in obs of the file."
                )
            view = View(names[key], as_source(matrix, names[key]), features, info)
            views.append(view.take_rows(rows))
    return MultiView.from_views(views, ids)


@no_bare_memory_error
def read_obs(
    file: str | os.PathLike[str], *, trusted: bool = False, max_bytes: int = MAX_BYTES
) -> pd.DataFrame:
    """Read the table about the observations of a MuData or AnnData file.

    Parameters
    ----------
    file : str or path-like
        An ``.h5mu`` or ``.h5ad`` file.
    trusted : bool, default=False
        Skip the first pass over the file, as in `read_mudata`.
    max_bytes : int, default=4 GB
        Memory that reading may take.

    Returns
    -------
    DataFrame
        Indexed by sample id.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import anndata, numpy as np, pandas as pd
    >>> from baldur.io import read_obs
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "rna.h5ad"
    >>> obs = pd.DataFrame({"age": [60, 70]}, index=["s1", "s2"])
    >>> anndata.AnnData(np.eye(2, dtype=np.float32), obs=obs).write_h5ad(file)
    >>> read_obs(file)["age"].to_dict()
    {'s1': 60, 's2': 70}
    >>> folder.cleanup()
    """
    with _opened(file, trusted, max_bytes) as (path, h5):
        return read_frame(path, member(path, h5, "obs"), max_bytes)


@contextmanager
def _opened(file: Any, trusted: bool, max_bytes: int) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the open file, which another process has read first unless trusted."""
    path = find_file(file, _WHAT, _SUFFIXES)
    if not trusted:
        # A damaged file can crash the library; texts, whose length is in no header, are counted.
        open_file(path).close()
        first_look(path, max_bytes, "an HDF5 file")
    with parsing(path, _WHAT), open_file(path) as h5:
        yield path, h5


def _modalities(path: Path, h5: Any, wanted: Any) -> dict[str, Any]:
    """Return the groups of the modalities to read, by name; an AnnData file is one without name."""
    if not has_member(h5, "mod"):
        if wanted is not None:
            raise InputError(f"{path}: an AnnData file has no modalities; leave modalities= out.")
        return {"": h5}
    mods = member(path, h5, "mod")
    if int(h5.attrs.get("axis", 0)) != 0:
        raise InputError(f"{path}: its modalities share variables, not observations (axis=1).")
    order = mods.attrs.get("mod-order", None)
    names = list(mods) if order is None else [str(name) for name in order]
    names = [name for name in names if has_member(mods, name)]
    check_names(names, "modality", str(path))
    listed = names if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [name for name in listed if name not in names]
    if unknown or not listed:
        raise InputError(f"{path}: there is no modality {some(unknown)}; it has {some(names)}.")
    return {name: member(path, mods, name) for name in listed}


def _view_names(path: Path, keys: list[str], name: str | None) -> dict[str, str]:
    """Return the name of the view of each modality; the key of an AnnData file is empty."""
    if keys == [""]:
        return {"": path.stem if name is None else name}
    if name is None:
        return {key: key for key in keys}
    return {keys[0]: name} if len(keys) == 1 else {key: f"{name}:{key}" for key in keys}


def _layers(path: Path, layers: Any, keys: list[str]) -> dict[str, str | None]:
    """Return the layer to read of each modality, None for its matrix X."""
    if layers is None or isinstance(layers, str):
        return dict.fromkeys(keys, layers)
    unknown = [key for key in layers if key not in keys]
    if unknown:
        raise InputError(f"{path}: layers names the modality {some(unknown)}; there are {keys}.")
    return {key: layers.get(key) for key in keys}


def _ids(path: Path, group: Any, max_bytes: int) -> np.ndarray:
    """Return the names in the index of the observations, without their other columns."""
    names = read_index(path, member(path, group, "obs"), max_bytes)
    where = f"{path}, index of {group.name.rstrip('/')}/obs"
    return check_ids(names.tolist(), len(names), where, ReadLimits(path, max_bytes))


def _matrix(
    path: Path,
    group: Any,
    layer: str | None,
    shape: tuple[int, int],
    backed: bool | None,
    max_bytes: int,
) -> Any:
    """Return the matrix of a modality, in memory or left in the file."""
    if layer is None:
        node = member(path, group, "X")
    else:
        stored = member(path, group, "layers")
        if not has_member(stored, layer):
            raise InputError(
                f"{path}: {group.name} has no layer {layer!r}; it has {some(list(stored))}."
            )
        node = member(path, stored, layer)
    # A matrix may be larger than memory, since it can stay in the file.
    check_inside(path, node)
    if is_dataset(node):
        if node.shape != shape or node.dtype.kind not in "biuf":
            raise InputError(
                f"{path}: expected numbers of shape {shape} in {node.name}, but it is "
                f"{node.dtype} of shape {node.shape}."
            )
        matrix = DenseMatrix(path, node.name, shape, node.dtype)
        most_in_memory = LAZY_BYTES
    else:
        encoding = str(node.attrs.get("encoding-type", ""))
        if encoding not in ("csr_matrix", "csc_matrix"):
            raise InputError(
                f"{path}: {node.name} is neither a dense nor a sparse matrix "
                f"({encoding or 'unknown'})."
            )
        claimed = tuple(int(side) for side in node.attrs.get("shape", ()))
        dtype = node["data"].dtype
        if claimed != shape or dtype.kind not in "biuf" or node["indices"].dtype.kind not in "iu":
            raise InputError(
                f"{path}: expected a sparse matrix of shape {shape} in {node.name}, but it is "
                f"{dtype} of shape {claimed}."
            )
        matrix = SparseMatrix(path, node.name, shape, dtype, encoding == "csr_matrix")
        most_in_memory = max_bytes
    if backed or (backed is None and matrix.n_bytes > most_in_memory):
        return matrix
    check_size(f"{path}, {node.name}", matrix.n_bytes, max_bytes, "Use backed=True.")
    return matrix.whole()
