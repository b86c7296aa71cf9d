"""Codes in communication management messages (IBTA vol 1, 12.6)."""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "AprStatus",
    "ConnectedService",
    "FailoverAccepted",
    "MraMessage",
    "RejMessage",
    "RejectReason",
    "SidrStatus",
]


class ConnectedService(IntEnum):
    """REQ.TransportServiceType (IBTA vol 1, 12.7.6)."""

    RC = 0
    UC = 1
    RD = 2
    EXTENDED = 3


class MraMessage(IntEnum):
    """MRA.MessageMRAed: what takes its receiver so long (IBTA vol 1, 12.6.6)."""

    REQ = 0
    REP = 1
    LAP = 2


class RejMessage(IntEnum):
    """REJ.MessageREJected (IBTA vol 1, 12.6.7)."""

    REQ = 0
    REP = 1
    NO_MESSAGE = 2


class RejectReason(IntEnum):
    """REJ.Reason (IBTA vol 1, 12.6.7.2)."""

    NO_QP = 1
    NO_EEC = 2
    NO_RESOURCES = 3
    TIMEOUT = 4
    UNSUPPORTED_REQUEST = 5
    INVALID_COMMUNICATION_ID = 6
    INVALID_COMMUNICATION_INSTANCE = 7
    INVALID_SERVICE_ID = 8
    INVALID_TRANSPORT_SERVICE_TYPE = 9
    STALE_CONNECTION = 10
    RDC_DOES_NOT_EXIST = 11
    PRIMARY_GID_REJECTED = 12
    PRIMARY_LID_REJECTED = 13
    INVALID_PRIMARY_SL = 14
    INVALID_PRIMARY_TRAFFIC_CLASS = 15
    INVALID_PRIMARY_HOP_LIMIT = 16
    INVALID_PRIMARY_PACKET_RATE = 17
    ALTERNATE_GID_REJECTED = 18
    ALTERNATE_LID_REJECTED = 19
    INVALID_ALTERNATE_SL = 20
    INVALID_ALTERNATE_TRAFFIC_CLASS = 21
    INVALID_ALTERNATE_HOP_LIMIT = 22
    INVALID_ALTERNATE_PACKET_RATE = 23
    PORT_AND_CM_REDIRECTION = 24
    PORT_REDIRECTION = 25
    INVALID_PATH_MTU = 26
    INSUFFICIENT_RESPONDER_RESOURCES = 27
    CONSUMER_REJECT = 28
    RNR_RETRY_COUNT_REJECT = 29
    DUPLICATE_LOCAL_COMMUNICATION_ID = 30
    INVALID_CLASS_VERSION = 31
    INVALID_PRIMARY_FLOW_LABEL = 32
    INVALID_ALTERNATE_FLOW_LABEL = 33


class FailoverAccepted(IntEnum):
    """REP.FailoverAccepted: what becomes of the alternate path (IBTA vol 1, 12.7.21)."""

    ACCEPTED = 0
    NOT_SUPPORTED = 1
    REJECTED = 2


class AprStatus(IntEnum):
    """APR.APStatus (IBTA vol 1, 12.8.2)."""

    LOADED = 0
    INVALID_COMMUNICATION_ID = 1
    NOT_SUPPORTED = 2
    PORT_REJECTED = 3
    REDIRECT = 4
    GID_REJECTED = 5
    LID_REJECTED = 6
    INVALID_FLOW_LABEL = 7
    INVALID_TRAFFIC_CLASS = 8
    INVALID_HOP_LIMIT = 9
    INVALID_PACKET_RATE = 10
    INVALID_SL = 11


class SidrStatus(IntEnum):
    """SIDR_REP.Status (IBTA vol 1, 12.11.2)."""

    QPN_VALID = 0
    SERVICE_ID_NOT_SUPPORTED = 1
    REJECTED = 2
    NO_QP = 3
    REDIRECT = 4
    VERSION_NOT_SUPPORTED = 5
