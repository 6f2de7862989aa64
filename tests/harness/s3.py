"""Servers that speak S3, on loopback: Versity's gateway over a directory, and moto, in memory.

The gateway is one that can be killed and started again, and keeps what it was given.
"""

import shutil
import urllib.error
import urllib.request

from . import paths
from .service import READY_SECONDS_MAX, Process, Service

BUCKET = "logs"
ACCESS, SECRET = "kiln", "kiln-secret"

# What S3's clients read, Kiln's included.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}


class Store(Service):
    """A server with one bucket."""

    def __init__(self, name):
        super().__init__(name, 1)
        self.address = f"127.0.0.1:{self.ports.first}"
        self.endpoint = f"http://{self.address}"
        self.process = Process(self.command(), self.directory / "server.log", self.environment())

    def processes(self):
        return [self.process]

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def is_ready(self):
        """It answers."""
        try:
            urllib.request.urlopen(self.endpoint, timeout=1).close()
        except urllib.error.HTTPError:
            return True  # it refuses, but it lives
        except OSError:
            return False
        return True

    def pause(self):
        self.process.pause()


class VersityGateway(Store):
    """A bucket is a directory, and an object a file in it."""

    def __init__(self):
        super().__init__("versitygw")
        (self.root / BUCKET).mkdir(parents=True)

    @property
    def root(self):
        return self.directory / "root"

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

    def __init__(self):
        super().__init__("moto")

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
