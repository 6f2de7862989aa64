//! `kiln log find LOG --key K`: prints what changed a key, when, and on whose watch: every effect
//! on it, and those that take it along with others.
//!
//! It reads as `kiln log inspect` does, up to the log's end as it is found, or to its damage.

use crate::changes::{Change, Changes, Form};
use crate::configuration;
use crate::keys;
use crate::logs::{self, LogToRead};
use crate::output;
use crate::sleep::Sleep;
use base::DatabaseId;
use engine::effect::Effect;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use txlog::reader::{Goal, Next, Reader};

/// What is to be found.
#[derive(PartialEq, Eq, Debug)]
pub struct Find<'a> {
    pub log: &'a str,
    /// Where what was trimmed of it is archived.
    pub archive: Option<&'a str>,
    /// The file of the keys, if it is encrypted.
    pub key_file: Option<&'a str>,
    pub key: Vec<u8>,
    /// `None`: in any.
    pub database: Option<DatabaseId>,
    pub is_json: bool,
}

/// Prints on standard output; the process's exit code.
pub fn find(request: &Find<'_>) -> ExitCode {
    let mut output = BufWriter::new(io::stdout());
    let shown = show(request, &mut output);
    let flushed = output.flush();
    output::exit_code(shown.and(flushed.map_err(Into::into)), || {
        format!("cannot read {}", configuration::hide_password(request.log))
    })
}

fn show(request: &Find<'_>, output: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (sleep, waker) = Sleep::new();
    let keys = keys::read(request.key_file.map(Path::new))?;
    let LogToRead { mut log, start, .. } =
        logs::open_oldest(request.log, request.archive, &keys, waker)?;
    let form = Form { is_json: request.is_json, tells_writer: true };
    let mut changes = Changes::default();
    let mut reader = Reader::new(&mut *log, start, Goal::Tail).with_keys(keys);
    loop {
        match reader.next(&mut *log)? {
            Next::Record(read) => changes.show(&read, |change| match request.touches(change) {
                true => form.write(change, output),
                false => Ok(()),
            })?,
            Next::Done => return Ok(()),
            Next::Wait => sleep.wait(log.wait_nanos()),
        }
    }
}

impl Find<'_> {
    /// Whether the change may have changed what the key holds, or took it elsewhere.
    fn touches(&self, change: &Change<'_>) -> bool {
        let is_in = |database| self.database.is_none_or(|wanted| wanted == database);
        let is_key = |database, key: &[u8]| is_in(database) && key == self.key;
        match change.effect {
            Effect::FlushAll => true,
            Effect::FlushDatabase => is_in(change.database),
            Effect::SwapDatabases { with } => is_in(change.database) || is_in(with),
            effect => {
                let second = effect.second_key();
                !effect.is_keyless() && is_key(change.database, change.key)
                    || second.is_some_and(|(database, key)| is_key(database, key))
            }
        }
    }
}

#[cfg(test)]
mod tests;
