"""A certificate for servers on loopback."""

import pathlib
import shutil
import subprocess
import tempfile

from . import paths


class Certificate:
    """A server's certificate for 127.0.0.1 that vouches for itself, as files."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="kiln-tls-"))
        self.certificate, self.key = self.directory / "cert.pem", self.directory / "key.pem"
        subprocess.run(
            [paths.tool("openssl"), "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2",
             "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=kiln",
             "-addext", "subjectAltName=IP:127.0.0.1",
             "-addext", "basicConstraints=critical,CA:FALSE",
             "-keyout", str(self.key), "-out", str(self.certificate)],
            check=True, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)
