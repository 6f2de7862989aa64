"""The tools that come with Redis, and redis_exporter, against any server.

The port is the first argument, the folder of the programs that were installed the second. Each function is one
example and fails by raising; its name is the claim.
"""

import pathlib
import re
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness.examples import try_each  # noqa: E402
from harness.resp import Client  # noqa: E402
from harness.server import Ports, die_with_parent  # noqa: E402

INSTALLED, PORT = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def cli(*arguments, given=None, timeout=120):
    ran = subprocess.run(["redis-cli", "-p", str(PORT), *arguments], input=given, capture_output=True,
                         text=True, timeout=timeout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def fill():
    with Client(PORT) as client:
        client.call("FLUSHALL")
        client.call("SET", "text", "x" * 1000)
        client.call("RPUSH", "list", *range(300))
        client.call("HSET", "hash", *range(200))
        client.call("ZADD", "zset", *(word for at in range(50) for word in (str(at), f"m{at}")))
        client.call("SADD", "set", *range(20))
        for at in range(40):
            client.call("XADD", "stream", f"{at + 1}-0", "n", at)


def bigkeys():
    fill()
    shown = cli("--bigkeys")
    for found in ('"list"\' has 300 items', '"hash"\' has 100 fields', '"zset"\' has 50 members',
                  '"stream"\' has 40 entries', '"text"\' has 1000 bytes', '"set"\' has 20 members'):
        assert found in shown, f"{found} is not in {shown}"


def memkeys():
    fill()
    shown = cli("--memkeys")
    assert re.search(r'Biggest +\w+ found', shown) and "Sampled 6 keys" in shown, shown


def hotkeys():
    fill()
    with Client(PORT) as client:
        client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        try:
            for _ in range(50):
                client.call("GET", "text")
            assert "hot key found with counter" in cli("--hotkeys")
        finally:
            client.call("CONFIG", "SET", "maxmemory-policy", "noeviction")


def rdb():
    fill()
    file = pathlib.Path("exported.rdb").resolve()
    cli("--rdb", str(file))
    ran = subprocess.run(["redis-check-rdb", str(file)], capture_output=True, text=True, timeout=120)
    assert "RDB looks OK" in ran.stdout and "6 keys read" in ran.stdout, ran.stdout


def pipe():
    lines = "".join(f"SET pipe:{at} {at}\r\n" for at in range(10_000))
    shown = cli("--pipe", given=lines)
    assert "errors: 0, replies: 10000" in shown, shown


def latency():
    shown = subprocess.run(["timeout", "-s", "INT", "3", "redis-cli", "-p", str(PORT), "--latency", "--raw"],
                           capture_output=True, text=True, timeout=60).stdout
    samples = int(shown.split()[-1] if shown.split() else 0)
    assert samples > 0, shown


def scan_and_stat():
    fill()
    assert sorted(cli("--scan").split()) == ["hash", "list", "set", "stream", "text", "zset"]
    shown = subprocess.run(["stdbuf", "-oL", "timeout", "3", "redis-cli", "-p", str(PORT), "--stat"],
                           capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"^6 ", shown, re.M), shown


def eval_by_file():
    script = pathlib.Path("script.lua").resolve()
    script.write_text("return redis.call('SET', KEYS[1], ARGV[1])")
    assert cli("--eval", str(script), "key", ",", "value").strip() == "OK"
    assert cli("GET", "key").strip() == "value"


def redis_exporter():
    fill()
    with Ports() as ports:
        exporter = subprocess.Popen(
            [str(INSTALLED / "redis_exporter"), "-redis.addr", f"redis://127.0.0.1:{PORT}",
             "-web.listen-address", f"127.0.0.1:{ports.first}", "-check-keys", "*", "-check-streams", "stream"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        try:
            text = scrape(f"http://127.0.0.1:{ports.first}/metrics")
        finally:
            exporter.kill()
            exporter.wait()
    for line in ("redis_up 1", 'redis_db_keys{db="db0"} 6', 'redis_key_size{db="db0",key="list"} 300',
                 'redis_stream_length{db="db0",stream="stream"} 40', 'redis_exporter_last_scrape_error{err=""} 0'):
        assert line in text, f"{line} is not among the metrics"


def scrape(url):
    deadline = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen(url, timeout=60).read().decode()
        except OSError:
            assert time.monotonic() < deadline, "the exporter never answered"
            time.sleep(0.1)


try_each([bigkeys, memkeys, hotkeys, rdb, pipe, latency, scan_and_stat, eval_by_file, redis_exporter])
