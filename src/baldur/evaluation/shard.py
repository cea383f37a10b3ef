"""A part of a study's work, for job arrays whose tasks share a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from baldur.exceptions import InputError

__all__ = ["Shard"]

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` parts."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """Read "3/20".

        Parameters
        ----------
        text : str
            Number of the part and number of parts.

        Returns
        -------
        Shard

        Examples
        --------
        >>> from baldur.evaluation.shard import Shard
        >>> Shard.of("3/20")
        Shard(number=3, count=20)
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise InputError(
                "a shard must be written like 3/20, with the number from 1 to the count, but got "
                f"{text!r}; an array job counts from 1 with --array=1-20."
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part_of(self, places: Sequence[T], models: Sequence[Any]) -> list[T]:
        """Choose this part's places: every one belongs to one part, and every part gets each model.

        All settings of one model on one fold stay together with the fit that needs the best of
        them, so no part waits for another.

        Parameters
        ----------
        places : sequence
            Models running fastest, as in `Rounds`.
        models : sequence
            The models.

        Returns
        -------
        list
        """
        width = len(models)
        folds = len(places) // width
        # Numbered model by model, so that slow models are dealt out evenly.
        return [
            place
            for i, place in enumerate(places)
            if ((i % width) * folds + i // width) % self.count == self.number - 1
        ]
