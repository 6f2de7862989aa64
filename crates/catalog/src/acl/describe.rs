//! Rules as text: what ACL LIST and GETUSER show, and what files of users hold. Reading the text
//! back gives the same rights.

use super::selector::{Commands, KeyPattern, Selector};
use super::user::User;
use crate::category::Categories;
use crate::commands::{Catalog, Registered};

impl User {
    /// The line of a file: `user NAME …`.
    pub fn line(&self, catalog: &Catalog) -> Vec<u8> {
        let mut line = [b"user ", &self.name[..], b" "].concat();
        for flag in self.flags() {
            line.extend_from_slice(flag.as_bytes());
            line.push(b' ');
        }
        for password in self.password_hashes() {
            line.push(b'#');
            line.extend_from_slice(password.as_bytes());
            line.push(b' ');
        }
        for (index, selector) in self.selectors.iter().enumerate() {
            match index {
                0 => line.extend(selector.describe(catalog)),
                _ => line.extend([b" (", &selector.describe(catalog)[..], b")"].concat()),
            }
        }
        line
    }
}

impl Selector {
    /// Everything that it allows, in one text.
    fn describe(&self, catalog: &Catalog) -> Vec<u8> {
        let mut words = Vec::new();
        words.extend(Some(self.describe_keys()).filter(|keys| !keys.is_empty()));
        if !self.all_channels {
            words.push(b"resetchannels".to_vec());
        }
        words.extend(Some(self.describe_channels()).filter(|channels| !channels.is_empty()));
        words.push(self.describe_commands(catalog));
        words.join(&b' ')
    }

    pub(super) fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let patterns: Vec<Vec<u8>> = self.key_patterns.iter().map(KeyPattern::describe).collect();
        patterns.join(&b' ')
    }

    pub(super) fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let channel = |channel: &Vec<u8>| [b"&", &channel[..]].concat();
        self.channels.iter().map(channel).collect::<Vec<_>>().join(&b' ')
    }

    /// The rules that make these commands out of nothing: `+@all` or `-@all`, categories as long
    /// as one comes closer, then single commands.
    pub(super) fn describe_commands(&self, catalog: &Catalog) -> Vec<u8> {
        let starts_with_all = self.commands.future;
        let mut rules = vec![if starts_with_all { b"+@all".to_vec() } else { b"-@all".to_vec() }];
        let mut described = Commands::new(starts_with_all, catalog);
        let sign = if starts_with_all { b"-" } else { b"+" };
        let mut rest = self.commands.clone();
        let mut categories: Vec<_> = Categories::each().collect();
        while let Some(best) = best_category(&categories, &rest, starts_with_all, catalog) {
            let (category, name) = categories.remove(best);
            rules.push([sign, &b"@"[..], name.as_bytes()].concat());
            described.set_category(category, !starts_with_all, catalog);
            rest.set_category(category, starts_with_all, catalog);
        }
        self.describe_single(&mut described, &mut rules, catalog);
        rules.join(&b' ')
    }

    /// Adds what the categories left out or took in too much.
    fn describe_single(
        &self,
        described: &mut Commands,
        rules: &mut Vec<Vec<u8>>,
        catalog: &Catalog,
    ) {
        for command in catalog.iter().filter(|command| command.parent.is_none()) {
            let subcommands = command.subcommands.iter().map(|id| catalog.command(*id));
            for one in std::iter::once(command).chain(subcommands) {
                let is_allowed = self.commands.allows(one.id);
                if is_allowed != described.allows(one.id) {
                    let sign = if is_allowed { b"+" } else { b"-" };
                    rules.push([sign, one.name().as_bytes()].concat());
                    described.set(one, is_allowed);
                }
            }
            self.describe_first_arguments(command, rules);
        }
    }

    fn describe_first_arguments(&self, command: &Registered, rules: &mut Vec<Vec<u8>>) {
        if self.commands.allows(command.id) {
            return;
        }
        for argument in self.first_arguments.get(&command.id).into_iter().flatten() {
            rules.push([b"+", command.name().as_bytes(), b"|", argument].concat());
        }
    }
}

impl KeyPattern {
    fn describe(&self) -> Vec<u8> {
        let sign: &[u8] = match (self.reads, self.writes) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        [sign, &self.pattern].concat()
    }
}

/// The category that describes the most of what is left: more commands right than wrong, few wrong
/// ones first, then many right ones.
fn best_category(
    categories: &[(Categories, &str)],
    rest: &Commands,
    starts_with_all: bool,
    catalog: &Catalog,
) -> Option<usize> {
    let mut best: Option<(usize, usize, usize)> = None;
    for (index, (category, _)) in categories.iter().enumerate() {
        let (mut right, mut wrong) = (0, 0);
        for command in catalog.iter() {
            if command.categories.intersects(*category) {
                let is_allowed = rest.allows(command.id);
                if is_allowed != starts_with_all { right += 1 } else { wrong += 1 }
            }
        }
        let is_better = best.is_none_or(|(_, least_wrong, most_right)| {
            wrong < least_wrong || wrong == least_wrong && right > most_right
        });
        if right > wrong && is_better {
            best = Some((index, wrong, right));
        }
    }
    best.map(|(index, ..)| index)
}
