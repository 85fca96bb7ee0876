//! The tables of legal moves: what may happen to a run, a node, a turn and an approval, and how each
//! command is answered.
//!
//! They are written from the specification, not from the code: `model` follows the log by them, and
//! `anything` predicts with them how random commands are answered.

/// How a person may change the status of a run. Rows: the status now. Columns: the wanted one. `same`
/// is accepted and changes nothing.
pub(super) const STATUS_REQUESTS: &str = "
    _          queued   running  paused   completed  failed
    queued     same     moves    moves    refused    refused
    running    refused  same     moves    moves      moves
    paused     refused  moves    same     moves      moves
    completed  refused  moves    refused  same       refused
    failed     refused  moves    refused  refused    same
";

/// Which status may follow which in the log, whoever changed it. A stall, a budget and a restart
/// pause; a verified claim completes; a run whose nodes have all failed fails; a message reopens.
pub(super) const STATUS_EVENTS: &str = "
    _          queued  running  paused  completed  failed
    new        yes     yes      -       -          -
    queued     -       yes      yes     -          -
    running    -       -        yes     yes        yes
    paused     -       yes      -       yes        yes
    completed  -       yes      -       -          -
    failed     -       yes      -       -          -
";

/// What a restart of the server makes of a run that does not go on by itself.
pub(super) const STATUS_AFTER_RESTART: &str = "
    _          then
    queued     paused
    running    paused
    paused     paused
    completed  completed
    failed     failed
";

/// Which phase may follow which in the log. A run that failed and is reopened was in EXECUTE before.
pub(super) const PHASES: &str = "
    _          BOOT  EXECUTE  VERIFY  DOCS_SYNC  DONE
    BOOT       -     yes      yes     -          yes
    EXECUTE    -     yes      yes     yes        yes
    VERIFY     -     yes      -       yes        yes
    DOCS_SYNC  -     yes      -       -          yes
    DONE       -     yes      yes     -          -
";

/// Whether a person may have the run verified. Rows: its phase. Columns: its status. A completed run is
/// in DONE, or in VERIFY while a person has it verified; a run in DONE is completed.
pub(super) const VERIFY_REQUESTS: &str = "
    _          queued     running    paused     completed  failed
    BOOT       ok         ok         ok         -          ok
    EXECUTE    ok         ok         ok         -          ok
    VERIFY     verifying  verifying  verifying  verifying  verifying
    DOCS_SYNC  -          docs       docs       -          docs
    DONE       -          -          -          ok         -
";

/// Why an orchestrator may not complete the run: a count of reasons by phase and by status. A message
/// that waits unread is one more. A turn that could claim has taken the run out of the queue and out of
/// BOOT.
pub(super) const CLAIM_PROBLEMS: &str = "
    _          queued  running  paused  completed  failed
    BOOT       -       -        -       -          -
    EXECUTE    -       0        1       -          1
    VERIFY     -       1        2       2          2
    DOCS_SYNC  -       1        2       -          2
    DONE       -       -        -       1          -
";

/// What an event makes of the status of its node. `free` is running with an open turn, else idle.
pub(super) const NODE_EVENTS: &str = "
    _              idle     running  blocked  failed
    turn-opened    running  -        -        running
    blocked        blocked  blocked  blocked  blocked
    unblocked      -        -        free     -
    rested-idle    idle     idle     idle     -
    rested-failed  -        failed   failed   -
    parked         -        idle     idle     -
";

/// Which step of a turn may follow which: one start, the prompt, then tools and approvals in any
/// order, and one end. A turn may end before its prompt is sent, but then it has not completed.
pub(super) const TURN_STEPS: &str = "
    _                  turn.started  waiting_for_model  tool.pending  awaiting_approval  turn.completed  turn.interrupted  turn.failed
    none               yes           -                  -             -                  -               -                 -
    turn.started       -             yes                -             -                  -               yes               yes
    waiting_for_model  -             -                  yes           yes                yes             yes               yes
    tool.pending       -             -                  yes           yes                yes             yes               yes
    awaiting_approval  -             -                  yes           yes                yes             yes               yes
";

/// How a command about a node is answered. Columns: the node is deleted; it has no open turn, or the
/// command names an earlier one; the turn's prompt is being prepared; the program has the prompt; the
/// turn is being stopped and its program never got the prompt; it is being stopped after that.
///
/// `never` is what the server never reports: the program has nothing to work on. `tries` depends on
/// whether the last turn failed or its inputs were held back.
pub(super) const NODE_COMMANDS: &str = "
    _           deleted  resting  preparing  working  unsent    stopping
    interrupt   gone     ok       ok         ok       ok        ok
    reset       gone     ok       ok         ok       ok        ok
    start       gone     ok       ok         ok       ok        ok
    stop        gone     ok       ok         ok       ok        ok
    change      gone     ok       ok         ok       ok        ok
    delete      gone     ok       ok         ok       ok        ok
    retry       gone     tries    nothing    nothing  nothing   nothing
    prompt      gone     over     ok         sent     ok        sent
    usage       gone     ok       ok         ok       ok        ok
    say         gone     over     never      ok       never     ok
    permission  gone     over     never      ok       never     ok
    complete    gone     over     never      ok       never     ok
    abort       gone     over     ok         ok       ok        ok
    fail        gone     over     ok         ok       ok        ok
    limit       gone     over     never      ok       never     ok
    call        gone     over     never      ok       never     stopping
";

/// The outcome of each answer (row) to each approval (column). The first five columns are open
/// approvals by their subject; `answered` has an answer already, and `unknown` never existed. A
/// question accepts any words. Changed arguments are rejected for calls of the server's own tools and
/// for programs that cannot change them. A rule needs a command or a path.
pub(super) const ANSWERS: &str = "
    _                 command   fixed-command  other-call  graph-call  question  answered  unknown
    approve           ok        ok             ok          ok          ok        earlier   unknown
    deny              ok        ok             ok          ok          ok        earlier   unknown
    modify            ok        fixed          ok          fixed       ok        earlier   unknown
    modify-with-none  no-args   no-args        no-args     no-args     no-args   earlier   unknown
    approve-for-run   ok        ok             no-rule     no-rule     ok        earlier   unknown
    deny-for-run      ok        ok             ok          ok          ok        earlier   unknown
";

/// The cell of a table.
pub(super) fn cell(table: &'static str, row: &str, column: &str) -> &'static str {
    let mut lines = table.lines().map(str::split_whitespace);
    let place = lines
        .find_map(|mut header| header.position(|name| name == column))
        .unwrap_or_else(|| panic!("no column {column} in {table}"));
    let mut rows = lines.filter_map(|mut words| (words.next()? == row).then_some(words));
    let words = rows.next();
    let mut words = words.unwrap_or_else(|| panic!("no row {row} in {table}"));
    words.nth(place - 1).unwrap()
}

/// Whether a table of `yes` and `-` allows a move.
pub(super) fn check_allowed(table: &'static str, from: &str, to: &str) {
    assert_eq!(cell(table, from, to), "yes", "{from} to {to}");
}

/// All cells of a table, as `row column`.
pub(super) fn cells(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut lines = table.lines().filter(|line| !line.trim().is_empty());
    let header: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    lines.flat_map(move |line| {
        let row = line.split_whitespace().next().unwrap();
        let columns = header.iter().skip(1).copied().collect::<Vec<_>>();
        columns.into_iter().map(move |column| (row, column))
    })
}
