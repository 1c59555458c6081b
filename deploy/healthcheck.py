"""HEALTHCHECK of the image: exit code 0 while requests are being answered, as /readyz says."""

import os
import sys
import urllib.request

port = os.environ.get("SEMIF_HTTP_PORT", "9464")
if port == "off":
    sys.exit(0)
try:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=4) as answer:
        print(answer.read().decode().strip())
except OSError as error:  # HTTPError too: its text has the code, its body the reason
    reason = error.read().decode().strip() if hasattr(error, "read") else ""
    print(error, reason)
    sys.exit(1)
