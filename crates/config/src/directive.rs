//! What one row of the table says about a directive.

/// How a directive's words are read, kept in bounds and shown.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Toggle,
    /// A decimal integer between two bounds, both allowed.
    Integer { min: i128, max: i128 },
    /// A size in bytes, with a unit or without.
    Size { min: i128, max: i128 },
    /// A size, or a share of `maxmemory` in percent.
    SizeOrPercent,
    /// A file mode in octal.
    Octal { max: i128 },
    /// One of these words, any case.
    Choice(&'static [&'static str]),
    /// Any of these words together; the first stands for none.
    Flags(&'static [&'static str]),
    /// Any text.
    Text,
    /// `dir`: a directory that exists.
    Directory,
    /// `file:PATH`, or a URL with one of these beginnings; without a value, this folder of `dir`.
    Location { folder: &'static str, urls: &'static [&'static str] },
    /// `save`: pairs of seconds and changes.
    SavePoints,
    /// `client-output-buffer-limit`: class, hard limit, soft limit, seconds.
    BufferLimits,
    /// `oom-score-adj-values`: three numbers.
    OomScores,
    /// `dram-pmem-ratio`: two numbers above 0.
    Ratio,
    /// `notify-keyspace-events`: letters.
    Events,
    /// `bind`: up to 16 addresses.
    Addresses,
    /// `latency-tracking-info-percentiles`: numbers between 0 and 100.
    Percentiles,
    /// `replicaof`: host and port, or `no one`.
    Primary,
}

/// What Kiln makes of a directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// It does what Redis documents.
    Used,
    /// Accepted and shown; changes nothing, for this reason.
    Shown(&'static str),
}

/// A rule for a text: what is wrong with it.
pub type Check = fn(&[u8]) -> Result<(), &'static str>;

/// One row: a directive and everything derived from it.
#[derive(Clone, Copy, Debug)]
pub struct Directive {
    pub name: &'static str,
    /// The older name, or "".
    pub alias: &'static str,
    pub kind: Kind,
    /// Its default, as one would write it in the file.
    pub default: &'static str,
    pub meaning: Meaning,
    /// Only the file and the command line may set it.
    pub immutable: bool,
    /// What it is for, in one line, if it is Kiln's own; "" for Redis's, which Redis documents. Of
    /// one that is immutable, CONFIG SET to the value that it has succeeds: tools that write back
    /// every directive they have read stop at the first refusal, and do not know ours.
    pub summary: &'static str,
    /// CONFIG SET needs `enable-protected-configs`.
    pub protected: bool,
    /// Shown by CONFIG GET only when named exactly.
    pub hidden: bool,
    /// Its value is a secret ([`crate::secrets`]).
    pub sensitive: bool,
    /// CONFIG SET refuses it while a data set is loaded.
    pub refused_while_loading: bool,
    /// An empty text means "not set": CONFIG REWRITE then leaves the line out.
    pub empty_is_unset: bool,
    /// A further rule for a text.
    pub check: Option<Check>,
}

impl Directive {
    pub const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = alias;
        self
    }

    pub const fn shown(mut self, reason: &'static str) -> Self {
        self.meaning = Meaning::Shown(reason);
        self
    }

    pub const fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }

    /// Marks a directive of Kiln's own, and says what it is for.
    pub const fn own(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Whether Redis does not have it.
    pub const fn is_own(&self) -> bool {
        !self.summary.is_empty()
    }

    pub const fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    pub const fn refused_while_loading(mut self) -> Self {
        self.refused_while_loading = true;
        self
    }

    pub const fn or_unset(mut self) -> Self {
        self.empty_is_unset = true;
        self
    }

    pub const fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Whether the directive takes several words.
    pub const fn takes_words(&self) -> bool {
        matches!(
            self.kind,
            Kind::Flags(_)
                | Kind::SavePoints
                | Kind::BufferLimits
                | Kind::OomScores
                | Kind::Ratio
                | Kind::Addresses
                | Kind::Percentiles
                | Kind::Primary
        )
    }
}

const fn row(name: &'static str, kind: Kind, default: &'static str) -> Directive {
    Directive {
        name,
        alias: "",
        kind,
        default,
        meaning: Meaning::Used,
        immutable: false,
        summary: "",
        protected: false,
        hidden: false,
        sensitive: false,
        refused_while_loading: false,
        empty_is_unset: false,
        check: None,
    }
}

pub const fn toggle(name: &'static str, default: &'static str) -> Directive {
    row(name, Kind::Toggle, default)
}

pub const fn integer(name: &'static str, default: &'static str, min: i128, max: i128) -> Directive {
    row(name, Kind::Integer { min, max }, default)
}

pub const fn size(name: &'static str, default: &'static str, min: i128, max: i128) -> Directive {
    row(name, Kind::Size { min, max }, default)
}

pub const fn octal(name: &'static str, default: &'static str, max: i128) -> Directive {
    row(name, Kind::Octal { max }, default)
}

pub const fn choice(
    name: &'static str,
    default: &'static str,
    words: &'static [&'static str],
) -> Directive {
    row(name, Kind::Choice(words), default)
}

pub const fn flags(
    name: &'static str,
    default: &'static str,
    words: &'static [&'static str],
) -> Directive {
    row(name, Kind::Flags(words), default)
}

pub const fn text(name: &'static str, default: &'static str) -> Directive {
    row(name, Kind::Text, default)
}

pub const fn location(
    name: &'static str,
    folder: &'static str,
    urls: &'static [&'static str],
) -> Directive {
    row(name, Kind::Location { folder, urls }, "")
}

/// A directive with a kind of its own.
pub const fn special(name: &'static str, kind: Kind, default: &'static str) -> Directive {
    row(name, kind, default)
}
