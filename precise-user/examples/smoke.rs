use precise::kernel::{event::*, program::*, sampler::Sampler};
use precise_common::config::*;
fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let path = std::env::args().nth(2).unwrap_or_default();
    let mut config = Config::EMPTY;
    config.key = key::IP | key::PID | key::CGROUP | key::ADDRESS;
    config.fields = field::ADDRESS;
    let (enc, rate) = if mode == "faults" { (Encoding { pmu: 1, config: 2, ..Default::default() }, Rate::Period(1)) } else { (Encoding { pmu: 1, config: 0, ..Default::default() }, Rate::Period(1_000_003)) };
    let req = Request { encoding: enc, rate, precise: 0, wanted: Wanted { address: true, cgroup: true, ..Default::default() } };
    let opt = ProgramOptions { config, slots: 8192, cgroup_from_sample: true, read_path: match path.as_str() { "probe" => Some(ReadPath::Probe), _ => None } };
    let mut s = match Sampler::open(&req, None, &[Scope::Cpu(0), Scope::Cpu(1)], &opt) { Ok(s) => s, Err(e) => { println!("{e}"); return; } };
    s.enable().unwrap();
    let mut total = 0u64;
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_secs(1));
        let mut n = 0; let mut cells = 0;
        s.drain(|_, c| { n += c.count as u64; cells += 1; }).unwrap();
        total += n;
        println!("epoch {n} samples {cells} cells");
    }
    s.disable().unwrap();
    s.drain(|_, c| { total += c.count as u64; }).unwrap();
    let l = s.ledger(&[], Some(1)).unwrap();
    println!("{total} {l:#?} unaccounted {} coverage {:?} {:?}", l.unaccounted(), l.coverage(), s.program().stats());
}
