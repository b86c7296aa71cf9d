"""Clients told to register again, as what a Subnet Administrator before knew is lost (IBTA vol 1, 14.4.11).

Their ports are set ClientReregister where CapabilityMask says that it reaches them: all by a new master, and later
those that are new, were reset, or had another master.
"""

from __future__ import annotations

from collections.abc import Mapping

from sm.activation import UNCHANGED
from sm.discovery import Findings
from sm.events import ClientsToldToReregister, SetRefused, Tell, Unsettled
from sm.mad_client import RefusedError, SmpError
from sm.programming import Programmed
from sm.sma_client import SmaClient
from sm.subnet import End
from sm.tasks import gather
from wire.port_info import CapabilityMask

__all__ = ["forget_clients", "tell_clients"]


def forget_clients(found: Findings, wanted: Mapping[End, Mapping[str, int]], programmed: Programmed) -> None:
    """Forgets having told ports that are gone, or that name another master than is `wanted` in their PortInfo."""
    programmed.told_clients &= {
        end for end, fields in wanted.items() if fields.get("master_sm_lid") == found.ports[end].master_sm_lid
    }


async def tell_clients(sma: SmaClient, found: Findings, programmed: Programmed, tell: Tell) -> bool:
    """Tells the clients of all ports that were not told yet; whether every port answered.

    It is for the caller to have a Subnet Administrator ready for them, and to have set all else.
    """
    told: list[End] = []

    async def ask(end: End) -> bool:
        info = found.ports[end].replace(**UNCHANGED, client_reregister=1)
        try:
            await sma.set_port_info(found.path(end), end.port, info)
        except RefusedError as error:
            tell(SetRefused(str(error)))
            return True
        except SmpError as error:
            tell(Unsettled(str(error)))
            return False
        told.append(end)
        return True

    able = [end for end, _port in found.subnet.reachable_end_ports if _is_able(found, end)]
    answered = await gather([ask(end) for end in able if end not in programmed.told_clients])
    programmed.told_clients.update(told)
    if told:
        tell(ClientsToldToReregister(len(told)))
    return all(answered)


def _is_able(found: Findings, end: End) -> bool:
    return bool(found.ports[end].capability_mask & CapabilityMask.IS_CLIENT_REREGISTRATION_SUPPORTED)
