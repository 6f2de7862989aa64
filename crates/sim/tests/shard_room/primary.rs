//! A primary under a lease, alone with its clients, whose commands take as long as a test wants and
//! whose log tells what a test lets it tell.

use base::time::MILLISECOND;
use base::{Moment, Position, Sequence};
use bytes::Bytes;
use engine::effect::EffectDecoder;
use engine::work::Pulse;
use node::Scratch;
use node::Server;
use shard::Renewal;
use shard::role::member::Member;
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::tapped_log::{Listener, TappedLog};
use sim::timeline::Timeline;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use txlog::record::{HEADER_BYTES, decode_header};
use txlog::{Gate, Kind, LogEvent, Part, Refusal};

pub const LEASE_MILLIS: u64 = 1000;

/// What was appended: its place, its kind, the keys of its effects, and the clock that it shows.
pub type Appended = (u64, Kind, Vec<String>, i64);

/// What the log tells of what became durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tells {
    All,
    /// Nothing behind what it has told.
    Nothing,
    /// Nothing behind the first record with data that is appended from now on.
    UpToData,
}

/// When the log begins to refuse what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refuses {
    Never,
    /// When it is next polled amid a command.
    AmidCommand,
    /// When it is next polled.
    Soon,
    Now,
}

/// Writes down what is appended, and says that somebody waits for the lease to end.
struct Scribe {
    appended: Rc<RefCell<Vec<Appended>>>,
    tells: Rc<Cell<Tells>>,
    refuses: Rc<Cell<Refuses>>,
    /// The last record before the first with data, since the log tells no more than that.
    before_data: Sequence,
    /// The log is durable through here, and has told so through there.
    durable: Position,
    told: Sequence,
}

impl Listener for Scribe {
    fn appends(&mut self, place: Sequence, record: &Bytes) {
        let header = decode_header(record, false).expect("a record of our own");
        let mut keys = Vec::new();
        if header.kind == Kind::Data {
            self.before_data = self.before_data.min(Sequence(place.0 - 1));
            // A part of a unit may end within an effect.
            let is_whole = header.part == Part::Whole;
            let effects = if is_whole { &record[HEADER_BYTES..] } else { &[] };
            let mut effects = EffectDecoder::new(effects);
            while let Some((_, key, _)) = effects.next_effect().expect("effects of our own") {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
        }
        self.appended.borrow_mut().push((place.0, header.kind, keys, header.clock.0));
    }

    fn gates(&self, so: Gate) -> Gate {
        match self.refuses.get() {
            Refuses::Now => Gate::Refuse(Refusal::DiskFull),
            _ => so,
        }
    }

    fn told(&mut self, events: &mut Vec<LogEvent>) {
        if self.refuses.get() == Refuses::Soon {
            self.refuses.set(Refuses::Now);
        }
        events.retain(|event| {
            if let LogEvent::Durable(at) = event {
                self.durable = *at;
            }
            !matches!(event, LogEvent::Durable(_))
        });
        let most = match self.tells.get() {
            Tells::All => Sequence(u64::MAX),
            Tells::Nothing => self.told,
            Tells::UpToData => self.before_data,
        };
        if self.tells.get() != Tells::UpToData {
            self.before_data = Sequence(u64::MAX);
        }
        let through = self.durable.sequence.min(most);
        if through > self.told {
            self.told = through;
            events.push(LogEvent::Durable(self.durable.at(through)));
        }
    }

    fn watches(&mut self, _: bool) -> bool {
        true
    }
}

/// Lets so much time pass at each step of a command, from the moment at which it is told to.
struct Slow {
    pulse: Rc<RefCell<dyn Pulse>>,
    timeline: Timeline,
    skipped: Rc<Cell<u32>>,
    millis: Rc<Cell<u64>>,
    refuses: Rc<Cell<Refuses>>,
}

impl Pulse for Slow {
    fn beat(&mut self) {
        if let Some(left) = self.skipped.get().checked_sub(1) {
            self.skipped.set(left);
        } else {
            self.timeline.pass(self.millis.get() * MILLISECOND);
        }
        if self.refuses.get() == Refuses::AmidCommand {
            self.refuses.set(Refuses::Soon);
        }
        self.pulse.borrow_mut().beat();
    }
}

pub struct Primary {
    pub server: Server,
    pub driver: SimDriver,
    pub scratch: Scratch,
    pub clock: SimClock,
    pub timeline: Timeline,
    pub network: SimNetwork,
    pub client: SimClient,
    pub appended: Rc<RefCell<Vec<Appended>>>,
    pub tells: Rc<Cell<Tells>>,
    pub refuses: Rc<Cell<Refuses>>,
    /// Steps that take no time, before those of so many milliseconds.
    pub skipped: Rc<Cell<u32>>,
    pub millis: Rc<Cell<u64>>,
}

impl Primary {
    pub fn new() -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let appended = Rc::new(RefCell::new(Vec::new()));
        let tells = Rc::new(Cell::new(Tells::All));
        let refuses = Rc::new(Cell::new(Refuses::Never));
        let (skipped, millis) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let mut server = lone::server(&clock);
        let listener = Scribe {
            appended: Rc::clone(&appended),
            tells: Rc::clone(&tells),
            refuses: Rc::clone(&refuses),
            before_data: Sequence(u64::MAX),
            durable: server.core.shard.durable(),
            told: server.core.shard.durable().sequence,
        };
        server.core.shard.wrap_log(|log| Box::new(TappedLog { log, listener }));
        lone::lead(&mut server, Moment::default(), LEASE_MILLIS * MILLISECOND);
        server.core.shard.renew_amid(Renewal::new(LEASE_MILLIS, &Member::default()));
        let work = &server.core.shard.engine.keyspace.work;
        work.set_steps_per_pulse(1);
        work.wrap_pulse(|pulse| {
            let timeline = timeline.clone();
            let (skipped, millis) = (Rc::clone(&skipped), Rc::clone(&millis));
            let refuses = Rc::clone(&refuses);
            Rc::new(RefCell::new(Slow { pulse, timeline, skipped, millis, refuses }))
        });
        let driver = SimDriver::listen(&network, "here", clock.clone(), 1);
        let client = network.connect("here");
        let scratch = Scratch::default();
        let mut primary = Self {
            server,
            driver,
            scratch,
            clock,
            timeline,
            network,
            client,
            appended,
            tells,
            refuses,
            skipped,
            millis,
        };
        primary.pass();
        primary.appended.borrow_mut().clear();
        primary
    }

    pub fn turn(&mut self) {
        self.server.turn(&mut self.driver, &mut self.scratch);
    }

    /// What the client receives in some turns.
    pub fn pass(&mut self) -> String {
        let mut received = Vec::new();
        for _ in 0..20 {
            self.timeline.pass(10 * MILLISECOND);
            self.turn();
            received.extend(self.client.received());
        }
        String::from_utf8(received).expect("replies are text")
    }

    /// What is answered to requests whose steps take so long, and what was appended meanwhile.
    pub fn ask(&mut self, requests: &str, skipped: u32, millis: u64) -> (String, Vec<Appended>) {
        let appended = self.turn_slowly(requests, skipped, millis);
        let mut received = self.client.received();
        received.extend(self.pass().into_bytes());
        (String::from_utf8(received).expect("replies are text"), appended)
    }

    /// One turn with requests whose steps take so long; what was appended in it.
    pub fn turn_slowly(&mut self, requests: &str, skipped: u32, millis: u64) -> Vec<Appended> {
        self.appended.borrow_mut().clear();
        self.client.send(requests.as_bytes());
        self.timeline.pass(MILLISECOND);
        self.skipped.set(skipped);
        self.millis.set(millis);
        self.turn();
        self.millis.set(0);
        self.appended.borrow().clone()
    }
}
