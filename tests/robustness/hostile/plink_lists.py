"""PLINK, second round: headers with columns twice, lines that differ, forged genotype records."""

import random

import numpy as np

from robustness.hostile.base import Case
from robustness.hostile.plink import BIM, FAM, GOOD, PEOPLE, PSAM, PVAR, VARIANTS, bed, files


def psam(text):
    return files(pgen=GOOD, psam=text)


def pvar(text):
    return files(pgen=GOOD, pvar=text)


def lines(*fields, n=PEOPLE):
    return "".join(" ".join(f.replace("#", str(i)) for f in fields) + "\n" for i in range(n))


def sparse_file(ending, size, start=b""):
    """A list that takes no room on disk: one line of zero bytes."""

    def make(folder, outside):
        path = psam(PSAM)(folder, outside)
        with (folder / f"f.{ending}").open("r+b") as file:
            file.write(start)
            file.truncate(size)
        return path

    return make


def records(seed, mode=None):
    """A .pgen file with records of varying length, some of its bytes changed."""

    def make(folder, outside):
        import pgenlib

        n, d = 40, 60
        rng = np.random.default_rng(seed)
        path = folder / "f.pgen"
        cells = rng.choice([0, 0, 0, 0, 0, 1, 2, -9], size=(d, n)).astype(np.int8)
        cells[1::3] = cells[::3]
        cells[2::3] = 0
        with pgenlib.PgenWriter(str(path).encode(), n, d, False) as writer:
            for row in cells:
                writer.append_biallelic(row)
        (folder / "f.psam").write_text("#IID\n" + "".join(f"p{i}\n" for i in range(n)))
        (folder / "f.pvar").write_text(
            "#CHROM\tPOS\tID\tREF\tALT\n" + "".join(f"1\t{j}\tv{j}\tA\tC\n" for j in range(d))
        )
        raw = bytearray(path.read_bytes())
        dice = random.Random(seed)
        # The header has the kinds and lengths of records, which the reader follows.
        last = len(raw) if seed % 2 else 12 + 8 + 2 * d
        for _ in range(dice.choice([1, 3, 10])):
            raw[dice.randrange(11, last)] = dice.choice([0, 1, 2, 4, 8, 16, 127, 128, 255])
        if seed % 7 == 0:
            del raw[dice.randrange(12, len(raw)) :]
        path.write_bytes(raw)
        return path

    return make


HEADERS = {
    "people: id twice": "#IID IID\n" + lines("p#", "q#"),
    "people: sex twice": "#FID IID SEX SEX\n" + lines("f", "p#", "1", "2"),
    "people: two outcomes": "#IID PHENO1 PHENO\n" + lines("p#", "1", "2"),
    "people: father twice": "#IID PAT father\n" + lines("p#", "0", "0"),
    "people: no id": "#FID SEX\n" + lines("f", "1"),
    "people: columns called like ours": "#IID sample family phenotype sex\n" + lines("p#", "a", "b", "c", "d"),
    "people: a header alone": "#IID\n",
    "people: headers without end": "#IID\n" * 100_000,
    "people: fewer fields": "#FID IID SEX\nf p0 1\nf p1\nf p2 1\nf p3 1\nf p4 1\nf p5 1\n",
    "people: more fields": "#FID IID\nf p0\nf p1 x\n" + lines("f", "q#", n=4),
    "people: id missing": "#FID IID\n" + "f\n" * PEOPLE,
    "people: quotes": '#IID\n"p0\np1"\n' + lines("q#", n=4),
    "people: other line ends": PSAM.replace("\n", "\r"),
    "people: a mark of order": "\ufeff" + PSAM,
    "people: outcome 1e999": "#IID PHENO1\n" + lines("p#", "1e999"),
    "people: not UTF-8": b"#IID\np\xff\n" + lines("q#", n=5).encode(),
    "people: NA as id": "#IID\n" + "NA\n" * PEOPLE,
}  # fmt: skip
VARIANT_HEADERS = {
    "variants: id twice": PVAR.replace("REF", "ID", 1),
    "variants: position twice": PVAR.replace("REF", "POS", 1),
    "variants: alleles twice": PVAR.replace("REF", "ALT", 1),
    "variants: called like ours": PVAR.replace("REF", "allele_1", 1),
    "variants: no ids": PVAR.replace("ID", "IX", 1),
    "variants: fewer fields": PVAR.replace("1\t3\tv3\tA\tC", "1\t3\tv3"),
    "variants: more fields": PVAR.replace("1\t3\tv3\tA\tC", "1\t3\tv3\tA\tC\tD\tE"),
    "variants: fewer fields without a name": PVAR.replace("1\t3\tv3\tA\tC", "1\t3\t.\tA"),
    "variants: position of a half": PVAR.replace("1\t3\tv3", "1\t3.5\tv3"),
    "variants: position of no number": PVAR.replace("1\t3\tv3", "1\tnan\tv3"),
    "variants: position below 0": PVAR.replace("1\t3\tv3", "1\t-5\tv3"),
    "variants: one name": PVAR.replace("\tv", "\tx").replace("x3\t", "x4\t"),
    "variants: many alleles": PVAR.replace("v3\tA\tC", "v3\tA\tC,G"),
    "variants: no alleles": PVAR.replace("v3\tA\tC", "v3\t.\t."),
    "variants: not UTF-8": PVAR.encode().replace(b"v3", b"v\xff"),
    "variants: other line ends": PVAR.replace("\n", "\r"),
    "variants: a comment between": PVAR.replace("1\t3\tv3", "#1\t3\tv3"),
    "variants: a header again": PVAR.replace("1\t3\tv3\tA\tC", "#CHROM\tPOS\tID\tREF\tALT"),
}  # fmt: skip
LISTS = {
    "one more field in the last line": {"bim": BIM[:-1] + " X\n"},
    "one field less in the last line": {"bim": BIM[:-3] + "\n"},
    "a name that is missing": {"bim": BIM.replace("1 v3 0 3 A C", "1  0 3 A C")},
    "centimorgans of text": {"bim": BIM.replace("v3 0", "v3 far")},
    "position 2**63": {"bim": BIM.replace("v3 0 3 ", f"v3 0 {2**63} ")},
    "infinite centimorgans": {"bim": BIM.replace("v3 0", "v3 inf")},
    "quotes around a variant": {"bim": BIM.replace("v3", '"v3')},
    "person of five fields": {"fam": FAM.replace("f3 p3 0 0 1 1", "f3 p3 0 0 1")},
    "person twice": {"fam": FAM.replace("p3", "p4")},
    "person twice in a family": {"fam": FAM.replace("f3 p3", "f4 p4")},
    "sex of text": {"fam": FAM.replace("0 0 1 1", "0 0 yes 1")},
    "genotypes of nobody": {"bed": bed(0, VARIANTS)},
    "one byte of genotypes more": {"bed": bed(PEOPLE, VARIANTS) + b"\0"},
    "genotypes of more people": {"bed": bed(PEOPLE, VARIANTS)[:-1] + b"\xf0"},
    "a header of genotypes": {"bed": b"\x6c\x1b\x01"},
    "genotypes that are text": {"bed": b"chr1\t0\t100\n" * 20},
}  # fmt: skip

CASES = {
    **{name: Case(psam(text), "plink", read=True) for name, text in HEADERS.items()},
    **{name: Case(pvar(text), "plink", read=True) for name, text in VARIANT_HEADERS.items()},
    **{name: Case(files(**parts), "plink", read=True) for name, parts in LISTS.items()},
    "a sparse list of people": Case(sparse_file("psam", 150 << 20), "plink"),
    "a sparse list of variants": Case(sparse_file("pvar", 240 << 20), "plink"),
    "a sparse comment": Case(sparse_file("pvar", 240 << 20, b"##"), "plink"),
    **{f"forged records {seed}": Case(records(seed), "plink", read=True) for seed in range(40)},
}
