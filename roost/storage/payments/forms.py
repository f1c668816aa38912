"""JSON forms of x402, versions 1 and 2: what must be paid, a payment in a header, and the receipt.

Version 1 names a network `base`, version 2 `eip155:8453`. A payment is parsed strictly, and what a facilitator gets is
made of what was parsed, so a field that was not checked goes no further.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from roost.core.ethereum import checksum_address
from roost.drivers.facilitator.contract import PaymentRequest
from roost.storage.payments.model import (
    MAX_TIMEOUT_SECONDS,
    PaidResource,
    PaymentRefused,
    PaymentTerms,
    TransferAuthorization,
)

HEADER_LIMIT = 16 * 1024
"""Maximum characters of a payment in a header."""
SCHEME = "exact"
_SIGNATURE_LIMIT = 4096


def _check_word(number: str) -> str:
    if int(number) >= 2**256:
        raise ValueError("must be less than 2^256")
    return number


_Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$", to_lower=True)]
_Number = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,77})$"), AfterValidator(_check_word)]
_Nonce = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{64}$", to_lower=True)]
_Signature = Annotated[
    str, StringConstraints(pattern=r"^0x([0-9a-fA-F]{2})+$", max_length=2 + 2 * _SIGNATURE_LIMIT, to_lower=True)
]
_Name = Annotated[str, StringConstraints(max_length=256)]


class _Form(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, strict=True)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class _Authorization(_Form):
    from_: Annotated[_Address, Field(alias="from")]
    to: _Address
    value: _Number
    valid_after: _Number
    valid_before: _Number
    nonce: _Nonce


class _SignedTransfer(_Form):
    signature: _Signature
    authorization: _Authorization

    @property
    def transfer(self) -> TransferAuthorization:
        one = self.authorization
        return TransferAuthorization(
            payer=one.from_,
            pay_to=one.to,
            value=int(one.value),
            valid_after=int(one.valid_after),
            valid_before=int(one.valid_before),
            nonce=one.nonce,
            signature=bytes.fromhex(self.signature[2:]),
        )

    def with_checksums(self) -> "_SignedTransfer":
        """Return the transfer with its addresses as facilitators take them, with checksums (EIP-55)."""
        one = self.authorization
        written = one.model_copy(update={"from_": _checksum(one.from_), "to": _checksum(one.to)})
        return _SignedTransfer.model_construct(signature=self.signature, authorization=written)


class _Resource(_Form):
    url: Annotated[str, StringConstraints(max_length=8192)]
    description: str | None = None
    mime_type: str | None = None


class _Requirement(_Form):
    scheme: _Name
    network: _Name
    asset: _Name
    amount: _Name
    pay_to: _Name
    max_timeout_seconds: int
    extra: Mapping[str, Any] = Field(default_factory=dict[str, Any])


class _RequirementV1(_Form):
    scheme: str
    network: str
    max_amount_required: str
    resource: str
    description: str
    mime_type: str
    pay_to: str
    max_timeout_seconds: int
    asset: str
    extra: Mapping[str, Any]


class SignedPayment(_Form):
    """A payment as its header says it, in version 2."""

    x402_version: Annotated[Literal[2], Field(alias="x402Version")] = 2
    payload: _SignedTransfer
    accepted: _Requirement
    resource: _Resource | None = None

    @property
    def resource_url(self) -> str | None:
        """The URL of what the payer pays for, if the payment names it."""
        return None if self.resource is None else self.resource.url

    def accepts(self, terms: PaymentTerms) -> bool:
        """Return whether the payer accepted these terms, as they are offered."""
        return self.accepted.scheme == SCHEME and _normalize(self.accepted) == _normalize(_requirement(terms))

    def to_request(self, terms: PaymentTerms, resource: PaidResource) -> PaymentRequest:
        """Return the payment and the requirement that it meets, for a facilitator."""
        requirement = _requirement(terms)
        payload = self.payload.with_checksums()
        written = SignedPayment(payload=payload, accepted=requirement, resource=_Resource(**vars(resource)))
        return PaymentRequest(2, written.to_json(), requirement.to_json())


class SignedPaymentV1(_Form):
    """A payment as its header says it, in version 1."""

    x402_version: Annotated[Literal[1], Field(alias="x402Version")] = 1
    scheme: _Name
    network: _Name
    payload: _SignedTransfer

    @property
    def resource_url(self) -> None:
        """No URL: payments of this version name none."""
        return

    def accepts(self, terms: PaymentTerms) -> bool:
        """Return whether the payment may be for these terms; it does not name the asset, which the signature covers."""
        return self.scheme == SCHEME and self.network == terms.asset.network.name

    def to_request(self, terms: PaymentTerms, resource: PaidResource) -> PaymentRequest:
        """Return the payment and the requirement that it meets, for a facilitator."""
        payload = self.payload.with_checksums()
        written = SignedPaymentV1(scheme=SCHEME, network=terms.asset.network.name or "", payload=payload)
        return PaymentRequest(1, written.to_json(), _requirement_v1(terms, resource).to_json())


AnyPayment = SignedPayment | SignedPaymentV1


def parse_payment(header: str) -> AnyPayment:
    """Parse a payment in either version. Raises PaymentRefused."""
    if len(header) > HEADER_LIMIT:
        raise PaymentRefused(f"The payment must have at most {HEADER_LIMIT} characters")
    try:
        content = base64.b64decode(header, validate=True)
        version = json.loads(content)["x402Version"]
        return (SignedPaymentV1 if version == 1 else SignedPayment).model_validate_json(content)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"])) or "payment"
        raise PaymentRefused(f"The payment is malformed: {field}: {fault['msg']}") from None
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError):
        raise PaymentRefused("The payment must be base64 of a JSON object with x402Version") from None


def required_payment(error: str, terms: Sequence[PaymentTerms], resource: PaidResource) -> dict[str, Any]:
    """Return what must be paid in the form of version 2."""
    accepts = [_requirement(one).to_json() for one in terms]
    return {"x402Version": 2, "error": error, "resource": _Resource(**vars(resource)).to_json(), "accepts": accepts}


def required_payment_v1(error: str, terms: Sequence[PaymentTerms], resource: PaidResource) -> dict[str, Any]:
    """Return what must be paid in the form of version 1, which knows only networks with a name."""
    accepts = [_requirement_v1(one, resource).to_json() for one in terms if one.asset.network.name is not None]
    return {"x402Version": 1, "error": error, "accepts": accepts}


def create_receipt(version: int, terms: PaymentTerms, payer: str, transaction: str) -> dict[str, Any]:
    """Return the settlement of a payment, for its payer."""
    network = terms.asset.network.caip2 if version == 2 else terms.asset.network.name
    return {"success": True, "transaction": transaction, "network": network, "payer": _checksum(payer)}


def encode_header(content: Mapping[str, Any]) -> str:
    """Encode a form for a header."""
    return base64.b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


def _requirement(terms: PaymentTerms) -> _Requirement:
    return _Requirement(
        scheme=SCHEME,
        network=terms.asset.network.caip2,
        asset=_checksum(terms.asset.address),
        amount=str(terms.amount),
        pay_to=_checksum(terms.pay_to),
        max_timeout_seconds=MAX_TIMEOUT_SECONDS,
        extra=_domain(terms),
    )


def _requirement_v1(terms: PaymentTerms, resource: PaidResource) -> _RequirementV1:
    return _RequirementV1(
        scheme=SCHEME,
        network=terms.asset.network.name or "",
        max_amount_required=str(terms.amount),
        resource=resource.url,
        description=terms.description or resource.description,
        mime_type=resource.mime_type,
        pay_to=_checksum(terms.pay_to),
        max_timeout_seconds=MAX_TIMEOUT_SECONDS,
        asset=_checksum(terms.asset.address),
        extra=_domain(terms),
    )


def _checksum(address: str) -> str:
    return checksum_address(bytes.fromhex(address[2:]))


def _domain(terms: PaymentTerms) -> Mapping[str, Any]:
    return {"name": terms.asset.name, "version": terms.asset.version}


def _normalize(requirement: _Requirement) -> tuple[Any, ...]:
    """Return what two requirements must have in common; the case of an address means nothing."""
    extra = json.dumps(requirement.extra, sort_keys=True)
    addresses = (requirement.asset.lower(), requirement.pay_to.lower())
    return requirement.network, *addresses, requirement.amount, requirement.max_timeout_seconds, extra
