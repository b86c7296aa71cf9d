"""SwitchInfo: a switch as a whole (docs/management.md, sections 4.1, 4.3 and 5)."""

from collections.abc import Generator
from typing import Final

from wire.parameters import SwitchParameters
from wire.port_tables import P_KEY_TABLE
from wire.registers import NodeRegister, node_address
from wire.switch_info import SWITCH_INFO
from wire.time_limits import NO_LIMIT

from .agent_node import AgentNode
from .attribute import Request, SettableAttribute, answer_step, set_step, word_of
from .steps import COMMIT, SET, SLOT

__all__ = ["SwitchInfo"]

_TOP: Final = word_of(SWITCH_INFO, "linear_fdb_top")
_STATE_CHANGE: Final = word_of(SWITCH_INFO, "port_state_change")
_LIFE_TIME: Final = word_of(SWITCH_INFO, "life_time_value")
_MULTICAST_TOP: Final = word_of(SWITCH_INFO, "multicast_fdb_top")
_NO_PORT: Final = 255
_STORED: Final = (
    "default_port",
    "default_multicast_primary_port",
    "default_multicast_not_primary_port",
    "life_time_value",
    "multicast_fdb_top",
)
"""Fields that take any value."""


class SwitchInfo(SettableAttribute):
    """SwitchInfo.

    Attributes:
        stored: the fields, but PortStateChange.
        port_state_change: PortStateChange, visible in the current cycle.
    """

    set_words = frozenset({_TOP, _LIFE_TIME, _MULTICAST_TOP})

    def __init__(self, node: AgentNode, parameters: SwitchParameters) -> None:
        self._node = node
        self.port_state_change = False
        self.stored = SWITCH_INFO.record(
            linear_fdb_cap=parameters.lft_size,
            multicast_fdb_cap=parameters.mft_size,
            linear_fdb_top=parameters.lft_size - 1,
            default_multicast_primary_port=_NO_PORT,
            default_multicast_not_primary_port=_NO_PORT,
            life_time_value=NO_LIMIT,
            partition_enforcement_cap=P_KEY_TABLE.count,
            inbound_enforcement_cap=1,
            outbound_enforcement_cap=1,
            filter_raw_inbound_cap=1,
            filter_raw_outbound_cap=1,
        )

    def change(self, request: Request) -> Generator[int, None, bool]:
        """A LinearFDBTop beyond the table is refused."""
        asked = SWITCH_INFO.unpack(request.data)
        fields = {name: asked[name] for name in _STORED}
        accepted = asked.linear_fdb_top < self.stored.linear_fdb_cap
        if accepted:
            fields["linear_fdb_top"] = asked.linear_fdb_top
            yield set_step(_TOP, 0)
            self._node.bus_write(node_address(NodeRegister.LINEAR_FDB_TOP), asked.linear_fdb_top)
        if asked.port_state_change:
            yield SET + SLOT * _STATE_CHANGE + 1
            self.port_state_change = False  # an event of this cycle sets it in the next
        for word, access, register, value in (
            (_LIFE_TIME, 0, NodeRegister.LIFE_TIME, asked.life_time_value),
            (_LIFE_TIME, 1, NodeRegister.DEFAULT_MULTICAST_PRIMARY, asked.default_multicast_primary_port),
            (_LIFE_TIME, 2, NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY, asked.default_multicast_not_primary_port),
            (_MULTICAST_TOP, 0, NodeRegister.MULTICAST_FDB_TOP, asked.multicast_fdb_top),
        ):
            yield set_step(word, access)
            self._node.bus_write(node_address(register), value)
        yield COMMIT
        self.stored = self.stored.replace(**fields)
        return accepted

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """PortStateChange as visible at its word's step."""
        yield answer_step(_STATE_CHANGE)
        return self.stored.replace(port_state_change=int(self.port_state_change)).pack()
