"""Locks, caches and sessions of Python's libraries, as their users write them, against any server.

The port is the only argument. Each function is one example and fails by raising; its name is the claim.
"""

import pathlib
import sys
import threading
import time

import redis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness.examples import try_each  # noqa: E402

PORT = int(sys.argv[1])


def connect(**options):
    return redis.Redis(port=PORT, decode_responses=True, **options)


def redis_py_lock():
    r = connect()
    with r.lock("lock:a", timeout=10):
        assert not r.lock("lock:a", blocking=False).acquire()
    lock = r.lock("lock:a", timeout=5)
    assert lock.acquire() and lock.extend(20) and r.ttl("lock:a") > 20 and lock.reacquire() and lock.owned()
    lock.release()
    assert r.exists("lock:a") == 0


def redis_py_lock_is_taken_by_one_at_a_time():
    counts = []

    def raise_it():
        r = connect()
        for _ in range(20):
            with r.lock("lock:many", timeout=30, sleep=0.005):
                seen = int(r.get("lock:count") or 0)
                time.sleep(0.0005)
                r.set("lock:count", seen + 1)
        counts.append(1)

    threads = [threading.Thread(target=raise_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 4 and connect().get("lock:count") == "80", connect().get("lock:count")


def registered_scripts():
    r = connect()
    double = r.register_script("return {KEYS[1], ARGV[1] * 2, redis.call('SET', KEYS[1], ARGV[1])}")
    assert double(keys=["script:k"], args=[21]) == ["script:k", 42, "OK"] and r.get("script:k") == "21"
    r.script_flush()
    assert double(keys=["script:k"], args=[4])[1] == 8, "NOSCRIPT is answered by loading it again"
    with r.pipeline() as pipe:
        double(keys=["script:k"], args=[5], client=pipe)
        pipe.get("script:k")
        assert pipe.execute()[1] == "5"


def functions():
    r = connect()
    library = ("#!lua name=app\nredis.register_function('twice', function(keys, args) "
               "return redis.call('INCRBY', keys[1], args[1] * 2) end)")
    assert r.function_load(library, replace=True) == "app"
    assert r.fcall("twice", 1, "fn:k", 4) == 8 and r.fcall("twice", 1, "fn:k", 1) == 10
    dumped = redis.Redis(port=PORT).function_dump()
    assert r.function_delete("app") and not r.function_list()
    assert redis.Redis(port=PORT).function_restore(dumped) and r.fcall("twice", 1, "fn:k", 1) == 12


def python_redis_lock():
    import redis_lock

    r = redis.Redis(port=PORT)
    with redis_lock.Lock(r, "name-of-the-lock", expire=10, auto_renewal=True):
        assert not redis_lock.Lock(r, "name-of-the-lock").acquire(blocking=False)
    redis_lock.reset_all(r)


def pottery_redlock_and_collections():
    from pottery import NextID, RedisDict, Redlock, redis_cache

    r = redis.Redis(port=PORT)
    with Redlock(key="printer", masters={r}, auto_release_time=10):
        other = Redlock(key="printer", masters={r}, auto_release_time=10)
        assert not other.acquire(blocking=False)
    ids = NextID(key="users", masters={r})
    first = next(ids)
    assert next(ids) == first + 1
    kept = RedisDict({"hue": "red"}, redis=r, key="pottery:dict")
    kept["size"] = 3
    assert dict(kept) == {"hue": "red", "size": 3}
    calls = []

    @redis_cache(redis=r, key="pottery:cache")
    def slow(n):
        calls.append(n)
        return n * 2

    assert slow(4) == slow(4) == 8 and calls == [4]


def flask_caching():
    from flask import Flask
    from flask_caching import Cache

    app = Flask("cached")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_PORT": PORT,
                               "CACHE_KEY_PREFIX": "flask:"})
    calls = []

    @app.route("/page")
    @cache.cached(timeout=60)
    def page():
        calls.append(1)
        return f"drawn {len(calls)}"

    client = app.test_client()
    assert client.get("/page").data == client.get("/page").data == b"drawn 1"
    with app.app_context():
        assert cache.set_many({"a": 1, "b": [2]}) and cache.get_many("a", "b") == [1, [2]] and cache.has("a")
        assert cache.delete_many("a", "b") and cache.get("a") is None and cache.clear()
    assert client.get("/page").data == b"drawn 2"


def django_redis():
    import django
    from django.conf import settings

    settings.configure(
        CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache",
                            "LOCATION": f"redis://127.0.0.1:{PORT}/1"}},
        SESSION_ENGINE="django.contrib.sessions.backends.cache", INSTALLED_APPS=["django.contrib.sessions"])
    django.setup()
    from django.contrib.sessions.backends.cache import SessionStore
    from django.core.cache import cache

    assert cache.set("k", {"a": 1}, timeout=100) and cache.get("k") == {"a": 1} and 0 < cache.ttl("k") <= 100
    assert cache.add("k", 2) is False and cache.incr_version("k") == 2
    assert cache.get("k", version=2) == {"a": 1}
    cache.set("n", 1)
    assert cache.incr("n") == 2 and cache.get_or_set("m", lambda: 7) == 7
    assert sorted(cache.keys("*")) and cache.delete_pattern("*") >= 2 and cache.keys("*") == []
    with cache.lock("django-lock", timeout=5):
        pass
    session = SessionStore()
    session["user"] = 42
    session.save()
    assert SessionStore(session_key=session.session_key)["user"] == 42
    session.flush()


def streams_and_groups():
    r = connect()
    first = r.xadd("events", {"n": 1})
    r.xadd("events", {"n": 2}, maxlen=1000, approximate=True)
    assert r.xlen("events") == 2 and r.xrange("events", min=first)[0][1] == {"n": "1"}
    r.xgroup_create("events", "readers", id="0")
    found = r.xreadgroup("readers", "alice", {"events": ">"}, count=10)
    entries = found[0][1] if isinstance(found, list) else found["events"][0]
    assert [fields["n"] for _, fields in entries] == ["1", "2"], found
    assert r.xpending("events", "readers")["pending"] == 2
    claimed = r.xautoclaim("events", "readers", "bob", min_idle_time=0, count=1)
    assert claimed[1][0][0] == first
    assert r.xack("events", "readers", *[id for id, _ in entries]) == 2
    info = r.xinfo_stream("events", full=True)
    assert info["length"] == 2 and r.xinfo_groups("events")[0]["name"] == "readers"


EXAMPLES = [redis_py_lock, redis_py_lock_is_taken_by_one_at_a_time, registered_scripts, functions,
            python_redis_lock, pottery_redlock_and_collections, flask_caching, django_redis, streams_and_groups]

try_each(EXAMPLES, before=lambda: connect().flushall())
