"""All claims by domain, and how yes, no and unclear are said."""

from __future__ import annotations

from acceptance.tiny.claims_daily import SHIFT, TICKET
from acceptance.tiny.claims_service import DEPLOYMENT, INCIDENT
from acceptance.tiny.names import parts

DOMAINS = {
    "deployment": DEPLOYMENT,
    "incident": INCIDENT,
    "ticket": TICKET,
    "shift": SHIFT,
}

YES = parts(
    "Yes|yes|Yes.|yes.|Yes, it is so.|The evidence says so.|It is so.|True|That is right.|Yes, "
    "indeed.|The evidence says yes.|That is true.|Correct|Yes, that is so.|This is the case.|Right"
)
NO = parts(
    "No|no|No.|no.|No, it is not so.|The evidence says the opposite.|It is not so.|False|That is "
    "wrong.|No, not at all.|The evidence says no.|That is not true.|Incorrect|No, that is not so.|"
    "This is not the case.|Wrong"
)
UNCLEAR = parts(
    "The evidence does not tell.|The evidence does not say.|It cannot be told.|Unclear|unclear|"
    "Unknown|Not stated|It is not stated.|Cannot be told|It cannot be told from the evidence.|Not "
    "known|The evidence says nothing about it.|There is not enough evidence.|Nobody can tell.|"
    "Undecided|It is not known.|cannot be told|Not enough information|It is unclear."
)
