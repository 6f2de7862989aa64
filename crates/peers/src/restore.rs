//! What is said to the target of a migration and heard from it, on one connection. A machine
//! without connection or clock: keys and bytes in, requests and outcomes out.
//!
//! ```text
//! AUTH, SELECT ─▶ +OK each ─▶ RESTORE k1 … RESTORE k2 … ─▶ +OK or -error each, in order
//! ```
//! No key is sent before the target has said that the database is the right one: Redis sends
//! everything at once, and what should have gone elsewhere may land in database 0.

use resp::Reply;
use resp::client::{Lines, text};
use std::collections::VecDeque;

/// A user and password by which a target knows who speaks.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: Option<Vec<u8>>,
    pub password: Vec<u8>,
}

/// The server that keys go to.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub host: String,
    /// `None`: what was given is no port.
    pub port: Option<u16>,
    pub login: Option<Login>,
}

/// An answer that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    Login,
    Select(i64),
    /// To the RESTORE of the key with this index.
    Restore(usize),
}

/// The target says what no server says that executes these requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnAnswer;

/// A key as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Dumped<'a> {
    pub index: usize,
    pub key: &'a [u8],
    /// 0: none.
    pub ttl_millis: i64,
    pub payload: &'a [u8],
    pub replaces: bool,
}

/// One connection's dialogue.
#[derive(Default, Debug)]
pub struct RestoreDialogue {
    awaited: VecDeque<Awaited>,
    /// The database that the target has selected.
    pub selected: Option<i64>,
    /// Something was answered.
    pub has_heard: bool,
    /// The first error that was answered.
    pub refusal: Option<String>,
    /// The target will not do what the keys need.
    is_turned_away: bool,
}

impl RestoreDialogue {
    /// Goes on with a target that has this database selected, if any.
    pub fn new(selected: Option<i64>) -> Self {
        Self { selected, ..Self::default() }
    }

    /// Says who is there, and which database is meant unless it is the selected one. A login is
    /// said on a connection that was kept as well: it may be refused by now.
    pub fn open(&mut self, login: Option<&Login>, into: i64, request: &mut Reply) {
        if let Some(Login { user, password }) = login {
            let user = user.as_ref();
            request.array(2 + usize::from(user.is_some()));
            request.bulk("AUTH");
            for word in user.into_iter().chain([password]) {
                request.bulk(word);
            }
            self.awaited.push_back(Awaited::Login);
        }
        if self.selected != Some(into) {
            request.array(2);
            request.bulk("SELECT");
            request.bulk_integer(into);
            self.awaited.push_back(Awaited::Select(into));
        }
    }

    /// Whether keys may be sent.
    pub fn is_open(&self) -> bool {
        // What opens it is said before all keys, so only the first can still be that.
        !self.is_turned_away && matches!(self.awaited.front(), None | Some(Awaited::Restore(_)))
    }

    /// Asks the target to take a key.
    pub fn restore(&mut self, dumped: &Dumped<'_>, request: &mut Reply) {
        request.array(4 + usize::from(dumped.replaces));
        request.bulk("RESTORE");
        request.bulk(dumped.key);
        request.bulk_integer(dumped.ttl_millis);
        request.bulk(dumped.payload);
        if dumped.replaces {
            request.bulk("REPLACE");
        }
        self.awaited.push_back(Awaited::Restore(dumped.index));
    }

    /// Whether an answer is still to come.
    pub fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Whether everything that was said is answered, or will not be.
    pub fn is_answered(&self) -> bool {
        self.awaited.is_empty() || self.is_turned_away
    }

    /// Whether the connection could serve another migration, if nothing that arrived is left.
    pub fn is_reusable(&self) -> bool {
        self.awaited.is_empty() && self.selected.is_some() && !self.is_turned_away
    }

    /// Takes the answers that arrived; which keys the target has taken.
    ///
    /// # Errors
    /// What arrived is none; nothing behind it means anything.
    pub fn hear(&mut self, input: &mut Vec<u8>) -> Result<Vec<usize>, NotAnAnswer> {
        let mut taken = Vec::new();
        let mut lines = Lines::of(input);
        while let Some(line) = lines.next().map_err(|_| NotAnAnswer)? {
            let awaited = self.awaited.pop_front().ok_or(NotAnAnswer)?;
            self.has_heard = true;
            if let Some(error) = line.strip_prefix(b"-") {
                self.refusal.get_or_insert_with(|| text(error));
                self.is_turned_away |= !matches!(awaited, Awaited::Restore(_));
                continue;
            }
            if line != b"+OK" {
                return Err(NotAnAnswer);
            }
            match awaited {
                Awaited::Login => {}
                Awaited::Select(database) => self.selected = Some(database),
                Awaited::Restore(index) => taken.push(index),
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Protocol;

    /// What was said, lines joined by blanks.
    fn said(say: impl FnOnce(&mut Reply)) -> String {
        let mut request = Reply::new(Protocol::Resp2);
        say(&mut request);
        String::from_utf8_lossy(request.bytes()).replace("\r\n", " ").trim_end().to_owned()
    }

    /// A dialogue that was opened without a login.
    fn opened() -> RestoreDialogue {
        let mut dialogue = RestoreDialogue::default();
        assert_eq!(said(|request| dialogue.open(None, 3, request)), "*2 $6 SELECT $1 3");
        dialogue
    }

    fn restore(dialogue: &mut RestoreDialogue, index: usize) -> String {
        let dumped = Dumped { index, key: b"k", ttl_millis: 7, payload: b"v", replaces: true };
        said(|request| dialogue.restore(&dumped, request))
    }

    #[test]
    fn keys_are_sent_when_the_database_is_selected() {
        let login = Login { user: Some(b"me".to_vec()), password: b"secret".to_vec() };
        let mut dialogue = RestoreDialogue::default();
        let first = said(|request| dialogue.open(Some(&login), 3, request));
        assert_eq!(first, "*3 $4 AUTH $2 me $6 secret *2 $6 SELECT $1 3");
        assert!(!dialogue.is_open());
        let mut input = b"+OK\r\n+O".to_vec();
        assert_eq!(dialogue.hear(&mut input), Ok(vec![]));
        assert!(!dialogue.is_open());
        input.extend_from_slice(b"K\r\n");
        assert_eq!(dialogue.hear(&mut input), Ok(vec![]));
        assert!(dialogue.is_open() && dialogue.selected == Some(3));
        assert_eq!(restore(&mut dialogue, 0), "*5 $7 RESTORE $1 k $1 7 $1 v $7 REPLACE");
        restore(&mut dialogue, 1);
        assert!(dialogue.awaits() && !dialogue.is_answered());
        assert_eq!(dialogue.hear(&mut b"-BUSYKEY no\r\n+OK\r\n".to_vec()), Ok(vec![1]));
        assert_eq!(dialogue.refusal.as_deref(), Some("BUSYKEY no"));
        assert!(dialogue.is_answered() && dialogue.is_reusable());
    }

    #[test]
    fn who_is_turned_away_sends_nothing() {
        let mut dialogue = opened();
        let mut input = b"-ERR DB index is out of range\r\n".to_vec();
        assert_eq!(dialogue.hear(&mut input), Ok(vec![]));
        assert!(!dialogue.is_open() && dialogue.is_answered() && !dialogue.is_reusable());
    }

    #[test]
    fn what_is_no_answer_is_noticed() {
        for bytes in [&b"+OK\r\n+OK\r\n"[..], b"$3\r\nfoo\r\n", b"\r\n", b"+QUEUED\r\n", &[7; 5000]]
        {
            assert_eq!(opened().hear(&mut bytes.to_vec()), Err(NotAnAnswer), "{bytes:?}");
        }
    }
}
