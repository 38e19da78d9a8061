"""An object store on loopback that speaks S3: moto's server, with one bucket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

BUCKET = "s3://lakes"


@contextmanager
def object_store():
    """Start the server and point the usual environment variables at it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    variables = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            time.sleep(0.05)
        make = urllib.request.Request(f"{endpoint}/{BUCKET.removeprefix('s3://')}", method="PUT")
        urllib.request.urlopen(make).close()
        yield endpoint
    finally:
        server.kill()
        server.wait()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
