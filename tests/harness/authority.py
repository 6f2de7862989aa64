"""A test authority and certificates that it signs, made by the openssl program."""

import pathlib
import shutil
import ssl
import subprocess
import tempfile

from . import paths


class TestAuthority:
    """Files in a folder: `ca.crt`, and for each name that is issued NAME.crt and NAME.key."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-tls-"))
        self._openssl("req", "-x509", *self._key("ca"), "-days", "2", "-subj", "/CN=authority",
                      "-addext", "basicConstraints=critical,CA:TRUE", "-out", self.file("ca.crt"))
        (self.folder / "extensions").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")

    def _openssl(self, *words):
        subprocess.run([paths.tool("openssl"), *map(str, words)], check=True, capture_output=True)

    def _key(self, name):
        return ["-newkey", "ec", "-nodes", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-keyout", self.file(f"{name}.key")]

    def file(self, name):
        return self.folder / name

    def issue(self, name, subject=None, rsa=False):
        key = ["-newkey", "rsa:2048", "-nodes", "-keyout", self.file(f"{name}.key")]
        self._openssl("req", *(key if rsa else self._key(name)), "-subj", f"/O=x/CN={subject or name}",
                      "-out", self.file("request"))
        self._openssl("x509", "-req", "-in", self.file("request"), "-days", "2",
                      "-CA", self.file("ca.crt"), "-CAkey", self.file("ca.key"), "-CAcreateserial",
                      "-extfile", self.file("extensions"), "-out", self.file(f"{name}.crt"))
        return self.file(f"{name}.crt"), self.file(f"{name}.key")

    def context(self, name=None, **bounds):
        """Of Python's ssl, for a client: as NAME, or without a certificate; with bounds such as
        `maximum_version`."""
        context = ssl.create_default_context(cafile=str(self.file("ca.crt")))
        if name:
            context.load_cert_chain(self.file(f"{name}.crt"), self.file(f"{name}.key"))
        for bound, value in bounds.items():
            setattr(context, bound, value)
        return context

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)
