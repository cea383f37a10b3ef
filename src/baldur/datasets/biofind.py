"""make_biofind_like: five views of 215 people, one of them 841,685 genotypes wide."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from sklearn.utils import Bunch

from baldur.core.parameters import FRACTION, check
from baldur.datasets.simulated_outcomes import (
    RandomState,
    Truth,
    draw_cohort,
    scaled_width,
    streams,
)
from baldur.views import MultiView

N_PATIENTS = 119
N_CONTROLS = 96
N_GENOTYPES = 841_685
MISSING = -127  # the code for "not called" in int8, as in `read_plink`

# Columns are drawn in frames: within one the alleles of a haplotype follow a chain, and the chain
# is cut at random places, where a new linkage block begins. A chunk of frames has its own random
# stream, so the bytes do not depend on how chunks are processed.
_FRAME = 64
_FRAMES_PER_CHUNK = 64
_MEAN_BLOCK = 12

# Lengths of the autosomes in megabases, rounded; markers are spread in proportion.
_CHROMOSOMES = (
    249, 242, 198, 190, 182, 171, 159, 145, 138, 134, 135,
    133, 114, 107, 102, 90, 83, 80, 59, 64, 47, 51,
)  # fmt: skip

# The seven items the published analysis selected in every fold.
SIGNAL_ITEMS = ("DRMAGRAC", "DRMNOCTB", "DRMVERBL", "DRMFIGH", "RLS", "SLPINJUR", "DEPRS")
N_SLEEP = 19
N_MOCA = 18
DEMOGRAPHICAL = (
    "age", "sex", "height", "weight", "left_handed", "pulse", "systolic", "diastolic",
)  # fmt: skip


def make_biofind_like(
    scale: float = 1.0,
    *,
    linkage: bool = True,
    missing_calls: float = 0.002,
    random_state: RandomState = None,
) -> Bunch:
    """Simulate a cohort shaped as BioFIND: Parkinson's disease against controls.

    Views: ``neuropsychological`` (18 test scores, correlated), ``sleep`` (19 yes/no items),
    ``socio-economic`` (2), ``demographical`` (8) and ``genetic`` (841,685 int8 genotypes with
    linkage blocks). Only seven sleep items have to do with the disease.

    Parameters
    ----------
    scale : float, default=1.0
        Share of the genotypes to draw, above 0 and at most 1. The other views do not change.
    linkage : bool, default=True
        Draw genotypes in linkage blocks. Otherwise all markers are independent, and more of them
        are associated with the disease by chance.
    missing_calls : float, default=0.002
        Share of genotypes that were not called (code -127).
    random_state : int, Generator, RandomState, SeedSequence or None
        Seed. The same seed gives the same bytes.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (`MultiView`, 215 rows), ``target`` (1 for the 119 patients, 0 for the 96
        controls), ``target_names`` and ``truth`` (`Truth`). Given the diagnosis the sleep items
        are independent, so the log-odds of the disease are linear in them: an effect is the log
        odds ratio of its item, and ``truth.score`` the log-odds of each person.

    Notes
    -----
    What the paper states of the real cohort: 119 patients and 96 controls (a prevalence of 55 %),
    the numbers of features of the five views, the names of the seven sleep items that its model
    selected in every fold, and that no other view was selected.

    Assumptions, which the paper does not settle: all other features are without effect. A control
    answers yes to a sleep item with a probability drawn from .15 to .5, and an item with effect
    has a log odds ratio drawn from 1.0 to 1.6 (odds ratios of 2.7 to 5). Given the diagnosis items
    are independent. The true log-odds then separate the classes with an AUC of .80 to .92 (40
    seeds, mean .87), whereas the paper reports .73: the simulated disease is easier to recognise.
    MoCA items correlate by .27. Minor allele frequencies lie between .02 and .5, the rarer the
    more numerous. Neighbouring variants in a linkage block (10 variants on average) correlate on
    the latent scale by .6 to .98, and variants of different blocks not at all. 0.2 % of calls are
    missing.

    Genotypes are drawn in blocks of columns straight into int8: 181 MB at full scale, and little
    beyond that while drawing.

    Examples
    --------
    >>> from baldur.datasets import make_biofind_like
    >>> cohort = make_biofind_like(scale=0.001, random_state=0)
    >>> cohort.data.n_features["genetic"], cohort.truth.views
    (842, ['sleep'])
    """
    width = scaled_width(scale, N_GENOTYPES, least=1)
    check("missing_calls", missing_calls, FRACTION)
    order, narrow, sleep, genetic = streams(random_state, 4)

    n = N_PATIENTS + N_CONTROLS
    target = draw_cohort(N_PATIENTS, N_CONTROLS, order)
    items, log_odds, intercept = _draw_sleep(target, sleep)
    genotypes, markers = draw_genotypes(n, width, missing_calls, genetic, linkage=linkage)
    scores, socioeconomic, demographical = _draw_tables(n, narrow)
    views: dict[str, NDArray[np.generic]] = {
        "neuropsychological": scores,
        "sleep": items,
        "socio-economic": socioeconomic,
        "demographical": demographical,
        "genetic": genotypes,
    }
    rest = range(len(SIGNAL_ITEMS) + 1, N_SLEEP + 1)
    data = MultiView(
        views,
        sample_ids=np.array([f"biofind{i:03d}" for i in range(n)]),
        feature_names={
            "neuropsychological": [f"MOCA{j + 1:02d}" for j in range(N_MOCA)],
            "sleep": [*SIGNAL_ITEMS, *(f"SLEEP{j:02d}" for j in rest)],
            "socio-economic": ["education_years", "income_band"],
            "demographical": list(DEMOGRAPHICAL),
        },
        feature_info={"genetic": markers},
    )
    none = np.empty(0)
    columns = np.flatnonzero(log_odds)
    truth = Truth(
        n_features={v: X.shape[1] for v, X in views.items()},
        features=dict.fromkeys(views, none.astype(np.intp)) | {"sleep": columns},
        effects=dict.fromkeys(views, none) | {"sleep": log_odds[columns]},
        intercept=np.array([intercept]),
        score=intercept + items @ log_odds,
    )
    return Bunch(data=data, target=target, target_names=np.array(["control", "PD"]), truth=truth)


def _draw_sleep(
    target: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Draw yes/no items (n, N_SLEEP); also return their log odds ratios and an intercept.

    The log odds of the disease given the items are intercept + items @ log_odds. In the first seven
    items "yes" is commoner in patients.
    """
    base = logit(rng.uniform(0.15, 0.5, N_SLEEP))
    log_odds = np.zeros(N_SLEEP)
    log_odds[: len(SIGNAL_ITEMS)] = rng.uniform(1.0, 1.6, len(SIGNAL_ITEMS))
    p_yes = expit(base + np.outer(target, log_odds))
    items = (rng.random(p_yes.shape) < p_yes).astype(np.float64)
    # Bayes' rule: each item adds x * effect + ln (1 - p_patient)/(1 - p_control).
    intercept = float(
        np.log(N_PATIENTS / N_CONTROLS)
        + np.sum(np.log1p(np.exp(base)) - np.log1p(np.exp(base + log_odds)))
    )
    return items, log_odds, intercept


def _draw_tables(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], ...]:
    """Draw test scores from 0 to 5, education and income, and the columns of `DEMOGRAPHICAL`."""
    ability = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, N_MOCA))
    scores = np.clip(np.rint(3.5 + (np.sqrt(0.3) * ability + np.sqrt(0.7) * own)), 0.0, 5.0)
    education_years = np.clip(np.rint(rng.normal(15.5, 2.8, n)), 6, 24)
    income_band = rng.integers(1, 7, n)
    male = rng.random(n) < 0.6
    height = rng.normal(164, 7, n) + 12 * male
    demographical = [
        np.clip(rng.normal(67, 7, n), 50, 90),  # age
        male,
        height,
        rng.normal(26.5, 4, n) * (height / 100) ** 2,  # weight, from the body mass index
        rng.random(n) < 0.1,  # left-handed
        rng.normal(70, 10, n),  # pulse
        rng.normal(130, 15, n),  # systolic and diastolic blood pressure
        rng.normal(78, 9, n),
    ]
    socioeconomic = np.column_stack([education_years, income_band]).astype(np.float64)
    return scores, socioeconomic, np.column_stack(demographical).astype(np.float64)


def draw_genotypes(
    n: int, width: int, missing: float, seeds: np.random.Generator, *, linkage: bool = True
) -> tuple[NDArray[np.int8], pd.DataFrame]:
    """Draw minor-allele counts of `n` people at `width` markers.

    Each person has two haplotypes. Along a haplotype a Gaussian chain with correlation 0.6 to
    0.98 inside a linkage block, and none across blocks, is cut at the quantile of the marker's
    minor-allele frequency.

    A share `missing` of the genotypes is not called. With them come the places of the markers,
    their blocks and frequencies.

    Shapes: returns genotypes (n, width) and a table of `width` rows.
    """
    genotypes = np.empty((n, width), dtype=np.int8)
    maf = np.empty(width, dtype=np.float32)
    step = _FRAME * _FRAMES_PER_CHUNK
    chunks = range(0, width, step)
    position_rng, *rngs = seeds.spawn(len(chunks) + 1)
    chromosome, position = _place_markers(width, position_rng)
    starts = np.diff(chromosome, prepend=np.int8(0)) != 0  # of chromosomes, then of all blocks
    for first, rng in zip(chunks, rngs, strict=True):
        cols = slice(first, min(first + step, width))
        used = cols.stop - cols.start  # the last chunk is drawn whole and cut
        begins = np.zeros(step, dtype=bool)
        begins[:used] = starts[cols]
        counts, p, new_block = _draw_chunk(n, begins, _MEAN_BLOCK if linkage else 1, rng)
        maf[cols] = p[:used]
        starts[cols] = new_block[:used]
        genotypes[:, cols] = counts[:used].T
        if missing > 0:
            rows = rng.integers(n, size=rng.binomial(n * used, missing))
            genotypes[rows, first + rng.integers(used, size=len(rows))] = MISSING
    markers = pd.DataFrame(
        {
            "chromosome": chromosome,
            "position": position,
            "block": np.cumsum(starts, dtype=np.int32) - np.int32(1),
            "maf": maf,
        }
    )
    return genotypes, markers


def _draw_chunk(
    n: int, begins: NDArray[np.bool_], mean_block: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_]]:
    """Draw minor-allele counts of one chunk, (markers, n); their frequencies and starts of blocks.

    Blocks begin at random, at each frame, and where `begins` says that a chromosome begins.
    """
    shape = (_FRAME, _FRAMES_PER_CHUNK)
    # Common markers: frequencies from 0.02 to 0.5, the rarer ones more numerous.
    maf = 0.02 + 0.48 * rng.beta(0.9, 1.5, shape)
    new_block = rng.random(shape) < 1.0 / mean_block
    new_block[0] = True
    new_block |= begins.reshape(_FRAMES_PER_CHUNK, _FRAME).T
    rho = np.where(new_block, 0.0, rng.uniform(0.6, 0.98, shape)).astype(np.float32)
    innovation_sd = np.sqrt(1.0 - rho**2)  # keeps the variance of the chain at 1
    threshold = ndtri(maf).astype(np.float32)
    counts = np.empty((_FRAMES_PER_CHUNK, _FRAME, n), dtype=np.int8)
    chain = np.zeros((_FRAMES_PER_CHUNK, 2 * n), dtype=np.float32)  # two haplotypes per person
    draw = np.empty_like(chain)
    # Over the markers of a frame, all frames at once.
    for j in range(_FRAME):
        rng.standard_normal(out=draw, dtype=np.float32)
        draw *= innovation_sd[j, :, None]
        chain *= rho[j, :, None]
        chain += draw
        allele = chain < threshold[j, :, None]
        np.add(allele[:, :n], allele[:, n:], out=counts[:, j], dtype=np.int8)
    return (
        counts.reshape(-1, n),
        maf.T.reshape(-1).astype(np.float32),
        np.ascontiguousarray(new_block.T).reshape(-1),
    )


def _place_markers(
    width: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Return chromosome and position of each marker, ascending, evenly over all chromosomes."""
    lengths = np.array(_CHROMOSOMES, dtype=np.float64) * 1e6
    ends = np.rint(np.cumsum(lengths) / lengths.sum() * width).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    chromosome = np.repeat(np.arange(1, len(lengths) + 1, dtype=np.int8), counts)
    position = np.concatenate(
        [
            np.sort(rng.integers(1, int(length), size=count, dtype=np.int32))
            for length, count in zip(lengths, counts, strict=True)
        ]
    )
    return chromosome, position
