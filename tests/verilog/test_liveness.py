"""What the outputs of a design depend on, across instances."""

from verilog.liveness import Instance, Liveness, Statement


def test_statements_are_followed_back_and_all_else_is_left():
    top = {"sum": Statement(["s"], ["a", "b"]), "copy": Statement(["b"], ["c"]), "other": Statement(["d"], ["a"])}
    live = Liveness({"top": top}, {"top": ["s"]})
    assert live.parts == {"sum", "copy"}
    assert live.nets == {"top": {"s", "a", "b", "c"}}


def test_a_register_that_only_it_reads_is_dead():
    live = Liveness({"top": {"count": Statement(["n"], ["n"])}}, {"top": ["q"]})
    assert not live.parts


def test_an_instance_needs_what_its_module_needs_anywhere():
    top = {
        "first": Instance("inner", {"x": ["q"]}, {"d": ["a"], "e": ["b"]}),
        "second": Instance("inner", {"y": ["r"]}, {"d": ["x"], "e": ["c"]}),
    }
    inner = {"q": Statement(["q"], ["d"]), "r": Statement(["r"], ["e"])}
    live = Liveness({"top": top, "inner": inner}, {"top": ["x"]})
    assert live.parts == {"first", "q"}
    assert live.nets == {"top": {"x", "a"}, "inner": {"q", "d"}}
    # The second needs E inside, so the first one's is needed too.
    live = Liveness({"top": top, "inner": inner}, {"top": ["y"]})
    assert live.nets == {"top": {"y", "c"}, "inner": {"r", "e"}}
    live = Liveness({"top": top, "inner": inner}, {"top": ["y", "x"]})
    assert live.nets["top"] == {"x", "y", "a", "b", "c"}
