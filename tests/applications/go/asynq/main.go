// A queue of asynq.
//
//	asynq produce PORT COUNT ACKED | work PORT DONE
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	mode, port, rest := os.Args[1], os.Args[2], os.Args[3:]
	redis := asynq.RedisClientOpt{Addr: "127.0.0.1:" + port}
	if mode == "produce" {
		count, err := strconv.Atoi(rest[0])
		if err != nil {
			log.Fatal(err)
		}
		produce(redis, count, rest[1])
	} else {
		work(redis, rest[0])
	}
}

func produce(redis asynq.RedisClientOpt, count int, acked string) {
	client := asynq.NewClient(redis)
	defer client.Close()
	file, err := os.OpenFile(acked, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	for number := 0; number < count; number++ {
		task := asynq.NewTask("job", []byte(strconv.Itoa(number)))
		options := []asynq.Option{
			asynq.TaskID(fmt.Sprintf("job-%d", number)), asynq.Retention(time.Hour), asynq.MaxRetry(25),
			asynq.Timeout(10 * time.Second),
		}
		if number%5 == 0 {
			options = append(options, asynq.ProcessIn(50*time.Millisecond))
		}
		for {
			_, err := client.Enqueue(task, options...)
			// What was taken although its reply was lost is in conflict with itself.
			if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		fmt.Fprintln(file, number)
	}
}

func work(redis asynq.RedisClientOpt, done string) {
	log.SetOutput(io.Discard)
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 4, LogLevel: asynq.FatalLevel,
		DelayedTaskCheckInterval: time.Second,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	err := server.Run(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		time.Sleep(2 * time.Millisecond)
		file, err := os.OpenFile(done, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = fmt.Fprintf(file, "%s\n", task.Payload())
		return err
	}))
	if err != nil {
		log.Fatal(err)
	}
}
