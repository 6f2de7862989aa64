"""INFO as its fields."""


def info_fields(reply):
    """The values of a reply to INFO, by the names of their fields, as text."""
    return dict(line.split(":", 1) for line in reply.decode().split("\r\n") if ":" in line)
