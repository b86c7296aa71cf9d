"""A host joins and leaves multicast groups by MADs of its own: python3 ask_for_groups.py. It tells each answer.

What it asks for is told by name, and what comes of it in a line: the status, and the fields that an answer is about.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.doors.umad import opened, received, register, send, sysfs
from wire.mad import pack_data
from wire.mc_member_record import MC_MEMBER_RECORD
from wire.path_record import PATH_RECORD
from wire.sa import SA_HEADER_BYTES, SA_MAD, SaAttribute, SaMethod, components

BROADCAST = 0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF
GROUP = 0xFF12 << 112 | 7
OWN = int(sysfs("gids/0").replace(":", ""), 16)
ME = {"port_gid": OWN, "join_state": 1}
CREATE = {
    "mgid": GROUP,
    "q_key": 9,
    "t_class": 3,
    "p_key": 0xFFFF,
    "flow_label": 5,
    "sl": 0,
    "packet_life_time": 4,
} | ME
CREATE |= {"mtu_selector": 2, "mtu": 3, "hop_limit": 2, "scope": 2}
# OpenSM 3.3.23 has the FlowLabel of a path to a group 8 bits too far up.
PATH_FIELDS = ("dgid", "dlid", "mtu", "rate", "sl", "p_key", "hop_limit", "t_class", "numb_path")

SET, GET, DELETE = SaMethod.SET, SaMethod.GET, SaMethod.DELETE
ASKED = {
    "broadcast group": (GET, {"mgid": BROADCAST}),
    "broadcast group, trusted": (GET, {"mgid": BROADCAST, "sm_key": 1}),
    "join": (SET, {"mgid": BROADCAST, "p_key": 0xFFFF} | ME),
    "join again": (SET, {"mgid": BROADCAST} | ME | {"join_state": 4}),
    "member, trusted": (GET, {"mgid": BROADCAST, "sm_key": 1}),
    "member, not trusted": (GET, {"mgid": BROADCAST, "port_gid": OWN}),
    "no JoinState": (SET, {"mgid": BROADCAST, "port_gid": OWN}),
    "JoinState 0": (SET, {"mgid": BROADCAST} | ME | {"join_state": 0}),
    "no components to create": (SET, {"mgid": GROUP} | ME),
    "non-member creates": (SET, CREATE | {"join_state": 2}),
    "create": (SET, CREATE),
    "other TClass": (SET, CREATE | {"t_class": 4}),
    "other MTU": (SET, CREATE | {"mtu_selector": 0}),
    "bad MTU": (SET, CREATE | {"mtu": 9}),
    "bad rate": (SET, CREATE | {"rate_selector": 2, "rate": 1}),
    "MTU beyond the port": (SET, CREATE | {"mgid": GROUP + 1, "mtu": 5}),
    "no P_Key": (SET, CREATE | {"p_key": 0x8000}),
    "P_Key of others": (SET, CREATE | {"mgid": GROUP + 1, "p_key": 0x8123}),
    "unknown port": (SET, CREATE | {"port_gid": OWN + 0x5000}),
    "other subnet": (SET, CREATE | {"port_gid": OWN ^ 1 << 70}),
    "unicast": (SET, CREATE | {"mgid": 0xFE80 << 112 | 1}),
    "reserved flags": (SET, CREATE | {"mgid": 0xFF22 << 112 | 1}),
    "administrator's": (SET, CREATE | {"mgid": 0xFF12_A01B << 96 | 1}),
    "IPoIB without broadcast": (SET, CREATE | {"mgid": 0xFF15_401B_FFFF << 80 | 1}),
    "IPoIB unlike broadcast": (SET, CREATE | {"mgid": 0xFF12_401B_FFFF << 80 | 1}),
    "path": (GET, {"dgid": GROUP, "sgid": OWN}),
    "path of no member": (GET, {"dgid": GROUP, "sgid": OWN ^ 0x5000}),
    "path to nobody": (GET, {"dgid": GROUP + 9}),
    "leave what it is not": (DELETE, {"mgid": GROUP} | ME | {"join_state": 2}),
    "leave in part": (DELETE, {"mgid": BROADCAST} | ME | {"join_state": 4}),
    "leave": (DELETE, {"mgid": GROUP} | ME),
    "leave again": (DELETE, {"mgid": GROUP} | ME),
    "gone": (GET, {"mgid": GROUP}),
}


def main() -> None:
    device = opened()
    agent = register(device, 1, 3, 2)
    for number, (name, (method, values)) in enumerate(ASKED.items(), 1):
        layout, attribute = MC_MEMBER_RECORD, SaAttribute.MC_MEMBER_RECORD
        if "dgid" in values:
            layout, attribute = PATH_RECORD, SaAttribute.PATH_RECORD
        sm_key = values.get("sm_key", 0)
        query = {field: value for field, value in values.items() if field != "sm_key"}
        request = SA_MAD.record(
            method=method,
            attribute_id=attribute,
            transaction_id=number,
            sm_key=sm_key,
            component_mask=sum(1 << bit for bit, field in enumerate(components(layout)) if field in query),
            data=pack_data(SA_MAD, layout.pack(query)),
        )
        send(device, agent, request.pack(), timeout_ms=60_000, lid=int(sysfs("sm_lid"), 0))
        _agent, _status, mad = received(device, timeout_ms=120_000)
        status = SA_MAD.unpack(mad).status
        record = layout.unpack(mad, SA_HEADER_BYTES)
        fields = tuple(record)
        if layout == PATH_RECORD:
            fields = PATH_FIELDS
        elif method == DELETE:
            fields = ("mgid", "port_gid", "join_state")
        print(name, hex(status), "" if status else {field: hex(record[field]) for field in fields})


main()
