"""A machine with a slow memory node, emulated by QEMU: its nodes, its first files, its boot."""

import gzip
import pathlib
import re
import stat
import subprocess

# Two processors with 1 GiB, and 512 MiB that no processor is near to. `crates/world/tests/numa.rs` knows
# these numbers. The latencies and bandwidths are what firmware tells, not how fast the emulation is.
MACHINE = """
-machine q35,hmat=on -cpu max -smp 2,sockets=1 -m 1536M
-object memory-backend-ram,id=m0,size=1G -object memory-backend-ram,id=m1,size=512M
-numa node,nodeid=0,memdev=m0,cpus=0-1 -numa node,nodeid=1,memdev=m1,initiator=0
-numa dist,src=0,dst=1,val=20
-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=10
-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=10G
-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300
-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=2G
-nodefaults -display none -serial stdio -no-reboot
"""

# By software alone: KVM is not on every machine, inside another virtual machine its QEMU may abort, and a boot
# takes 3 s without it.
ACCELERATOR = ["-accel", "tcg"]

# One line of text is all that comes out of it, and a kernel that panics ends it at once.
CONSOLE = "console=ttyS0 quiet panic=-1"


def libraries(program):
    """The shared libraries that a program needs, and what loads them; of a static program none."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", shown)]


def archive(files):
    """A file system for the kernel to begin with: a cpio in its "newc" form, compressed.

    `files` gives each path its content and mode. A folder has the content None.
    """
    folders = {folder for path in files for folder in pathlib.PurePath(path).parents}
    every = {str(folder): (None, 0o755) for folder in folders if str(folder) != "."} | files
    packed = bytearray()
    for number, (path, (content, mode)) in enumerate(sorted(every.items()), start=1):
        kind = stat.S_IFDIR if content is None else stat.S_IFREG
        packed += entry(number, path, kind | mode, content or b"")
    packed += entry(0, "TRAILER!!!", 0, b"")
    return gzip.compress(bytes(packed), compresslevel=1)


def entry(number, path, mode, content):
    """One file. The numbers: inode, mode, owner, group, links, time, size, devices, the name's length."""
    name = path.encode() + b"\0"
    numbers = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % value for value in numbers) + name
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


def boot(kernel, files, folder, seconds_max):
    """Boots a kernel with these files, and returns what came over its serial line, and QEMU's exit status."""
    first = folder / "files.cpio.gz"
    first.write_bytes(archive(files))
    command = ["qemu-system-x86_64", *ACCELERATOR, *MACHINE.split(), "-kernel", kernel, "-initrd", first,
               "-append", CONSOLE]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=seconds_max)
        output, status = ran.stdout, ran.returncode
    except subprocess.TimeoutExpired as late:
        output, status = late.stdout or b"", f"no end after {seconds_max} s"
    return output.decode(errors="replace").replace("\r", ""), status
