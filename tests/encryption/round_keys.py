"""Keys of AES-256 in the memory of a process, as a core dump would show them.

A cipher holds a key as the fifteen round keys that follow from it (FIPS 197, section 5.2), so it is known when it
is seen: of any 32 bytes the rest can be computed.
"""

import pathlib
import re

KEY_BYTES, BLOCK_BYTES, WORD_BYTES, WORDS = 32, 16, 4, 60
SCHEDULE_BYTES = WORDS * WORD_BYTES


def substitutions():
    """The S-box, of FIPS 197, section 5.1.1."""
    box, power, inverse = [0x63] * 256, 1, 1
    while True:
        # The one is multiplied by 3, the other one divided by it.
        power ^= (power << 1) ^ (0x11B if power & 0x80 else 0)
        for shift in (1, 2, 4):
            inverse ^= inverse << shift
        inverse &= 0xFF
        inverse ^= 0x09 if inverse & 0x80 else 0
        turned = [(inverse << shift | inverse >> (8 - shift)) & 0xFF for shift in range(5)]
        box[power] = turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63
        if power == 1:
            return bytes(box)


BOX = substitutions()


def schedule(key):
    """The round keys of a key."""
    words = [key[at:at + WORD_BYTES] for at in range(0, KEY_BYTES, WORD_BYTES)]
    constant = 1
    while len(words) < WORDS:
        last = words[-1]
        if len(words) % 8 == 0:
            last = (last[1:] + last[:1]).translate(BOX)
            last = bytes([last[0] ^ constant]) + last[1:]
            constant <<= 1
        elif len(words) % 8 == 4:
            last = last.translate(BOX)
        words.append(bytes(a ^ b for a, b in zip(last, words[-8])))
    return b"".join(words)


def mappings(pid):
    """Start, end, and flags of each of a process's mappings that can be read (proc_pid_smaps(5))."""
    span = None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line):
            span = int(found[1], 16), int(found[2], 16)
        elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            span = None
        elif line.startswith("VmFlags:") and span:
            yield *span, set(line.split()[1:])


def read(memory, start, end):
    """What can be read there: a mapping may be gone by now, and some are the kernel's own."""
    try:
        memory.seek(start)
        return memory.read(end - start)
    except (OSError, ValueError, OverflowError):
        return b""


def hidden_and_shown(pid):
    """Round keys in mappings that a core dump does not have; and which of them are in one that it has."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        hidden = set()
        for start, end, flags in mappings(pid):
            if "dd" in flags and "io" not in flags and end - start <= 1 << 20:
                hidden |= schedules_in(read(memory, start, end))
        blocks = {keys[at:at + BLOCK_BYTES] for keys in hidden for at in range(0, SCHEDULE_BYTES, BLOCK_BYTES)}
        shown = set()
        for start, end, flags in mappings(pid):
            if "dd" not in flags:
                content = read(memory, start, end)
                shown |= {block for block in blocks if block in content}
    return hidden, shown


def schedules_in(content):
    found = set()
    for at in range(0, len(content) - SCHEDULE_BYTES + 1, BLOCK_BYTES):
        keys = content[at:at + SCHEDULE_BYTES]
        if any(keys[:KEY_BYTES]) and schedule(keys[:KEY_BYTES]) == keys:
            found.add(keys)
    return found
