# SPDX-License-Identifier: Apache-2.0
"""What the router must know of a request before it forwards the bytes untouched: the model, whether it streams, and
that it's no trick.
"""

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from gearshift.router.errors import ApiError, invalid, quoted


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A completion request that is well formed as far as routing goes."""

    raw: bytes  # as the client sent it
    document: dict[str, Any]
    model: str
    stream: bool


def parse_request(raw: bytes) -> ParsedRequest:
    """Check a body of ``/v1/completions`` or ``/v1/chat/completions``.

    Raises:
        ApiError: 400, naming the field and its bad value.
    """
    try:
        document = from_json(raw)
    except ValueError as error:  # bad JSON, bad UTF-8, nested too deeply
        raise invalid(f"The request body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(document, dict):
        raise invalid(f"The request body must be a JSON object, not {quoted(document)}.", code="invalid_json")
    return ParsedRequest(raw, document, _model(document), _stream(document))


def _model(document: dict[str, Any]) -> str:
    model = document.get("model")
    if not isinstance(model, str) or not model:
        raise invalid(f"'model' must be a non-empty string, not {quoted(model)}.", param="model")
    if "kv_transfer_params" in document:
        raise invalid(
            "'kv_transfer_params' is internal to the service and can't be set by a client.",
            param="kv_transfer_params",
            code="forbidden_field",
        )
    return model


def _stream(document: dict[str, Any]) -> bool:
    stream = document.get("stream")
    if stream is None:
        return False
    if not isinstance(stream, bool):
        raise invalid(f"'stream' must be true or false, not {quoted(stream)}.", param="stream")
    return stream


def unknown_model(model: str, served: list[str]) -> ApiError:
    """404 of a model that no pod of the service has."""
    known = ", ".join(repr(name) for name in served)
    message = f"The model {quoted(model)} does not exist; this service serves {known}."
    return invalid(message, status=404, code="model_not_found", param="model")
