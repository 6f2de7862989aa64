//! One change as a line: readable, or JSON.
//!
//! In JSON, bytes are a string under their name if they are UTF-8, and else base64 under their name
//! with `_base64` behind it. `docs/operations/change-stream.md` describes the members for users.

use super::members::{self, Member};
use super::{Change, base64};
use engine::effect::Quoted;
use std::io::{self, Write};

/// How changes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Form {
    pub is_json: bool,
    /// Shows epoch and writer in a readable line too, and who led, as far as that was read before:
    /// what a line says then depends on where the reading began.
    pub tells_writer: bool,
}

impl Form {
    /// Writes the line.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn write(self, change: &Change<'_>, output: &mut impl Write) -> io::Result<()> {
        if self.is_json { self.json(change, output) } else { self.readable(change, output) }
    }

    fn readable(self, change: &Change<'_>, output: &mut impl Write) -> io::Result<()> {
        let Change { position, header, database, key, effect, .. } = change;
        write!(output, "{position} clock {}", header.clock.0)?;
        if self.tells_writer {
            write!(output, " epoch {} writer {:016x}", header.epoch.0, header.writer.0)?;
            if let Some(leader) = change.leader {
                write!(output, " at {}:{}", leader.host, leader.port)?;
            }
        }
        write!(output, " db {}", database.0)?;
        if !effect.is_keyless() {
            write!(output, " {}", Quoted(key))?;
        }
        writeln!(output, " {effect}")
    }

    fn json(self, change: &Change<'_>, output: &mut impl Write) -> io::Result<()> {
        let Change { position, header, database, key, effect, .. } = change;
        let (sequence, unit, ends_unit) =
            (change.record.sequence, position.unit, position.effect.is_none());
        let (clock, epoch, writer) = (header.clock.0, header.epoch.0, header.writer.0);
        write!(output, "{{\"position\":\"{position}\",\"sequence\":{sequence},\"unit\":{unit}")?;
        write!(output, ",\"ends_unit\":{ends_unit},\"clock_ms\":{clock},\"epoch\":{epoch}")?;
        write!(output, ",\"writer\":\"{writer:016x}\"")?;
        if let Some(leader) = change.leader.filter(|_| self.tells_writer) {
            let address = format!("{}:{}", leader.host, leader.port);
            write!(output, ",\"leader_id\":\"{}\"", leader.id)?;
            write_member(output, "leader", Member::Text(&address))?;
        }
        write!(output, ",\"database\":{}", database.0)?;
        if !effect.is_keyless() {
            write_member(output, "key", Member::Bytes(key))?;
        }
        let (name, operands) = members::of(effect);
        write!(output, ",\"effect\":\"{name}\",\"operands\":{{")?;
        for (index, (name, operand)) in operands.into_iter().enumerate() {
            if index > 0 {
                output.write_all(b",")?;
            }
            write_named(output, name, operand)?;
        }
        output.write_all(b"}}\n")
    }
}

fn write_member(output: &mut impl Write, name: &str, member: Member<'_>) -> io::Result<()> {
    output.write_all(b",")?;
    write_named(output, name, member)
}

/// A member of an object. Names are our own and need no escapes.
fn write_named(output: &mut impl Write, name: &str, member: Member<'_>) -> io::Result<()> {
    match member {
        Member::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => write_named(output, name, Member::Text(text)),
            Err(_) => write!(output, "\"{name}_base64\":\"{}\"", base64::encode(bytes)),
        },
        Member::Text(text) => {
            write!(output, "\"{name}\":")?;
            write_text(output, text)
        }
        Member::Signed(number) => write!(output, "\"{name}\":{number}"),
        Member::Number(number) => write!(output, "\"{name}\":{number}"),
        Member::Time(None) => write!(output, "\"{name}\":null"),
        Member::Time(Some(millis)) => write!(output, "\"{name}\":{millis}"),
        Member::Flag(flag) => write!(output, "\"{name}\":{flag}"),
        Member::Id(id) => write!(output, "\"{name}\":\"{id}\""),
        // JSON has no infinity.
        Member::Float(float) if float.is_finite() => write!(output, "\"{name}\":{float:?}"),
        Member::Float(float) => write!(output, "\"{name}\":\"{float}\""),
        Member::Ids(ids) => {
            write!(output, "\"{name}\":[")?;
            for (index, id) in ids.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                write!(output, "{comma}\"{id}\"")?;
            }
            output.write_all(b"]")
        }
        Member::Fields(fields) => {
            write!(output, "\"{name}\":[")?;
            for (index, (field, value)) in fields.iter().enumerate() {
                output.write_all(if index > 0 { b",{" } else { b"{" })?;
                write_named(output, "field", Member::Bytes(field))?;
                write_member(output, "value", Member::Bytes(value))?;
                output.write_all(b"}")?;
            }
            output.write_all(b"]")
        }
    }
}

fn write_text(output: &mut impl Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(output, text).map_err(io::Error::from)
}
