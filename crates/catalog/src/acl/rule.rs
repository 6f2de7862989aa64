//! Why a rule of ACL SETUSER, of a `user` line or of an ACL file is refused: Redis's texts.

use std::borrow::Cow;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleError {
    /// Not a rule, or a pattern with blanks in it.
    Syntax,
    UnknownCommand,
    /// A key pattern beside `~*`.
    AllKeysAlready,
    /// A channel pattern beside `&*`.
    AllChannelsAlready,
    NoSuchPassword,
    NotAHash,
    FirstArgumentOfSubcommand,
    /// The same user twice in a file.
    DuplicateUser,
}

impl RuleError {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Syntax => "Syntax error",
            Self::UnknownCommand => "Unknown command or category name in ACL",
            Self::AllKeysAlready => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                 does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AllChannelsAlready => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::NotAHash => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            Self::FirstArgumentOfSubcommand => {
                "Allowing first-arg of a subcommand is not supported"
            }
            Self::DuplicateUser => {
                "Duplicate user found. A user can only be defined once in config files"
            }
        }
    }
}

/// Whether a name or a pattern may stand in a file of users, whose words are split at blanks.
pub fn is_one_word(text: &[u8]) -> bool {
    !text.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0))
}

/// Joins the words of selectors that were split at blanks: `(+get`, `~a)` is one rule.
///
/// # Errors
/// The word whose parenthesis is never closed.
pub fn join_selectors<'a>(words: &[&'a [u8]]) -> Result<Vec<Cow<'a, [u8]>>, &'a [u8]> {
    let mut rules = Vec::with_capacity(words.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for &word in words {
        let closes = word.ends_with(b")");
        if word.starts_with(b"(") && !closes {
            open = Some((word, word.to_vec()));
        } else if let Some((first, mut selector)) = open.take() {
            selector.push(b' ');
            selector.extend_from_slice(word);
            if closes {
                rules.push(Cow::Owned(selector));
            } else {
                open = Some((first, selector));
            }
        } else {
            rules.push(Cow::Borrowed(word));
        }
    }
    match open {
        Some((first, _)) => Err(first),
        None => Ok(rules),
    }
}
