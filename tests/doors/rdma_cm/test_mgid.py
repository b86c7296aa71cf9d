"""Multicast GIDs of IP addresses."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from doors.rdma_cm.mgid import GroupAddress, group_mgid
from wire.ip_cm import PortSpace

BROADCAST = int(IPv6Address("ff12:401b:8007::ffff:ffff"))
SITE = int(IPv6Address("ff15:401b:8007::ffff:ffff"))


@pytest.mark.parametrize(
    ("address", "space", "broadcast", "mgid"),
    [
        # RFC 4391, 4, and what the kernel makes of it for programs of the port space UDP.
        ("224.0.0.1", PortSpace.IPOIB, BROADCAST, "ff12:401b:8007::1"),
        ("239.129.2.3", PortSpace.IPOIB, BROADCAST, "ff12:401b:8007::f81:203"),
        ("239.129.2.3", PortSpace.UDP, BROADCAST, "ff12:4001:8007::f81:203"),
        ("239.129.2.3", PortSpace.IB, SITE, "ff15:401b:8007::f81:203"),
        ("ff18::1:2:3:4:5", PortSpace.IPOIB, BROADCAST, "ff12:601b:8007:1:2:3:4:5"),
        ("ff18::1:2:3:4:5", PortSpace.UDP, BROADCAST, "ff12:6001:8007:1:2:3:4:5"),
        ("ff15:a01b:fe80::9", PortSpace.UDP, BROADCAST, "ff15:a01b:fe80::9"),
        ("0.0.0.0", PortSpace.UDP, BROADCAST, "::"),
        ("::", PortSpace.IPOIB, BROADCAST, "::"),
    ],
)
def test_an_address_has_the_mgid_that_a_kernel_gives_it(address, space, broadcast, mgid):
    assert IPv6Address(group_mgid(GroupAddress(ip_address(address)), space, broadcast)) == IPv6Address(mgid)


def test_an_mgid_stands_for_itself():
    assert group_mgid(GroupAddress(mgid=0xFF12 << 112 | 7), PortSpace.UDP, BROADCAST) == 0xFF12 << 112 | 7
    assert group_mgid(GroupAddress(IPv4Address(0), mgid=9), PortSpace.UDP, BROADCAST) == 0
