"""What a Set may change of attributes other than PortInfo (docs/management.md, section 4.1)."""

from tests.rtl.management.agent_bench import IDENTITY, Access, Bench
from tests.rtl.management.sma_bench import ADAPTER, GET, INVALID, OK, SET, SWITCH, answers, padded
from wire.registers import NodeRegister, node_address
from wire.sma import LED_INFO, SmaAttribute
from wire.switch_info import SWITCH_INFO

CAPS = {
    "linear_fdb_cap": 100,
    "multicast_fdb_cap": 64,
    "partition_enforcement_cap": 32,
    "inbound_enforcement_cap": 1,
    "outbound_enforcement_cap": 1,
    "filter_raw_inbound_cap": 1,
    "filter_raw_outbound_cap": 1,
}


def test_guids_behind_the_first_are_stored() -> None:
    given = bytes(range(64))
    expected = IDENTITY.port_guid.to_bytes(8, "big") + given[8:]
    asked = [(SET, SmaAttribute.GUID_INFO, 0, given), (GET, SmaAttribute.GUID_INFO, 0, b"")]
    assert [work.attribute for work in answers(ADAPTER, asked)] == [expected, expected]


def test_leds() -> None:
    on, off = LED_INFO.pack(led_mask=1), LED_INFO.pack()
    led = SmaAttribute.LED_INFO
    asked = [
        (SET, led, 2, b"\xff" * 64),
        (GET, led, 1, b""),
        (GET, led, 2, b""),
        (SET, led, 2, off),
        (GET, led, 2, b""),
    ]
    found = [work.attribute for work in answers(SWITCH, asked)]
    assert found == [padded(state) for state in (on, off, on, off, off)]


def test_what_a_set_of_switch_info_changes() -> None:
    ones = b"\xff" * 64
    top = SWITCH_INFO["linear_fdb_top"].write(ones, 98)

    async def script(bench: Bench) -> None:
        work = await bench.set(SmaAttribute.SWITCH_INFO, top)
        expected = SWITCH_INFO.record(
            CAPS,
            linear_fdb_top=98,
            default_port=255,
            default_multicast_primary_port=255,
            default_multicast_not_primary_port=255,
            life_time_value=31,
            multicast_fdb_top=0xFFFF,
        )
        assert (work.status, work.attribute) == (OK, padded(expected.pack()))
        assert work.accesses == [
            Access(26, node_address(NodeRegister.LINEAR_FDB_TOP), 98),
            Access(34, node_address(NodeRegister.LIFE_TIME), 31),
            Access(35, node_address(NodeRegister.DEFAULT_MULTICAST_PRIMARY), 255),
            Access(36, node_address(NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY), 255),
            Access(50, node_address(NodeRegister.MULTICAST_FDB_TOP), 0xFFFF),
        ]

        # A LinearFDBTop that the table does not have is refused, and all else taken.
        taken = {
            "default_port": 7,
            "default_multicast_primary_port": 3,
            "default_multicast_not_primary_port": 2,
            "life_time_value": 9,
            "multicast_fdb_top": 0xC01F,
        }
        work = await bench.set(SmaAttribute.SWITCH_INFO, SWITCH_INFO.pack(linear_fdb_top=100, **taken))
        expected = SWITCH_INFO.record(CAPS, linear_fdb_top=98, **taken)
        assert (work.status, work.attribute) == (INVALID, padded(expected.pack()))
        assert work.accesses == [
            Access(34, node_address(NodeRegister.LIFE_TIME), 9),
            Access(35, node_address(NodeRegister.DEFAULT_MULTICAST_PRIMARY), 3),
            Access(36, node_address(NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY), 2),
            Access(50, node_address(NodeRegister.MULTICAST_FDB_TOP), 0xC01F),
        ]

    Bench(SWITCH).run(script)
