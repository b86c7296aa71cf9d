"""The map of a fabric: who stands where."""

import math

from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, parse_topology, read_topology
from ironband.page.fabric_map import place_nodes


def fat_tree(leaves: int, spines: int, hosts: int) -> str:
    lines = []
    for leaf in range(leaves):
        lines.append(f'Switch 36 "L{leaf}"')
        lines += [f'[{host + 1}] "H{leaf * hosts + host}"[1]' for host in range(hosts)]
        lines += [f'[{hosts + 1 + spine}] "S{spine}"[{leaf + 1}]' for spine in range(spines)]
    for spine in range(spines):
        lines.append(f'Switch 36 "S{spine}"')
        lines += [f'[{leaf + 1}] "L{leaf}"[{hosts + 1 + spine}]' for leaf in range(leaves)]
    for host in range(leaves * hosts):
        lines += [f'Ca 1 "H{host}"', f'[1] "L{host // hosts}"[{host % hosts + 1}]']
    return "\n".join(lines)


def test_648_hosts_stand_below_their_leaves_and_none_upon_another():
    places = place_nodes(fabric_of(parse_topology(fat_tree(36, 18, 18), "fat_tree")).fabric)
    assert len(set(places.values())) == 648 + 54
    heights = {name[0]: {y for other, (_, y) in places.items() if other[0] == name[0]} for name in ("S", "L")}
    assert max(heights["S"]) < min(heights["L"])
    for host in range(648):
        (x, y), (above, leaf) = places[f"H{host}"], places[f"L{host // 18}"]
        assert y > leaf
        assert abs(x - above) < 48, "half a leaf's share of the width"


def test_a_ring_is_a_circle():
    places = place_nodes(fabric_of(read_topology(find_topology("ring_4"))).fabric)
    away = sorted(math.hypot(x, y) for x, y in places.values())
    assert math.isclose(away[0], away[3], rel_tol=1e-9)
    assert away[4] > away[3]
