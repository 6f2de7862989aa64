//! Users' rights as connections meet them: who is denied what, and whose connection ends because a
//! right is gone. The rules themselves are the catalogue's.

use crate::core::Core;
use crate::core::describe::describe;
use crate::session::Session;
use base::ConnectionId;
use catalog::Registered;
use catalog::acl::log::{Entry, EntryContext, Reason};
use catalog::acl::selector::matches_channel;
use catalog::acl::user::{Denied, User};
use catalog::acl::{UserId, file};
use config::operator_file::{read_bounded, replace_whole};
use engine::command::{Args, Flags, Outcome};
use engine::refusal::Refusal;
use engine::work::Work;
use std::io;
use std::path::Path;

impl Core {
    /// Why the session's user may not run a request, which is noted in the ACL log.
    #[inline]
    pub(crate) fn denied(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> Option<Denied> {
        // What a master sends was checked there.
        if self.process.acl.is_open() || self.clients.at(client).is_master() {
            return None;
        }
        self.denied_by_rules(client, command, args)
    }

    /// Whether the user's rules allow a request. A denial is not logged, unlike [`Self::denied`]'s.
    pub(crate) fn allows(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        let user = || self.process.acl.user(self.clients.at(client).who.user);
        self.process.acl.is_open()
            || user().is_unrestricted()
            || user().check(command, args, &self.work()).is_ok()
    }

    fn denied_by_rules(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> Option<Denied> {
        let user = self.process.acl.user(self.clients.at(client).who.user);
        if user.is_unrestricted() {
            return None;
        }
        let denied = user.check(command, args, &self.work()).err()?;
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, command.name().as_bytes()),
            Denied::Key(at) => (Reason::Key, args.at(at)),
            Denied::Channel(at) => (Reason::Channel, args.at(at)),
        };
        let user = user.name.clone();
        self.log_denial(client, reason, object, user);
        Some(denied)
    }

    fn log_denial(&mut self, client: ConnectionId, reason: Reason, object: &[u8], user: Vec<u8>) {
        let session = self.clients.at(client);
        let context = match session.transaction.is_some() || session.is_in_exec {
            _ if session.is_in_script => EntryContext::Lua,
            true => EntryContext::Multi,
            false => EntryContext::Toplevel,
        };
        let entry = Entry {
            count: 1,
            reason,
            context,
            object: object.to_vec(),
            user,
            at: self.turn.monotonic,
            client: describe(self, self.clients.at(client)).trim_end().to_owned(),
        };
        self.process.acl.log.add(entry, self.process.settings.acllog_max_len);
    }

    /// Whether a session's request may read keys that it does not name.
    pub(crate) fn reads_every_key(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        self.process.acl.is_open()
            || self.clients.at(client).is_master()
            || !command.flags.contains(Flags::READS_UNNAMED)
            || self.process.acl.user(self.clients.at(client).who.user).reads_every_key(
                command,
                args,
                &self.work(),
            )
    }

    /// Makes a session another user. `word` is the command that asked, as the client wrote it.
    ///
    /// # Errors
    /// WRONGPASS; the session's rights stay as they were.
    pub(crate) fn authenticate(
        &mut self,
        client: ConnectionId,
        word: &[u8],
        name: &[u8],
        password: &[u8],
    ) -> Outcome {
        match self.process.acl.find(name) {
            Some(id) if self.process.acl.user(id).admits(password, &self.work()) => {
                self.clients.at_mut(client).who.user = id;
                self.clients.at_mut(client).who.is_authenticated = true;
                Ok(())
            }
            _ => {
                self.log_denial(client, Reason::Auth, word, name.to_vec());
                Err(Refusal::of("WRONGPASS invalid username-password pair or user is disabled."))
            }
        }
    }

    /// What a session is before it says who it is.
    pub(crate) fn make_default_user(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        session.who.user = UserId::DEFAULT;
        session.who.is_authenticated = !self.process.acl.requires_authentication();
    }

    /// Logs in a client whose certificate has this common name, as the user of that name: if the
    /// operator wants it so, and the user exists and may log in (`tls-auth-clients-user`, as in
    /// Valkey).
    pub(crate) fn take_certified_name(&mut self, client: ConnectionId, name: &[u8]) {
        if !self.process.settings.tls_user_is_common_name {
            return;
        }
        let found = self.process.acl.find(name);
        match found.filter(|id| self.process.acl.user(*id).is_on()) {
            Some(id) => {
                let session = self.clients.at_mut(client);
                session.who.user = id;
                session.who.is_authenticated = true;
            }
            None => tracing::debug!(
                name = %String::from_utf8_lossy(name).escape_debug(),
                "a certificate names no user that may log in"
            ),
        }
    }

    /// Puts a user in force. Subscribers who lose the right to a channel are disconnected.
    pub(crate) fn set_user(&mut self, client: ConnectionId, user: User) {
        let work = self.work();
        let known = self.process.acl.find(&user.name);
        if let Some(id) = known
            && let Some(channels) = user.channels_left(self.process.acl.user(id), &work)
        {
            let is_lost = |session: &Session| {
                session.who.user == id && listens_beyond(session, &channels, &work)
            };
            let lost: Vec<ConnectionId> = self
                .sessions()
                .filter(|session| is_lost(session))
                .map(|session| session.connection)
                .collect();
            self.close_all(client, &lost);
        }
        self.process.acl.put(user);
    }

    /// Deletes a user and disconnects its clients; whether there was one.
    pub(crate) fn delete_user(&mut self, client: ConnectionId, name: &[u8]) -> bool {
        let Some(id) = self.process.acl.remove(name) else { return false };
        let of_user = self.clients.sessions.values_mut().filter(|it| it.who.user == id);
        let mut connections: Vec<ConnectionId> = of_user
            .map(|session| {
                (session.who.user, session.who.is_authenticated) = (UserId::DEFAULT, false);
                session.connection
            })
            .collect();
        // In the order in which they connected.
        connections.sort();
        self.close_all(client, &connections);
        true
    }

    /// Closes clients. `caller`, if it is one of them, still gets the reply to its request.
    pub(crate) fn close_all(&mut self, caller: ConnectionId, connections: &[ConnectionId]) {
        for &connection in connections {
            if connection == caller {
                self.clients.at_mut(caller).flow.is_closing = true;
            } else {
                self.close(connection);
            }
        }
    }
}

/// Whether a session is subscribed to something that these channels do not allow.
fn listens_beyond(session: &Session, allowed: &[Vec<u8>], work: &Work) -> bool {
    let is_beyond = |channel: &Vec<u8>| !matches_channel(allowed, channel, false, work);
    session
        .subscriptions
        .patterns
        .iter()
        .any(|pattern| !matches_channel(allowed, pattern, true, work))
        || session.subscriptions.channels.iter().any(is_beyond)
        || session.subscriptions.shard_channels.iter().any(is_beyond)
}

impl Core {
    /// Replaces all users by those of the ACL file. All clients but the default user's are
    /// disconnected, as by Redis.
    ///
    /// # Errors
    /// Why the users stay as they were.
    pub(crate) fn load_users(&mut self, client: ConnectionId) -> Result<(), String> {
        let users = self.read_acl_file()?;
        let others: Vec<Vec<u8>> =
            self.process.acl.others().map(|user| user.name.clone()).collect();
        for name in others {
            self.delete_user(client, &name);
        }
        self.process.acl.replace(users, self.process.catalog);
        Ok(())
    }

    /// Takes the users of the ACL file, if there is one, before anybody is served.
    ///
    /// # Errors
    /// What the operator must correct.
    pub fn start_with_acl_file(&mut self) -> Result<(), String> {
        if self.process.settings.aclfile.is_none() {
            return Ok(());
        }
        let users = self
            .read_acl_file()
            .map_err(|errors| format!("Aborting the start because of ACL errors: {errors}"))?;
        self.process.acl.replace(users, self.process.catalog);
        Ok(())
    }

    fn read_acl_file(&self) -> Result<Vec<User>, String> {
        let path = self.process.settings.aclfile.as_deref().unwrap_or(Path::new(""));
        let failed =
            |why: &str| format!("Error loading ACLs, opening file '{}': {why}", path.display());
        let text = read_bounded(&*self.process.options.disk, path)
            .map_err(|error| failed(&config::describe(&error)))?
            .ok_or_else(|| failed("it is too long"))?;
        self.process.acl.parse_file(&text, path, self.process.catalog)
    }

    /// Writes the users into the ACL file, on stable storage.
    pub(crate) fn save_users(&self) -> io::Result<()> {
        let path = self.process.settings.aclfile.as_deref().unwrap_or(Path::new(""));
        replace_whole(
            &*self.process.options.disk,
            path,
            &file::write(&self.process.acl, self.process.catalog),
        )
    }
}

#[cfg(test)]
mod tests;
