"""Builds and drives simulations, compares them with the golden model, and offers the ironband command."""
