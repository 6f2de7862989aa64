//! The flags that a script declares in its first line, or a function when it is registered (Redis
//! documentation, "Script flags").

use catalog::Demand;
use engine::command::Flags;
use engine::refusal::Refusal;
use resp::inline::split_line;

/// Declared flags. A script without a first line of its own declares none, and may do what scripts
/// could before flags existed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Declared {
    pub no_writes: bool,
    pub allow_oom: bool,
    pub allow_stale: bool,
    pub no_cluster: bool,
    /// Has no effect: a shard serves all slots.
    pub allow_cross_slot: bool,
}

impl Declared {
    /// Sets a flag by its name; returns whether there is such a flag.
    #[must_use]
    pub fn set(&mut self, name: &[u8]) -> bool {
        let flag = match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// The flags in a script's first line; `None` if that is a line of Lua.
    ///
    /// # Errors
    /// Redis's text for an invalid first line.
    pub fn of_script(body: &[u8]) -> Result<Option<Self>, Refusal> {
        if !body.starts_with(b"#!") {
            return Ok(None);
        }
        let end = body.iter().position(|byte| *byte == b'\n');
        let line = &body[..end.ok_or(Refusal::of("ERR Invalid script shebang"))?];
        // Words as on a line of the inline protocol: in quotes or not.
        let words = split_line(line).ok_or(Refusal::of("ERR Invalid engine in script shebang"))?;
        let mut words = words.iter();
        let engine = words.next().map(Vec::as_slice).unwrap_or_default();
        if engine != b"#!lua" {
            return Err(unexpected("ERR Unexpected engine in script shebang: ", engine));
        }
        let mut declared = Self::default();
        for word in words {
            let Some(flags) = word.strip_prefix(b"flags=") else {
                return Err(unexpected("ERR Unknown lua shebang option: ", word));
            };
            for flag in flags.split(|byte| *byte == b',').filter(|_| !flags.is_empty()) {
                if !declared.set(flag) {
                    return Err(unexpected("ERR Unexpected flag in script shebang: ", flag));
                }
            }
        }
        Ok(Some(declared))
    }

    /// A script's source without its first line, if that declares flags. The line's end stays, so
    /// that line numbers do.
    pub fn source(body: &[u8]) -> &[u8] {
        let line =
            if body.starts_with(b"#!") { body.split(|byte| *byte == b'\n').next() } else { None };
        &body[line.map_or(0, <[u8]>::len)..]
    }

    /// The demand of a request that runs this script. `flags` are those of the request's command.
    pub fn demand(self, flags: Flags) -> Demand {
        let replaced = Flags::STALE.union(Flags::DENYOOM).union(Flags::WRITE);
        let declared = [
            (Flags::DENYOOM, !self.allow_oom && !self.no_writes),
            (Flags::WRITE, !self.no_writes),
            (Flags::READONLY, self.no_writes),
            (Flags::STALE, self.allow_stale),
        ];
        let flags = flags.without(replaced.union(Flags::MAY_REPLICATE));
        let declared = declared.into_iter().filter(|(_, is_declared)| *is_declared);
        Demand::of(declared.fold(flags, |all, (flag, _)| all.union(flag)), catalog::Kind::Node)
    }
}

#[cold]
fn unexpected(what: &str, word: &[u8]) -> Refusal {
    Refusal::new(format!("{what}{}", String::from_utf8_lossy(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_declares_flags_or_is_refused() {
        let of = |body: &str| Declared::of_script(body.as_bytes()).map_err(|refusal| refusal.0);
        assert_eq!(of("return 1"), Ok(None));
        assert_eq!(of("#!lua\nreturn 1"), Ok(Some(Declared::default())));
        assert_eq!(of("#!lua flags=\nreturn 1"), Ok(Some(Declared::default())));
        assert_eq!(of("#!\"lua\" 'flags='\n"), Ok(Some(Declared::default())));
        let declared = of("#!lua  flags=no-writes,allow-stale\n").expect("it is well formed");
        let expected = Declared { no_writes: true, allow_stale: true, ..Declared::default() };
        assert_eq!(declared, Some(expected));
        for (body, text) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!lua 'flags=no-writes\n", "ERR Invalid engine in script shebang"),
            ("#!lua 'a b'\n", "ERR Unknown lua shebang option: a b"),
            ("#!not-lua\n", "ERR Unexpected engine in script shebang: #!not-lua"),
            ("#!lua flags=none\n", "ERR Unexpected flag in script shebang: none"),
            ("#!lua flags=no-writes,\n", "ERR Unexpected flag in script shebang: "),
            ("#!lua badger=data\n", "ERR Unknown lua shebang option: badger=data"),
        ] {
            assert_eq!(of(body), Err(text.into()), "{body}");
        }
        assert_eq!(Declared::source(b"#!lua flags=\nreturn 1"), b"\nreturn 1");
        assert_eq!(Declared::source(b"return 1\n#!"), b"return 1\n#!");
    }

    #[test]
    fn a_script_needs_what_it_does_not_renounce() {
        let eval = Flags::MAY_REPLICATE.union(Flags::STALE).union(Flags::RUNS_SCRIPT);
        let needs = |declared: Declared, need| declared.demand(eval).has(need);
        let writes = Declared::default();
        for need in [Demand::WRITE, Demand::LOG, Demand::PRIMARY, Demand::ROOM, Demand::FRESH] {
            assert!(needs(writes, need), "{need:?}");
        }
        let reads = Declared { no_writes: true, allow_stale: true, ..writes };
        for need in
            [Demand::WRITE, Demand::LOG, Demand::CALM_LOG, Demand::ROOM, Demand::REPLICATION]
        {
            assert!(!needs(reads, need), "{need:?}");
        }
        assert!(!needs(reads, Demand::FRESH));
        assert!(!needs(Declared { allow_oom: true, ..writes }, Demand::ROOM));
    }
}
