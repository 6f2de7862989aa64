"""Examples of a client or a library, in a program of its own and in any language.

The program tries one after the other and prints a line for each: `ok NAME`, or `FAIL NAME: why`.
"""

import re
import subprocess
import sys
import traceback

LINE = re.compile(r"^(ok|FAIL) ([^:]*)(?:: (.*))?$")


def report_examples(report, name, command, seconds_max, **options):
    """Runs a program and counts the examples that it tells of."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max, **options)
    found = [match for line in ran.stdout.splitlines() if (match := LINE.match(line))]
    for match in found:
        report.add(f"{name}: {match[2]}", match[1] == "ok", match[3] or "")
    is_told = any(match[1] == "FAIL" for match in found)
    if not found or ran.returncode != 0 and not is_told:
        report.add(f"{name} ended well", False, ran.stderr[-2000:])


def try_each(examples, *arguments, before=None):
    """What such a program in Python does: calls each example, which fails by raising, and ends."""
    failed = 0
    for example in examples:
        name = example.__name__.replace("_", " ")
        try:
            if before:
                before()
            example(*arguments)
        except Exception as error:  # one example must not hide the next
            failed += 1
            text = " ".join(f"{type(error).__name__} {error}".split())
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL {name}: {text} ({where.name}, line {where.lineno})")
        else:
            print(f"ok {name}")
    sys.exit(1 if failed else 0)
