//! The words of TeamWorld: how facts are stated, changed and disputed, how people talk around them,
//! and the table of other words in which they ask. Search itself must never use this module.
//!
//! `{s}` stands for the ticket, `{v}` for the value, `{n}` for a number, `{f}` for a file, `{w}`
//! for a word, `{h}` for a commit and `{p}` for a person.

/// What can be stated about a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Attribute {
    Owner,
    Deadline,
    Port,
    File,
    Limit,
    Cause,
}

impl Attribute {
    pub(super) const ALL: [Self; 6] = [
        Self::Owner,
        Self::Deadline,
        Self::Port,
        Self::File,
        Self::Limit,
        Self::Cause,
    ];
}

/// How an attribute is spoken of.
pub(super) struct Phrasing {
    /// The first statement.
    pub(super) stated: &'static [&'static str],
    /// A later one that replaces it.
    pub(super) updated: &'static [&'static str],
    /// One that disagrees.
    pub(super) disputed: &'static [&'static str],
    /// A question in other words.
    pub(super) paraphrase: &'static [&'static str],
    /// A question for the last state, in the statements' own word.
    pub(super) latest: &'static str,
}

pub(super) fn phrasing_of(attribute: Attribute) -> Phrasing {
    match attribute {
        Attribute::Owner => Phrasing {
            stated: &[
                "{s} is assigned to {v}.",
                "For {s} the owner is {v}.",
                "{v} becomes the owner of {s} from today.",
            ],
            updated: &[
                "{s} has a new owner: {v}.",
                "The owner of {s} is now {v}, please update your notes.",
            ],
            disputed: &[
                "The board still shows {v} as owner of {s}.",
                "Is the owner of {s} not {v}?",
            ],
            paraphrase: &[
                "who is responsible for {s}?",
                "whose job is {s}?",
                "which colleague looks after {s}?",
            ],
            latest: "current owner of {s}",
        },
        Attribute::Deadline => Phrasing {
            stated: &[
                "The deadline for {s} is {v}.",
                "{s} has its deadline on {v}.",
                "We set {v} as deadline for {s}.",
            ],
            updated: &[
                "The deadline of {s} moved to {v}.",
                "New deadline for {s}: {v}.",
            ],
            disputed: &[
                "My calendar has {v} as the deadline of {s}.",
                "Who said {s} has a deadline on {v}?",
            ],
            paraphrase: &[
                "by which day must {s} be finished?",
                "until what date can we deliver {s}?",
                "due date of {s}?",
            ],
            latest: "what is the deadline of {s} now",
        },
        Attribute::Port => Phrasing {
            stated: &[
                "The service of {s} listens on port {v}.",
                "{s} uses port {v} in staging.",
                "Port {v} is reserved for {s}.",
            ],
            updated: &[
                "The port of {s} changed to {v}.",
                "{s} uses port {v} from now on.",
            ],
            disputed: &[
                "My logs show port {v} for {s}.",
                "I see {s} on port {v} here.",
            ],
            paraphrase: &[
                "at which socket number can clients reach {s}?",
                "what do I connect to for {s}?",
                "tcp endpoint of {s}?",
            ],
            latest: "which port does {s} use now",
        },
        Attribute::File => Phrasing {
            stated: &[
                "The code of {s} lives in {v}.",
                "{s} touches the file {v}.",
                "The bug of {s} sits in file {v}.",
            ],
            updated: &[
                "The code of {s} moved to the file {v}.",
                "{s} is in file {v} after the split.",
            ],
            disputed: &[
                "I found the code of {s} in file {v}.",
                "Is {s} not in the file {v}?",
            ],
            paraphrase: &[
                "where in the sources is {s} implemented?",
                "which module should I open for {s}?",
                "path to look at for {s}?",
            ],
            latest: "file of {s} now",
        },
        Attribute::Limit => Phrasing {
            stated: &[
                "The limit for {s} is {v}.",
                "{s} runs with a limit of {v}.",
                "We agreed on a limit of {v} for {s}.",
            ],
            updated: &[
                "The limit of {s} was raised to {v}.",
                "New limit for {s}: {v}.",
            ],
            disputed: &[
                "The config says a limit of {v} for {s}.",
                "I remember {v} as the limit of {s}.",
            ],
            paraphrase: &[
                "how much at most does {s} allow?",
                "what is the maximum of {s}?",
                "upper bound configured with {s}?",
            ],
            latest: "what is the limit of {s} now",
        },
        Attribute::Cause => Phrasing {
            stated: &[
                "The cause of {s} is {v}.",
                "{s} fails because of {v}; that is the cause.",
                "Found the cause of {s}: {v}.",
            ],
            updated: &[
                "The real cause of {s} turned out to be {v}.",
                "Correction, the cause of {s} is {v}.",
            ],
            disputed: &[
                "I doubt it, for me the cause of {s} is {v}.",
                "Could {v} be the cause of {s}?",
            ],
            paraphrase: &[
                "why did {s} break?",
                "what is the reason behind {s}?",
                "explanation for the trouble with {s}?",
            ],
            latest: "which cause of {s} is it now",
        },
    }
}

/// Talk that names a ticket or shares words with facts about it.
pub(super) const DISTRACTIONS: &[&str] = &[
    "Looking at {s} again, the {w} {w} hangs after {n} minutes.",
    "Can someone review {h} for {s}?",
    "{s} is green on {h}, but the {w} test is slow.",
    "I wrote {n} tests for {s}, all about the {w}.",
    "No news on {s}.",
    "We should talk about {s} before the {w} review.",
    "The {w} of {s} needs a better name.",
    "{p} asked about {s} in the morning.",
    "Rebased {s} on {h}, conflicts in {f}.",
];

/// Talk about nothing in particular.
pub(super) const CHATTER: &[&str] = &[
    "Running the {w} tests again, {n} of them fail.",
    "Who is the owner of the {w} dashboard?",
    "The deadline for the {w} report is close.",
    "Port {n} is taken on my machine.",
    "Please keep the limit of {n} requests in mind.",
    "The file {f} is too long, I split it at line {n}.",
    "The {w} build of {h} took {n} seconds.",
    "Moved the {w} {w} to the next week.",
    "Ok, thanks.",
    "Good point, I will check the {w} first and then the {w}.",
    "The cause is always the {w}, I know.",
    "{p} is out until noon, ping {p} for the {w}.",
    "Merged {h}.",
    "Does the {w} cache expire after {n} seconds or never?",
    "Reading {f}, the {w} part is fine.",
    "I can reproduce the {w} problem only with {n} clients.",
    "The {w} docs are out of date, see {f}.",
    "Back from the {w} meeting, nothing changed for us.",
    "Let us not touch the {w} before the {w} is stable.",
    "{p} and I pair on the {w} this afternoon.",
    "Trace of {h}: the {w} waits for the {w} for {n} ms.",
    "Tried it with {n} threads, same result.",
    "Yes.",
    "Please look at the {w} graph, it dropped at {n}.",
    "I reverted {h}, the {w} was broken.",
];

/// What tickets are counted by.
pub(super) const PROJECTS: &[&str] = &[
    "PAY", "WEB", "OPS", "LED", "NET", "IAM", "DOC", "SDK", "CAP", "RUN",
];

/// Nouns for topics, files and talk.
pub(super) const NOUNS: &[&str] = &[
    "refund",
    "ledger",
    "invoice",
    "session",
    "token",
    "cursor",
    "journal",
    "segment",
    "frame",
    "snapshot",
    "registry",
    "projection",
    "gateway",
    "stream",
    "socket",
    "queue",
    "cache",
    "index",
    "replica",
    "checkpoint",
    "migration",
    "schema",
    "payload",
    "header",
    "cookie",
    "worker",
    "scheduler",
    "timer",
    "retry",
    "backoff",
    "metric",
    "alert",
    "dashboard",
    "pipeline",
    "artifact",
    "release",
    "branch",
    "commit",
    "patch",
    "fixture",
    "snapshot",
    "parser",
    "lexer",
    "encoder",
    "decoder",
    "checksum",
    "hash",
    "key",
    "lock",
    "lease",
    "quota",
    "budget",
    "tenant",
    "account",
    "profile",
    "avatar",
    "mailbox",
    "calendar",
    "reminder",
    "digest",
    "export",
    "import",
    "archive",
    "backup",
    "restore",
    "rollback",
    "failover",
    "quorum",
    "election",
    "heartbeat",
    "terminal",
    "prompt",
    "transcript",
    "handoff",
    "approval",
    "inbox",
    "canvas",
    "theme",
    "locale",
    "currency",
    "rounding",
    "tax",
    "discount",
    "coupon",
    "cart",
    "checkout",
    "shipping",
    "warehouse",
    "barcode",
    "receipt",
    "firewall",
    "proxy",
    "certificate",
    "resolver",
    "router",
    "bridge",
    "tunnel",
    "packet",
    "latency",
    "jitter",
];

/// What tells one topic from another with the same nouns.
pub(super) const QUALITIES: &[&str] = &[
    "nightly", "partial", "shared", "remote", "local", "cold", "fast", "legacy", "signed", "empty",
    "double", "lazy", "bulk", "manual", "silent", "public", "weekly", "nested", "pending",
    "broken",
];

/// What a cause can be.
pub(super) const FAULTS: &[&str] = &[
    "an off-by-one in the",
    "a race in the",
    "a stale",
    "a missing",
    "a leak in the",
    "a wrong default of the",
    "a deadlock in the",
    "an overflow in the",
    "a typo in the",
    "an expired",
];

/// What persons are called.
pub(super) const ROLES: &[&str] = &[
    "Planner",
    "Coder",
    "Reviewer",
    "Tester",
    "Builder",
    "Deployer",
    "Analyst",
    "Scribe",
    "Auditor",
    "Watcher",
    "Designer",
    "Triager",
    "Porter",
    "Librarian",
    "Gardener",
    "Courier",
];
