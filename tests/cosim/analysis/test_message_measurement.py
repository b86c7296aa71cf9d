"""What each stream of messages got."""

import pytest

from cosim.analysis.message_measurement import MessageMeasurement
from cosim.stimulus.flows import message_streams, scenario_streams
from cosim.stimulus.message_events import MessageEvent, MessageStep
from tests.cosim.hosts.message_runs import star
from verbs.completions import CompletionStatus
from verbs.incidents import Incident

FLOW = 'transport = "rc"\nmessage_bytes = 4_096\ncount = 9'


@pytest.fixture
def measurement() -> MessageMeasurement:
    """Of stream 1; stream 0 is one of packets."""
    scenario = star("count = 1", FLOW)
    return MessageMeasurement(scenario.topology, len(scenario_streams(scenario)), message_streams(scenario))


def test_throughput_is_from_the_first_arrival_to_the_last(measurement):
    for number in range(3):
        measurement.follow_message(MessageEvent(1, 0, "H1", MessageStep.POSTED, number))
        measurement.follow_message(
            MessageEvent(1, 5_000 + 2_000 * number, "H2", MessageStep.ARRIVED, number, cycles=5_000 + 2_000 * number)
        )
    (served,) = measurement.served.values()
    assert (served.posted, served.arrived, served.payload_bytes) == (3, 3, 3 * 4_096)
    assert served.bytes_per_cycle == 2 * 4_096 / 4_000
    # Two packets of 519 rows each.
    assert served.link_cycles == 2 * 519
    assert served.share == pytest.approx(1_038 / 2_000)
    assert (served.latencies.least, served.latencies.most) == (5_000, 9_000)
    assert measurement.missing == 0


def test_one_message_has_no_throughput(measurement):
    measurement.follow_message(MessageEvent(1, 7, "H2", MessageStep.ARRIVED, 0, cycles=7))
    assert measurement.served[1].bytes_per_cycle == 0.0


def test_incidents_errors_and_faults_are_counted(measurement):
    for incident in (Incident.SEQUENCE_NAK, Incident.TIMEOUT, Incident.TIMEOUT, Incident.DUPLICATE):
        measurement.follow_message(MessageEvent(1, 0, "H1", incident, psn=3))
    status = CompletionStatus.RETRY_EXC_ERR
    measurement.follow_message(MessageEvent(1, 0, "H1", MessageStep.POSTED, 0))
    measurement.follow_message(MessageEvent(1, 0, "H1", MessageStep.FAILED, 0, status=status))
    measurement.follow_message(MessageEvent(1, 8, "H2", MessageStep.WRONG, 4, text="byte 1 is 0x00, sent was 0x01"))
    served = measurement.served[1]
    assert (served.retries, served.incidents[Incident.DUPLICATE], served.failed[status]) == (3, 1, 1)
    assert measurement.faults == ["cycle 8, H2: message 4 of H1-H2: byte 1 is 0x00, sent was 0x01"]
    assert (measurement.fault_count, measurement.missing) == (1, 1)
