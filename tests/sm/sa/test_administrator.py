"""The Subnet Administrator among clients of every kind."""

from random import Random

import pytest

from tests.sm.managed import Managed
from tests.sm.sa_client import SaClient
from tests.sm.subnets import star
from wire.sa import SA_MAD, SaAttribute, SaMethod


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_it_goes_on_answering(seed):
    print(f"seed {seed}")
    random = Random(seed)
    up = Managed(star()).bring_up()
    client = SaClient(up, 3)
    for _time in range(300):
        values = {field.name: random.choice((0, field.max, random.getrandbits(field.width))) for field in SA_MAD.fields}
        values |= {"base_version": 1, "mgmt_class": 3, "class_version": random.choice((1, 2, 2, 2))}
        values |= {"method": random.choice((*SaMethod, 7)), "attribute_id": random.choice((*SaAttribute, 0x38))}
        values["component_mask"] &= random.getrandbits(64) & random.getrandbits(64)
        client.send(SA_MAD.record(values))
        up.mads.poll(up.fabric.now)
    assert len(client.ask(SaMethod.GET_TABLE, SaAttribute.NODE_RECORD).records) == 3
