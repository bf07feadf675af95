//! Tests of what the views of memory look like.

use crate::latency::text::latency_text;
use crate::latency::{LatencyOptions, latency};
use crate::mem::tests::{page_sizes, two_nodes};
use crate::mem::text::mem_text;
use crate::mem::{MemOptions, mem};
use crate::numa::numa;
use crate::numa::text::numa_text;
use crate::render::TextOptions;
use crate::tlb::text::tlb_text;
use crate::tlb::{TlbOptions, tlb};
use crate::views_csv::latency_csv;
use crate::views_csv::mem_csv;
use crate::views_csv::numa_csv;
use crate::views_csv::tlb_csv;

/// The text has these lines, one after the other, and none is wider than 80 columns.
fn has(text: &str, lines: &str) {
    assert!(text.contains(lines), "\n{text}");
    assert!(text.lines().all(|line| precise_model::text::width(line) <= 80), "\n{text}");
}

#[test]
fn mem_at_80_columns() {
    let text = mem_text(&mem(&two_nodes(), &MemOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "\
Loads: 970 samples
  Overhead  Samples  Avg  Max  Memory access   Snoop  TLB access    Locked  Node
52.4% ±5.8      150  600  600  Remote RAM hit  Hit    L1 or L2 hit  no         1
",
    );
    has(
        &text,
        "
Stores: 200 samples
      Share  Samples  Memory access  Snoop  TLB access  Locked  Node
100.0% ±1.9      200  L1 hit         N/A    N/A         N/A        0

* 30 of the samples were not memory accesses, or the hardware did not report it:
  they are in no table.
",
    );
}

#[test]
fn latencies_at_80_columns() {
    let text =
        latency_text(&latency(&two_nodes(), &LatencyOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
      512-767        150   15.5%  ███████████▏
    768-1,023         50    5.2%  ███▊
Most frequent: 6 cycles; 100.0% of these accesses are \"L1 hit\".

Samples      p50            p90            p99  Max
    970  6 (6-6)  608 (576-639)  900 (896-900)  900

     Share  Samples            p50            p90      p99  Max  Memory access
63.9% ±3.1      620        6 (6-6)        6 (6-6)  6 (6-6)    6  L1 hit
15.5% ±2.4      150  600 (576-600)  600 (576-600)        -  600  Remote RAM hit
",
    );
}

#[test]
fn walks_at_80_columns() {
    let text = tlb_text(&tlb(&two_nodes(), &TlbOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
5.2% ±1.6 of the accesses needed a page walk: 50 of 970. They took 900 cycles on
average, the other accesses 138 cycles.

 Walk rate        Share  Walks  Walked  Others  Function
22.7% ±6.0  100.0% ±7.1     50     900     530  chase
",
    );
}

#[test]
fn sizes_of_pages_at_80_columns() {
    let text = tlb_text(&tlb(&page_sizes(), &TlbOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
   Walk rate       Share  Walks  Walked  Others  Page size
  15.3% ±3.1  90.0% ±7.4     90     700       5  4 KiB
100.0% ±27.8  10.0% ±7.4     10     900       -  2 MiB
   0.0% ±1.3   0.0% ±3.7      0       -       5  1 GiB
  0.0% ±16.1   0.0% ±3.7      0       -       5  N/A
",
    );
}

#[test]
fn nodes_at_80_columns() {
    let text = numa_text(&numa(&two_nodes(), None).unwrap(), &TextOptions::default());
    has(
        &text,
        "
CPU       memory 0    memory 1   own caches
node 0          50                      900
         5.3% ±1.6               94.7% ±1.6
        300 cycles              30.9 cycles
node 1         150          50           20
",
    );
    let csv = numa_csv(&numa(&two_nodes(), None).unwrap(), ",");
    assert!(csv.contains("\nmem,1,memory 0,150,0.681818,0.617601,0.739794,600.000\n"), "{csv}");
}

#[test]
fn csv_has_a_field_for_each_name() {
    let tables = [
        mem_csv(&mem(&two_nodes(), &MemOptions::default()).unwrap(), ","),
        latency_csv(&latency(&two_nodes(), &LatencyOptions::default()).unwrap(), ","),
        tlb_csv(&tlb(&two_nodes(), &TlbOptions::default()).unwrap(), ","),
    ];
    for csv in tables {
        let fields: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
        assert!(fields.len() > 1 && fields.iter().all(|count| *count == fields[0]), "{csv}");
    }
}
