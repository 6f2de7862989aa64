//! An event of the log is one line, whatever clients, masters and replicas call themselves.
//!
//! Names and errors that others chose stand in events. A line's end among them would make a second
//! line that the server never wrote, and an escape sequence would be obeyed by the terminal that
//! shows the log.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes events, each of which comes in one call and ends in a line's end.
pub struct Lines<W>(pub W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(one_line(event).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An event with every control character but its end written as Rust writes it: `\n`, `\u{1b}`.
fn one_line(event: &[u8]) -> String {
    let event = String::from_utf8_lossy(event);
    let (text, end) = match event.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (&*event, ""),
    };
    let mut line = String::with_capacity(event.len());
    for letter in text.chars() {
        if letter.is_control() {
            let _ = write!(line, "{}", letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line.push_str(end);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        for (event, expected) in [
            ("INFO a plain line: x=\"1\"\n", "INFO a plain line: x=\"1\"\n"),
            ("WARN host=a\r\nINFO forged\n", "WARN host=a\\r\\nINFO forged\n"),
            ("\x1b[2Jgone\x07\u{9b}\n", "\\u{1b}[2Jgone\\u{7}\\u{9b}\n"),
            ("größer\n", "größer\n"),
            ("no end", "no end"),
        ] {
            let mut written = Vec::new();
            Lines(&mut written).write_all(event.as_bytes()).expect("memory takes it");
            assert_eq!(String::from_utf8_lossy(&written), expected);
        }
    }
}
