"""Orders from a test in another process: kill this server, start that one.

Orders are obeyed by the thread that calls `obey_until`, the one that started the servers: each of
them is killed when the thread that started it ends (PR_SET_PDEATHSIG means the thread).
"""

import queue
import socketserver
import threading


class Control:
    """A port on loopback that takes orders, a line each, and answers each with a line."""

    def __init__(self):
        orders = self.orders = queue.Queue()

        class Lines(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    answer = queue.Queue()
                    orders.put((line.decode(), answer))
                    self.wfile.write(f"{answer.get()}\n".encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = "127.0.0.1:%d" % self.server.server_address[1]

    def obey_until(self, process, obey):
        """Gives each order to `obey` until the process has ended; its exit status."""
        while process.poll() is None:
            try:
                order, answer = self.orders.get(timeout=0.1)
            except queue.Empty:
                continue
            try:
                answer.put(obey(order))
            except Exception as error:  # the test is told, and fails
                answer.put(f"error: {error!r}")
        self.server.shutdown()
        return process.returncode
