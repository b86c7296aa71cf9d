"""A fabric that is served on the golden model: where its own Subnet Manager cannot bring it up."""

import pytest

from doors.door import Door, NotUp
from doors.mads.own_manager import OwnManager
from doors.serving import ServeTask, make_door, make_lab, serve_fabric
from sm.settings import SubnetSettings
from wire.codes import LinkWidth
from wire.mad import MadMethod
from wire.mad_packet import smp_of
from wire.packet import parse
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.smp import unpack_smp
from wire.stimulus import Post

FABRIC = FabricParameters(
    {"S": SwitchParameters(ports=2), "A": AdapterParameters(), "B": AdapterParameters()},
    (LinkParameters("S", 1, "A", 1), LinkParameters("S", 2, "B", 1)),
)
TASK = ServeTask(
    FABRIC, (LinkWidth.X4, LinkWidth.X4), settings=SubnetSettings(light_sweep_period=None, polling_period=None)
)


@pytest.fixture
def door(tmp_path):
    made = make_door(TASK, tmp_path, (), lambda: None, lambda line: None)
    yield made
    made.close()


def sets_beyond_the_own_port(post: Post) -> bool:
    smp = unpack_smp(smp_of(parse(post.data)))
    return smp.method == MadMethod.SET and smp.hop_count > 0


def serve_where_sets_are_lost(door: Door, tmp_path, monkeypatch) -> None:
    posts_until = door.posts_until
    monkeypatch.setattr(
        door, "posts_until", lambda cycle: (post for post in posts_until(cycle) if not sets_beyond_the_own_port(post))
    )
    serve_fabric(TASK, door, make_lab(TASK, door), tmp_path / "work")


def test_a_fabric_whose_nodes_cannot_be_set_is_not_up(door, tmp_path, monkeypatch):
    with pytest.raises(NotUp, match=r"^the Subnet Manager could not bring the fabric up: `ironband up` says where"):
        serve_where_sets_are_lost(door, tmp_path, monkeypatch)


def test_a_subnet_manager_that_waits_for_ever_has_not_brought_it_up(door, tmp_path, monkeypatch):
    """All hosts' own agents have answered, so it is none of them that is silent."""
    monkeypatch.setattr(OwnManager, "unanswered", lambda self, agent, address, mad: None)
    with pytest.raises(NotUp, match=r"^the Subnet Manager could not bring the fabric up: `ironband up` says where"):
        serve_where_sets_are_lost(door, tmp_path, monkeypatch)
