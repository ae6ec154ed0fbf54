"""A started app, shared by all tests."""

import pytest

from app_server import Server
from small_study import codebook


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("runs"))
    yield found
    found.end()


@pytest.fixture(scope="session")
def described():
    """The codebook of the small study, as a file to send."""
    return ("items.csv", codebook().to_csv(index=False).encode())


@pytest.fixture(scope="session")
def done(server, described):
    """A run that is fitted; not to be changed."""
    run = server.opened(codebook=described)
    server.use(run, age="confound", sex="confound")
    server.fitted(run)
    assert server.get(f"/runs/{run}").getheader("location").endswith("results")
    return run
