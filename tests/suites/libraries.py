"""The suites: libraries whose own tests can be had from the registries, and what of them runs."""

from gosuite import SERVER_PORT, GoSuite
from redispy import RedisPy

# What go-redis's tests start by themselves: a server, one beside it, and the shards of a ring.
RING = [6380, 6381, 6390, 6391, 6392]

GO_REDIS = GoSuite(
    "go-redis", "github.com/redis/go-redis/v9", "v9.7.3", [".", "doctests"],
    theirs=[SERVER_PORT, *RING],
    patches=[
        ("main_test.go", r"(?m)^const \(", "var ("),
        # Processes for tests that are left out are not started.
        ("main_test.go", r"\n\t\tsentinel\w+, err = start(Redis|Sentinel)\([^)]*\)\n"
                         r"\t\tExpect\(err\)\.NotTo\(HaveOccurred\(\)\)\n", "\n"),
        ("main_test.go", r"\n\t\tExpect\((startCluster\(ctx, cluster\)|cluster\.Close\(\))\)"
                         r"\.NotTo\(HaveOccurred\(\)\)", ""),
        ("main_test.go", r'"(6379|6380|6381|639\d)"', r'kilnPort("\1")'),
        ("[!m]*_test.go", r'":6379"', '":" + kilnPort("6379")'),
        ("monitor_test.go", r'":6379"', '":" + kilnPort("6379")'),
        ("doctests/*_test.go", r'"localhost:6379"', '"localhost:" + kilnPort("6379")'),
    ],
    # Modules, and Sentinel's own processes and clusters, which are a stock server's whoever is asked.
    ginkgo_skip=r"ClusterClient|Sentinel|RediSearch|JSON|Probabilistic|RedisTimeseries|Gears")

SUITES = {suite.name: suite for suite in [
    RedisPy(2), RedisPy(3), GO_REDIS,
]}
