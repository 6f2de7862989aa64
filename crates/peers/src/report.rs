//! What a replica and its primary say to each other, on one connection. A machine without
//! connection or clock: bytes and reports in, answers out.
//!
//! ```text
//! AUTH ─▶ +OK     REPLCONF MEMBER <report> ─▶ one array of words, an Answer
//! ```
//! Both are arrays of bulk strings, which is what requests are too: one decoder reads both.

use base::Sequence;
use resp::Reply;
use resp::client::{request, take_line, text};
use resp::decode::{ArgumentRanges, Decoded, Decoder, Limits};
use shard::Lag;
use shard::RecordId;
use shard::role::member::{Member, MemberId};
use shard::snapshots::Sighting;
use std::collections::VecDeque;

/// The layout of reports and answers.
const VERSION: &[u8] = b"1";

/// Words before the members in an answer, and of each member.
const ANSWER_WORDS: usize = 10;
const KNOWN_WORDS: usize = 5;

/// Longest word of an answer, in bytes: names of hosts are the longest.
const WORD_BYTES_MAX: usize = 1024;

/// Longest answer, in bytes: room for some thousand members. What is longer comes from no primary.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What a replica says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub member: Member,
    /// The last record applied, and its number in the log.
    pub newest: RecordId,
    pub applied: Sequence,
    /// `replica-priority`: 0 never leads.
    pub priority: u32,
    /// The newest snapshot in its store.
    pub snapshot: Option<Sighting>,
}

/// A replica, as others know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownReplica {
    pub member: Member,
    pub applied: Sequence,
    /// Since it last reported.
    pub silence_millis: u64,
}

/// An answer that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    Login,
    /// To a report that was sent in this turn of the loop.
    Report(u64),
}

/// What a primary says to a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The newest record that it had appended.
    pub newest: RecordId,
    /// How far the one that reports is behind.
    pub lag: Lag,
    /// The newest snapshot in its store.
    pub snapshot: Option<Sighting>,
    /// The replicas that the primary knows, the one that reports included.
    pub members: Vec<KnownReplica>,
}

/// One connection's dialogue.
#[derive(Default)]
pub struct ReportDialogue {
    awaited: VecDeque<Awaited>,
    decoder: Decoder,
    ranges: ArgumentRanges,
}

impl ReportDialogue {
    /// Begins with who is there, and what to say first; an empty password says nothing.
    pub fn begin(user: &[u8], password: &[u8]) -> (Self, Vec<u8>) {
        let limits = Limits { bulk_bytes_max: WORD_BYTES_MAX, ..Limits::default() };
        let mut dialogue = Self { decoder: Decoder::new(limits), ..Self::default() };
        if password.is_empty() {
            return (dialogue, Vec::new());
        }
        dialogue.awaited.push_back(Awaited::Login);
        let words = [b"AUTH", user, password].into_iter().filter(|word| !word.is_empty());
        (dialogue, request(&words.collect::<Vec<_>>()))
    }

    /// Whether a report is not answered yet.
    pub fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// What to say to report, in this turn of the loop.
    pub fn report(&mut self, report: &Report, turn: u64) -> Vec<u8> {
        self.awaited.push_back(Awaited::Report(turn));
        let words = report.words();
        let fixed = [&b"REPLCONF"[..], b"MEMBER", VERSION];
        let said = fixed.into_iter().chain(words.iter().map(String::as_bytes));
        request(&said.collect::<Vec<_>>())
    }

    /// The next answer that has arrived as a whole, and the turn in which it was asked for.
    ///
    /// # Errors
    /// Why nothing more is to be heard on this connection.
    pub fn hear(&mut self, input: &mut Vec<u8>) -> Result<Option<(Answer, u64)>, String> {
        loop {
            let Some(&awaited) = self.awaited.front() else {
                return if input.is_empty() { Ok(None) } else { Err(NO_ANSWER.to_owned()) };
            };
            let is_array = input.first() == Some(&b'*');
            match awaited {
                Awaited::Report(turn) if is_array => {
                    let Some(answer) = self.take_answer(input)? else { return Ok(None) };
                    self.awaited.pop_front();
                    return Ok(Some((answer, turn)));
                }
                _ => {
                    let Some(line) = take_line(input)? else { return Ok(None) };
                    if awaited != Awaited::Login || line.starts_with(b"-") {
                        return Err(format!("the primary answers: {}", text(&line)));
                    }
                    self.awaited.pop_front();
                }
            }
        }
    }

    fn take_answer(&mut self, input: &mut Vec<u8>) -> Result<Option<Answer>, String> {
        match self.decoder.next(input, &mut self.ranges) {
            Decoded::Request { consumed } => {
                let words: Vec<&[u8]> = self.ranges.iter(input).collect();
                let answer = Answer::parse(&words).ok_or(NO_ANSWER)?;
                input.drain(..consumed);
                Ok(Some(answer))
            }
            Decoded::Incomplete { .. } if input.len() <= ANSWER_BYTES_MAX => Ok(None),
            Decoded::Incomplete { .. } | Decoded::Empty { .. } | Decoded::Error(_) => {
                Err(NO_ANSWER.to_owned())
            }
        }
    }
}

const NO_ANSWER: &str = "the primary says what this release does not understand";

impl Report {
    fn words(&self) -> Vec<String> {
        let Self { member, newest, applied, priority, snapshot } = self;
        let mut words = member_words(member).to_vec();
        words.extend(newest.words());
        words.extend([applied.to_string(), priority.to_string()]);
        words.extend(Sighting::words(*snapshot));
        words
    }

    /// What [`ReportDialogue::report`] sent, behind REPLCONF MEMBER.
    pub fn parse(words: &[&[u8]]) -> Option<Self> {
        let (&fixed, seen) = words.split_first_chunk::<9>()?;
        let [version, id, host, port, epoch, counter, value, applied, priority] = fixed;
        (version == VERSION).then_some(())?;
        Some(Self {
            member: parse_member([id, host, port])?,
            newest: RecordId::parse([epoch, counter, value])?,
            applied: Sequence(number(applied)?),
            priority: number(priority)?,
            snapshot: Sighting::parse(seen.try_into().ok()?)?,
        })
    }
}

impl Answer {
    /// Writes it as [`Self::parse`] reads it.
    pub fn encode(&self, reply: &mut Reply) {
        let lag = self.lag;
        let mut words = vec![String::from_utf8_lossy(VERSION).into_owned()];
        words.extend(self.newest.words());
        words.extend([lag.records, lag.bytes, lag.millis].map(|number| number.to_string()));
        words.extend(Sighting::words(self.snapshot));
        words.push(self.members.len().to_string());
        for known in &self.members {
            words.extend(member_words(&known.member));
            words.extend([known.applied.to_string(), known.silence_millis.to_string()]);
        }
        reply.array(words.len());
        for word in words {
            reply.bulk(word);
        }
    }

    fn parse(words: &[&[u8]]) -> Option<Self> {
        let (&fixed, rest) = words.split_first_chunk::<ANSWER_WORDS>()?;
        let [version, epoch, counter, value, records, bytes, millis, sequence, began, count] =
            fixed;
        let count: usize = number(count)?;
        if version != VERSION || rest.len() != count.checked_mul(KNOWN_WORDS)? {
            return None;
        }
        let (known, _) = rest.as_chunks::<KNOWN_WORDS>();
        let members = known.iter().map(|&[id, host, port, applied, silence]| {
            Some(KnownReplica {
                member: parse_member([id, host, port])?,
                applied: Sequence(number(applied)?),
                silence_millis: number(silence)?,
            })
        });
        Some(Self {
            newest: RecordId::parse([epoch, counter, value])?,
            lag: Lag { records: number(records)?, bytes: number(bytes)?, millis: number(millis)? },
            snapshot: Sighting::parse([sequence, began])?,
            members: members.collect::<Option<_>>()?,
        })
    }
}

fn member_words(member: &Member) -> [String; 3] {
    [member.id.to_string(), member.host.clone(), member.port.to_string()]
}

fn parse_member([id, host, port]: [&[u8]; 3]) -> Option<Member> {
    let id = MemberId::parse(std::str::from_utf8(id).ok()?)?;
    Member::checked(id, host, number(port)?)
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, UnixMillis};
    use resp::Protocol;
    use txlog::Chain;
    use txlog::record::ChainValue;

    fn member(number: u8) -> Member {
        Member { id: MemberId([number; 20]), host: format!("h{number}"), port: 6379 }
    }

    fn id() -> RecordId {
        RecordId { chain: Chain { value: ChainValue(9), epoch: Epoch(3) }, counter: 4 }
    }

    fn report() -> Report {
        let snapshot = Some(Sighting { sequence: Sequence(70), began: UnixMillis(5) });
        Report { member: member(1), newest: id(), applied: Sequence(77), priority: 100, snapshot }
    }

    fn answer() -> Answer {
        let known = |number, silence_millis| KnownReplica {
            member: member(number),
            applied: Sequence(70),
            silence_millis,
        };
        Answer {
            newest: id(),
            lag: Lag { records: 3, bytes: 400, millis: 5 },
            snapshot: None,
            members: vec![known(1, 0), known(2, 1500)],
        }
    }

    fn encoded() -> Vec<u8> {
        let mut reply = Reply::new(Protocol::Resp2);
        answer().encode(&mut reply);
        reply.into_bytes()
    }

    /// A dialogue in which a report was said.
    fn reporting() -> ReportDialogue {
        let (mut dialogue, first) = ReportDialogue::begin(b"", b"");
        assert_eq!(first, b"");
        dialogue.report(&report(), 1);
        dialogue
    }

    #[test]
    fn a_report_is_read_as_it_was_sent() {
        let said = reporting().report(&report(), 5);
        let mut ranges = ArgumentRanges::new();
        let decoded = Decoder::default().next(&said, &mut ranges);
        assert_eq!(decoded, Decoded::Request { consumed: said.len() });
        let words: Vec<&[u8]> = ranges.iter(&said).collect();
        assert_eq!(words[..2], [&b"REPLCONF"[..], b"MEMBER"]);
        assert_eq!(Report::parse(&words[2..]), Some(report()));
        assert_eq!(Report::parse(&words[2..words.len() - 1]), None);
    }

    #[test]
    fn answers_come_in_pieces_and_in_order() {
        let (mut dialogue, first) = ReportDialogue::begin(b"", b"secret");
        assert_eq!(text(&first), "*2  $4  AUTH  $6  secret  ");
        dialogue.report(&report(), 5);
        dialogue.report(&report(), 6);
        let bytes = [b"+OK\r\n".to_vec(), encoded(), encoded()].concat();
        let (mut input, mut heard) = (Vec::new(), Vec::new());
        for byte in bytes {
            input.push(byte);
            heard.extend(dialogue.hear(&mut input).expect("well formed"));
        }
        assert_eq!(heard, [(answer(), 5), (answer(), 6)]);
        assert!(!dialogue.awaits());
    }

    #[test]
    fn refusals_and_foreign_bytes_end_the_dialogue() {
        for said in ["-NOAUTH Authentication required.\r\n", "+OK\r\n", ":1\r\n", "*1\r\n:5\r\n"] {
            reporting().hear(&mut said.as_bytes().to_vec()).expect_err(said);
        }
        let (mut dialogue, _) = ReportDialogue::begin(b"", b"");
        dialogue.hear(&mut b"+".to_vec()).expect_err("nothing was asked");
        let mut endless =
            [&b"*2000000000\r\n"[..], &b"$1\r\nx\r\n".repeat(ANSWER_BYTES_MAX / 7)].concat();
        reporting().hear(&mut endless).expect_err("an answer without end");
        let (mut dialogue, _) = ReportDialogue::begin(b"user", b"wrong");
        dialogue.hear(&mut b"-WRONGPASS no\r\n".to_vec()).expect_err("it stays a stranger");
    }

    #[test]
    fn damaged_answers_are_none() {
        let whole = encoded();
        for index in 0..whole.len() {
            let mut input = whole.clone();
            input[index] ^= 0x15;
            // Whatever it makes of them: it does not panic.
            drop(reporting().hear(&mut input));
        }
    }
}
