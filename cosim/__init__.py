"""Builds and drives simulations, compares them with the golden model.

Transports, which work for each packet of a host, run compiled if they have been.
"""

from toolchain.compiled import CompiledPackage

CompiledPackage("verbs").take_place()
