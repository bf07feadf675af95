# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_precise_global_optspecs
    string join \n h/help V/version
end

function __fish_precise_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_precise_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_precise_using_subcommand
    set -l cmd (__fish_precise_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c precise -n "__fish_precise_needs_command" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_needs_command" -s V -l version -d 'Print version'
complete -c precise -n "__fish_precise_needs_command" -f -a "record" -d 'Sample, aggregate in the kernel, and keep the result as a capture'
complete -c precise -n "__fish_precise_needs_command" -f -a "script" -d 'Stream the samples that pass, one line or one JSON object each'
complete -c precise -n "__fish_precise_needs_command" -f -a "serve" -d 'Serve latencies and counts by cgroup to Prometheus, for as long as it runs'
complete -c precise -n "__fish_precise_needs_command" -f -a "import" -d 'Make a capture of what `perf record` wrote'
complete -c precise -n "__fish_precise_needs_command" -f -a "explain" -d 'Say what stands out in a capture, most important first'
complete -c precise -n "__fish_precise_needs_command" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_needs_command" -f -a "mem" -d 'Show where loads and stores hit: L1 to remote memory'
complete -c precise -n "__fish_precise_needs_command" -f -a "latency" -d 'Show how slow accesses are, and for whom: histogram and percentiles'
complete -c precise -n "__fish_precise_needs_command" -f -a "tlb" -d 'Show which accesses need page walks, and what those cost'
complete -c precise -n "__fish_precise_needs_command" -f -a "numa" -d 'Show which node\'s CPUs read which node\'s memory'
complete -c precise -n "__fish_precise_needs_command" -f -a "threads" -d 'Show who ran where: the CPUs and NUMA nodes of each thread'
complete -c precise -n "__fish_precise_needs_command" -f -a "c2c" -d 'Show which cache lines cores take from each other, and whether it is false sharing'
complete -c precise -n "__fish_precise_needs_command" -f -a "fetch" -d 'Show whether the front end is starved, and by which code'
complete -c precise -n "__fish_precise_needs_command" -f -a "branches" -d 'Show which branches mispredict'
complete -c precise -n "__fish_precise_needs_command" -f -a "derived" -d 'Count the events that AMD\'s CodeAnalyst derives from IBS'
complete -c precise -n "__fish_precise_needs_command" -f -a "annotate" -d 'Show source lines and instructions with what was sampled at each'
complete -c precise -n "__fish_precise_needs_command" -f -a "chase" -d 'Show what loads wait for: whether it is a pointer chase'
complete -c precise -n "__fish_precise_needs_command" -f -a "skid" -d 'Show how far ordinary samples are from where they belong'
complete -c precise -n "__fish_precise_needs_command" -f -a "diff" -d 'Compare two captures: what changed, and what is only chance'
complete -c precise -n "__fish_precise_needs_command" -f -a "check" -d 'Fail where a capture is worse than another, for certain, by more than is allowed'
complete -c precise -n "__fish_precise_needs_command" -f -a "flamegraph" -d 'Draw the call chains of a capture (record -g)'
complete -c precise -n "__fish_precise_needs_command" -f -a "heatmap" -d 'Draw a capture over time'
complete -c precise -n "__fish_precise_needs_command" -f -a "archive" -d 'Keep captures under a label, in a folder or an object store'
complete -c precise -n "__fish_precise_needs_command" -f -a "export" -d 'Write a capture for other tools: pprof, folded stacks, CSV, JSON'
complete -c precise -n "__fish_precise_needs_command" -f -a "list" -d 'Show the events that this machine has'
complete -c precise -n "__fish_precise_needs_command" -f -a "doctor" -d 'Say whether this machine can sample precisely, or prove it (--self-test)'
complete -c precise -n "__fish_precise_needs_command" -f -a "exit-codes" -d 'Show the exit codes and what they mean'
complete -c precise -n "__fish_precise_needs_command" -f -a "schema" -d 'Print the JSON Schema of what --json prints'
complete -c precise -n "__fish_precise_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_needs_command" -f -a "man" -d 'Print the manual page, or write one for each command'
complete -c precise -n "__fish_precise_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand record" -s e -l event -d 'Events or presets: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s p -l pid -d 'Sample these processes, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s t -l tid -d 'Sample these threads, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s C -l cpu -d 'Sample on these CPUs only: 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s c -l count -d 'A sample each so many events' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s F -l freq -d 'About so many samples per second and CPU' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l ldlat -d 'Of the presets loads, mem and c2c: only loads of at least so many core cycles, by the hardware where it can' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l precise -d 'How precise the instruction addresses must be' -r -f -a "auto\t'The most that there is; each step down is said'
require\t'Exact, or fail'
off\t'Not asked for'"
complete -c precise -n "__fish_precise_using_subcommand record" -l filter -d 'Keep samples that pass: \'latency > 100 && addr in 0x1000..0x2000 || comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s G -l cgroup -d 'Keep samples of these cgroups and all below them: a path, a pattern (\'/system.slice/web-*\'), \'pod:NAMESPACE/POD\', \'container:NAME\' or \'unit:NAME\'; also those made while it runs; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l comm -d 'Keep samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l addr -d 'Keep samples whose data address lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l code -d 'Keep samples whose instruction lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l min-latency -d 'Keep samples of at least this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l max-latency -d 'Keep samples of at most this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l duration -d 'End after this long; 10s unless a command is run' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l stop-file -d 'End when this file is there, and do not begin while it is: beside /run/precise/stop, which ends every precise on the machine' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand record" -l by -d 'Group by these in the kernel: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf\'s names work as well' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l granule -d 'Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line, and the default; 1 for c2c' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l lines -d 'Of c2c: room for so many cache lines. The first load that finds a line modified by another core gives it a place; what is in no such line is kept without its address' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s g -l call-graph -d 'Take call chains, by frame pointers: who called the sampled function. It costs: the kernel unwinds each sample\'s stack' -r -f -a "fp\t'By frame pointers, in the kernel'"
complete -c precise -n "__fish_precise_using_subcommand record" -l stacks -d 'Call chains for each CPU; 2,112 bytes of memory each [default: what 64 MiB hold, from 256 to 8K]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l epoch -d 'Read the table this often: the time axis' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l overhead -d 'What the run may cost on each CPU, as a part of its time: samples are taken less often where they would cost more. A period of -c stays as it is, unless this is given as well; `off` lets everything cost what it does [default: 1%]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l table-cells -d 'Cells for each CPU; 128 bytes of memory each' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s o -l output -d 'Keep the capture in this file; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -l plot -d 'Draw a heatmap into this file as well: .png or .svg' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or one of the keys' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s n -l limit -l entries -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s a -l all-cpus -d 'Sample everything; the default'
complete -c precise -n "__fish_precise_using_subcommand record" -l l3-miss-only -d 'Of the presets loads and l3-miss: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates'
complete -c precise -n "__fish_precise_using_subcommand record" -s K -l all-kernel -d 'Keep samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand record" -s U -l all-user -d 'Keep samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand record" -s q -l quiet -d 'Say nothing but the result'
complete -c precise -n "__fish_precise_using_subcommand record" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand record" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand script" -s e -l event -d 'Events or presets: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s p -l pid -d 'Sample these processes, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s t -l tid -d 'Sample these threads, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s C -l cpu -d 'Sample on these CPUs only: 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s c -l count -d 'A sample each so many events' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s F -l freq -d 'About so many samples per second and CPU' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l ldlat -d 'Of the presets loads, mem and c2c: only loads of at least so many core cycles, by the hardware where it can' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l precise -d 'How precise the instruction addresses must be' -r -f -a "auto\t'The most that there is; each step down is said'
require\t'Exact, or fail'
off\t'Not asked for'"
complete -c precise -n "__fish_precise_using_subcommand script" -l filter -d 'Keep samples that pass: \'latency > 100 && addr in 0x1000..0x2000 || comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s G -l cgroup -d 'Keep samples of these cgroups and all below them: a path, a pattern (\'/system.slice/web-*\'), \'pod:NAMESPACE/POD\', \'container:NAME\' or \'unit:NAME\'; also those made while it runs; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l comm -d 'Keep samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l addr -d 'Keep samples whose data address lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l code -d 'Keep samples whose instruction lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l min-latency -d 'Keep samples of at least this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l max-latency -d 'Keep samples of at most this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l duration -d 'End after this long; 10s unless a command is run' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l stop-file -d 'End when this file is there, and do not begin while it is: beside /run/precise/stop, which ends every precise on the machine' -r -F
complete -c precise -n "__fish_precise_using_subcommand script" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand script" -l fields -d 'What to say of each sample, in this order; without it, what its event has' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s n -l samples -d 'End after so many samples' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l ring-pages -d 'Pages of the ring of each CPU and event, a power of two' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l account -d 'Keep the account as JSON, one line, in this file; `-` puts it behind the last sample' -r -F
complete -c precise -n "__fish_precise_using_subcommand script" -s a -l all-cpus -d 'Sample everything; the default'
complete -c precise -n "__fish_precise_using_subcommand script" -l l3-miss-only -d 'Of the presets loads and l3-miss: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates'
complete -c precise -n "__fish_precise_using_subcommand script" -s K -l all-kernel -d 'Keep samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand script" -s U -l all-user -d 'Keep samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand script" -l json -d 'One JSON object for each sample, on a line of its own'
complete -c precise -n "__fish_precise_using_subcommand script" -s q -l quiet -d 'Say nothing but the samples, unless some are missing'
complete -c precise -n "__fish_precise_using_subcommand script" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand serve" -s e -l event -d 'Events or presets: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s p -l pid -d 'Sample these processes, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s t -l tid -d 'Sample these threads, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s C -l cpu -d 'Sample on these CPUs only: 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s c -l count -d 'A sample each so many events' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s F -l freq -d 'About so many samples per second and CPU' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l ldlat -d 'Of the presets loads, mem and c2c: only loads of at least so many core cycles, by the hardware where it can' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l precise -d 'How precise the instruction addresses must be' -r -f -a "auto\t'The most that there is; each step down is said'
require\t'Exact, or fail'
off\t'Not asked for'"
complete -c precise -n "__fish_precise_using_subcommand serve" -l filter -d 'Keep samples that pass: \'latency > 100 && addr in 0x1000..0x2000 || comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s G -l cgroup -d 'Keep samples of these cgroups and all below them: a path, a pattern (\'/system.slice/web-*\'), \'pod:NAMESPACE/POD\', \'container:NAME\' or \'unit:NAME\'; also those made while it runs; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l comm -d 'Keep samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l addr -d 'Keep samples whose data address lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l code -d 'Keep samples whose instruction lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l min-latency -d 'Keep samples of at least this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l max-latency -d 'Keep samples of at most this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l stop-file -d 'End when this file is there, and do not begin while it is: beside /run/precise/stop, which ends every precise on the machine' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand serve" -l listen -d 'Where to listen. Other machines can ask only where this is an address of theirs as well; there is no password, and no TLS' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l by -d 'The labels of the series, of the keys below; `none` for one series of each event' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l series -d 'At most so many series; samples of further ones are in one whose labels are `(others)`. One that has had no samples for ten minutes makes room' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l overhead -d 'What the run may cost on each CPU, as a part of its time: samples are taken less often where they would cost more. A period of -c stays as it is, unless this is given as well; `off` lets everything cost what it does [default: 1%]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l table-cells -d 'Cells for each CPU; 128 bytes of memory each' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l epoch -d 'Read the table this often: how old the numbers of a page are at most' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l duration -d 'End after this long; without it, when somebody ends it' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s a -l all-cpus -d 'Sample everything; the default'
complete -c precise -n "__fish_precise_using_subcommand serve" -l l3-miss-only -d 'Of the presets loads and l3-miss: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later); far fewer interrupts, and no rates'
complete -c precise -n "__fish_precise_using_subcommand serve" -s K -l all-kernel -d 'Keep samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand serve" -s U -l all-user -d 'Keep samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand serve" -s q -l quiet -d 'Say nothing but what goes wrong'
complete -c precise -n "__fish_precise_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand import" -s i -l input -d 'The same, as perf\'s commands name it' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -s o -l output -d 'Keep the capture in this file; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -s e -l event -d 'Import only these events, by the names that perf gave them; all otherwise' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l by -d 'Group by these: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf\'s names work as well [default: all that the file has but tid and cpu, and stack only where it has no address]' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l granule -d 'Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l epoch -d 'Length of an epoch: the time axis' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l symfs -d 'Look up the recorded paths below this directory, which has the files of the recorded machine' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l debug-dir -d 'Look here for files and debug information by build id (.build-id/ab/cdef…), before the usual places' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l kallsyms -d 'Name the kernel\'s addresses by this copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand import" -s q -l quiet -d 'Say nothing but the result'
complete -c precise -n "__fish_precise_using_subcommand import" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand explain" -s i -l input -d 'The capture' -r -F
complete -c precise -n "__fish_precise_using_subcommand explain" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand explain" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand explain" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand report" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l by -d 'Group by these: function, symoff, line, ip, module, stack, cgroup, process, pid, tid, cpu, node, event, level, snoop, tlb, op, locked, remote, latency, outcome, address, line-address, page, page-size, variable, region, epoch, kernel; perf\'s names work as well' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s g -l call-graph -d 'Show who called it: functions with what they called, and the callers and callees of this one, or of the hottest' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l html -d 'Write everything into one page that a browser shows without a network: findings, verdict, tables, hot lines, heatmap' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or one of the keys' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s n -l limit -l entries -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand report" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand mem" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand mem" -l by -d 'Group by these instead of level, snoop, tlb and locked: function, line, variable, node, …' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or one of the keys; latency where there is one' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s n -l limit -l entries -d 'Show N groups of each kind of access' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand mem" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand mem" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand latency" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand latency" -l by -d 'Group by these: level, function, line, cgroup, process, variable, …; level where it is known' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s s -l sort -d 'Sort by samples, latency, avg, max, or one of the keys' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s o -l output -d 'Draw histograms into FILE instead: .png or .svg' -r -F
complete -c precise -n "__fish_precise_using_subcommand latency" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand latency" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand tlb" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand tlb" -l by -d 'Group by these: function, line, process, variable, page, …; function where it is known' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand tlb" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand tlb" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand numa" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand numa" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand numa" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand numa" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand threads" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand threads" -s n -l limit -l entries -d 'Show N threads of each event' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand threads" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand threads" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand c2c" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand c2c" -s n -l limit -l entries -d 'Show N cache lines' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l min-samples -d 'Rank lines with N HITM loads or more' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand c2c" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand c2c" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand c2c" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fetch" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand fetch" -l by -d 'Group by these: function, line, module, process, cgroup, …' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fetch" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand branches" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand branches" -s n -l limit -l entries -d 'Show N branches' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand branches" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand branches" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand branches" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand derived" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand derived" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand derived" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand derived" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand annotate" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand annotate" -s n -l limit -l entries -d 'Show N functions of each event' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand annotate" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -s l -l lines -d 'Show one row for each source line, the hottest first, and no instructions'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l all -d 'Show every instruction, not only those near samples'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand annotate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand chase" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand chase" -s n -l limit -l entries -d 'Show N loads of each event' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand chase" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand chase" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand chase" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand skid" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand skid" -s n -l limit -l entries -d 'Show N functions, and ten times as many lines' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand skid" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand skid" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand skid" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand diff" -l by -d 'Compare by these: function, line, level, cgroup, variable, …' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s n -l limit -l entries -d 'Show N entries of each event, those that changed most first' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand diff" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand check" -s b -l baseline -d 'The capture to compare with: before the change' -r -F
complete -c precise -n "__fish_precise_using_subcommand check" -l fail-on -d 'Fail where this is so, for certain; several may be given' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s n -l limit -l entries -d 'Show N groups of each condition, those that fail first' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand check" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s o -l output -d 'Draw into this file, an SVG that can be searched and zoomed; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l by -d 'What the widths are' -r -f -a "samples\t'Where the samples are'
latency\t'Where the time was waited: the sum of their latencies'"
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s e -l event -d 'Draw this event of the capture' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l folded -d 'Print folded stacks instead: a line per call chain, for other tools'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l json -d 'Print JSON instead'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s y -l axis -d 'Show this on the vertical axis; auto takes latency where there is one, else addresses, else functions' -r -f -a "auto\t''
latency\t''
address\t''
function\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l panels -d 'Draw a panel for each of these' -r -f -a "auto\t''
cgroup\t''
process\t''
event\t''
none\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s e -l event -d 'Draw this event of the capture' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l max-panels -d 'Draw at most N panels; the smallest beyond them share one' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s o -l output -d 'Draw into FILE: .png or .svg; without this, draw on the terminal' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand archive" -s l -l label -d 'What they are kept under, such as a deploy\'s id' -r
complete -c precise -n "__fish_precise_using_subcommand archive" -s i -l input -d 'A capture; several may be given' -r -F
complete -c precise -n "__fish_precise_using_subcommand archive" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand archive" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand export" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand export" -s f -l format -d 'What to write' -r -f -a "pprof\t'A profile for `go tool pprof`: one event, with samples, period, latency and labels'
folded\t'A line per call chain, for flame graphs: one event'
csv\t'Every row with every column, as separated values'
json\t'Every row with every column, a JSON object per line'"
complete -c precise -n "__fish_precise_using_subcommand export" -s o -l output -d 'Write into this file; `-` is the standard output. Without it, precise.pb.gz for pprof, and the standard output for the others' -r -F
complete -c precise -n "__fish_precise_using_subcommand export" -l by -d 'What folded stacks are weighed by, and what pprof shows first' -r -f -a "samples\t'Where the samples are'
latency\t'Where the time was waited: the sum of their latencies'"
complete -c precise -n "__fish_precise_using_subcommand export" -s e -l event -d 'Write this event of the capture (pprof, folded)' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l require -d 'Exit with 68 unless the capture is good enough: precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%' -r
complete -c precise -n "__fish_precise_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand list" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand list" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l worker -d 'Does the work of the self-test, which starts this itself' -r
complete -c precise -n "__fish_precise_using_subcommand doctor" -l self-test -d 'Sample work whose samples are known, and say of each field whether it is right; takes a minute'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l fix -d 'Print the commands that would change what was found, with their reasons; runs none of them'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand doctor" -s q -l quiet -d 'Say nothing but the result'
complete -c precise -n "__fish_precise_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand schema" -s l -l list -d 'List the kinds of documents, the versions of their schemas and the commands that print them'
complete -c precise -n "__fish_precise_using_subcommand schema" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand completions" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand man" -s o -l output -d 'Write one page for each command into this folder' -r -F
complete -c precise -n "__fish_precise_using_subcommand man" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "record" -d 'Sample, aggregate in the kernel, and keep the result as a capture'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "script" -d 'Stream the samples that pass, one line or one JSON object each'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "serve" -d 'Serve latencies and counts by cgroup to Prometheus, for as long as it runs'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "import" -d 'Make a capture of what `perf record` wrote'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "explain" -d 'Say what stands out in a capture, most important first'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "mem" -d 'Show where loads and stores hit: L1 to remote memory'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "latency" -d 'Show how slow accesses are, and for whom: histogram and percentiles'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "tlb" -d 'Show which accesses need page walks, and what those cost'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "numa" -d 'Show which node\'s CPUs read which node\'s memory'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "threads" -d 'Show who ran where: the CPUs and NUMA nodes of each thread'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "c2c" -d 'Show which cache lines cores take from each other, and whether it is false sharing'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "fetch" -d 'Show whether the front end is starved, and by which code'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "branches" -d 'Show which branches mispredict'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "derived" -d 'Count the events that AMD\'s CodeAnalyst derives from IBS'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "annotate" -d 'Show source lines and instructions with what was sampled at each'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "chase" -d 'Show what loads wait for: whether it is a pointer chase'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "skid" -d 'Show how far ordinary samples are from where they belong'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "diff" -d 'Compare two captures: what changed, and what is only chance'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "check" -d 'Fail where a capture is worse than another, for certain, by more than is allowed'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "flamegraph" -d 'Draw the call chains of a capture (record -g)'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "heatmap" -d 'Draw a capture over time'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "archive" -d 'Keep captures under a label, in a folder or an object store'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "export" -d 'Write a capture for other tools: pprof, folded stacks, CSV, JSON'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "list" -d 'Show the events that this machine has'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "doctor" -d 'Say whether this machine can sample precisely, or prove it (--self-test)'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "exit-codes" -d 'Show the exit codes and what they mean'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "schema" -d 'Print the JSON Schema of what --json prints'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "man" -d 'Print the manual page, or write one for each command'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase skid diff check flamegraph heatmap archive export list doctor exit-codes schema completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
