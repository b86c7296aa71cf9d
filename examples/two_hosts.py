"""Two hosts at one switch, on the golden model or on RTL: `.venv/bin/python examples/two_hosts.py [ENGINE]`."""

import sys

import ironband

engine = sys.argv[1] if len(sys.argv) > 1 else "model"
fabric = ironband.Fabric("star")
print(fabric)

with fabric.run(engine, compared=True) as run:
    run.bring_up()
    print(f"up in cycle {run.cycle:,}: H1 has LID {run.lid('H1')}, H2 has LID {run.lid('H2')}")

    seen = run.monitor(kinds=[ironband.Kind.TX_DATA], ports=["SW1[2]"]).seen
    run.send("H1", to="H2", payload=b"hello")
    arrival = run.receive("H2")
    print(f"{arrival.payload.decode()!r} from {arrival.source} in cycle {arrival.cycle:,}")

    run.inject("H1", "bit_flip", row=8)
    run.send("H1", to="H2", payload=b"damaged on its way")
    run.send("H1", to="H2", payload=b"whole")
    print(f"{run.receive('H2').payload.decode()!r} arrives, the other does not")

    counters = run.counters("SW1[1]")
    print(f"SW1[1] received {counters['rcv_pkts']} packets and counts {counters['rcv_errors']} error")
    for event in seen:
        print(event)

if engine != "model":
    print(f"{run.events_compared:,} events were the same in RTL and golden model")
