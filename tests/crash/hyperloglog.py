"""What a HyperLogLog must hold, from the documentation of its format: 16,384 registers, of which
each holds the longest run of zeroes that any element's hash showed it.

A model of registers rather than of counts: an estimate hides a lost element, a register does not.
"""

import struct

INDEX_BITS = 14
HASH_BITS = 64
SEED = 0xadc83b19
MASK = (1 << 64) - 1


def add(registers, elements):
    """Adds elements to a model: a dictionary of the registers that are not 0."""
    for element in elements:
        index, run = _place(element)
        registers[index] = max(run, registers.get(index, 0))


def merge(registers, others):
    for index, run in others.items():
        registers[index] = max(run, registers.get(index, 0))


def registers(value):
    """The registers of a stored value that are not 0."""
    if value[:4] != b"HYLL":
        raise ValueError(f"not a HyperLogLog: {value[:16]!r}")
    return _dense(value[16:]) if value[4] == 0 else _sparse(value[16:])


def _place(element):
    number = _murmur(element)
    index = number & ((1 << INDEX_BITS) - 1)
    rest = number >> INDEX_BITS | 1 << (HASH_BITS - INDEX_BITS)
    return index, (rest & -rest).bit_length()


def _murmur(data):
    """MurmurHash2 of 64 bits, variant A."""
    factor = 0xc6a4a7935bd1e995
    number = SEED ^ (len(data) * factor & MASK)
    whole = len(data) // 8 * 8
    for (block,) in struct.iter_unpack("<Q", data[:whole]):
        block = block * factor & MASK
        block = (block ^ block >> 47) * factor & MASK
        number = (number ^ block) * factor & MASK
    if data[whole:]:
        number = (number ^ int.from_bytes(data[whole:], "little")) * factor & MASK
    number = (number ^ number >> 47) * factor & MASK
    return number ^ number >> 47


def _sparse(body):
    """Runs: 00nnnnnn and 01nnnnnn nnnnnnnn are zeroes, 1vvvvvnn are registers of one value."""
    found, index, at = {}, 0, 0
    while at < len(body):
        byte = body[at]
        if byte & 0x80:
            value, length = (byte >> 2 & 31) + 1, (byte & 3) + 1
            found.update(dict.fromkeys(range(index, index + length), value))
        elif byte & 0x40:
            at += 1
            length = ((byte & 63) << 8 | body[at]) + 1
        else:
            length = (byte & 63) + 1
        index += length
        at += 1
    if index != 1 << INDEX_BITS:
        raise ValueError(f"{index} registers")
    return found


def _dense(body):
    bits = int.from_bytes(body, "little")
    values = ((index, bits >> 6 * index & 63) for index in range(1 << INDEX_BITS))
    return {index: value for index, value in values if value}
