"""What every acceptance suite needs: a server process, a RESP client, and one way to report.

Only the standard library, so that a suite starts in milliseconds and installs nothing.
"""
