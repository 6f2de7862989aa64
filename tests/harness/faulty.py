"""An object store that misbehaves: a proxy on loopback before one that speaks S3, in a process of its own.

It harms requests by a plan that follows from a seed and the order in which they come. Of each sort of request,
such as the completion of a multipart upload, that fault is next which it has met least often, so that a short
run has met each. A request reaches the store as its client signed it, Host included.

The process is `python3 faulty.py PORT:TARGET SEED RARITY`. Orders come by standard input, `harm`, `heal` or `tell`, and
each is answered by a line; the answer to `tell` is JSON.
"""

import asyncio
import collections
import json
import random
import re
import subprocess
import sys
import urllib.parse

# What becomes of a request.
REFUSED = "refused"  # with 500 or 503; the store does not see it
SLOW = "slow"
CUT_REQUEST = "cut request"  # the store gets half of it, and the client no answer
CUT_ANSWER = "cut answer"  # it is done, and half of the answer comes
LOST_ANSWER = "lost answer"  # it is done, and no answer comes
LATE = "late"  # no answer comes, and it is done later, when its client has tried again or given it up
FAULTS = [REFUSED, SLOW, CUT_REQUEST, CUT_ANSWER, LOST_ANSWER, LATE]

# Sorts of requests. What only reads is not sent late: that would be a lost answer.
BEGIN, PIECE, COMPLETION, ABORT = UPLOADING = ["begin", "piece", "completion", "abort"]
PUT, DELETION = "put", "deletion"
READING = READ, LOOK, LISTING = ["read", "look", "listing"]

# How many of a hundred requests are harmed: more of those that are rare.
HARMED_PERCENT = collections.defaultdict(lambda: 12, {**{sort: 50 for sort in UPLOADING}, LOOK: 30, DELETION: 25})

# Seconds. A client of Kiln's gives an attempt ten of them at least.
SLOW_SECONDS, LATE_SECONDS = (0.1, 1.5), (0.2, 3.0)

# Bytes of a request's head and body; a piece of a part has 8 MiB.
HEAD_BYTES_MAX, BODY_BYTES_MAX = 1 << 16, 64 << 20


class FaultyStore:
    """The proxy. It harms nothing before it is told to, and one of `rarity` requests that it could harm."""

    def __init__(self, target, seed, rarity=1):
        from .server import Ports
        self.target, self.seed, self.rarity = target, seed, rarity
        self.held = Ports()
        self.port = self.held.first
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.process = None

    def __enter__(self):
        from .server import die_with_parent
        self.process = subprocess.Popen(
            [sys.executable, __file__, f"{self.port}:{self.target}", str(self.seed), str(self.rarity)],
            text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        self._answer("ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.held.close()

    def harm(self):
        self._order("harm")
        self._answer("done")

    def heal(self):
        """From here on all is well, but for what is still on its way."""
        self._order("heal")
        self._answer("done")

    def told(self):
        """How many requests of which sort came, and how many of them met which fault."""
        self._order("tell")
        told = json.loads(self.process.stdout.readline())
        return told["came"], {(sort, fault): count for sort, fault, count in told["harmed"]}

    def _order(self, verb):
        self.process.stdin.write(f"{verb}\n")
        self.process.stdin.flush()

    def _answer(self, wanted):
        answer = self.process.stdout.readline().strip()
        if answer != wanted:
            raise SystemExit(f"the faulty store said {answer!r} instead of {wanted!r}")


def sort_of(method, target):
    query = urllib.parse.parse_qs(target.partition("?")[2], keep_blank_values=True)
    if "uploads" in query and method == "POST":
        return BEGIN
    if "uploadId" in query:
        return {"PUT": PIECE, "POST": COMPLETION, "DELETE": ABORT}.get(method, READ)
    if method == "DELETE" or "delete" in query:
        return DELETION
    if method == "GET":
        return LISTING if "list-type" in query else READ
    return {"PUT": PUT, "HEAD": LOOK}.get(method, READ)


def faults_of(sort):
    return [fault for fault in FAULTS if not (fault == LATE and sort in READING)]


class Plan:
    """Draws what becomes of which request."""

    def __init__(self, seed, rarity):
        self.chance, self.rarity = random.Random(seed), rarity
        self.is_on = False
        self.came, self.harmed = collections.Counter(), collections.Counter()

    def next(self, sort):
        """The fault of the next request, or None."""
        self.came[sort] += 1
        is_spared = self.chance.randrange(100 * self.rarity) >= HARMED_PERCENT[sort]
        faults = faults_of(sort)
        # The first of each sort is not spared, so that a short run has harmed each.
        if not self.is_on or (is_spared and any(self.harmed[sort, fault] for fault in faults)):
            return None
        least = min(self.harmed[sort, fault] for fault in faults)
        fault = self.chance.choice([fault for fault in faults if self.harmed[sort, fault] == least])
        self.harmed[sort, fault] += 1
        return fault

    def told(self):
        harmed = [(sort, fault, count) for (sort, fault), count in self.harmed.items()]
        return json.dumps({"came": self.came, "harmed": harmed})


class Proxy:
    """One request for each connection, which is then closed, as the store behind it does."""

    def __init__(self, target, plan):
        self.target, self.plan = target, plan
        # A task that nobody holds may be collected before it is done.
        self.tasks = set()

    async def meet(self, reader, writer):
        self._hold(asyncio.current_task())
        try:
            request, sort = await self._request(reader)
            if await self._serve(request, sort, writer):
                writer.close()
            else:
                writer.transport.abort()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            writer.transport.abort()  # the client went, or the store did

    def _hold(self, task):
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _request(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        length = re.search(rb"\r\ncontent-length: *(\d+)\r\n", head, re.IGNORECASE)
        bytes_wanted = int(length[1]) if length else 0
        if bytes_wanted > BODY_BYTES_MAX or re.search(rb"\r\ntransfer-encoding:", head, re.IGNORECASE):
            raise ValueError(f"a request that this proxy does not know: {head[:200]}")
        return head + await reader.readexactly(bytes_wanted), sort_of(method, target)

    async def _serve(self, request, sort, writer):
        """Whether what the client was sent is to reach it; else its connection is broken off."""
        fault = self.plan.next(sort)
        if fault == REFUSED:
            await send(writer, refusal(self.plan.chance.choice(["500 InternalError", "503 SlowDown"])))
            return True
        if fault == CUT_REQUEST:
            await self._forward(request[: len(request) // 2], None)
            return False
        if fault == LATE:
            seconds = self.plan.chance.uniform(*LATE_SECONDS)
            self._hold(asyncio.create_task(self._forward_later(request, seconds)))
            return False
        if fault == SLOW:
            await asyncio.sleep(self.plan.chance.uniform(*SLOW_SECONDS))
        if fault in (CUT_ANSWER, LOST_ANSWER):
            answer = await self._forward(request, b"")
            if fault == CUT_ANSWER:
                await send(writer, answer[: len(answer) // 2])
                return True  # half of it does come
            return False
        await self._forward(request, writer)
        return True

    async def _forward(self, request, to):
        """Sends it to the store, and the answer to a client, or returns it if `to` is bytes; without `to` the
        connection is broken off."""
        reader, far = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            await send(far, request)
            if to is None:
                return b""
            if to == b"":
                return await reader.read()
            while chunk := await reader.read(1 << 16):
                await send(to, chunk)
            return b""
        finally:
            far.transport.abort()

    async def _forward_later(self, request, seconds):
        await asyncio.sleep(seconds)
        try:
            await self._forward(request, b"")
        except OSError:
            pass  # the store is gone


async def send(writer, data):
    writer.write(data)
    await writer.drain()


def refusal(status):
    number, code = status.split()
    body = f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>not now</Message></Error>"
    return (f"HTTP/1.1 {number} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


async def serve(port, target, seed, rarity):
    plan = Plan(seed, rarity)
    proxy = Proxy(target, plan)
    await asyncio.start_server(proxy.meet, "127.0.0.1", port, limit=HEAD_BYTES_MAX)
    print("ready", flush=True)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := (await orders.readline()).decode().strip():
        if order in ("harm", "heal"):
            plan.is_on = order == "harm"
        print(plan.told() if order == "tell" else "done", flush=True)


if __name__ == "__main__":
    listens, leads_to = map(int, sys.argv[1].split(":"))
    asyncio.run(serve(listens, leads_to, *map(int, sys.argv[2:])))
