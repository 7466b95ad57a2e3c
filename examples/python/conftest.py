import pathlib

import pytest


@pytest.fixture(scope="session")
def tabletop_args():
    """Each test begins with the orders of this folder."""
    return ["--seed", str(pathlib.Path(__file__).parent.parent / "orders")]
