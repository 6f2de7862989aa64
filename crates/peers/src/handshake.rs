//! What replica and master say to each other before the data comes (Redis documentation, PSYNC and
//! "Replication"). A machine without connection or clock: lines in, what to say out.
//!
//! ```text
//! PING → +PONG     AUTH, REPLCONF listening-port, ip-address, capa, version → +OK each
//! PSYNC <id> <offset> → +FULLRESYNC <id> <offset>   the data set follows
//!                     → +CONTINUE [<id>]            the stream goes on
//! ```

use resp::client::{request, text};
use std::collections::VecDeque;

/// Length of a replication id.
const ID_BYTES: usize = 40;

/// The release of Valkey whose files and commands a replica understands.
const VALKEY_VERSION: &[u8] = b"9.1.0";

/// How far a master's stream was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MasterOffset {
    /// The replication id: names one history.
    pub id: String,
    /// Bytes of the stream, as the master counts them.
    pub offset: u64,
}

/// What the replica says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Asks<'a> {
    pub user: &'a [u8],
    /// Empty: the master wants none.
    pub password: &'a [u8],
    pub port: u16,
    /// Empty: the one that the connection comes from.
    pub address: &'a [u8],
    /// Where the stream could go on.
    pub place: Option<&'a MasterOffset>,
}

/// What follows from a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: more lines follow.
    Wait,
    Say(Vec<u8>),
    /// The data set follows; the stream behind it begins here.
    Transfer(MasterOffset),
    /// The stream goes on where it was asked to, under this id if it has another now.
    Continue(Option<String>),
}

/// A line that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    Pong,
    Auth,
    /// Old masters refuse what they do not know; nothing depends on it.
    Option,
    Sync,
}

/// The handshake of one connection.
#[derive(Debug)]
pub struct Handshake {
    awaited: VecDeque<Awaited>,
    has_place: bool,
}

impl Handshake {
    /// Begins; what to say first.
    pub fn begin() -> (Self, Vec<u8>) {
        (Self { awaited: [Awaited::Pong].into(), has_place: false }, request(&[b"PING"]))
    }

    /// Takes one line, without its end.
    ///
    /// # Errors
    /// Why the link cannot come about.
    pub fn hear(&mut self, line: &[u8], asks: &Asks<'_>) -> Result<Next, String> {
        if line.is_empty() {
            // A sign of life.
            return Ok(Next::Wait);
        }
        let Some(awaited) = self.awaited.pop_front() else { return Ok(Next::Wait) };
        let is_error = line.starts_with(b"-");
        match awaited {
            Awaited::Pong => {
                let wants_password = [&b"-NOAUTH"[..], b"-NOPERM", b"-ERR operation not permitted"];
                if is_error && !wants_password.iter().any(|error| line.starts_with(error)) {
                    return Err(format!("the master refuses PING: {}", text(line)));
                }
                Ok(Next::Say(self.introduce(asks)))
            }
            Awaited::Auth if is_error => {
                Err(format!("Unable to AUTH to MASTER: {}", known_refusal(line)))
            }
            Awaited::Auth | Awaited::Option => {
                if self.awaited.is_empty() {
                    return Ok(Next::Say(self.ask_for_data(asks)));
                }
                Ok(Next::Wait)
            }
            Awaited::Sync => self.begin_sync(line).map_err(|why| match asks.password {
                [] => why,
                // Some servers say what they were asked.
                password => why.replace(&text(password), "***"),
            }),
        }
    }

    fn introduce(&mut self, asks: &Asks<'_>) -> Vec<u8> {
        let mut said = Vec::new();
        if !asks.password.is_empty() {
            let words: &[&[u8]] = match asks.user {
                [] => &[b"AUTH", asks.password],
                user => &[b"AUTH", user, asks.password],
            };
            said.extend_from_slice(&request(words));
            self.awaited.push_back(Awaited::Auth);
        }
        let port = asks.port.to_string();
        said.extend_from_slice(&request(&[b"REPLCONF", b"listening-port", port.as_bytes()]));
        self.awaited.push_back(Awaited::Option);
        if !asks.address.is_empty() {
            said.extend_from_slice(&request(&[b"REPLCONF", b"ip-address", asks.address]));
            self.awaited.push_back(Awaited::Option);
        }
        said.extend_from_slice(&request(&[b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"]));
        self.awaited.push_back(Awaited::Option);
        // Valkey sends a file with fields that expire only to who knows it. Redis refuses this, and
        // nothing comes of that.
        said.extend_from_slice(&request(&[b"REPLCONF", b"version", VALKEY_VERSION]));
        self.awaited.push_back(Awaited::Option);
        said
    }

    fn ask_for_data(&mut self, asks: &Asks<'_>) -> Vec<u8> {
        self.awaited.push_back(Awaited::Sync);
        self.has_place = asks.place.is_some();
        match asks.place {
            Some(place) => {
                let next = (place.offset + 1).to_string();
                request(&[b"PSYNC", place.id.as_bytes(), next.as_bytes()])
            }
            None => request(&[b"PSYNC", b"?", b"-1"]),
        }
    }

    fn begin_sync(&self, line: &[u8]) -> Result<Next, String> {
        let line = text(line);
        let mut words = line.split(' ');
        let (first, id, offset) = (words.next(), words.next(), words.next());
        let id = id.filter(|id| id.len() == ID_BYTES).map(str::to_owned);
        match first {
            Some("+FULLRESYNC") => match (id, offset.and_then(parse_offset)) {
                (Some(id), Some(offset)) => Ok(Next::Transfer(MasterOffset { id, offset })),
                _ => Err(format!("the master's answer to PSYNC is no place: {line}")),
            },
            Some("+CONTINUE") if self.has_place => Ok(Next::Continue(id)),
            _ => Err(format!("the master does not synchronize: {line}")),
        }
    }
}

/// How an answer to AUTH begins, as far as it is known: any other text may repeat what the server
/// was asked, and so the password.
fn known_refusal(line: &[u8]) -> &'static str {
    const KNOWN: [&str; 6] = [
        "-WRONGPASS invalid username-password pair",
        "-NOPERM",
        "-NOAUTH",
        "-LOADING",
        "-ERR Client sent AUTH, but no password is set",
        "-ERR AUTH <password> called without any password configured",
    ];
    let known = KNOWN.into_iter().find(|known| line.starts_with(known.as_bytes()));
    known.unwrap_or("an answer that is not shown, as it may repeat the password")
}

/// A place in a stream as Redis counts: signed, so that what follows it can be counted as well.
fn parse_offset(text: &str) -> Option<u64> {
    text.parse::<i64>().ok().and_then(|offset| u64::try_from(offset).ok())
}

/// How far a replica has applied the stream, as its master wants to hear it: REPLCONF ACK.
pub fn acknowledgement(offset: u64) -> Vec<u8> {
    request(&[b"REPLCONF", b"ACK", offset.to_string().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";
    const PLAIN: Asks<'_> =
        Asks { user: b"", password: b"", port: 7000, address: b"", place: None };

    fn said(next: Result<Next, String>) -> String {
        match next {
            Ok(Next::Say(bytes)) => text(&bytes),
            other => panic!("nothing was said: {other:?}"),
        }
    }

    #[test]
    fn a_replica_without_a_past_asks_for_everything() {
        let (mut handshake, first) = Handshake::begin();
        assert_eq!(first, b"*1\r\n$4\r\nPING\r\n");
        let introduction = said(handshake.hear(b"+PONG", &PLAIN));
        assert!(introduction.contains("listening-port  $4  7000"), "{introduction}");
        assert_eq!(handshake.hear(b"+OK", &PLAIN), Ok(Next::Wait));
        assert_eq!(handshake.hear(b"-ERR what is capa", &PLAIN), Ok(Next::Wait));
        let psync = said(handshake.hear(b"-ERR what is version", &PLAIN));
        assert_eq!(psync, "*3  $5  PSYNC  $1  ?  $2  -1  ");
        assert_eq!(handshake.hear(b"", &PLAIN), Ok(Next::Wait), "a sign of life");
        let line = format!("+FULLRESYNC {ID} 42");
        let place = MasterOffset { id: ID.to_owned(), offset: 42 };
        assert_eq!(handshake.hear(line.as_bytes(), &PLAIN), Ok(Next::Transfer(place)));
    }

    #[test]
    fn a_replica_with_a_past_asks_for_the_next_byte() {
        let place = MasterOffset { id: ID.to_owned(), offset: 99 };
        let asks = Asks {
            user: b"me",
            password: b"secret",
            address: b"10.0.0.1",
            place: Some(&place),
            ..PLAIN
        };
        let (mut handshake, _) = Handshake::begin();
        let introduction = said(handshake.hear(b"-NOAUTH Authentication required.", &asks));
        assert!(introduction.starts_with("*3  $4  AUTH  $2  me  $6  secret  "), "{introduction}");
        assert!(introduction.contains("ip-address  $8  10.0.0.1"), "{introduction}");
        for _ in 0..4 {
            assert_eq!(handshake.hear(b"+OK", &asks), Ok(Next::Wait));
        }
        let psync = said(handshake.hear(b"+OK", &asks));
        assert!(psync.ends_with("$3  100  "), "{psync}");
        let other = ID.replace('0', "f");
        let line = format!("+CONTINUE {other}");
        assert_eq!(handshake.hear(line.as_bytes(), &asks), Ok(Next::Continue(Some(other))));
    }

    #[test]
    fn refusals_say_why() {
        let refusal = |lines: &[&[u8]], asks: &Asks<'_>| {
            let (mut handshake, _) = Handshake::begin();
            let mut last = Ok(Next::Wait);
            for line in lines {
                last = handshake.hear(line, asks);
            }
            last.expect_err("is refused")
        };
        assert!(refusal(&[b"-LOADING wait"], &PLAIN).contains("refuses PING: -LOADING wait"));
        let asks = Asks { password: b"wrong", ..PLAIN };
        let wrong = b"-WRONGPASS invalid username-password pair or user is disabled.";
        assert!(refusal(&[b"+PONG", wrong], &asks).contains("MASTER: -WRONGPASS invalid"));
        let echo = b"-ERR unknown command 'AUTH', with args beginning with: 'me' 'wrong'";
        let shown = refusal(&[b"+PONG", echo], &asks);
        assert!(shown.starts_with("Unable to AUTH to MASTER: ") && !shown.contains("wrong"));
        let lines: [&[u8]; 6] =
            [b"+PONG", b"+OK", b"+OK", b"+OK", b"+OK", b"-ERR 'wrong' was first"];
        assert!(!refusal(&lines, &asks).contains("wrong"));
        let to_sync: [&[u8]; 4] = [b"+PONG", b"+OK", b"+OK", b"+OK"];
        for bad in
            [&b"-NOMASTERLINK"[..], b"+CONTINUE", b"+FULLRESYNC short 1", b"+FULLRESYNC", b"x"]
        {
            let lines: Vec<&[u8]> = to_sync.iter().copied().chain([bad]).collect();
            refusal(&lines, &PLAIN);
        }
        for offset in ["-1", "9223372036854775808", "18446744073709551615"] {
            let line = format!("+FULLRESYNC {ID} {offset}");
            let lines: Vec<&[u8]> = to_sync.iter().copied().chain([line.as_bytes()]).collect();
            assert!(refusal(&lines, &PLAIN).contains("is no place"), "{offset}");
        }
    }
}
