"""Waiting for what another process does, with patience for a busy machine."""

import time

# How long it may take until something comes that must come, on a machine that is busy and whose disk is
# slow. What has not come by then does not come.
PATIENCE_SECONDS = 120


class Stuck(Exception):
    """What must come in time does not; says what."""


def wait_for(what, holds, seconds=PATIENCE_SECONDS):
    """Waits until `holds` returns something true, and returns it.

    `what` names it for whoever reads the failure: a text, or a function that is asked at the end.
    """
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            name = what() if callable(what) else what
            raise Stuck(f"within {seconds} s there was never {name}")
        time.sleep(0.01)
    return found
