"""A fabric that is served, looked at for long."""

import json
import socket
from contextlib import closing
from threading import Thread

import numpy as np

from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, read_topology
from doors.protocol import CONTROL_SOCKET, DONE
from doors.watch import AT_ONCE
from ironband.page.fabric_map import fabric_head
from ironband.page.live import Live
from ironband.page.live_columns import RECORD_TYPE
from ironband.page.subject import FABRIC_FILE
from wire.codes import PortState
from wire.trace import Kind, port_source
from wire.trace_layout import State


def test_of_what_is_no_longer_shown_only_the_last_state_of_each_port_is_kept(tmp_path):
    made = fabric_of(read_topology(find_topology("star")))
    (tmp_path / FABRIC_FILE).write_text(json.dumps(fabric_head(made.fabric, made.widths) | {"title": "star"}))
    records = np.zeros(350_000, RECORD_TYPE)
    records["cycle"] = np.arange(len(records))
    records["source"] = port_source(0, 1)
    records["kind"] = Kind.TX_FCP
    changes = [State.record(cycle, port_source(0, 1 + cycle % 2), state=PortState.DOWN) for cycle in range(998)]
    changes += [State.record(cycle, port_source(0, 1 + cycle % 2), state=PortState.ACTIVE) for cycle in (998, 999)]
    records[: len(changes)] = [(*change[:3], change[3:]) for change in changes]
    answers = [records[place : place + AT_ONCE].tobytes() for place in range(0, len(records), AT_ONCE)]

    def serve(listener):
        connection, _ = listener.accept()
        with connection:
            for answer in answers:
                connection.recv(100)
                connection.send(DONE + answer)

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / CONTROL_SOCKET))
        listener.listen()
        server = Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        with closing(Live(tmp_path)) as live:
            while (shown := live.newest()).extent()["live"]:
                pass
            server.join()
            assert shown.extent()["events"] == 2
            assert sorted(shown.load(0, len(records))["states"]) == ["", "", "Active", "Active"]
