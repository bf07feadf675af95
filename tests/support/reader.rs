//! Makes every test program the reader of files when it is executed as one. Such programs have no
//! `main` of their own that could call `run_if_reader`, so a constructor does.

use precise::reader::run_if_reader;

extern "C" fn before_main() {
    run_if_reader();
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;
