// The examples of ioredis and node-redis, as their users write them, against any server.
//
// The port is the only argument. Each function is one example and fails by throwing; its name is the claim.
"use strict";
const assert = require("node:assert/strict");
const ioredis = require("ioredis");
const Redis = ioredis.Redis ?? ioredis;
const { createClient } = require("redis");

const port = Number(process.argv[2]);

async function withIoredis(use) {
  const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true });
  await client.connect();
  try {
    await use(client);
  } finally {
    client.disconnect();
  }
}

async function withNodeRedis(options, use) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options });
  client.on("error", () => {});
  await client.connect();
  try {
    await use(client);
  } finally {
    client.destroy();
  }
}

const examples = {
  ioredis_pipelines_and_transactions: () =>
    withIoredis(async (redis) => {
      const piped = await redis.pipeline().set("io:a", 1).incr("io:a").get("io:a").exec();
      assert.deepEqual(piped, [[null, "OK"], [null, 2], [null, "2"]]);
      const [[, first], [, second]] = await redis.multi().incr("io:a").hset("io:h", "f", "v").exec();
      assert.deepEqual([first, second], [3, 1]);
    }),

  ioredis_commands_in_lua: () =>
    withIoredis(async (redis) => {
      redis.defineCommand("echoTwice", { numberOfKeys: 2, lua: "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}" });
      assert.deepEqual(await redis.echoTwice("k1", "k2", "a1", "a2"), ["k1", "k2", "a1", "a2"]);
      await redis.script("FLUSH");
      assert.deepEqual(await redis.echoTwice("k1", "k2", "a1", "a2"), ["k1", "k2", "a1", "a2"]);
    }),

  ioredis_streams: () =>
    withIoredis(async (redis) => {
      const waits = redis.duplicate();
      const reading = waits.xread("BLOCK", 60000, "STREAMS", "io:stream", "$");
      await redis.client("LIST");
      const added = setInterval(() => redis.xadd("io:stream", "*", "name", "Ada"), 20);
      const found = await reading;
      clearInterval(added);
      assert.deepEqual(found[0][1][0][1], ["name", "Ada"]);
      waits.disconnect();
    }),

  ioredis_scan_stream_and_pubsub: () =>
    withIoredis(async (redis) => {
      await Promise.all(Array.from({ length: 500 }, (_, at) => redis.set(`io:scan:${at}`, at)));
      const seen = new Set();
      for await (const keys of redis.scanStream({ match: "io:scan:*", count: 50 })) keys.forEach((key) => seen.add(key));
      assert.equal(seen.size, 500);
      const subscriber = redis.duplicate();
      const heard = new Promise((resolve) => subscriber.on("message", (_, text) => resolve(text)));
      await subscriber.subscribe("io:news");
      await redis.publish("io:news", "hello");
      assert.equal(await heard, "hello");
      subscriber.disconnect();
    }),

  node_redis_commands: () =>
    withNodeRedis({}, async (client) => {
      await client.hSet("nr:h", { field: "value", other: 2 });
      assert.deepEqual({ ...(await client.hGetAll("nr:h")) }, { field: "value", other: "2" });
      await client.zAdd("nr:z", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]);
      assert.deepEqual((await client.zRangeWithScores("nr:z", 0, -1)).map(({ score }) => score), [1, 2.5]);
      assert.deepEqual(await client.multi().set("nr:k", "v").get("nr:k").exec(), ["OK", "v"]);
      assert.equal(await client.eval("return ARGV[1] .. KEYS[1]", { keys: ["k"], arguments: ["a"] }), "ak");
    }),

  node_redis_streams: () =>
    withNodeRedis({}, async (client) => {
      await client.xGroupCreate("nr:s", "g", "0", { MKSTREAM: true });
      const id = await client.xAdd("nr:s", "*", { a: "1" });
      const [{ messages }] = await client.xReadGroup("g", "c", { key: "nr:s", id: ">" }, { COUNT: 1 });
      assert.equal(messages[0].id, id);
      assert.equal(await client.xAck("nr:s", "g", id), 1);
    }),

  node_redis_client_side_caching: () =>
    withNodeRedis({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 100, evictPolicy: "LRU" } }, async (client) => {
      await withNodeRedis({}, async (other) => {
        await other.set("nr:csc", "old");
        assert.equal(await client.get("nr:csc"), "old");
        assert.equal(await client.get("nr:csc"), "old");
        await other.set("nr:csc", "new");
        const deadline = Date.now() + 60000;
        while ((await client.get("nr:csc")) !== "new") {
          assert.ok(Date.now() < deadline, "an invalidation never came");
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      });
    }),
};

async function main() {
  let failed = 0;
  for (const [name, example] of Object.entries(examples)) {
    await withIoredis((redis) => redis.flushall());
    try {
      await example();
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${String(error.message).replace(/\s+/g, " ")}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
