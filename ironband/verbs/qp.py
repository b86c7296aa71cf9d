"""Queue pairs, and what they are made with."""

from ironband.verbs.qp_attributes import QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from ironband.verbs.qp_extended import DataBuffer, QPEx
from ironband.verbs.queue_pair import QP

__all__ = ["QP", "DataBuffer", "QPAttr", "QPCap", "QPEx", "QPInitAttr", "QPInitAttrEx"]
