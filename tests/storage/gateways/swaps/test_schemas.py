from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.swaps import schemas
from roost.storage.gateways.swaps.model import HotSwap

NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
SWAP = HotSwap("s", "t", ContentNetwork.PUBLIC, "cid", None, NOW)


@pytest.mark.parametrize("name", ["swap_cid", "swapCid"])
def test_both_names_of_the_field(name: str) -> None:
    assert schemas.PutSwapRequest.model_validate({name: "x"}).swap_cid == "x"


@pytest.mark.parametrize("body", [{}, {"swap_cid": None}, {"swap_cid": 7}, {"swap_cid": "x" * 513}])
def test_bodies_that_are_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        schemas.PutSwapRequest.model_validate(body)


def test_how_swaps_are_told() -> None:
    told = "2026-11-21T10:29:47.355000Z"
    assert schemas.SwapRecord(**vars(SWAP)).model_dump(mode="json") == {"mapped_cid": None, "created_at": told}
