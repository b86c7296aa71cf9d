"""Designs from the cache."""

import pytest

from verilog.design import export


def test_code_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"nowhere/\*\.py: expected the Python code that a design depends on"):
        export(lambda: None, "parameters", ["nowhere/*.py"])
