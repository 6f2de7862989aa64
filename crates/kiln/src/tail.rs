//! `kiln log tail LOG`: prints what the log changes, one effect a line, and follows it as it grows.
//!
//! It reads beside the servers, as one that never leads: nothing is claimed or written, and a
//! primary that has nothing to do is not kept renewing its lease. What it prints is durable. Each
//! line begins with its position; `--from` goes on behind it ([`txlog::resume`]).

use crate::changes::{Changes, Form};
use crate::configuration;
use crate::keys;
use crate::logs;
use crate::output;
use crate::sleep::Sleep;
use base::{Incarnation, Position, Sequence};
use shard::loading::OpenLog;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use txlog::reader::{Goal, Next, Reader, Start};
use txlog::resume::Resume;
use txlog::{TransactionLog, UnitPosition};

/// What is to be printed.
#[derive(PartialEq, Eq, Debug)]
pub struct Tail<'a> {
    pub log: &'a str,
    /// Where what was trimmed of it is archived.
    pub archive: Option<&'a str>,
    /// The file of the keys, if it is encrypted.
    pub key_file: Option<&'a str>,
    pub from: Beginning,
    pub is_json: bool,
    /// Ends where the log ends, instead of following it.
    pub until_end: bool,
}

/// Where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// With the oldest record.
    Oldest,
    /// Behind the log's end as it is found.
    Now,
    /// Behind this record, whatever stands there.
    Record(Sequence),
    /// Behind this position, if the log still holds what was read before it.
    Position(UnitPosition),
}

impl Beginning {
    /// Reads the value of `--from`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "oldest" => Some(Self::Oldest),
            "now" => Some(Self::Now),
            _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                // Behind the last number there is none.
                let sequence = text.parse().ok().filter(|sequence| *sequence < u64::MAX)?;
                Some(Self::Record(Sequence(sequence)))
            }
            _ => text.parse().ok().map(Self::Position),
        }
    }
}

/// Prints on standard output; the process's exit code.
pub fn tail(request: &Tail<'_>) -> ExitCode {
    let mut output = BufWriter::new(io::stdout());
    let shown = follow(request, &mut output, output::is_unread);
    let flushed = output.flush();
    output::exit_code(shown.and(flushed.map_err(Into::into)), || {
        format!("cannot read {}", configuration::hide_password(request.log))
    })
}

/// Writes changes until the log's end, or until `is_unread` says that nobody reads them.
fn follow(
    request: &Tail<'_>,
    output: &mut impl Write,
    is_unread: impl Fn() -> bool,
) -> Result<(), Box<dyn Error>> {
    let (sleep, waker) = Sleep::new();
    let keys = keys::read(request.key_file.map(Path::new))?;
    let OpenLog { handle: mut log, incarnation, .. } =
        logs::open_with_archive(request.log, request.archive, &keys, waker)?;
    let (start, mut changes) = begin(&mut *log, incarnation, request.from, &sleep)?;
    let goal = if request.until_end { Goal::Tail } else { Goal::NEVER };
    let form = Form { is_json: request.is_json, tells_writer: false };
    let mut reader = Reader::new(&mut *log, start, goal).with_keys(keys);
    loop {
        match reader.next(&mut *log)? {
            Next::Record(read) => {
                // The end is known with the last record before it.
                let at = read.position.sequence;
                let is_old =
                    request.from == Beginning::Now && reader.end().is_none_or(|end| at <= end);
                changes.show(&read, |change| match is_old {
                    true => Ok(()),
                    false => form.write(change, output),
                })?;
            }
            Next::Done => return Ok(()),
            Next::Wait => {
                output.flush()?;
                if is_unread() {
                    return Ok(());
                }
                sleep.wait(log.wait_nanos());
            }
        }
    }
}

/// Where the reading starts, and what takes its records apart.
fn begin(
    log: &mut dyn TransactionLog,
    incarnation: Incarnation,
    from: Beginning,
    sleep: &Sleep,
) -> Result<(Start, Changes), Box<dyn Error>> {
    let at = |sequence| Start::At(Position { incarnation, sequence });
    match from {
        Beginning::Oldest => Ok((Start::Oldest(incarnation), Changes::default())),
        Beginning::Record(sequence) => Ok((at(sequence.next()), Changes::default())),
        // With the last record, because the chain must be found.
        Beginning::Now => {
            let last = logs::ask_tail(log, sleep)?.sequence.max(Sequence(1));
            Ok((at(last), Changes::default()))
        }
        Beginning::Position(position) => {
            let mut resume = Resume::new(log, incarnation, position)?;
            loop {
                if let Some(resumed) = resume.next(log)? {
                    return Ok((resumed.start, Changes::behind(resumed.passes_over)));
                }
                sleep.wait(log.wait_nanos());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_word_a_number_or_a_position() {
        assert_eq!(Beginning::parse("oldest"), Some(Beginning::Oldest));
        assert_eq!(Beginning::parse("now"), Some(Beginning::Now));
        assert_eq!(Beginning::parse("0"), Some(Beginning::Record(Sequence::ZERO)));
        assert_eq!(Beginning::parse("42"), Some(Beginning::Record(Sequence(42))));
        let text = "0000000000006d1f-42-fffffffffffffffe-3-1.7";
        let position = text.parse().expect("a position");
        assert_eq!(Beginning::parse(text), Some(Beginning::Position(position)));
        for wrong in ["", "-1", "+1", "newest", "18446744073709551615", "42-1"] {
            assert_eq!(Beginning::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_directory_without_a_log_is_an_error_and_none_is_begun() {
        let path = std::env::temp_dir().join(format!("kiln-tail-{}", std::process::id()));
        let log = path.to_str().expect("text");
        let request = Tail {
            log,
            archive: None,
            key_file: None,
            from: Beginning::Oldest,
            is_json: false,
            until_end: true,
        };
        assert!(follow(&request, &mut Vec::new(), || false).is_err());
        assert!(!path.exists());
    }
}
