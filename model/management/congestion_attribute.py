"""The attributes of congestion control: words on the register bus (docs/management.md, section 7)."""

from collections.abc import Generator, Mapping
from typing import Final

from wire.congestion_control import CC_DATA_BYTES, CONGESTION_KEY_INFO, CcAttribute
from wire.parameters import NodeParameters, SwitchParameters
from wire.registers import DATA_BITS, PortRegister, congestion_address, port_address

from ..link.congestion_words import word_of_data
from .agent_node import AgentNode, BusRead
from .attribute import READ_STEPS, Attribute, Request, SettableAttribute
from .steps import COMMIT, SLOT, WINDOW_ANSWER, WINDOW_SET

__all__ = ["congestion_attributes"]

_SET_ACCESS: Final = 2
_WORD_BYTES: Final = DATA_BITS // 8
_KEY: Final = CONGESTION_KEY_INFO["cc_key"]
_FIRST: Final = 8
"""Word at which management data begin."""
_BLOCK_PORTS: Final = 32


def _read_words(node: AgentNode, addresses: Mapping[int, int]) -> Generator[int, None, bytes]:
    """The words that are at these addresses, one after the other; all others are 0."""
    reads: dict[int, BusRead] = {}
    for word, address in addresses.items():
        yield WINDOW_ANSWER + SLOT * word
        reads[word] = node.give_read(address)
    yield WINDOW_ANSWER + SLOT * max(reads) + READ_STEPS
    values = [reads[word].value if word in reads else 0 for word in range(CC_DATA_BYTES // _WORD_BYTES)]
    return b"".join(value.to_bytes(_WORD_BYTES, "big") for value in values)


class _Window(Attribute):
    """One that is only read."""

    def __init__(self, node: AgentNode, code: CcAttribute, words: range) -> None:
        self.answer_words = frozenset(words)
        self._node = node
        self._addresses = {word: congestion_address(code, word) for word in words}

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """Its words."""
        return _read_words(self._node, self._addresses)


class _SettableWindow(SettableAttribute):
    """One that is written too."""

    def __init__(self, node: AgentNode, code: CcAttribute, words: range) -> None:
        self.answer_words = frozenset(words)
        self._node = node
        self._code = code

    def addresses(self, which: int) -> Mapping[int, int]:
        """Those of its words."""
        return {word: congestion_address(self._code, word) for word in sorted(self.answer_words)}

    def change(self, request: Request) -> Generator[int, None, bool]:
        """All of its words."""
        for word, address in self.addresses(request.which).items():
            yield WINDOW_SET + SLOT * word + _SET_ACCESS
            self._node.bus_write(address, word_of_data(request.data, word))
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """Its words."""
        return _read_words(self._node, self.addresses(request.which))


class _KeyInfo(_SettableWindow):
    """CongestionKeyInfo."""

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """The CC_Key is hidden from those who have it not."""
        data = yield from _read_words(self._node, self.addresses(request.which))
        return _KEY.write(data, 0) if request.hides_key else data


class _PortSettings(_SettableWindow):
    """SwitchPortCongestionSetting: registers of a block of ports."""

    def __init__(self, node: AgentNode, ports: int) -> None:
        words = range(_FIRST, _FIRST + _BLOCK_PORTS)
        super().__init__(node, CcAttribute.SWITCH_PORT_CONGESTION_SETTING, words)
        self._ports = ports

    def select(self, modifier: int, data: bytes) -> int | None:
        """A block with a port."""
        return modifier if modifier <= self._ports // _BLOCK_PORTS else None

    def addresses(self, which: int) -> Mapping[int, int]:
        """Of words of ports."""
        port_of = {word: _BLOCK_PORTS * which + word - _FIRST for word in sorted(self.answer_words)}
        return {
            word: port_address(port, PortRegister.CONGESTION)
            for word, port in port_of.items()
            if 1 <= port <= self._ports
        }


def congestion_attributes(node: AgentNode, parameters: NodeParameters) -> dict[int, Attribute]:
    """A switch's, by AttributeID; those of an adapter are its transport's."""
    if not isinstance(parameters, SwitchParameters):
        return {}
    return {
        CcAttribute.CLASS_PORT_INFO: _SettableWindow(node, CcAttribute.CLASS_PORT_INFO, range(8, 26)),
        CcAttribute.CONGESTION_INFO: _Window(node, CcAttribute.CONGESTION_INFO, range(8, 9)),
        CcAttribute.CONGESTION_KEY_INFO: _KeyInfo(node, CcAttribute.CONGESTION_KEY_INFO, range(8, 12)),
        CcAttribute.CONGESTION_LOG: _Window(node, CcAttribute.CONGESTION_LOG, range(55)),
        CcAttribute.SWITCH_CONGESTION_SETTING: _SettableWindow(
            node, CcAttribute.SWITCH_CONGESTION_SETTING, range(8, 27)
        ),
        CcAttribute.SWITCH_PORT_CONGESTION_SETTING: _PortSettings(node, parameters.ports),
        CcAttribute.TIME_STAMP: _Window(node, CcAttribute.TIME_STAMP, range(8, 9)),
    }
