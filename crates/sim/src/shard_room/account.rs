//! What clients asked and were told, key by key, held against the log.

use super::chronicle::{Chronicle, text};
use super::client::{Asked, token_of};
use super::history::{self, Span, Version};
use std::collections::BTreeMap;

type Bytes = Vec<u8>;

/// What was asked and told, of one key.
pub struct Entry {
    pub client: usize,
    pub asked: Asked,
    pub span: Span,
    /// What was read, if something was.
    pub found: Option<Bytes>,
    pub count: Option<i64>,
}

/// Everything that was asked and told.
#[derive(Default)]
pub struct Account {
    history: BTreeMap<Bytes, Vec<Entry>>,
    /// Values whose write was refused.
    refused: Vec<Bytes>,
}

impl Account {
    /// Somebody asked, and was told something or nothing.
    pub fn write_down(&mut self, key: Bytes, entry: Entry) {
        self.history.entry(key).or_default().push(entry);
    }

    /// Somebody asked, and was told that nothing was done.
    pub fn refuse(&mut self, asked: &Asked) {
        if let Asked::Set(value) | Asked::Swap(value) | Asked::SetPair(value) = asked {
            self.refused.push(token_of(value));
        }
    }

    /// Holds everything that was asked and told against the log.
    ///
    /// # Errors
    /// What cannot have been.
    pub fn judge(&self, chronicle: &Chronicle) -> Result<(), String> {
        if let Some(value) = self.refused.iter().find(|value| chronicle.counts(value)) {
            return Err(format!("{} was refused and written", text(value)));
        }
        for (key, entries) in &self.history {
            let judged = if key.starts_with(b"counter") {
                judge_counter(entries)
            } else {
                judge_register(key, entries, chronicle)
            };
            judged.map_err(|why| format!("{}: {why}", text(key)))?;
        }
        Ok(())
    }
}

fn judge_register(key: &[u8], entries: &[Entry], chronicle: &Chronicle) -> Result<(), String> {
    let values = chronicle.versions(key);
    let mut versions = vec![Version { name: "nothing".to_owned(), ..Version::default() }];
    versions.extend(
        values.iter().map(|(_, value)| Version { name: text(value), ..Version::default() }),
    );
    let index_of: BTreeMap<&[u8], usize> =
        values.iter().enumerate().map(|(index, (_, value))| (&value[..], index + 1)).collect();
    for entry in entries {
        let found = entry.found.as_deref().map_or(Some(&0), |value| index_of.get(value));
        match &entry.asked {
            Asked::Set(value) | Asked::Swap(value) | Asked::SetPair(value) => {
                let Some(&index) = index_of.get(&value[..]) else {
                    if entry.span.answered.is_some() {
                        return Err(format!("{} was acknowledged and is not there", text(value)));
                    }
                    continue;
                };
                versions[index].write = Some(entry.span);
                let is_swap = matches!(entry.asked, Asked::Swap(_));
                if is_swap && entry.span.answered.is_some() && found != Some(&(index - 1)) {
                    return Err(format!("{} replaced something else than was said", text(value)));
                }
            }
            _ if entry.span.answered.is_none() => {}
            _ => {
                let index = *found
                    .ok_or_else(|| format!("client {} read what is not there", entry.client))?;
                versions[index].reads.push(entry.span);
            }
        }
    }
    history::check(&versions)
}

/// A counter's values name themselves.
fn judge_counter(entries: &[Entry]) -> Result<(), String> {
    let counts = entries.iter().filter_map(|entry| entry.count);
    let most = counts.max().unwrap_or(0);
    let asked = entries.iter().filter(|entry| entry.asked == Asked::Count).count();
    if most > asked as i64 {
        return Err(format!("it was counted to {most} by {asked} requests"));
    }
    let name = |index: i64| Version { name: index.to_string(), ..Version::default() };
    let mut versions: Vec<Version> = (0..=most).map(name).collect();
    for entry in entries {
        let Some(count) = entry.count else { continue };
        let Some(version) = usize::try_from(count).ok().and_then(|i| versions.get_mut(i)) else {
            return Err(format!("it was {count}"));
        };
        if entry.asked != Asked::Count {
            version.reads.push(entry.span);
        } else if version.write.replace(entry.span).is_some() {
            return Err(format!("two requests counted to {count}"));
        }
    }
    history::check(&versions)
}
