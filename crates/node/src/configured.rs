//! What a configuration declares of commands and users, checked by what is known of these here.

use catalog::Catalog;
use catalog::acl::{self, Acl};
use config::Config;
use config::declaration::Declared;
use config::load::LoadError;

/// Commands' names and users as a configuration declares them.
#[derive(Debug)]
pub struct Configured {
    /// The commands, if clients call some of them otherwise or not at all.
    pub renamed: Option<Catalog>,
    /// The users. Those of an ACL file are read apart.
    pub acl: Acl,
}

/// Checks what a configuration declares. `catalog`: the commands, none of them renamed.
///
/// # Errors
/// What the operator must correct: the first line that makes no sense.
pub fn configured(config: &Config, catalog: &Catalog) -> Result<Configured, LoadError> {
    let (mut renamed, mut users) = (None, Vec::new());
    for declaration in &config.declarations {
        let refused = |reason: String| declaration.refused(reason);
        match &declaration.what {
            Declared::Name { command, name } => {
                let renamed = renamed.get_or_insert_with(|| catalog.clone());
                renamed.rename(command, name).map_err(|reason| refused(reason.to_owned()))?;
            }
            Declared::User { name, rules, all_channels } => {
                users.push(
                    acl::declare(&users, name, rules, *all_channels, catalog).map_err(refused)?,
                );
            }
        }
    }
    let (requirepass, all_channels) = config.acl_defaults();
    let acl =
        Acl::declared(&users, requirepass, all_channels, catalog).map_err(LoadError::Users)?;
    Ok(Configured { renamed, acl })
}

#[cfg(test)]
mod tests;
