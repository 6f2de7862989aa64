#!/usr/bin/env python3
"""Records what a stock redis-server answers to raw bytes, as the corpus of the decoder's tests.

    record.py PORT > redis-7.0.15.txt

PORT is a scratch server on loopback. Each line: `open` or `password` (whether the client is yet to
authenticate), the input, and everything answered to it, both with C's escapes, tab-separated.
"""
import socket, sys

OPEN = [
    b"ECHO a\r\n", b"ECHO a\n", b"\r\n", b"\n", b"\r\n\r\nECHO a\r\n", b"   \r\nECHO a\r\n",
    b"ECHO \"a b\"\r\n", b"ECHO 'a b'\r\n", b"ECHO \"a\\x41\\n\\\"\"\r\n", b"ECHO 'a\\'b'\r\n",
    b"ECHO \"a\r\n", b"ECHO 'a\r\n", b"ECHO \"a\"b\r\n", b"ECHO 'a'b\r\n", b"ECHO a\"b c\"\r\n",
    b"ECHO \"\\x4\\xg1\\q\\a\\b\\t\\r\"\r\n", b"ECHO a\x0bb\r\n", b"ECHO \"a\"\x0b\r\n",
    b"\x0bECHO\t a \x0c\r\n", b"ECHO \xff\xfe\r\n", b"ECHO a\x00b\r\n", b"ECHO a\x00b\r\nECHO c\r\n",
    b"ECHO a\rb\r\n", b"ECHO a\r\r\n", b"ECHO \"\"\r\n", b"ECHO ''\r\n", b"ECHO \\x41\r\n",
    b"ECHO '\\'\r\n", b"\"ECHO\" a\r\n", b"\"ECHO\"a\r\n", b"+ECHO a\r\n"[1:], b"'\r\n",
    b"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    b"*2\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n",
    b"*2\r\n$4\r\nECHO\r\n$100\r\n" + b"x" * 100 + b"\r\n",
    b"*2\r\n$4\r\nECHO\r\n$1000\r\n" + b"x" * 1000 + b"\r\n",
    b"*2\r\n$4\r\nECHO\r\n$1\r\naXY" + b"*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n",
    b"*2\rX$4\rYECHO\r\n$1\r\na\r\n", b"*2\r\r$4\r\rECHO\r\n$1\r\na\r\n",
    b"*0\r\n", b"*0\r\nECHO a\r\n", b"*-1\r\nECHO a\r\n", b"*-10\r\nECHO a\r\n",
    b"*-9223372036854775808\r\nECHO a\r\n", b"*-9223372036854775809\r\n", b"*\r\n", b"*\r\nECHO a\r\n",
    b"*-0\r\n", b"*-\r\n", b"*+1\r\n", b"*01\r\n", b"*00\r\n", b"* 1\r\n", b"*1 \r\n", b"*a\r\n",
    b"*2147483648\r\n", b"*2147483647\r\n", b"*9223372036854775807\r\n", b"*99999999999999999999999\r\n",
    b"*3\x00\r\n", b"*1\n$4\nPING\n\r\n", b"*1\r\n$4\x00\r\n",
    b"*1\r\n4\r\nECHO\r\n", b"*1\r\nECHO\r\n", b"*1\r\n\r\n", b"*1\r\n\n\r\n", b"*1\r\n:1\r\n",
    b"*1\r\n*1\r\n", b"*1\r\n\xff\r\n", b"*1\r\n%\r\n", b"*1\r\n \r\n", b"*1\r\n'\r\n",
    b"*1\r\n$\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$-0\r\n", b"*1\r\n$01\r\n", b"*1\r\n$+1\r\n",
    b"*1\r\n$a\r\n", b"*1\r\n$1a\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$536870912\r\n",
    b"*1\r\n$9223372036854775807\r\n", b"*1\r\n$9223372036854775808\r\n", b"*1\r\n$ 1\r\n",
    b"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n*2\r\n$4\r\nECHO\r\n!1\r\n",
    b"*2\r\n$4\r\nECHO\r\n$1\r\na\r\nECHO b\r\n*x\r\nECHO c\r\n",
    b"*2\r\n$4\r\nECHO\r\n$00\r\n\r\n", b"*002\r\n", b"*2\r\n$004\r\nECHO\r\n$1\r\na\r\n",
    b"*1\r", b"*1\r\n$4\r", b"*1\r\n$", b"*",
    b"*" + b"x" * 65535, b"*" + b"x" * 65536, b"E" * 65536, b"E" * 65537,
    b"*1\r\n$" + b"1" * 65535, b"*1\r\n$" + b"1" * 65536, b"*1\r\n" + b"x" * 65537,
]
PASSWORD = [
    b"ECHO a\r\n", b"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", b"*10\r\n", b"*11\r\n", b"*-1\r\n",
    b"*100\r\n", b"*2147483648\r\n",
    b"*2\r\n$4\r\nECHO\r\n$16384\r\n" + b"x" * 16384 + b"\r\n", b"*2\r\n$4\r\nECHO\r\n$16385\r\n",
    b"*2\r\n$536870913\r\n", b"*1\r\n:\r\n",
]


def escaped(data):
    """C's escapes; a run of one byte is `<byte*count>`, so that no line is 64 KiB long."""
    runs, at = [], 0
    while at < len(data):
        end = at
        while end < len(data) and data[end] == data[at]:
            end += 1
        byte = data[at : at + 1]
        plain = 32 <= byte[0] < 127 and byte not in b"\\\"<"
        text = byte.decode() if plain else "\\x%02x" % byte[0]
        runs.append(f"<{text}*{end - at}>" if end - at > 50 else text * (end - at))
        at = end
    return "".join(runs)


def ask(port, data):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(data)
        connection.settimeout(0.15)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


port = int(sys.argv[1])
for kind, inputs in (("open", OPEN), ("password", PASSWORD)):
    ask(port, b"CONFIG SET requirepass %s\r\n" % (b"secret" if kind == "password" else b'""'))
    for data in inputs:
        print(kind, escaped(data), escaped(ask(port, data)), sep="\t")
ask(port, b'AUTH secret\r\nCONFIG SET requirepass ""\r\n')
