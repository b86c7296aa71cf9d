"""What a Subnet Manager cannot do with what it is given."""

from __future__ import annotations

__all__ = ["ManagerError", "RoutingError"]


class ManagerError(ValueError):
    """LIDs, files or fabrics that it cannot use; the text is one line."""


class RoutingError(ManagerError):
    """Routes that cannot be found; the text is one line."""
