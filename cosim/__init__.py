"""Builds and drives simulations, compares them with the golden model."""
