"""PLINK: parts that lead outside, lists without end."""

import numpy as np

from robustness.hostile.base import CANARY, Case

PEOPLE, VARIANTS = 6, 40
FAM = "".join(f"f{i} p{i} 0 0 1 1\n" for i in range(PEOPLE))
BIM = "".join(f"1 v{j} 0 {j} A C\n" for j in range(VARIANTS))
PSAM = "#IID\n" + "".join(f"p{i}\n" for i in range(PEOPLE))
PVAR = "#CHROM\tPOS\tID\tREF\tALT\n" + "".join(f"1\t{j}\tv{j}\tA\tC\n" for j in range(VARIANTS))


def files(**parts):
    """Write a set of three files, some of them replaced; None makes a link to outside."""

    def make(folder, outside):
        given = {"bed": bed(PEOPLE, VARIANTS), "fam": FAM, "bim": BIM, **parts}
        if "pgen" in parts:
            given = {"psam": PSAM, "pvar": PVAR, **parts}
        for ending, data in given.items():
            path = folder / f"f.{ending}"
            if data is None:
                secret = {"fam": FAM, "bim": BIM, "psam": PSAM, "pvar": PVAR}.get(ending, "")
                hidden = outside / f"f.{ending}"
                hidden.write_bytes(
                    secret.replace("p0", CANARY).replace("v0", CANARY).encode()
                    or bed(PEOPLE, VARIANTS)
                )
                path.symlink_to(hidden)
            else:
                path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return folder / ("f.pgen" if "pgen" in parts else "f.bed")

    return make


def bed(n, d):
    width = (n + 3) // 4
    cells = np.zeros((d, width), np.uint8)
    return b"\x6c\x1b\x01" + cells.tobytes()


def pgen(n, d, cells=None):
    width = (n + 3) // 4
    body = bytes(d * width) if cells is None else cells
    return b"\x6c\x1b\x02" + d.to_bytes(4, "little") + n.to_bytes(4, "little") + b"\x40" + body


def long_name(length, n, key="v"):
    lines = [f"1 {key}{j} 0 {j} A C\n" for j in range(n - 1)]
    return "".join([*lines, f"1 {'x' * length} 0 {n} A C\n"])


def variants(text):
    n = text.count("\n")
    return files(bim=text, bed=bed(PEOPLE, n))


GOOD = pgen(PEOPLE, VARIANTS)
CASES = {
    **{f"link at .{part}": Case(files(**{part: None}), "view") for part in ("bed", "bim", "fam")},
    **{
        f"link at .{part}": Case(files(**{"pgen": GOOD, part: None}), "view")
        for part in ("pgen", "psam", "pvar")
    },
    "long name of a variant": Case(variants(long_name(100_000, 200_000)), "plink"),
    "long name at the limit": Case(variants(long_name(19_000, 200_000)), "plink"),
    "long alleles without a name": Case(
        variants(
            "".join(f"1 v{j} 0 {j} A C\n" for j in range(100_000)) + "1 . 0 5 A " + "C" * 90_000 + "\n"
        ),
        "plink",
    ),
    "a million fields": Case(files(bim="1 " * 1_000_000 + "\n"), "plink"),
    "a line of five million characters": Case(files(bim="1 " + "v" * 5_000_000 + " 0 1 A C\n"), "plink"),
    "a million fields of a person": Case(files(fam="1 " * 1_000_000 + "\n"), "plink"),
    "a line without end in .fam": Case(files(fam="x" * 5_000_000), "plink"),
    "zero bytes": Case(files(bim=bytes(100_000)), "plink"),
    "blank lines": Case(files(bim="\n" * 5_000_000), "plink"),
    "comments without end": Case(files(pgen=GOOD, pvar="##x\n" * 1_000_000), "plink"),
    "header alone": Case(files(pgen=GOOD, pvar="#CHROM\tPOS\tID\tREF\tALT\n"), "plink"),
    "header of many columns": Case(
        files(pgen=GOOD, pvar="#CHROM\t" + "\t".join(f"c{j}" for j in range(100_000)) + "\n1\n"), "plink"
    ),
    "positions beyond 64 bits": Case(variants("1 v 0 99999999999999999999999 A C\n" * 5), "plink"),
    "positions of text": Case(variants("1 v 0 here A C\n" * 5), "plink"),
    "escape codes in a variant": Case(variants("1 v\x1b[2J 0 1 A C\n"), "plink"),
    "escape codes in a person": Case(files(fam=FAM.replace("p1", "p\x1b[2J")), "plink"),
    "long id of a person": Case(files(fam=FAM.replace("p1", "p" * 100_000)), "plink"),
    "other number of people": Case(files(fam=FAM + "x y 0 0 1 1\n" * 4), "plink"),
    "more people than there can be": Case(files(pgen=pgen(2**31 - 1, 1, b"")), "plink"),
    "more variants than there can be": Case(files(pgen=pgen(1, 2**31 - 1, b"")), "plink"),
    "other mode": Case(files(pgen=GOOD[:2] + b"\x20" + GOOD[3:]), "plink"),
    "index in another file": Case(files(pgen=GOOD[:2] + b"\x21" + GOOD[3:]), "plink"),
    "varying records, cut": Case(files(pgen=GOOD[:2] + b"\x10" + GOOD[3:12]), "plink"),
    "varying records, wild": Case(files(pgen=GOOD[:2] + b"\x10" + GOOD[3:11] + b"\xff" * 3000), "plink"),
    "people by person": Case(files(bed=bed(PEOPLE, VARIANTS).replace(b"\x1b\x01", b"\x1b\x00", 1)), "plink"),
}  # fmt: skip
