"""HEALTHCHECK of the image: exit code 0 while requests are being answered, as /readyz says.

Where the port is comes from the environment (SEMIF_HTTP_HOST, SEMIF_HTTP_PORT), not from flags or
a settings file.
"""

import os
import sys
import urllib.request

port = os.environ.get("SEMIF_HTTP_PORT") or "9464"
if port == "off":
    sys.exit(0)
host = os.environ.get("SEMIF_HTTP_HOST") or "127.0.0.1"
host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
url = f"http://[{host}]:{port}/readyz" if ":" in host else f"http://{host}:{port}/readyz"
# A proxy that Docker puts into every container's environment is not for this.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with direct.open(url, timeout=4) as answer:
        print(answer.read().decode().strip())
except OSError as error:  # HTTPError too: its text has the code, its body the reason
    reason = error.read().decode().strip() if hasattr(error, "read") else ""
    print(error, reason)
    sys.exit(1)
