//! A user: whether and how it authenticates, and its selectors.

use super::rule::RuleError;
use super::selector::Selector;
use super::{Terms, keys};
use crate::commands::{Catalog, Registered};
use engine::command::{Args, Flags};
use engine::refusal::Refusal;
use engine::work::{BYTES_PER_STEP, Work};
use sha2::{Digest, Sha256};

/// A password as it is kept: its SHA-256.
type Hash = [u8; 32];

/// Whether payloads of RESTORE are checked for this user. They always are; the word is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sanitize {
    Unsaid,
    Skip,
    Always,
}

/// Why a request is denied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Denied {
    Command,
    /// The argument that is the key, or the channel.
    Key(usize),
    Channel(usize),
}

impl Denied {
    /// What a client is told who asks for something it may not.
    pub fn refusal(self, command: &Registered) -> Refusal {
        Refusal::new(match self {
            Self::Command => format!(
                "NOPERM this user has no permissions to run the '{}' command",
                command.name()
            ),
            Self::Key(_) => "NOPERM this user has no permissions to access one of the keys used \
                             as arguments"
                .to_owned(),
            Self::Channel(_) => "NOPERM this user has no permissions to access one of the \
                                 channels used as arguments"
                .to_owned(),
        })
    }

    /// The error for a script that calls a command which its user may not run.
    pub const fn refusal_in_script(self) -> Refusal {
        Refusal::of(match self {
            Self::Command => {
                "ERR The user executing the script can't run this command or subcommand"
            }
            Self::Key(_) => {
                "ERR The user executing the script can't access at least one of the keys mentioned \
                 in the command arguments"
            }
            Self::Channel(_) => {
                "ERR The user executing the script can't publish to the channel mentioned in the \
                 command"
            }
        })
    }

    /// What EXEC says of a command that was allowed when it was queued.
    pub fn refusal_in_exec(self) -> Refusal {
        let reason = match self {
            Self::Command => "no permission to execute the command or subcommand",
            Self::Key(_) => "no permission to touch the specified keys",
            Self::Channel(_) => "no permission to access one of the channels used as arguments",
        };
        Refusal::new(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        ))
    }
}

/// A user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub name: Vec<u8>,
    is_on: bool,
    has_no_password: bool,
    sanitize: Sanitize,
    passwords: Vec<Hash>,
    /// The first is the root selector: the rules outside of parentheses.
    pub(super) selectors: Vec<Selector>,
}

impl User {
    /// Off, without password and rights, but for those that `acl-pubsub-default` gives.
    pub fn new(name: &[u8], terms: Terms<'_>) -> Self {
        Self {
            name: name.to_vec(),
            is_on: false,
            has_no_password: false,
            sanitize: Sanitize::Unsaid,
            passwords: Vec::new(),
            selectors: vec![Selector::new(terms)],
        }
    }

    /// The user that new connections are: without password, and everything is allowed.
    pub fn default_user(catalog: &Catalog) -> Self {
        let terms = Terms { catalog, all_channels: true, work: &Work::default() };
        let mut user = Self::new(b"default", terms);
        for rule in ["+@all", "~*", "&*", "on", "nopass"] {
            user.apply(rule.as_bytes(), terms).expect("these are rules");
        }
        user
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// Why it is none; rules applied before it stay.
    pub fn apply(&mut self, rule: &[u8], terms: Terms<'_>) -> Result<(), RuleError> {
        let work = terms.work;
        work.steps(1 + self.passwords.len());
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("skip-sanitize-payload") => self.sanitize = Sanitize::Skip,
            _ if is("sanitize-payload") => self.sanitize = Sanitize::Always,
            _ if is("nopass") => self.reset_passwords(true),
            _ if is("resetpass") => self.reset_passwords(false),
            [b'>', password @ ..] => self.add_password(hash(password, work)),
            [b'#', hex @ ..] => self.add_password(parse_hash(hex)?),
            [b'<', password @ ..] => self.remove_password(hash(password, work))?,
            [b'!', hex @ ..] => self.remove_password(parse_hash(hex)?)?,
            [b'(', rules @ .., b')'] => {
                self.selectors.push(Selector::parse(rules, terms)?);
            }
            _ if is("clearselectors") => self.selectors.truncate(1),
            _ if is("reset") => {
                let name = std::mem::take(&mut self.name);
                *self = Self { sanitize: Sanitize::Always, ..Self::new(&name, terms) };
            }
            _ => self.selectors[0].apply(rule, terms)?,
        }
        Ok(())
    }

    /// `requirepass`: the only password from now on, or none at all.
    pub fn set_only_password(&mut self, password: &[u8], work: &Work) {
        self.reset_passwords(password.is_empty());
        if !password.is_empty() {
            self.add_password(hash(password, work));
        }
    }

    fn reset_passwords(&mut self, has_no_password: bool) {
        self.passwords.clear();
        self.has_no_password = has_no_password;
    }

    fn add_password(&mut self, password: Hash) {
        if !self.passwords.contains(&password) {
            self.passwords.push(password);
        }
        self.has_no_password = false;
    }

    fn remove_password(&mut self, password: Hash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| *known == password);
        self.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Any password will do.
    pub fn has_no_password(&self) -> bool {
        self.has_no_password
    }

    /// Whether a client with this password may become the user.
    pub fn admits(&self, password: &[u8], work: &Work) -> bool {
        if !self.is_on || self.has_no_password {
            return self.is_on;
        }
        work.steps(self.passwords.len());
        let given = hash(password, work);
        self.passwords.iter().any(|known| same(known, &given))
    }

    /// Whether nothing is forbidden to it.
    pub fn is_unrestricted(&self) -> bool {
        self.selectors.iter().any(Selector::is_unrestricted)
    }

    /// The words that ACL GETUSER shows as its flags.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let words = [
            (self.is_on, "on"),
            (!self.is_on, "off"),
            (self.has_no_password, "nopass"),
            (self.sanitize == Sanitize::Skip, "skip-sanitize-payload"),
            (self.sanitize == Sanitize::Always, "sanitize-payload"),
        ];
        words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word)
    }

    /// Passwords as files hold them: their hashes in hexadecimal.
    pub fn password_hashes(&self) -> impl ExactSizeIterator<Item = String> {
        let hex = |hash: &Hash| hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.passwords.iter().map(hex)
    }

    /// The channels of a user that is about to take the place of `before`, if it has not all of
    /// those that this one had.
    pub fn channels_left(&self, before: &Self, work: &Work) -> Option<Vec<Vec<u8>>> {
        if self.selectors.iter().any(|selector| selector.all_channels) {
            return None;
        }
        let channels: Vec<Vec<u8>> =
            self.selectors.iter().flat_map(|selector| selector.channels.clone()).collect();
        let is_kept = |channel: &Vec<u8>| {
            work.steps(channels.len());
            channels.contains(channel)
        };
        let keeps_all = before
            .selectors
            .iter()
            .all(|selector| !selector.all_channels && selector.channels.iter().all(is_kept));
        (!keeps_all).then_some(channels)
    }

    /// Whether it may run a request. Counts the steps of looking for its keys and channels among
    /// the patterns.
    ///
    /// # Errors
    /// What is missing in the selector that came closest.
    pub fn check(&self, command: &Registered, args: Args<'_>, work: &Work) -> Result<(), Denied> {
        let mut closest = Denied::Command;
        for selector in &self.selectors {
            match check_selector(selector, command, args, work) {
                Ok(()) => return Ok(()),
                Err(denied) => closest = closest.max(denied),
            }
        }
        Err(closest)
    }

    /// Whether it may run a request that also reads keys which it does not name (SORT's BY and
    /// GET).
    pub fn reads_every_key(&self, command: &Registered, args: Args<'_>, work: &Work) -> bool {
        self.selectors.iter().any(|selector| {
            selector.reads_every_key() && check_selector(selector, command, args, work).is_ok()
        })
    }
}

/// Whether one selector allows a request.
fn check_selector(
    selector: &Selector,
    command: &Registered,
    args: Args<'_>,
    work: &Work,
) -> Result<(), Denied> {
    // AUTH and its kin are always open; what they may name is not.
    let is_open = command.flags.contains(Flags::NO_AUTH);
    if !is_open && !selector.allows_command(command, args) {
        return Err(Denied::Command);
    }
    if !selector.all_keys {
        let mut denied = None;
        keys::for_each_key(command, args, |at, access| {
            if denied.is_none() && !selector.allows_key(args.at(at), access, work) {
                denied = Some(at);
            }
        });
        if let Some(at) = denied {
            return Err(Denied::Key(at));
        }
    }
    if !selector.all_channels
        && let Some((mut channels, is_pattern)) = keys::channels(command, args)
        && let Some(at) =
            channels.find(|at| !selector.allows_channel(args.at(*at), is_pattern, work))
    {
        return Err(Denied::Channel(at));
    }
    Ok(())
}

fn hash(password: &[u8], work: &Work) -> Hash {
    let mut hash = Sha256::new();
    for part in password.chunks(BYTES_PER_STEP) {
        work.step();
        hash.update(part);
    }
    hash.finalize().into()
}

/// Reads 64 lower-case hexadecimal digits.
fn parse_hash(hex: &[u8]) -> Result<Hash, RuleError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = hex.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?)).collect();
    let bytes = bytes.filter(|_| rest.is_empty()).ok_or(RuleError::NotAHash)?;
    bytes.try_into().map_err(|_| RuleError::NotAHash)
}

/// Compares in a time that does not depend on what is different.
fn same(left: &Hash, right: &Hash) -> bool {
    left.iter().zip(right).fold(0, |different, (l, r)| different | (l ^ r)) == 0
}
