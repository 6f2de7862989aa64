//! CONFIG GET and CONFIG SET (Redis documentation, CONFIG GET, CONFIG SET; texts of 7.0.15).
//!
//! A SET makes a new configuration beside the old one. The caller puts it in force, which may fail
//! at the world (a port that is taken), and only then replaces the old one: there is nothing to
//! roll back.

use crate::Config;
use crate::settings::tier::tier_directive;
use crate::table::{DIRECTIVES, find, row};
use crate::value::Refusal;
use base::Disk;
use engine::glob;
use engine::work::Work;
use std::collections::BTreeSet;

/// Who asks for a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// On the loopback interface or a Unix socket.
    pub is_local: bool,
    /// The data set is still being loaded.
    pub is_loading: bool,
}

/// A configuration with changes that are not in force yet.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub config: Config,
    /// The rows whose value differs, in the order in which they were named.
    pub changed: Vec<usize>,
    /// All rows that CONFIG SET named, changed or not.
    pub named: Vec<usize>,
}

/// Why a CONFIG SET changed nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetError {
    OddArguments,
    Loading,
    Unknown(Vec<u8>),
    /// The parameter it is about, and why.
    Refused {
        name: Vec<u8>,
        reason: Refusal,
    },
}

impl SetError {
    /// The error as the client reads it, code first, without the `-` of the protocol.
    pub fn reply(&self) -> Vec<u8> {
        let mut reply = match self {
            Self::OddArguments => b"ERR syntax error".to_vec(),
            Self::Loading => b"LOADING Redis is loading the dataset in memory".to_vec(),
            Self::Unknown(name) => {
                [b"ERR Unknown option or number of arguments for CONFIG SET - '", &name[..], b"'"]
                    .concat()
            }
            Self::Refused { name, reason } => [
                b"ERR CONFIG SET failed (possibly related to argument '",
                &name[..],
                b"') - ",
                reason.as_bytes(),
            ]
            .concat(),
        };
        for byte in &mut reply {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        reply
    }
}

impl Config {
    /// Names and values of the directives that the patterns name, each once. Counts its steps.
    pub fn get<'p>(
        &self,
        patterns: impl IntoIterator<Item = &'p [u8]>,
        work: &Work,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for pattern in patterns {
            if !pattern.iter().any(|byte| matches!(byte, b'*' | b'[' | b'?')) {
                // A plain name is held against every one, and shown as it was written.
                work.steps(DIRECTIVES.len());
                if let Some((row, name)) = find(pattern)
                    && seen.insert(name)
                {
                    found.push((pattern.to_vec(), self.show(row)));
                }
                continue;
            }
            for (row, directive) in DIRECTIVES.iter().enumerate().filter(|(_, d)| !d.hidden) {
                for name in [directive.name, directive.alias] {
                    if !name.is_empty()
                        && glob::matches_ignoring_case(pattern, name.as_bytes(), work)
                        && seen.insert(name)
                    {
                        found.push((name.as_bytes().to_vec(), self.show(row)));
                    }
                }
            }
        }
        found
    }

    /// Makes all the changes of a CONFIG SET, or none.
    ///
    /// # Errors
    /// The refusal that the client reads.
    pub fn propose(
        &self,
        arguments: &[&[u8]],
        caller: Caller,
        disk: &dyn Disk,
    ) -> Result<Proposal, SetError> {
        let (pairs, []) = arguments.as_chunks::<2>() else {
            return Err(SetError::OddArguments);
        };
        let targets = self.targets(pairs, caller)?;
        let named = targets.iter().map(|(row, _)| *row).collect();
        let mut proposal = Proposal { config: self.clone(), changed: Vec::new(), named };
        for (&(row, name), [_, value]) in targets.iter().zip(pairs) {
            if DIRECTIVES[row].immutable {
                continue;
            }
            let words: Vec<Vec<u8>> = if !DIRECTIVES[row].takes_words() {
                vec![value.to_vec()]
            } else if value.is_empty() {
                Vec::new()
            } else {
                value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect()
            };
            let differs = proposal
                .config
                .assign(row, &words, disk)
                .map_err(|reason| SetError::Refused { name: name.as_bytes().to_vec(), reason })?;
            if differs && !proposal.changed.contains(&row) {
                proposal.changed.push(row);
            }
        }
        if let Some(name) = tier_directive(&proposal.changed)
            && let Some(reason) = proposal.config.tier_refusal()
        {
            return Err(SetError::Refused { name: name.as_bytes().to_vec(), reason });
        }
        Ok(proposal)
    }

    /// The rows that the arguments name, once every one of them may be set.
    fn targets(
        &self,
        pairs: &[[&[u8]; 2]],
        caller: Caller,
    ) -> Result<Vec<(usize, &'static str)>, SetError> {
        let mut targets: Vec<(usize, &'static str)> = Vec::with_capacity(pairs.len());
        for [given, value] in pairs {
            let Some((row, name)) = find(given) else {
                return Err(SetError::Unknown(given.to_vec()));
            };
            let directive = &DIRECTIVES[row];
            let refused = |reason: &'static str| SetError::Refused {
                name: given.to_vec(),
                reason: reason.into(),
            };
            let is_as_before = directive.is_own() && self.show(row) == *value;
            if directive.immutable && !is_as_before {
                return Err(refused("can't set immutable config"));
            }
            if directive.protected && !self.allows_protected(caller) {
                return Err(refused("can't set protected config"));
            }
            if directive.refused_while_loading && caller.is_loading {
                return Err(SetError::Loading);
            }
            // The older name counts as another parameter, as in Redis.
            if targets.iter().any(|(_, earlier)| *earlier == name) {
                return Err(refused("duplicate parameter"));
            }
            targets.push((row, name));
        }
        Ok(targets)
    }

    fn allows_protected(&self, caller: Caller) -> bool {
        match self.word(const { row("enable-protected-configs") }) {
            "yes" => true,
            "local" => caller.is_local,
            _ => false,
        }
    }
}
