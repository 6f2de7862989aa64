//! What `redis.register_function` takes: time that pauses, and memory that is counted.

use super::stalls::timed;
use super::*;

/// How often a library pauses while it is loaded.
fn pauses(code: &str) -> usize {
    let mut interpreter = timed(CodeKind::Functions, 1_000_000);
    interpreter.start_loading(code.as_bytes()).unwrap();
    let (ending, pauses) = finish(&mut interpreter);
    let Ending::Loaded(functions) = ending else { panic!("{ending:?}") };
    assert_eq!(functions.len(), 1);
    pauses
}

/// Names of arguments are read in either case, so that each can be there many times.
#[test]
fn long_arguments_are_read_with_pauses() {
    let register = "local named = {function_name = 'f', callback = redis.log} given(named)
        redis.register_function(named)";
    let base = pauses(&format!("local function given(named) end {register}"));
    for given in [
        "local flags = {} for i = 1, 1e5 do flags[i] = 'no-writes' end
         local function given(named)
           named.flags, named.FLAGS, named.Flags = flags, flags, flags
         end",
        "local text = ('x'):rep(5e5)
         local function given(named)
           for i = 0, 255 do
             local name, rest = '', i
             for at = 1, 8 do
               local letter = ('descript'):sub(at, at)
               name = name .. (rest % 2 == 0 and letter or letter:upper())
               rest = (rest - rest % 2) / 2
             end
             named[name .. 'ion'] = text
           end
         end",
    ] {
        let made = pauses(&format!("{given} given({{}}) redis.register_function('f', redis.log)"));
        let registered = pauses(&format!("{given} {register}"));
        assert!(registered >= made + base + 100, "{given}: {registered}, {made} and {base}");
    }
}

/// Names and descriptions are kept outside Lua, for as long as their functions.
#[test]
fn names_and_descriptions_count_as_memory() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Functions, limits);
    let code = |count: usize| {
        format!(
            "local text = ('x'):rep(1e6)
             for i = 1, {count} do
               redis.register_function{{
                 function_name = 'f' .. i, callback = redis.log, description = text
               }}
             end"
        )
    };
    let mut load = |count: usize| {
        interpreter.start_loading(code(count).as_bytes()).unwrap();
        let ending = finish(&mut interpreter).0;
        (ending, interpreter.used_bytes())
    };
    let (Ending::Loaded(functions), used) = load(20) else { panic!("there is room") };
    assert!(used >= 20_000_000, "{used}");
    for count in [20, 40] {
        let (ending, after) = load(count);
        let Ending::NotLoaded(error) = ending else { panic!("{ending:?}") };
        assert!(error.lacks_memory, "{error:?}");
        assert!(after < used + 2_000_000, "{after}: what did not load is counted no more");
    }
    functions.iter().for_each(|function| interpreter.forget(function.callback));
    interpreter.start_loading(code(25).as_bytes()).unwrap();
    assert!(matches!(finish(&mut interpreter).0, Ending::Loaded(_)), "there is room again");
}
