#!/usr/bin/env python3
"""Records what a stock redis-server's KEYS matches, as the corpus of the pattern tests.

    record.py PORT > redis-7.0.15.txt

PORT is a scratch server on loopback whose data is lost. The first line lists texts; each further
line is a pattern and, per text, whether it matches. All in hexadecimal.
"""
import random, socket, sys

random.seed(1)
TEXTS = sorted({bytes(random.choices(b"ab-]", k=random.randint(1, 6))) for _ in range(60)}
               | {b"a", b"b", b"[", b"]", b"^", b"-", b"\\", b"*", b"?", b"a*b", b"\xff", b"\x80a",
                  b"\x00", b"A", b"B", b"aB", b"hello", b"hallo", b"hxllo", b"heeeello"})
FIXED = [b"h?llo", b"h*llo", b"h[ae]llo", b"h[^e]llo", b"h[a-b]llo", b"[", b"[^", b"[]", b"[^]", b"[a",
         b"[a-", b"[a-]", b"[]a]", b"[\\]]", b"[\\", b"[^\\", b"\\", b"\\\\", b"\\*", b"**", b"***a", b"a**",
         b"[b-a]", b"[\x01-\xff]", b"[\x80-\xff]*", b"?*", b"*?", b"??", b"[a-b-c]", b"[--a]", b"[^-a]",
         b"a" + b"*" * 50, b"*a" * 20, b"*a" * 1001 + b"*", b"[[]", b"[?]", b"[*]", b"\\[", b"[A-b]"]


class Connection:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def call(self, *arguments):
        self.file.write(b"*%d\r\n" % len(arguments))
        for argument in arguments:
            self.file.write(b"$%d\r\n%s\r\n" % (len(argument), argument))
        self.file.flush()
        return self.read()

    def read(self):
        line = self.file.readline()[:-2]
        if line[:1] == b"*":
            return [self.read() for _ in range(int(line[1:]))]
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line


connection = Connection(int(sys.argv[1]))
connection.call(b"FLUSHALL")
for text in TEXTS:
    connection.call(b"SET", text, b"")
print(*(text.hex() for text in TEXTS))
patterns = FIXED + [bytes(random.choices(b"aaabb**??[[]]^-\\", k=random.randint(1, 9))) for _ in range(1500)]
for pattern in patterns:
    if pattern == b"*":
        continue
    found = set(connection.call(b"KEYS", pattern))
    print(pattern.hex(), "".join("01"[text in found] for text in TEXTS))
connection.call(b"FLUSHALL")
