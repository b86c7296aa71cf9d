"""Answers in several segments over a way that loses them, or to somebody who is gone."""

from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import star
from wire.sa import SA_MAD, SaAttribute, SaMethod

NODES = (SaMethod.GET_TABLE, SaAttribute.NODE_RECORD)


def test_a_window_is_sent_only_when_the_one_before_was_acknowledged():
    client = SaClient(Managed(star(hosts=8)).bring_up(), 3)
    client.acknowledges = False
    client.request(*NODES)
    client.managed.fabric.run(lambda: client.segments > 0)
    assert client.segments == 1


def test_what_is_not_acknowledged_is_sent_again_and_given_up():
    client = SaClient(Managed(star(hosts=8)).bring_up(), 3)
    client.acknowledges = False
    client.request(*NODES)
    heard = []
    client.managed.fabric.on_gmp = lambda out: heard.append(SA_MAD.unpack(out.mad))
    client.managed.fabric.run(lambda: any(mad.rmpp_type == 4 for mad in heard))
    assert [(mad.rmpp_type, mad.segment_number) for mad in heard] == [(1, 1)] * 4 + [(4, 0)]


def test_a_repeated_request_does_not_double_the_answer():
    client = SaClient(Managed(star(hosts=8)).bring_up(), 3)
    mad = SA_MAD.record(
        method=SaMethod.GET_TABLE, attribute_id=SaAttribute.NODE_RECORD, transaction_id=5, component_mask=0
    )
    client.send(mad)
    client.send(mad)
    client.managed.fabric.run(lambda: client.message is not None)
    assert client.segments == -(-112 * 9 // 200)
