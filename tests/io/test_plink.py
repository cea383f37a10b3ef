"""read_plink: equal to bed-reader's own array everywhere, from disk, in bounded memory."""

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from baldur import MultiView
from baldur.baselines import BASELINES
from baldur.exceptions import InputError, MissingExtraError
from baldur.io import read_fam, read_plink
from baldur.preparation import Preparation, VariantFilter
from shared_cohorts import load_shared

bed_reader = pytest.importorskip("bed_reader")

genotypes = hnp.arrays(
    np.int8,
    st.tuples(st.integers(1, 11), st.integers(1, 9)),
    elements=st.sampled_from([0, 1, 2, -127]),
)


def write_bed(folder, G, **properties):
    path = Path(folder) / "g.bed"
    people = [f"p{i}" for i in range(len(G))]
    variants = [f"rs{j}" for j in range(G.shape[1])]
    bed_reader.to_bed(path, G, properties={"iid": people, "sid": variants, **properties})
    return path


def write_pgen(folder, G):
    pgenlib = pytest.importorskip("pgenlib")
    path = Path(folder) / "g.pgen"
    with pgenlib.PgenWriter(
        str(path).encode(), G.shape[0], variant_ct=G.shape[1], nonref_flags=False
    ) as writer:
        for column in np.ascontiguousarray(np.where(G == -127, -9, G).T.astype(np.int8)):
            writer.append_biallelic(column)
    path.with_suffix(".psam").write_text(
        "#IID\tSEX\n" + "".join(f"p{i}\t{i % 3}\n" for i in range(len(G)))
    )
    path.with_suffix(".pvar").write_text(
        "##fileformat=x\n#CHROM\tPOS\tID\tREF\tALT\n"
        + "".join(f"{1 + j // 5}\t{100 + j}\trs{j}\tA\tC\n" for j in range(G.shape[1]))
    )
    return path


@pytest.mark.parametrize("write", [write_bed, write_pgen])
@settings(max_examples=40, deadline=None)
@given(G=genotypes, data=st.data())
def test_what_is_written_is_read_piece_by_piece(write, G, data):
    with tempfile.TemporaryDirectory() as folder:
        X = pickle.loads(pickle.dumps(read_plink(write(folder, G))))
        view = X.view("genotypes")
        assert view.dtype == np.int8
        np.testing.assert_array_equal(view.raw(), G)
        rows = data.draw(st.lists(st.integers(0, len(G) - 1), min_size=1, max_size=6))
        cols = data.draw(st.lists(st.integers(0, G.shape[1] - 1), min_size=1, max_size=6))
        np.testing.assert_array_equal(X[rows].view("genotypes").raw(cols), G[np.ix_(rows, cols)])
        start = data.draw(st.integers(0, G.shape[1] - 1))
        np.testing.assert_array_equal(
            X[rows].view("genotypes").raw(slice(start, None)), G[rows, start:]
        )
        expected = np.where(G == -127, np.nan, G)
        np.testing.assert_array_equal(view.read(), expected)
        assert X.sample_ids.tolist() == [f"p{i}" for i in range(len(G))]
        assert view.feature_names.tolist() == [f"rs{j}" for j in range(G.shape[1])]


def test_metadata(tmp_path):
    G = np.zeros((3, 3), dtype=np.int8)
    path = write_bed(
        tmp_path,
        G,
        fid=["f1", "f1", "f2"],
        sex=[1, 2, 0],
        pheno=["1", "2", "-9"],
        sid=["rs0", ".", "rs2"],
        chromosome=["1", "1", "X"],
        bp_position=[5, 7, 9],
        cm_position=[0, 0.5, 0],
        allele_1=["A", "C", "G"],
        allele_2=["T", "T", "T"],
    )
    X = read_plink(path)
    assert X.feature_names["genotypes"].tolist() == ["rs0", "1:7:C:T", "rs2"]
    info = X.feature_info["genotypes"]
    assert info["chromosome"].tolist() == ["1", "1", "X"]
    assert info["position"].tolist() == [5, 7, 9]
    assert info["centimorgan"].tolist() == [0, 0.5, 0]
    assert info["allele_1"].tolist() == ["A", "C", "G"]
    people = read_fam(path)
    assert people["sex"].tolist()[:2] == ["male", "female"]
    assert pd.isna(people["sex"].iloc[2])
    assert people["phenotype"].tolist()[:2] == [1, 2]
    assert np.isnan(people["phenotype"].iloc[2])
    assert people["family"].to_dict() == {"p0": "f1", "p1": "f1", "p2": "f2"}
    assert read_plink(path, chromosomes=["X"]).feature_names["genotypes"].tolist() == ["rs2"]
    assert read_plink(path, variants=["rs2", "rs0"]).n_features == {"genotypes": 2}
    assert read_plink(tmp_path / "g").shape == (3, 3)
    with pytest.raises(InputError, match="no variant is on 'Y'"):
        read_plink(path, chromosomes=["Y"])
    with pytest.raises(InputError, match="no variant 'rs9'"):
        read_plink(path, variants=["rs9"])


def test_ids_of_families_that_count_from_one(tmp_path):
    path = write_bed(tmp_path, np.zeros((2, 2), np.int8), fid=["a", "b"], iid=["1", "1"])
    with pytest.raises(InputError, match="ids='family_sample'"):
        read_plink(path)
    assert read_plink(path, ids="family_sample").sample_ids.tolist() == ["a_1", "b_1"]
    assert read_fam(path, ids="family_sample").index.tolist() == ["a_1", "b_1"]


def test_quantitative_phenotypes_keep_their_zero(tmp_path):
    path = write_bed(tmp_path, np.zeros((3, 2), np.int8), pheno=["0", "3.5", "-9"])
    found = read_fam(path)["phenotype"].tolist()
    assert found[:2] == [0.0, 3.5]
    assert np.isnan(found[2])


@settings(max_examples=40, deadline=None)
@given(
    G=genotypes, min_maf=st.sampled_from([0, 0.1, 0.3]), max_missing=st.sampled_from([0, 0.4, 1])
)
def test_filters_are_what_they_say(G, min_maf, max_missing):
    called = G != -127
    count = called.sum(axis=0)
    mean = np.where(called, G, 0).sum(axis=0) / np.maximum(count, 1)
    one = np.array([len(set(column[column != -127])) < 2 for column in G.T])
    rare = ~one & (np.minimum(mean / 2, 1 - mean / 2) < min_maf)
    gaps = ~one & ~rare & ((~called).mean(axis=0) > max_missing + 1e-12)
    # People without a single call lack the view, and are not counted.
    if not called.any(axis=1).all():
        return
    kept = ~(one | rare | gaps)
    with tempfile.TemporaryDirectory() as folder:
        path = write_bed(folder, G)
        options = {"min_maf": min_maf, "max_missing": max_missing, "drop_monomorphic": True}
        if not kept.any():
            with pytest.raises(InputError, match="the filters leave none"):
                read_plink(path, **options)
            return
        X = read_plink(path, **options)
        np.testing.assert_array_equal(X.view("genotypes").raw(), G[:, kept])
        assert X.feature_info["genotypes"].attrs["dropped"] == {
            "monomorphic": one.sum(),
            "rare": rare.sum(),
            "missing": gaps.sum(),
        }
        held = read_plink(path, in_memory=True, **options)
        assert held.view("genotypes").source.in_memory
        np.testing.assert_array_equal(held.view("genotypes").raw(), G[:, kept])


def test_filters_learned_on_training_rows_only(tmp_path):
    G = np.array([[0, 0, 1], [0, 1, 1], [1, 2, 1], [2, 1, 0]], dtype=np.int8)
    X = read_plink(write_bed(tmp_path, G))
    step = VariantFilter().fit(X[:2])
    assert step.kept_["genotypes"].tolist() == [False, True, False]
    assert step.dropped_ == {"genotypes": {"monomorphic": 2, "rare": 0, "missing": 0}}
    np.testing.assert_array_equal(step.transform(X).view("genotypes").raw(), G[:, [1]])
    early = read_plink(tmp_path / "g.bed", drop_monomorphic=True, filter_ids=["p0", "p1"])
    assert early.feature_names["genotypes"].tolist() == ["rs1"]
    with pytest.raises(InputError, match="'p9' are not among the people"):
        read_plink(tmp_path / "g.bed", min_maf=0.1, filter_ids=["p9"])
    with pytest.raises(InputError, match="names differ"):
        step.transform(MultiView({"genotypes": G}))
    with pytest.raises(InputError, match="min_maf must lie"):
        VariantFilter(min_maf=0.7).fit(X)


def simulate(folder, n, d, seed=0):
    """Write a .bed of n people and d variants piece by piece, without holding it."""
    rng = np.random.default_rng(seed)
    path = Path(folder) / f"wide{d}.bed"
    # Codes 00, 10 and 11 are genotypes; 01, a missing call, is made rare.
    byte = np.arange(256, dtype=np.uint8)
    low = byte & 0b01010101
    table = np.where(rng.random(256) < 0.1, byte, byte | (low << 1) & 0b10101010).astype(np.uint8)
    with path.open("wb") as stream:
        stream.write(b"\x6c\x1b\x01")
        width = (n + 3) // 4
        for start in range(0, d, 20_000):
            count = min(20_000, d - start)
            stream.write(table[rng.integers(0, 256, (count, width), dtype=np.uint8)].tobytes())
    with path.with_suffix(".bim").open("w") as stream:
        for start in range(0, d, 20_000):
            stream.writelines(
                f"{1 + j * 22 // d}\trs{j}\t0\t{j}\tA\tC\n"
                for j in range(start, min(start + 20_000, d))
            )
    path.with_suffix(".fam").write_text("".join(f"f p{i} 0 0 1 {1 + i % 2}\n" for i in range(n)))
    return path


def test_products_from_disk_equal_those_in_memory(tmp_path):
    path = simulate(tmp_path, 60, 3000)
    lazy, held = read_plink(path), read_plink(path, in_memory=True)
    assert (held.view("genotypes").raw() == -127).any()
    rows = np.random.default_rng(0).permutation(60)[:40]
    from_disk = Preparation(max_bytes=20_000).fit(lazy[rows]).transform(lazy)["genotypes"]
    in_memory = Preparation().fit(held[rows]).transform(held)["genotypes"]
    rng = np.random.default_rng(1)
    A, M, B = rng.normal(size=(60, 3)), rng.normal(size=(60, 60)), rng.normal(size=(3000, 2))
    np.testing.assert_allclose(from_disk.weighted_gram(), in_memory.weighted_gram())
    np.testing.assert_allclose(from_disk.project(A), in_memory.project(A))
    np.testing.assert_allclose(from_disk.apply(B), in_memory.apply(B))
    for got, want in zip(
        from_disk.project_with_quadratics(A, [M + M.T]),
        in_memory.project_with_quadratics(A, [M + M.T]),
        strict=True,
    ):
        np.testing.assert_allclose(got, want)


SCRIPT = """
import sys, time
import numpy as np
from baldur import BaldurClassifier
from baldur.inference import inner_folds
from baldur.io import read_plink
from baldur.preparation import Preparation

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

before = peak()
start = time.perf_counter()
X = read_plink(sys.argv[1])
if sys.argv[3] == "fit":
    inner_folds.MOST_REPEATS = 1
    BaldurClassifier(members=("pooled",)).fit(X, np.arange(len(X)) % 2)
else:
    view = Preparation(max_bytes=int(sys.argv[2])).fit_transform(X)["genotypes"]
    K = view.weighted_gram()
    view.project(K[:, :1])
    view.project_with_quadratics(K[:, :1], [K])
print(peak() - before, time.perf_counter() - start)
"""


def peak_of(path, block, what):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), str(block), what],
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(float(x) for x in done.stdout.split())


def check_memory(tmp_path, n, few, many, block=1 << 26, what="products", limit=250):
    """What is held per variant is its name, place and statistics, however many people there are."""
    used = {d: peak_of(simulate(tmp_path, n, d), block, what) for d in (few, many)}
    per_variant = (used[many][0] - used[few][0]) / (many - few)
    print(
        f"{what}, {n} people: "
        f"{few:,} variants peak {used[few][0] / 1e6:.0f} MB ({used[few][1]:.0f} s), "
        f"{many:,} variants peak {used[many][0] / 1e6:.0f} MB ({used[many][1]:.0f} s), "
        f"{per_variant:.0f} bytes per variant; as int8 {n}, as float64 {8 * n}"
    )
    assert per_variant < limit


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_memory_does_not_follow_the_genotypes(tmp_path):
    check_memory(tmp_path, n=400, few=10_000, many=60_000, block=1 << 21)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_three_million_variants_from_disk(tmp_path):
    check_memory(tmp_path, n=500, few=300_000, many=3_000_000)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_three_million_variants_are_fitted_from_disk(tmp_path):
    """The classifier adds a few numbers per variant: means and spreads of the weights."""
    check_memory(tmp_path, n=500, few=300_000, many=3_000_000, what="fit", limit=400)


def test_hapmap_equals_bed_reader_and_tells_populations_apart(shared_data):
    folder = shared_data / "hapmap3_plink"
    X = read_plink(folder / "hapmap3.bed")
    known = load_shared(folder, labels_only=True)
    assert X.sample_ids.tolist() == known.sample_ids.tolist()
    own = bed_reader.open_bed(folder / "hapmap3.bed")
    np.testing.assert_array_equal(X.view("genotypes").raw(), own.read(dtype="int8"))
    assert X.feature_names["genotypes"].tolist() == own.sid.tolist()
    assert X.feature_info["genotypes"]["position"].tolist() == own.bp_position.tolist()
    assert X.feature_info["genotypes"]["chromosome"].tolist() == own.chromosome.tolist()
    model = make_pipeline(
        VariantFilter(min_maf=0.01, max_missing=0.05),
        BASELINES["PCA-AWDR"].make(0).set_params(n_components=10),
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = cross_val_predict(model, X, known.target, cv=folds)
    accuracy = (found == known.target).mean()
    print(f"hapmap3, four populations, PCA-AWDR: accuracy {accuracy:.3f}")
    assert accuracy >= 0.98


def test_the_extra_is_named_where_it_is_needed(tmp_path, monkeypatch):
    G = np.zeros((2, 3), np.int8)
    one, two = write_bed(tmp_path, G), write_pgen(tmp_path, G)
    for module in ("bed_reader", "pgenlib"):
        monkeypatch.setitem(sys.modules, module, None)
    np.testing.assert_array_equal(read_plink(one).view("genotypes").raw(), G)
    with pytest.raises(MissingExtraError, match=r"pip install 'baldur-multiview\[genetics\]'"):
        read_plink(two)
