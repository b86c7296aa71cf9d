"""How pictures look, and how they are written: the same data gives the same file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from toolchain.atomic_files import atomic_file, writing

__all__ = ["COLOURS", "GRID", "INK", "LEGEND", "PANEL_TITLE", "STALL", "drawing_style", "freeze_layout", "save_figure"]

_DPI = 144
COLOURS = ("#2f6fb5", "#e08214", "#35978f", "#b2443c", "#7b5ea7", "#8c6d31", "#d076a8", "#5f6b73")
INK = "#22313f"
GRID = "#d9dee3"
STALL = "#c8102e"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "ironband",
    "svg.fonttype": "none",
}
PANEL_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11, "fontweight": "bold"}
LEGEND: dict[str, Any] = {
    "loc": "lower right",
    "bbox_to_anchor": (1, 1),
    "ncols": 4,
    "frameon": False,
    "borderaxespad": 0,
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw and save in this style."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A title may be in any script; the font draws what it lacks as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def save_figure(figure: Figure, paths: Sequence[Path]) -> None:
    """Write a figure to files, by their suffix (.svg, .png).

    Raises:
        OutputError: one cannot be written.
    """
    for path in paths:
        # Without a date the same run gives the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        with atomic_file(path) as temporary, writing(f"{path}"):
            figure.savefig(
                temporary, format=path.suffix.removeprefix("."), dpi=_DPI, metadata=metadata, facecolor="white"
            )


def freeze_layout(figure: Figure) -> None:
    """Lay the figure out now, to four digits: the solver's last ones are not the same from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((round(left, 4), round(bottom, 4), round(width, 4), round(height, 4)))
