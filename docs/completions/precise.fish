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
complete -c precise -n "__fish_precise_needs_command" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_needs_command" -f -a "heatmap" -d 'Draw a capture over time'
complete -c precise -n "__fish_precise_needs_command" -f -a "list" -d 'Show the events that this machine has'
complete -c precise -n "__fish_precise_needs_command" -f -a "exit-codes" -d 'Show the exit codes and what they mean'
complete -c precise -n "__fish_precise_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_needs_command" -f -a "man" -d 'Print the manual page, or write one for each command'
complete -c precise -n "__fish_precise_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c precise -n "__fish_precise_using_subcommand record" -s e -l event -d 'Events or workflows: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s p -l pid -d 'Sample these processes, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s t -l tid -d 'Sample these threads, with what they start' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s C -l cpu -d 'Sample on these CPUs only: 0-3,7' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s c -l count -d 'A sample each so many events' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s F -l freq -d 'About so many samples per second and CPU' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l precise -d 'How precise the instruction addresses must be' -r -f -a "auto\t'The most that there is; each step down is said'
require\t'Exact, or fail'
off\t'Not asked for'"
complete -c precise -n "__fish_precise_using_subcommand record" -l filter -d 'Keep samples that pass: \'latency > 100 && addr in 0x1000..0x2000 || comm == nginx\'' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s G -l cgroup -d 'Keep samples of these cgroups and all below them: a path or a pattern; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l comm -d 'Keep samples of processes with these names' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l addr -d 'Keep samples whose data address lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l code -d 'Keep samples whose instruction lies here: 0x1000..0x2000; may be given again' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l min-latency -d 'Keep samples of at least this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l max-latency -d 'Keep samples of at most this latency, core cycles' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l by -d 'Group by these in the kernel: ip, address, cgroup, process, thread, cpu, source, latency' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l granule -d 'Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l epoch -d 'Read the table this often: the time axis' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l duration -d 'End after this long; 10s unless a command is run' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l table-cells -d 'Cells for each CPU; 128 bytes of memory each' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s o -l output -d 'Keep the capture in this file; `-` is the standard output' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -l plot -d 'Draw a heatmap into this file as well: .png or .svg' -r -F
complete -c precise -n "__fish_precise_using_subcommand record" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or one of the keys' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s n -l limit -l entries -d 'Show this many groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand record" -s x -l field-separator -d 'Print values separated by this, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand record" -l read-path -d 'How the program reads the kernel\'s structures; for tests' -r -f -a "direct\t''
probe\t''"
complete -c precise -n "__fish_precise_using_subcommand record" -s a -l all-cpus -d 'Sample everything; the default'
complete -c precise -n "__fish_precise_using_subcommand record" -s K -l all-kernel -d 'Keep samples taken in the kernel'
complete -c precise -n "__fish_precise_using_subcommand record" -s U -l all-user -d 'Keep samples taken in user space'
complete -c precise -n "__fish_precise_using_subcommand record" -s q -l quiet -d 'Say nothing but the result'
complete -c precise -n "__fish_precise_using_subcommand record" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand record" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c precise -n "__fish_precise_using_subcommand report" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand report" -l by -d 'Group by these: function, line, module, cgroup, process, cpu, level, snoop, tlb, latency, address, variable, …' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s s -l sort -d 'Sort by samples, period, latency, avg, max, or one of the keys' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s n -l limit -l entries -d 'Show this many groups of each event' -r
complete -c precise -n "__fish_precise_using_subcommand report" -s x -l field-separator -d 'Print values separated by this, for a spreadsheet: -x,' -r
complete -c precise -n "__fish_precise_using_subcommand report" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand report" -l stdio -d 'Print text; the default'
complete -c precise -n "__fish_precise_using_subcommand report" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s i -l input -d 'The capture; `-` is the standard input' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s o -l output -d 'Draw into this file: .png or .svg; without it, on the terminal' -r -F
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s y -l axis -d 'What the vertical axis shows; auto takes latency where there is one, else addresses, else functions' -r -f -a "auto\t''
latency\t''
address\t''
function\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l panels -d 'What gets a panel of its own' -r -f -a "auto\t''
cgroup\t''
process\t''
event\t''
none\t''"
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l max-panels -d 'Most panels; the smallest beyond them are put together' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s e -l event -d 'Draw this event of the capture' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l width -d 'Width of the picture, pixels' -r
complete -c precise -n "__fish_precise_using_subcommand heatmap" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand heatmap" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand list" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand list" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -l json -d 'Print JSON'
complete -c precise -n "__fish_precise_using_subcommand exit-codes" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand completions" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand man" -s o -l output -d 'Write one page for each command into this folder' -r -F
complete -c precise -n "__fish_precise_using_subcommand man" -s h -l help -d 'Print help'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "record" -d 'Sample, aggregate in the kernel, and keep the result as a capture'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "report" -d 'Show where the samples of a capture are'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "heatmap" -d 'Draw a capture over time'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "list" -d 'Show the events that this machine has'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "exit-codes" -d 'Show the exit codes and what they mean'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "man" -d 'Print the manual page, or write one for each command'
complete -c precise -n "__fish_precise_using_subcommand help; and not __fish_seen_subcommand_from record report heatmap list exit-codes completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
