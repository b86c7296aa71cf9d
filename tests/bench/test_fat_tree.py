"""Fat trees."""

from bench.fat_tree import HOST_GUID, SWITCH_GUID, add_host, fat_tree
from sm.subnet import End, Subnet


def test_hosts_are_at_the_first_ports_of_leaves_and_every_leaf_is_linked_to_every_spine() -> None:
    subnet = fat_tree(leaves=3, spines=2, hosts=4, parallel=2)
    leaves, spines = range(SWITCH_GUID, SWITCH_GUID + 3), range(SWITCH_GUID + 3, SWITCH_GUID + 5)
    assert [subnet.nodes[guid].ports for guid in (*leaves, *spines)] == [8] * 3 + [6] * 2
    assert len(subnet.nodes) == 5 + 12
    for leaf in leaves:
        far = dict(subnet.neighbours(leaf))
        assert [far[port].guid for port in range(5, 9)] == [spines[0]] * 2 + [spines[1]] * 2
        assert all(not subnet.nodes[far[port].guid].is_switch for port in range(1, 5))
    assert subnet.peer(End(SWITCH_GUID, 1)) == End(HOST_GUID, 1)
    assert subnet.peer(End(spines[1], 6)) == End(leaves[2], 8)


def test_port_guids_of_a_host_follow_its_own() -> None:
    subnet = Subnet()
    first, second = add_host(subnet, 2), add_host(subnet)
    assert [port.guid for port in subnet.nodes[first].end_ports.values()] == [first + 1, first + 2]
    assert second > first + 2
