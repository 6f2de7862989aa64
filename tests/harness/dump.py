"""Payloads for RESTORE, made without a server: a set in the form that any Redis since 2.6 takes.

    type (1) | number of members | length, bytes of each | version (u16) | crc64 (u64)
"""

# CRC-64 with the Jones polynomial, its bits in reverse: what ends every payload.
POLYNOMIAL = 0x95AC9329AC4BC9B5

SET = b"\x02"
VERSION = b"\x06\x00"


def payload_of_set(members):
    """What RESTORE takes for a set of these members, as bytes."""
    body = SET + _length(len(members)) + b"".join(_length(len(m)) + m for m in members) + VERSION
    return body + crc64(body).to_bytes(8, "little")


def _length(number):
    """The 14-bit form holds what tests write."""
    assert number < 1 << 14
    return bytes([0x40 | number >> 8, number & 0xFF])


def _table():
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ POLYNOMIAL if crc & 1 else crc >> 1
        yield crc


TABLE = list(_table())


def crc64(text):
    crc = 0
    for byte in text:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA
