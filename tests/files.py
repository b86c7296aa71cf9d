"""Where the files that several rooms' tests read are kept."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
TOPOLOGIES = Path(__file__).with_name("topology_files")
