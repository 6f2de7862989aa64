"""Lines that can be cut: ports on loopback that lead to others, in a process of their own.

A line that is silent keeps its connections and forwards nothing, neither bytes nor ends of connections,
as a network that lost its packets. What was sent meanwhile arrives when the line is whole again, as TCP
would send it again: that is how a request comes to be long on its way. One that refuses ends its
connections, and every new one.

The process is `python3 lines.py PORT:TARGET …`. Orders come by standard input, `silence 0 2`, `refuse 1`
or `open 1`, and each is answered by a line.
"""

import asyncio
import subprocess
import sys

# Bytes that a line takes in at once. What it holds back while it is silent is bounded by this, twice,
# and by the kernel's buffers.
CHUNK_BYTES = 1 << 16


class Lines:
    """One line to each of the targets; `ports` are theirs. Not started before `__enter__`."""

    def __init__(self, targets):
        from .server import Ports
        self.targets = list(targets)
        self.held = Ports(len(self.targets))
        self.ports = [self.held.first + number for number in range(len(self.targets))]
        self.process = None

    def __enter__(self):
        from .server import die_with_parent
        pairs = [f"{port}:{target}" for port, target in zip(self.ports, self.targets)]
        self.process = subprocess.Popen([sys.executable, __file__, *pairs], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=die_with_parent)
        self._answer("ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.held.close()

    def silence(self, numbers):
        self._order("silence", numbers)

    def refuse(self, numbers):
        self._order("refuse", numbers)

    def open(self, numbers):
        self._order("open", numbers)

    def _order(self, verb, numbers):
        self.process.stdin.write(" ".join([verb, *map(str, numbers)]) + "\n")
        self.process.stdin.flush()
        self._answer("done")

    def _answer(self, wanted):
        answer = self.process.stdout.readline().strip()
        if answer != wanted:
            raise SystemExit(f"the lines said {answer!r} instead of {wanted!r}")


class Line:
    """One port and where it leads."""

    def __init__(self, port, target):
        self.port, self.target = port, target
        self.flows = asyncio.Event()
        self.flows.set()
        self.refuses = False
        self.writers = set()

    async def listen(self):
        await asyncio.start_server(self._meet, "127.0.0.1", self.port, limit=CHUNK_BYTES)

    def set(self, verb):
        self.refuses = verb == "refuse"
        if verb == "silence":
            self.flows.clear()
        else:
            self.flows.set()
        if self.refuses:
            for writer in list(self.writers):
                writer.transport.abort()

    async def _meet(self, reader, writer):
        await self.flows.wait()
        try:
            if self.refuses:
                raise ConnectionRefusedError
            far_reader, far_writer = await asyncio.open_connection(
                "127.0.0.1", self.target, limit=CHUNK_BYTES)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self.writers |= ends
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            self.writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pump(self, reader, writer):
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await self.flows.wait()
                writer.write(chunk)
                await writer.drain()
            await self.flows.wait()
            writer.write_eof()
        except OSError:
            await self.flows.wait()
            writer.transport.abort()  # the one side has lost its connection: so does the other


async def serve(pairs):
    lines = [Line(*map(int, pair.split(":"))) for pair in pairs]
    for line in lines:
        await line.listen()
    print("ready", flush=True)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := await orders.readline():
        verb, *numbers = order.decode().split()
        for number in numbers:
            lines[int(number)].set(verb)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
