"""The result of one decision: SemIf's shared-form result, flat, with where it came from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.reference import RequestRef

PROMPT_VERSION = "direct-options-v1"
READOUT_DIRECT = "native full-vocabulary last-position logits restricted to declared answer slots"
READOUT_NATIVE = "native selected suffix-position logits"
READOUT_FLOAT32 = "float32 logits of the declared answer slots from the last hidden state"
PROBABILITY_STATUS = "conditional option score; uncalibrated as decision confidence"


class ModelIdentity(BaseModel):
    """Which weights, on which stack, gave the numbers (contract section 3)."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    source: str = Field(description="Repository id, folder name or file name of the model.")
    revision: str = Field(description="Commit of the repository, or sha256 of the weights.")
    dtype: str
    device: str
    torch_version: str
    transformers_version: str
    serving_config: str = Field(description="Name of the way the group was scored.")


class Calibrated(BaseModel):
    """Probabilities after temperature scaling for a workload: softmax(option_logits / T)."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    workload: str
    temperature: float = Field(gt=0)
    probabilities: list[float]


class DecisionResult(BaseModel):
    """One answered decision. Options keep the request's order in every list.

    Consumers must ignore fields they do not know. There are no timings: what a request's
    result says depends on the request, the model and the stack alone.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: str = Field(description="The decision's id.")
    option_ids: list[str]
    probabilities: list[float] = Field(description="Softmax over the declared options only.")
    option_logits: list[float] = Field(description="Raw logits of the options' letters.")
    input_tokens: int = Field(ge=1, description="Tokens of the whole prompt.")
    prompt_sha256: str = Field(description="sha256 of the rendered prompt's UTF-8 bytes.")
    prompt_version: Literal["direct-options-v1"]
    model: ModelIdentity
    readout: str
    probability_status: str
    top: str = Field(description="Id of the first option with the highest logit.")
    margin: float = Field(ge=0, description="Difference of the two highest logits.")
    tie: bool = Field(description="The margin lies within the tie band: no clear winner.")
    calibrated: Calibrated | None = Field(
        default=None, description="Present when the decision names a workload."
    )
    request: RequestRef = Field(description="The record this answers.")
