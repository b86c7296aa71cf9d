"""What a test inside the simulator knows of its fabric."""

from cosim.drivers.description import Description
from rtl.fabric.ports import FabricPorts
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters, adapter_port_name


def test_ports_of_an_adapter_are_called_as_people_call_them(tmp_path, monkeypatch):
    first, second = (adapter_port_name("H", port) for port in (1, 2))
    nodes = {"S": SwitchParameters(ports=2), first: AdapterParameters(), second: AdapterParameters()}
    links = (LinkParameters(first, 1, "S", 1), LinkParameters(second, 1, "S", 2))
    fabric = FabricParameters(nodes, links)
    Description.of(fabric, FabricPorts.of(fabric, ()), {first: 1, second: 2}, (), 0).write(tmp_path)
    monkeypatch.chdir(tmp_path)
    description = Description.read()
    assert description.nodes == ("S", "H[1]", "H[2]")
    assert description.adapters == ("H[1]", "H[2]")
    assert description.vls == {"S": 1, "H[1]": 1, "H[2]": 1}
    assert description.lids == {"H[1]": 1, "H[2]": 2}
