//! The configuration as a whole, against a disk in memory and against what Redis answers.

use super::arguments::{self, CommandLine};
use super::change::{Caller, SetError};
use super::load::{LoadError, load};
use super::rewrite::{Extent, rewrite, rewrite_file};
use super::settings::{Location, engine_settings, node_settings};
use super::table::DIRECTIVES;
use super::*;
use base::slow_memory::MemoryPolicy;
use base::{Disk, DiskFile};
use engine::work::Work;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const CLIENT: Caller = Caller { is_local: true, is_loading: false };

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory, in folders that always exist but for `/missing`.
#[derive(Default)]
struct MemoryDisk(Mutex<BTreeMap<PathBuf, Bytes>>);

struct MemoryFile(Bytes);

impl MemoryDisk {
    fn with(files: &[(&str, &str)]) -> Self {
        let disk = Self::default();
        for (path, text) in files {
            let bytes = Arc::new(Mutex::new(text.as_bytes().to_vec()));
            disk.0.lock().unwrap().insert(PathBuf::from(path), bytes);
        }
        disk
    }

    fn text(&self, path: &str) -> String {
        let files = self.0.lock().unwrap();
        String::from_utf8(files[Path::new(path)].lock().unwrap().clone()).unwrap()
    }
}

impl DiskFile for MemoryFile {
    fn stands_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let rest = &bytes[offset as usize..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.0.lock().unwrap();
        file.truncate(offset as usize);
        file.extend_from_slice(bytes);
        Ok(())
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(length as usize, 0);
        Ok(())
    }
    fn allocate(&self, _offset: u64, length: u64) -> io::Result<()> {
        self.set_length(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let bytes = Bytes::default();
        self.0.lock().unwrap().insert(path.to_path_buf(), Arc::clone(&bytes));
        Ok(Arc::new(MemoryFile(bytes)))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.0.lock().unwrap().contains_key(path))
    }
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match self.0.lock().unwrap().get(path) {
            Some(bytes) => Ok(Arc::new(MemoryFile(Arc::clone(bytes)))),
            None => Err(io::Error::from_raw_os_error(2)),
        }
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open_read(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<base::disk::DiskEntry>> {
        if directory.starts_with("/missing") {
            return Err(io::Error::from_raw_os_error(2));
        }
        let files = self.0.lock().unwrap();
        let inside = files.keys().filter(|path| path.parent() == Some(directory));
        Ok(inside
            .map(|path| base::disk::DiskEntry {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                length: 0,
                is_directory: false,
            })
            .collect())
    }
    fn create_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_path_buf(), bytes);
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.0.lock().unwrap().remove(path) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
    fn remove_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }
    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }
    fn lock(&self, _path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        Ok(Arc::new(()))
    }
}

fn defaults() -> Config {
    Config::new(Path::new("/tmp"))
}

fn shown(config: &Config, name: &str) -> String {
    let found = config.get([name.as_bytes()], &Work::default());
    String::from_utf8(found.first().expect("a known directive").1.clone()).unwrap()
}

fn set(config: &Config, arguments: &[&str]) -> Result<Config, String> {
    let disk = MemoryDisk::default();
    let arguments: Vec<&[u8]> = arguments.iter().map(|a| a.as_bytes()).collect();
    match config.propose(&arguments, CLIENT, &disk) {
        Ok(proposal) => Ok(proposal.config),
        Err(error) => Err(String::from_utf8(error.reply()).unwrap()),
    }
}

/// Starts from one file of this text.
fn start(text: &str) -> Result<Config, String> {
    let disk = MemoryDisk::with(&[("/etc/kiln.conf", text)]);
    let line = CommandLine { file: Some(b"kiln.conf".to_vec()), ..CommandLine::default() };
    load(&disk, Path::new("/etc"), &line, None).map_err(|error| error.to_string())
}

/// Where Kiln answers otherwise than Redis on purpose.
fn is_named_difference(name: &str, answer: &str) -> bool {
    match name {
        // Whether there are certificates for it is for the world to say.
        "tls-replication" | "tls-cluster" => true,
        // Every build can; the one that answered could not.
        "activedefrag" => answer.starts_with("!Active defragmentation cannot"),
        // One choice has two words in Redis; a value of `relative` is not tried.
        _ => false,
    }
}

#[test]
fn names_defaults_and_refusals_are_those_of_redis() {
    let golden = include_str!("tests/redis-7.0.15.tsv");
    let config = defaults();
    let mut compared = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, default, answers @ ..] = &cells[..] else { panic!("{line}") };
        match *name {
            "port" => assert_eq!(shown(&config, "port"), "6379"),
            // The server that answered was started without save points.
            "save" => assert_eq!(shown(&config, "save"), "3600 1 300 100 60 10000"),
            name => assert_eq!(shown(&config, name), *default, "default of {name}"),
        }
        for (value, expected) in ["x", "-1", "1mb", "yes"].iter().zip(answers) {
            if *expected == "(not tried)" || is_named_difference(name, expected) {
                continue;
            }
            let got = match set(&config, &[name, value]) {
                Ok(config) => shown(&config, name),
                Err(error) => {
                    let start =
                        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - ");
                    error.replace(&start, "!")
                }
            };
            assert_eq!(got, *expected, "CONFIG SET {name} {value}");
            compared += 1;
        }
    }
    assert!(compared > 700, "only {compared} answers compared");
}

#[test]
fn only_our_own_directives_are_unknown_to_redis() {
    let golden = include_str!("tests/redis-7.0.15.tsv");
    let known: BTreeSet<&str> = golden.lines().filter_map(|line| line.split('\t').next()).collect();
    for directive in DIRECTIVES {
        assert_eq!(directive.is_own(), !known.contains(directive.name), "{}", directive.name);
    }
}

#[test]
fn the_file_sets_values() {
    let config = start(
        "# comment\n\nport 7000\nMaxMemory 1gb\n  save 60 1\nsave 10 2\nbind 127.0.0.1 ::1\n\
         client-output-buffer-limit normal 1mb 512kb 10\nrequirepass \"a b\"\nslaveof no one\n\
         notify-keyspace-events KEA\nlua-replicate-commands yes\nrename-command KEYS \"\"\n",
    )
    .unwrap();
    assert_eq!(shown(&config, "save"), "60 1 10 2");
    assert_eq!(shown(&config, "bind"), "127.0.0.1 ::1");
    assert_eq!(
        shown(&config, "client-output-buffer-limit"),
        "normal 1048576 524288 10 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
    );
    assert_eq!(shown(&config, "notify-keyspace-events"), "AKE");
    let declared: Vec<&Declared> = config.declarations.iter().map(|line| &line.what).collect();
    assert_eq!(declared, [&Declared::Name { command: b"KEYS".to_vec(), name: Vec::new() }]);
    let node = node_settings(&config);
    assert_eq!(node.port, 7000);
    assert_eq!(config.acl_defaults(), (&b"a b"[..], false));
    assert_eq!(node.transaction_log, Location::Folder("/etc/log".into()));
    assert_eq!(engine_settings(&config).maxmemory, 1 << 30);
}

#[test]
fn default_settings_of_the_engine_are_those_of_the_table() {
    assert_eq!(engine_settings(&defaults()), engine::settings::Settings::default());
}

#[test]
fn a_mistake_stops_the_start_and_names_its_line() {
    let check = |text: &str, line: usize, reason: &str| {
        let error = start(text).unwrap_err();
        assert!(error.contains("*** FATAL CONFIG FILE ERROR (Kiln "), "{error}");
        assert!(error.contains(&format!("at line {line}\n>>> '")), "{error}");
        assert!(error.ends_with(reason), "{error}");
    };
    check("port 1\nfoo bar", 2, "Bad directive or wrong number of arguments");
    check("port", 1, "wrong number of arguments");
    check("port 1 2", 1, "wrong number of arguments");
    check("\n\nport abc", 3, "argument couldn't be parsed into an integer");
    check("port \"1", 1, "Unbalanced quotes in configuration line");
    check("save 1", 1, "Invalid save parameters");
    check("dir /missing/x", 1, "No such file or directory");
    check("replicaof 10.0.0.1 x", 1, "Invalid master port");
    check("loadmodule x.so", 1, "modules are not supported");
    check(
        "transaction-log ftp://x",
        1,
        "argument must be file:PATH or jetstream://…, etcd://…, s3://…, file-object:…",
    );
    check(
        "snapshot-store ftp://x",
        1,
        "argument must be file:PATH or s3://…, gs://…, az://…, file-object:…",
    );
}

#[test]
fn a_missing_file_stops_the_start() {
    let line = CommandLine { file: Some(b"none.conf".to_vec()), ..CommandLine::default() };
    let error = load(&MemoryDisk::default(), Path::new("/etc"), &line, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Fatal error, can't open config file '/etc/none.conf': No such file or directory"
    );
    let file = Some(b"nats://u:secret@host/x".to_vec());
    let line = CommandLine { file, ..CommandLine::default() };
    let error = load(&MemoryDisk::default(), Path::new("/etc"), &line, None).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn options_come_after_the_file_and_the_standard_input() {
    let disk = MemoryDisk::with(&[("/etc/kiln.conf", "port 1\nhz 20\ntimeout 5")]);
    let arguments = ["kiln.conf", "--port", "3", "--save", "--bind", "::1", "127.0.0.1", "-"];
    let line = arguments::parse(&arguments.map(|a| a.as_bytes().to_vec()));
    let config = load(&disk, Path::new("/etc"), &line, Some(b"\nport 2\nhz 9999\n")).unwrap();
    assert_eq!(shown(&config, "port"), "3");
    assert_eq!(shown(&config, "hz"), "500");
    assert_eq!(shown(&config, "timeout"), "5");
    assert_eq!(shown(&config, "save"), "");
    assert_eq!(shown(&config, "bind"), "::1 127.0.0.1");
    assert_eq!(config.file.as_deref(), Some(Path::new("/etc/kiln.conf")));
}

#[test]
fn files_include_files() {
    let disk = MemoryDisk::with(&[
        ("/etc/kiln.conf", "include sub/*.conf\ninclude nothing/*.conf\ninclude b"),
        ("/etc/sub/1.conf", "port 1\nhz 20"),
        ("/etc/sub/2.conf", "port 2"),
        ("/etc/b", "timeout 7"),
        ("/etc/self", "include self"),
        ("/etc/gone", "include none"),
    ]);
    let read = |name: &str| {
        let line = CommandLine { file: Some(name.into()), ..CommandLine::default() };
        load(&disk, Path::new("/etc"), &line, None)
    };
    let config = read("kiln.conf").unwrap();
    let values = ["port", "hz", "timeout"].map(|name| shown(&config, name));
    assert_eq!(values, ["2", "20", "7"]);
    assert!(matches!(read("self"), Err(LoadError::Line { .. })));
    assert!(matches!(read("gone"), Err(LoadError::Unreadable { .. })));
}

#[test]
fn get_takes_several_patterns_and_shows_each_name_once() {
    let config = defaults();
    let names = |patterns: &[&str]| {
        let patterns: Vec<&[u8]> = patterns.iter().map(|p| p.as_bytes()).collect();
        let found = config.get(patterns, &Work::default());
        found.into_iter().map(|(n, _)| String::from_utf8(n).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["maxmemory-s*", "MAXMEMORY", "nosuch"]), ["maxmemory-samples", "MAXMEMORY"]);
    assert_eq!(names(&["PORT", "port"]), ["PORT"]);
    assert_eq!(
        names(&["zset-max-ziplist-*"]),
        ["zset-max-ziplist-entries", "zset-max-ziplist-value"]
    );
    assert_eq!(names(&["key-load-*"]), [""; 0]);
    assert_eq!(names(&["key-load-delay"]), ["key-load-delay"]);
}

#[test]
fn set_is_all_or_nothing() {
    let config = defaults();
    let changed = set(&config, &["maxmemory", "1mb", "slaveof", "x"]);
    assert_eq!(
        changed.unwrap_err(),
        "ERR CONFIG SET failed (possibly related to argument 'slaveof') - can't set immutable config"
    );
    let changed = set(&config, &["hash-max-ziplist-value", "10", "hash-max-listpack-value", "12"]);
    assert_eq!(shown(&changed.unwrap(), "hash-max-ziplist-value"), "12");
    let check = |arguments: &[&str], error: &str| {
        assert_eq!(set(&config, arguments).unwrap_err(), error);
    };
    check(&["port"], "ERR syntax error");
    check(
        &["port", "1", "n\ro", "1"],
        "ERR Unknown option or number of arguments for CONFIG SET - 'n o'",
    );
    check(
        &["Maxmemory", "1mb", "MAXMEMORY", "2mb"],
        "ERR CONFIG SET failed (possibly related to argument 'MAXMEMORY') - duplicate parameter",
    );
    check(
        &["dir", "/tmp"],
        "ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config",
    );
    check(
        &["save", "1  2"],
        "ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters",
    );
    check(
        &["latency-tracking-info-percentiles", "101"],
        "ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') \
         - latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
    );
}

#[test]
fn our_own_directives_may_be_written_back() {
    let config = defaults();
    let log = shown(&config, "transaction-log");
    assert_eq!(log, "file:/tmp/log");
    let again = set(&config, &["transaction-log", &log, "metrics-port", "0", "timeout", "3"]);
    assert_eq!(shown(&again.unwrap(), "timeout"), "3");
    assert!(set(&config, &["metrics-port", "1"]).unwrap_err().contains("immutable"));
}

#[test]
fn some_directives_wait_for_the_data_set() {
    let caller = Caller { is_loading: true, ..CLIENT };
    let error = defaults().propose(&[b"appendonly", b"yes"], caller, &MemoryDisk::default());
    assert_eq!(error.unwrap_err(), SetError::Loading);
}

#[test]
fn protected_directives_open_with_permission() {
    let config = start("enable-protected-configs local").unwrap();
    let disk = MemoryDisk::default();
    let moved = config.propose(&[b"dir", b"sub/../x"], CLIENT, &disk).unwrap().config;
    assert_eq!(shown(&moved, "dir"), "/etc/x");
    assert_eq!(node_settings(&moved).transaction_log, Location::Folder("/etc/log".into()));
    let remote = Caller { is_local: false, ..CLIENT };
    assert!(config.propose(&[b"dir", b"x"], remote, &disk).is_err());
}

#[test]
fn one_warning_says_that_durability_is_fixed() {
    let config = start("appendonly no\nsave \"\"\nappendfsync no\ndaemonize yes\nport 1").unwrap();
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("none of them weakens durability"));
    assert_eq!(warnings[1], "accepted and without effect: daemonize");
    assert_eq!(start("port 1\nappendfsync everysec").unwrap().warnings(), [""; 0]);
}

#[test]
fn a_log_on_other_machines_is_trimmed_only_where_they_reach_the_snapshots() {
    let service = "transaction-log etcd://a:2379/x";
    let private = start(service).unwrap();
    assert!(node_settings(&private).snapshots_are_private);
    assert_eq!(private.warnings().len(), 1);
    assert!(private.warnings()[0].contains("nothing is ever trimmed"));
    let named = format!("{service}\nsnapshot-store file:/shared");
    let url = format!("{service}\nsnapshot-store s3://bucket/shard");
    for text in [&named, &url, "transaction-log file:/a", "port 1"] {
        let config = start(text).unwrap();
        assert!(!node_settings(&config).snapshots_are_private, "{text}");
        assert_eq!(config.warnings(), [""; 0], "{text}");
    }
}

#[test]
fn snapshots_lie_in_a_directory_or_in_an_object_store() {
    let store = |text: &str| node_settings(&start(text).expect("it is right")).snapshot_store;
    assert_eq!(store("port 1"), Location::Folder("/etc/snapshots".into()));
    assert_eq!(store("snapshot-store file:/shared"), Location::Folder("/shared".into()));
    let url = "s3://bucket/shard?endpoint=http://127.0.0.1:1&allow_http=true";
    assert_eq!(store(&format!("snapshot-store {url}")), Location::Url(url.to_owned()));
    let config = start(&format!("snapshot-store {url}")).expect("it is right");
    assert_eq!(shown(&config, "snapshot-store"), url);
}

#[test]
fn credentials_of_the_log_are_written_to_the_file_and_shown_to_nobody() {
    let text = "transaction-log etcd://user:marker@a:1/x\nrequirepass marker\n";
    let config = start(text).expect("it is right");
    assert_eq!(shown(&config, "transaction-log"), "etcd://(redacted)@a:1/x");
    set(&config, &["transaction-log", "etcd://(redacted)@a:1/x"]).expect("it is written back");
    let rewritten = rewrite(text.as_bytes(), &config, &[], Extent::Needed);
    let rewritten = String::from_utf8(rewritten).expect("text");
    assert!(rewritten.contains("\"etcd://user:marker@a:1/x\""), "{rewritten}");
    for line in [
        "transaction-log nats://user:marker@a/x",
        "transaction-log etcd://user:marker@a/x too much",
        "\"requirepass\" marker marker",
        "masterauth marker marker",
        "tls-key-file-pass marker marker",
    ] {
        let error = start(line).expect_err(line);
        let first = line.split(' ').next().expect("a word");
        assert!(error.contains(first) && error.contains(">>>"), "{error}");
        assert!(!error.contains("marker"), "{line}: {error}");
    }
}

#[test]
fn a_tier_lies_in_a_directory_and_takes_at_most_so_much() {
    let tier = |config: &Config| node_settings(config).tier;
    let none = tier(&defaults());
    assert_eq!((none.path, none.bytes_max, none.read_threads), (None, 0, 16));
    assert_eq!((none.value_bytes_min, none.value_bytes_max), (64, 7 << 20));
    assert!(tier(&defaults()).takes_io_uring);
    assert!(!tier(&start("tier-io-uring no").unwrap()).takes_io_uring);
    let config = start("tier-max 3gb\ntier file:values\ntier-read-threads 64").unwrap();
    assert_eq!(tier(&config).path, Some("/etc/values".into()));
    assert_eq!((tier(&config).bytes_max, tier(&config).read_threads), (3 << 30, 64));
    assert_eq!(shown(&config, "tier"), "file:values");
    let config = set(&config, &["tier", "file:/nvme/../ssd", "tier-value-min", "1kb"]).unwrap();
    assert_eq!(tier(&config).path, Some("/ssd".into()));
    assert_eq!(tier(&config).value_bytes_min, 1024);
    let rewritten = rewrite(b"tier file:values\n", &config, &[], Extent::Needed);
    let rewritten = String::from_utf8(rewritten).unwrap();
    assert!(rewritten.starts_with("tier \"file:/nvme/../ssd\"\n"), "{rewritten}");
    assert!(rewritten.contains("\ntier-max 3gb\n"), "{rewritten}");
    assert!(!rewritten.contains("tier-value-max"), "{rewritten}");
    let config = set(&config, &["tier", ""]).unwrap();
    assert_eq!(tier(&config).path, None);
    let rewritten = rewrite(b"tier file:values\n", &config, &[], Extent::Needed);
    assert!(!String::from_utf8(rewritten).unwrap().contains("tier \""));
}

#[test]
fn a_tier_that_makes_no_sense_is_refused_with_the_reason() {
    for (text, reason) in [
        ("tier /nvme", "must be file:PATH"),
        ("tier file:/nvme", "tier needs tier-max"),
        ("tier file:/nvme\ntier-max 0", "tier needs tier-max"),
        ("tier-max 1gb\ntier-read-threads 0", "between 1 and 64"),
        ("tier-max 1gb\ntier-read-threads 65", "between 1 and 64"),
        ("tier-max 1tb", "must be a memory value"),
        ("tier-value-min 8mb\ntier file:a\ntier-max 1gb", "not be more than tier-value-max"),
    ] {
        let error = start(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
    // Of no consequence without a tier.
    let config = start("tier-value-min 1mb").unwrap();
    assert!(set(&config, &["timeout", "3"]).is_ok());
    let refused = |config: &Config, arguments: &[&str]| set(config, arguments).unwrap_err();
    assert_eq!(
        refused(&defaults(), &["timeout", "3", "tier", "file:/nvme"]),
        "ERR CONFIG SET failed (possibly related to argument 'tier') - tier needs tier-max: the \
         bytes that it may take, for instance tier-max 100gb"
    );
    let config = set(&defaults(), &["tier", "file:/nvme", "tier-max", "1gb"]).unwrap();
    assert!(refused(&config, &["tier-max", "0"]).contains("'tier-max'"));
    assert!(refused(&config, &["tier-value-max", "63"]).contains("tier-value-min"));
    assert!(refused(&config, &["tier", "s3://bucket"]).contains("must be file:PATH"));
    assert!(set(&config, &["tier", "", "tier-max", "0"]).is_ok());
}

#[test]
fn slow_memory_is_described_in_memkeydbs_words() {
    let memory = |config: &Config| node_settings(config).slow_memory;
    let none = memory(&defaults());
    assert_eq!((none.policy, none.nodes), (MemoryPolicy::OnlyDram, None));
    assert_eq!(none.check_period_ms, 100);
    let policy = |text: &str| memory(&start(text).unwrap()).policy;
    assert_eq!(policy("memory-alloc-policy only-pmem"), MemoryPolicy::OnlyPmem);
    assert_eq!(
        policy("static-threshold 1kb\nmemory-alloc-policy threshold"),
        MemoryPolicy::Threshold { bytes: 1024 }
    );
    let of_ratio = |dram, pmem, min_bytes| MemoryPolicy::Ratio {
        dram,
        pmem,
        first_bytes: 64,
        min_bytes,
        max_bytes: 10_000,
    };
    assert_eq!(policy("memory-alloc-policy ratio"), of_ratio(1, 3, 24));
    let config = start("memory-alloc-policy ratio\ndram-pmem-ratio 1 8").unwrap();
    assert_eq!(shown(&config, "dram-pmem-ratio"), "1 8");
    let config = set(&config, &["dram-pmem-ratio", "2 5", "dynamic-threshold-min", "48"]).unwrap();
    assert_eq!(memory(&config).policy, of_ratio(2, 5, 48));
    let rewritten = rewrite(b"dram-pmem-ratio 1 8\n", &config, &[], Extent::Needed);
    let rewritten = String::from_utf8(rewritten).unwrap();
    assert!(rewritten.starts_with("dram-pmem-ratio 2 5\n"), "{rewritten}");
    let is_table_slow = |text: &str| !memory(&start(text).unwrap()).table_on_dram;
    assert!(!is_table_slow("") && !is_table_slow("hashtable-on-dram yes"));
    assert!(is_table_slow("hashtable-on-dram no"));
    let nodes = |text: &str| memory(&start(text).unwrap()).nodes;
    assert_eq!(nodes("slow-memory-nodes 1,12"), Some(vec![1, 12]));
    assert_eq!(nodes("slow-memory-nodes \"2 3\""), Some(vec![2, 3]));
    assert_eq!(nodes("slow-memory-nodes auto"), None);
}

#[test]
fn slow_memory_that_makes_no_sense_is_refused_with_the_reason() {
    for (text, reason) in [
        ("memory-alloc-policy half", "only-dram, only-pmem, threshold, ratio"),
        ("dram-pmem-ratio 1", "must be two numbers"),
        ("dram-pmem-ratio 1 0", "between 1 and"),
        ("dram-pmem-ratio 1 x", "between 1 and"),
        ("memory-ratio-check-period 0", "between 1 and"),
        ("slow-memory-nodes fast", "must be auto, or numbers"),
        ("slow-memory-nodes 1,,2", "must be auto, or numbers"),
        ("slow-memory-nodes \"\"", "must be auto, or numbers"),
        ("slow-memory-nodes +1", "must be auto, or numbers"),
        ("slow-memory-nodes 1,2,01", "twice"),
        ("slow-memory-nodes 1,2,3,4,5", "more than four"),
        ("hashtable-on-dram maybe", "must be 'yes' or 'no'"),
    ] {
        let error = start(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
    for directive in ["memory-alloc-policy", "slow-memory-nodes", "hashtable-on-dram"] {
        let refused = set(&defaults(), &[directive, "1"]).unwrap_err();
        assert!(refused.contains("immutable"), "{directive}: {refused}");
    }
}

#[test]
fn rewrite_keeps_comments_and_order() {
    let old = "# first\nport 1\n\n\n# second\nsave 1 1\nsave 2 2\nmaxmemory 5\n\n\
               nosuch thing\nslave-priority 3\nhz 10\n";
    let config = start(&old.replace("nosuch thing\n", "")).unwrap();
    let config = set(&config, &["save", "7 7", "maxmemory", "2mb", "timeout", "9"]).unwrap();
    let new = String::from_utf8(rewrite(old.as_bytes(), &config, &[], Extent::Needed)).unwrap();
    let expected = "# first\nport 1\n\n# second\nsave 7 7\n\nmaxmemory 2mb\n\n\
                    # ??? nosuch thing\nreplica-priority 3\nhz 10\n\n\
                    # Generated by CONFIG REWRITE\ntimeout 9\ndir \"/etc\"\n\
                    latency-tracking-info-percentiles 50 99 99.9\n";
    assert_eq!(new, expected);
    let again = String::from_utf8(rewrite(new.as_bytes(), &config, &[], Extent::Needed)).unwrap();
    assert_eq!(again, format!("{expected}\n"));
}

#[test]
fn rewrite_replaces_the_lines_of_users_and_with_an_acl_file_takes_them_out() {
    let old = "user alice on\nport 1\nUSER bob off\n";
    let users = [b"user alice off".to_vec(), b"user carol on".to_vec(), b"user dave on".to_vec()];
    let rewritten = |users: &[Vec<u8>]| {
        let text = rewrite(old.as_bytes(), &start(old).unwrap(), users, Extent::Needed);
        let text = String::from_utf8(text).unwrap();
        text.lines().filter(|line| line.starts_with("user")).collect::<Vec<_>>().join("|")
    };
    assert_eq!(rewritten(&users), "user alice off|user carol on|user dave on");
    assert_eq!(rewritten(&[]), "");
}

#[test]
fn users_are_declared_in_one_place_only() {
    let error = start("user alice on\naclfile users.acl").unwrap_err();
    assert!(error.contains("declare them in one of the two"), "{error}");
}

#[test]
fn a_rewritten_file_says_what_the_server_does() {
    let mut config = defaults();
    for pair in [
        ["requirepass", "p \"w\"\n"],
        ["client-output-buffer-limit", "replica 1 2 3"],
        ["notify-keyspace-events", "Kg"],
        ["maxmemory-clients", "5%"],
        ["shutdown-on-sigterm", "nosave now"],
        ["save", ""],
        ["bind", ""],
        ["latency-tracking-info-percentiles", ""],
        ["oom-score-adj-values", "1 2 3"],
        ["tier-max", "5gb"],
        ["tier", "file:/nvme/a \"b\""],
    ] {
        config = set(&config, &pair).unwrap();
    }
    let disk = MemoryDisk::with(&[("/etc/kiln.conf.rewrite", "left behind")]);
    rewrite_file(&disk, Path::new("/etc/kiln.conf"), &config, &[], Extent::Needed).unwrap();
    let again = start(&disk.text("/etc/kiln.conf")).unwrap();
    let work = Work::default();
    assert_eq!(config.get([&b"*"[..]], &work).len(), again.get([&b"*"[..]], &work).len());
    for (before, after) in
        config.get([&b"*"[..]], &work).into_iter().zip(again.get([&b"*"[..]], &work))
    {
        let is_place = before.0 == b"transaction-log" || before.0 == b"snapshot-store";
        assert!(is_place || before == after, "{:?}", String::from_utf8_lossy(&before.0));
    }
}

/// The part of `docs/compatibility.md` that follows from the table: reasons, and what each is for.
fn unused_directives() -> String {
    let mut by_reason: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for directive in DIRECTIVES {
        let (what, reason) = match directive.meaning {
            directive::Meaning::Used => continue,
            directive::Meaning::Shown(reason) => ("shown, changes nothing", reason),
        };
        match by_reason.iter_mut().find(|(w, r, _)| (*w, *r) == (what, reason)) {
            Some((_, _, names)) => names.push(directive.name),
            None => by_reason.push((what, reason, vec![directive.name])),
        }
    }
    let mut text = String::new();
    for (what, reason, names) in by_reason {
        text += &format!("| `{}` | {what} | {reason} |\n", names.join("`, `"));
    }
    text
}

#[test]
fn directives_that_change_nothing_are_named_in_the_page_of_differences() {
    let page = include_str!("../../../docs/compatibility.md");
    let expected = unused_directives();
    assert!(page.contains(&expected), "docs/compatibility.md must contain:\n{expected}");
}
