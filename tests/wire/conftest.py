"""Random tests of the wire formats never fail for a slow machine, and print what replays a failure."""

from hypothesis import settings

settings.register_profile("wire", deadline=None, print_blob=True)
settings.load_profile("wire")
