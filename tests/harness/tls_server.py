"""A server that speaks TLS as well, with a certificate of a test authority."""

from .resp import Client
from .server import Ports, Server


class TlsServer(Server):
    """A server with a plain port and one for TLS, `tls_port`. It shows the certificate of `name`, and trusts
    whom the authority has signed; `arguments` go behind those that say so."""

    def __init__(self, command, authority, *arguments, name="server", **options):
        self.authority = authority
        self.tls_ports = Ports()
        self.tls_port = self.tls_ports.first
        told = {"tls-port": self.tls_port, "tls-cert-file": authority.file(f"{name}.crt"),
                "tls-key-file": authority.file(f"{name}.key"), "tls-ca-cert-file": authority.file("ca.crt")}
        words = [word for directive, value in told.items() for word in (f"--{directive}", str(value))]
        super().__init__(command, [*words, *arguments], **options)

    def close(self):
        super().close()
        self.tls_ports.close()

    def tls_client(self, name=None, **bounds):
        """A connection to the TLS port, with the certificate of `name` or none."""
        return Client(self.tls_port, tls=self.authority.context(name, **bounds))
