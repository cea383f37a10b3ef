"""Views: the container every estimator accepts, and the matrices behind it."""

from baldur.views.container import MultiView, View
from baldur.views.opening import as_multiview
from baldur.views.validate import validate_labels

__all__ = ["MultiView", "View", "as_multiview", "validate_labels"]
