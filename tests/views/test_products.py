"""Products of prepared views equal the literal dense formulas, for every kind of storage."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views import sources
from preparation.literal import literal
from views.backends import BACKENDS, Lazy, make

N, D = 23, 700


def check_products(view, X, rng, rtol):
    """Compare every product of `view` with the dense matrix X it stands for."""
    n, d = X.shape
    s = rng.gamma(1.0, size=d)
    root = rng.normal(size=(n, n))
    M = root @ root.T / n
    A, B = rng.normal(size=(n, 3)), rng.normal(size=(d, 2))
    few = np.where(rng.random(d) < 0.1, s, 0)
    signed = s - 0.7
    rows = rng.permutation(n)[: n // 2]
    new = view.take_rows(rows)
    pairs = {
        "project": (view.project(A), X.T @ A),
        "apply": (view.apply(B), X @ B),
        "apply, few rows": (view.apply(few[:, None]), X @ few[:, None]),
        "gram": (view.weighted_gram(), X @ X.T),
        "weighted gram": (view.weighted_gram(s), (X * s) @ X.T),
        "few weights": (view.weighted_gram(few), (X * few) @ X.T),
        "signed weights": (view.weighted_gram(signed), (X * signed) @ X.T),
        "extreme weights": (view.weighted_gram(s * 1e80) * 1e-80, (X * s) @ X.T),
        "no weights": (view.weighted_gram(0 * s), np.zeros((n, n))),
        "cross gram": (view.cross_gram(new, s), (X[rows] * s) @ X.T),
        "signed cross gram": (new.cross_gram(view, signed), (X * signed) @ X[rows].T),
        "cross gram, few": (view.cross_gram(new, few), (X[rows] * few) @ X.T),
        "quadratics": (
            view.project_with_quadratics(A, [M])[1][0],
            np.einsum("nd,nm,md->d", X, M, X),
        ),
        "rows": (new.weighted_gram(s), (X[rows] * s) @ X[rows].T),
        "rows of rows": (new.take_rows([1, 0]).project(A[:2]), X[rows[[1, 0]]].T @ A[:2]),
        "columns": (view.columns([5, 2, 2]), X[:, [5, 2, 2]]),
        "mask": (view.columns(few > 0), X[:, few > 0]),
        "dense": (view.dense(), X),
        "dense rows": (new.dense(), X[rows]),
    }
    for what, (got, want) in pairs.items():
        assert got.dtype == np.float64, what
        np.testing.assert_allclose(
            got, want, rtol=0, atol=rtol * max(1, np.abs(want).max()), err_msg=what
        )


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [("standard", "float64"), ("clipped", "float64"), ("clipped", "float32"), ("rank", "float64")],
)
@pytest.mark.parametrize("kind", BACKENDS)
def test_products_equal_dense_formulas(kind, scale, dtype, tmp_path, constants):
    # Small tiles and blocks, so that several of each are crossed, the last one partly filled.
    constants(TILE_BYTES=1)
    rng = np.random.default_rng(5)
    matrix, cells = make(kind, N, D, rng, tmp_path, missing=0.1)
    present = np.arange(N) % 7 != 3
    train = np.flatnonzero(np.arange(N) % 3 > 0)
    mv = MultiView({"v": matrix}, present={"v": present})
    learned = Preparation(scale, dtype=dtype, max_bytes=20_000).fit(mv[train])
    prepared = learned.transform(mv)["v"]
    X = literal(cells, train, present, scale)
    assert prepared.shape == X.shape
    assert prepared.dtype == dtype
    np.testing.assert_array_equal(prepared.absent, ~present)
    assert not X[~present].any()
    check_products(prepared, X, rng, 1e-11 if dtype == "float64" else 3e-6)


@pytest.mark.parametrize("kind", ["float64", "float32", "int8", "int8-F", "lazy-int8"])
def test_which_views_are_stored_as_one_array(kind):
    rng = np.random.default_rng(0)
    matrix, _ = make(kind, N, D, rng)
    view = Preparation().fit_transform(MultiView({"v": matrix}))["v"]
    assert view.is_array == kind.startswith("float")
    assert view.dtype == np.float64
    assert kind.startswith("float") == ("stored" in repr(view))


def test_float32_error_stays_small_at_width():
    """Storage in float32, sums over tiles in float64: 1e-6 of the largest entry."""
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(60, 150_000)) + 100).astype(np.float32)
    g = rng.integers(0, 3, (60, 150_000), dtype=np.int8)
    mv = MultiView({"x": x, "g": g})
    wide = Preparation().fit_transform(mv)
    exact = Preparation(dtype="float64").fit_transform(mv)
    s = rng.gamma(0.5, size=150_000)
    a = rng.normal(size=(60, 1))
    for name in "xg":
        assert (wide[name].dtype, exact[name].dtype) == (np.float32, np.float64)
        for product, argument in (
            ("weighted_gram", s),
            ("weighted_gram", None),
            ("project", a),
            ("apply", s[:, None]),
        ):
            one = getattr(wide[name], product)(argument)
            two = getattr(exact[name], product)(argument)
            assert np.abs(one - two).max() <= 1e-6 * np.abs(two).max(), (name, product)


def test_mapped_and_in_memory_views_give_the_same_bits(tmp_path, constants):
    """Workers see arrays as memory maps; their results must not differ."""
    constants(FLOAT64_LIMIT_BYTES=10_000)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 3000)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = rng.permutation(40)[:30]
    one = Preparation().fit_transform(MultiView({"v": x})[rows])["v"]
    two = Preparation().fit_transform(MultiView({"v": mapped})[rows])["v"]
    assert (one.is_array, two.is_array) == (True, False)
    s = rng.gamma(1, size=3000)
    np.testing.assert_array_equal(one.weighted_gram(s), two.weighted_gram(s))
    A = rng.normal(size=(30, 1))
    for got, want in zip(
        one.project_with_quadratics(A, [np.eye(30)]),
        two.project_with_quadratics(A, [np.eye(30)]),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


def test_large_maps_are_read_from_their_file(tmp_path, constants):
    constants(FILE_READ_BYTES=100)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20, 300))
    for order in "CF":
        path = tmp_path / f"{order}.npy"
        np.save(path, np.asarray(x, order=order))
        mapped = np.load(path, mmap_mode="r")
        assert sources.reads_by_file(mapped)
        assert not sources.reads_by_file(mapped[3:, 5:])
        assert not sources.reads_by_file(np.load(path, mmap_mode="c"))
        for part, cells in ((mapped, x), (mapped[3:, 5:], x[3:, 5:])):
            for rows in (slice(None), [7, 2, 2], [4, 5, 6], []):
                view = MultiView({"v": part})[rows].view("v")
                for cols in (slice(10, 20), slice(3, 90, 7), slice(5, 5), [4, 1, 250], [], None):
                    want = cells[rows] if cols is None else cells[rows][:, cols]
                    np.testing.assert_array_equal(view.read(cols), want)
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(InputError, match="changed since it was opened"):
            MultiView({"v": mapped}).view("v").raw(slice(200, 210))


@settings(max_examples=100)
@given(
    order=st.sampled_from("CF"),
    most=st.sampled_from([1, 64, 1 << 22]),
    rows=st.lists(st.integers(0, 8), max_size=12),
    cols=st.lists(st.integers(0, 11), max_size=12),
)
def test_lines_of_a_map_are_read_together_as_one_by_one(tmp_path_factory, order, most, rows, cols):
    x = np.arange(108.0).reshape(9, 12)
    path = tmp_path_factory.mktemp("map") / "x.npy"
    np.save(path, np.asarray(x, order=order))
    mapped = np.load(path, mmap_mode="r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("baldur.views.sources.READ_BYTES", most)
        index = np.array(rows, dtype=int), np.array(cols, dtype=int)
        found = sources.read_mapped(mapped, *index)
        every = sources.read_mapped(mapped, None, slice(1, None))
    np.testing.assert_array_equal(found, x[np.ix_(*index)])
    np.testing.assert_array_equal(every, x[:, 1:])


def test_lazy_views_are_read_in_blocks_of_the_stated_size():
    rng = np.random.default_rng(4)
    lazy = Lazy(rng.integers(0, 3, (30, 20_000)).astype(np.int8))
    view = Preparation(max_bytes=100_000).fit_transform(MultiView({"v": lazy}))["v"]
    view.weighted_gram()
    assert 50_000 < lazy.largest <= 100_000


def test_columns_of_weight_zero_are_not_read():
    lazy = Lazy(np.random.default_rng(4).integers(0, 3, (30, 20_000)).astype(np.int8))
    view = Preparation().fit_transform(MultiView({"v": lazy}))["v"]
    s = np.zeros(20_000)
    s[[3, 15_000]] = 1
    lazy.largest = 0
    view.weighted_gram(s)
    assert lazy.largest == 60


def test_blocks_cover_every_column_once():
    for n, d, itemsize, max_bytes in ((10, 7, 8, 160), (3, 1, 1, 1), (5, 100, 4, 10**9)):
        cut = list(sources.column_blocks(n, d, itemsize, max_bytes))
        assert [i for c in cut for i in range(c.start, c.stop)] == list(range(d))


def test_infinities_in_new_rows_are_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(10, 5))
    preparation = Preparation().fit(MultiView({"v": x}))
    x[3, 2] = np.inf
    np.save(tmp_path / "x.npy", x)
    for matrix in (x, Lazy(x)):
        with pytest.raises(InputError, match=r"View 'v': expected finite.*infinities"):
            preparation.transform(MultiView({"v": matrix}))["v"].weighted_gram()


def test_wrong_shapes_and_sizes_are_explained():
    view = Preparation().fit_transform(MultiView({"v": np.random.default_rng(0).random((9, 4))}))[
        "v"
    ]
    other = Preparation().fit_transform(MultiView({"v": np.random.default_rng(0).random((9, 5))}))[
        "v"
    ]
    for call, words in (
        (lambda: view.project(np.ones((4, 1))), r"'v': A must have shape \(9, 'k'\).*\(4, 1\)"),
        (lambda: view.apply(np.ones(4)), r"'v': B must have shape"),
        (lambda: view.weighted_gram(np.ones(9)), r"'v': s must have shape \(4,\)"),
        (lambda: view.weighted_gram(np.full(4, np.inf)), "finite"),
        (
            lambda: view.project_with_quadratics(np.ones((9, 1)), [np.eye(4)]),
            r"'v': M must have shape \(9, 9\)",
        ),
        (lambda: view.cross_gram(other), "'v': .* 4 and 5"),
        (lambda: view.dense(max_bytes=10), "'v': 9 x 4 cells.*limit"),
    ):
        with pytest.raises(InputError, match=words):
            call()


SCRIPT = """
import resource, sys
import numpy as np
from baldur import MultiView
from baldur.preparation import Preparation

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

before = peak()
snps = np.load(sys.argv[1], mmap_mode="r")
mv = MultiView({"snps": snps})[np.arange(0, len(snps), 2)]
view = Preparation(max_bytes=1 << 24).fit_transform(mv)["snps"]
view.weighted_gram()
statistics = 8 * 8 * snps.shape[1] / 2**20
print(peak() - before - statistics)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_peak_memory_does_not_follow_a_file_of_three_million_columns(tmp_path):
    """Beyond a few numbers per column, memory is that of one block: 40 MB for a 600 MB file."""
    used = {}
    for d in (300_000, 3_000_000):
        path = tmp_path / f"{d}.npy"
        snps = np.lib.format.open_memmap(path, "w+", np.int8, (200, d))
        rng = np.random.default_rng(0)
        for row in snps:
            row[:] = rng.integers(0, 3, d, dtype=np.int8)
        snps.flush()
        del snps
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
        )
        used[d] = float(done.stdout)
    assert used[3_000_000] < used[300_000] + 60, used
