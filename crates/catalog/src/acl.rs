//! Users and what they may do: Redis 7.0's access control lists.
//!
//! | file | holds |
//! |---|---|
//! | [`rule`] | what is wrong with a rule; selectors written as several words |
//! | [`selector`] | what one set of rules allows |
//! | [`user`] | passwords and selectors of a user; whether a request passes |
//! | `keys` | which keys and channels a request names |
//! | `describe` | rules back to text |
//! | `show` | what ACL GETUSER shows |
//! | [`file`] | the text of an ACL file |
//! | [`log`] | what was denied lately |
//!
//! Nearly every server has one user who may do everything. [`Acl::is_open`] says so, and then a
//! request costs one look at it.

mod describe;
pub mod file;
mod keys;
pub mod log;
pub mod rule;
pub mod selector;
mod show;
pub mod user;

use crate::commands::Catalog;
use crate::secrets::shown_rule;
use engine::work::Work;
use rule::{is_one_word, join_selectors};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use user::User;

/// A user, for as long as it exists. No session has the id of a user that was deleted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UserId(u32);

impl UserId {
    /// The user whom connections begin as. It cannot be deleted.
    pub const DEFAULT: Self = Self(0);
}

/// A user as a configuration file names it: its name and its rules.
pub type Declared = (Vec<u8>, Vec<Vec<u8>>);

/// What rules are read by.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub catalog: &'a Catalog,
    /// `acl-pubsub-default`: new users and selectors may use every channel.
    pub all_channels: bool,
    /// Counts the steps.
    pub work: &'a Work,
}

/// All users, and the log of what they were denied.
#[derive(Debug)]
pub struct Acl {
    /// By id. Deleted users leave a free place.
    places: Vec<Option<User>>,
    names: BTreeMap<Vec<u8>, UserId>,
    /// No user is forbidden anything.
    is_open: bool,
    /// `acl-pubsub-default`: new users and selectors may use every channel.
    all_channels: bool,
    pub log: log::Log,
}

impl Acl {
    /// The default user alone, with the password of `requirepass`.
    fn new(requirepass: &[u8], all_channels: bool, catalog: &Catalog) -> Self {
        let mut user = User::default_user(catalog);
        user.set_only_password(requirepass, &Work::default());
        Self {
            names: BTreeMap::from([(user.name.clone(), UserId::DEFAULT)]),
            places: vec![Some(user)],
            is_open: true,
            all_channels,
            log: log::Log::default(),
        }
    }

    /// The users that a configuration declares, beside the default one with the password of
    /// `requirepass`, empty for none. An ACL file is read apart.
    ///
    /// # Errors
    /// What the operator must correct.
    pub fn declared(
        users: &[Declared],
        requirepass: &[u8],
        all_channels: bool,
        catalog: &Catalog,
    ) -> Result<Self, String> {
        let mut acl = Self::new(requirepass, all_channels, catalog);
        let terms = Terms { catalog, all_channels, work: &Work::default() };
        for (name, rules) in users {
            let mut user = User::new(name, terms);
            if name == b"default" {
                user.apply(b"reset", terms).expect("it is a rule");
            }
            for rule in rules {
                user.apply(rule, terms).map_err(|error| {
                    format!(
                        "Error loading ACL rule '{}' for the user named '{}': {}",
                        String::from_utf8_lossy(rule),
                        String::from_utf8_lossy(name),
                        error.text()
                    )
                })?;
            }
            warn_if_off(&user);
            acl.put(user);
        }
        Ok(acl)
    }

    /// Whether no user is forbidden anything, so that there is nothing to check.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether clients must authenticate before they do anything else.
    pub fn requires_authentication(&self) -> bool {
        let user = self.default_user();
        !user.has_no_password() || !user.is_on()
    }

    pub fn default_user(&self) -> &User {
        self.user(UserId::DEFAULT)
    }

    /// A user by its id.
    pub fn user(&self, id: UserId) -> &User {
        self.places[id.0 as usize].as_ref().expect("sessions of a deleted user are taken from it")
    }

    pub fn find(&self, name: &[u8]) -> Option<UserId> {
        self.names.get(name).copied()
    }

    /// All users by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &User> {
        self.names.values().map(|id| self.user(*id))
    }

    /// The lines that a configuration file declares the users with.
    pub fn lines(&self, catalog: &Catalog) -> Vec<Vec<u8>> {
        self.users().map(|user| user.line(catalog)).collect()
    }

    /// A user as the rules would make it, who is not in force yet: the known one or a new one,
    /// changed. Counts its steps.
    ///
    /// # Errors
    /// Redis's text for the first rule that is none.
    pub fn changed(
        &self,
        name: &[u8],
        words: &[&[u8]],
        catalog: &Catalog,
        work: &Work,
    ) -> Result<User, String> {
        let terms = Terms { catalog, all_channels: self.all_channels, work };
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let rules = join_selectors(words).map_err(|word| {
            format!("Unmatched parenthesis in acl selector starting at '{}'.", shown(word))
        })?;
        let mut user = match self.find(name) {
            Some(id) => self.user(id).clone(),
            None => User::new(name, terms),
        };
        for rule in rules {
            user.apply(&rule, terms).map_err(|error| {
                format!("Error in ACL SETUSER modifier '{}': {}", shown(&rule), error.text())
            })?;
        }
        Ok(user)
    }

    /// Puts a user in force, in place of the one of its name.
    pub fn put(&mut self, user: User) {
        match self.find(&user.name) {
            Some(id) => self.places[id.0 as usize] = Some(user),
            None => {
                let free = self.places.iter().position(Option::is_none);
                let place = free.unwrap_or(self.places.len());
                let id = UserId(u32::try_from(place).expect("users fit in memory"));
                self.names.insert(user.name.clone(), id);
                match self.places.get_mut(place) {
                    Some(free) => *free = Some(user),
                    None => self.places.push(Some(user)),
                }
            }
        }
        self.look_again();
    }

    /// Removes a user; its id. The caller takes it from the sessions that have it.
    pub fn remove(&mut self, name: &[u8]) -> Option<UserId> {
        let id = self.names.remove(name)?;
        self.places[id.0 as usize] = None;
        self.look_again();
        Some(id)
    }

    /// All users but the default one.
    pub fn others(&self) -> impl Iterator<Item = &User> {
        self.users().filter(|user| user.name != b"default")
    }

    /// Takes these users in place of the default one, or it as it is at first, and beside it.
    pub fn replace(&mut self, users: Vec<User>, catalog: &Catalog) {
        self.put(User::default_user(catalog));
        for user in users {
            self.put(user);
        }
    }

    /// What the directives say from now on: a password for the default user if it changed, and
    /// what new users may listen to.
    pub fn reconfigure(&mut self, requirepass: Option<&[u8]>, all_channels: bool, work: &Work) {
        self.all_channels = all_channels;
        if let Some(password) = requirepass {
            let mut user = self.default_user().clone();
            user.set_only_password(password, work);
            self.put(user);
        }
    }

    /// The users that an ACL file of this text declares. `shown` is its name as the configuration
    /// gives it.
    ///
    /// # Errors
    /// As [`file::parse`].
    pub fn parse_file(
        &self,
        text: &[u8],
        shown: &Path,
        catalog: &Catalog,
    ) -> Result<Vec<User>, String> {
        let terms = Terms { catalog, all_channels: self.all_channels, work: &Work::default() };
        file::parse(text, shown, terms)
    }

    fn look_again(&mut self) {
        let is_open = self.users().all(User::is_unrestricted);
        self.is_open = is_open;
    }
}

/// Checks a `user` line of a configuration file, with what the file said of `acl-pubsub-default` so
/// far.
///
/// # Errors
/// The word that is wrong, and why.
pub fn declare(
    known: &[Declared],
    name: &[u8],
    words: &[Vec<u8>],
    all_channels: bool,
    catalog: &Catalog,
) -> Result<Declared, String> {
    let failed = |word: &[u8], why: &str| {
        Err(format!("Error in user declaration '{}': {why}", String::from_utf8_lossy(word)))
    };
    if known.iter().any(|(other, _)| other == name) {
        return failed(name, rule::RuleError::DuplicateUser.text());
    }
    if !is_one_word(name) {
        return failed(name, "Spaces not allowed in ACL usernames");
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let rules = match join_selectors(&words) {
        Ok(rules) => rules,
        Err(word) => return failed(&shown_rule(word), "Unmatched parenthesis"),
    };
    let terms = Terms { catalog, all_channels, work: &Work::default() };
    let mut user = User::new(name, terms);
    for rule in &rules {
        if let Err(error) = user.apply(rule, terms) {
            return failed(&shown_rule(rule), error.text());
        }
    }
    Ok((name.to_vec(), rules.into_iter().map(Cow::into_owned).collect()))
}

fn warn_if_off(user: &User) {
    if !user.is_on() {
        tracing::info!(
            user = %String::from_utf8_lossy(&user.name),
            "the user is declared without 'on', so nobody can authenticate as it"
        );
    }
}
