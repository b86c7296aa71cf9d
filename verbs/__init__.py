"""The transport of a channel adapter: queue pairs, memory, completions. It knows no simulator."""
