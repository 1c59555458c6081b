"""See the package: `send_offsets_to_transaction` works for some calls and then never returns."""

from __future__ import annotations

import os
import threading
from typing import Any

import confluent_kafka


class HangingProducer(confluent_kafka.Producer):
    calls_left = int(os.environ["CALLS_BEFORE_THE_HANGING_ONE"])

    def send_offsets_to_transaction(self, *arguments: Any) -> None:
        if self.calls_left == 0:
            threading.Event().wait()
        self.calls_left -= 1
        super().send_offsets_to_transaction(*arguments)


confluent_kafka.Producer = HangingProducer  # type: ignore[misc]
