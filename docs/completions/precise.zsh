#compdef precise

autoload -U is-at-least

_precise() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_precise_commands" \
"*::: :->precise" \
&& ret=0
    case $state in
    (precise)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:precise-command-$line[1]:"
        case $line[1] in
            (record)
_arguments "${_arguments_options[@]}" : \
'*-e+[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'*--event=[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'-c+[Take one sample every N events]:N:_default' \
'--count=[Take one sample every N events]:N:_default' \
'-F+[Aim for N samples per second per CPU]:N:_default' \
'--freq=[Aim for N samples per second per CPU]:N:_default' \
'--precise=[Set the precision]:HOW:((auto\:"As precise as the hardware allows; every downgrade is reported"
require\:"Precise, or fail"
off\:"Do not ask for precision"))' \
'--ldlat=[Sample only loads of at least N core cycles (presets loads, mem, c2c)]:N:_default' \
'*-p+[Sample these processes and the processes that they start]:PIDS:_default' \
'*--pid=[Sample these processes and the processes that they start]:PIDS:_default' \
'*-t+[Sample these threads and the threads that they start]:TIDS:_default' \
'*--tid=[Sample these threads and the threads that they start]:TIDS:_default' \
'-C+[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--cpu=[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--filter=[Keep only samples that match, as in '\''latency > 100 && comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--comm=[Keep only samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep only samples with a data address in this range\: 0x1000..0x2000]:RANGE:_default' \
'*--code=[Keep only samples with an instruction address in this range\: 0x1000..0x2000]:RANGE:_default' \
'--min-latency=[Keep only samples with a latency of at least N core cycles]:N:_default' \
'--max-latency=[Keep only samples with a latency of at most N core cycles]:N:_default' \
'--duration=[Stop after this time \[default\: 10s, or the end of COMMAND\]]:TIME:_default' \
'--stop-file=[Stop as soon as this file exists]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'--by=[Group samples in the kernel by these keys \[default\: by event\]]:KEYS:_default' \
'--granule=[Round data addresses down to multiples of BYTES \[default\: 64; 1 for c2c\]]:BYTES:_default' \
'--lines=[Keep addresses of at most N cache lines (preset c2c)]:N:_default' \
'--call-graph=[Record call chains in this way\: auto, tables or fp \[default of -g\: auto\]]:HOW:((auto\:"By unwind tables, and where code has none, by frame pointers"
tables\:"By unwind tables only"
fp\:"By frame pointers, in the kernel"))' \
'--stacks=[Keep at most N call chains per CPU (2,112 bytes each) \[default\: 64 MiB in total\]]:N:_default' \
'--unwind-memory=[Limit the memory of unwind tables \[default\: 32M\]]:BYTES:_default' \
'--stack-depth=[Unwind at most N frames of user space \[default\: 127\]]:N:_default' \
'--epoch=[Read the table at this interval\: the resolution of the time axis \[default\: a sixtieth of --duration, from 100ms to 1s\]]:TIME:_default' \
'--overhead=[Limit the overhead per CPU\: percent of its time, or \`off\` \[default\: 1%\]]:PERCENT:_default' \
'--table-cells=[Set the size of the table, in cells per CPU (128 bytes each) \[default\: 8192\]]:N:_default' \
'-o+[Write the capture to FILE, or \`-\` for stdout]:FILE:_files' \
'--output=[Write the capture to FILE, or \`-\` for stdout]:FILE:_files' \
'--plot=[Draw a heatmap to this file\: .png or .svg]:FILE:_files' \
'-s+[Sort by samples, period, latency, avg, max, or a key]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or a key]:WHAT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--entries=[Show N groups of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--l3-miss-only[Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)]' \
'-a[Sample all processes on all CPUs (default)]' \
'--all-cpus[Sample all processes on all CPUs (default)]' \
'(-p --pid -t --tid)--include-self[Keep the samples of precise itself]' \
'(-U --all-user)-K[Keep only samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep only samples taken in the kernel]' \
'-U[Keep only samples taken in user space]' \
'--all-user[Keep only samples taken in user space]' \
'-g[Record call chains]' \
'-q[Print only the result]' \
'--quiet[Print only the result]' \
'--idle[Include the samples of idle CPUs]' \
'--stdio[Print text; the default]' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- Command to run and sample, with its arguments:_default' \
&& ret=0
;;
(script)
_arguments "${_arguments_options[@]}" : \
'*-e+[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'*--event=[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'-c+[Take one sample every N events]:N:_default' \
'--count=[Take one sample every N events]:N:_default' \
'-F+[Aim for N samples per second per CPU]:N:_default' \
'--freq=[Aim for N samples per second per CPU]:N:_default' \
'--precise=[Set the precision]:HOW:((auto\:"As precise as the hardware allows; every downgrade is reported"
require\:"Precise, or fail"
off\:"Do not ask for precision"))' \
'--ldlat=[Sample only loads of at least N core cycles (presets loads, mem, c2c)]:N:_default' \
'*-p+[Sample these processes and the processes that they start]:PIDS:_default' \
'*--pid=[Sample these processes and the processes that they start]:PIDS:_default' \
'*-t+[Sample these threads and the threads that they start]:TIDS:_default' \
'*--tid=[Sample these threads and the threads that they start]:TIDS:_default' \
'-C+[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--cpu=[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--filter=[Keep only samples that match, as in '\''latency > 100 && comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--comm=[Keep only samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep only samples with a data address in this range\: 0x1000..0x2000]:RANGE:_default' \
'*--code=[Keep only samples with an instruction address in this range\: 0x1000..0x2000]:RANGE:_default' \
'--min-latency=[Keep only samples with a latency of at least N core cycles]:N:_default' \
'--max-latency=[Keep only samples with a latency of at most N core cycles]:N:_default' \
'--duration=[Stop after this time \[default\: 10s, or the end of COMMAND\]]:TIME:_default' \
'--stop-file=[Stop as soon as this file exists]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'*--fields=[Print these fields, in this order \[default\: all fields that the event has\]]:FIELDS:_default' \
'--call-graph=[Record call chains in this way\: auto, tables or fp \[default of -g\: auto\]]:HOW:((auto\:"By unwind tables, and where code has none, by frame pointers"
tables\:"By unwind tables only"
fp\:"By frame pointers, in the kernel"))' \
'--stack-copy=[Copy at most BYTES of each stack \[default\: 16K\]]:BYTES:_default' \
'-n+[Stop after N samples]:N:_default' \
'--samples=[Stop after N samples]:N:_default' \
'--ring-pages=[Set the size of the ring of each CPU and event, in pages (a power of two) \[default\: 128\]]:N:_default' \
'--account=[Write the account of all samples to this file, as one line of JSON]:FILE:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--l3-miss-only[Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)]' \
'-a[Sample all processes on all CPUs (default)]' \
'--all-cpus[Sample all processes on all CPUs (default)]' \
'(-p --pid -t --tid)--include-self[Keep the samples of precise itself]' \
'(-U --all-user)-K[Keep only samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep only samples taken in the kernel]' \
'-U[Keep only samples taken in user space]' \
'--all-user[Keep only samples taken in user space]' \
'--json[Print one JSON object per sample, one per line]' \
'-q[Print only the samples, unless some are missing]' \
'--quiet[Print only the samples, unless some are missing]' \
'-g[Print the call chain of each sample]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- Command to run and sample, with its arguments:_default' \
&& ret=0
;;
(top)
_arguments "${_arguments_options[@]}" : \
'*-e+[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'*--event=[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'-c+[Take one sample every N events]:N:_default' \
'--count=[Take one sample every N events]:N:_default' \
'-F+[Aim for N samples per second per CPU]:N:_default' \
'--freq=[Aim for N samples per second per CPU]:N:_default' \
'--precise=[Set the precision]:HOW:((auto\:"As precise as the hardware allows; every downgrade is reported"
require\:"Precise, or fail"
off\:"Do not ask for precision"))' \
'--ldlat=[Sample only loads of at least N core cycles (presets loads, mem, c2c)]:N:_default' \
'*-p+[Sample these processes and the processes that they start]:PIDS:_default' \
'*--pid=[Sample these processes and the processes that they start]:PIDS:_default' \
'*-t+[Sample these threads and the threads that they start]:TIDS:_default' \
'*--tid=[Sample these threads and the threads that they start]:TIDS:_default' \
'-C+[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--cpu=[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--filter=[Keep only samples that match, as in '\''latency > 100 && comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--comm=[Keep only samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep only samples with a data address in this range\: 0x1000..0x2000]:RANGE:_default' \
'*--code=[Keep only samples with an instruction address in this range\: 0x1000..0x2000]:RANGE:_default' \
'--min-latency=[Keep only samples with a latency of at least N core cycles]:N:_default' \
'--max-latency=[Keep only samples with a latency of at most N core cycles]:N:_default' \
'--stop-file=[Stop as soon as this file exists]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'--call-graph=[Record call chains in this way\: auto, tables or fp \[default of -g\: auto\]]:HOW:((auto\:"By unwind tables, and where code has none, by frame pointers"
tables\:"By unwind tables only"
fp\:"By frame pointers, in the kernel"))' \
'--stacks=[Keep at most N call chains per CPU (2,112 bytes each) \[default\: 64 MiB in total\]]:N:_default' \
'--unwind-memory=[Limit the memory of unwind tables \[default\: 32M\]]:BYTES:_default' \
'--stack-depth=[Unwind at most N frames of user space \[default\: 127\]]:N:_default' \
'--window=[Show the samples of this time]:TIME:_default' \
'--overhead=[Limit the overhead per CPU\: percent of its time, or \`off\` \[default\: 1%\]]:PERCENT:_default' \
'--table-cells=[Set the size of the table, in cells per CPU (128 bytes each) \[default\: 8192\]]:N:_default' \
'-o+[Write the window to FILE when w is pressed]:FILE:_files' \
'--output=[Write the window to FILE when w is pressed]:FILE:_files' \
'--epoch=[Read the table, and draw, at this interval \[default\: 1s\]]:TIME:_default' \
'--duration=[Stop after this time \[default\: run until stopped\]]:TIME:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--l3-miss-only[Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)]' \
'-a[Sample all processes on all CPUs (default)]' \
'--all-cpus[Sample all processes on all CPUs (default)]' \
'(-p --pid -t --tid)--include-self[Keep the samples of precise itself]' \
'(-U --all-user)-K[Keep only samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep only samples taken in the kernel]' \
'-U[Keep only samples taken in user space]' \
'--all-user[Keep only samples taken in user space]' \
'-g[Record call chains]' \
'--idle[Include the samples of idle CPUs]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- Command to run and sample, with its arguments:_default' \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
'--config=[Read settings from this TOML file]:FILE:_files' \
'*-e+[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'*--event=[Sample these events or presets \[default\: precise cycles, or cpu-clock\]]:EVENTS:_default' \
'-c+[Take one sample every N events]:N:_default' \
'--count=[Take one sample every N events]:N:_default' \
'-F+[Aim for N samples per second per CPU]:N:_default' \
'--freq=[Aim for N samples per second per CPU]:N:_default' \
'--precise=[Set the precision]:HOW:((auto\:"As precise as the hardware allows; every downgrade is reported"
require\:"Precise, or fail"
off\:"Do not ask for precision"))' \
'--ldlat=[Sample only loads of at least N core cycles (presets loads, mem, c2c)]:N:_default' \
'*-p+[Sample these processes and the processes that they start]:PIDS:_default' \
'*--pid=[Sample these processes and the processes that they start]:PIDS:_default' \
'*-t+[Sample these threads and the threads that they start]:TIDS:_default' \
'*--tid=[Sample these threads and the threads that they start]:TIDS:_default' \
'-C+[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--cpu=[Sample only these CPUs, for example 0-3,7]:CPUS:_default' \
'--filter=[Keep only samples that match, as in '\''latency > 100 && comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Keep only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--comm=[Keep only samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep only samples with a data address in this range\: 0x1000..0x2000]:RANGE:_default' \
'*--code=[Keep only samples with an instruction address in this range\: 0x1000..0x2000]:RANGE:_default' \
'--min-latency=[Keep only samples with a latency of at least N core cycles]:N:_default' \
'--max-latency=[Keep only samples with a latency of at most N core cycles]:N:_default' \
'--stop-file=[Stop as soon as this file exists]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'--listen=[Listen on this address]:ADDRESS:PORT:_default' \
'*--allow-host=[Accept requests to this host name]:NAME:_default' \
'--tls-cert=[Serve HTTPS with the certificates in this PEM file]:FILE:_files' \
'--tls-key=[Use the key in this PEM file]:FILE:_files' \
'--token-file=[Answer only requests with the token in this file (mode 600)]:FILE:_files' \
'--by=[Label the series by these keys, or \`none\`]:KEYS:_default' \
'--series=[Keep at most N series]:N:_default' \
'--call-graph=[Record call chains in this way\: auto, tables or fp \[default of -g\: auto\]]:HOW:((auto\:"By unwind tables, and where code has none, by frame pointers"
tables\:"By unwind tables only"
fp\:"By frame pointers, in the kernel"))' \
'--stacks=[Keep at most N call chains per CPU (2,112 bytes each) \[default\: 64 MiB in total\]]:N:_default' \
'--unwind-memory=[Limit the memory of unwind tables \[default\: 32M\]]:BYTES:_default' \
'--stack-depth=[Unwind at most N frames of user space \[default\: 127\]]:N:_default' \
'--captures=[Keep the samples as captures in this folder, too]:FOLDER:_files' \
'--capture-length=[Complete a capture after this time]:TIME:_default' \
'--keep-bytes=[Remove the oldest captures if all take more than BYTES]:BYTES:_default' \
'--keep-age=[Remove captures that are older than this]:TIME:_default' \
'--archive=[Archive each capture to this folder or s3\://BUCKET/PREFIX]:PLACE:_files' \
'--label=[Begin the labels in the archive with this word]:LABEL:_default' \
'*--push=[Push profiles to otlp=URL or pyroscope=URL]:KIND=URL:_default' \
'--push-every=[Push the samples of this time together]:TIME:_default' \
'*--push-headers=[Add the header fields in a file (mode 600) to requests\: otlp=FILE, pyroscope=FILE]:KIND=FILE:_default' \
'--push-service=[Name the service of all samples, instead of one service for each cgroup]:NAME:_default' \
'--push-memory=[Keep at most BYTES of samples that wait for one place]:BYTES:_default' \
'--overhead=[Limit the overhead per CPU\: percent of its time, or \`off\` \[default\: 1%\]]:PERCENT:_default' \
'--table-cells=[Set the size of the table, in cells per CPU (128 bytes each) \[default\: 8192\]]:N:_default' \
'--epoch=[Read the table at this interval \[default\: 1s\]]:TIME:_default' \
'--duration=[Stop after this time \[default\: run until stopped\]]:TIME:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--check-config[Check the settings, print what is wrong with them, and do not sample]' \
'--print-config[Print a file with all settings and their defaults]' \
'--l3-miss-only[Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)]' \
'-a[Sample all processes on all CPUs (default)]' \
'--all-cpus[Sample all processes on all CPUs (default)]' \
'(-p --pid -t --tid)--include-self[Keep the samples of precise itself]' \
'(-U --all-user)-K[Keep only samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep only samples taken in the kernel]' \
'-U[Keep only samples taken in user space]' \
'--all-user[Keep only samples taken in user space]' \
'-g[Record call chains]' \
'-q[Print only problems]' \
'--quiet[Print only problems]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- Command to run and sample, with its arguments:_default' \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
'()-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'()--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'*-e+[Import only these events, by their names in perf \[default\: all\]]:EVENTS:_default' \
'*--event=[Import only these events, by their names in perf \[default\: all\]]:EVENTS:_default' \
'--symfs=[Look up the recorded paths below this directory]:DIRECTORY:_files' \
'*--debug-dir=[Look up files and debug information here by build id (.build-id/ab/cdef…)]:DIRECTORY:_files' \
'--kallsyms=[Name kernel addresses by this copy of /proc/kallsyms]:FILE:_files' \
'-o+[Write the capture to this file; \`-\` is the standard output]:FILE:_files' \
'--output=[Write the capture to this file; \`-\` is the standard output]:FILE:_files' \
'--by=[Group samples by these keys \[default\: by the contents of the file\]]:KEYS:_default' \
'--granule=[Round data addresses down to multiples of BYTES, a power of two]:BYTES:_default' \
'--epoch=[Set the length of an epoch\: the resolution of the time axis]:TIME:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'-q[Print only the result]' \
'--quiet[Print only the result]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- File that `perf record` wrote; `-` is the standard input:_files' \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Group by these keys\: function, line, module, cgroup, cpu, level, latency, …]:KEYS:_default' \
'(--by -s --sort)-g+[Show the callers and callees of FUNCTION \[default\: of the hottest\]]::FUNCTION:_default' \
'(--by -s --sort)--call-graph=[Show the callers and callees of FUNCTION \[default\: of the hottest\]]::FUNCTION:_default' \
'(--by -g --call-graph -s --sort -n --limit --json -x --field-separator)--html=[Write one HTML page with all findings, tables and pictures]:FILE:_files' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'-s+[Sort by samples, period, latency, avg, max, or a key]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or a key]:WHAT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--entries=[Show N groups of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(mem)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Group by these keys\: function, line, … \[default\: level, snoop, tlb, locked\]]:KEYS:_default' \
'-s+[Sort by samples, period, latency, avg, max, or a key \[default\: latency, if any\]]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or a key \[default\: latency, if any\]]:WHAT:_default' \
'-n+[Show N groups of each kind of access]:N:_default' \
'--limit=[Show N groups of each kind of access]:N:_default' \
'--entries=[Show N groups of each kind of access]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Group by these keys\: level, function, line, cgroup, … \[default\: level, if known\]]:KEYS:_default' \
'-s+[Sort by samples, latency, avg, max, or a key]:WHAT:_default' \
'--sort=[Sort by samples, latency, avg, max, or a key]:WHAT:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'-o+[Draw the histograms to FILE\: .png or .svg]:FILE:_files' \
'--output=[Draw the histograms to FILE\: .png or .svg]:FILE:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--idle[Include the samples of idle CPUs]' \
'--stdio[Print text; the default]' \
'(-o --output)--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(tlb)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Group by these keys\: function, line, variable, page, … \[default\: function, if known\]]:KEYS:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(numa)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(threads)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N threads of each event]:N:_default' \
'--limit=[Show N threads of each event]:N:_default' \
'--entries=[Show N threads of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(c2c)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N cache lines]:N:_default' \
'--limit=[Show N cache lines]:N:_default' \
'--entries=[Show N cache lines]:N:_default' \
'--min-samples=[Rank lines with N HITM loads or more]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(fetch)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Group by these keys\: function, line, module, process, cgroup, …]:KEYS:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(branches)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N branches]:N:_default' \
'--limit=[Show N branches]:N:_default' \
'--entries=[Show N branches]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(derived)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(annotate)
_arguments "${_arguments_options[@]}" : \
'-i+[Capture to read; \`-\` is the standard input \[default\: precise.parquet\]]:FILE:_files' \
'--input=[Capture to read; \`-\` is the standard input \[default\: precise.parquet\]]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N functions of each event]:N:_default' \
'--limit=[Show N functions of each event]:N:_default' \
'--entries=[Show N functions of each event]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'-l[Show one row per source line, the hottest first, and no instructions]' \
'--lines[Show one row per source line, the hottest first, and no instructions]' \
'(-l --lines)--all[Show every instruction, not only those near samples]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::functions -- Show functions whose name is or contains FUNCTION \[default\: the hottest\]:_default' \
&& ret=0
;;
(chase)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N loads of each event]:N:_default' \
'--limit=[Show N loads of each event]:N:_default' \
'--entries=[Show N loads of each event]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(types)
_arguments "${_arguments_options[@]}" : \
'-i+[Capture to read; \`-\` is the standard input \[default\: precise.parquet\]]:FILE:_files' \
'--input=[Capture to read; \`-\` is the standard input \[default\: precise.parquet\]]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N types of each event]:N:_default' \
'--limit=[Show N types of each event]:N:_default' \
'--entries=[Show N types of each event]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--advise[Print the struct with its members in a better order, and how many lines that saves]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::types -- Show the layouts of types whose name is or contains TYPE:_default' \
&& ret=0
;;
(skid)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-n+[Show N functions, and ten times as many lines]:N:_default' \
'--limit=[Show N functions, and ten times as many lines]:N:_default' \
'--entries=[Show N functions, and ten times as many lines]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'--by=[Compare by these keys\: function, line, level, cgroup, variable, …]:KEYS:_default' \
'-n+[Show N entries of each event, those that changed most first]:N:_default' \
'--limit=[Show N entries of each event, those that changed most first]:N:_default' \
'--entries=[Show N entries of each event, those that changed most first]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':base -- Capture to compare with\: before the change:_files' \
':new -- Capture to compare\: after the change:_files' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'-b+[Capture to compare with\: before the change]:BASE:_files' \
'--baseline=[Capture to compare with\: before the change]:BASE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'*--fail-on=[Fail if the samples show that CONDITION holds; may be given several times]:CONDITION:_default' \
'-n+[Show N groups of each condition, those that fail first]:N:_default' \
'--limit=[Show N groups of each condition, those that fail first]:N:_default' \
'--entries=[Show N groups of each condition, those that fail first]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':new -- Capture to judge\: after the change:_files' \
&& ret=0
;;
(flamegraph)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-o+[Draw to FILE, an SVG with search and zoom; \`-\` is the standard output]:FILE:_files' \
'--output=[Draw to FILE, an SVG with search and zoom; \`-\` is the standard output]:FILE:_files' \
'--by=[Choose the measure that the widths of frames show]:WHAT:((samples\:"Number of samples"
latency\:"Sum of the latencies of samples\: where time is spent waiting"))' \
'-e+[Draw this event of the capture]:NAME:_default' \
'--event=[Draw this event of the capture]:NAME:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--idle[Include the samples of idle CPUs]' \
'(-o --output)--folded[Print folded stacks\: one line per call chain, for other tools]' \
'(-o --output --folded)--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(heatmap)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-y+[Show WHAT on the vertical axis; auto prefers latency, then addresses, then functions]:WHAT:(auto latency address function type field)' \
'--axis=[Show WHAT on the vertical axis; auto prefers latency, then addresses, then functions]:WHAT:(auto latency address function type field)' \
'--panels=[Draw one panel per WHAT]:WHAT:(auto cgroup process event none)' \
'-e+[Draw this event of the capture]:NAME:_default' \
'--event=[Draw this event of the capture]:NAME:_default' \
'--max-panels=[Draw at most N panels; the smallest groups share the last one]:N:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'-o+[Draw to FILE (.png or .svg) \[default\: draw on the terminal\]]:FILE:_files' \
'--output=[Draw to FILE (.png or .svg) \[default\: draw on the terminal\]]:FILE:_files' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--idle[Include the samples of idle CPUs]' \
'(-o --output)--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
'-l+[Archive under this label, for example the id of a deploy]:LABEL:_default' \
'--label=[Archive under this label, for example the id of a deploy]:LABEL:_default' \
'*-i+[Archive this capture; may be given several times]:FILE:_files' \
'*--input=[Archive this capture; may be given several times]:FILE:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX to archive to:_files' \
&& ret=0
;;
(fleet)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_precise__subcmd__fleet_commands" \
"*::: :->fleet" \
&& ret=0

    case $state in
    (fleet)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:precise-fleet-command-$line[1]:"
        case $line[1] in
            (compact)
_arguments "${_arguments_options[@]}" : \
'(--since)--hour=[Compact this hour of UTC, such as 2026-11-24T19, even if it is not over, and no day]:HOUR:_default' \
'--since=[Compact the hours of captures that were written since then\: a duration, a day or an hour]:TIME:_default' \
'--memory=[Hold at most about this many bytes of rows in memory]:BYTES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX that captures are archived in:_files' \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
'--service=[Only this service, as in shop/web; '\'''\'' for samples without one]:NAME:_default' \
'-e+[Only this event, as the captures name it]:EVENT:_default' \
'--event=[Only this event, as the captures name it]:EVENT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--memory=[Hold at most about this many bytes of groups in memory]:BYTES:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--last=[Ask about the hours before this one\: 24h, 7d]:TIME:_default' \
'(--last)--time=[Ask about a day or an hour of UTC, or FROM..TO with both included]:SPAN:_default' \
'*--by=[Group by these keys\: service, function, module, level, node, cluster, hour, type, field \[default\: service, or of one service function,module\]]:KEYS:_default' \
'(--exact)--within=[Read a tier of days with fewer samples\: one that takes this long (2s), or that is this good (0.5%\: no share that is shown is less certain)]:TIME|PERCENT:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--exact[Read all samples; the default]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX that captures are archived in:_files' \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
'--service=[Only this service, as in shop/web; '\'''\'' for samples without one]:NAME:_default' \
'-e+[Only this event, as the captures name it]:EVENT:_default' \
'--event=[Only this event, as the captures name it]:EVENT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--memory=[Hold at most about this many bytes of groups in memory]:BYTES:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--last=[Ask about the hours before this one\: 24h, 7d]:TIME:_default' \
'(--last)--time=[Ask about a day or an hour of UTC, or FROM..TO with both included]:SPAN:_default' \
'--by=[Group by these keys\: level, service, function, module, cluster, hour; or none]:KEYS:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX that captures are archived in:_files' \
&& ret=0
;;
(types)
_arguments "${_arguments_options[@]}" : \
'--service=[Only this service, as in shop/web; '\'''\'' for samples without one]:NAME:_default' \
'-e+[Only this event, as the captures name it]:EVENT:_default' \
'--event=[Only this event, as the captures name it]:EVENT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--memory=[Hold at most about this many bytes of groups in memory]:BYTES:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--last=[Ask about the hours before this one\: 24h, 7d]:TIME:_default' \
'(--last)--time=[Ask about a day or an hour of UTC, or FROM..TO with both included]:SPAN:_default' \
'*--by=[Group by these keys\: type, field, service, function, module, hour]:KEYS:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX that captures are archived in:_files' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--service=[Only this service, as in shop/web; '\'''\'' for samples without one]:NAME:_default' \
'-e+[Only this event, as the captures name it]:EVENT:_default' \
'--event=[Only this event, as the captures name it]:EVENT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--memory=[Hold at most about this many bytes of groups in memory]:BYTES:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--before=[The time before\: a day or an hour of UTC, or FROM..TO with both included]:SPAN:_default' \
'--after=[The time after]:SPAN:_default' \
'*--by=[Group by these keys\: service, function, module, level, node, cluster, type, field \[default\: service, or of one service function,module\]]:KEYS:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder or s3\://BUCKET/PREFIX that captures are archived in:_files' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_precise__subcmd__fleet__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:precise-fleet-help-command-$line[1]:"
        case $line[1] in
            (compact)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(types)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(export)
_arguments "${_arguments_options[@]}" : \
'-i+[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--input=[Alternative to FILE, as in perf'\''s commands]:FILE:_files' \
'--filter=[Use only samples that match, as in '\''latency >= 128 && comm == nginx'\'']:EXPRESSION:_default' \
'*--comm=[Use only samples of processes with these names]:NAMES:_default' \
'*-p+[Use only samples of these processes]:PIDS:_default' \
'*--pid=[Use only samples of these processes]:PIDS:_default' \
'*-G+[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'*--cgroup=[Use only samples of these cgroups and their descendants]:CGROUP:_default' \
'--time=[Use only this time\: 20s..45s after the start, or 14\:03\:10..14\:05 (UTC)]:RANGE:_default' \
'-f+[Write this format]:FORMAT:((pprof\:"A profile of one event for \`go tool pprof\`, with samples, period, latency and labels"
otlp\:"The profiles of all events for OpenTelemetry, as one uncompressed request (v1development)"
folded\:"One line per call chain of one event, for flame graphs"
csv\:"All rows and columns, as comma-separated values"
json\:"All rows and columns, one JSON object per line"))' \
'--format=[Write this format]:FORMAT:((pprof\:"A profile of one event for \`go tool pprof\`, with samples, period, latency and labels"
otlp\:"The profiles of all events for OpenTelemetry, as one uncompressed request (v1development)"
folded\:"One line per call chain of one event, for flame graphs"
csv\:"All rows and columns, as comma-separated values"
json\:"All rows and columns, one JSON object per line"))' \
'-o+[Write to this file; \`-\` is the standard output \[default\: precise.pb.gz for pprof, precise.otlp for otlp, else -\]]:FILE:_files' \
'--output=[Write to this file; \`-\` is the standard output \[default\: precise.pb.gz for pprof, precise.otlp for otlp, else -\]]:FILE:_files' \
'--by=[Weigh folded stacks by this; pprof shows it first]:WHAT:((samples\:"Number of samples"
latency\:"Sum of the latencies of samples\: where time is spent waiting"))' \
'-e+[Write only this event (pprof, otlp, folded)]:NAME:_default' \
'--event=[Write only this event (pprof, otlp, folded)]:NAME:_default' \
'*--require=[Exit with 68 unless the capture meets these requirements]:GATES:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--idle[Include the samples of idle CPUs]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Capture to read; `-` is the standard input \[default\: precise.parquet\]:_files' \
&& ret=0
;;
(mcp)
_arguments "${_arguments_options[@]}" : \
'--token-file=[Send the token in this file (mode 600) to the running serve]:FILE:_files' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'*--source=[Show lines of source files below FOLDER \[default\: the current folder\]]:FOLDER:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--allow-record[Offer the tool \`record\`, which samples this machine and writes to the folder]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':place -- Folder of captures, a capture, s3\://BUCKET/PREFIX, or the address of a running serve:_files' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'--worker=[Does the work of the self-test, which starts this itself]:TASK:_default' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--self-test[Sample work with known results and check every field; takes about a minute]' \
'(--self-test)--fix[Print commands that fix what was found, with reasons, without running them]' \
'--json[Print JSON]' \
'-q[Print only the result]' \
'--quiet[Print only the result]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(exit-codes)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--json[Print JSON]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'-l[List all documents with the versions of their schemas and the commands that print them]' \
'--list[List all documents with the versions of their schemas and the commands that print them]' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::name -- Print the schema of this document\: report, mem, check, … (its field `kind`):_default' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':shell -- Print the completion script of this shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'-o+[Write one page per command to this folder]:FOLDER:_files' \
'--output=[Write one page per command to this folder]:FOLDER:_files' \
'--color=[When to use colours\: auto, always, never \[default\: auto\]]:WHEN:(auto always never)' \
'--width=[Make text N columns wide \[default\: COLUMNS, or the terminal'\''s\]]:N:_default' \
'--no-pager[Do not start a pager for text that is longer than the terminal]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_precise__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:precise-help-command-$line[1]:"
        case $line[1] in
            (record)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(script)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(top)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(mem)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(tlb)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(numa)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(threads)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(c2c)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fetch)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(branches)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(derived)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(annotate)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(chase)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(types)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(skid)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(flamegraph)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(heatmap)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fleet)
_arguments "${_arguments_options[@]}" : \
":: :_precise__subcmd__help__subcmd__fleet_commands" \
"*::: :->fleet" \
&& ret=0

    case $state in
    (fleet)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:precise-help-fleet-command-$line[1]:"
        case $line[1] in
            (compact)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(types)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(export)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(mcp)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(exit-codes)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
}

(( $+functions[_precise_commands] )) ||
_precise_commands() {
    local commands; commands=(
'record:Sample, aggregate in the kernel, and write a capture' \
'script:Print samples as they are taken, one line or JSON object each' \
'top:Show the samples live, on a screen' \
'serve:Serve latencies and counts by cgroup to Prometheus' \
'import:Make a capture from a perf.data file' \
'explain:List the findings of a capture, most important first' \
'report:Show where the samples of a capture are' \
'mem:Show which level served loads and stores, from L1 to remote memory' \
'latency:Show the latency of accesses\: histogram and percentiles' \
'tlb:Show which accesses need page walks, and their cost' \
'numa:Show which NUMA nodes access which node'\''s memory' \
'threads:Show on which CPUs and NUMA nodes each thread ran' \
'c2c:Show cache lines that move between cores\: true and false sharing' \
'fetch:Show code that makes the front end wait' \
'branches:Show which branches mispredict' \
'derived:Count the derived events of AMD IBS' \
'annotate:Show source lines and instructions with their samples' \
'chase:Show loads that wait for other loads\: pointer chases' \
'types:Show which structs and fields the samples access' \
'skid:Show how far imprecise samples land from the right instruction' \
'diff:Compare two captures and test what changed significantly' \
'check:Fail if a capture is significantly worse than another' \
'flamegraph:Draw a flame graph of the call chains (record -g)' \
'heatmap:Draw the samples of a capture over time' \
'archive:Store captures under a label, in a folder or an object store' \
'fleet:Make tables of the captures of many machines, and ask them' \
'export:Convert a capture to pprof, folded stacks, CSV or JSON' \
'mcp:Answer the questions of agents about captures (Model Context Protocol)' \
'list:List the presets and events of this machine' \
'doctor:Check whether this machine can sample precisely' \
'exit-codes:List the exit codes with their meanings' \
'schema:Print the JSON Schema of a --json document' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write the pages of all commands' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise commands' commands "$@"
}
(( $+functions[_precise__subcmd__annotate_commands] )) ||
_precise__subcmd__annotate_commands() {
    local commands; commands=()
    _describe -t commands 'precise annotate commands' commands "$@"
}
(( $+functions[_precise__subcmd__archive_commands] )) ||
_precise__subcmd__archive_commands() {
    local commands; commands=()
    _describe -t commands 'precise archive commands' commands "$@"
}
(( $+functions[_precise__subcmd__branches_commands] )) ||
_precise__subcmd__branches_commands() {
    local commands; commands=()
    _describe -t commands 'precise branches commands' commands "$@"
}
(( $+functions[_precise__subcmd__c2c_commands] )) ||
_precise__subcmd__c2c_commands() {
    local commands; commands=()
    _describe -t commands 'precise c2c commands' commands "$@"
}
(( $+functions[_precise__subcmd__chase_commands] )) ||
_precise__subcmd__chase_commands() {
    local commands; commands=()
    _describe -t commands 'precise chase commands' commands "$@"
}
(( $+functions[_precise__subcmd__check_commands] )) ||
_precise__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'precise check commands' commands "$@"
}
(( $+functions[_precise__subcmd__completions_commands] )) ||
_precise__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'precise completions commands' commands "$@"
}
(( $+functions[_precise__subcmd__derived_commands] )) ||
_precise__subcmd__derived_commands() {
    local commands; commands=()
    _describe -t commands 'precise derived commands' commands "$@"
}
(( $+functions[_precise__subcmd__diff_commands] )) ||
_precise__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'precise diff commands' commands "$@"
}
(( $+functions[_precise__subcmd__doctor_commands] )) ||
_precise__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'precise doctor commands' commands "$@"
}
(( $+functions[_precise__subcmd__exit-codes_commands] )) ||
_precise__subcmd__exit-codes_commands() {
    local commands; commands=()
    _describe -t commands 'precise exit-codes commands' commands "$@"
}
(( $+functions[_precise__subcmd__explain_commands] )) ||
_precise__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'precise explain commands' commands "$@"
}
(( $+functions[_precise__subcmd__export_commands] )) ||
_precise__subcmd__export_commands() {
    local commands; commands=()
    _describe -t commands 'precise export commands' commands "$@"
}
(( $+functions[_precise__subcmd__fetch_commands] )) ||
_precise__subcmd__fetch_commands() {
    local commands; commands=()
    _describe -t commands 'precise fetch commands' commands "$@"
}
(( $+functions[_precise__subcmd__flamegraph_commands] )) ||
_precise__subcmd__flamegraph_commands() {
    local commands; commands=()
    _describe -t commands 'precise flamegraph commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet_commands] )) ||
_precise__subcmd__fleet_commands() {
    local commands; commands=(
'compact:Add the captures of a place up to tables by hour and day' \
'report:Show where the samples of many machines are' \
'latency:Show how long the memory accesses of many machines take' \
'types:Show which types and fields the samples of many machines access' \
'diff:Show what changed on many machines from one time to another' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise fleet commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__compact_commands] )) ||
_precise__subcmd__fleet__subcmd__compact_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet compact commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__diff_commands] )) ||
_precise__subcmd__fleet__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet diff commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help_commands] )) ||
_precise__subcmd__fleet__subcmd__help_commands() {
    local commands; commands=(
'compact:Add the captures of a place up to tables by hour and day' \
'report:Show where the samples of many machines are' \
'latency:Show how long the memory accesses of many machines take' \
'types:Show which types and fields the samples of many machines access' \
'diff:Show what changed on many machines from one time to another' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise fleet help commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__compact_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__compact_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help compact commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__diff_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help diff commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__help_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help help commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__latency_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__latency_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help latency commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__report_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help report commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__help__subcmd__types_commands] )) ||
_precise__subcmd__fleet__subcmd__help__subcmd__types_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet help types commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__latency_commands] )) ||
_precise__subcmd__fleet__subcmd__latency_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet latency commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__report_commands] )) ||
_precise__subcmd__fleet__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet report commands' commands "$@"
}
(( $+functions[_precise__subcmd__fleet__subcmd__types_commands] )) ||
_precise__subcmd__fleet__subcmd__types_commands() {
    local commands; commands=()
    _describe -t commands 'precise fleet types commands' commands "$@"
}
(( $+functions[_precise__subcmd__heatmap_commands] )) ||
_precise__subcmd__heatmap_commands() {
    local commands; commands=()
    _describe -t commands 'precise heatmap commands' commands "$@"
}
(( $+functions[_precise__subcmd__help_commands] )) ||
_precise__subcmd__help_commands() {
    local commands; commands=(
'record:Sample, aggregate in the kernel, and write a capture' \
'script:Print samples as they are taken, one line or JSON object each' \
'top:Show the samples live, on a screen' \
'serve:Serve latencies and counts by cgroup to Prometheus' \
'import:Make a capture from a perf.data file' \
'explain:List the findings of a capture, most important first' \
'report:Show where the samples of a capture are' \
'mem:Show which level served loads and stores, from L1 to remote memory' \
'latency:Show the latency of accesses\: histogram and percentiles' \
'tlb:Show which accesses need page walks, and their cost' \
'numa:Show which NUMA nodes access which node'\''s memory' \
'threads:Show on which CPUs and NUMA nodes each thread ran' \
'c2c:Show cache lines that move between cores\: true and false sharing' \
'fetch:Show code that makes the front end wait' \
'branches:Show which branches mispredict' \
'derived:Count the derived events of AMD IBS' \
'annotate:Show source lines and instructions with their samples' \
'chase:Show loads that wait for other loads\: pointer chases' \
'types:Show which structs and fields the samples access' \
'skid:Show how far imprecise samples land from the right instruction' \
'diff:Compare two captures and test what changed significantly' \
'check:Fail if a capture is significantly worse than another' \
'flamegraph:Draw a flame graph of the call chains (record -g)' \
'heatmap:Draw the samples of a capture over time' \
'archive:Store captures under a label, in a folder or an object store' \
'fleet:Make tables of the captures of many machines, and ask them' \
'export:Convert a capture to pprof, folded stacks, CSV or JSON' \
'mcp:Answer the questions of agents about captures (Model Context Protocol)' \
'list:List the presets and events of this machine' \
'doctor:Check whether this machine can sample precisely' \
'exit-codes:List the exit codes with their meanings' \
'schema:Print the JSON Schema of a --json document' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write the pages of all commands' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise help commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__annotate_commands] )) ||
_precise__subcmd__help__subcmd__annotate_commands() {
    local commands; commands=()
    _describe -t commands 'precise help annotate commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__archive_commands] )) ||
_precise__subcmd__help__subcmd__archive_commands() {
    local commands; commands=()
    _describe -t commands 'precise help archive commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__branches_commands] )) ||
_precise__subcmd__help__subcmd__branches_commands() {
    local commands; commands=()
    _describe -t commands 'precise help branches commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__c2c_commands] )) ||
_precise__subcmd__help__subcmd__c2c_commands() {
    local commands; commands=()
    _describe -t commands 'precise help c2c commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__chase_commands] )) ||
_precise__subcmd__help__subcmd__chase_commands() {
    local commands; commands=()
    _describe -t commands 'precise help chase commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__check_commands] )) ||
_precise__subcmd__help__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'precise help check commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__completions_commands] )) ||
_precise__subcmd__help__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'precise help completions commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__derived_commands] )) ||
_precise__subcmd__help__subcmd__derived_commands() {
    local commands; commands=()
    _describe -t commands 'precise help derived commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__diff_commands] )) ||
_precise__subcmd__help__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'precise help diff commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__doctor_commands] )) ||
_precise__subcmd__help__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'precise help doctor commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__exit-codes_commands] )) ||
_precise__subcmd__help__subcmd__exit-codes_commands() {
    local commands; commands=()
    _describe -t commands 'precise help exit-codes commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__explain_commands] )) ||
_precise__subcmd__help__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'precise help explain commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__export_commands] )) ||
_precise__subcmd__help__subcmd__export_commands() {
    local commands; commands=()
    _describe -t commands 'precise help export commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fetch_commands] )) ||
_precise__subcmd__help__subcmd__fetch_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fetch commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__flamegraph_commands] )) ||
_precise__subcmd__help__subcmd__flamegraph_commands() {
    local commands; commands=()
    _describe -t commands 'precise help flamegraph commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet_commands] )) ||
_precise__subcmd__help__subcmd__fleet_commands() {
    local commands; commands=(
'compact:Add the captures of a place up to tables by hour and day' \
'report:Show where the samples of many machines are' \
'latency:Show how long the memory accesses of many machines take' \
'types:Show which types and fields the samples of many machines access' \
'diff:Show what changed on many machines from one time to another' \
    )
    _describe -t commands 'precise help fleet commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet__subcmd__compact_commands] )) ||
_precise__subcmd__help__subcmd__fleet__subcmd__compact_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fleet compact commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet__subcmd__diff_commands] )) ||
_precise__subcmd__help__subcmd__fleet__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fleet diff commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet__subcmd__latency_commands] )) ||
_precise__subcmd__help__subcmd__fleet__subcmd__latency_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fleet latency commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet__subcmd__report_commands] )) ||
_precise__subcmd__help__subcmd__fleet__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fleet report commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__fleet__subcmd__types_commands] )) ||
_precise__subcmd__help__subcmd__fleet__subcmd__types_commands() {
    local commands; commands=()
    _describe -t commands 'precise help fleet types commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__heatmap_commands] )) ||
_precise__subcmd__help__subcmd__heatmap_commands() {
    local commands; commands=()
    _describe -t commands 'precise help heatmap commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__help_commands] )) ||
_precise__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'precise help help commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__import_commands] )) ||
_precise__subcmd__help__subcmd__import_commands() {
    local commands; commands=()
    _describe -t commands 'precise help import commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__latency_commands] )) ||
_precise__subcmd__help__subcmd__latency_commands() {
    local commands; commands=()
    _describe -t commands 'precise help latency commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__list_commands] )) ||
_precise__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'precise help list commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__man_commands] )) ||
_precise__subcmd__help__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'precise help man commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__mcp_commands] )) ||
_precise__subcmd__help__subcmd__mcp_commands() {
    local commands; commands=()
    _describe -t commands 'precise help mcp commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__mem_commands] )) ||
_precise__subcmd__help__subcmd__mem_commands() {
    local commands; commands=()
    _describe -t commands 'precise help mem commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__numa_commands] )) ||
_precise__subcmd__help__subcmd__numa_commands() {
    local commands; commands=()
    _describe -t commands 'precise help numa commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__record_commands] )) ||
_precise__subcmd__help__subcmd__record_commands() {
    local commands; commands=()
    _describe -t commands 'precise help record commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__report_commands] )) ||
_precise__subcmd__help__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'precise help report commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__schema_commands] )) ||
_precise__subcmd__help__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'precise help schema commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__script_commands] )) ||
_precise__subcmd__help__subcmd__script_commands() {
    local commands; commands=()
    _describe -t commands 'precise help script commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__serve_commands] )) ||
_precise__subcmd__help__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'precise help serve commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__skid_commands] )) ||
_precise__subcmd__help__subcmd__skid_commands() {
    local commands; commands=()
    _describe -t commands 'precise help skid commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__threads_commands] )) ||
_precise__subcmd__help__subcmd__threads_commands() {
    local commands; commands=()
    _describe -t commands 'precise help threads commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__tlb_commands] )) ||
_precise__subcmd__help__subcmd__tlb_commands() {
    local commands; commands=()
    _describe -t commands 'precise help tlb commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__top_commands] )) ||
_precise__subcmd__help__subcmd__top_commands() {
    local commands; commands=()
    _describe -t commands 'precise help top commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__types_commands] )) ||
_precise__subcmd__help__subcmd__types_commands() {
    local commands; commands=()
    _describe -t commands 'precise help types commands' commands "$@"
}
(( $+functions[_precise__subcmd__import_commands] )) ||
_precise__subcmd__import_commands() {
    local commands; commands=()
    _describe -t commands 'precise import commands' commands "$@"
}
(( $+functions[_precise__subcmd__latency_commands] )) ||
_precise__subcmd__latency_commands() {
    local commands; commands=()
    _describe -t commands 'precise latency commands' commands "$@"
}
(( $+functions[_precise__subcmd__list_commands] )) ||
_precise__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'precise list commands' commands "$@"
}
(( $+functions[_precise__subcmd__man_commands] )) ||
_precise__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'precise man commands' commands "$@"
}
(( $+functions[_precise__subcmd__mcp_commands] )) ||
_precise__subcmd__mcp_commands() {
    local commands; commands=()
    _describe -t commands 'precise mcp commands' commands "$@"
}
(( $+functions[_precise__subcmd__mem_commands] )) ||
_precise__subcmd__mem_commands() {
    local commands; commands=()
    _describe -t commands 'precise mem commands' commands "$@"
}
(( $+functions[_precise__subcmd__numa_commands] )) ||
_precise__subcmd__numa_commands() {
    local commands; commands=()
    _describe -t commands 'precise numa commands' commands "$@"
}
(( $+functions[_precise__subcmd__record_commands] )) ||
_precise__subcmd__record_commands() {
    local commands; commands=()
    _describe -t commands 'precise record commands' commands "$@"
}
(( $+functions[_precise__subcmd__report_commands] )) ||
_precise__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'precise report commands' commands "$@"
}
(( $+functions[_precise__subcmd__schema_commands] )) ||
_precise__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'precise schema commands' commands "$@"
}
(( $+functions[_precise__subcmd__script_commands] )) ||
_precise__subcmd__script_commands() {
    local commands; commands=()
    _describe -t commands 'precise script commands' commands "$@"
}
(( $+functions[_precise__subcmd__serve_commands] )) ||
_precise__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'precise serve commands' commands "$@"
}
(( $+functions[_precise__subcmd__skid_commands] )) ||
_precise__subcmd__skid_commands() {
    local commands; commands=()
    _describe -t commands 'precise skid commands' commands "$@"
}
(( $+functions[_precise__subcmd__threads_commands] )) ||
_precise__subcmd__threads_commands() {
    local commands; commands=()
    _describe -t commands 'precise threads commands' commands "$@"
}
(( $+functions[_precise__subcmd__tlb_commands] )) ||
_precise__subcmd__tlb_commands() {
    local commands; commands=()
    _describe -t commands 'precise tlb commands' commands "$@"
}
(( $+functions[_precise__subcmd__top_commands] )) ||
_precise__subcmd__top_commands() {
    local commands; commands=()
    _describe -t commands 'precise top commands' commands "$@"
}
(( $+functions[_precise__subcmd__types_commands] )) ||
_precise__subcmd__types_commands() {
    local commands; commands=()
    _describe -t commands 'precise types commands' commands "$@"
}

if [ "$funcstack[1]" = "_precise" ]; then
    _precise "$@"
else
    compdef _precise precise
fi
