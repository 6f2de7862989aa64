//! `mlua` has some 8,000 slots for values that Rust holds. What scripts use up and forget must not
//! keep them, however seldom Lua collects garbage.

use super::*;

/// Garbage is collected seldom while so much is alive.
const ALIVE: &str = "local alive = {} for i = 1, 100000 do alive[i] = i .. '' end ";

/// Loops of valid scripts, and what each answers.
const LOOPS: &[(&str, &str)] = &[
    (
        "local all = {}
        for _, line in ipairs(redis.call('lines')) do
            local t = {}
            for k, v in line:gmatch('(%a+)=(%w+)') do t[k] = v end
            all[#all + 1] = t.town
        end
        return #all",
        ":20000 ",
    ),
    (
        "local n = 0
        for _, line in ipairs(redis.call('lines')) do
            n = n + #string.gsub(line, '%d', function(digit) return '<' .. digit .. '>' end)
        end
        return n > 0",
        ":1 ",
    ),
    (
        "local n = 0
        for _, line in ipairs(redis.call('lines')) do
            n = n + #string.gsub(line, '%d', { ['1'] = 'one' })
        end
        return n > 0",
        ":1 ",
    ),
    ("for i = 1, 20000 do pcall(redis.call, 'fail') end return 1", ":1 "),
    ("for i = 1, 20000 do pcall(string.rep) end return 1", ":1 "),
    ("for i = 1, 20000 do pcall(string.gsub, 'a', 'a', error) end return 1", ":1 "),
    ("local kept = {} for i = 1, 20000 do kept[i] = ('x'):gmatch('x') end return #kept", ":20000 "),
    // Values that scripts raise by themselves, through functions of this library.
    (
        "local n = 0
        for i = 1, 20000 do
            local _, e = pcall(string.gsub, 'a', 'a', function() error({ n = 1 }) end)
            n = n + e.n
        end
        return n",
        ":20000 ",
    ),
    (
        "local long = string.rep('x', 10000)
        for i = 1, 20000 do
            local _, e = pcall(table.sort, { 2, 1 }, function() error(long, 0) end)
            if e ~= long then return e end
        end
        return 1",
        ":1 ",
    ),
    // One in another.
    (
        "local n = 0
        for i = 1, 10000 do
            string.gsub('a=1 b=2', '%a', function(letter)
                for word in letter:gmatch('%a') do
                    n = n + #string.gsub(word, '%a', { a = 'x' })
                    pcall(error, { letter })
                    pcall(redis.call, 'fail')
                end
            end)
        end
        return n",
        ":20000 ",
    ),
];

fn answer(step: Step) -> Answer {
    let Step::Call(call) = step else { panic!("{step:?}") };
    let mut reply = Reply::new(call.protocol);
    match call.arguments.iter().next() {
        Some(b"lines") => {
            reply.array(20_000);
            (0..20_000).for_each(|n| reply.bulk(format!("id={n} name=user{n} town=town{n}")));
        }
        Some(b"sadd") => reply.integer(call.arguments.len() as i64),
        _ => reply.error("WRONGTYPE no"),
    }
    Answer::Reply(reply.into_bytes())
}

#[test]
fn what_scripts_have_forgotten_holds_no_slots() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    for (body, expected) in LOOPS {
        let body = format!("{ALIVE}{body}");
        let reply = eval_with(&mut interpreter, &body, &[], &[], answer);
        assert_eq!(reply, *expected, "{body}");
        // The next script has room for many arguments.
        let next = "local t = {} for i = 1, 7000 do t[i] = 'm' .. i end
            return redis.call('sadd', unpack(t))";
        assert_eq!(eval_with(&mut interpreter, next, &[], &[], answer), ":7001 ", "{body}");
    }
}

/// An error of a command is a table for handlers and `coroutine.resume`, and a text for `pcall`.
#[test]
fn errors_are_shown_as_often_as_they_are_caught() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let mut eval = |body: &str| eval_with(&mut interpreter, body, &[], &[], answer);
    let body = "local function raise() return redis.call('fail') end
        local function seen(e) return { e.err, e.ignore_error_stats_update } end
        local _, handled = xpcall(raise, seen)
        local _, resumed = coroutine.resume(coroutine.create(function() raise() end))
        return { handled, resumed.err, select(2, pcall(raise)) }";
    assert_eq!(eval(body), "*3 *2 $12 WRONGTYPE no :1 $12 WRONGTYPE no $12 WRONGTYPE no ");
}

/// Errors of Rust functions are bytes that Lua does not count, so they are counted here until they
/// are dropped.
#[test]
fn errors_are_many_until_they_are_dropped() {
    let lua = mlua::Lua::new();
    let counted = crate::errors::uncollected(&lua);
    let table = || mlua::Value::Table(lua.create_table().unwrap());
    let values: Vec<_> = (0..600).map(|_| crate::errors::value(&lua, table())).collect();
    assert!(counted.are_many());
    drop(values);
    assert!(!counted.are_many());
    let texts: Vec<_> = (0..6000).map(|_| crate::errors::text(&lua, [b'x'; 4000])).collect();
    assert!(counted.are_many());
    drop(texts);
    assert!(!counted.are_many());
}
