"""Independent random streams from one seed, one for each part of a simulation."""

import numpy as np

from baldur.exceptions import InputError

RandomState = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


def streams(random_state: RandomState, count: int) -> list[np.random.Generator]:
    """Return `count` generators that depend only on `random_state`.

    Examples
    --------
    >>> a, b = streams(0, 2)
    >>> bool(a.random() == streams(0, 1)[0].random())
    True
    """
    root: np.random.SeedSequence
    if isinstance(random_state, np.random.SeedSequence):
        # A copy, because spawning changes a sequence.
        root = np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    elif isinstance(random_state, np.random.Generator):
        root = np.random.SeedSequence([int(v) for v in random_state.integers(2**32, size=4)])
    elif isinstance(random_state, np.random.RandomState):
        root = np.random.SeedSequence([int(v) for v in random_state.randint(2**31 - 1, size=4)])
    elif random_state is None:
        root = np.random.SeedSequence()
    elif isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"random_state must not be negative, but got {random_state}.")
        root = np.random.SeedSequence(int(random_state))
    else:
        raise InputError(
            "random_state must be an integer, a numpy Generator or RandomState, a SeedSequence or "
            f"None, but got {type(random_state).__name__}."
        )
    return [np.random.Generator(np.random.PCG64(child)) for child in root.spawn(count)]
