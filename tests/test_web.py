"""A folder of a server that knows no listing."""

from __future__ import annotations

import pytest

from faults import QUICK
from hub import absurd_length, no_length, running
from store_kit import bundle_of, make_files
from tokforge_models.bundle import Source
from tokforge_models.errors import FetchError
from tokforge_models.sources.network import Contacts
from tokforge_models.sources.web import WebFetcher

FILES = make_files()
REPO = "maker/demo"


@pytest.mark.parametrize("fault", [absurd_length, no_length])
def test_a_file_of_which_no_length_is_told(fault) -> None:
    with running() as hub:
        hub.commit(REPO, dict(FILES))
        source = Source("url", f"{hub.url}/{REPO}/resolve/main")
        fetcher = WebFetcher(source, bundle_of(FILES), QUICK(), Contacts())
        hub.fault("llm.mnn.weight", fault)
        hub.fault("llm.mnn.weight", fault, host="cdn")
        with pytest.raises(
            FetchError, match=r"does not say how long llm\.mnn\.weight is"
        ) as caught:
            fetcher.listing()
        assert "tokforge import DIR --as demo" in caught.value.hint
        hub.heal()
        sizes = {file.path: file.size for file in fetcher.listing().files}
        assert sizes == {name: len(data) for name, data in FILES.items()}
