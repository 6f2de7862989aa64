"""A queue of Celery with Redis as broker and result backend.

celery_queue.py produce PORT COUNT ACKED | work PORT DONE

Tasks are acknowledged when they are done (`acks_late`), and one whose worker does not say so within the
visibility timeout is given out again.
"""

import os
import subprocess
import sys
import time

from celery import Celery
from kombu.exceptions import OperationalError

mode, port, *rest = sys.argv[1:]
url = f"redis://127.0.0.1:{port}/0"
app = Celery("jobs", broker=url, backend=url)
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_transport_options={"visibility_timeout": 5, "retry_on_timeout": True, "unacked_restore_limit": 100,
                              "polling_interval": 1},
    result_expires=3600,
)


# A worker that has done nothing for so long is started anew. Longer than one takes to start, and than a task
# stays invisible.
IDLE_SECONDS_MAX = 20


@app.task(name="jobs.job")
def job(number, done):
    time.sleep(0.002)
    line = f"{number}\n".encode()
    file = os.open(done, os.O_WRONLY | os.O_APPEND)
    os.write(file, line)
    os.close(file)
    return number


def produce(count, acked, done):
    for number in range(count):
        while True:
            try:
                job.apply_async((number, done), task_id=f"job-{number}", retry=False)
                break
            except (OperationalError, ConnectionError):
                time.sleep(0.05)
        with open(acked, "a") as file:
            file.write(f"{number}\n")


def work(done):
    """Starts a worker again whenever one has ended, or has done nothing for long, as a service manager
    does: one that has lost its connection may wait for ever, beside a stock server as well."""
    while True:
        with subprocess.Popen([sys.executable, __file__, "worker", port]) as worker:
            watch(worker, done)
        time.sleep(0.2)


def watch(worker, done):
    """Waits until a worker ends, or ends it."""
    size, since = None, time.monotonic()
    while worker.poll() is None:
        time.sleep(0.2)
        last, size = size, os.path.getsize(done)
        if size != last:
            since = time.monotonic()
        elif time.monotonic() - since > IDLE_SECONDS_MAX:
            worker.kill()


if mode == "produce":
    produce(int(rest[0]), rest[1], os.path.join(os.path.dirname(rest[1]), "done"))
elif mode == "work":
    work(rest[0])
elif mode == "worker":
    app.worker_main(["worker", "--pool=threads", "--concurrency=2", "--loglevel=WARNING",
                     "--without-gossip", "--without-mingle"])
