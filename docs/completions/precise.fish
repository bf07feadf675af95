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
complete -c precise -n "__fish_precise_needs_command" -f -a "record" -d 'Sample, aggregate in the kernel, and write a capture'
complete -c precise -n "__fish_precise_needs_command" -f -a "script" -d 'Print samples as they are taken, one line or JSON object each'
complete -c precise -n "__fish_precise_needs_command" -f -a "top" -d 'Show the samples live, on a screen'
complete -c precise -n "__fish_precise_needs_command" -f -a "serve" -d 'Serve latencies and counts by cgroup to Prometheus'
complete -c precise -n "__fish_precise_needs_command" -f -a "import" -d 'Make a capture from a perf.data file'
complete -c precise -n "__fish_precise_needs_command" -f -a "explain" -d 'List the findings of a capture, most important first'
complete -c precise -n "__fish_precise_needs_command" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_needs_command" -f -a "mem" -d 'Show which level served loads and stores, from L1 to remote memory'
complete -c precise -n "__fish_precise_needs_command" -f -a "latency" -d 'Show the latency of accesses: histogram and percentiles'
complete -c precise -n "__fish_precise_needs_command" -f -a "tlb" -d 'Show which accesses need page walks, and their cost'
complete -c precise -n "__fish_precise_needs_command" -f -a "numa" -d 'Show which NUMA nodes access which node\'s memory'
complete -c precise -n "__fish_precise_needs_command" -f -a "threads" -d 'Show on which CPUs and NUMA nodes each thread ran'
complete -c precise -n "__fish_precise_needs_command" -f -a "c2c" -d 'Show cache lines that move between cores: true and false sharing'
complete -c precise -n "__fish_precise_needs_command" -f -a "fetch" -d 'Show code that makes the front end wait'
complete -c precise -n "__fish_precise_needs_command" -f -a "branches" -d 'Show which branches mispredict'
complete -c precise -n "__fish_precise_needs_command" -f -a "derived" -d 'Count the derived events of AMD IBS'
complete -c precise -n "__fish_precise_needs_command" -f -a "annotate" -d 'Show source lines and instructions with their samples'
complete -c precise -n "__fish_precise_needs_command" -f -a "chase" -d 'Show loads that wait for other loads: pointer chases'
complete -c precise -n "__fish_precise_needs_command" -f -a "types" -d 'Show which structs and fields the samples access'
complete -c precise -n "__fish_precise_needs_command" -f -a "skid" -d 'Show how far imprecise samples land from the right instruction'
complete -c precise -n "__fish_precise_needs_command" -f -a "diff" -d 'Compare two captures and test what changed significantly'
complete -c precise -n "__fish_precise_needs_command" -f -a "check" -d 'Fail if a capture is significantly worse than another'
complete -c precise -n "__fish_precise_needs_command" -f -a "flamegraph" -d 'Draw a flame graph of the call chains (record -g)'
complete -c precise -n "__fish_precise_needs_command" -f -a "heatmap" -d 'Draw the samples of a capture over time'
complete -c precise -n "__fish_precise_needs_command" -f -a "archive" -d 'Store captures under a label, in a folder or an object store'
complete -c precise -n "__fish_precise_needs_command" -f -a "fleet" -d 'Make tables of the captures of many machines, and ask them'
complete -c precise -n "__fish_precise_needs_command" -f -a "export" -d 'Convert a capture to pprof, folded stacks, CSV or JSON'
complete -c precise -n "__fish_precise_needs_command" -f -a "mcp" -d 'Answer the questions of agents about captures (Model Context Protocol)'
complete -c precise -n "__fish_precise_needs_command" -f -a "list" -d 'List the presets and events of this machine'
complete -c precise -n "__fish_precise_needs_command" -f -a "doctor" -d 'Check whether this machine can sample precisely'
complete -c precise -n "__fish_precise_needs_command" -f -a "exit-codes" -d 'List the exit codes with their meanings'
complete -c precise -n "__fish_precise_needs_command" -f -a "schema" -d 'Print the JSON Schema of a --json document'
complete -c precise -n "__fish_precise_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_needs_command" -f -a "man" -d 'Print the manual page, or write the pages of all commands'
complete -c precise -n "__fish_precise_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand record" -s e -l event -d 'Sample these events or presets [default: precise cycles, or cpu-clock]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s c -l count -d 'Take one sample every N events' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s F -l freq -d 'Aim for N samples per second per CPU' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l precise -d 'Set the precision' -r -f -a "auto\t'As precise as the hardware allows; every downgrade is reported'
require\t'Precise, or fail'
off\t'Do not ask for precision'"
complete -c precise -n "__fish_precise_using_subcommand record" -l ldlat -d 'Sample only loads of at least N core cycles (presets loads, mem, c2c)' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s p -l pid -d 'Sample these processes and the processes that they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s t -l tid -d 'Sample these threads and the threads that they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s C -l cpu -d 'Sample only these CPUs, for example 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l filter -d 'Keep only samples that match, as in \'latency > 100 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s G -l cgroup -d 'Keep only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l comm -d 'Keep only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l addr -d 'Keep only samples with a data address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l code -d 'Keep only samples with an instruction address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l min-latency -d 'Keep only samples with a latency of at least N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l max-latency -d 'Keep only samples with a latency of at most N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l duration -d 'Stop after this time [default: 10s, or the end of COMMAND]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l stop-file -d 'Stop as soon as this file exists' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand record" -l by -d 'Group samples in the kernel by these keys [default: by event]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l granule -d 'Round data addresses down to multiples of BYTES [default: 64; 1 for c2c]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l lines -d 'Keep addresses of at most N cache lines (preset c2c)' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l call-graph -d 'Record call chains in this way: auto, tables or fp [default of -g: auto]' -r -f -a "auto\t'By unwind tables, and where code has none, by frame pointers'
tables\t'By unwind tables only'
fp\t'By frame pointers, in the kernel'"
complete -c precise -n "__fish_precise_using_subcommand record" -l stacks -d 'Keep at most N call chains per CPU (2,112 bytes each) [default: 64 MiB in total]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l unwind-memory -d 'Limit the memory of unwind tables [default: 32M]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l stack-depth -d 'Unwind at most N frames of user space [default: 127]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l epoch -d 'Read the table at this interval: the resolution of the time axis [default: a sixtieth of --duration, from 100ms to 1s]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l overhead -d 'Limit the overhead per CPU: percent of its time, or `off` [default: 1%]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l table-cells -d 'Set the size of the table, in cells per CPU (128 bytes each) [default: 8192]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s o -l output -d 'Write the capture to FILE, or `-` for stdout' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -l plot -d 'Draw a heatmap to this file: .png or .svg' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or a key' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s n -l limit -l entries -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand record" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l l3-miss-only -d 'Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)'
complete -c precise -n "__fish_precise_using_subcommand record" -s a -l all-cpus -d 'Sample all processes on all CPUs (default)'
complete -c precise -n "__fish_precise_using_subcommand record" -l include-self -d 'Keep the samples of precise itself'
complete -c precise -n "__fish_precise_using_subcommand record" -s K -l all-kernel -d 'Keep only samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand record" -s U -l all-user -d 'Keep only samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand record" -s g -d 'Record call chains'
complete -c precise -n "__fish_precise_using_subcommand record" -s q -l quiet -d 'Print only the result'
complete -c precise -n "__fish_precise_using_subcommand record" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand record" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand record" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand record" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand script" -s e -l event -d 'Sample these events or presets [default: precise cycles, or cpu-clock]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s c -l count -d 'Take one sample every N events' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s F -l freq -d 'Aim for N samples per second per CPU' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l precise -d 'Set the precision' -r -f -a "auto\t'As precise as the hardware allows; every downgrade is reported'
require\t'Precise, or fail'
off\t'Do not ask for precision'"
complete -c precise -n "__fish_precise_using_subcommand script" -l ldlat -d 'Sample only loads of at least N core cycles (presets loads, mem, c2c)' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s p -l pid -d 'Sample these processes and the processes that they start' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s t -l tid -d 'Sample these threads and the threads that they start' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s C -l cpu -d 'Sample only these CPUs, for example 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l filter -d 'Keep only samples that match, as in \'latency > 100 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s G -l cgroup -d 'Keep only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l comm -d 'Keep only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l addr -d 'Keep only samples with a data address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l code -d 'Keep only samples with an instruction address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l min-latency -d 'Keep only samples with a latency of at least N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l max-latency -d 'Keep only samples with a latency of at most N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l duration -d 'Stop after this time [default: 10s, or the end of COMMAND]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l stop-file -d 'Stop as soon as this file exists' -r -F
complete -c precise -n "__fish_precise_using_subcommand script" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand script" -l fields -d 'Print these fields, in this order [default: all fields that the event has]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l call-graph -d 'Record call chains in this way: auto, tables or fp [default of -g: auto]' -r -f -a "auto\t'By unwind tables, and where code has none, by frame pointers'
tables\t'By unwind tables only'
fp\t'By frame pointers, in the kernel'"
complete -c precise -n "__fish_precise_using_subcommand script" -l stack-copy -d 'Copy at most BYTES of each stack [default: 16K]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -s n -l samples -d 'Stop after N samples' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l ring-pages -d 'Set the size of the ring of each CPU and event, in pages (a power of two) [default: 128]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l account -d 'Write the account of all samples to this file, as one line of JSON' -r -F
complete -c precise -n "__fish_precise_using_subcommand script" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand script" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand script" -l l3-miss-only -d 'Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)'
complete -c precise -n "__fish_precise_using_subcommand script" -s a -l all-cpus -d 'Sample all processes on all CPUs (default)'
complete -c precise -n "__fish_precise_using_subcommand script" -l include-self -d 'Keep the samples of precise itself'
complete -c precise -n "__fish_precise_using_subcommand script" -s K -l all-kernel -d 'Keep only samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand script" -s U -l all-user -d 'Keep only samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand script" -l json -d 'Print one JSON object per sample, one per line'
complete -c precise -n "__fish_precise_using_subcommand script" -s q -l quiet -d 'Print only the samples, unless some are missing'
complete -c precise -n "__fish_precise_using_subcommand script" -s g -d 'Print the call chain of each sample'
complete -c precise -n "__fish_precise_using_subcommand script" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand script" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand top" -s e -l event -d 'Sample these events or presets [default: precise cycles, or cpu-clock]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s c -l count -d 'Take one sample every N events' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s F -l freq -d 'Aim for N samples per second per CPU' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l precise -d 'Set the precision' -r -f -a "auto\t'As precise as the hardware allows; every downgrade is reported'
require\t'Precise, or fail'
off\t'Do not ask for precision'"
complete -c precise -n "__fish_precise_using_subcommand top" -l ldlat -d 'Sample only loads of at least N core cycles (presets loads, mem, c2c)' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s p -l pid -d 'Sample these processes and the processes that they start' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s t -l tid -d 'Sample these threads and the threads that they start' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s C -l cpu -d 'Sample only these CPUs, for example 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l filter -d 'Keep only samples that match, as in \'latency > 100 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s G -l cgroup -d 'Keep only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l comm -d 'Keep only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l addr -d 'Keep only samples with a data address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l code -d 'Keep only samples with an instruction address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l min-latency -d 'Keep only samples with a latency of at least N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l max-latency -d 'Keep only samples with a latency of at most N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l stop-file -d 'Stop as soon as this file exists' -r -F
complete -c precise -n "__fish_precise_using_subcommand top" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand top" -l call-graph -d 'Record call chains in this way: auto, tables or fp [default of -g: auto]' -r -f -a "auto\t'By unwind tables, and where code has none, by frame pointers'
tables\t'By unwind tables only'
fp\t'By frame pointers, in the kernel'"
complete -c precise -n "__fish_precise_using_subcommand top" -l stacks -d 'Keep at most N call chains per CPU (2,112 bytes each) [default: 64 MiB in total]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l unwind-memory -d 'Limit the memory of unwind tables [default: 32M]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l stack-depth -d 'Unwind at most N frames of user space [default: 127]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l window -d 'Show the samples of this time' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l overhead -d 'Limit the overhead per CPU: percent of its time, or `off` [default: 1%]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l table-cells -d 'Set the size of the table, in cells per CPU (128 bytes each) [default: 8192]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -s o -l output -d 'Write the window to FILE when w is pressed' -r -F
complete -c precise -n "__fish_precise_using_subcommand top" -l epoch -d 'Read the table, and draw, at this interval [default: 1s]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l duration -d 'Stop after this time [default: run until stopped]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand top" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand top" -l l3-miss-only -d 'Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)'
complete -c precise -n "__fish_precise_using_subcommand top" -s a -l all-cpus -d 'Sample all processes on all CPUs (default)'
complete -c precise -n "__fish_precise_using_subcommand top" -l include-self -d 'Keep the samples of precise itself'
complete -c precise -n "__fish_precise_using_subcommand top" -s K -l all-kernel -d 'Keep only samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand top" -s U -l all-user -d 'Keep only samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand top" -s g -d 'Record call chains'
complete -c precise -n "__fish_precise_using_subcommand top" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand top" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand serve" -l config -d 'Read settings from this TOML file' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -s e -l event -d 'Sample these events or presets [default: precise cycles, or cpu-clock]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s c -l count -d 'Take one sample every N events' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s F -l freq -d 'Aim for N samples per second per CPU' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l precise -d 'Set the precision' -r -f -a "auto\t'As precise as the hardware allows; every downgrade is reported'
require\t'Precise, or fail'
off\t'Do not ask for precision'"
complete -c precise -n "__fish_precise_using_subcommand serve" -l ldlat -d 'Sample only loads of at least N core cycles (presets loads, mem, c2c)' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s p -l pid -d 'Sample these processes and the processes that they start' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s t -l tid -d 'Sample these threads and the threads that they start' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s C -l cpu -d 'Sample only these CPUs, for example 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l filter -d 'Keep only samples that match, as in \'latency > 100 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -s G -l cgroup -d 'Keep only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l comm -d 'Keep only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l addr -d 'Keep only samples with a data address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l code -d 'Keep only samples with an instruction address in this range: 0x1000..0x2000' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l min-latency -d 'Keep only samples with a latency of at least N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l max-latency -d 'Keep only samples with a latency of at most N core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l stop-file -d 'Stop as soon as this file exists' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand serve" -l listen -d 'Listen on this address' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l allow-host -d 'Accept requests to this host name' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l tls-cert -d 'Serve HTTPS with the certificates in this PEM file' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l tls-key -d 'Use the key in this PEM file' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l token-file -d 'Answer only requests with the token in this file (mode 600)' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l by -d 'Label the series by these keys, or `none`' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l series -d 'Keep at most N series' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l call-graph -d 'Record call chains in this way: auto, tables or fp [default of -g: auto]' -r -f -a "auto\t'By unwind tables, and where code has none, by frame pointers'
tables\t'By unwind tables only'
fp\t'By frame pointers, in the kernel'"
complete -c precise -n "__fish_precise_using_subcommand serve" -l stacks -d 'Keep at most N call chains per CPU (2,112 bytes each) [default: 64 MiB in total]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l unwind-memory -d 'Limit the memory of unwind tables [default: 32M]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l stack-depth -d 'Unwind at most N frames of user space [default: 127]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l captures -d 'Keep the samples as captures in this folder, too' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l capture-length -d 'Complete a capture after this time' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l keep-bytes -d 'Remove the oldest captures if all take more than BYTES' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l keep-age -d 'Remove captures that are older than this' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l archive -d 'Archive each capture to this folder or s3://BUCKET/PREFIX' -r -F
complete -c precise -n "__fish_precise_using_subcommand serve" -l label -d 'Begin the labels in the archive with this word' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l push -d 'Push profiles to otlp=URL or pyroscope=URL' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l push-every -d 'Push the samples of this time together' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l push-headers -d 'Add the header fields in a file (mode 600) to requests: otlp=FILE, pyroscope=FILE' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l push-service -d 'Name the service of all samples, instead of one service for each cgroup' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l push-memory -d 'Keep at most BYTES of samples that wait for one place' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l overhead -d 'Limit the overhead per CPU: percent of its time, or `off` [default: 1%]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l table-cells -d 'Set the size of the table, in cells per CPU (128 bytes each) [default: 8192]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l epoch -d 'Read the table at this interval [default: 1s]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l duration -d 'Stop after this time [default: run until stopped]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand serve" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand serve" -l check-config -d 'Check the settings, print what is wrong with them, and do not sample'
complete -c precise -n "__fish_precise_using_subcommand serve" -l print-config -d 'Print a file with all settings and their defaults'
complete -c precise -n "__fish_precise_using_subcommand serve" -l l3-miss-only -d 'Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)'
complete -c precise -n "__fish_precise_using_subcommand serve" -s a -l all-cpus -d 'Sample all processes on all CPUs (default)'
complete -c precise -n "__fish_precise_using_subcommand serve" -l include-self -d 'Keep the samples of precise itself'
complete -c precise -n "__fish_precise_using_subcommand serve" -s K -l all-kernel -d 'Keep only samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand serve" -s U -l all-user -d 'Keep only samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand serve" -s g -d 'Record call chains'
complete -c precise -n "__fish_precise_using_subcommand serve" -s q -l quiet -d 'Print only problems'
complete -c precise -n "__fish_precise_using_subcommand serve" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand import" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -s e -l event -d 'Import only these events, by their names in perf [default: all]' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l symfs -d 'Look up the recorded paths below this directory' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l debug-dir -d 'Look up files and debug information here by build id (.build-id/ab/cdef…)' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l kallsyms -d 'Name kernel addresses by this copy of /proc/kallsyms' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -s o -l output -d 'Write the capture to this file; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand import" -l by -d 'Group samples by these keys [default: by the contents of the file]' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l granule -d 'Round data addresses down to multiples of BYTES, a power of two' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l epoch -d 'Set the length of an epoch: the resolution of the time axis' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand import" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand import" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand import" -s q -l quiet -d 'Print only the result'
complete -c precise -n "__fish_precise_using_subcommand import" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand explain" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand explain" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand explain" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand explain" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand explain" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand explain" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand explain" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand explain" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand explain" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand report" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l by -d 'Group by these keys: function, line, module, cgroup, cpu, level, latency, …' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s g -l call-graph -d 'Show the callers and callees of FUNCTION [default: of the hottest]' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l html -d 'Write one HTML page with all findings, tables and pictures' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or a key' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s n -l limit -l entries -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand report" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand report" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand report" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand report" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand mem" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand mem" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l by -d 'Group by these keys: function, line, … [default: level, snoop, tlb, locked]' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or a key [default: latency, if any]' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s n -l limit -l entries -d 'Show N groups of each kind of access' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand mem" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand mem" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand mem" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand mem" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand mem" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand mem" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand latency" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand latency" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l by -d 'Group by these keys: level, function, line, cgroup, … [default: level, if known]' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s s -l sort -d 'Sort by samples, latency, avg, max, or a key' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -s o -l output -d 'Draw the histograms to FILE: .png or .svg' -r -F
complete -c precise -n "__fish_precise_using_subcommand latency" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand latency" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand latency" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand latency" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand latency" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand latency" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand tlb" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand tlb" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l by -d 'Group by these keys: function, line, variable, page, … [default: function, if known]' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand tlb" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand tlb" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand tlb" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand tlb" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand tlb" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand tlb" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand numa" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand numa" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand numa" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand numa" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand numa" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand numa" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand numa" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand numa" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand threads" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand threads" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -s n -l limit -l entries -d 'Show N threads of each event' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand threads" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand threads" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand threads" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand threads" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand threads" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand threads" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand c2c" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand c2c" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -s n -l limit -l entries -d 'Show N cache lines' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l min-samples -d 'Rank lines with N HITM loads or more' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand c2c" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand c2c" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand c2c" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand c2c" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand c2c" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand c2c" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand c2c" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand c2c" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fetch" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand fetch" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l by -d 'Group by these keys: function, line, module, process, cgroup, …' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s n -l limit -l entries -d 'Show N groups' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fetch" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fetch" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand fetch" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fetch" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand fetch" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand branches" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand branches" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -s n -l limit -l entries -d 'Show N branches' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand branches" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand branches" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand branches" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand branches" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand branches" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand branches" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand branches" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand branches" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand derived" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand derived" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand derived" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand derived" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand derived" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand derived" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand derived" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand derived" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand annotate" -s i -l input -d 'Capture to read; `-` is the standard input [default: precise.parquet]' -r -F
complete -c precise -n "__fish_precise_using_subcommand annotate" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -s n -l limit -l entries -d 'Show N functions of each event' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand annotate" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand annotate" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand annotate" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand annotate" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand annotate" -s l -l lines -d 'Show one row per source line, the hottest first, and no instructions'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l all -d 'Show every instruction, not only those near samples'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand annotate" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand annotate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand chase" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand chase" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -s n -l limit -l entries -d 'Show N loads of each event' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand chase" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand chase" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand chase" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand chase" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand chase" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand chase" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand chase" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand chase" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand types" -s i -l input -d 'Capture to read; `-` is the standard input [default: precise.parquet]' -r -F
complete -c precise -n "__fish_precise_using_subcommand types" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand types" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand types" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand types" -s n -l limit -l entries -d 'Show N types of each event' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand types" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand types" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand types" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand types" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand types" -l advise -d 'Print the struct with its members in a better order, and how many lines that saves'
complete -c precise -n "__fish_precise_using_subcommand types" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand types" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand types" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand types" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand skid" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand skid" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -s n -l limit -l entries -d 'Show N functions, and ten times as many lines' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand skid" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand skid" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand skid" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand skid" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand skid" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand skid" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand skid" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand skid" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand diff" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l by -d 'Compare by these keys: function, line, level, cgroup, variable, …' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s n -l limit -l entries -d 'Show N entries of each event, those that changed most first' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand diff" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand diff" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand diff" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand diff" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand diff" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand check" -s b -l baseline -d 'Capture to compare with: before the change' -r -F
complete -c precise -n "__fish_precise_using_subcommand check" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l fail-on -d 'Fail if the samples show that CONDITION holds; may be given several times' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s n -l limit -l entries -d 'Show N groups of each condition, those that fail first' -r
complete -c precise -n "__fish_precise_using_subcommand check" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand check" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand check" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand check" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand check" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand check" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s o -l output -d 'Draw to FILE, an SVG with search and zoom; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l by -d 'Choose the measure that the widths of frames show' -r -f -a "samples\t'Number of samples'
latency\t'Sum of the latencies of samples: where time is spent waiting'"
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s e -l event -d 'Draw this event of the capture' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l folded -d 'Print folded stacks: one line per call chain, for other tools'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand flamegraph" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s y -l axis -d 'Show WHAT on the vertical axis; auto prefers latency, then addresses, then functions' -r -f -a "auto\t''
latency\t''
address\t''
function\t''
type\t''
field\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l panels -d 'Draw one panel per WHAT' -r -f -a "auto\t''
cgroup\t''
process\t''
event\t''
none\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s e -l event -d 'Draw this event of the capture' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l max-panels -d 'Draw at most N panels; the smallest groups share the last one' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s o -l output -d 'Draw to FILE (.png or .svg) [default: draw on the terminal]' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand archive" -s l -l label -d 'Archive under this label, for example the id of a deploy' -r
complete -c precise -n "__fish_precise_using_subcommand archive" -s i -l input -d 'Archive this capture; may be given several times' -r -F
complete -c precise -n "__fish_precise_using_subcommand archive" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand archive" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand archive" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand archive" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand archive" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "compact" -d 'Add the captures of a place up to tables by hour and day'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "report" -d 'Show where the samples of many machines are'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "latency" -d 'Show how long the memory accesses of many machines take'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "types" -d 'Show which types and fields the samples of many machines access'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "diff" -d 'Show what changed on many machines from one time to another'
complete -c precise -n "__fish_precise_using_subcommand fleet; and not __fish_seen_subcommand_from compact report latency types diff help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l hour -d 'Compact this hour of UTC, such as 2026-11-24T19, even if it is not over, and no day' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l since -d 'Compact the hours of captures that were written since then: a duration, a day or an hour' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l memory -d 'Hold at most about this many bytes of rows in memory' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from compact" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l service -d 'Only this service, as in shop/web; \'\' for samples without one' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -s e -l event -d 'Only this event, as the captures name it' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -s n -l limit -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l memory -d 'Hold at most about this many bytes of groups in memory' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l last -d 'Ask about the hours before this one: 24h, 7d' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l time -d 'Ask about a day or an hour of UTC, or FROM..TO with both included' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l by -d 'Group by these keys: service, function, module, level, node, cluster, hour, type, field [default: service, or of one service function,module]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l within -d 'Read a tier of days with fewer samples: one that takes this long (2s), or that is this good (0.5%: no share that is shown is less certain)' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l exact -d 'Read all samples; the default'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l service -d 'Only this service, as in shop/web; \'\' for samples without one' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -s e -l event -d 'Only this event, as the captures name it' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -s n -l limit -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l memory -d 'Hold at most about this many bytes of groups in memory' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l last -d 'Ask about the hours before this one: 24h, 7d' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l time -d 'Ask about a day or an hour of UTC, or FROM..TO with both included' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l by -d 'Group by these keys: level, service, function, module, cluster, hour; or none' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from latency" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l service -d 'Only this service, as in shop/web; \'\' for samples without one' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -s e -l event -d 'Only this event, as the captures name it' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -s n -l limit -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l memory -d 'Hold at most about this many bytes of groups in memory' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l last -d 'Ask about the hours before this one: 24h, 7d' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l time -d 'Ask about a day or an hour of UTC, or FROM..TO with both included' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l by -d 'Group by these keys: type, field, service, function, module, hour' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from types" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l service -d 'Only this service, as in shop/web; \'\' for samples without one' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s e -l event -d 'Only this event, as the captures name it' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s n -l limit -d 'Show N groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l memory -d 'Hold at most about this many bytes of groups in memory' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s x -l field-separator -d 'Print values separated by SEPARATOR, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l before -d 'The time before: a day or an hour of UTC, or FROM..TO with both included' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l after -d 'The time after' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l by -d 'Group by these keys: service, function, module, level, node, cluster, type, field [default: service, or of one service function,module]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "compact" -d 'Add the captures of a place up to tables by hour and day'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "report" -d 'Show where the samples of many machines are'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "latency" -d 'Show how long the memory accesses of many machines take'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "types" -d 'Show which types and fields the samples of many machines access'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Show what changed on many machines from one time to another'
complete -c precise -n "__fish_precise_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand export" -s i -l input -d 'Alternative to FILE, as in perf\'s commands' -r -F
complete -c precise -n "__fish_precise_using_subcommand export" -l filter -d 'Use only samples that match, as in \'latency >= 128 && comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l comm -d 'Use only samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand export" -s p -l pid -d 'Use only samples of these processes' -r
complete -c precise -n "__fish_precise_using_subcommand export" -s G -l cgroup -d 'Use only samples of these cgroups and their descendants' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l time -d 'Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)' -r
complete -c precise -n "__fish_precise_using_subcommand export" -s f -l format -d 'Write this format' -r -f -a "pprof\t'A profile of one event for `go tool pprof`, with samples, period, latency and labels'
otlp\t'The profiles of all events for OpenTelemetry, as one uncompressed request (v1development)'
folded\t'One line per call chain of one event, for flame graphs'
csv\t'All rows and columns, as comma-separated values'
json\t'All rows and columns, one JSON object per line'"
complete -c precise -n "__fish_precise_using_subcommand export" -s o -l output -d 'Write to this file; `-` is the standard output [default: precise.pb.gz for pprof, precise.otlp for otlp, else -]' -r -F
complete -c precise -n "__fish_precise_using_subcommand export" -l by -d 'Weigh folded stacks by this; pprof shows it first' -r -f -a "samples\t'Number of samples'
latency\t'Sum of the latencies of samples: where time is spent waiting'"
complete -c precise -n "__fish_precise_using_subcommand export" -s e -l event -d 'Write only this event (pprof, otlp, folded)' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l require -d 'Exit with 68 unless the capture meets these requirements' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand export" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand export" -l idle -d 'Include the samples of idle CPUs'
complete -c precise -n "__fish_precise_using_subcommand export" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand mcp" -l token-file -d 'Send the token in this file (mode 600) to the running serve' -r -F
complete -c precise -n "__fish_precise_using_subcommand mcp" -l symfs -d 'Look for binaries below FOLDER instead of /' -r -F
complete -c precise -n "__fish_precise_using_subcommand mcp" -l source -d 'Show lines of source files below FOLDER [default: the current folder]' -r -F
complete -c precise -n "__fish_precise_using_subcommand mcp" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand mcp" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand mcp" -l allow-record -d 'Offer the tool `record`, which samples this machine and writes to the folder'
complete -c precise -n "__fish_precise_using_subcommand mcp" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand mcp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand list" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand list" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand list" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand list" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l worker -d 'Does the work of the self-test, which starts this itself' -r
complete -c precise -n "__fish_precise_using_subcommand doctor" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand doctor" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand doctor" -l self-test -d 'Sample work with known results and check every field; takes about a minute'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l fix -d 'Print commands that fix what was found, with reasons, without running them'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand doctor" -s q -l quiet -d 'Print only the result'
complete -c precise -n "__fish_precise_using_subcommand doctor" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand schema" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand schema" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand schema" -s l -l list -d 'List all documents with the versions of their schemas and the commands that print them'
complete -c precise -n "__fish_precise_using_subcommand schema" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand completions" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand completions" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand completions" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand man" -s o -l output -d 'Write one page per command to this folder' -r -F
complete -c precise -n "__fish_precise_using_subcommand man" -l color -d 'When to use colours: auto, always, never [default: auto]' -r -f -a "auto\t''
always\t''
never\t''"
complete -c precise -n "__fish_precise_using_subcommand man" -l width -d 'Make text N columns wide [default: COLUMNS, or the terminal\'s]' -r
complete -c precise -n "__fish_precise_using_subcommand man" -l no-pager -d 'Do not start a pager for text that is longer than the terminal'
complete -c precise -n "__fish_precise_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "record" -d 'Sample, aggregate in the kernel, and write a capture'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "script" -d 'Print samples as they are taken, one line or JSON object each'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "top" -d 'Show the samples live, on a screen'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "serve" -d 'Serve latencies and counts by cgroup to Prometheus'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "import" -d 'Make a capture from a perf.data file'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "explain" -d 'List the findings of a capture, most important first'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "mem" -d 'Show which level served loads and stores, from L1 to remote memory'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "latency" -d 'Show the latency of accesses: histogram and percentiles'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "tlb" -d 'Show which accesses need page walks, and their cost'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "numa" -d 'Show which NUMA nodes access which node\'s memory'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "threads" -d 'Show on which CPUs and NUMA nodes each thread ran'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "c2c" -d 'Show cache lines that move between cores: true and false sharing'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "fetch" -d 'Show code that makes the front end wait'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "branches" -d 'Show which branches mispredict'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "derived" -d 'Count the derived events of AMD IBS'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "annotate" -d 'Show source lines and instructions with their samples'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "chase" -d 'Show loads that wait for other loads: pointer chases'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "types" -d 'Show which structs and fields the samples access'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "skid" -d 'Show how far imprecise samples land from the right instruction'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "diff" -d 'Compare two captures and test what changed significantly'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "check" -d 'Fail if a capture is significantly worse than another'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "flamegraph" -d 'Draw a flame graph of the call chains (record -g)'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "heatmap" -d 'Draw the samples of a capture over time'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "archive" -d 'Store captures under a label, in a folder or an object store'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "fleet" -d 'Make tables of the captures of many machines, and ask them'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "export" -d 'Convert a capture to pprof, folded stacks, CSV or JSON'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "mcp" -d 'Answer the questions of agents about captures (Model Context Protocol)'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "list" -d 'List the presets and events of this machine'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "doctor" -d 'Check whether this machine can sample precisely'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "exit-codes" -d 'List the exit codes with their meanings'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "schema" -d 'Print the JSON Schema of a --json document'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "man" -d 'Print the manual page, or write the pages of all commands'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record script top serve import explain report mem latency tlb numa threads c2c fetch branches derived annotate chase types skid diff check flamegraph heatmap archive fleet export mcp list doctor exit-codes schema completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "compact" -d 'Add the captures of a place up to tables by hour and day'
complete -c precise -n "__fish_precise_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "report" -d 'Show where the samples of many machines are'
complete -c precise -n "__fish_precise_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "latency" -d 'Show how long the memory accesses of many machines take'
complete -c precise -n "__fish_precise_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "types" -d 'Show which types and fields the samples of many machines access'
complete -c precise -n "__fish_precise_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "diff" -d 'Show what changed on many machines from one time to another'
