"""Mutated MADs: one thing is wrong, the rest is as it was."""

from random import Random

import pytest

from cosim.stimulus.mad_mutation import mad_of, mutated
from wire.codes import LNH
from wire.crc import icrc_good
from wire.headers import LRH
from wire.mad import MAD_BYTES, MadMethod
from wire.mad_packet import gmp_packet, is_mad, smp_packet
from wire.pma import PmaAttribute, perf_request
from wire.sma import SmaAttribute
from wire.smp import smp_request

SMP = smp_packet(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=7, path=[1, 2])).data
PERF = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, transaction_id=7)
PACKETS = [SMP, gmp_packet(PERF, 1, 2).data, gmp_packet(PERF, 1, 2, grh={"hop_lmt": 1}).data]


def many(data):
    return [mutated(Random(seed), data) for seed in range(2_000)]


@pytest.mark.parametrize("data", PACKETS)
def test_some_are_no_mads_any_more_and_some_have_another_length(data):
    made = many(data)
    assert len({*made}) > 600
    assert sum(not is_mad(one) for one in made) > 20
    lengths = {len(one) for one in made}
    assert min(lengths) < len(data) < max(lengths)


@pytest.mark.parametrize("data", PACKETS)
def test_few_have_a_wrong_icrc_and_few_a_wrong_pkt_len(data):
    local = [one for one in many(data) if LRH["lnh"].read(one) in (LNH.IBA_LOCAL, LNH.IBA_GLOBAL)]
    assert 50 < sum(not icrc_good(one) for one in local) < 400
    assert 50 < sum(LRH["pkt_len"].read(one) != len(one) // 4 for one in local) < 400


def test_flips_are_few_bits_of_the_mad_mostly_of_its_header():
    differ = []
    for one in many(SMP):
        if one[:28] == SMP[:28] and len(one) == len(SMP) and one[28:-4] != SMP[28:-4]:
            was, now = (int.from_bytes(mad_of(data), "big") for data in (SMP, one))
            differ.append((was ^ now).bit_length())
    assert len(differ) > 500
    assert sum(8 * MAD_BYTES - bits < 8 * 32 for bits in differ) > len(differ) // 2
