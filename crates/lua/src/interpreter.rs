//! The interpreter, as the node drives it: scripts are compiled, started, resumed, killed.

use crate::fiber;
use crate::host::{Host, Order, Told, keep_arguments, keep_bytes};
use crate::limits::Limits;
use crate::random::Random;
use crate::script::{CodeKind, Invocation, ScriptRef};
use crate::step::{Answer, Arguments, ScriptError, Step};
use base::Clock;
use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use std::rc::Rc;
use std::sync::Arc;

/// One state of Lua. Scripts share its libraries, but cannot see each other's variables.
///
/// It runs one script at a time. The state is created for the first one.
pub struct Interpreter {
    kind: CodeKind,
    limits: Limits,
    offers_deprecated: bool,
    secret: u128,
    fiber: Option<Fiber>,
    /// Whether a script has started and not ended.
    is_running: bool,
    /// The generator of `math.random`, kept when the state is discarded.
    random: Random,
    clock: Option<Arc<dyn Clock>>,
}

/// The coroutine in which Lua runs, and the cells that both sides share.
struct Fiber {
    coroutine: Coroutine<(), (), ()>,
    host: Rc<Host>,
}

impl Interpreter {
    pub fn new(kind: CodeKind, limits: Limits) -> Self {
        Self {
            kind,
            limits,
            offers_deprecated: false,
            secret: 0,
            fiber: None,
            is_running: false,
            random: Random::default(),
            clock: None,
        }
    }

    /// Gives scripts the functions `getfenv`, `setfenv` and `newproxy`
    /// (`lua-enable-deprecated-api`). Counts from the next state on, so it is called before the
    /// first script.
    pub fn offer_deprecated(&mut self) {
        self.offers_deprecated = true;
    }

    /// Gives the interpreter a secret, before the first script: chance, so that nobody can choose
    /// strings that collide where Lua keeps them, nor keys that collide in a table that was
    /// scattered because too many did (`vendor/lua-src/README.md`). Without one, somebody can.
    pub fn set_secret(&mut self, secret: u128) {
        self.secret = secret;
    }

    /// Gives the interpreter a clock, before the first script. Then it pauses a script that uses
    /// much memory by the time that its instructions take. Without one, it supposes that each takes
    /// as long as one may with that much memory, so that such a script pauses far more often than
    /// it must.
    pub fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = Some(clock);
    }

    /// Compiles a script. The caller removes a first line that is a shebang.
    ///
    /// # Errors
    /// The code is not Lua, in Redis's words; or memory is short.
    ///
    /// # Panics
    /// A script is running.
    pub fn compile(&mut self, body: &[u8]) -> Result<ScriptRef, ScriptError> {
        match self.order(Order::Compile(body.to_vec()))? {
            Told::Compiled(result) => result,
            Told::Done | Told::Step(_) => unreachable!("the fiber tells what was ordered"),
        }
    }

    /// Frees a script or function, which must not be started again.
    ///
    /// # Panics
    /// A script is running.
    pub fn forget(&mut self, script: ScriptRef) {
        if self.fiber.is_some() {
            self.order(Order::Forget(script)).expect("only creating a fiber can fail");
        }
    }

    /// Prepares a script; [`Self::resume`] with [`Answer::Begin`] runs it.
    ///
    /// # Panics
    /// A script is running.
    pub fn start(&mut self, invocation: Invocation) {
        self.begin(Order::Run(invocation)).expect("what was compiled has a stack");
    }

    /// As [`Self::start`], for the code of a library. The caller removes its first line.
    ///
    /// # Errors
    /// There is no memory for the interpreter's stack.
    ///
    /// # Panics
    /// A script is running.
    pub fn start_loading(&mut self, code: &[u8]) -> Result<(), ScriptError> {
        self.begin(Order::Load(code.to_vec()))
    }

    fn begin(&mut self, order: Order) -> Result<(), ScriptError> {
        assert!(!self.is_running, "one script runs at a time");
        *self.fiber()?.host.order.borrow_mut() = Some(order);
        self.is_running = true;
        Ok(())
    }

    /// Runs what was started until it needs an answer, or ends.
    ///
    /// # Panics
    /// Nothing was started.
    pub fn resume(&mut self, answer: Answer) -> Step {
        assert!(self.is_running, "what is resumed was started");
        let fiber = self.fiber.as_mut().expect("what runs has a stack");
        *fiber.host.answer.borrow_mut() = Some(answer);
        let Told::Step(step) = fiber.resume() else {
            unreachable!("a script that runs tells of its steps")
        };
        self.is_running = !matches!(step, Step::Done(_));
        step
    }

    /// An empty buffer for the reply to the running script's call: that of the last one.
    pub fn spare_reply(&mut self) -> Vec<u8> {
        let fiber = self.fiber.as_ref();
        fiber.map_or_else(Vec::new, |it| std::mem::take(&mut it.host.spare.borrow_mut().reply))
    }

    /// Takes the arguments of an answered call back, for the memory that they lie in.
    pub fn take_back_arguments(&mut self, arguments: Arguments) {
        if let Some(fiber) = &self.fiber {
            keep_arguments(&mut fiber.host.spare.borrow_mut().arguments, arguments);
        }
    }

    /// Empty buffers for an [`Invocation`]: those of the last one. One for its reply, and one for
    /// its keys and arguments.
    pub fn spare_invocation(&mut self) -> (Vec<u8>, Arguments) {
        let Some(fiber) = &self.fiber else { return Default::default() };
        let mut spare = fiber.host.spare.borrow_mut();
        (std::mem::take(&mut spare.script_reply), std::mem::take(&mut spare.script_arguments))
    }

    /// Takes the buffer of a script's reply back.
    pub fn take_back_reply(&mut self, reply: Vec<u8>) {
        if let Some(fiber) = &self.fiber {
            keep_bytes(&mut fiber.host.spare.borrow_mut().script_reply, reply);
        }
    }

    /// Kills the running script: from now on every instruction of it raises this error (code
    /// first), so it ends soon whatever it does. Resume it to its end.
    pub fn kill(&mut self, text: &str) {
        if let Some(fiber) = self.fiber.as_ref().filter(|_| self.is_running) {
            fiber.host.kill(text);
        }
    }

    /// Whether a script or library has started and not ended.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Steps that the running script has spent so far, or the last one in all. They count what it
    /// did, not how long that took: the same code spends about as many on every machine.
    pub fn spent_steps(&self) -> u64 {
        self.fiber.as_ref().map_or(0, |fiber| fiber.host.spent_steps())
    }

    /// Bytes that Lua used for scripts and their values when it last left its stack.
    pub fn used_bytes(&self) -> usize {
        self.fiber.as_ref().map_or(0, |fiber| fiber.host.used_bytes.get())
    }

    /// Frees what no script can reach any more, all of it: Lua's collector leaves some for later.
    /// That may take a second; `paused` is called at each pause.
    ///
    /// # Panics
    /// A script is running.
    pub fn collect(&mut self, mut paused: impl FnMut()) {
        if self.fiber.is_none() {
            return;
        }
        let mut told = self.order(Order::Collect).expect("only creating a fiber can fail");
        while matches!(told, Told::Step(_)) {
            paused();
            told = self.fiber.as_mut().expect("it has just told something").resume();
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Discards the state: all scripts and their memory.
    ///
    /// # Panics
    /// A script is running.
    pub fn clear(&mut self) {
        assert!(!self.is_running, "a script that runs is not taken away");
        self.end();
    }

    fn order(&mut self, order: Order) -> Result<Told, ScriptError> {
        assert!(!self.is_running, "what is ordered is done between scripts");
        let fiber = self.fiber()?;
        *fiber.host.order.borrow_mut() = Some(order);
        Ok(fiber.resume())
    }

    fn fiber(&mut self) -> Result<&mut Fiber, ScriptError> {
        if self.fiber.is_none() {
            let stack = DefaultStack::new(self.limits.stack_bytes).map_err(|error| {
                ScriptError::of(format!("ERR there is no stack for scripts: {error}"))
            })?;
            let mut host = Host::new(self.kind, self.limits, self.random, self.clock.clone());
            host.offers_deprecated = self.offers_deprecated;
            host.secret = self.secret;
            let host = Rc::new(host);
            let shared = Rc::clone(&host);
            let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
                fiber::work(yielder, &shared);
            });
            self.fiber = Some(Fiber { coroutine, host });
        }
        Ok(self.fiber.as_mut().expect("it was just made"))
    }

    /// Ends the fiber. A running script is killed first, so that its stack unwinds and its values
    /// are dropped.
    fn end(&mut self) {
        self.kill("ERR the server gives the script up");
        while self.is_running && !self.fiber.as_ref().is_some_and(|fiber| fiber.coroutine.done()) {
            self.resume(Answer::GoOn);
        }
        let Some(mut fiber) = self.fiber.take() else { return };
        self.random = fiber.host.random.get();
        // A coroutine that is done has panicked, as in a test.
        if !fiber.coroutine.done() {
            *fiber.host.order.borrow_mut() = Some(Order::End);
            fiber.coroutine.resume(());
        }
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        self.end();
    }
}

impl Fiber {
    fn resume(&mut self) -> Told {
        self.coroutine.resume(());
        self.host.told.borrow_mut().take().expect("the fiber tells something before it leaves")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that holds the interpreter which holds it would keep both.
    #[test]
    fn nothing_of_an_interpreter_outlives_it() {
        for kind in [CodeKind::Scripts, CodeKind::Functions] {
            let mut interpreter = Interpreter::new(kind, Limits::default());
            let host = Rc::downgrade(&interpreter.fiber().expect("a stack").host);
            interpreter.compile(b"return cjson.encode(cmsgpack.pack({1}))").expect("this is Lua");
            assert!(host.upgrade().is_some());
            interpreter.clear();
            assert!(host.upgrade().is_none(), "somebody holds what functions hold");
        }
    }
}
