//! The table: what other programs call an option, and what to type here. One line each; an option that `laboro run` has
//! and `laboro submit` has not is here too, since it is asked for only where it is unknown.

const TEE: &str = "use --tee (lines as they come, with the task's label before them) or --line-buffer (without it)";
const HOSTS: &str = "laboro run has --sshlogin HOST,8/HOST; for a hub start workers there: laboro worker --ssh HOST";
const COPY: &str =
    "files are not copied between hosts: use a shared directory, or copy them in the task";
const SPLIT: &str =
    "laboro run has it; for a hub split the input first (split -l N FILE part.), then ::: part.*";
const NO_MODES: &str = "leave it out: there are no modes";
const SEMAPHORE: &str = "there is no semaphore: give all tasks to one laboro run, or to a hub";
const SQL: &str =
    "there is no database: laboro run --results FILE.csv writes a table, a hub keeps jobs itself";
const PLACEHOLDER: &str =
    "the placeholder cannot be renamed: it is the one at the end of laboro run --help";
const CORES: &str = "-j takes a number, or 50%, +2, -1 of the cores this process may use";
const KEPT: &str = "what tasks print is kept in a few large files: laboro logs shows it, --output-dir DIR copies it";
const PLACE: &str = "use --group GROUP and --tag TAG for where it runs";
const AFTER: &str = "use `after` in a flow (.toml)";

/// Names, and what to do instead.
pub(super) const OPTIONS: &[(&[&str], &str)] = &[
    // GNU parallel: values.
    (
        &["--link", "--xapply", "--linkinputsource", "--xapplyinputsource"],
        "use --zip, or `:::+` before the list that goes with the one before it",
    ),
    (&["--arg-sep", "--argsep"], "lists begin with `:::`; that cannot be changed"),
    (
        &["--arg-file-sep", "--argfilesep"],
        "files of values begin with `::::`; that cannot be changed",
    ),
    (&["--argfile"], "use -a FILE, or `:::: FILE`"),
    (&["--col-sep"], "use --colsep TEXT"),
    (&["--csv"], "use --colsep , for commas and quotes as spreadsheets write them"),
    (
        &["--skip-first-line", "--skipfirstline"],
        "use --header : for names in the first line, or tail -n +2 FILE | laboro run -- COMMAND {}",
    ),
    (
        &["--trim"],
        "blanks around a value are part of it: sed 's/^ *//; s/ *$//' FILE | laboro run -- COMMAND {}",
    ),
    (
        &["-d", "--delimiter"],
        "values end with a new line, or with -0 by a NUL byte: tr , '\\n' < FILE | laboro run -- COMMAND {}",
    ),
    (
        &["-E", "-e", "--eof"],
        "all of the input is read; cut it first: sed '/END/,$d' FILE | laboro run -- COMMAND {}",
    ),
    (
        &["-r", "--no-run-if-empty", "--norunifempty"],
        "nothing runs without values; that is an error with exit status 2",
    ),
    (
        &["-L", "-l", "--max-lines", "--maxlines", "--maxreplaceargs", "--maxargs"],
        "use -n N: N values for each command",
    ),
    (
        &["--xargs", "-s", "--max-chars", "--maxchars", "-x", "--exit"],
        "use -m: as many values for each command as fit, or -n N for so many",
    ),
    (
        &["--show-limits", "--showlimits", "--max-line-length-allowed", "--maxlinelengthallowed"],
        "a command line may have 128 KiB per argument; -m stays below that by itself",
    ),
    (&["--shuf-seed"], "--shuf has the same order each time"),
    (&["--filter"], "filter the values first: grep … FILE | laboro run -- COMMAND {}"),
    (
        &[
            "-I",
            "-i",
            "--replace",
            "-U",
            "--extensionreplace",
            "--er",
            "--basenamereplace",
            "--bnr",
        ],
        PLACEHOLDER,
    ),
    (
        &[
            "--dirnamereplace",
            "--dnr",
            "--basenameextensionreplace",
            "--bner",
            "--seqreplace",
            "--slotreplace",
        ],
        PLACEHOLDER,
    ),
    (
        &["--plus", "--rpl", "--parens"],
        "placeholders are those at the end of laboro run --help; nothing has to be switched on",
    ),
    (&["--quote"], "leave it out: several words never meet a shell, and values are always quoted"),
    (
        &["--shell-quote", "--shellquote", "--shell_quote"],
        "values are always quoted for where they stand; --dry-run shows it",
    ),
    // GNU parallel: how many, how fast.
    (&["-P", "--max-procs", "--maxprocs"], "use -j N: how many run at once"),
    (
        &["-j", "--jobs"],
        "a hub runs as many tasks as its workers have slots; --max-running N limits those of this job",
    ),
    (&["--priority"], "use `priority` in a flow; tasks of a run start in the order of the input"),
    (
        &[
            "--use-cores-instead-of-threads",
            "--usecoresinsteadofthreads",
            "--use-cpus-instead-of-cores",
            "--usecpusinsteadofcores",
            "--use-sockets-instead-of-threads",
            "--usesocketsinsteadofthreads",
        ],
        CORES,
    ),
    (
        &[
            "--number-of-cores",
            "--numberofcores",
            "--number-of-cpus",
            "--numberofcpus",
            "--number-of-sockets",
            "--numberofsockets",
            "--number-of-threads",
            "--numberofthreads",
        ],
        "use nproc, or lscpu",
    ),
    (&["--limit"], "use --load N, --memory-free SIZE, or needs: --memory SIZE, --resource NAME=N"),
    (&["--delay"], "laboro run has it; a hub starts what fits its workers"),
    (
        &["--load", "--noswap"],
        "laboro run has --load N, and --memory-free SIZE for what must be free",
    ),
    (
        &["--memfree", "--memsuspend"],
        "use --memory-free SIZE: start nothing more while less than this is available",
    ),
    (
        &["--halt", "--halt-on-error", "--haltonerror"],
        "laboro run has --halt; use --max-fails N: stop when more than N tasks have failed (0: at the first)",
    ),
    (&["--retries"], "use --attempts N: how often a task may be tried in all"),
    (
        &["--term-seq", "--termseq"],
        "use --grace TIME: a task gets SIGTERM, and after that time SIGKILL",
    ),
    (&["--total", "--totaljobs", "--total-jobs"], "the number of tasks is known by itself"),
    (&["--process-slot-var", "--processslotvar"], "use {%} in the command: the number of its slot"),
    // GNU parallel: what is shown and kept.
    (
        &["--bar", "--progress", "--eta", "--latest-line", "--latestline", "--ll"],
        "progress is shown on a terminal by itself; --quiet leaves it out",
    ),
    (&["-p", "--interactive"], "there are no questions; --dry-run shows what would run"),
    (&["--line-buffer", "--linebuffer", "--lb", "--line-buffered", "--linebuffered"], TEE),
    (&["--ungroup", "-u"], TEE),
    (
        &["--tagstring", "--tag-string", "--ctag", "--ctagstring", "--ctag-string"],
        "use --tee: it puts the task's label before each line",
    ),
    (&["--group", "-g"], "output is never mixed: -k prints it in the order of the input"),
    (&["--keeporder"], "use -k (--keep-order)"),
    (
        &["-k", "--keep-order", "--tee"],
        "laboro run has it; of a hub, laboro logs TASK shows what a task printed, --follow as it comes",
    ),
    (
        &["--no-keep-order", "--nokeeporder", "--no-k", "--nok"],
        "leave it out: without -k nothing is printed in order",
    ),
    (
        &["--color", "--colour", "--color-failed", "--colour-failed", "--colorfailed"],
        "there is no colour in what tasks print",
    ),
    (
        &["--colourfailed", "--color-fail", "--colour-fail", "--colorfail", "--colourfail", "--cf"],
        "there is no colour in what tasks print",
    ),
    (
        &["-t", "-v", "--verbose", "--debug", "-D"],
        "use --dry-run to see the commands, --json for events as they run",
    ),
    (&["--silent"], "use --quiet"),
    (&["--dryrun", "--dr"], "use --dry-run"),
    (
        &["--joblog", "--jl"],
        "laboro run has --joblog FILE; of a hub, `laboro report` and `laboro events` show the same",
    ),
    (
        &["--results", "--result", "--res"],
        "laboro run has --results; of a hub, laboro logs shows it",
    ),
    (&["--files", "--output-as-files", "--outputasfiles"], KEPT),
    (
        &["--resume", "--resume-failed", "--resumefailed", "--retryfailed", "--retry-failed"],
        "typing the same command again resumes it; laboro run --retry-failed and laboro retry run failed tasks again",
    ),
    (
        &[
            "--compress",
            "--compress-program",
            "--compressprogram",
            "--use-compress-program",
            "--usecompressprogram",
        ],
        KEPT,
    ),
    (
        &[
            "--decompress-program",
            "--decompressprogram",
            "--use-decompress-program",
            "--usedecompressprogram",
        ],
        KEPT,
    ),
    (&["--tmux", "--tmuxpane", "--tmux-pane"], "use laboro logs --follow TASK in another terminal"),
    (
        &["--tty", "--open-tty", "-o", "--opentty"],
        "tasks have no terminal: run what needs one by hand",
    ),
    // GNU parallel: standard input.
    (&["--pipe", "--spreadstdin", "--block", "--blocksize", "--block-size"], SPLIT),
    (&["--recend", "--recstart"], SPLIT),
    (&["--pipepart", "--pipe-part"], "use --pipe < FILE"),
    (&["--cat", "--fifo"], "a block of --pipe is standard input: /dev/stdin is a file with it"),
    (
        &["--round-robin", "--roundrobin", "--round"],
        "with --pipe every block is a task of its own; --block SIZE says how large",
    ),
    (
        &["--shard", "--bin", "--group-by", "--groupby"],
        "sort or split the input first: blocks of --pipe are cut where they are full",
    ),
    (&["--regexp", "--regex"], "--recend and --recstart take a text, not a pattern"),
    (
        &["--remove-rec-sep", "--removerecsep", "--rrs"],
        "what ends a record stays in it: remove it in the task",
    ),
    (
        &["--block-timeout", "--blocktimeout", "--bt"],
        "--pipe reads all of the input before the first task starts",
    ),
    // GNU parallel: other hosts.
    (&["-S", "--sshlogin", "--slf", "--sshloginfile", "--ssh", "-M", "--controlmaster"], HOSTS),
    (&["--ssh-delay", "--sshdelay", "--filter-hosts", "--filterhosts", "--filter-host"], HOSTS),
    (&["--onall", "--nonall"], "for one task per worker, give each worker a tag and use --tag TAG"),
    (
        &["--hostgroups", "--hostgroup", "--hostgrp", "--hgrp"],
        "use --tag TAG, and workers with --with-tag TAG",
    ),
    (
        &[
            "--transferfile",
            "--transfer-file",
            "--transferfiles",
            "--transfer-files",
            "--transfer",
            "--tf",
        ],
        COPY,
    ),
    (
        &["--return", "--cleanup", "--trc", "--basefile", "--bf", "--rsync-opts", "--rsyncopts"],
        COPY,
    ),
    (
        &["--record-env", "--recordenv", "--session"],
        "tasks of laboro run inherit all variables; --env NAME takes one to a hub",
    ),
    (&["--template", "--tmpl"], "write the file in the task; a flow has `stdin` for a text"),
    // GNU parallel: itself.
    (
        &["--tempdir", "--tmpdir"],
        "use --state DIR for what laboro keeps, --workdir DIR for where tasks run",
    ),
    (&["--work-dir"], "use --workdir DIR"),
    (&["--semaphore", "--sem", "--id", "--fg", "--bg"], SEMAPHORE),
    (
        &[
            "--semaphore-name",
            "--semaphorename",
            "--semaphore-timeout",
            "--semaphoretimeout",
            "--st",
        ],
        SEMAPHORE,
    ),
    (&["--wait"], "laboro run always waits; laboro submit has --wait"),
    (
        &[
            "--sql",
            "--sqlmaster",
            "--sql-master",
            "--sqlworker",
            "--sql-worker",
            "--sqlandworker",
            "--sql-and-worker",
        ],
        SQL,
    ),
    (
        &[
            "--tollef",
            "--gnu",
            "--plain",
            "--profile",
            "-J",
            "--fast",
            "--bug",
            "-B",
            "-H",
            "-T",
            "-W",
            "-Y",
        ],
        NO_MODES,
    ),
    (
        &["--ctrl-c", "--ctrlc", "--no-ctrl-c", "--no-ctrlc", "--noctrlc"],
        "leave it out: Ctrl-C once waits for what runs, twice ends it",
    ),
    (
        &[
            "--will-cite",
            "--willcite",
            "--citation",
            "--bibtex",
            "--nn",
            "--nonotice",
            "--no-notice",
        ],
        "nothing of the kind is asked for here",
    ),
    (&["--min-version", "--minversion", "-V", "--version"], "use laboro --version"),
    (
        &["--shebang", "--hashbang", "--shebang-wrap", "--embed"],
        "write `laboro run` into a script of your own",
    ),
    (&["--shellcompletion", "--shell-completion"], "use laboro completions SHELL"),
    // HyperQueue.
    (&["--env"], "tasks of laboro run inherit all variables; in a flow `env` sets more"),
    (&["--cpus"], "use --slots N, or `slots` in a flow; -j is what this machine offers"),
    (&["--pin"], "tasks are not pinned to cores: put `taskset` or `numactl` before the command"),
    (&["--stdout", "--stderr"], "use --output-dir DIR, or `output` in a flow"),
    (&["--output-mode"], "use --json where it is known"),
    (&["--stdin"], "use `stdin` in a flow, or --pipe of laboro run"),
    (
        &["--each-line", "--from-json"],
        "use `:::: FILE` for one value per line, or a .jsonl file of tasks",
    ),
    (&["--time-limit", "--time-request"], "use --timeout TIME"),
    (&["--crash-limit"], "use --attempts N"),
    (&["--directives"], "write a flow (.toml): options in the script are not read"),
    (&["--stream", "--log"], KEPT),
    (&["--task-dir"], "each task has a directory of its own at a worker: $LABORO_SCRATCH"),
    (&["--cwd"], "use --workdir DIR"),
    (&["--progress-bar"], "use --wait: it shows progress"),
    (&["--on-notify"], "use laboro events --json: it prints events as they happen"),
    (&["--job"], "use laboro submit --add JOB"),
    (&["--server-dir"], "use --dir DIR: the hub's directory"),
    (&["--nodes"], "a task runs on one machine"),
    (&["--worker", "--workers"], "workers are started by themselves: laboro worker"),
    // Slurm.
    (&["--partition", "--qos", "--account", "--nodelist", "-w"], PLACE),
    (&["--dependency"], AFTER),
    (&["--after"], AFTER),
    (&["--ntasks", "--cpus-per-task"], "use --slots N, or `slots` in a flow"),
    (&["--mem", "--mem-per-cpu"], "use --memory SIZE"),
    (&["--gres", "--gpus"], "use --resource gpu=N"),
    (&["--time"], "use --timeout TIME"),
    (&["--job-name"], "use --name NAME"),
    (&["--output", "--error"], "use --output-dir DIR, or `output` in a flow"),
    (&["--chdir"], "use --workdir DIR"),
];
