"""Pictures of runs and curves."""
