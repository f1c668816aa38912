"""Which models there are, and their names: `upstream/model`, and for the default upstream also the model's own id.

An agent that has providers of its own has a catalogue above the deployment's. What both call by one name is its own.
"""

import asyncio
from collections.abc import Sequence

from roost.agents.models.errors import UnknownModel
from roost.agents.models.listing import ModelListing
from roost.agents.models.model import ModelInfo, ModelOffer
from roost.drivers.model.contract import ModelUpstream, UpstreamUnavailable


class ModelCatalog:
    def __init__(
        self, listings: Sequence[ModelListing], default: str | None = None, *, below: "ModelCatalog | None" = None
    ) -> None:
        """`default` is the name of an upstream (else it is the first), or `upstream/model` to put that model first."""
        self._listings = {listing.upstream.name: listing for listing in listings}
        if not listings or len(self._listings) < len(listings):
            raise ValueError("the model gateway has upstreams, each with a name of its own")
        name, _, self._preferred = (default or listings[0].upstream.name).partition("/")
        if name not in self._listings:
            raise ValueError(f"there is no upstream {name}")
        self._default = self._listings[name]
        self._below = below
        more: Sequence[ModelListing] = () if below is None else below.listings
        self.listings: Sequence[ModelListing] = [
            *listings,
            *(one for one in more if one.upstream.name not in self._listings),
        ]
        """All that is listed: the own ones, and those below that none of the same name hides."""

    async def offer(self) -> ModelOffer:
        """Every model by every id that it has, the default first. Upstreams that do not answer are left out."""
        told = await asyncio.gather(*map(_told, self.listings))
        found: dict[str, str] = {}
        for listing, models in zip(self.listings, told, strict=True):
            if listing is self._default:
                own = sorted(models or (), key=lambda model: model != self._preferred)
                found = dict.fromkeys(own, listing.upstream.name)
        for listing, models in zip(self.listings, told, strict=True):
            for model in models or ():
                found.setdefault(f"{listing.upstream.name}/{model}", listing.upstream.name)
        return ModelOffer([ModelInfo(model, upstream) for model, upstream in found.items()], complete=None not in told)

    async def find(self, model: str) -> tuple[ModelUpstream, str]:
        """The upstream and its own id of the model. Raises UnknownModel, UpstreamUnavailable."""
        name, _, own = model.partition("/")
        listing = self._listings.get(name)
        if listing is not None and own in await listing.models():
            return listing.upstream, own
        try:
            if model in await self._default.models():
                return self._default.upstream, model
            problem: UnknownModel | UpstreamUnavailable = UnknownModel(model)
        except UpstreamUnavailable as unavailable:
            problem = unavailable
        if self._below is None:
            raise problem
        try:
            return await self._below.find(model)
        except UnknownModel:
            raise problem from None


async def _told(listing: ModelListing) -> Sequence[str] | None:
    try:
        return await listing.models()
    except UpstreamUnavailable:
        return None
