""".npy and .npz: headers that lie, names without end."""

import io
import struct

import numpy as np

from robustness.hostile.base import Case, archive, content


def head(shape, dtype="<f8", fortran=False):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "fortran_order": fortran, "descr": dtype}
    )
    return stream.getvalue()


def zipped(members, name="f.npz"):
    """Make an archive; a member is bytes, or (bytes, number of megabytes of zeros)."""

    def make(folder, outside):
        parts = {
            key: (*data[:1], bytes(1 << 20), data[1], b"") if isinstance(data, tuple)
            else (data, b"", 0, b"")
            for key, data in members.items()
        }  # fmt: skip
        return archive(folder / name, parts)

    return make


def saved(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return content("f.npz", stream.getvalue())


X = head((4, 4)) + bytes(128)
LONG = b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xF0000000)
WILD = np.frombuffer(struct.pack("<4I", 65, 0x7FFFFFFF, 66, 67), "<U1")

CASES = {
    "matrix of 2 GB zeros": Case(zipped({"X.npy": (head((256, 1 << 20)), 2048)})),
    "wide names": Case(zipped({"X.npy": X, "features.npy": (head((4,), "<U67108864"), 1024)})),
    "wide names at the limit": Case(
        zipped({"X.npy": head((1, 16384), "|i1") + bytes(16384),
                "features.npy": (head((16384,), "<U19984"), 1249)})
    ),
    "wide sample ids": Case(zipped({"X.npy": X, "samples.npy": (head((4,), "<U33554432"), 512)})),
    "wide bytes": Case(zipped({"X.npy": X, "features.npy": (head((4,), "|S134217728"), 512)})),
    "many names": Case(
        zipped({"X.npy": X, "features.npy": (head((1 << 27,), "<U1"), 512)})
    ),
    "header of 4 GB": Case(zipped({"X.npy": (LONG, 600)})),
    "header of 4 GB in .npy": Case(content("f.npy", LONG + bytes(1 << 20))),
    "claims in .npz": Case(zipped({"X.npy": head((1 << 40, 1 << 20)) + bytes(100)})),
    "claims in .npy": Case(content("f.npy", head((1 << 40, 1 << 20)) + bytes(100))),
    "negative shape": Case(content("f.npy", head((-1, 5)) + bytes(100))),
    "shape beyond 64 bits": Case(content("f.npy", head((1 << 70, 1)) + bytes(100))),
    "no rows": Case(content("f.npy", head((0, 5)))),
    "fields": Case(content("f.npy", head((2, 2), [("a", "<f8"), ("b", "<f8")]) + bytes(64))),
    "complex": Case(content("f.npy", head((2, 2), "<c16") + bytes(64))),
    "dates": Case(content("f.npy", head((2, 2), "<M8[s]") + bytes(32))),
    "text for numbers": Case(content("f.npy", head((2, 2), "<U1") + bytes(16))),
    "nested header": Case(
        content("f.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"(" * 60_000)
    ),
    "names beyond Unicode": Case(saved(X=np.eye(4), features=WILD)),
    "lone surrogates": Case(saved(X=np.eye(2), features=np.array(["a", "\ud800"]))),
    "escape codes": Case(saved(X=np.eye(2), features=np.array(["a", "\x1b[2J"]))),
    "dates for names": Case(saved(X=np.eye(2), features=np.array(["2020", "2021"], "M8[Y]"))),
    "fewer names": Case(saved(X=np.eye(3), features=np.array(["a"]))),
    "two thousand members": Case(zipped({f"m{i}.npy": head((1, 1)) for i in range(2000)})),
    "member outside": Case(zipped({"../../X.npy": X}), read=True),
    "not a zip": Case(content("f.npz", b"PK\x03\x04" + bytes(1000))),
}  # fmt: skip
