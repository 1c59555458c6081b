"""How results and errors name the record they answer."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer


class RequestRef(BaseModel):
    """Coordinates of a request record.

    The key is text where it is UTF-8. Otherwise `key` is null and one of the two optional
    fields stands beside it: `key_base64`, or `key_sha256` for a key over the limit.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: str | None = Field(description="The request's id; null where it could not be read.")
    topic: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    key: str | None = Field(description="The record's key; null without a key or if not UTF-8.")
    key_base64: str | None = Field(default=None, description="A key that is not UTF-8.")
    key_sha256: str | None = Field(default=None, description="Digest of a key over the limit.")

    @model_serializer(mode="wrap")
    def _leave_out_absent_key_forms(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for form in ("key_base64", "key_sha256"):
            if data.get(form) is None:
                data.pop(form, None)
        return data

    @classmethod
    def of(
        cls,
        *,
        request_id: str | None,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        key_limit: int,
    ) -> RequestRef:
        """The reference of one consumed record; `key_limit` in bytes."""
        text = key_base64 = key_sha256 = None
        if key is not None and len(key) > key_limit:
            key_sha256 = hashlib.sha256(key).hexdigest()
        elif key is not None:
            try:
                text = key.decode("utf-8")
            except UnicodeDecodeError:
                key_base64 = base64.b64encode(key).decode("ascii")
        return cls(
            id=request_id,
            topic=topic,
            partition=partition,
            offset=offset,
            key=text,
            key_base64=key_base64,
            key_sha256=key_sha256,
        )
