"""A host sets counters by VL of the switch at a LID, by hand: python3 set_by_vl.py LID PORT ATTRIBUTE CHOSEN HEX"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.doors.umad import SET, opened, received, register, send

PERF, GET_RESP = 4, 0x81


def main() -> None:
    lid, port, attribute, chosen = (int(word, 0) for word in sys.argv[1:5])
    device = opened()
    agent = register(device, 1, PERF, 1)
    head = struct.pack(">4BHHQHHI", 1, PERF, 1, SET, 0, 0, 1, attribute, 0, 0)
    data = struct.pack(">BBH", 0, port, chosen) + bytes.fromhex(sys.argv[5])
    send(device, agent, (head + bytes(40) + data).ljust(256, b"\0"), lid=lid)
    _agent, status, answer = received(device)
    method, of_mad = answer[3], answer[4:6]
    assert (status, method, of_mad) == (0, GET_RESP, bytes(2)), answer.hex()


main()
