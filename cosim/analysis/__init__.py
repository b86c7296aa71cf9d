"""What a trace says: deliveries checked, latency, load, and the story of a run."""
