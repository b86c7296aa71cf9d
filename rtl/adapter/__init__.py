"""The channel adapter: a port and the packet interface behind it."""
