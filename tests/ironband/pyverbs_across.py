"""rdma-core's own tests with their two players at two adapters, so that what they exchange crosses the fabric.

python3 pyverbs_across.py DIRECTORY MODULE...       runs modules of the tests in DIRECTORY, by the system's Python

The tests are made for one device, whose packets to itself never leave it. Of each two resources that a test makes, the
second is at the other device here, and both know each other's LID and GID where the tests ask for their own.
"""

import sys
import unittest
from importlib import import_module

DEVICES = ("rxe_ironband0", "rxe_ironband1")


def cross(base):
    """Lets players be at both devices in turns."""
    begin = base.BaseResources.__init__
    ask = base.TrafficResources.init_resources
    set_up = base.RDMATestCase.setUp
    plain = base.Context
    made = []

    class CrossedContext(plain):
        """Asked for its port's GID it gives that of the other end."""

        def query_gid(self, port, index):
            with plain(name=DEVICES[self.name == DEVICES[0]]) as other:
                return other.query_gid(port, index)

    def begin_at_one(self, dev_name, ib_port, gid_index):
        begin(self, DEVICES[len(made) % 2], ib_port, gid_index)
        made.append(self)

    def create_context(self):
        self.ctx = CrossedContext(name=self.dev_name)

    def ask_the_other(self):
        ask(self)
        with plain(name=DEVICES[self.dev_name == DEVICES[0]]) as other:
            self.port_attr = other.query_port(self.ib_port)

    def start_anew(self):
        made.clear()
        set_up(self)

    base.BaseResources.__init__ = begin_at_one
    base.BaseResources.create_context = create_context
    base.TrafficResources.init_resources = ask_the_other
    base.RDMATestCase.setUp = start_anew


def main():
    directory, *modules = sys.argv[1:]
    sys.path[:0] = [f"{directory}/tests", directory]
    sys.argv[1:] = ["--dev", DEVICES[0]]
    import_module("args_parser").parser.parse_args()
    cross(import_module("tests.base"))
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromModule(import_module(f"tests.{module}")) for module in modules
    )
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful())


main()
