"""Servers that speak S3, on loopback: Versity's gateway over a directory, and moto, in memory.

The gateway is one that can be killed and started again, and keeps what it was given.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from . import paths
from .server import Ports, die_with_parent

BUCKET = "logs"
ACCESS, SECRET = "kiln", "kiln-secret"

# How long a server may take to listen, on a machine that is busy.
READY_SECONDS_MAX = 60.0

# What S3's clients read, Kiln's included.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}


class Store:
    """A server with one bucket."""

    def __init__(self, folder=paths.RUNS):
        folder.mkdir(parents=True, exist_ok=True)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="kiln-s3-", dir=folder))
        self.ports = Ports()
        self.address = f"127.0.0.1:{self.ports.first}"
        self.endpoint = f"http://{self.address}"
        self.log = self.directory / "server.log"
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.ports.close()
        if not os.environ.get("KILN_KEEP_RUNS"):
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        """Starts the server, or lets it go on, and waits until it answers."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        else:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                    env={**os.environ, **self.environment()}, preexec_fn=die_with_parent)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"{self.command()[0]} did not get ready:\n"
                                 + self.log.read_text()[-2000:])
            time.sleep(0.05)

    def answers(self):
        try:
            urllib.request.urlopen(self.endpoint, timeout=1).close()
        except urllib.error.HTTPError:
            return True  # it refuses, but it lives
        except OSError:
            return False
        return True

    def environment(self):
        return {}

    def kill(self):
        """SIGKILL, as a crash is."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)


class VersityGateway(Store):
    """A bucket is a directory, and an object a file in it."""

    def __init__(self):
        super().__init__()
        self.root = self.directory / "root"
        (self.root / BUCKET).mkdir(parents=True)

    def command(self):
        return [paths.tool("versitygw"), "--quiet", "--port", self.address, "posix",
                str(self.root)]

    def environment(self):
        return {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}

    def delete(self, name):
        """Deletes a log, as `aws s3 rm --recursive` would."""
        shutil.rmtree(self.root / BUCKET / name)


class Moto(Store):
    """A second opinion on what S3 is: it knows no credentials and forgets everything."""

    def command(self):
        host, port = self.address.split(":")
        python = str(paths.CACHE / "venv" / "bin" / "python")
        return [python, "-m", "moto.server", "-H", host, "-p", port]

    def start(self):
        super().start()
        self._request("PUT", BUCKET)

    def delete(self, name):
        """Deletes a log, object by object."""
        import xml.etree.ElementTree as tree
        while True:
            listed = tree.fromstring(self._request("GET", f"{BUCKET}?list-type=2&prefix={name}/"))
            keys = [element.text for element in listed.iter() if element.tag.endswith("Key")]
            if not keys:
                return
            for key in keys:
                self._request("DELETE", f"{BUCKET}/{key}")

    def _request(self, method, path):
        # Signed only in form: moto wants to see whom a request is for, and believes it.
        scope = f"{ACCESS}/20260101/us-east-1/s3/aws4_request"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}"}
        request = urllib.request.Request(f"{self.endpoint}/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=READY_SECONDS_MAX) as answer:
            return answer.read()
