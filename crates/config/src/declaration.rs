//! Lines of the configuration file about commands and users: `rename-command` and `user`.
//!
//! This crate knows neither commands nor rules, so it keeps what such a line says and where it
//! stood. Whoever knows them checks it, and refuses it as if the line had been read just now.

use crate::load::LoadError;

/// What a line declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Declared {
    /// `rename-command`: what clients call a command; an empty name removes it.
    Name { command: Vec<u8>, name: Vec<u8> },
    /// `user`: a user and its rules, word by word.
    User {
        name: Vec<u8>,
        rules: Vec<Vec<u8>>,
        /// What `acl-pubsub-default` had said up to this line.
        all_channels: bool,
    },
}

/// A line that declares something, and where it stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    pub what: Declared,
    /// Its number in the text that it was read from, the first being 1.
    number: usize,
    /// The line, without secrets.
    text: String,
}

impl Declaration {
    pub(crate) fn new(what: Declared, number: usize, text: String) -> Self {
        Self { what, number, text }
    }

    /// The error that stops a start because of this line.
    pub fn refused(&self, reason: impl Into<String>) -> LoadError {
        LoadError::Line { number: self.number, text: self.text.clone(), reason: reason.into() }
    }
}
