"""A queue of rq, done by a worker that runs jobs in its own process.

rq_queue.py produce PORT COUNT ACKED | work PORT DONE | where PORT NUMBER...
"""

import os
import sys
import time

from redis import Redis, RedisError
from rq import Queue, SimpleWorker

sys.path.insert(0, os.path.dirname(__file__))


def job(number, done):
    time.sleep(0.002)
    with open(done, "a") as file:
        file.write(f"{number}\n")
    return number


def produce(connection, count, acked, done):
    queue = Queue("jobs", connection=connection)
    for number in range(count):
        while True:
            try:
                queue.enqueue("rq_queue.job", number, done, job_id=f"job-{number}", result_ttl=600)
                break
            except RedisError:
                time.sleep(0.05)
        with open(acked, "a") as file:
            file.write(f"{number}\n")


def work(connection):
    while True:
        try:
            SimpleWorker(["jobs"], connection=connection).work(with_scheduler=False)
            return
        except RedisError as error:
            # A worker ends when its server goes; whoever runs it starts it again.
            print(f"the worker begins again: {error!r}", flush=True)
            time.sleep(0.1)


def where(connection, numbers):
    """Prints where the server keeps each job that a worker has taken and not told to be done; true if it keeps one
    nowhere."""
    queue = Queue("jobs", connection=connection)
    # One that still waits in its queue is not lost: rq would have to run it.
    waiting = {"intermediate queue": queue.intermediate_queue.get_job_ids(),
               "started": queue.started_job_registry.get_job_ids(cleanup=False),
               "failed": queue.failed_job_registry.get_job_ids(cleanup=False)}
    nowhere = False
    for number in numbers:
        job = queue.fetch_job(f"job-{number}")
        places = [place for place, jobs in waiting.items() if job and job.id in jobs]
        nowhere |= not places
        print(f"job {number}: {', '.join(places) or 'nowhere'}")
    return nowhere


if __name__ == "__main__":
    mode, port, *rest = sys.argv[1:]
    redis = Redis(port=int(port))
    if mode == "produce":
        produce(redis, int(rest[0]), rest[1], os.path.join(os.path.dirname(rest[1]), "done"))
    elif mode == "where":
        sys.exit(where(redis, rest))
    else:
        work(redis)
