"""In which order servers are asked that are measured side by side."""


def in_turn(names, turn, row):
    """The servers, another one first in each row and each turn, and in every other turn backwards: whatever one leaves
    behind falls on each of the others."""
    first, step = turn + row, -1 if turn % 2 else 1
    return [names[(first + step * place) % len(names)] for place in range(len(names))]
