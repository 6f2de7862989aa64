//! An engine that is filled with what another server held. Its effects are dropped: the engine as
//! it is in the end is what is wanted.

use base::{DatabaseId, UnixMillis};
use engine::command::{Args, DataFn, Outcome};
use engine::effect::Effect;
use engine::execute::Engine;
use engine::import::{Importer, Step};
use engine::interest::Interest;
use engine::rdb::RdbError;
use engine::unit::{Context, Overdue, Unit};
use resp::Reply;

/// Bytes of effects after which they are dropped. They are encoded in any case, and this many fit
/// into the cache.
const EFFECT_BYTES_KEPT: usize = 1 << 20;

/// The engine, and what its commands write beside keys.
pub struct Target {
    pub engine: Engine,
    unit: Unit,
    interest: Interest,
    now: UnixMillis,
}

impl Target {
    /// `now`: the time of every command.
    pub fn new(engine: Engine, now: UnixMillis) -> Self {
        Self { engine, unit: Unit::new(0), interest: Interest::default(), now }
    }

    /// How a command is executed that the other server has executed before.
    pub fn context(&self, database: DatabaseId) -> Context {
        Context { overdue: Overdue::Kept, ..Context::background(self.now, database) }
    }

    /// Runs a command about keys.
    ///
    /// # Errors
    /// The refusal.
    pub fn run(
        &mut self,
        function: &DataFn,
        context: Context,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Outcome {
        let Self { engine, unit, interest, .. } = self;
        unit.clear();
        let outcome = engine.run(function, context, args, reply, unit, interest);
        self.drop_traces();
        outcome
    }

    /// Applies an effect on no key.
    pub fn change_all(&mut self, effect: Effect<'_>) {
        let context = self.context(DatabaseId(0));
        let Self { engine, unit, interest, .. } = self;
        unit.clear();
        engine.tx(context, unit, interest).change_all(DatabaseId(0), effect);
        self.drop_traces();
    }

    /// Applies up to `steps_max` things of an RDB file, as far as its bytes have arrived.
    ///
    /// # Errors
    /// As [`Importer::step`].
    pub fn import(&mut self, importer: &mut Importer, steps_max: usize) -> Result<Step, RdbError> {
        let context = self.context(DatabaseId(0));
        let Self { engine, unit, interest, .. } = self;
        let mut step = Step::Done;
        for _ in 0..steps_max {
            unit.clear();
            step = importer.step(&mut engine.tx(context, unit, interest))?;
            if unit.effects.len() > EFFECT_BYTES_KEPT {
                drop(unit.effects.take());
            }
            if step != Step::Done {
                break;
            }
        }
        self.drop_traces();
        Ok(step)
    }

    fn drop_traces(&mut self) {
        if self.unit.effects.len() > EFFECT_BYTES_KEPT {
            drop(self.unit.effects.take());
        }
        self.unit.garbage.clear();
    }
}
