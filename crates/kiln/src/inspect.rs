//! `kiln log inspect LOG`: shows what a log holds, without claiming it. LOG is a directory, or a
//! URL as `transaction-log` takes it.
//!
//! ```text
//! log 6d1f…: records 1 to 3, durable through 3
//! 1 lead epoch 1 clock 1763711234567 72 bytes
//! 2 data epoch 1 clock 1763711240002 103 bytes
//!     db 0 "greeting" set-string "hello"
//! ```
//! For looking while a server runs, and for finding out where a damaged log ends. Records that do
//! not count are shown as `void`; a unit split over records is decoded at its last part.

use crate::configuration;
use crate::keys;
use crate::logs::{self, LogToRead};
use crate::output;
use crate::sleep::Sleep;
use engine::effect::{EffectDecoder, Quoted};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use txlog::reader::{Goal, Next, Read, Reader};
use txlog::record::HEADER_BYTES;
use txlog::{Consumed, Kind, Part};

/// What is to be shown.
#[derive(PartialEq, Eq, Debug)]
pub struct Inspect<'a> {
    pub log: &'a str,
    /// The file of the keys, if it is encrypted.
    pub key_file: Option<&'a str>,
}

/// Shows the log on standard output; the process's exit code.
pub fn inspect(request: &Inspect<'_>) -> ExitCode {
    let mut output = io::BufWriter::new(io::stdout().lock());
    let shown = show(request, &mut output);
    let flushed = output.flush();
    output::exit_code(shown.and(flushed.map_err(Into::into)), || {
        format!("cannot inspect {}", configuration::hide_password(request.log))
    })
}

/// Writes the log's records, up to its end as it is found, or to its damage.
fn show(request: &Inspect<'_>, output: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (sleep, waker) = Sleep::new();
    let LogToRead { mut log, start, title } = logs::open_to_read(request.log, waker)?;
    writeln!(output, "{title}")?;
    let keys = keys::read(request.key_file.map(Path::new))?;
    let mut reader = Reader::new(&mut *log, start, Goal::Tail).with_keys(keys);
    loop {
        match reader.next(&mut *log)? {
            Next::Record(read) => show_record(&read, output)?,
            Next::Done => return Ok(()),
            Next::Wait => sleep.wait(log.wait_nanos()),
        }
    }
}

fn show_record(read: &Read, output: &mut impl Write) -> io::Result<()> {
    let header = read.header();
    let void = if read.counts() { "" } else { "void " };
    let part = match header.part {
        Part::Whole => "",
        Part::First => " first part",
        Part::Middle => " middle part",
        Part::Last => " last part",
    };
    let clock = if header.sets_clock { "sets the clock to" } else { "clock" };
    let (at, kind, epoch, time) =
        (read.position.sequence, header.kind, header.epoch.0, header.clock.0);
    let bytes = read.bytes.len();
    write!(output, "{at} {void}{kind}{part} epoch {epoch} {clock} {time} {bytes} bytes")?;
    if header.is_encrypted {
        let key = encryption::key_name_of_payload(&read.bytes[HEADER_BYTES..]);
        write!(output, " encrypted by {}", key.as_deref().unwrap_or("?"))?;
    }
    writeln!(output)?;
    match &read.consumed {
        Consumed::Record(record) if header.kind == Kind::Data => {
            show_effects(&record.payload, output)
        }
        _ => Ok(()),
    }
}

fn show_effects(payload: &[u8], output: &mut impl Write) -> io::Result<()> {
    let mut decoder = EffectDecoder::new(payload);
    loop {
        match decoder.next_effect() {
            Ok(Some((database, _, effect))) if effect.is_keyless() => {
                writeln!(output, "    db {} {effect}", database.0)?;
            }
            Ok(Some((database, key, effect))) => {
                writeln!(output, "    db {} {} {effect}", database.0, Quoted(key))?;
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                return writeln!(output, "    unreadable at {}: {}", error.offset, error.what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::DatabaseId;
    use engine::effect::{Effect, EffectEncoder};

    fn shown(payload: &[u8]) -> String {
        let mut output = Vec::new();
        show_effects(payload, &mut output).expect("a vector takes everything");
        String::from_utf8(output).expect("escaped")
    }

    #[test]
    fn effects_are_shown_one_in_a_line() {
        let mut encoder = EffectEncoder::new(0);
        let long = [b'x'; 100];
        encoder.push(DatabaseId(0), b"a\n", &Effect::SetString { value: b"1", expire_at: Some(5) });
        encoder.push(DatabaseId(0), b"a\n", &Effect::Append { bytes: &long });
        encoder.push(DatabaseId(3), b"z", &Effect::SortedAdd { member: b"m", score: 1.5 });
        encoder.push(DatabaseId(3), b"", &Effect::FlushDatabase);
        let expected = format!(
            "    db 0 \"a\\n\" set-string \"1\" expire-at 5\n    db 0 \"a\\n\" append \"{}\"… (100 \
             bytes)\n    db 3 \"z\" sorted-add 1.5 \"m\"\n    db 3 flush-database\n",
            "x".repeat(64)
        );
        assert_eq!(shown(encoder.payload()), expected);
    }

    #[test]
    fn bytes_that_are_no_effects_are_said_to_be_unreadable() {
        assert!(shown(&[0xff, 0, 0]).contains("unreadable at "));
    }

    #[test]
    fn a_directory_without_a_log_is_an_error() {
        assert!(show(&Inspect { log: "/nonexistent", key_file: None }, &mut Vec::new()).is_err());
    }
}
