// The basic examples of go-redis, as its users write them, against any server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// patience is how long a reply may take on a busy machine. By default go-redis sends a request again
// after 3 seconds, which a slow disk may need for one sync.
const patience = 2 * time.Minute

// same reports what was expected and what came.
func same(expected, found interface{}) error {
	if !reflect.DeepEqual(expected, found) {
		return fmt.Errorf("expected %#v, found %#v", expected, found)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func strings(c *redis.Client) error {
	if err := c.Set(ctx, "go:a", "value", time.Hour).Err(); err != nil {
		return err
	}
	value, err := c.Get(ctx, "go:a").Result()
	if err != nil {
		return err
	}
	if _, err := c.Get(ctx, "go:none").Result(); !errors.Is(err, redis.Nil) {
		return fmt.Errorf("a missing key is not redis.Nil: %v", err)
	}
	ttl := c.TTL(ctx, "go:a").Val()
	count, err := c.Incr(ctx, "go:n").Result()
	return first(err, same("value", value), same(int64(1), count), same(true, ttl > 59*time.Minute))
}

func hashes(c *redis.Client) error {
	type bike struct {
		Model string `redis:"model"`
		Price int    `redis:"price"`
	}
	if err := c.HSet(ctx, "go:h", bike{"Deimos", 4972}).Err(); err != nil {
		return err
	}
	var found bike
	if err := c.HGetAll(ctx, "go:h").Scan(&found); err != nil {
		return err
	}
	return same(bike{"Deimos", 4972}, found)
}

func lists(c *redis.Client) error {
	if err := c.RPush(ctx, "go:l", "a", "b", "c").Err(); err != nil {
		return err
	}
	left, err := c.BLPop(ctx, time.Second, "go:l").Result()
	return first(err, same([]string{"go:l", "a"}, left),
		same([]string{"b", "c"}, c.LRange(ctx, "go:l", 0, -1).Val()))
}

func sets(c *redis.Client) error {
	c.SAdd(ctx, "go:s", "a", "b", "c")
	c.SAdd(ctx, "go:t", "b", "c", "d")
	both, err := c.SInter(ctx, "go:s", "go:t").Result()
	sort.Strings(both)
	return first(err, same([]string{"b", "c"}, both))
}

func sortedSets(c *redis.Client) error {
	c.ZAdd(ctx, "go:z", redis.Z{Score: 2, Member: "two"}, redis.Z{Score: 1, Member: "one"})
	found, err := c.ZRangeWithScores(ctx, "go:z", 0, -1).Result()
	return first(err, same([]redis.Z{{Score: 1, Member: "one"}, {Score: 2, Member: "two"}}, found))
}

func pipelines(c *redis.Client) error {
	var incremented *redis.IntCmd
	_, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		incremented = pipe.Incr(ctx, "go:p")
		pipe.Expire(ctx, "go:p", time.Hour)
		return nil
	})
	return first(err, same(int64(1), incremented.Val()))
}

func transactions(c *redis.Client) error {
	attempt := func(tx *redis.Tx) error {
		n, err := tx.Get(ctx, "go:w").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "go:w", n+1, 0)
			return nil
		})
		return err
	}
	spoiled := func(tx *redis.Tx) error {
		c.Set(ctx, "go:w", 7, 0)
		return attempt(tx)
	}
	if err := c.Watch(ctx, attempt, "go:w"); err != nil {
		return err
	}
	if err := c.Watch(ctx, spoiled, "go:w"); !errors.Is(err, redis.TxFailedErr) {
		return fmt.Errorf("a spoiled transaction was not refused: %v", err)
	}
	return same("7", c.Get(ctx, "go:w").Val())
}

func publishing(c *redis.Client) error {
	listener := c.Subscribe(ctx, "go:channel")
	defer listener.Close()
	if _, err := listener.Receive(ctx); err != nil {
		return err
	}
	if err := c.Publish(ctx, "go:channel", "hello").Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	message, err := listener.ReceiveMessage(limited)
	if err != nil {
		return err
	}
	return same("hello", message.Payload)
}

func scanning(c *redis.Client) error {
	for i := 0; i < 300; i++ {
		c.Set(ctx, fmt.Sprintf("go:scan:%d", i), i, 0)
	}
	seen := map[string]bool{}
	keys := c.Scan(ctx, 0, "go:scan:*", 50).Iterator()
	for keys.Next(ctx) {
		seen[keys.Val()] = true
	}
	return first(keys.Err(), same(300, len(seen)))
}

func main() {
	c := redis.NewClient(&redis.Options{Addr: os.Args[1], DialTimeout: patience, ReadTimeout: patience,
		WriteTimeout: patience, PoolTimeout: patience})
	defer c.Close()
	examples := []struct {
		name string
		run  func(*redis.Client) error
	}{
		{"strings", strings}, {"hashes", hashes}, {"lists", lists}, {"sets", sets},
		{"sorted sets", sortedSets}, {"pipelines", pipelines}, {"transactions", transactions},
		{"publish and subscribe", publishing}, {"scan", scanning},
	}
	for _, example := range examples {
		if err := example.run(c); err != nil {
			fmt.Printf("FAIL %s: %v\n", example.name, err)
		} else {
			fmt.Printf("ok %s\n", example.name)
		}
	}
}
