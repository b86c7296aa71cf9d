"""An attribute that a MAD names, and its words, as the stages of the agent pass them on."""

from typing import Final

from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from rtl.management.place import WORD_BITS
from rtl.widths import PORT_BITS
from wire.packet import WORD_BYTES
from wire.pma import PORT_COUNTERS_EXTENDED, PmaAttribute
from wire.sma import SmaAttribute

__all__ = ["ANSWERED", "WORDS", "Attribute", "Chosen", "Target", "Word"]

ANSWERED: Final = (
    SmaAttribute.NODE_DESCRIPTION,
    SmaAttribute.NODE_INFO,
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.GUID_INFO,
    SmaAttribute.PORT_INFO,
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE,
    SmaAttribute.VL_ARBITRATION_TABLE,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
    SmaAttribute.VENDOR_DIAG,
    SmaAttribute.LED_INFO,
)
"""The SMA's attributes of a switch."""

WORDS: Final = PORT_COUNTERS_EXTENDED.size_bytes // WORD_BYTES
"""Words of the longest attribute that has a slot for each of them."""

Chosen = data.StructLayout({attribute.name: 1 for attribute in (*ANSWERED, SmaAttribute.NOTICE, *PmaAttribute)})
"""One attribute, one-hot. NOTICE is a trap's."""

Target = data.StructLayout({"port": PORT_BITS, "in_port": PORT_BITS, "block": 16, "at_port_0": 1})
"""What the modifier names: a port, or the output of a pair of ports, the input of the pair, a block of LIDs. The port
may also be PortSelect's. `at_port_0`: it is a switch's port 0."""

Attribute: Final = wiring.Signature(
    {"chosen": Out(Chosen), "target": Out(Target), "status": Out(8), "answering": Out(1), "setting": Out(1)}
)
"""Of a MAD: the attribute, and what of it; `status`: the answer's, if no field is refused; `answering`, `setting`: the
data of its answer are the attribute's, those of a Set are taken."""

Word: Final = wiring.Signature(
    {
        "number": Out(range(WORDS)),
        "request": Out(WORD_BITS),
        "kept": Out(WORD_BITS),
        "merged": Out(WORD_BITS),
        "of_own_port_info": Out(1),
        "of_switch_info": Out(1),
    }
)
"""The word of a slot: its number, what came and what was kept, from the slot's first step on. In a Set `merged` is
written: as a word of the node's own PortInfo, or of SwitchInfo, if that is 1."""
