//! Libraries of functions, as data: code by library name (Redis documentation, "Redis functions").
//! Effects, snapshots and RDB files carry them; the node compiles and runs them.
//!
//! They belong to the shard, not to a database: FLUSHALL does not delete them.

use resp::inline::split_line;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The loaded libraries.
#[derive(Clone, Default, Debug)]
pub struct Libraries {
    by_name: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// Counts changes in this process: the node compares it, to know whether to compile again.
    changes: u64,
}

impl Libraries {
    /// All libraries: name and code, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Arc<[u8]>)> {
        self.by_name.iter().map(|(name, code)| (name.as_slice(), code))
    }

    pub fn code(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        self.by_name.get(name)
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A count that grows with each change, in this process.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Loads a library, in place of one with the same name.
    ///
    /// # Errors
    /// The first line names no library; in Redis's words.
    pub fn load(&mut self, code: &[u8]) -> Result<(), String> {
        let name = Header::of(code)?.name;
        self.by_name.insert(name, code.into());
        self.changes += 1;
        Ok(())
    }

    /// Deletes a library; returns whether it existed.
    pub fn delete(&mut self, name: &[u8]) -> bool {
        let was_there = self.by_name.remove(name).is_some();
        self.changes += u64::from(was_there);
        was_there
    }

    /// Deletes all libraries; returns whether there were any.
    pub(crate) fn flush(&mut self) -> bool {
        let were_there = !self.by_name.is_empty();
        self.by_name.clear();
        self.changes += u64::from(were_there);
        were_there
    }
}

/// The first line of a library, parsed: `#!lua name=mylib`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    pub engine: Vec<u8>,
    pub name: Vec<u8>,
    /// The code behind the first line, from that line's end on, so that line numbers stay.
    pub body: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the first line of a library.
    ///
    /// # Errors
    /// Redis's text for what is wrong with the line.
    pub fn of(code: &'a [u8]) -> Result<Self, String> {
        if !code.starts_with(b"#!") {
            return Err("Missing library metadata".to_owned());
        }
        let end = code.iter().position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| "Invalid library metadata".to_owned())?;
        // Words as on a line of the inline protocol: in quotes or not.
        let words =
            split_line(&code[..end]).ok_or_else(|| "Invalid library metadata".to_owned())?;
        let mut words = words.iter();
        let engine = words.next().and_then(|word| word.strip_prefix(b"#!")).unwrap_or_default();
        let mut name = None;
        for word in words {
            let (key, value) = word.split_at(word.len().min(5));
            if !key.eq_ignore_ascii_case(b"name=") {
                let word = String::from_utf8_lossy(word);
                return Err(format!("Invalid metadata value given: {word}"));
            }
            if name.replace(value.to_vec()).is_some() {
                let text = "Invalid metadata value, name argument was given multiple times";
                return Err(text.to_owned());
            }
        }
        let name = name.ok_or_else(|| "Library name was not given".to_owned())?;
        if name.is_empty() || !name.iter().all(|it| it.is_ascii_alphanumeric() || *it == b'_') {
            return Err("Library names can only contain letters, numbers, or underscores(_) and \
                        must be at least one character long"
                .to_owned());
        }
        Ok(Self { engine: engine.to_vec(), name, body: &code[end..] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_library() {
        let header = Header::of(b"#!lua name=lib\ncode").expect("it is well formed");
        assert_eq!(
            (&header.engine[..], &header.name[..], header.body),
            (&b"lua"[..], &b"lib"[..], &b"\ncode"[..])
        );
        let quoted = Header::of(b"#!lua 'name=lib'\n").expect("words may stand in quotes");
        assert_eq!(quoted.name, b"lib");
        for (code, text) in [
            ("code", "Missing library metadata"),
            ("#!lua name=a", "Invalid library metadata"),
            ("#!lua name='a\n", "Invalid library metadata"),
            ("#!lua\n", "Library name was not given"),
            (
                "#!lua name=a name=b\n",
                "Invalid metadata value, name argument was given multiple times",
            ),
            ("#!lua name=a foo=b\n", "Invalid metadata value given: foo=b"),
            (
                "#!lua name=a-b\n",
                "Library names can only contain letters, numbers, or underscores(_) and must be at \
                 least one character long",
            ),
        ] {
            assert_eq!(Header::of(code.as_bytes()), Err(text.to_owned()), "{code}");
        }
    }

    #[test]
    fn a_library_replaces_the_one_of_its_name() {
        let mut libraries = Libraries::default();
        libraries.load(b"#!lua name=a\n1").expect("it has a name");
        libraries.load(b"#!lua name=a\n2").expect("it has a name");
        assert_eq!(libraries.len(), 1);
        assert_eq!(
            libraries.code(b"a").map(|code| code.to_vec()),
            Some(b"#!lua name=a\n2".to_vec())
        );
        assert!(libraries.delete(b"a") && !libraries.delete(b"a") && !libraries.flush());
        assert_eq!(libraries.changes(), 3);
    }
}
