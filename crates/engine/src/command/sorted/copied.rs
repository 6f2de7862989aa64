//! Members and scores taken out of a sorted set, so that it may change meanwhile.

use crate::value::sorted::Text;
use crate::work::Work;
use std::cmp::Ordering;
use structures::ordered::compare;

/// Members with scores; the texts stand one behind the other in one piece of memory.
pub struct Copied {
    work: Work,
    texts: Vec<u8>,
    pairs: Vec<Pair>,
}

/// A member, by the position of its text, and its score.
#[derive(Clone, Copy)]
struct Pair {
    start: usize,
    end: usize,
    score: f64,
}

impl Copied {
    /// None yet. Whatever is done with them is counted as work.
    pub fn new(work: Work) -> Self {
        Self { work, texts: Vec::new(), pairs: Vec::new() }
    }

    pub fn push(&mut self, member: &[u8], score: f64) {
        self.push_text(Text::Bytes(member), score);
    }

    pub fn push_text(&mut self, member: Text<'_>, score: f64) {
        self.work.step();
        let start = self.texts.len();
        member.append_to(&mut self.texts);
        self.pairs.push(Pair { start, end: self.texts.len(), score });
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], f64)> {
        let steps = self.pairs.iter().inspect(|_| self.work.step());
        steps.map(|pair| (&self.texts[pair.start..pair.end], pair.score))
    }

    /// Leaves each member once: scores of the same member are brought together by `aggregate`, in
    /// the order in which they came.
    pub fn merge(&mut self, mut aggregate: impl FnMut(f64, f64) -> f64) {
        let Self { texts, work, pairs } = self;
        let text = |pair: &Pair| &texts[pair.start..pair.end];
        // Stable, so equal members stay in their order.
        pairs.sort_by(|a, b| {
            work.step();
            text(a).cmp(text(b))
        });
        pairs.dedup_by(|next, kept| {
            work.step();
            let same = text(next) == text(kept);
            if same {
                kept.score = aggregate(kept.score, next.score);
            }
            same
        });
    }

    /// Brings the members into the order of a sorted set.
    pub fn sort(&mut self) {
        let Self { texts, work, pairs } = self;
        let order = |a: &Pair, b: &Pair| -> Ordering {
            work.step();
            compare(a.score, &texts[a.start..a.end], b.score, &texts[b.start..b.end])
        };
        pairs.sort_unstable_by(order);
    }
}
