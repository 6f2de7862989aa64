//! Ends connections that speak HTTP instead of Redis's protocol, so that no web page can write.
//! Called for every request whose command is not known (`server/dispatch.rs`).
//!
//! A page in a browser can make it send a request to any address that the browser reaches, this
//! server's on the same machine or in the same network included. What it sends is HTTP: its lines
//! are read as inline requests, `POST / HTTP/1.1` and `Host: …` are unknown commands, and what the
//! page put into the body is executed. So a request that is called as one of these two lines ends
//! the connection, as in Redis 7.0, before anything behind it is looked at. A page cannot leave
//! `Host` away, and every request with a body begins with `POST`, or has `Host` before its body.

use base::MonotonicNanos;

/// Nanoseconds between two warnings: a page can try as often as it likes. A minute, as in Redis.
const WARNING_NANOS: u64 = 60_000_000_000;

/// When an attempt was last told of.
#[derive(Default, Debug)]
pub(crate) struct CrossProtocol {
    warned: Option<MonotonicNanos>,
}

impl CrossProtocol {
    /// Whether an attempt at `now` is to be told.
    pub fn is_warning_due(&mut self, now: MonotonicNanos) -> bool {
        let is_due = self.warned.is_none_or(|then| now.since(then) > WARNING_NANOS);
        if is_due {
            self.warned = Some(now);
        }
        is_due
    }
}

/// Whether a request of this name is a line of HTTP.
pub(crate) fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_http_are_known_in_any_case() {
        for name in [&b"POST"[..], b"post", b"Host:", b"HOST:"] {
            assert!(is_http(name), "{}", name.escape_ascii());
        }
        for name in [&b"GET"[..], b"host", b"POSTS", b"", b"Host:x"] {
            assert!(!is_http(name), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn a_minute_has_one_warning() {
        let mut state = CrossProtocol::default();
        let second = |seconds: u64| MonotonicNanos(seconds * 1_000_000_000);
        let told: Vec<bool> =
            [5, 6, 65, 66, 100, 130].map(|at| state.is_warning_due(second(at))).to_vec();
        assert_eq!(told, [true, false, false, true, false, true]);
    }
}
