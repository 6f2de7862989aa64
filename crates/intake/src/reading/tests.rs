//! Files in memory, whole, cut and damaged.

mod golden;

use super::*;
use crate::executor::tests::{ask, executor};
use base::disk::{Disk, DiskEntry};
use engine::rdb::Crc64;
use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A file that is read, and nothing else.
struct Bytes(Vec<u8>);

impl DiskFile for Bytes {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn stands_at(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Files by their paths, which are read and nothing else.
pub(crate) struct Files(pub Vec<(&'static str, &'static [u8])>);

impl Disk for Files {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        let (_, bytes) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(Bytes(bytes.to_vec())))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        if self.0.iter().any(|(name, _)| Path::new(name) == directory) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let below = self.0.iter().filter_map(|(name, bytes)| {
            let mut rest = Path::new(name).strip_prefix(directory).ok()?.components();
            let name = rest.next()?.as_os_str().to_string_lossy().into_owned();
            let is_directory = rest.next().is_some();
            let length = if is_directory { 0 } else { bytes.len() as u64 };
            Some(DiskEntry { name, length, is_directory })
        });
        let entries: BTreeSet<DiskEntry> = below.collect();
        match entries.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(entries.into_iter().collect()),
        }
    }

    fn create_new(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn exists(&self, _: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_directory(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock(&self, _: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn part(name: &str, bytes: &[u8]) -> Part {
    let file = Arc::new(Bytes(bytes.to_vec()));
    Part { path: name.into(), length: bytes.len() as u64, file }
}

fn request(line: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    resp::client::request(&words)
}

fn requests(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| request(line)).collect()
}

/// RDB data of version 9 with one key of database 2.
fn rdb() -> Vec<u8> {
    let mut file = b"REDIS0009\xfe\x02\x00\x03key\x05value\xff".to_vec();
    let mut crc = Crc64::default();
    crc.update(&file);
    file.extend_from_slice(&crc.value().to_le_bytes());
    file
}

/// Reads files to their end; the warning.
fn read(executor: &mut Executor, parts: Vec<Part>) -> Result<Option<String>, String> {
    let mut reading = Reading::of_aof(parts);
    while !reading.advance(executor)? {
        assert!(reading.done() <= reading.total());
    }
    assert_eq!(reading.done(), reading.total());
    Ok(reading.warning)
}

#[test]
fn rdb_data_comes_before_requests_in_one_file_or_in_two() {
    let behind = requests(&["SELECT 2", "APPEND key s"]);
    for parts in [
        vec![part("a", &[rdb(), behind.clone()].concat())],
        vec![part("a", &rdb()), part("b", &behind)],
        vec![part("a", b""), part("b", &rdb()), part("c", &behind)],
    ] {
        let mut executor = executor();
        assert_eq!(read(&mut executor, parts), Ok(None));
        assert_eq!(ask(&mut executor, 2, "GET key"), "$6 values");
        assert_eq!(ask(&mut executor, 0, "EXISTS key"), ":0");
    }
}

#[test]
fn annotations_are_passed_over_and_files_begin_in_the_first_database() {
    let first = [b"#TS:1700000000\r\n".to_vec(), requests(&["SELECT 1", "SET a 1"])].concat();
    let second = [requests(&["SET b 1"]), b"#TS:1\r\n#\r\n".to_vec()].concat();
    let mut executor = executor();
    assert_eq!(read(&mut executor, vec![part("a", &first), part("b", &second)]), Ok(None));
    assert_eq!(ask(&mut executor, 0, "MGET a b"), "*2 $-1 $1 1");
}

#[test]
fn wherever_a_crash_cut_the_last_file_what_is_whole_counts() {
    let whole = requests(&["SET a 1", "MULTI", "INCR a", "INCR b", "EXEC", "SET c 1"]);
    let [first, transaction] =
        [&["SET a 1"][..], &["SET a 1", "MULTI", "INCR a", "INCR b", "EXEC"]]
            .map(|lines| requests(lines).len());
    for end in 0..=whole.len() {
        let mut executor = executor();
        let parts = vec![part("zero", &rdb()), part("last", &whole[..end])];
        let warning = read(&mut executor, parts).expect("it is cut, not damaged");
        let (held, begins) = match end {
            _ if end < first => ("*3 $-1 $-1 $-1", 0),
            _ if end < transaction => ("*3 $1 1 $-1 $-1", first),
            _ if end < whole.len() => ("*3 $1 2 $1 1 $-1", transaction),
            _ => ("*3 $1 2 $1 1 $1 1", end),
        };
        assert_eq!(ask(&mut executor, 0, "MGET a b c"), held, "{end} bytes");
        match warning {
            Some(why) => {
                let said = format!("at byte {begins}, {} bytes before the end", end - begins);
                assert!(why.starts_with("last: ") && why.ends_with(&said), "{end} bytes: {why}");
            }
            None => assert_eq!(begins, end),
        }
    }
}

#[test]
fn a_cut_file_that_is_not_the_last_one_is_damaged() {
    let cut = &requests(&["SET a 1", "SET b 1"]);
    let cut = &cut[..cut.len() - 1];
    let why = read(&mut executor(), vec![part("first", cut), part("last", b"")]);
    let why = why.expect_err("it is damaged");
    assert!(why.starts_with("first: it ends within a command that begins at byte 27"), "{why}");
    for end in 6..rdb().len() {
        let why = read(&mut executor(), vec![part("base", &rdb()[..end])]);
        let why = why.expect_err("RDB data is whole or damaged");
        assert!(
            why.starts_with(&format!("base: its RDB data ends too early, at byte {end}")),
            "{why}"
        );
    }
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let good = requests(&["SET a 1"]);
    for (bad, said) in [
        (&b"SET a 1\r\n"[..], "no request begins at byte 27"),
        (b"\r\n", "no request begins at byte 27"),
        (b"*0\r\n", "an empty request at byte 27"),
        (b"*x\r\n", "no request at byte 27"),
        (b"*1\r\n:1\r\n", "no request at byte 27"),
        (b"*2\r\n$3\r\nGET\r\n$-5\r\n", "no request at byte 27"),
        (b"*1\r\n$7\r\nNOSUCH!\r\n", "at byte 27: the command NOSUCH!"),
    ] {
        for behind in [&b""[..], &good] {
            let file = [&good[..], bad, behind].concat();
            let why = read(&mut executor(), vec![part("f", &file)]).expect_err("it is damaged");
            assert!(why.starts_with(&format!("f: {said}")), "{why}");
        }
    }
    let endless = [&good[..], b"#", &vec![b'x'; ANNOTATION_BYTES_MAX]].concat();
    let why = read(&mut executor(), vec![part("f", &endless)]).expect_err("it has no end");
    assert_eq!(why, "f: an annotation without end at byte 27");
}

/// Longer than a piece, as a value and as a transaction.
#[test]
fn large_requests_pass_in_pieces() {
    let value = "v".repeat(3 * PIECE_BYTES + 5);
    let lines: Vec<String> =
        (0..REQUESTS_MAX + 10).map(|number| format!("RPUSH l {number}")).collect();
    let mut file = requests(&[&format!("SET long {value}"), "MULTI"]);
    file.extend(lines.iter().flat_map(|line| request(line)));
    file.extend(requests(&["EXEC", "SET last 1"]));
    let mut executor = executor();
    assert_eq!(read(&mut executor, vec![part("f", &file)]), Ok(None));
    assert_eq!(ask(&mut executor, 0, "STRLEN long"), format!(":{}", value.len()));
    assert_eq!(ask(&mut executor, 0, "LLEN l"), format!(":{}", lines.len()));
    assert_eq!(ask(&mut executor, 0, "GET last"), "$1 1");
}

/// No bytes make it panic; what is read of them does not depend on where pieces end.
#[test]
fn any_bytes_are_read_or_refused() {
    let good = [rdb(), requests(&["SELECT 1", "SET a 1", "MULTI", "INCR a", "EXEC"])].concat();
    let (mut state, mut refused) = (7_u64, 0);
    for _ in 0..3000 {
        let mut file = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % file.len();
            file[at] = (state >> 20) as u8;
        }
        let mut executor = executor();
        if let Err(why) = read(&mut executor, vec![part("f", &file), part("g", &good)]) {
            assert!(why.starts_with("f: ") || why.starts_with("g: "), "{why}");
            refused += 1;
        }
    }
    assert!(refused > 2000, "{refused} of 3000");
}

#[test]
fn an_rdb_file_has_nothing_behind_it() {
    let read = |bytes: &[u8]| {
        let mut executor = executor();
        let mut reading = Reading::of_rdb(part("f", bytes));
        while !reading.advance(&mut executor)? {}
        Ok::<_, String>(ask(&mut executor, 2, "GET key"))
    };
    assert_eq!(read(&rdb()).expect("it is one"), "$5 value");
    let why = read(&[rdb(), requests(&["SET a 1"])].concat()).expect_err("it has");
    assert_eq!(why, format!("f: its RDB data ends before, at byte {}", rdb().len()));
    for bad in [&b""[..], b"x", &requests(&["SET a 1"])] {
        read(bad).expect_err("it is none");
    }
}
