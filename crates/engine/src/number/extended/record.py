#!/usr/bin/env python3
"""Records what a stock redis-server's INCRBYFLOAT answers, as the corpus of the extended double.

    record.py PORT > redis-7.0.15.txt

PORT is a scratch server on loopback. Each line: the stored text, the increment, and the result or
`NOT A FLOAT` or `INFINITE`.
"""
import random, socket, sys

random.seed(7)
EDGES = ["0", "-0", "1", "-1", "3.0", "10.5", "0.1", "5.0e3", "3e0", "1e17", "1e18", "1e19", "1e-17", "5e-18",
         "4.9e-18", "5.1e-18", "-5e-18", "1.5e-17", "18446744073709551615", "18446744073709551616",
         "18446744073709551617", "9223372036854775807", "-9223372036854775808", "0.5", "1e-4950", "1e-4951",
         "3e-4951", "1.8e-4951", "1e-4952", "1e-5000", "1e4932", "1.18973149535723176502e4932",
         "1.18973149535723176509e4932", "1.2e4932", "1e4933", "1e99999999999999999999", "1e-99999999999999999999",
         "0e99999999999999999999", "inf", "-inf", "+inf", "Infinity", "nan", "-nan", "nan(1)", "0x10", "0x.8p1",
         "-0X1.8P-2", "0x1.ffffffffffffffffp0", "0x1.fffffffffffffffffp0", "0x", "0x1p", "0x1.00000000000000018p0",
         "0x1.00000000000000010p0", "0x1.000000000000000100000000000000000000001p0", "0x1p-16445", "0x1p-16446",
         "0x1.8p-16446", "0x1p16383", "0x1p16384", "", ".", "1.", ".5", "+1", "+-1", "1e", "1e+", "1e5x", " 1", "1 ",
         "007", "1_0", "1,5", "0" * 5118 + "1", "0" * 5119 + "1", "1" + "0" * 4000, "0." + "0" * 4000 + "1",
         "9" * 30, "0." + "9" * 30, "1." + "0" * 20 + "1"]


def number():
    kind = random.random()
    sign = random.choice(["", "-"])
    if kind < 0.4:
        return f"{sign}{random.randint(0, 10**random.randint(0, 6))}.{random.randint(0, 10**random.randint(0, 20))}"
    if kind < 0.6:
        return f"{sign}{random.randint(0, 10**random.randint(1, 25))}"
    if kind < 0.8:
        return f"{sign}{random.random() * 10**random.randint(-20, 20):.17g}"
    if kind < 0.9:
        return f"{sign}{random.randint(1, 9)}.{random.randint(0, 10**18)}e{random.randint(-30, 40)}"
    if kind < 0.95:
        return f"{sign}{random.randint(0, 2**70)}e{random.choice([-1, 1]) * random.randint(0, 300)}"
    return f"{sign}0x{random.getrandbits(random.randint(1, 90)):x}.{random.getrandbits(30):x}p{random.randint(-90, 60)}"


class Connection:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def call(self, *arguments):
        self.file.write(b"*%d\r\n" % len(arguments))
        for argument in arguments:
            self.file.write(b"$%d\r\n%s\r\n" % (len(argument), argument.encode()))
        self.file.flush()
        line = self.file.readline()[:-2].decode()
        return self.file.read(int(line[1:]) + 2)[:-2].decode() if line[0] == "$" else line


connection = Connection(int(sys.argv[1]))
pairs = [(edge, "0") for edge in EDGES] + [("0", edge) for edge in EDGES]
SHORT = [edge for edge in EDGES if len(edge) < 100]
pairs += [(random.choice(SHORT), random.choice(SHORT)) for _ in range(400)]
pairs += [(number(), number()) for _ in range(4000)]
for _ in range(600):  # nearly cancelling, and nearly tied
    value, digits = random.randint(1, 2**66), random.randint(0, 22)
    text = f"{value}e-{digits}"
    pairs.append((text, f"-{value + random.randint(-3, 3)}e-{digits}"))
    pairs.append((str(2**random.randint(60, 70) + random.randint(-2, 2)), f"0x1p{random.randint(-6, 6)}"))
for stored, increment in pairs:
    connection.call("SET", "extended", stored)
    answer = connection.call("INCRBYFLOAT", "extended", increment)
    answer = {"-ERR value is not a valid float": "NOT A FLOAT",
              "-ERR increment would produce NaN or Infinity": "INFINITE"}.get(answer, answer)
    print(stored, increment, answer, sep="\t")
