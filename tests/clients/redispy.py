"""The basic examples of redis-py, as its users write them, against any server.

Run with the Python of `.cache/venv`; the port is the only argument. Each function is one example and
fails by raising; its name is the claim.
"""

import asyncio
import pathlib
import sys

import redis
import redis.asyncio

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness.examples import try_each  # noqa: E402


def strings(r):
    assert r.set("py:a", "value") is True
    assert r.get("py:a") == "value"
    assert r.get("py:none") is None
    assert r.set("py:a", "other", nx=True) is None
    assert r.mset({"py:b": 1, "py:c": 2}) and r.mget("py:b", "py:c") == ["1", "2"]
    assert r.incrby("py:n", 5) == 5 and r.incrbyfloat("py:f", 1.5) == 1.5
    assert r.append("py:a", "!") == 6 and r.strlen("py:a") == 6


def expiry(r):
    r.setex("py:e", 10_000, "soon")
    assert 9000 <= r.ttl("py:e") <= 10_000
    assert r.persist("py:e") and r.ttl("py:e") == -1
    r.psetex("py:e", 30, "sooner")
    import time
    time.sleep(0.06)
    assert r.get("py:e") is None and r.exists("py:e") == 0


def hashes(r):
    assert r.hset("py:h", mapping={"name": "Deimos", "price": 4972}) == 2
    assert r.hgetall("py:h") == {"name": "Deimos", "price": "4972"}
    assert r.hincrby("py:h", "price", 28) == 5000 and r.hmget("py:h", "price", "none") == ["5000", None]
    assert dict(r.hscan_iter("py:h")) == {"name": "Deimos", "price": "5000"}


def lists(r):
    assert r.rpush("py:l", "a", "b", "c") == 3 and r.lpush("py:l", "z") == 4
    assert r.lrange("py:l", 0, -1) == ["z", "a", "b", "c"]
    assert list(r.blpop("py:l", timeout=100)) == ["py:l", "z"]
    assert r.lmove("py:l", "py:m", "LEFT", "RIGHT") == "a" and r.lpos("py:l", "c") == 1
    assert r.blpop("py:empty", timeout=0.05) is None


def sets(r):
    assert r.sadd("py:s", "a", "b", "c") == 3 and r.sadd("py:t", "b", "c", "d") == 3
    assert set(r.sinter("py:s", "py:t")) == {"b", "c"} and r.sismember("py:s", "a")
    assert set(r.sscan_iter("py:s")) == {"a", "b", "c"}


def sorted_sets(r):
    assert r.zadd("py:z", {"one": 1, "two": 2, "three": 3.5}) == 3
    found = [tuple(pair) for pair in r.zrange("py:z", 0, -1, withscores=True)]
    assert found == [("one", 1.0), ("two", 2.0), ("three", 3.5)], found
    assert r.zrank("py:z", "three") == 2 and r.zrangebyscore("py:z", 2, "+inf") == ["two", "three"]


def bits(r):
    r.setbit("py:bits", 7, 1)
    assert r.getbit("py:bits", 7) == 1 and r.bitcount("py:bits") == 1
    assert r.pfadd("py:hll", "a", "b", "c") and r.pfcount("py:hll") == 3
    r.geoadd("py:geo", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
    assert abs(float(r.geodist("py:geo", "Palermo", "Catania", "km")) - 166.2742) < 0.001


def pipelines(r):
    with r.pipeline() as pipe:
        replies = pipe.set("py:p", 1).incr("py:p").get("py:p").execute()
    assert replies == [True, 2, "2"]
    with r.pipeline(transaction=False) as pipe:
        assert pipe.set("py:p", 1).get("py:p").execute() == [True, "1"]


def transactions(r):
    with r.pipeline() as pipe:
        pipe.watch("py:w")
        pipe.multi()
        pipe.set("py:w", "mine")
        r.set("py:w", "theirs")
        try:
            pipe.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("a spoiled transaction was executed")
    assert r.get("py:w") == "theirs"
    assert r.transaction(lambda pipe: pipe.multi() or pipe.set("py:w", "done"), "py:w") == [True]


def publish_and_subscribe(r):
    with r.pubsub() as listener:
        listener.subscribe("py:channel")
        listener.psubscribe("py:*")
        assert listener.get_message(timeout=120)["type"] == "subscribe"
        assert listener.get_message(timeout=120)["type"] == "psubscribe"
        assert r.publish("py:channel", "hello") == 2
        kinds = {listener.get_message(timeout=120)["type"] for _ in range(2)}
    assert kinds == {"message", "pmessage"}


def scan(r):
    for number in range(300):
        r.set(f"py:scan:{number}", number)
    assert len(set(r.scan_iter("py:scan:*", count=50))) == 300
    assert r.type("py:scan:1") == "string" and r.delete("py:scan:1", "py:scan:2") == 2


def server(r):
    assert r.ping() and "redis_version" in r.info()
    assert r.config_set("maxmemory", "0") and r.config_get("maxmemory") == {"maxmemory": "0"}
    assert r.client_setname("python") and r.client_getname() == "python"
    assert any(client["name"] == "python" for client in r.client_list())
    assert r.dbsize() > 0 and r.command_count() > 100 and r.time()[0] > 1_700_000_000


def many_databases(r):
    other = redis.Redis(port=int(sys.argv[1]), db=3, decode_responses=True)
    other.set("py:db", "three")
    assert r.get("py:db") is None and other.get("py:db") == "three"


def resp3(r):
    newer = redis.Redis(port=int(sys.argv[1]), protocol=3, decode_responses=True)
    newer.hset("py:r3", mapping={"a": 1})
    assert newer.hgetall("py:r3") == {"a": "1"}
    newer.sadd("py:r3s", "x")
    assert newer.smembers("py:r3s") == {"x"}


def asynchronous(r):
    async def both():
        client = redis.asyncio.Redis(port=int(sys.argv[1]), decode_responses=True)
        await asyncio.gather(*(client.set(f"py:async:{n}", n) for n in range(50)))
        found = await asyncio.gather(*(client.get(f"py:async:{n}") for n in range(50)))
        await client.aclose()
        return found
    assert asyncio.run(both()) == [str(n) for n in range(50)]


EXAMPLES = [strings, expiry, hashes, lists, sets, sorted_sets, bits, pipelines, transactions,
            publish_and_subscribe, scan, server, many_databases, resp3, asynchronous]


if __name__ == "__main__":
    try_each(EXAMPLES, redis.Redis(port=int(sys.argv[1]), decode_responses=True))
