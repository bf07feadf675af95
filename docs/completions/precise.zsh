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
'*-e+[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*--event=[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*-p+[Sample these processes, with what they start]:PIDS:_default' \
'*--pid=[Sample these processes, with what they start]:PIDS:_default' \
'*-t+[Sample these threads, with what they start]:TIDS:_default' \
'*--tid=[Sample these threads, with what they start]:TIDS:_default' \
'-C+[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'--cpu=[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'-c+[A sample each so many events]:NUMBER:_default' \
'--count=[A sample each so many events]:NUMBER:_default' \
'-F+[About so many samples per second and CPU]:HERTZ:_default' \
'--freq=[About so many samples per second and CPU]:HERTZ:_default' \
'--ldlat=[Of the presets loads, mem and c2c\: only loads of at least so many core cycles, by the hardware where it can]:CYCLES:_default' \
'--precise=[How precise the instruction addresses must be]:HOW:((auto\:"The most that there is; each step down is said"
require\:"Exact, or fail"
off\:"Not asked for"))' \
'--filter=[Keep samples that pass\: '\''latency > 100 && addr in 0x1000..0x2000 || comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--cgroup=[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--comm=[Keep samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep samples whose data address lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'*--code=[Keep samples whose instruction lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'--min-latency=[Keep samples of at least this latency, core cycles]:CYCLES:_default' \
'--max-latency=[Keep samples of at most this latency, core cycles]:CYCLES:_default' \
'--duration=[End after this long; 10s unless a command is run]:TIME:_default' \
'--stop-file=[End when this file is there, and do not begin while it is\: beside /run/precise/stop, which ends every precise on the machine]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'--by=[Group by these in the kernel\: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf'\''s names work as well]:KEYS:_default' \
'--granule=[Put data addresses together that lie in the same so many bytes, a power of two\: 64 is a cache line, and the default; 1 for c2c]:BYTES:_default' \
'--lines=[Of c2c\: room for so many cache lines. The first load that finds a line modified by another core gives it a place; what is in no such line is kept without its address]:NUMBER:_default' \
'-g+[Take call chains, by frame pointers\: who called the sampled function. It costs\: the kernel unwinds each sample'\''s stack]::HOW:((fp\:"By frame pointers, in the kernel"))' \
'--call-graph=[Take call chains, by frame pointers\: who called the sampled function. It costs\: the kernel unwinds each sample'\''s stack]::HOW:((fp\:"By frame pointers, in the kernel"))' \
'--stacks=[Call chains for each CPU; 2,112 bytes of memory each \[default\: what 64 MiB hold, from 256 to 8K\]]:NUMBER:_default' \
'--epoch=[Read the table this often\: the time axis]:TIME:_default' \
'--overhead=[What the run may cost on each CPU, as a part of its time\: samples are taken less often where they would cost more. A period of -c stays as it is, unless this is given as well; \`off\` lets everything cost what it does \[default\: 1%\]]:PERCENT:_default' \
'--table-cells=[Cells for each CPU; 128 bytes of memory each]:NUMBER:_default' \
'-o+[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'--output=[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'--plot=[Draw a heatmap into this file as well\: .png or .svg]:FILE:_files' \
'-s+[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--entries=[Show N groups of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'-a[Sample everything; the default]' \
'--all-cpus[Sample everything; the default]' \
'--l3-miss-only[Of the presets loads and l3-miss\: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates]' \
'(-U --all-user)-K[Keep samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep samples taken in the kernel]' \
'-U[Keep samples taken in user space]' \
'--all-user[Keep samples taken in user space]' \
'-q[Say nothing but the result]' \
'--quiet[Say nothing but the result]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- A command to sample from its start to its end:_default' \
&& ret=0
;;
(script)
_arguments "${_arguments_options[@]}" : \
'*-e+[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*--event=[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*-p+[Sample these processes, with what they start]:PIDS:_default' \
'*--pid=[Sample these processes, with what they start]:PIDS:_default' \
'*-t+[Sample these threads, with what they start]:TIDS:_default' \
'*--tid=[Sample these threads, with what they start]:TIDS:_default' \
'-C+[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'--cpu=[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'-c+[A sample each so many events]:NUMBER:_default' \
'--count=[A sample each so many events]:NUMBER:_default' \
'-F+[About so many samples per second and CPU]:HERTZ:_default' \
'--freq=[About so many samples per second and CPU]:HERTZ:_default' \
'--ldlat=[Of the presets loads, mem and c2c\: only loads of at least so many core cycles, by the hardware where it can]:CYCLES:_default' \
'--precise=[How precise the instruction addresses must be]:HOW:((auto\:"The most that there is; each step down is said"
require\:"Exact, or fail"
off\:"Not asked for"))' \
'--filter=[Keep samples that pass\: '\''latency > 100 && addr in 0x1000..0x2000 || comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--cgroup=[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--comm=[Keep samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep samples whose data address lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'*--code=[Keep samples whose instruction lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'--min-latency=[Keep samples of at least this latency, core cycles]:CYCLES:_default' \
'--max-latency=[Keep samples of at most this latency, core cycles]:CYCLES:_default' \
'--duration=[End after this long; 10s unless a command is run]:TIME:_default' \
'--stop-file=[End when this file is there, and do not begin while it is\: beside /run/precise/stop, which ends every precise on the machine]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'*--fields=[What to say of each sample, in this order; without it, what its event has]:FIELDS:_default' \
'-n+[End after so many samples]:NUMBER:_default' \
'--samples=[End after so many samples]:NUMBER:_default' \
'--ring-pages=[Pages of the ring of each CPU and event, a power of two]:NUMBER:_default' \
'--account=[Keep the account as JSON, one line, in this file; \`-\` puts it behind the last sample]:FILE:_files' \
'-a[Sample everything; the default]' \
'--all-cpus[Sample everything; the default]' \
'--l3-miss-only[Of the presets loads and l3-miss\: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates]' \
'(-U --all-user)-K[Keep samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep samples taken in the kernel]' \
'-U[Keep samples taken in user space]' \
'--all-user[Keep samples taken in user space]' \
'--json[One JSON object for each sample, on a line of its own]' \
'-q[Say nothing but the samples, unless some are missing]' \
'--quiet[Say nothing but the samples, unless some are missing]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- A command to sample from its start to its end:_default' \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
'*-e+[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*--event=[Events or presets\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*-p+[Sample these processes, with what they start]:PIDS:_default' \
'*--pid=[Sample these processes, with what they start]:PIDS:_default' \
'*-t+[Sample these threads, with what they start]:TIDS:_default' \
'*--tid=[Sample these threads, with what they start]:TIDS:_default' \
'-C+[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'--cpu=[Sample on these CPUs only\: 0-3,7]:CPUS:_default' \
'-c+[A sample each so many events]:NUMBER:_default' \
'--count=[A sample each so many events]:NUMBER:_default' \
'-F+[About so many samples per second and CPU]:HERTZ:_default' \
'--freq=[About so many samples per second and CPU]:HERTZ:_default' \
'--ldlat=[Of the presets loads, mem and c2c\: only loads of at least so many core cycles, by the hardware where it can]:CYCLES:_default' \
'--precise=[How precise the instruction addresses must be]:HOW:((auto\:"The most that there is; each step down is said"
require\:"Exact, or fail"
off\:"Not asked for"))' \
'--filter=[Keep samples that pass\: '\''latency > 100 && addr in 0x1000..0x2000 || comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--cgroup=[Keep samples of these cgroups and all below them\: a path, a pattern ('\''/system.slice/web-*'\''), '\''pod\:NAMESPACE/POD'\'', '\''container\:NAME'\'' or '\''unit\:NAME'\''; also those made while it runs; may be given again]:CGROUP:_default' \
'*--comm=[Keep samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep samples whose data address lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'*--code=[Keep samples whose instruction lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'--min-latency=[Keep samples of at least this latency, core cycles]:CYCLES:_default' \
'--max-latency=[Keep samples of at most this latency, core cycles]:CYCLES:_default' \
'--stop-file=[End when this file is there, and do not begin while it is\: beside /run/precise/stop, which ends every precise on the machine]:FILE:_files' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'--listen=[Where to listen. Other machines can ask only where this is an address of theirs as well; there is no password, and no TLS]:ADDRESS:PORT:_default' \
'--by=[The labels of the series, of the keys below; \`none\` for one series of each event]:KEYS:_default' \
'--series=[At most so many series; samples of further ones are in one whose labels are \`(others)\`. One that has had no samples for ten minutes makes room]:NUMBER:_default' \
'--overhead=[What the run may cost on each CPU, as a part of its time\: samples are taken less often where they would cost more. A period of -c stays as it is, unless this is given as well; \`off\` lets everything cost what it does \[default\: 1%\]]:PERCENT:_default' \
'--table-cells=[Cells for each CPU; 128 bytes of memory each]:NUMBER:_default' \
'--epoch=[Read the table this often\: how old the numbers of a page are at most]:TIME:_default' \
'--duration=[End after this long; without it, when somebody ends it]:TIME:_default' \
'-a[Sample everything; the default]' \
'--all-cpus[Sample everything; the default]' \
'--l3-miss-only[Of the presets loads and l3-miss\: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates]' \
'(-U --all-user)-K[Keep samples taken in the kernel]' \
'(-U --all-user)--all-kernel[Keep samples taken in the kernel]' \
'-U[Keep samples taken in user space]' \
'--all-user[Keep samples taken in user space]' \
'-q[Say nothing but what goes wrong]' \
'--quiet[Say nothing but what goes wrong]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- A command to sample from its start to its end:_default' \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
'()-i+[The same, as perf'\''s commands name it]:FILE:_files' \
'()--input=[The same, as perf'\''s commands name it]:FILE:_files' \
'-o+[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'--output=[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'*-e+[Import only these events, by the names that perf gave them; all otherwise]:EVENTS:_default' \
'*--event=[Import only these events, by the names that perf gave them; all otherwise]:EVENTS:_default' \
'--by=[Group by these\: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf'\''s names work as well \[default\: all that the file has but tid and cpu, and stack only where it has no address\]]:KEYS:_default' \
'--granule=[Put data addresses together that lie in the same so many bytes, a power of two\: 64 is a cache line]:BYTES:_default' \
'--epoch=[Length of an epoch\: the time axis]:TIME:_default' \
'--symfs=[Look up the recorded paths below this directory, which has the files of the recorded machine]:DIRECTORY:_files' \
'*--debug-dir=[Look here for files and debug information by build id (.build-id/ab/cdef…), before the usual places]:DIRECTORY:_files' \
'--kallsyms=[Name the kernel'\''s addresses by this copy of the recorded machine'\''s /proc/kallsyms]:FILE:_files' \
'--json[Print JSON]' \
'-q[Say nothing but the result]' \
'--quiet[Say nothing but the result]' \
'-h[Print help]' \
'--help[Print help]' \
'::file -- What `perf record` wrote; `-` reads the standard input, where perf wrote to a pipe:_files' \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
'()-i+[The capture]:FILE:_files' \
'()--input=[The capture]:FILE:_files' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- The capture; `-` is the standard input:_files' \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these\: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf'\''s names work as well]:KEYS:_default' \
'(--by -s --sort)-g+[Show who called it\: functions with what they called, and the callers and callees of this one, or of the hottest]::FUNCTION:_default' \
'(--by -s --sort)--call-graph=[Show who called it\: functions with what they called, and the callers and callees of this one, or of the hottest]::FUNCTION:_default' \
'(--by -g --call-graph -s --sort -n --limit --json -x --field-separator)--html=[Write everything into one page that a browser shows without a network\: findings, verdict, tables, hot lines, heatmap]:FILE:_files' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'-s+[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'-n+[Show N groups of each event]:N:_default' \
'--limit=[Show N groups of each event]:N:_default' \
'--entries=[Show N groups of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(mem)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these instead of level, snoop, tlb and locked\: function, line, variable, node, …]:KEYS:_default' \
'-s+[Sort by samples, period, latency, avg, max, or one of the keys; latency where there is one]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or one of the keys; latency where there is one]:WHAT:_default' \
'-n+[Show N groups of each kind of access]:N:_default' \
'--limit=[Show N groups of each kind of access]:N:_default' \
'--entries=[Show N groups of each kind of access]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(latency)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these\: level, function, line, cgroup, process, variable, …; level where it is known]:KEYS:_default' \
'-s+[Sort by samples, latency, avg, max, or one of the keys]:WHAT:_default' \
'--sort=[Sort by samples, latency, avg, max, or one of the keys]:WHAT:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'-o+[Draw histograms into FILE instead\: .png or .svg]:FILE:_files' \
'--output=[Draw histograms into FILE instead\: .png or .svg]:FILE:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--stdio[Print text; the default]' \
'(-o --output)--json[Print JSON]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(tlb)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these\: function, line, process, variable, page, …; function where it is known]:KEYS:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(numa)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(threads)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N threads of each event]:N:_default' \
'--limit=[Show N threads of each event]:N:_default' \
'--entries=[Show N threads of each event]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(c2c)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N cache lines]:N:_default' \
'--limit=[Show N cache lines]:N:_default' \
'--entries=[Show N cache lines]:N:_default' \
'--min-samples=[Rank lines with N HITM loads or more]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(fetch)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these\: function, line, module, process, cgroup, …]:KEYS:_default' \
'-n+[Show N groups]:N:_default' \
'--limit=[Show N groups]:N:_default' \
'--entries=[Show N groups]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(branches)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N branches]:N:_default' \
'--limit=[Show N branches]:N:_default' \
'--entries=[Show N branches]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(derived)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(annotate)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N functions of each event]:N:_default' \
'--limit=[Show N functions of each event]:N:_default' \
'--entries=[Show N functions of each event]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'-l[Show one row for each source line, the hottest first, and no instructions]' \
'--lines[Show one row for each source line, the hottest first, and no instructions]' \
'(-l --lines)--all[Show every instruction, not only those near samples]' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::functions -- Show functions with this name, or with it in their name; by default the hottest:_default' \
&& ret=0
;;
(chase)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N loads of each event]:N:_default' \
'--limit=[Show N loads of each event]:N:_default' \
'--entries=[Show N loads of each event]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(skid)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-n+[Show N functions, and ten times as many lines]:N:_default' \
'--limit=[Show N functions, and ten times as many lines]:N:_default' \
'--entries=[Show N functions, and ten times as many lines]:N:_default' \
'--symfs=[Look for binaries below FOLDER instead of /]:FOLDER:_files' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--by=[Compare by these\: function, line, level, cgroup, variable, …]:KEYS:_default' \
'-n+[Show N entries of each event, those that changed most first]:N:_default' \
'--limit=[Show N entries of each event, those that changed most first]:N:_default' \
'--entries=[Show N entries of each event, those that changed most first]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':base -- The capture to compare with\: before the change:_files' \
':new -- The capture to compare\: after the change:_files' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'-b+[The capture to compare with\: before the change]:BASE:_files' \
'--baseline=[The capture to compare with\: before the change]:BASE:_files' \
'*--fail-on=[Fail where this is so, for certain; several may be given]:CONDITION:_default' \
'-n+[Show N groups of each condition, those that fail first]:N:_default' \
'--limit=[Show N groups of each condition, those that fail first]:N:_default' \
'--entries=[Show N groups of each condition, those that fail first]:N:_default' \
'(--json)-x+[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by SEPARATOR, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':new -- The capture to judge\: after the change:_files' \
&& ret=0
;;
(flamegraph)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-o+[Draw into this file, an SVG that can be searched and zoomed; \`-\` is the standard output]:FILE:_files' \
'--output=[Draw into this file, an SVG that can be searched and zoomed; \`-\` is the standard output]:FILE:_files' \
'--by=[What the widths are]:WHAT:((samples\:"Where the samples are"
latency\:"Where the time was waited\: the sum of their latencies"))' \
'-e+[Draw this event of the capture]:NAME:_default' \
'--event=[Draw this event of the capture]:NAME:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'(-o --output)--folded[Print folded stacks instead\: a line per call chain, for other tools]' \
'(-o --output --folded)--json[Print JSON instead]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(heatmap)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-y+[Show this on the vertical axis; auto takes latency where there is one, else addresses, else functions]:WHAT:(auto latency address function)' \
'--axis=[Show this on the vertical axis; auto takes latency where there is one, else addresses, else functions]:WHAT:(auto latency address function)' \
'--panels=[Draw a panel for each of these]:WHAT:(auto cgroup process event none)' \
'-e+[Draw this event of the capture]:NAME:_default' \
'--event=[Draw this event of the capture]:NAME:_default' \
'--max-panels=[Draw at most N panels; the smallest beyond them share one]:N:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'-o+[Draw into FILE\: .png or .svg; without this, draw on the terminal]:FILE:_files' \
'--output=[Draw into FILE\: .png or .svg; without this, draw on the terminal]:FILE:_files' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'(-o --output)--json[Print JSON]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
'-l+[What they are kept under, such as a deploy'\''s id]:LABEL:_default' \
'--label=[What they are kept under, such as a deploy'\''s id]:LABEL:_default' \
'*-i+[A capture; several may be given]:FILE:_files' \
'*--input=[A capture; several may be given]:FILE:_files' \
'--json[Print JSON]' \
'-h[Print help]' \
'--help[Print help]' \
':place -- A folder, or s3\://BUCKET/PREFIX:_files' \
&& ret=0
;;
(export)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-f+[What to write]:FORMAT:((pprof\:"A profile for \`go tool pprof\`\: one event, with samples, period, latency and labels"
folded\:"A line per call chain, for flame graphs\: one event"
csv\:"Every row with every column, as separated values"
json\:"Every row with every column, a JSON object per line"))' \
'--format=[What to write]:FORMAT:((pprof\:"A profile for \`go tool pprof\`\: one event, with samples, period, latency and labels"
folded\:"A line per call chain, for flame graphs\: one event"
csv\:"Every row with every column, as separated values"
json\:"Every row with every column, a JSON object per line"))' \
'-o+[Write into this file; \`-\` is the standard output. Without it, precise.pb.gz for pprof, and the standard output for the others]:FILE:_files' \
'--output=[Write into this file; \`-\` is the standard output. Without it, precise.pb.gz for pprof, and the standard output for the others]:FILE:_files' \
'--by=[What folded stacks are weighed by, and what pprof shows first]:WHAT:((samples\:"Where the samples are"
latency\:"Where the time was waited\: the sum of their latencies"))' \
'-e+[Write this event of the capture (pprof, folded)]:NAME:_default' \
'--event=[Write this event of the capture (pprof, folded)]:NAME:_default' \
'*--require=[Exit with 68 unless the capture is good enough\: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%]:GATES:_default' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'--worker=[Does the work of the self-test, which starts this itself]:TASK:_default' \
'--self-test[Sample work whose samples are known, and say of each field whether it is right; takes a minute]' \
'(--self-test)--fix[Print the commands that would change what was found, with their reasons; runs none of them]' \
'--json[Print JSON]' \
'-q[Say nothing but the result]' \
'--quiet[Say nothing but the result]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(exit-codes)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
'-l[List the kinds of documents, the versions of their schemas and the commands that print them]' \
'--list[List the kinds of documents, the versions of their schemas and the commands that print them]' \
'-h[Print help]' \
'--help[Print help]' \
'::name -- What `kind` says in the document\: report, mem, check, …:_default' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'-o+[Write one page for each command into this folder]:FOLDER:_files' \
'--output=[Write one page for each command into this folder]:FOLDER:_files' \
'-h[Print help]' \
'--help[Print help]' \
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
(export)
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
'record:Sample, aggregate in the kernel, and keep the result as a capture' \
'script:Stream the samples that pass, one line or one JSON object each' \
'serve:Serve latencies and counts by cgroup to Prometheus, for as long as it runs' \
'import:Make a capture of what \`perf record\` wrote' \
'explain:Say what stands out in a capture, most important first' \
'report:Show where the samples of a capture are' \
'mem:Show where loads and stores hit\: L1 to remote memory' \
'latency:Show how slow accesses are, and for whom\: histogram and percentiles' \
'tlb:Show which accesses need page walks, and what those cost' \
'numa:Show which node'\''s CPUs read which node'\''s memory' \
'threads:Show who ran where\: the CPUs and NUMA nodes of each thread' \
'c2c:Show which cache lines cores take from each other, and whether it is false sharing' \
'fetch:Show whether the front end is starved, and by which code' \
'branches:Show which branches mispredict' \
'derived:Count the events that AMD'\''s CodeAnalyst derives from IBS' \
'annotate:Show source lines and instructions with what was sampled at each' \
'chase:Show what loads wait for\: whether it is a pointer chase' \
'skid:Show how far ordinary samples are from where they belong' \
'diff:Compare two captures\: what changed, and what is only chance' \
'check:Fail where a capture is worse than another, for certain, by more than is allowed' \
'flamegraph:Draw the call chains of a capture (record -g)' \
'heatmap:Draw a capture over time' \
'archive:Keep captures under a label, in a folder or an object store' \
'export:Write a capture for other tools\: pprof, folded stacks, CSV, JSON' \
'list:Show the events that this machine has' \
'doctor:Say whether this machine can sample precisely, or prove it (--self-test)' \
'exit-codes:Show the exit codes and what they mean' \
'schema:Print the JSON Schema of what --json prints' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write one for each command' \
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
(( $+functions[_precise__subcmd__heatmap_commands] )) ||
_precise__subcmd__heatmap_commands() {
    local commands; commands=()
    _describe -t commands 'precise heatmap commands' commands "$@"
}
(( $+functions[_precise__subcmd__help_commands] )) ||
_precise__subcmd__help_commands() {
    local commands; commands=(
'record:Sample, aggregate in the kernel, and keep the result as a capture' \
'script:Stream the samples that pass, one line or one JSON object each' \
'serve:Serve latencies and counts by cgroup to Prometheus, for as long as it runs' \
'import:Make a capture of what \`perf record\` wrote' \
'explain:Say what stands out in a capture, most important first' \
'report:Show where the samples of a capture are' \
'mem:Show where loads and stores hit\: L1 to remote memory' \
'latency:Show how slow accesses are, and for whom\: histogram and percentiles' \
'tlb:Show which accesses need page walks, and what those cost' \
'numa:Show which node'\''s CPUs read which node'\''s memory' \
'threads:Show who ran where\: the CPUs and NUMA nodes of each thread' \
'c2c:Show which cache lines cores take from each other, and whether it is false sharing' \
'fetch:Show whether the front end is starved, and by which code' \
'branches:Show which branches mispredict' \
'derived:Count the events that AMD'\''s CodeAnalyst derives from IBS' \
'annotate:Show source lines and instructions with what was sampled at each' \
'chase:Show what loads wait for\: whether it is a pointer chase' \
'skid:Show how far ordinary samples are from where they belong' \
'diff:Compare two captures\: what changed, and what is only chance' \
'check:Fail where a capture is worse than another, for certain, by more than is allowed' \
'flamegraph:Draw the call chains of a capture (record -g)' \
'heatmap:Draw a capture over time' \
'archive:Keep captures under a label, in a folder or an object store' \
'export:Write a capture for other tools\: pprof, folded stacks, CSV, JSON' \
'list:Show the events that this machine has' \
'doctor:Say whether this machine can sample precisely, or prove it (--self-test)' \
'exit-codes:Show the exit codes and what they mean' \
'schema:Print the JSON Schema of what --json prints' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write one for each command' \
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

if [ "$funcstack[1]" = "_precise" ]; then
    _precise "$@"
else
    compdef _precise precise
fi
