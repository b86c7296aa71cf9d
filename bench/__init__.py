"""The performance table, measured here and now: `ironband bench`."""
