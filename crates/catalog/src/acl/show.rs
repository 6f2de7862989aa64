//! What ACL GETUSER shows of a user.

use super::selector::Selector;
use super::user::User;
use crate::commands::Catalog;
use resp::Reply;

impl User {
    /// Writes flags, passwords, and what each selector allows.
    pub fn show(&self, catalog: &Catalog, reply: &mut Reply) {
        reply.map(6);
        reply.bulk("flags");
        reply.set(self.flags().count());
        for flag in self.flags() {
            reply.bulk(flag);
        }
        reply.bulk("passwords");
        reply.array(self.password_hashes().len());
        for password in self.password_hashes() {
            reply.bulk(password);
        }
        self.selectors[0].show(catalog, reply);
        reply.bulk("selectors");
        reply.array(self.selectors.len() - 1);
        for selector in &self.selectors[1..] {
            reply.map(3);
            selector.show(catalog, reply);
        }
    }
}

impl Selector {
    /// Writes three fields of a map.
    fn show(&self, catalog: &Catalog, reply: &mut Reply) {
        reply.bulk("commands");
        reply.bulk(self.describe_commands(catalog));
        reply.bulk("keys");
        reply.bulk(self.describe_keys());
        reply.bulk("channels");
        reply.bulk(self.describe_channels());
    }
}
