"""redis-py over TLS: the port, and the folder of the certificates. It runs with the suite's own libraries."""

import pathlib
import sys
import time

import redis

PATIENCE_SECONDS = 60


def heard(subscription, wanted):
    """Waits for a message."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        message = subscription.get_message(timeout=0.1)
        if message and message["type"] == wanted:
            return message["data"]
    raise AssertionError(f"no {wanted}")


def main():
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    client = redis.Redis(port=port, ssl=True, protocol=3, ssl_ca_certs=str(folder / "ca.crt"),
                         ssl_certfile=str(folder / "alice.crt"), ssl_keyfile=str(folder / "alice.key"))
    big = bytes(range(256)) * 40_000
    assert client.set("big", big) and client.get("big") == big
    with client.pipeline(transaction=True) as pipeline:
        for number in range(2000):
            pipeline.rpush("list", b"%d" % number * 50)
        assert pipeline.execute()[-1] == 2000
    assert len(client.lrange("list", 0, -1)) == 2000
    subscription = client.pubsub()
    subscription.subscribe("c")
    heard(subscription, "subscribe")
    client.publish("c", "hello")
    assert heard(subscription, "message") == b"hello"
    client.close()


if __name__ == "__main__":
    main()
