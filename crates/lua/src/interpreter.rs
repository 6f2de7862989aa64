//! What the node drives: scripts compiled, started, resumed, killed.

use crate::fiber;
use crate::host::{Host, Order, Told};
use crate::limits::Limits;
use crate::random::Random;
use crate::script::{Invocation, Kind, ScriptRef};
use crate::step::{Answer, ScriptError, Step};
use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use std::rc::Rc;

/// One state of Lua: scripts share its libraries, but no variable of one can be seen by another.
///
/// It runs one script at a time. The state is made with the first one.
pub struct Interpreter {
    kind: Kind,
    limits: Limits,
    fiber: Option<Fiber>,
    /// Whether a script was started and has not ended.
    is_running: bool,
    /// Where `math.random` goes on.
    random: Random,
}

/// The stack on which Lua runs, and what it shares with this one.
struct Fiber {
    coroutine: Coroutine<(), (), ()>,
    host: Rc<Host>,
}

impl Interpreter {
    pub fn new(kind: Kind, limits: Limits) -> Self {
        Self { kind, limits, fiber: None, is_running: false, random: Random::default() }
    }

    /// Compiles a script. A first line that is a shebang is not a part of it.
    ///
    /// # Errors
    /// It is not Lua; in Redis's words. Or there is no memory.
    ///
    /// # Panics
    /// A script runs.
    pub fn compile(&mut self, body: &[u8]) -> Result<ScriptRef, ScriptError> {
        match self.order(Order::Compile(body.to_vec()))? {
            Told::Compiled(result) => result,
            Told::Forgotten | Told::Step(_) => unreachable!("the fiber tells what was ordered"),
        }
    }

    /// Frees a script or function, which will not be started any more.
    ///
    /// # Panics
    /// A script runs.
    pub fn forget(&mut self, script: ScriptRef) {
        if self.fiber.is_some() {
            // It can only fail where there is no fiber.
            let _ = self.order(Order::Forget(script));
        }
    }

    /// Makes a script ready; [`Self::resume`] with [`Answer::Begin`] runs it.
    ///
    /// # Panics
    /// A script runs.
    pub fn start(&mut self, invocation: Invocation) {
        self.begin(Order::Run(invocation)).expect("what was compiled has a stack");
    }

    /// As [`Self::start`], for the code of a library, without its first line.
    ///
    /// # Errors
    /// There is no memory for a stack.
    ///
    /// # Panics
    /// A script runs.
    pub fn start_loading(&mut self, code: &[u8]) -> Result<(), ScriptError> {
        self.begin(Order::Load(code.to_vec()))
    }

    fn begin(&mut self, order: Order) -> Result<(), ScriptError> {
        assert!(!self.is_running, "one script runs at a time");
        *self.fiber()?.host.order.borrow_mut() = Some(order);
        self.is_running = true;
        Ok(())
    }

    /// Runs what was started until it asks for something, or ends.
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

    /// From now on every instruction of the script that runs raises this error, its code first:
    /// whatever the script does, it ends soon. Resume it to its end.
    pub fn kill(&mut self, text: &str) {
        if let Some(fiber) = self.fiber.as_ref().filter(|_| self.is_running) {
            fiber.host.kill(text);
        }
    }

    /// Whether something was started and has not ended.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Bytes that Lua uses for scripts and their values, when it was last left.
    pub fn used_bytes(&self) -> usize {
        self.fiber.as_ref().map_or(0, |fiber| fiber.host.used_bytes.get())
    }

    /// Forgets all scripts, and gives the memory back.
    ///
    /// # Panics
    /// A script runs.
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
            let stack =
                DefaultStack::new(self.limits.stack_bytes).map_err(|error| ScriptError {
                    text: format!("ERR there is no stack for scripts: {error}").into_bytes(),
                    was_counted: false,
                })?;
            let host = Rc::new(Host::new(self.kind, self.limits, self.random));
            let shared = Rc::clone(&host);
            let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
                fiber::work(yielder, &shared);
            });
            self.fiber = Some(Fiber { coroutine, host });
        }
        Ok(self.fiber.as_mut().expect("it was just made"))
    }

    /// Ends the fiber. A script that runs is killed first: its stack holds values that must be
    /// dropped by those who hold them.
    fn end(&mut self) {
        self.kill("ERR the server gives the script up");
        while self.is_running && !self.fiber.as_ref().is_some_and(|fiber| fiber.coroutine.done()) {
            self.resume(Answer::GoOn);
        }
        let Some(mut fiber) = self.fiber.take() else { return };
        self.random = fiber.host.random.get();
        // One that is done has panicked, in a test.
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
