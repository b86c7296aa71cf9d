"""Reading a guid2lid file."""

from __future__ import annotations

from pathlib import Path

from sm.lids import Guid2LidError, LidRange, parse_guid2lid

__all__ = ["read_guid2lid"]


def read_guid2lid(path: Path) -> dict[int, LidRange]:
    """LID ranges by PortGUID; none if there is no such file yet.

    Raises:
        Guid2LidError: it is no regular file, it cannot be read, or it is not a guid2lid file.
    """
    try:
        if not path.exists():
            return {}
        if not path.is_file():
            raise Guid2LidError(f"{path}: is no regular file, expected a guid2lid file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Guid2LidError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Guid2LidError(f"{path}: byte {error.start} is not UTF-8, expected a guid2lid file") from None
    return parse_guid2lid(text, str(path))
