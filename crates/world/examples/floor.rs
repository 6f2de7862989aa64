//! A server that does no work: what the kernel and the driver alone cost.
//!
//! It skips over requests without looking at more than the first letter of the command, and
//! answers GET (any command with G) with a fixed value and everything else with `+OK`. Benchmarks
//! of the real server are read against it.
//!
//! ```text
//! cargo run --release -p world --example floor -- --port 7000 --reply-bytes 100
//! ```

use base::driver::{ConnectionId, Driver, Event, Received, Sent};
use std::collections::BTreeMap;
use std::process::ExitCode;
use world::net::{NetDriver, NetOptions};

/// Bytes taken from a connection at a time: Redis's figure.
const RECEIVE_BYTES: usize = 16 << 10;

#[derive(Default)]
struct Client {
    requests: Requests,
    /// Replies that the kernel has not taken.
    replies: Vec<u8>,
}

fn main() -> ExitCode {
    let (port, reply_bytes) = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\nusage: floor [--port N] [--reply-bytes N]");
            return ExitCode::FAILURE;
        }
    };
    let options = NetOptions {
        bind: vec!["127.0.0.1".to_owned()],
        port: Some(port),
        ..NetOptions::default()
    };
    let mut driver = match NetDriver::bind(&options) {
        Ok(driver) => driver,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("listening on port {}", driver.local_port().unwrap_or(port));
    let value = format!("${reply_bytes}\r\n{}\r\n", "x".repeat(reply_bytes)).into_bytes();
    serve(&mut driver, &value);
    ExitCode::SUCCESS
}

fn arguments() -> Result<(u16, usize), String> {
    let (mut port, mut reply_bytes) = (7000, 100);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a number"))?;
        let number: usize = value.parse().map_err(|_| format!("{value} is no number"))?;
        match name.as_str() {
            "--port" => port = u16::try_from(number).map_err(|_| "no such port".to_owned())?,
            "--reply-bytes" => reply_bytes = number,
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    Ok((port, reply_bytes))
}

/// Answers until a signal asks it to stop.
fn serve(driver: &mut NetDriver, value: &[u8]) {
    let mut clients: BTreeMap<ConnectionId, Client> = BTreeMap::new();
    let mut events = Vec::new();
    loop {
        driver.wait(None, &mut events);
        for event in events.drain(..) {
            let (id, is_open) = match event {
                Event::Accepted { connection, .. } => {
                    clients.insert(connection, Client::default());
                    continue;
                }
                Event::Readable(id) => {
                    let Some(client) = clients.get_mut(&id) else { continue };
                    (id, answer(driver, id, client, value))
                }
                Event::Writable(id) => {
                    let Some(client) = clients.get_mut(&id) else { continue };
                    (id, flush(driver, id, client))
                }
                Event::Broken(id) => (id, false),
                // It asks for no connection, and receives what comes to its end.
                Event::Connected { .. } | Event::Unreachable { .. } | Event::Ended(_) => continue,
                Event::Shutdown => return,
            };
            if !is_open {
                driver.close(id);
                clients.remove(&id);
            }
        }
    }
}

/// Whether the connection is still good.
fn answer(driver: &mut NetDriver, id: ConnectionId, client: &mut Client, value: &[u8]) -> bool {
    match driver.receive(id, &mut client.requests.input, RECEIVE_BYTES) {
        Received::Bytes { .. } => {}
        Received::WouldBlock => return true,
        Received::Closed => return false,
    }
    let replies = &mut client.replies;
    let is_understood = client.requests.skip_over(|letter| match letter {
        b'G' | b'g' => replies.extend_from_slice(value),
        _ => replies.extend_from_slice(b"+OK\r\n"),
    });
    is_understood && flush(driver, id, client)
}

fn flush(driver: &mut NetDriver, id: ConnectionId, client: &mut Client) -> bool {
    if client.replies.is_empty() {
        return true;
    }
    match driver.send(id, &client.replies) {
        Sent::Bytes(count) if count == client.replies.len() => client.replies.clear(),
        Sent::Bytes(count) => drop(client.replies.drain(..count)),
        Sent::Closed => return false,
    }
    // A client that does not read its replies is not read from.
    driver.set_reading(id, client.replies.is_empty());
    true
}

/// Finds the ends of requests.
#[derive(Default)]
struct Requests {
    input: Vec<u8>,
    /// Arguments of the current request whose header has not come.
    arguments_left: usize,
    /// Bytes of the current argument that have not come.
    bytes_left: usize,
    /// First letter of the current request's command.
    letter: Option<u8>,
}

impl Requests {
    /// Drops whole requests from the input and tells the first letter of each. False if the input
    /// is not RESP.
    fn skip_over(&mut self, mut request: impl FnMut(u8)) -> bool {
        let mut at = 0;
        let is_understood = loop {
            let rest = &self.input[at..];
            if rest.is_empty() {
                break true;
            }
            if self.bytes_left > 0 {
                self.letter.get_or_insert(rest[0]);
                let skipped = self.bytes_left.min(rest.len());
                self.bytes_left -= skipped;
                at += skipped;
                if self.bytes_left == 0 && self.arguments_left == 0 {
                    request(self.letter.take().unwrap_or(0));
                }
                continue;
            }
            let Some(line_end) = rest.iter().position(|&byte| byte == b'\n') else {
                break rest.len() < 32;
            };
            let number = number(&rest[1..line_end]);
            at += line_end + 1;
            match (rest[0], number) {
                (b'*', Some(0)) => {}
                (b'*', Some(count)) if self.arguments_left == 0 => self.arguments_left = count,
                (b'$', Some(bytes)) if self.arguments_left > 0 => {
                    self.arguments_left -= 1;
                    self.bytes_left = bytes + b"\r\n".len();
                }
                _ => break false,
            }
        };
        self.input.drain(..at);
        is_understood
    }
}

/// A decimal number followed by CR; at most eight digits.
fn number(digits_and_cr: &[u8]) -> Option<usize> {
    let [digits @ .., b'\r'] = digits_and_cr else { return None };
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + usize::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] =
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n*1\r\n\r\n*2\r\n$3\r\nget\r\n$0\r\n\r\n";

    #[test]
    fn requests_are_counted_however_the_bytes_are_split() {
        for split in 0..=TWO.len() {
            let mut requests = Requests::default();
            let mut letters = Vec::new();
            for part in [&TWO[..split], &TWO[split..]] {
                requests.input.extend_from_slice(part);
                assert!(requests.skip_over(|letter| letters.push(letter)));
            }
            assert_eq!(letters, b"Sg", "split at {split}");
        }
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for bytes in [b"GET / HTTP/1.1\r\n".as_slice(), b"*x\r\n", b"$3\r\n", &[b'*'; 64]] {
            let mut requests = Requests { input: bytes.to_vec(), ..Requests::default() };
            assert!(!requests.skip_over(|_| panic!("not a request")));
        }
    }
}
