//! `kiln log inspect DIRECTORY`: shows what a log holds, without claiming it.
//!
//! ```text
//! log 6d1f…: records 1 to 3, durable through 3
//! 1 lead epoch 1 clock 1763711234567 72 bytes
//! 2 data epoch 1 clock 1763711240002 103 bytes
//!     db 0 "greeting" set-string "hello"
//! ```
//! For looking while a server runs, and for finding out where a damaged log ends. Records that do
//! not count are shown as `void`; a unit split over records is decoded at its last part.

use base::Sequence;
use engine::effect::{EffectDecoder, Quoted};
use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use txlog::file::{Inspection, LogError};
use txlog::{Chain, Header, Kind, Part, Record};
use world::disk::RealDisk;

/// Shows the log in `directory` on standard output; the process's exit code.
pub fn inspect(directory: &str) -> ExitCode {
    let mut output = io::BufWriter::new(io::stdout().lock());
    let shown = show(Path::new(directory), &mut output);
    let flushed = output.flush();
    match shown.and_then(|damage| flushed.map(|()| damage).map_err(Into::into)) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(damage)) => {
            eprintln!("{damage}");
            ExitCode::FAILURE
        }
        // Whoever reads the output has seen enough.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot inspect {directory}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Writes the log's records; the damage that keeps it from being opened, if there is any.
fn show(directory: &Path, output: &mut impl Write) -> Result<Option<LogError>, Box<dyn Error>> {
    let Inspection { first, chain, durable, tail, mut replay, damage } =
        txlog::file::inspect(Arc::new(RealDisk), directory)?;
    writeln!(
        output,
        "log {:016x}: records {} to {}, durable through {}",
        tail.incarnation.0, first.sequence, tail.sequence, durable.sequence
    )?;
    let mut reader = Reader { chain, parts: Vec::new() };
    while let Some((position, bytes)) = replay.next_record()? {
        let sequence = position.sequence;
        let record = Record::decode(&bytes)
            .map_err(|error| format!("record {sequence} cannot be read: {error}"))?;
        reader.show_record(sequence, &record, &bytes, output)?;
    }
    Ok(damage)
}

/// Follows the chain, and keeps the parts of a split unit.
struct Reader {
    chain: Chain,
    parts: Vec<u8>,
}

impl Reader {
    fn show_record(
        &mut self,
        sequence: Sequence,
        record: &Record,
        bytes: &[u8],
        output: &mut impl Write,
    ) -> io::Result<()> {
        let header = &record.header;
        let counts = self.chain.admits(header);
        if counts {
            self.chain.extend(header, bytes);
        }
        writeln!(
            output,
            "{sequence} {}{}{} epoch {} {} {} {} bytes",
            if counts { "" } else { "void " },
            kind(header.kind),
            part(header),
            header.epoch.0,
            if header.sets_clock { "sets the clock to" } else { "clock" },
            header.clock.0,
            bytes.len()
        )?;
        if !counts || header.kind != Kind::Data {
            return Ok(());
        }
        if header.is_compressed || header.is_encrypted {
            return writeln!(output, "    a newer version wrote the payload");
        }
        self.parts.extend_from_slice(&record.payload);
        if matches!(header.part, Part::First | Part::Middle) {
            return Ok(());
        }
        show_effects(&std::mem::take(&mut self.parts), output)
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

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "data",
        Kind::Lead => "lead",
        Kind::Renew => "renew",
        Kind::Yield => "yield",
        Kind::Barrier => "barrier",
        Kind::Checksum => "checksum",
        Kind::Version => "version",
        Kind::Slot => "slot",
    }
}

fn part(header: &Header) -> &'static str {
    match header.part {
        Part::Whole => "",
        Part::First => " first part",
        Part::Middle => " middle part",
        Part::Last => " last part",
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
        assert!(show(Path::new("/nonexistent"), &mut Vec::new()).is_err());
    }
}
