"""Writes NAME:1, NAME:2, … with one of redis-py's clients, each until it is acknowledged, and says so by
a line. `pause` and `go` on the standard input do what they say; its end ends the program.

    redispy.py cluster|readers|sentinel NAME HOST:PORT…

An error is told and tried again, as an application does it. Nobody tells the client who leads.
"""

import sys
import threading
import time

from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException, RedisError
from redis.sentinel import Sentinel

AGAIN_SECONDS = 0.05


def cluster(addresses):
    return RedisCluster(startup_nodes=[ClusterNode(host, port) for host, port in addresses])


def readers(addresses):
    """As `cluster`, with reads from replicas too."""
    return RedisCluster(startup_nodes=[ClusterNode(host, port) for host, port in addresses],
                        read_from_replicas=True)


def sentinel(addresses):
    return Sentinel(addresses).master_for("mymaster")


CLIENTS = {"cluster": cluster, "readers": readers, "sentinel": sentinel}


def write(client, name, number, goes):
    while True:
        goes.wait()
        try:
            assert client.set(f"{name}:{number}", number), "a write was answered by nothing"
            found = client.get(f"{name}:{number}")
        except (RedisError, RedisClusterException, OSError) as error:
            print(f"error {error!r}", flush=True)
            time.sleep(AGAIN_SECONDS)
            continue
        # A replica may not have it yet.
        assert found in (None, str(number).encode()), f"{name}:{number} holds {found}"
        print(number, flush=True)
        return


def run(client, name, goes):
    number = 0
    while True:
        number += 1
        write(client, name, number, goes)


def main():
    kind, name, *places = sys.argv[1:]
    addresses = [(host, int(port)) for host, port in (place.split(":") for place in places)]
    goes = threading.Event()
    goes.set()
    client = CLIENTS[kind](addresses)
    threading.Thread(target=run, args=(client, name, goes), daemon=True).start()
    for line in sys.stdin:
        (goes.set if line.strip() == "go" else goes.clear)()


if __name__ == "__main__":
    main()
