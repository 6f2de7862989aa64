"""A target that answers anything with one fixed text."""

import socket
import threading


class Liar:
    """Listens on a port of its own. To whatever it receives first it says `lie`, and then it closes
    or is silent."""

    def __init__(self, lie, is_closing):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lie = lie
        self.is_closing = is_closing
        self.connections = []
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.connections:
            connection.close()

    def _serve(self):
        try:
            while True:
                connection, _ = self.listener.accept()
                connection.recv(1 << 16)
                connection.sendall(self.lie)
                if self.is_closing:
                    connection.close()
                else:
                    self.connections.append(connection)
        except OSError:
            pass
