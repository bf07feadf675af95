//! The binary `precise`.

#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod angles;
mod cli;
mod memory;
mod resolver;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: memory::Patient = memory::Patient;

fn main() -> ExitCode {
    // Before anything else: this may be the process that reads the files of others.
    precise::reader::run_if_reader();
    resolver::stay_inside();
    memory::wait_for_memory();
    memory::keep_freed();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !precise::capture::panics_are_answered() {
            hook(panic);
        }
    }));
    cli::main()
}
