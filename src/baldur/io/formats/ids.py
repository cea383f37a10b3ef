"""Sample ids written in different ways: a simplified form, and pairs that look alike."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pandas as pd

_PREFIX = re.compile(r"^(?:participant|subject|patient|sample|subj|sub|ppt|pat|pid|iid|id)(?=\d|$)")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_MARKS = re.compile(r"[\W_]+")


def simplify_id(sample_id: object) -> str:
    """Return an id in lower case, without punctuation, common prefixes and leading zeros.

    Examples
    --------
    >>> from baldur.io.formats.ids import simplify_id
    >>> [simplify_id(one) for one in ("sub-01", "SUB_001", "01", 1, "NA19916")]
    ['1', '1', '1', '1', 'na19916']
    """
    text = str(sample_id).strip().casefold()
    # Zeros first, while punctuation still separates one number from the next.
    plain = _MARKS.sub("", _ZEROS.sub("", text))
    return _PREFIX.sub("", plain) or plain or text


def near_misses(ids: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return pairs of different ids that look alike, across and within views.

    Pairs of ids that both occur in every view they could be matched in are left out: they are
    different people.
    """
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for view, listed in ids.items():
        for one in listed:
            groups[simplify_id(one)][str(one)].append(view)
    rows = []
    for written in groups.values():
        forms = list(written)
        for i, one in enumerate(forms):
            for other in forms[i + 1 :]:
                if set(written[one]) == set(written[other]) == set(ids) and len(ids) > 1:
                    continue
                rows.append((written[one][0], one, written[other][0], other))
    return pd.DataFrame(rows, columns=["view", "id", "other_view", "other_id"])
