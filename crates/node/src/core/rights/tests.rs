//! Rules and rights, as Redis 7.0.15 understands them. `tests/acl/run` compares random rules with
//! a real one.

use crate::command::standard;
use catalog::acl::user::{Denied, User};
use catalog::acl::{Acl, Terms, file};
use catalog::category::{Categories, NAMES};
use engine::command::Args;
use engine::work::{BYTES_PER_STEP, Pulse, Work};
use std::cell::RefCell;
use std::rc::Rc;

fn words(text: &str) -> Vec<&[u8]> {
    text.split(' ').map(str::as_bytes).collect()
}

fn acl(requirepass: &[u8]) -> Acl {
    Acl::declared(&[], requirepass, false, standard().0).expect("nothing is declared")
}

fn with_users(lines: &[(&str, &str)]) -> Acl {
    let mut acl = acl(b"");
    for (name, rules) in lines {
        let user = acl
            .changed(name.as_bytes(), &words(rules), standard().0, &Work::default())
            .expect("these are rules");
        acl.put(user);
    }
    acl
}

/// Calls with what rules are read by.
fn with_terms<T>(call: impl FnOnce(Terms<'_>) -> T) -> T {
    call(Terms { catalog: standard().0, all_channels: false, work: &Work::default() })
}

fn parse(text: &[u8]) -> Result<Vec<User>, String> {
    with_terms(|terms| file::parse(text, std::path::Path::new("/f"), terms))
}

/// A user with its root selector alone.
fn root(mut user: User) -> User {
    with_terms(|terms| user.apply(b"clearselectors", terms)).expect("it is a rule");
    user
}

fn user(rules: &str) -> User {
    with_users(&[("u", rules)]).users().last().expect("just made").clone()
}

fn shown(user: &User) -> String {
    String::from_utf8(user.line(standard().0)).expect("these rules are text")
}

/// Whether a user may run a request; the denied argument's place otherwise.
fn check(user: &User, request: &str) -> Result<(), Denied> {
    let request: Vec<&[u8]> = words(request);
    let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
    for word in &request {
        ranges.push((buffer.len() as u32, word.len() as u32));
        buffer.extend_from_slice(word);
    }
    let command = standard().0.find(request[0], request.get(1).copied());
    user.check(command.expect("a known command"), Args::new(&buffer, &ranges), &Work::default())
}

#[test]
fn rules_are_shown_in_their_shortest_form() {
    let check = |rules: &str, expected: &str| assert_eq!(shown(&user(rules)), expected, "{rules}");
    check("", "user u off resetchannels -@all");
    check("reset", "user u off sanitize-payload resetchannels -@all");
    check("on nopass ~* &* +@all", "user u on nopass ~* &* +@all");
    check("+memory|doctor", "user u off resetchannels -@all +memory|doctor");
    check("+memory|doctor +memory", "user u off resetchannels -@all +memory");
    check("+@all -client +client|id", "user u off resetchannels +@all -client +client|id");
    check("+@all -@string", "user u off resetchannels +@all -@string");
    check("+@all -@geo +@geo", "user u off resetchannels +@all");
    check("+select|0 +select|1 +SELECT|0", "user u off resetchannels -@all +select|0 +select|1");
    check("+select|0 +select -select", "user u off resetchannels -@all");
    check("%R~a %w~a %RW~b %R~c", "user u off ~a ~b %R~c resetchannels -@all");
    check(
        "(+get ~a &b) (~*)",
        "user u off resetchannels -@all (~a resetchannels &b -@all +get) (~* resetchannels -@all)",
    );
    check("(+get ) (+set) clearselectors", "user u off resetchannels -@all");
    check(
        ">a <a nopass >a",
        "user u off #ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb \
         resetchannels -@all",
    );
}

#[test]
fn every_category_describes_itself() {
    for (category, name) in Categories::each() {
        if !standard().0.iter().any(|c| c.categories.intersects(category)) {
            continue;
        }
        let shown = |rules: &str| shown(&user(rules));
        assert!(shown(&format!("+@all -@{name}")).ends_with(&format!("+@all -@{name}")));
        assert!(shown(&format!("-@all +@{name}")).ends_with(&format!("-@all +@{name}")));
    }
}

#[test]
fn what_is_no_rule_is_refused_in_rediss_words() {
    let check = |rules: &str, rule: &str, why: RuleError| {
        let error =
            acl(b"").changed(b"u", &words(rules), standard().0, &Work::default()).expect_err(rules);
        assert_eq!(error, format!("Error in ACL SETUSER modifier '{rule}': {}", why.text()));
    };
    use catalog::acl::rule::RuleError;
    check("on nosuch", "nosuch", RuleError::Syntax);
    check("%~", "%~", RuleError::Syntax);
    check("%RR~a", "%RR~a", RuleError::Syntax);
    check("~a\tb", "~a\tb", RuleError::Syntax);
    check("+", "+", RuleError::UnknownCommand);
    check("+nosuch", "+nosuch", RuleError::UnknownCommand);
    check("-@nosuch", "-@nosuch", RuleError::UnknownCommand);
    check("+config|nosuch", "+config|nosuch", RuleError::UnknownCommand);
    check("-select|0", "-select|0", RuleError::UnknownCommand);
    check("+get|a|b", "+get|a|b", RuleError::UnknownCommand);
    check("+get|", "+get|", RuleError::Syntax);
    check("+config|get|a", "+config|get|a", RuleError::FirstArgumentOfSubcommand);
    check("~* ~a", "~a", RuleError::AllKeysAlready);
    check("&* &a", "&a", RuleError::AllChannelsAlready);
    check("<a", "<a", RuleError::NoSuchPassword);
    check("#A978", "#A978", RuleError::NotAHash);
    check("(~* ~a)", "(~* ~a)", RuleError::AllKeysAlready);
    let error =
        acl(b"").changed(b"u", &words("(+get"), standard().0, &Work::default()).expect_err("open");
    assert_eq!(error, "Unmatched parenthesis in acl selector starting at '(+get'.");
}

#[test]
fn a_user_is_as_before_when_one_of_its_new_rules_is_none() {
    let acl = with_users(&[("u", "on +get")]);
    acl.changed(b"u", &words("+set nosuch"), standard().0, &Work::default()).expect_err("no rule");
    assert_eq!(acl.lines(standard().0)[1], b"user u on resetchannels -@all +get");
}

/// Draws numbers below `bound`; the same ones in every run.
fn draw(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % bound
}

#[test]
fn the_line_of_a_user_makes_the_same_user() {
    let catalog = standard().0;
    let names: Vec<&str> = catalog.iter().map(|command| command.name()).collect();
    let mut state = 1;
    for _ in 0..300 {
        let mut rules = vec![if draw(&mut state, 2) == 0 { "-@all" } else { "+@all" }.to_owned()];
        for _ in 0..draw(&mut state, 12) {
            let sign = ["+", "-"][draw(&mut state, 2)];
            rules.push(match draw(&mut state, 6) {
                0 | 1 => format!("{sign}@{}", NAMES[draw(&mut state, 21)]),
                2 | 3 => format!("{sign}{}", names[draw(&mut state, names.len())]),
                4 => format!("+select|{}", draw(&mut state, 3)),
                _ => "(%R~a +@read -get)".to_owned(),
            });
        }
        let user = user(&rules.join(" "));
        let line = shown(&user);
        let users = parse(line.as_bytes());
        let again = users.expect("a line of ours").remove(0);
        assert_eq!(shown(&again), line, "{rules:?}");
        let (user, again) = (root(user), root(again));
        for command in catalog.iter().filter(|command| command.subcommands.is_empty()) {
            let request = format!("{} a a a", command.name().replace('|', " "));
            let denied = |user: &User| check(user, &request) == Err(Denied::Command);
            assert_eq!(denied(&again), denied(&user), "{request} after {rules:?}");
        }
    }
}

#[test]
fn keys_are_checked_by_what_is_done_with_them() {
    let user = user("+@all %R~r* %W~w* ~b*");
    let may = |request: &str| assert_eq!(check(&user, request), Ok(()), "{request}");
    let denied = |request: &str, at: usize| {
        assert_eq!(check(&user, request), Err(Denied::Key(at)), "{request}");
    };
    may("get r");
    denied("get w", 1);
    may("set w 1");
    denied("set w 1 get", 1);
    may("set b 1 get");
    may("exists w");
    denied("exists x", 1);
    may("bitfield r get u4 0");
    denied("bitfield r get u4 0 set u4 0 1", 1);
    may("copy r w");
    denied("copy w r", 1);
    denied("mget r1 r2 x", 3);
    may("sort r store w");
    denied("sort r limit 0 1 store r", 6);
    may("zunionstore w 2 r1 r2");
    denied("zunionstore w 2 r1 w", 4);
    may("zunionstore x 9 r1");
    may("zunionstore x 0");
    denied("pfmerge r", 1);
    may("georadius r 0 0 1 m store w");
    denied("georadius r 0 0 1 m store w store r", 9);
    may("georadiusbymember r store 1 m");
}

#[test]
fn the_selector_that_came_closest_says_what_is_missing() {
    let user = user("+mget ~key (+mget ~key ~other) (+publish)");
    assert_eq!(check(&user, "get key"), Err(Denied::Command));
    assert_eq!(check(&user, "mget other third"), Err(Denied::Key(2)));
    assert_eq!(check(&user, "mget key other third"), Err(Denied::Key(3)));
    assert_eq!(check(&user, "mget key other"), Ok(()));
    assert_eq!(check(&user, "publish a b"), Err(Denied::Channel(1)));
}

#[test]
fn rights_of_two_selectors_do_not_add_up() {
    let user = user("(%R~r +@all) (%W~w +@all)");
    assert_eq!(check(&user, "get r"), Ok(()));
    assert_eq!(check(&user, "set w 1"), Ok(()));
    assert_eq!(check(&user, "copy r w"), Err(Denied::Key(2)));
}

#[test]
fn channels_match_and_patterns_are_compared() {
    let user = user("+@all &a* &b");
    assert_eq!(check(&user, "subscribe ab b"), Ok(()));
    assert_eq!(check(&user, "subscribe ab c"), Err(Denied::Channel(2)));
    assert_eq!(check(&user, "psubscribe a* b"), Ok(()));
    assert_eq!(check(&user, "psubscribe ab*"), Err(Denied::Channel(1)));
    assert_eq!(check(&user, "spublish c 1"), Err(Denied::Channel(1)));
    assert_eq!(check(&user, "publish a c"), Ok(()));
    assert_eq!(check(&user, "unsubscribe c"), Ok(()));
}

#[test]
fn commands_without_rights_are_open_before_authentication() {
    let user = user("-@all");
    assert_eq!(check(&user, "auth a b"), Ok(()));
    assert_eq!(check(&user, "hello 3"), Ok(()));
    assert_eq!(check(&user, "ping"), Err(Denied::Command));
}

#[test]
fn only_all_powerful_users_leave_nothing_to_check() {
    assert!(with_users(&[]).is_open());
    assert!(with_users(&[("u", "+@all ~* &*")]).is_open());
    assert!(with_users(&[("u", "(+@all ~* &*)")]).is_open());
    assert!(!with_users(&[("u", "on nopass +@all ~*")]).is_open());
    assert!(!with_users(&[("default", "-debug +debug")]).is_open());
    let mut acl = with_users(&[("u", "on")]);
    assert!(!acl.is_open());
    acl.remove(b"u").expect("there is one");
    assert!(acl.is_open());
}

#[test]
fn a_deleted_users_place_is_used_again() {
    let mut acl = with_users(&[("a", "on"), ("b", "on")]);
    let freed = acl.remove(b"a").expect("there is one");
    let user = acl.changed(b"c", &[], standard().0, &Work::default()).expect("no rules");
    acl.put(user);
    assert_eq!(acl.find(b"c"), Some(freed));
    let names: Vec<&[u8]> = acl.users().map(|user| &user.name[..]).collect();
    assert_eq!(names, [&b"b"[..], b"c", b"default"]);
}

#[test]
fn passwords_open_until_they_are_taken_away() {
    let work = Work::default();
    let alice = user("on >secret");
    assert!(
        alice.admits(b"secret", &work)
            && !alice.admits(b"", &work)
            && !alice.admits(b"Secret", &work)
    );
    assert!(!user("off >secret").admits(b"secret", &work));
    assert!(!user("on >secret <secret").admits(b"secret", &work));
    assert!(user("on >secret nopass").admits(b"anything", &work));
    assert!(!user("on nopass resetpass").admits(b"", &work));
    let mut acl = acl(b"first");
    assert!(acl.requires_authentication());
    acl.reconfigure(Some(b"second"), false, &Work::default());
    assert!(
        acl.default_user().admits(b"second", &work) && !acl.default_user().admits(b"first", &work)
    );
    acl.reconfigure(Some(b""), false, &Work::default());
    assert!(!acl.requires_authentication());
}

#[test]
fn a_password_is_hashed_where_it_matters_and_that_is_counted() {
    struct Steps(usize);
    impl Pulse for Steps {
        fn beat(&mut self) {
            self.0 += 1;
        }
    }
    let steps = |rules: &str| {
        let (work, steps) = (Work::default(), Rc::new(RefCell::new(Steps(0))));
        work.set_steps_per_pulse(1);
        work.set_pulse(steps.clone());
        user(rules).admits(&[b'p'; 100 * BYTES_PER_STEP], &work);
        steps.borrow().0
    };
    assert!((100..110).contains(&steps("on >secret")));
    assert!(steps("off >secret") < 5);
    assert!(steps("on >secret nopass") < 5);
}

#[test]
fn a_file_is_taken_as_a_whole_or_not_at_all() {
    let check = |text: &str, expected: &str| {
        let error = parse(text.as_bytes()).expect_err(text);
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with("no change to the previously active ACL rules was performed"));
    };
    check("\nuser a on\n\n# comment", "/f:4 should start with user keyword");
    check("user a on\nuser a off", "WARNING: Duplicate user 'a' found on line 2. ");
    check(
        "user a +nosuch nosuch ~* ~a",
        "/f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. \
         /f:1: Syntax error. ",
    );
    check(
        "user a (+nosuch >password)",
        "/f:1: Error in applying operation '(+nosuch (redacted)': Unknown command",
    );
    check("user a (+get", "/f:1: Unmatched parenthesis in selector definition.");
    let text = b"user a on (+get ~x)\r\n\n  user b off  \n";
    let users = parse(text).expect("whole");
    assert_eq!(shown(&users[0]), "user a on resetchannels -@all (~x resetchannels -@all +get)");
    assert_eq!(users.len(), 2);
}
