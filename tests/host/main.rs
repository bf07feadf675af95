//! Tests on the kernel of this machine. They share its perf events, so they run one at a time:
//! `cargo test -p precise-tests --test host -- --test-threads=1`.

mod annotate;
mod archive;
mod attacks;
mod bad_input;
mod cgroups;
mod chaos;
mod chase;
mod cli;
mod containers;
mod deadline;
mod documents;
mod ending;
mod epochs;
mod export;
mod faults;
mod gates;
mod governor;
mod habits;
mod hostile;
mod hotplug;
mod html;
mod kill_switch;
mod large;
mod ledger;
mod names;
mod numpy;
mod own;
mod privileges;
mod runbooks;
mod script;
mod serve;
mod soak;
mod stacks;
mod syscalls;
mod verifier;
