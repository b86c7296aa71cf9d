"""All that is proven."""

from typing import Final

from tests.proofs.crossing.keeping import KEEPING_PROOFS
from tests.proofs.crossing.matching import MATCHING_PROOFS
from tests.proofs.crossing.one_reader import ONE_READER_PROOFS
from tests.proofs.crossing.queueing import QUEUEING_PROOFS
from tests.proofs.crossing.rows import ROWS_PROOFS
from tests.proofs.crossing.vl_arbitration import VL_ARBITRATION_PROOFS
from tests.proofs.link.credits import CREDIT_PROOFS
from tests.proofs.link.port_state import PORT_STATE_PROOFS
from tests.proofs.link.sending import SENDING_PROOFS
from tests.proofs.management.m_key import M_KEY_PROOFS
from tests.proofs.management.smi import SMI_PROOFS
from tests.proofs.rotation import ROTATION_PROOFS

__all__ = ["PROOFS"]

PROOFS: Final = (
    *ROTATION_PROOFS,
    *MATCHING_PROOFS,
    *VL_ARBITRATION_PROOFS,
    *ROWS_PROOFS,
    *ONE_READER_PROOFS,
    *KEEPING_PROOFS,
    *QUEUEING_PROOFS,
    *CREDIT_PROOFS,
    *PORT_STATE_PROOFS,
    *SENDING_PROOFS,
    *M_KEY_PROOFS,
    *SMI_PROOFS,
)
