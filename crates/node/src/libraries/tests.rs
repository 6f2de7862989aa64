use super::*;
use base::{Clock, MonotonicNanos};
use std::sync::atomic::{AtomicU64, Ordering};

const ONE: &str = "#!lua name=one\nredis.register_function('f', function() return 1 end)";

/// A clock that shows a millisecond more whenever it is looked at.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

fn compile(libraries: &mut CompiledLibraries, code: &str) -> Result<Registered, String> {
    let mut asked = 0;
    let mut is_late = || {
        asked += 1;
        asked > 1
    };
    let compiled = libraries.compile(code.as_bytes(), &mut is_late);
    compiled.map_err(|refusal| refusal.0.into_owned())
}

fn data(codes: &[&str]) -> functions::Libraries {
    let mut data = functions::Libraries::default();
    for code in codes {
        data.load(code.as_bytes()).expect("it has a name");
    }
    data
}

/// One turn's part of the loading: one pause.
fn turn(libraries: &mut CompiledLibraries, data: &functions::Libraries, clock: &Ticking) {
    libraries.advance(data, &mut Slice::new(clock, Work::default(), u64::MAX, 1));
}

/// Loads all that is missing; the number of turns.
fn load_all(libraries: &mut CompiledLibraries, data: &functions::Libraries) -> usize {
    let clock = Ticking::default();
    let mut turns = 0;
    while libraries.is_behind(data) {
        turn(libraries, data, &clock);
        turns += 1;
    }
    turns
}

/// A library whose code holds `kept` numbers, and once held `passing` more.
fn heavy(name: &str, kept: usize, passing: usize) -> String {
    format!(
        "#!lua name={name}\nlocal kept = {{}} for i = 1, {kept} do kept[i] = i end\n\
         do local t = {{}} for i = 1, {passing} do t[i] = i end end\n\
         redis.register_function('of_{name}', function() return #kept end)"
    )
}

#[test]
fn code_that_is_no_library_is_refused_in_redis_words() {
    let libraries = &mut CompiledLibraries::default();
    for (code, text) in [
        ("return 1", "ERR Missing library metadata"),
        ("#!perl name=a\n", "ERR Engine 'perl' not found"),
        ("#!lua name=a\nreturn 1", "ERR No functions registered"),
        (
            "#!lua name=a\nbad code",
            "ERR Error compiling function: user_function:2: '=' expected near 'code'",
        ),
    ] {
        assert_eq!(compile(libraries, code).map(drop), Err(text.to_owned()), "{code}");
    }
    let text = compile(libraries, "#!lua name=a\nwhile true do end").expect_err("it is late");
    assert!(text.contains("FUNCTION LOAD timeout"), "{text}");
    let short = libraries.compile(ONE.as_bytes(), &mut || true);
    assert!(short.is_err(), "the one before took all the time of a payload");
}

#[test]
fn a_function_is_found_by_its_name_as_long_as_its_library_is_there() {
    let libraries = &mut CompiledLibraries::default();
    let functions = compile(libraries, ONE).expect("it is a library");
    let mut data = data(&[ONE]);
    libraries.adopt(b"one", functions, &data);
    assert!(!libraries.is_behind(&data), "nothing is left to load");
    assert_eq!(libraries.owner(b"f"), Some(&b"one"[..]));
    assert_eq!(libraries.function(b"F").map(|(name, _)| name), Some(&b"f"[..]));
    assert_eq!(libraries.functions_len(), 1);
    data.load(b"#!lua name=one\nredis.register_function('g', function() end)").expect("named");
    load_all(libraries, &data);
    assert!(libraries.function(b"f").is_none() && libraries.function(b"g").is_some());
    assert!(data.delete(b"one"));
    libraries.follow(&data, &Work::default());
    assert!(libraries.functions_len() == 0 && !libraries.contains(b"one"));
}

#[test]
fn a_library_is_loaded_in_as_many_turns_as_it_takes() {
    let libraries = &mut CompiledLibraries::default();
    let slow = "#!lua name=slow\nfor i = 1, 100000 do local x = i end\n\
                redis.register_function('s', function() end)";
    let mut data = data(&[ONE, slow]);
    assert!(load_all(libraries, &data) > 10, "each turn takes one pause");
    assert_eq!(libraries.functions_len(), 2);
    // What is replaced while it is loaded is given up; what is deleted, too.
    let endless = "#!lua name=slow\nwhile true do end";
    data.load(endless.as_bytes()).expect("named");
    let clock = Ticking::default();
    (0..3).for_each(|_| turn(libraries, &data, &clock));
    assert!(libraries.is_behind(&data), "{}", libraries.not_found().0);
    assert!(libraries.function(b"s").is_none());
    assert!(libraries.contains(b"slow"));
    data.load(slow.as_bytes()).expect("named");
    load_all(libraries, &data);
    assert!(libraries.function(b"s").is_some());
    data.load(endless.as_bytes()).expect("named");
    (0..3).for_each(|_| turn(libraries, &data, &clock));
    assert!(data.delete(b"slow"));
    libraries.follow(&data, &Work::default());
    assert!(!libraries.is_behind(&data) && libraries.function(b"f").is_some());
}

#[test]
fn a_library_that_cannot_be_loaded_is_named() {
    let libraries = &mut CompiledLibraries::default();
    let again = "#!lua name=two\nredis.register_function('F', function() return 2 end)";
    let mut data = data(&[ONE, again]);
    load_all(libraries, &data);
    assert!(libraries.functions_len() == 1 && libraries.contains(b"two"));
    let text = "ERR Function not found, and the library 'two' could not be loaded: \
                Function F already exists";
    assert_eq!(libraries.not_found().0, text);
    assert_eq!(libraries.failed_len(), 1, "INFO says so");
    assert!(data.delete(b"one"));
    load_all(libraries, &data);
    assert_eq!(libraries.failed_len(), 0);
    assert_eq!(libraries.function(b"f").map(|(name, _)| name), Some(&b"F"[..]));
    assert_eq!(libraries.not_found().0, "ERR Function not found");
    libraries.reload_steps_max = 100_000;
    data.load(b"#!lua name=endless\nwhile true do end").expect("named");
    load_all(libraries, &data);
    assert!(libraries.not_found().0.contains("'endless'"), "{}", libraries.not_found().0);
    assert!(libraries.function(b"f").is_some() && libraries.contains(b"endless"));
}

/// A slow machine takes longer for the same steps, and loads what a fast one has let in.
#[test]
fn steps_and_no_clock_decide_what_is_given_up() {
    /// A clock that shows a second more whenever it is looked at.
    #[derive(Default)]
    struct Slow(Ticking);
    impl Clock for Slow {
        fn unix_micros(&self) -> i64 {
            0
        }
        fn monotonic(&self) -> MonotonicNanos {
            MonotonicNanos(self.0.monotonic().0 * 1000)
        }
    }
    let long = "#!lua name=long\nfor i = 1, 1000000 do local x = i end\n\
                redis.register_function('l', function() end)";
    let libraries = &mut CompiledLibraries::default();
    assert!(libraries.compile(long.as_bytes(), &mut || false).is_ok(), "it is let in");
    let spent = libraries.interpreter.spent_steps();
    assert!((2_000_000..2_100_000).contains(&spent), "two instructions each: {spent}");
    let (slow, data) = (Slow::default(), data(&[long]));
    let libraries = &mut CompiledLibraries::default();
    libraries.reload_steps_max = 2 * spent;
    while libraries.is_behind(&data) {
        libraries.advance(&data, &mut Slice::new(&slow, Work::default(), u64::MAX, 1));
    }
    assert!(slow.0.0.into_inner() > 60_000_000, "more than a minute of its time");
    assert!(libraries.function(b"l").is_some(), "{}", libraries.not_found().0);
    // What takes more steps than any that came in is given up, in however little time.
    let libraries = &mut CompiledLibraries::default();
    libraries.load_steps_max = spent / 2;
    let refused = libraries.compile(long.as_bytes(), &mut || false).map(drop);
    assert!(refused.expect_err("too many steps").0.contains("FUNCTION LOAD timeout"));
}

#[test]
fn what_was_loaded_in_one_order_is_loaded_in_another() {
    let codes = [heavy("z", 1, 600_000), heavy("a", 600_000, 0), ONE.to_owned()];
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    // Room for one table of 16 MiB, and not for two.
    let limits = Limits { memory_bytes: 28 << 20, ..Limits::default() };
    let libraries = &mut CompiledLibraries::new(limits);
    for code in &codes {
        assert!(libraries.compile(code.as_bytes(), &mut || false).is_ok(), "{code}");
    }
    let libraries = &mut CompiledLibraries::new(limits);
    load_all(libraries, &data(&codes));
    assert_eq!(libraries.first, [b"z"], "it does not fit behind the other");
    assert_eq!(libraries.functions_len(), 3, "{}", libraries.not_found().0);
}

#[test]
fn half_of_the_memory_is_left_to_functions_that_run() {
    let limits = Limits { memory_bytes: 24 << 20, ..Limits::default() };
    let libraries = &mut CompiledLibraries::new(limits);
    let passing = libraries.compile(heavy("p", 1, 200_000).as_bytes(), &mut || false);
    assert!(
        passing.is_ok() && libraries.leaves_room(&Work::default()),
        "what it held is free again"
    );
    let large = libraries.compile(heavy("l", 600_000, 0).as_bytes(), &mut || false);
    assert!(!libraries.leaves_room(&Work::default()));
    libraries.discard(large.expect("it fits"));
    assert!(libraries.leaves_room(&Work::default()));
}

#[test]
fn functions_may_change_their_libraries() {
    let libraries = &mut CompiledLibraries::default();
    let library = |name, function| {
        format!("#!lua name={name}\nredis.register_function('{function}', function() end)")
    };
    for pairs in [[("a", "f"), ("b", "g")], [("a", "g"), ("b", "f")]] {
        let codes = pairs.map(|(name, function)| library(name, function));
        let compiled = codes.each_ref().map(|code| compile(libraries, code).expect("it is one"));
        let data = data(&codes.each_ref().map(String::as_str));
        for ((name, _), functions) in pairs.iter().zip(compiled) {
            libraries.adopt(name.as_bytes(), functions, &data);
        }
        for (name, function) in pairs {
            assert_eq!(libraries.owner(function.as_bytes()), Some(name.as_bytes()));
        }
    }
}
