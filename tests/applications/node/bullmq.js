// A queue of BullMQ: jobs with a delay, a priority or none, done by four at a time.
//
// node bullmq.js produce PORT COUNT ACKED | work PORT DONE
"use strict";
const fs = require("node:fs");
const IORedis = require("ioredis");
const { Queue, Worker } = require("bullmq");

const [mode, port, ...rest] = process.argv.slice(2);
const connection = new (IORedis.Redis ?? IORedis)({
  host: "127.0.0.1",
  port: Number(port),
  maxRetriesPerRequest: null,
  retryStrategy: () => 100,
});
connection.on("error", () => {}); // It is meant to be killed, and connects again.

const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

async function produce(count, acked) {
  const queue = new Queue("jobs", { connection });
  queue.on("error", () => {});
  for (let number = 0; number < count; number++) {
    const kind = number % 5 === 0 ? { delay: 50 } : number % 7 === 0 ? { priority: 3 } : {};
    for (;;) {
      try {
        await queue.add("job", { number }, { jobId: `job-${number}`, attempts: 10, ...kind });
        break;
      } catch (error) {
        if (/unknown command|ERR /.test(error.message)) throw error;
        await sleep(50); // Added again under the same id, which adds it once.
      }
    }
    fs.appendFileSync(acked, `${number}\n`);
  }
  process.exit(0);
}

function work(done) {
  const worker = new Worker(
    "jobs",
    async (job) => {
      await sleep(2);
      fs.appendFileSync(done, `${job.data.number}\n`);
    },
    { connection, concurrency: 4, lockDuration: 3000, stalledInterval: 2000, maxStalledCount: 100 },
  );
  worker.on("error", () => {});
}

if (mode === "produce") produce(Number(rest[0]), rest[1]);
else work(rest[0]);
