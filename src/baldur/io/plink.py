"""read_plink: genotypes as an int8 view read from disk, with people and variants named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, check_size, no_bare_memory_error
from baldur.exceptions import InputError
from baldur.io.files import as_path, check_ids, find_file
from baldur.io.plink_files import BedMatrix, PgenMatrix, decode_people, read_people, read_variants
from baldur.preparation import VariantFilter
from baldur.views.container import MultiView, select_columns, set_view
from baldur.views.validate import repeated, some


@no_bare_memory_error
def read_plink(
    file: str | os.PathLike[str],
    *,
    name: str = "genotypes",
    ids: str = "sample",
    chromosomes: Sequence[Any] | None = None,
    variants: Sequence[str] | None = None,
    min_maf: float = 0.0,
    max_missing: float = 1.0,
    drop_monomorphic: bool = False,
    filter_ids: Sequence[Any] | None = None,
    in_memory: bool = False,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read genotypes of PLINK 1 (``.bed/.bim/.fam``) or PLINK 2 (``.pgen/.pvar/.psam``).

    Cells are counts of allele 1 (PLINK 2: of the alternative allele), 0, 1 or 2, as int8, and
    -127 where the genotype was not called. They stay on disk and are read by blocks of variants
    as an estimator asks for them; missing calls take the training mean of their variant there.

    Parameters
    ----------
    file : str or path-like
        The ``.bed`` or ``.pgen`` file, or the name its three files share.
    name : str, default="genotypes"
        Name of the view.
    ids : {"sample", "family_sample"}, default="sample"
        Sample ids: the individual's id, or family and individual joined by an underscore, for
        files in which families count from 1.
    chromosomes : sequence, optional
        Keep only the variants on these chromosomes (written as in the file).
    variants : sequence of str, optional
        Keep only the variants with these names.
    min_maf, max_missing, drop_monomorphic : float, float and bool
        As in `VariantFilter`, which counts what is dropped. All are off by default.
    filter_ids : sequence, optional
        People by whom the three filters judge; all by default. To judge by training rows only,
        give their ids, or put a `VariantFilter` in front of the estimator.
    in_memory : bool, default=False
        Read all genotypes at once, one byte each.
    max_bytes : int, default=4 GB
        Largest matrix read into memory.

    Returns
    -------
    MultiView
        One int8 view. `feature_info` has ``chromosome``, ``position``, ``allele_1``, ``allele_2``
        (and ``centimorgan`` for ``.bim``); its ``attrs["dropped"]`` counts what the filters
        dropped. A variant without a name is called ``chromosome:position:allele_1:allele_2``.

    Raises
    ------
    InputError
        Where a file is missing, damaged, or does not belong to the others.
    MissingExtraError
        Without the extra ``genetics``, for PLINK 2 files.

    See Also
    --------
    read_fam : Sex and phenotype of the same people.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from bed_reader import to_bed
    >>> from baldur.io import read_plink
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "study.bed"
    >>> G = np.array([[0, 1, 2], [2, -127, 1]], dtype=np.int8)
    >>> to_bed(file, G, properties={"iid": ["ann", "bo"], "sid": ["rs1", "rs2", "rs3"]})
    >>> X = read_plink(file)
    >>> X
    MultiView: 2 samples, 3 features in 1 view
      genotypes  3  int8, lazy
    >>> X.view("genotypes").read()
    array([[ 0.,  1.,  2.],
           [ 2., nan,  1.]], dtype=float32)
    >>> folder.cleanup()
    """
    path, people_file, variant_file = plink_files(file)
    people = read_people(people_file)
    names, info = read_variants(variant_file, max_bytes)
    sample_ids = _ids(people, ids, people_file)
    matrix_class = PgenMatrix if path.suffix.lower() == ".pgen" else BedMatrix
    X = MultiView(
        {name: matrix_class(path, len(people), len(names))},
        sample_ids=sample_ids,
        feature_names={name: names},
        feature_info={name: info},
    )
    X = select_columns(X, {name: _wanted(variant_file, names, info, chromosomes, variants)})
    X, dropped = _filter(X, name, min_maf, max_missing, drop_monomorphic, filter_ids)
    view = X.view(name)
    table = view.feature_info
    if table is not None and dropped:
        table.attrs["dropped"] = dropped
    if not in_memory:
        return X
    check_size(path, view.shape[0] * view.shape[1], max_bytes, "Leave in_memory=False.")
    return set_view(X, name, view.raw(), view.names, table)


@no_bare_memory_error
def read_fam(file: str | os.PathLike[str], *, ids: str = "sample") -> pd.DataFrame:
    """Read sex and phenotype of the people of a PLINK file.

    Parameters
    ----------
    file : str or path-like
        The ``.fam`` or ``.psam`` file, or the ``.bed`` or ``.pgen`` beside it.
    ids : {"sample", "family_sample"}, default="sample"
        As in `read_plink`.

    Returns
    -------
    DataFrame
        Indexed by sample id: ``family``, ``father``, ``mother``, ``sex`` ("male", "female" or
        missing) and ``phenotype`` (a number; -9, and 0 where the others are 1 and 2, are missing).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.io import read_fam
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "study.fam"
    >>> _ = file.write_text("f1 ann 0 0 2 1" + chr(10) + "f2 bo 0 0 1 -9" + chr(10))
    >>> read_fam(file)[["sex", "phenotype"]]
               sex  phenotype
    sample
    ann     female        1.0
    bo        male        NaN
    >>> folder.cleanup()
    """
    path = as_path(file)
    lists = {".bed": ".fam", ".bim": ".fam", ".pgen": ".psam", ".pvar": ".psam"}
    path = path.with_suffix(lists.get(path.suffix.lower(), path.suffix))
    path = find_file(path, "a list of people", (".fam", ".psam"))
    table = decode_people(read_people(path))
    index = pd.Index(_ids(table, ids, path), name="sample", dtype=object)
    return table.drop(columns="sample").set_index(index)


def plink_files(file: Any) -> tuple[Path, Path, Path]:
    """Return the files of genotypes, people and variants that belong together."""
    path = as_path(file)
    if path.suffix.lower() not in (".bed", ".pgen"):
        # PLINK's own way: the name without an ending, which may contain dots.
        both = [path.with_name(path.name + ending) for ending in (".bed", ".pgen")]
        existing = [genotypes for genotypes in both if genotypes.is_file()]
        if len(existing) != 1:
            why = "there is neither" if not existing else "there are both; say which"
            raise InputError(f"{path}: expected {both[0].name} or {both[1].name}, but {why}.")
        path = existing[0]
    pgen = path.suffix.lower() == ".pgen"
    genotypes = find_file(path, "PLINK genotypes", (".bed", ".pgen"))
    packed = path.with_suffix(".pvar.zst")
    if pgen and not path.with_suffix(".pvar").exists() and packed.exists():
        raise InputError(
            f"{packed}: compressed lists of variants are not read; unpack it with zstd -d."
        )
    fam, bim = (".psam", ".pvar") if pgen else (".fam", ".bim")
    people = find_file(path.with_suffix(fam), f"the list of people of {path.name}", (fam,))
    variants = find_file(path.with_suffix(bim), f"the list of variants of {path.name}", (bim,))
    return genotypes, people, variants


def _ids(people: pd.DataFrame, ids: str, path: Path) -> np.ndarray:
    """Return the checked sample ids, with or without the family in front."""
    if ids not in ("sample", "family_sample"):
        raise InputError(f"ids must be 'sample' or 'family_sample', but got {ids!r}.")
    names = {"sample": people["sample"], "family_sample": people["family"] + "_" + people["sample"]}
    twice = repeated(names[ids])
    if ids == "sample" and twice and not repeated(names["family_sample"]):
        raise InputError(
            f"{path}: {some(twice)} occur in more than one family. Use ids='family_sample'."
        )
    return check_ids(names[ids].tolist(), len(people), str(path))


def _wanted(
    path: Path, names: np.ndarray, info: pd.DataFrame, chromosomes: Any, variants: Any
) -> np.ndarray:
    """Return the positions of the variants to read, by chromosome and by name."""
    kept = np.ones(len(names), dtype=bool)
    if chromosomes is not None:
        listed = [str(name) for name in np.atleast_1d(np.asarray(chromosomes)).tolist()]
        in_file = info["chromosome"].cat.categories.astype(str).tolist()
        unknown = [name for name in listed if name not in in_file]
        if unknown:
            raise InputError(f"{path}: no variant is on {some(unknown)}; there are {in_file}.")
        kept &= info["chromosome"].astype(str).isin(listed).to_numpy()
    if variants is not None:
        listed = [variants] if isinstance(variants, str) else [str(name) for name in variants]
        unknown = sorted(set(listed) - set(names[np.isin(names, listed)].tolist()))
        if unknown:
            raise InputError(f"{path}: there is no variant {some(unknown)}.")
        kept &= np.isin(names, listed)
    if not kept.any():
        raise InputError(f"{path}: chromosomes= and variants= together leave no variant.")
    return np.flatnonzero(kept)


def _filter(
    X: MultiView, name: str, min_maf: float, max_missing: float, drop: bool, filter_ids: Any
) -> tuple[MultiView, dict[str, int]]:
    """Return the genotypes after the filters, and how many variants each of them dropped."""
    if min_maf == 0 and max_missing == 1 and not drop:
        return X, {}
    fit_rows = X
    if filter_ids is not None:
        wanted = [str(sample_id) for sample_id in filter_ids]
        at = pd.Index(X.sample_ids.astype(str)).get_indexer(pd.Index(wanted))
        if (at < 0).any():
            unknown = [person for person, row in zip(wanted, at, strict=True) if row < 0]
            raise InputError(f"filter_ids: {some(unknown)} are not among the people of the file.")
        fit_rows = X[at]
    step = VariantFilter(name, min_maf=min_maf, max_missing=max_missing, drop_monomorphic=drop)
    step.fit(fit_rows)
    return step.transform(X), step.dropped_[name]
