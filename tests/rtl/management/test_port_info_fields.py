"""PortInfo of port 0 of a switch, of its other ports, and of an adapter's port."""

import random

import pytest

from tests.agent_steps import cycles_to
from tests.rtl.management.agent_bench import Access, Bench, Work, packet_bytes, request
from tests.rtl.management.port_info_bench import (
    ARRIVAL,
    BASE,
    EXTERNAL,
    HARMLESS,
    INVALID,
    KINDS,
    OF_ADAPTER,
    OK,
    PORT,
    REG,
    SWITCH,
    Port,
    on_port,
)
from wire.codes import PortPhysicalState, PortState
from wire.mad import MadMethod
from wire.parameters import AdapterParameters
from wire.port_info import ADAPTER_CAPABILITIES, PORT_INFO, SWITCH_CAPABILITIES, CapabilityMask
from wire.registers import Detail, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request

NODE = {
    "gid_prefix": 0xFE80 << 48,
    "guid_cap": 8,
    "resp_time_value": 8,
}
EVERY = {
    "mtu_cap": 4,
    "vl_cap": 3,
    "link_width_enabled": 3,
    "link_width_supported": 3,
    "link_width_active": 2,
    "link_speed_supported": 1,
    "link_speed_active": 1,
    "link_speed_enabled": 1,
    "link_down_default_state": 2,
    "neighbor_mtu": 4,
    "operational_vls": 3,
}
LINK = {
    **EVERY,
    "port_state": PortState.INITIALIZE,
    "port_physical_state": PortPhysicalState.LINK_UP,
    "hoq_life": 31,
    "local_phy_errors": 15,
    "overrun_errors": 15,
    "vl_arbitration_high_cap": 8,
    "vl_arbitration_low_cap": 8,
}
AT_RESET = {
    BASE: {
        **EVERY,
        **NODE,
        "capability_mask": SWITCH_CAPABILITIES,
        "local_port_num": 3,
        "port_state": 4,
        "port_physical_state": 5,
    },
    EXTERNAL: {**LINK, "local_port_num": 3},
    OF_ADAPTER: {**LINK, **NODE, "capability_mask": ADAPTER_CAPABILITIES, "local_port_num": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_at_reset(kind: str) -> None:
    async def script(port: Port) -> None:
        assert await port.get() == PORT_INFO.record(AT_RESET[kind])
        work = await port.bench.get(SmaAttribute.PORT_INFO, PORT[kind] | 1 << 31, arrival=ARRIVAL[kind])
        assert work.attribute == PORT_INFO.pack(AT_RESET[kind])
        number = PORT[kind]
        assert work.accesses == (
            []
            if kind == BASE
            else [
                Access(200, port_address(number, REG.WIDTH), None),
                Access(208, port_address(number, REG.STATE), None),
                Access(209, port_address(number, REG.PHYSICAL_STATE), None),
                *([Access(210, port_address(number, Detail.P_KEY_VIOLATIONS), None)] if kind == EXTERNAL else []),
            ]
        )

    on_port(kind, script)


@pytest.mark.parametrize(("vls", "cap"), [(1, 0), (8, 16), (15, 16)])
def test_the_lists_of_vl_arbitration_are_as_long_as_the_vls_want(vls: int, cap: int) -> None:
    async def script(port: Port) -> None:
        info = await port.get()
        assert (info.vl_arbitration_high_cap, info.vl_arbitration_low_cap) == (cap, cap)

    on_port(OF_ADAPTER, script, AdapterParameters(vls=vls))


def test_an_adapters_port_has_two_numbers() -> None:
    async def script(port: Port) -> None:
        for number in (0, 1):
            work = await port.bench.get(SmaAttribute.PORT_INFO, number)
            assert work.attribute == PORT_INFO.pack(AT_RESET[OF_ADAPTER])

    on_port(OF_ADAPTER, script)


# name: kinds, values taken (and what they are then), values that change nothing, values refused
Rule = tuple[str, dict[int, int], list[int], list[int]]
ANYTHING: dict[str, str] = {
    "gid_prefix": "0A",
    "m_key_lease_period": "0A",
    "lmc": "A",
    "master_sm_sl": "0A",
    "init_type": "0A",
    "vl_high_limit": "EA",
    "vl_stall_count": "EA",
    "hoq_life": "EA",
    "partition_enforcement_inbound": "E",
    "partition_enforcement_outbound": "E",
    "filter_raw_inbound": "E",
    "filter_raw_outbound": "E",
    "subnet_timeout": "0A",
    "local_phy_errors": "EA",
    "overrun_errors": "EA",
}
RULES: dict[str, Rule] = {
    "lid": ("0A", {1: 1, 0xBFFF: 0xBFFF, 0x1234: 0x1234}, [], [0, 0xC000, 0xFFFF]),
    "master_sm_lid": ("0A", {1: 1, 0xBFFF: 0xBFFF}, [], [0, 0xC000, 0xFFFF]),
    "link_width_enabled": ("EA", {1: 1, 2: 2, 255: 3, 3: 3}, [0], [4, 7, 0x83, 254]),
    "link_speed_enabled": ("EA", {15: 1, 1: 1}, [0], [2, 3, 7, 14]),
    "link_down_default_state": ("EA", {1: 1, 2: 2}, [0], [3, 5, 15]),
    "neighbor_mtu": ("EA", {1: 1, 3: 3, 4: 4}, [], [0, 5, 15]),
    "operational_vls": ("EA", {1: 1, 2: 2, 3: 3}, [0], [4, 5, 15]),
}
READ_ONLY = (
    "capability_mask",
    "diag_code",
    "local_port_num",
    "link_width_supported",
    "link_width_active",
    "link_speed_supported",
    "link_speed_active",
    "vl_cap",
    "vl_arbitration_high_cap",
    "vl_arbitration_low_cap",
    "init_type_reply",
    "mtu_cap",
    "p_key_violations",
    "q_key_violations",
    "guid_cap",
    "multicast_p_key_trap_suppression_enabled",
    "resp_time_value",
    "max_credit_hint",
    "link_round_trip_latency",
    "capability_mask2",
    "link_speed_ext_active",
    "link_speed_ext_supported",
    "link_speed_ext_enabled",
)


def test_every_field_has_a_rule() -> None:
    own = {"m_key", "m_key_protect_bits", "m_key_violations", "client_reregister", "port_state", "port_physical_state"}
    names = {field.name for field in PORT_INFO.fields}
    assert names == own | set(ANYTHING) | set(RULES) | set(READ_ONLY)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RULES)
def test_fields_of_which_not_every_value_is_taken(kind: str, name: str) -> None:
    kinds, taken, unchanging, refused = RULES[name]

    async def script(port: Port) -> None:
        now = (await port.get())[name]
        for value, becomes in taken.items():
            work = await port.set(**{name: value})
            now = becomes if kind in kinds else now
            assert (work.status, PORT_INFO.unpack(work.attribute)[name]) == (OK, now), value
        for value in unchanging:
            work = await port.set(**{name: value})
            assert (work.status, PORT_INFO.unpack(work.attribute)[name]) == (OK, now), value
        for value in refused:
            work = await port.set(**{name: value, "vl_high_limit": 5, "init_type": 6})
            found = PORT_INFO.unpack(work.attribute)
            assert (work.status, found[name]) == (INVALID if kind in kinds else OK, now), value
            # All else is taken.
            assert found.vl_high_limit == (0 if kind == BASE else 5)
            assert found.init_type == (0 if kind == EXTERNAL else 6)

    on_port(kind, script)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_take_anything_and_fields_that_take_nothing(kind: str) -> None:
    seed = 99
    print(f"seed {seed}")
    rng = random.Random(seed)

    async def script(port: Port) -> None:
        expected = (await port.get()).replace(**HARMLESS[kind])
        for _ in range(3):
            values = {name: rng.getrandbits(PORT_INFO[name].width) for name in (*ANYTHING, *READ_ONLY)}
            work = await port.set(**values)
            expected = expected.replace(**{name: values[name] for name, kinds in ANYTHING.items() if kind in kinds})
            assert (work.status, PORT_INFO.unpack(work.attribute)) == (OK, expected)
            assert await port.get() == expected

    on_port(kind, script)


def test_ports_have_a_port_info_each() -> None:
    async def script(bench: Bench) -> None:
        for port in range(4):
            data = PORT_INFO.pack(HARMLESS[BASE] | HARMLESS[EXTERNAL] | {"hoq_life": 10 + port, "init_type": port})
            await bench.set(SmaAttribute.PORT_INFO, data, port)
        for port in range(4):
            info = PORT_INFO.unpack((await bench.get(SmaAttribute.PORT_INFO, port)).attribute)
            assert (info.hoq_life, info.lid) == ((10 + port, 0) if port else (0, 1))

    Bench(SWITCH).run(script)


@pytest.mark.parametrize("kind", [BASE, OF_ADAPTER])
def test_a_set_is_told_of_its_client_reregister(kind: str) -> None:
    async def script(port: Port) -> None:
        for bit in (1, 0):
            work = await port.set(client_reregister=bit, lid=0)
            assert (work.status, PORT_INFO.unpack(work.attribute).client_reregister) == (INVALID, bit)
            assert (await port.get()).client_reregister == 0

    on_port(kind, script)


def test_an_external_port_has_no_client_reregister_and_no_m_key() -> None:
    async def script(port: Port) -> None:
        expected = await port.get()
        work = await port.set(client_reregister=1, m_key=5, m_key_protect_bits=3, m_key_violations=7)
        found = PORT_INFO.unpack(work.attribute)
        assert found.replace(hoq_life=31, local_phy_errors=15, overrun_errors=15) == expected

    on_port(EXTERNAL, script)


def test_is_sm_is_the_hosts_word_of_step_184() -> None:
    async def script(port: Port) -> None:
        bench = port.bench
        step_184 = cycles_to(184, MadMethod.GET, SmaAttribute.PORT_INFO, is_switch=False)
        for step, seen in ((step_184, 1), (step_184 + 1, 0)):
            await bench.until_available()
            bench.at[bench.now + 80 + step] = lambda: bench.drive(host_sm=1)
            mask = (await port.get()).capability_mask
            assert mask == ADAPTER_CAPABILITIES | (CapabilityMask.IS_SM if seen else 0)
            bench.drive(host_sm=0)

    on_port(OF_ADAPTER, script)


def test_an_adapters_own_lids_are_the_ones_that_were_set() -> None:
    async def script(port: Port) -> None:
        async def ask(dlid: int) -> Work:
            smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1)
            return await port.bench.send(packet_bytes(smp, slid=0x44, dlid=dlid), arrival=0)

        assert (await ask(0)).steps == 16
        await port.set(lid=0x44, lmc=2)
        for dlid in (0x44, 0x47):
            work = await ask(dlid)
            assert (work.answered, work.outputs) == (True, (1,))
            assert (work.lrh.dlid, work.lrh.slid) == (0x44, dlid)
        for dlid in (0x43, 0x48, 0):
            work = await ask(dlid)
            assert (work.steps, work.outputs, work.lrh.dlid) == (16, (0,), dlid)

    on_port(OF_ADAPTER, script)


def test_an_answer_sent_on_by_lid_has_the_lid_that_its_set_gave() -> None:
    async def script(port: Port) -> None:
        data = PORT_INFO.pack(HARMLESS[OF_ADAPTER] | {"lid": 0x99})
        smp = request(MadMethod.SET, SmaAttribute.PORT_INFO, 1, data, dr_dlid=0x99, hop_pointer=2)
        work = await port.bench.smp(smp, slid=7, dlid=0x55)
        assert (work.outputs, work.lrh.dlid, work.lrh.slid) == ((0,), 7, 0x99)
        assert (work.smp.hop_pointer, work.smp.d) == (2, 1)

    on_port(OF_ADAPTER, script)
