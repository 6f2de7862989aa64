//! Keyspace notifications: the classes of events and their letters in `notify-keyspace-events`
//! (Redis documentation, "Redis keyspace notifications").

use crate::subscribers::Receiver;
use base::DatabaseId;

/// A class of events; the numbers are bits of `notify_keyspace_events`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Class {
    /// `K`: publish to `__keyspace@db__:key`.
    Keyspace = 1,
    /// `E`: publish to `__keyevent@db__:event`.
    Keyevent = 1 << 1,
    /// `g`: commands on keys of any type.
    Generic = 1 << 2,
    /// `$`
    String = 1 << 3,
    /// `l`
    List = 1 << 4,
    /// `s`
    Set = 1 << 5,
    /// `h`
    Hash = 1 << 6,
    /// `z`
    SortedSet = 1 << 7,
    /// `x`
    Expired = 1 << 8,
    /// `e`
    Evicted = 1 << 9,
    /// `t`
    Stream = 1 << 10,
    /// `m`: a key was asked for and is not there. Not part of `A`.
    KeyMiss = 1 << 11,
    /// `d`
    Module = 1 << 13,
    /// `n`: a new key. Not part of `A`.
    New = 1 << 14,
}

const LETTERS: [(u8, Class); 14] = [
    (b'K', Class::Keyspace),
    (b'E', Class::Keyevent),
    (b'g', Class::Generic),
    (b'$', Class::String),
    (b'l', Class::List),
    (b's', Class::Set),
    (b'h', Class::Hash),
    (b'z', Class::SortedSet),
    (b'x', Class::Expired),
    (b'e', Class::Evicted),
    (b't', Class::Stream),
    (b'd', Class::Module),
    (b'm', Class::KeyMiss),
    (b'n', Class::New),
];

/// What `A` stands for: every class but `K`, `E`, `m` and `n`.
const ALL: u32 = Class::Generic as u32
    | Class::String as u32
    | Class::List as u32
    | Class::Set as u32
    | Class::Hash as u32
    | Class::SortedSet as u32
    | Class::Expired as u32
    | Class::Evicted as u32
    | Class::Stream as u32
    | Class::Module as u32;

/// Parses `notify-keyspace-events`; `None` if a letter is unknown.
pub fn parse_classes(text: &str) -> Option<u32> {
    text.bytes().try_fold(0, |classes, letter| match letter {
        b'A' => Some(classes | ALL),
        _ => LETTERS.iter().find(|(l, _)| *l == letter).map(|(_, c)| classes | *c as u32),
    })
}

/// Formats classes as CONFIG GET shows them.
pub fn format_classes(classes: u32) -> String {
    let mut text = String::new();
    if classes & ALL == ALL {
        text.push('A');
    }
    // Redis prints what `A` covers first, then n, which it does not print beside `A` although `A`
    // does not cover it, then K, E and m.
    let order = "g$lshzxetdnKEm";
    let beside_all = Class::Keyspace as u32 | Class::Keyevent as u32 | Class::KeyMiss as u32;
    let shown = if classes & ALL == ALL { classes & beside_all } else { classes };
    for letter in order.bytes() {
        let Some((_, class)) = LETTERS.iter().find(|(l, _)| *l == letter) else { continue };
        if shown & *class as u32 != 0 {
            text.push(char::from(letter));
        }
    }
    text
}

/// A message for subscribers, published when everything its unit touched is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub channel: Vec<u8>,
    pub payload: Vec<u8>,
    /// Sent by SPUBLISH: only to subscribers of the shard channel.
    pub sharded: bool,
    /// Who was subscribed when it was published; never empty.
    pub receivers: Vec<Receiver>,
}

/// An event on a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyEvent<'a> {
    pub class: Class,
    /// Redis's name for what happened: `set`, `lpush`.
    pub name: &'a str,
    pub database: DatabaseId,
    pub key: &'a [u8],
}

impl<'a> KeyEvent<'a> {
    /// Channels and payloads of the messages that the event gives rise to, if its class is among
    /// `classes`: to the channel of its key, and to that of its name.
    pub fn messages(&self, classes: u32) -> [Option<(Vec<u8>, &'a [u8])>; 2] {
        let message = |form: Class, prefix: &str, name: &[u8], payload: &'a [u8]| {
            let is_wanted = classes & self.class as u32 != 0 && classes & form as u32 != 0;
            is_wanted.then(|| {
                let mut channel = format!("{prefix}@{}__:", self.database.0).into_bytes();
                channel.extend_from_slice(name);
                (channel, payload)
            })
        };
        let (key, name) = (self.key, self.name.as_bytes());
        [
            message(Class::Keyspace, "__keyspace", key, name),
            message(Class::Keyevent, "__keyevent", name, key),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_print_as_redis_prints_them() {
        for (text, printed) in [
            ("KEA", "AKE"),
            ("KE$lshzxegtd", "AKE"),
            ("Kg$", "g$K"),
            ("", ""),
            ("mnKE", "nKEm"),
            ("AnmK", "AKm"),
        ] {
            assert_eq!(format_classes(parse_classes(text).expect("valid")), printed, "{text}");
        }
        assert_eq!(parse_classes("Kq"), None);
    }
}
