//! What a configuration declares of commands and users, checked by what is known of these here.

use crate::acl::{self, Acl};
use crate::registry::Registry;
use config::Config;
use config::declaration::Declared;
use config::load::LoadError;

/// Commands' names and users as a configuration declares them.
#[derive(Debug)]
pub struct Configured {
    /// Commands that clients call otherwise, with their new names; an empty one removes a command.
    pub names: Vec<(Vec<u8>, Vec<u8>)>,
    /// The users. Those of an ACL file are read apart.
    pub acl: Acl,
}

/// Checks what a configuration declares.
///
/// # Errors
/// What the operator must correct: the first line that makes no sense.
pub fn configured(config: &Config) -> Result<Configured, LoadError> {
    let (mut names, mut users) = (Vec::new(), Vec::new());
    for declaration in &config.declarations {
        let refused = |reason: String| declaration.refused(reason);
        match &declaration.what {
            Declared::Name { command, name } => {
                names.push((command.clone(), name.clone()));
                Registry::renamed(&names).map_err(|reason| refused(reason.to_owned()))?;
            }
            Declared::User { name, rules, all_channels } => {
                users.push(acl::declare(&users, name, rules, *all_channels).map_err(refused)?);
            }
        }
    }
    let (requirepass, all_channels) = config.acl_defaults();
    let acl = Acl::declared(&users, requirepass, all_channels).map_err(LoadError::Users)?;
    Ok(Configured { names, acl })
}

#[cfg(test)]
mod tests;
