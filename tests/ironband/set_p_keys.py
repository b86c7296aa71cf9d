"""A host gives itself P_Keys, which its adapter's agent lets it: python3 set_p_keys.py P_KEY ..."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.doors.umad import SET, directed, opened, received, register, send

P_KEY_TABLE, ENTRIES = 0x16, 32


def main() -> None:
    device = opened()
    agent = register(device, 0, 0x81, 1)
    keys = [int(word, 0) for word in sys.argv[1:]]
    table = struct.pack(f">{ENTRIES}H", *keys, *[0] * (ENTRIES - len(keys)))
    send(device, agent, directed((), P_KEY_TABLE, 1, SET, table))
    _agent, status, answer = received(device)
    assert (status, answer[64:128]) == (0, table)


main()
