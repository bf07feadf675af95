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
'*-e+[Events or workflows\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
'*--event=[Events or workflows\: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; \`precise list\` shows them]:EVENTS:_default' \
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
'--precise=[How precise the instruction addresses must be]:HOW:((auto\:"The most that there is; each step down is said"
require\:"Exact, or fail"
off\:"Not asked for"))' \
'--filter=[Keep samples that pass\: '\''latency > 100 && addr in 0x1000..0x2000 || comm == nginx'\'']:EXPRESSION:_default' \
'*-G+[Keep samples of these cgroups and all below them\: a path or a pattern; may be given again]:PATH:_default' \
'*--cgroup=[Keep samples of these cgroups and all below them\: a path or a pattern; may be given again]:PATH:_default' \
'*--comm=[Keep samples of processes with these names]:NAMES:_default' \
'*--addr=[Keep samples whose data address lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'*--code=[Keep samples whose instruction lies here\: 0x1000..0x2000; may be given again]:RANGE:_default' \
'--min-latency=[Keep samples of at least this latency, core cycles]:CYCLES:_default' \
'--max-latency=[Keep samples of at most this latency, core cycles]:CYCLES:_default' \
'*--by=[Group by these in the kernel\: ip, address, cgroup, process, thread, cpu, source, latency]:DIMENSIONS:_default' \
'--granule=[Put data addresses together that lie in the same so many bytes, a power of two\: 64 is a cache line]:BYTES:_default' \
'--epoch=[Read the table this often\: the time axis]:TIME:_default' \
'--duration=[End after this long; 10s unless a command is run]:TIME:_default' \
'--table-cells=[Cells for each CPU; 128 bytes of memory each]:NUMBER:_default' \
'-o+[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'--output=[Keep the capture in this file; \`-\` is the standard output]:FILE:_files' \
'--plot=[Draw a heatmap into this file as well\: .png or .svg]:FILE:_files' \
'-s+[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'-n+[Show this many groups of each event]:LIMIT:_default' \
'--limit=[Show this many groups of each event]:LIMIT:_default' \
'--entries=[Show this many groups of each event]:LIMIT:_default' \
'(--json)-x+[Print values separated by this, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by this, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--read-path=[How the program reads the kernel'\''s structures; for tests]:READ_PATH:(direct probe)' \
'-a[Sample everything; the default]' \
'--all-cpus[Sample everything; the default]' \
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
(report)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'--by=[Group by these\: function, line, module, cgroup, process, cpu, level, snoop, tlb, latency, address, variable, …]:KEYS:_default' \
'-s+[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'--sort=[Sort by samples, period, latency, avg, max, or one of the keys]:WHAT:_default' \
'-n+[Show this many groups of each event]:LIMIT:_default' \
'--limit=[Show this many groups of each event]:LIMIT:_default' \
'--entries=[Show this many groups of each event]:LIMIT:_default' \
'(--json)-x+[Print values separated by this, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'(--json)--field-separator=[Print values separated by this, for a spreadsheet\: -x,]:SEPARATOR:_default' \
'--json[Print JSON]' \
'--stdio[Print text; the default]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(heatmap)
_arguments "${_arguments_options[@]}" : \
'-i+[The capture; \`-\` is the standard input]:FILE:_files' \
'--input=[The capture; \`-\` is the standard input]:FILE:_files' \
'-o+[Draw into this file\: .png or .svg; without it, on the terminal]:FILE:_files' \
'--output=[Draw into this file\: .png or .svg; without it, on the terminal]:FILE:_files' \
'-y+[What the vertical axis shows; auto takes latency where there is one, else addresses, else functions]:WHAT:(auto latency address function)' \
'--axis=[What the vertical axis shows; auto takes latency where there is one, else addresses, else functions]:WHAT:(auto latency address function)' \
'--panels=[What gets a panel of its own]:WHAT:(auto cgroup process event none)' \
'--max-panels=[Most panels; the smallest beyond them are put together]:NUMBER:_default' \
'-e+[Draw this event of the capture]:NAME:_default' \
'--event=[Draw this event of the capture]:NAME:_default' \
'--width=[Width of the picture, pixels]:PIXELS:_default' \
'(-o --output)--json[Print JSON]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
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
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(heatmap)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(exit-codes)
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
'report:Show where the samples of a capture are' \
'heatmap:Draw a capture over time' \
'list:Show the events that this machine has' \
'exit-codes:Show the exit codes and what they mean' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write one for each command' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise commands' commands "$@"
}
(( $+functions[_precise__subcmd__completions_commands] )) ||
_precise__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'precise completions commands' commands "$@"
}
(( $+functions[_precise__subcmd__exit-codes_commands] )) ||
_precise__subcmd__exit-codes_commands() {
    local commands; commands=()
    _describe -t commands 'precise exit-codes commands' commands "$@"
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
'report:Show where the samples of a capture are' \
'heatmap:Draw a capture over time' \
'list:Show the events that this machine has' \
'exit-codes:Show the exit codes and what they mean' \
'completions:Print a completion script for a shell' \
'man:Print the manual page, or write one for each command' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'precise help commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__completions_commands] )) ||
_precise__subcmd__help__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'precise help completions commands' commands "$@"
}
(( $+functions[_precise__subcmd__help__subcmd__exit-codes_commands] )) ||
_precise__subcmd__help__subcmd__exit-codes_commands() {
    local commands; commands=()
    _describe -t commands 'precise help exit-codes commands' commands "$@"
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

if [ "$funcstack[1]" = "_precise" ]; then
    _precise "$@"
else
    compdef _precise precise
fi
