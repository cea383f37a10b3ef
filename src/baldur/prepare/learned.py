"""What learned steps share: they take a container, and work on the views they are told."""

from __future__ import annotations

from typing import Any

from baldur.exceptions import InputError
from baldur.views.container import MultiView

__all__ = ["check_multiview", "chosen_views"]


def check_multiview(X: Any, who: str) -> MultiView:
    """Return `X` if it is a MultiView, or say how to make one."""
    if not isinstance(X, MultiView):
        raise InputError(
            f"{who} expects a MultiView, as the readers of baldur.io return, but got "
            f"{type(X).__name__}. Wrap matrices with MultiView.from_dict."
        )
    return X


def chosen_views(mv: MultiView, views: Any, who: str) -> list[str]:
    """Return the views a step works on: those named, or all."""
    if views is None:
        return mv.view_names
    wanted = [views] if isinstance(views, str) else list(views)
    unknown = [name for name in wanted if name not in mv.view_names]
    if unknown:
        raise InputError(
            f"{who}: there is no view {unknown[0]!r}; the views are {mv.view_names}. Correct "
            "views=."
        )
    return wanted
