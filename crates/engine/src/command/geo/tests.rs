//! Places: replies and effects. Every reply is that of Redis 7.0.15.

use crate::testing::Bench;
use resp::Protocol;

fn sicily() -> Bench {
    let mut bench = Bench::new();
    bench.check("GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2");
    bench
}

#[test]
fn places_are_added_and_told() {
    let mut bench = sicily();
    bench.check_all(&[
        ("GEOADD s NX CH 1 1 Palermo", ":0"),
        ("GEOADD s XX CH 1 1 none", ":0"),
        ("ZSCORE s Palermo", "$16 3479099956230698"),
        ("GEODIST s Palermo Catania", "$11 166274.1516"),
        ("GEODIST s Palermo Catania km", "$8 166.2742"),
        ("GEODIST s Palermo none", "$-1"),
        ("GEOHASH s Palermo none", "*2 $11 sqc8b49rny0 $-1"),
        ("GEOPOS s Palermo none", "*2 *2 $20 13.36138933897018433 $20 38.11555639549629859 *-1"),
        ("GEOADD s 181 1 x", "-ERR invalid longitude,latitude pair 181.000000,1.000000"),
        ("GEOADD s 1 1", "-ERR syntax error"),
        ("GEODIST s a b parsec", "-ERR unsupported unit provided. please use M, KM, FT, MI"),
    ]);
    bench.protocol = Protocol::Resp3;
    bench.check("GEOPOS s Palermo", "*1 *2 ,13.36138933897018433 ,38.11555639549629859");
}

#[test]
fn searches_answer_or_store() {
    let mut bench = sicily();
    bench.check_all(&[
        (
            "GEORADIUS s 15 37 200 km WITHDIST",
            "*2 *2 $7 Palermo $8 190.4424 *2 $7 Catania $7 \
                                               56.4413",
        ),
        ("GEORADIUS_RO s 15 37 200 km ASC", "*2 $7 Catania $7 Palermo"),
        ("GEORADIUSBYMEMBER s Palermo 1 m WITHHASH", "*1 *2 $7 Palermo :3479099956230698"),
        ("GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km DESC COUNT 1", "*1 $7 Palermo"),
        ("GEOSEARCHSTORE d s FROMMEMBER Catania BYRADIUS 1 km", ":1"),
        ("ZRANGE d 0 -1 WITHSCORES", "*2 $7 Catania $16 3479447370796909"),
        ("GEORADIUS s 15 37 200 km STOREDIST d", ":2"),
        ("ZRANGE d 0 -1", "*2 $7 Catania $7 Palermo"),
        ("GEOSEARCHSTORE d none FROMMEMBER x BYRADIUS 1 km", ":0"),
        ("EXISTS d", ":0"),
        (
            "GEOSEARCH s FROMMEMBER none BYRADIUS 1 km",
            "-ERR could not decode requested zset member",
        ),
        (
            "GEOSEARCH s BYRADIUS 1 km ASC ASC",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH",
        ),
        (
            "geosearch s FROMMEMBER Palermo ASC ASC ASC",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for geosearch",
        ),
        ("GEORADIUS_RO s 15 37 200 km STORE d", "-ERR syntax error"),
        (
            "GEORADIUS s 15 37 200 km STORE d WITHDIST",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and \
             WITHCOORD options",
        ),
        ("GEORADIUS s 15 37 -1 km", "-ERR radius cannot be negative"),
        ("GEORADIUS s 15 37 1 km ANY", "-ERR the ANY argument requires COUNT argument"),
    ]);
}
