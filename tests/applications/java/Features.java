import io.lettuce.core.Consumer;
import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.XGroupCreateArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XReadGroupParams;

/**
 * The examples of Jedis, Lettuce, Redisson and Spring Data Redis, as their users write them, against any server.
 * The port is the only argument. Each method is one example and fails by throwing; its name is the claim.
 */
public final class Features {
    private static int port;

    private interface Example {
        void run() throws Exception;
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }

    private static void jedis() {
        try (JedisPooled jedis = new JedisPooled("127.0.0.1", port)) {
            check("OK".equals(jedis.set("j:k", "v")) && "v".equals(jedis.get("j:k")), jedis.get("j:k"));
            check(Long.valueOf(2).equals(jedis.eval("return ARGV[1] + 1", 0, "1")), "eval");
            jedis.hset("j:h", Map.of("a", "1", "b", "2"));
            check(jedis.hgetAll("j:h").equals(Map.of("a", "1", "b", "2")), jedis.hgetAll("j:h"));
            jedis.xgroupCreate("j:s", "g", new StreamEntryID(0, 0), true);
            StreamEntryID id = jedis.xadd("j:s", XAddParams.xAddParams().maxLen(100), Map.of("n", "1"));
            var found = jedis.xreadGroup("g", "c", XReadGroupParams.xReadGroupParams().count(1),
                    Map.of("j:s", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
            check(found.get(0).getValue().get(0).getID().equals(id), found);
            check(jedis.xack("j:s", "g", id) == 1, "xack");
        }
    }

    private static void lettuce() {
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + port);
        try (var connection = client.connect()) {
            RedisCommands<String, String> redis = connection.sync();
            check("OK".equals(redis.set("l:k", "v")), "set");
            Object sum = redis.eval("return tonumber(ARGV[1]) + 1", ScriptOutputType.INTEGER, new String[0], "41");
            check(Long.valueOf(42).equals(sum), sum);
            redis.multi();
            redis.incr("l:n");
            redis.incr("l:n");
            check(Long.valueOf(2).equals(redis.exec().get(1)), "exec");
            redis.xgroupCreate(XReadArgs.StreamOffset.from("l:s", "0"), "g", XGroupCreateArgs.Builder.mkstream());
            redis.xadd("l:s", Map.of("n", "1"));
            var found = redis.xreadgroup(Consumer.from("g", "c"), XReadArgs.StreamOffset.lastConsumed("l:s"));
            check(found.size() == 1 && found.get(0).getBody().equals(Map.of("n", "1")), found);
        } finally {
            client.shutdown();
        }
    }

    private static void lettuceClientSideCaching() throws InterruptedException {
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + port);
        try (var connection = client.connect(); var other = client.connect()) {
            Map<String, String> near = new ConcurrentHashMap<>();
            other.sync().set("l:csc", "old");
            var cached = ClientSideCaching.enable(CacheAccessor.forMap(near), connection, TrackingArgs.Builder.enabled());
            check("old".equals(cached.get("l:csc")) && near.containsKey("l:csc"), near);
            other.sync().set("l:csc", "new");
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (!"new".equals(cached.get("l:csc"))) {
                check(System.nanoTime() < deadline, "an invalidation never came");
                Thread.sleep(10);
            }
        } finally {
            client.shutdown();
        }
    }

    private static void redisson() throws InterruptedException {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setConnectionPoolSize(8)
                .setConnectionMinimumIdleSize(2).setSubscriptionConnectionMinimumIdleSize(1);
        RedissonClient redisson = Redisson.create(config);
        try {
            RLock lock = redisson.getLock("r:lock");
            check(lock.tryLock(10, 30, TimeUnit.SECONDS) && lock.isHeldByCurrentThread(), "lock");
            lock.unlock();
            check(!lock.isLocked(), "unlock");
            check(redisson.getAtomicLong("r:n").addAndGet(5) == 5, "atomic");
            RMapCache<String, String> map = redisson.getMapCache("r:map");
            map.put("k", "v", 60, TimeUnit.SECONDS);
            check("v".equals(map.get("k")), map.get("k"));
            var limiter = redisson.getRateLimiter("r:limit");
            limiter.trySetRate(org.redisson.api.RateType.OVERALL, 2, Duration.ofSeconds(600));
            check(limiter.tryAcquire() && limiter.tryAcquire() && !limiter.tryAcquire(), "rate limit");
            var queue = redisson.getBlockingQueue("r:queue");
            queue.add("job");
            check("job".equals(queue.poll(60, TimeUnit.SECONDS)), "queue");
        } finally {
            redisson.shutdown();
        }
    }

    private static void springDataRedis() {
        LettuceConnectionFactory factory = new LettuceConnectionFactory("127.0.0.1", port);
        factory.afterPropertiesSet();
        factory.start();
        try {
            StringRedisTemplate template = new StringRedisTemplate(factory);
            template.opsForValue().set("s:k", "v", Duration.ofSeconds(60));
            check("v".equals(template.opsForValue().get("s:k")), "get");
            check(Boolean.FALSE.equals(template.opsForValue().setIfAbsent("s:k", "w")), "setIfAbsent");
            template.opsForHash().putAll("s:h", Map.of("a", "1"));
            check(template.opsForHash().entries("s:h").equals(Map.of("a", "1")), "hash");
            var script = new DefaultRedisScript<>("return redis.call('INCRBY', KEYS[1], ARGV[1])", Long.class);
            check(Long.valueOf(7).equals(template.execute(script, List.of("s:n"), "7")), "script");
            template.opsForStream().add("s:s", Map.of("n", "1"));
            template.opsForStream().createGroup("s:s", ReadOffset.from("0"), "g");
            List<MapRecord<String, Object, Object>> found = template.opsForStream().read(
                    org.springframework.data.redis.connection.stream.Consumer.from("g", "c"),
                    StreamOffset.create("s:s", ReadOffset.lastConsumed()));
            check(found != null && found.size() == 1, found);
            check(Long.valueOf(1).equals(template.opsForStream().acknowledge("g", found.get(0))), "acknowledge");
        } finally {
            factory.destroy();
        }
    }

    private static boolean run(String name, Example example) {
        try (JedisPooled jedis = new JedisPooled("127.0.0.1", port)) {
            jedis.flushAll();
            example.run();
            System.out.println("ok " + name);
            return true;
        } catch (Throwable thrown) {
            System.out.println("FAIL " + name + ": " + thrown.toString().replaceAll("\\s+", " "));
            return false;
        }
    }

    public static void main(String[] arguments) {
        port = Integer.parseInt(arguments[0]);
        boolean passed = run("jedis", Features::jedis);
        passed &= run("lettuce", Features::lettuce);
        passed &= run("lettuce_client_side_caching", Features::lettuceClientSideCaching);
        passed &= run("redisson", Features::redisson);
        passed &= run("spring_data_redis", Features::springDataRedis);
        System.exit(passed ? 0 : 1);
    }
}
