//! The manifest of an append-only file: a line for each file, as words in pairs.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.7.incr.aof seq 7 type i
//! ```
//! Types: `b` the base, of which there is at most one, and which comes first; `i` commands behind
//! it, by ascending `seq`; `h` a file that counts no more. Lines that begin with `#`, and pairs of
//! words that are not known, are passed over, as Redis does.

use resp::inline::split_line;
use resp::integer::parse_u64;

/// The names of the files that count, the base first.
///
/// # Errors
/// It is no manifest.
pub fn files(text: &[u8]) -> Result<Vec<String>, String> {
    let (mut base, mut behind, mut newest) = (None, Vec::new(), 0);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let number = number + 1;
        let wrong = |what: &str| format!("line {number} {what}");
        let line = Line::of(line).ok_or_else(|| wrong("names no file of an append-only file"))?;
        match line.kind {
            b'b' if base.is_some() => return Err(wrong("names a second base")),
            b'b' => base = Some(line.name),
            b'i' if line.sequence <= newest => return Err(wrong("has no ascending 'seq'")),
            b'i' => {
                newest = line.sequence;
                behind.push(line.name);
            }
            _ => {}
        }
    }
    let names: Vec<String> = base.into_iter().chain(behind).collect();
    if names.is_empty() { Err("it names no file".to_owned()) } else { Ok(names) }
}

struct Line {
    name: String,
    sequence: u64,
    kind: u8,
}

impl Line {
    fn of(line: &[u8]) -> Option<Self> {
        let words = split_line(line)?;
        let (pairs, rest) = words.as_chunks::<2>();
        let value = |wanted: &str| {
            let is_wanted = |key: &[u8]| key.eq_ignore_ascii_case(wanted.as_bytes());
            let mut found = pairs.iter().filter(|[key, _]| is_wanted(key));
            found.next_back().map(|[_, value]| value.as_slice())
        };
        let name = std::str::from_utf8(value("file")?).ok()?.to_owned();
        // It lies beside the manifest, whatever the manifest says.
        let is_plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        let sequence = parse_u64(value("seq")?).filter(|sequence| *sequence > 0)?;
        let kind = match value("type")? {
            &[kind @ (b'b' | b'i' | b'h')] => kind,
            _ => return None,
        };
        (rest.is_empty() && is_plain).then_some(Self { name, sequence, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_in_which_they_count() {
        let text = "# by hand\r\nfile a.1.incr.aof seq 1 type h\nfile a.2.base.rdb seq 2 type b\n\
                    file a.2.incr.aof seq 2 type i\n\
                    file \"a b.incr.aof\" seq 3 type i startoffset 7\n";
        let expected = ["a.2.base.rdb", "a.2.incr.aof", "a b.incr.aof"];
        assert_eq!(files(text.as_bytes()).expect("it is one"), expected);
        assert_eq!(files(b"file x seq 1 type i").expect("without an end"), ["x"]);
    }

    #[test]
    fn what_is_no_manifest_is_said_by_its_line() {
        for (text, said) in [
            ("", "it names no file"),
            ("#\n\n", "it names no file"),
            ("file a seq 1 type b\nfile b seq 1 type b", "line 2 names a second base"),
            ("file a seq 2 type i\nfile b seq 2 type i", "line 2 has no ascending 'seq'"),
            ("file ../a seq 1 type i", "line 1 names no file"),
            ("file .. seq 1 type i", "line 1 names no file"),
            ("file a seq 0 type i", "line 1 names no file"),
            ("file a seq 1 type x", "line 1 names no file"),
            ("file a seq 1 type", "line 1 names no file"),
            ("seq 1 type i", "line 1 names no file"),
            ("file \"a seq 1 type i", "line 1 names no file"),
            ("\0\u{7f}REDIS", "line 1 names no file"),
        ] {
            let why = files(text.as_bytes()).expect_err(text);
            assert!(why.starts_with(said), "{text}: {why}");
        }
    }
}
