//! The shard as a model that the checker explores.

use crate::bounds::{Bounds, Broken};
use crate::properties::{ALWAYS, Claim};
use crate::shard::{Action, Shard};
use stateright::{Checker, HasDiscoveries, Model, Path, Property};

/// A shard within bounds, and what is claimed of it.
pub struct Protocol {
    pub bounds: Bounds,
    always: Vec<(&'static str, Claim)>,
    sometimes: Vec<(&'static str, Claim)>,
}

impl Model for Protocol {
    type State = Shard;
    type Action = Action;

    fn init_states(&self) -> Vec<Shard> {
        vec![Shard::start(&self.bounds)]
    }

    fn actions(&self, state: &Shard, actions: &mut Vec<Action>) {
        state.actions(&self.bounds, actions);
    }

    fn next_state(&self, last: &Shard, action: Action) -> Option<Shard> {
        let mut next = last.clone();
        next.act(&action, &self.bounds);
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = self.always.iter().map(|(name, claim)| Property::always(name, *claim));
        let sometimes =
            self.sometimes.iter().map(|(name, claim)| Property::sometimes(name, *claim));
        always.chain(sometimes).collect()
    }
}

/// Explores everything within the bounds. What must always hold does, what must be reached is, and
/// there are exactly so many states.
pub fn explore(bounds: Bounds, sometimes: &[(&'static str, Claim)], states: usize) {
    let protocol = Protocol { bounds, always: ALWAYS.to_vec(), sometimes: sometimes.to_vec() };
    let checker = protocol.checker().spawn_bfs().join();
    let refuted = ALWAYS.iter().find_map(|(name, _)| Some((name, checker.discovery(name)?)));
    if let Some((name, path)) = refuted {
        panic!("it does not hold that {name}:{}", trace(path));
    }
    for (name, _) in sometimes {
        assert!(checker.discovery(name).is_some(), "never reached: {name}");
    }
    let (found, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{found} states, {depth} deep");
    assert_eq!(found, states, "the bounds or the rules have changed: is that meant?");
}

/// Explores until the claim is refuted, which it must be.
pub fn notice(bounds: Bounds, broken: Broken, claim: &'static str) {
    let bounds = Bounds { broken: Some(broken), ..bounds };
    let always = ALWAYS.iter().copied().filter(|(name, _)| *name == claim).collect();
    let protocol = Protocol { bounds, always, sometimes: Vec::new() };
    let checker = protocol.checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let path = checker.discovery(claim);
    let path = path.unwrap_or_else(|| panic!("{broken:?} is not noticed by: {claim}"));
    println!("{broken:?}, noticed after {} states:{}", checker.unique_state_count(), trace(path));
}

/// How a state was reached, a step a line, and what it looks like.
fn trace(path: Path<Shard, Action>) -> String {
    let state = format!("{:#?}", path.last_state());
    let steps = path.into_actions().into_iter().map(|action| format!("\n--- {action:?}"));
    format!("{}\n---{state}", steps.collect::<String>())
}
