"""Datagram services are found by their service IDs (SIDR)."""

import pytest

from tests.verbs.cm_wire import SECOND, SERVICE, CmWire, End, given
from verbs.address import AddressVector
from verbs.cm_lookup import LookupResult, ServiceRequest
from verbs.cm_parameters import CmRoute
from wire.cm import CmMessage
from wire.cm_codes import SidrStatus


def found_at(end: End, **service: object) -> list[LookupResult]:
    results: list[LookupResult] = []
    end.cm.look_up(SERVICE, CmRoute(AddressVector(2)), 0xFFFF, b"who", results.append)
    return results


@pytest.mark.parametrize("lost", [None, CmMessage.SIDR_REQ, CmMessage.SIDR_REP])
def test_a_datagram_service_is_found(ends, lost):
    asked: list[ServiceRequest] = []

    def answer(request: ServiceRequest) -> None:
        asked.append(request)
        request.reply(SidrStatus.QPN_VALID, 0x33, 0x0123_4567, b"here")

    ends[1].cm.serve(SERVICE, answer)
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is lost and wire.now < SECOND
    results = found_at(ends[0])
    wire.run()
    (result,) = results
    assert (result.status, result.qpn, result.q_key) == (SidrStatus.QPN_VALID, 0x33, 0x0123_4567)
    assert result.private_data.rstrip(b"\0") == b"here"
    assert [request.private_data.rstrip(b"\0") for request in asked] == [b"who"]
    assert not ends[0].cm.open


def test_a_question_that_is_not_answered_yet_is_asked_once_and_an_old_one_anew(ends):
    asked: list[ServiceRequest] = []
    ends[1].cm.serve(SERVICE, asked.append)
    question = {"service_id": SERVICE, "request_id": 7}
    for _ in range(2):
        assert given(ends[1], CmMessage.SIDR_REQ, **question) == []
    assert len(asked) == 1
    asked[0].reply(SidrStatus.NO_QP)
    ((_kind, answer),) = given(ends[1], CmMessage.SIDR_REQ, **question)[-1:]
    assert answer.status == SidrStatus.NO_QP
    assert len(asked) == 1
    given(ends[1], CmMessage.SIDR_REQ, 70 * SECOND, **question)
    assert len(asked) == 2


def test_a_datagram_service_that_there_is_not_is_not_supported(ends):
    results = found_at(ends[0])
    CmWire(*ends).run()
    assert [result.status for result in results] == [SidrStatus.SERVICE_ID_NOT_SUPPORTED]


def test_a_lookup_that_is_closed_brings_nothing(ends):
    results: list[LookupResult] = []
    ends[0].cm.look_up(SERVICE, CmRoute(AddressVector(2)), 0xFFFF, b"", results.append).close()
    CmWire(*ends).run()
    assert not results


def test_a_lookup_that_nobody_answers_ends_after_16_tries(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: True
    results = found_at(ends[0])
    wire.run()
    assert [result.status for result in results] == [None]
    assert wire.sent() == [CmMessage.SIDR_REQ] * 16
    assert not ends[0].cm.open
