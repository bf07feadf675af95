//! Types of programs in C, C++ and Rust whose objects are known: they print where their objects
//! are, and touch each field on a fresh page. A page fault is an exact sample, so the field of each
//! sample is known from its address, and must be the one that `precise types` names.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::fleet::FleetHour;
use precise::model::Capture;
use precise::reader::elf::Headers;
use precise_tests::debug_server::DebuginfodServer;
use precise_tests::{
    program::{c, cpp, rust},
    run::{Ended, command, precise},
};
use serde_json::Value;

/// The fields of the objects of all three programs, by their offset: each is on a page of its own.
const FIELDS: [(u64, &str); 5] =
    [(0, "id"), (4096, "price"), (8192, "at.y"), (12288, "history"), (16384, "next")];
/// The size of an object.
const SIZE: u64 = 20480;

const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
struct point { int x, y; };
struct order {
    long id; char a[4088];
    double price; char b[4084];
    struct point at; char c[4092];
    long history[512];
    struct order *next; char d[4088];
};
__attribute__((noinline)) void fill(struct order *all, long n) {
    for (long i = 0; i < n; i++) {
        all[i].id = i;
        if (i % 2) all[i].price = i * 0.5;
        if (i % 3) all[i].history[i & 7] += i;
    }
}
__attribute__((noinline)) void link(struct order *all, long n) {
    struct order *last = 0;
    for (struct order *o = all; o < all + n; o++) { o->next = last; last = o; }
}
__attribute__((noinline)) long walk(struct order *o) {
    long sum = 0;
    for (; o; o = o->next) sum += o->at.y;
    return sum;
}
int main(void) {
    long n = 150;
    struct order *all = mmap(0, n * sizeof *all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(all, n * sizeof *all, MADV_NOHUGEPAGE);
    printf("objects %p %ld %zu\n", (void *)all, n, sizeof *all);
    fill(all, n);
    link(all, n);
    return (int)walk(all + n - 1);
}
"#;

const CPP: &str = r#"
#include <cstdio>
#include <sys/mman.h>
struct named { long id; char a[4088]; };
struct point { int x, y; };
template <class T> struct priced : named { T price; char b[4084]; point at; char c[4092]; };
struct order : priced<double> { long history[512]; order *next; char d[4088]; };
struct book {
    order *all; long n;
    __attribute__((noinline)) void fill() {
        for (long i = 0; i < n; i++) {
            order &o = all[i];
            o.id = i;
            if (i % 2) o.price = i * 0.5;
            if (i % 3) o.history[i & 7] += i;
        }
    }
    __attribute__((noinline)) void link() {
        order *last = nullptr;
        for (order *o = all; o != all + n; o++) { o->next = last; last = o; }
    }
    __attribute__((noinline)) long walk() const {
        long sum = 0;
        for (const order *o = all + n - 1; o; o = o->next) sum += o->at.y;
        return sum;
    }
};
int main() {
    book b{nullptr, 150};
    size_t bytes = b.n * sizeof(order);
    b.all = (order *)mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(b.all, bytes, MADV_NOHUGEPAGE);
    printf("objects %p %ld %zu\n", (void *)b.all, b.n, sizeof(order));
    b.fill();
    b.link();
    return (int)b.walk();
}
"#;

const RUST: &str = r#"
use std::alloc::{Layout, alloc};
#[repr(C)] pub struct Point { x: i32, y: i32 }
#[repr(C)] pub struct Order {
    id: u64, a: [u8; 4088],
    price: f64, b: [u8; 4084],
    at: Point, c: [u8; 4092],
    history: [u64; 512],
    next: Option<&'static Order>, d: [u8; 4088],
}
#[inline(never)] fn fill(all: &mut [Order]) {
    for (i, o) in all.iter_mut().enumerate() {
        o.id = i as u64;
        if i % 2 != 0 { o.price = i as f64 * 0.5; }
        if i % 3 != 0 { o.history[i & 7] += i as u64; }
    }
}
#[inline(never)] fn link(all: *mut Order, n: usize) {
    let mut last = None;
    for i in 0..n { unsafe { let o = &mut *all.add(i); o.next = last; last = Some(&*all.add(i)); } }
}
#[inline(never)] fn walk(mut o: Option<&Order>) -> i32 {
    let mut sum = 0;
    while let Some(one) = o { sum += one.at.y; o = one.next; }
    sum
}
fn main() {
    let n = 150;
    let layout = Layout::from_size_align(n * size_of::<Order>(), 4096).unwrap();
    let all = unsafe { alloc(layout) }.cast::<Order>();
    println!("objects {all:p} {n} {}", size_of::<Order>());
    fill(unsafe { std::slice::from_raw_parts_mut(all, n) });
    link(all, n);
    println!("{}", walk(Some(unsafe { &*all.add(n - 1) })));
}
"#;

#[test]
fn fields_of_c() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fields(folder.path(), &c(folder.path(), "orders", C)?, "order")
}

#[test]
fn fields_of_cpp() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fields(folder.path(), &cpp(folder.path(), "orders", CPP)?, "order")
}

#[test]
fn fields_of_rust() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fields(folder.path(), &rust(folder.path(), "orders", RUST)?, "orders::Order")
}

/// Records a program, and compares the fields that `precise types` names with those that the data
/// addresses tell.
fn fields(folder: &Path, program: &Path, name: &str) -> Result<()> {
    let file = folder.join("faults.parquet").display().to_string();
    let events = ["record", "-e", "page-faults", "-c", "1", "--granule", "1", "--by", "ip,address,thread"];
    let ended =
        precise([&events[..], &["-o", &file, "--", &program.display().to_string()]].concat())?.expect(0)?;
    let capture = Capture::read(Path::new(&file))?;
    // Not on standard error: precise writes there meanwhile.
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix("objects "));
    let mut numbers = line.context("where the objects are")?.split(' ');
    let mut number = |radix| -> Result<u64> {
        let text = numbers.next().context("a number")?.trim_start_matches("0x");
        Ok(u64::from_str_radix(text, radix)?)
    };
    let (start, count, size) = (number(16)?, number(10)?, number(10)?);
    ensure!(size == SIZE, "an object has {size} bytes");

    // What the addresses say.
    let mut truth: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &capture.rows {
        let data = row.data.and_then(|id| capture.data.get(id as usize));
        let Some(at) = data.and_then(|data| data.runtime_address.checked_sub(start)) else { continue };
        if at < count * size {
            let field = FIELDS.iter().rev().find(|(offset, _)| *offset <= at % size).context("a field")?;
            *truth.entry(field.1).or_default() += row.measures.count;
        }
    }
    ensure!(truth.len() == FIELDS.len(), "each field was touched: {truth:?}");

    let ended = precise(["types", "-i", &file, "--json", name])?.expect(0)?;
    let view: serde_json::Value = serde_json::from_str(&ended.stdout)?;
    let types = view["events"][0]["types"].as_array().context("types")?;
    let order = types.iter().find(|ty| ty["name"] == name).with_context(|| format!("{name}: {view:#}"))?;
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let found: BTreeMap<&str, u64> = order["fields"]
        .as_array()
        .context("fields")?
        .iter()
        .map(|field| (field["name"].as_str().unwrap_or(""), number(&field["samples"])))
        .filter(|(_, samples)| *samples > 0)
        .collect();
    // No field has samples that the addresses do not tell, and few samples have no type.
    let wrong =
        found.iter().filter(|(field, samples)| truth.get(*field).is_none_or(|right| *samples > right));
    assert_eq!(wrong.count(), 0, "{found:?} of {truth:?}");
    let (typed, all) = (found.values().sum::<u64>(), truth.values().sum::<u64>());
    assert!(typed * 10 >= all * 8, "{found:?} of {truth:?}");
    // An index into an array says nothing about the start of the object.
    assert_eq!(order["checked"]["contradicted"], 0);
    let exact = typed - found.get("history").copied().unwrap_or(0);
    assert_eq!(number(&order["checked"]["confirmed"]), exact);

    // The account adds up.
    let whole = precise(["types", "-i", &file, "--json", "-n", "10000"])?.expect(0)?;
    let whole: serde_json::Value = serde_json::from_str(&whole.stdout)?;
    let event = &whole["events"][0];
    let sum = |list: &serde_json::Value| -> u64 {
        list.as_array().into_iter().flatten().map(|one| number(&one["samples"])).sum()
    };
    assert_eq!(sum(&event["types"]) + sum(&event["untyped"]), number(&event["samples"]));
    fleet_agrees(folder, &file, capture.meta.start_unix_ns)
}

/// Compares the types of a capture with those that the tables of a fleet give, to which it is
/// added up.
fn fleet_agrees(folder: &Path, file: &str, start_ns: u64) -> Result<()> {
    let place = folder.join("fleet").display().to_string();
    let hour = FleetHour::of_ns(start_ns).to_string();
    precise(["archive", "--label", "prod", "-i", file, &place])?.expect(0)?;
    precise(["fleet", "compact", "--hour", &hour, &place])?.expect(0)?;
    let sums = |arguments: &[&str], samples: &str| -> Result<_> {
        let ended = precise(arguments)?.expect(0)?;
        let answer: Value = serde_json::from_str(&ended.stdout)?;
        let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for group in answer["events"][0]["groups"].as_array().context("groups")? {
            let text = |value: &Value| match value["untyped"].as_str() {
                Some(why) => format!("[{why}]"),
                None => value["text"].as_str().or(value.as_str()).unwrap_or_default().to_owned(),
            };
            let values = group["values"].as_array().into_iter().flatten().map(text).collect();
            *sums.entry(values).or_default() += group.pointer(samples).and_then(Value::as_u64).unwrap_or(0);
        }
        Ok(sums)
    };
    let by = ["--by", "type,field", "--json", "-n", "100000"];
    let mut of_capture = sums(&[&["report", "-i", file][..], &by].concat(), "/measures/count")?;
    let fleet = ["fleet", "types", "--time", &hour, &place];
    let mut of_fleet = sums(&[&fleet[..], &by].concat(), "/samples")?;
    // The tables of a fleet have no instructions of the kernel, whose addresses differ from boot to
    // boot: their samples are those of code that is in no file.
    let nowhere = vec!["[code of no known function]".to_owned(); 2];
    let kernel = of_fleet.remove(&nowhere).unwrap_or(0);
    let all = |sums: &BTreeMap<Vec<String>, u64>| sums.values().sum::<u64>();
    ensure!(all(&of_capture) == all(&of_fleet) + kernel, "{of_capture:?} {of_fleet:?} {kernel}");
    of_capture.retain(|values, samples| {
        let more = samples.saturating_sub(of_fleet.remove(values).unwrap_or(0));
        // Those of the kernel have other reasons, or types by BTF.
        *samples = more;
        more > 0
    });
    ensure!(of_fleet.is_empty() && all(&of_capture) == kernel, "{of_capture:?} {of_fleet:?} {kernel}");
    Ok(())
}

/// One thread writes `seq` of each order and another reads it, and others use the rest of its line.
/// Each access is the first to its page after the pages were dropped, so that it is a sample.
const SHARED: &str = r#"
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
struct order { long id; long seq; double price; char name[40]; char rest[4032]; };
enum { N = 120 };
static struct order *all;
static long sum;
__attribute__((noinline)) void *match_loop(void *orders) {
    struct order *o = orders;
    for (long i = 0; i < N; i++) o[i].seq = i;
    return 0;
}
__attribute__((noinline)) void *scan(void *orders) {
    struct order *o = orders;
    for (long i = 0; i < N; i++) sum += o[i].seq;
    return 0;
}
__attribute__((noinline)) void *value(void *orders) {
    struct order *o = orders;
    for (long i = 0; i < N; i++) sum += (long)o[i].price;
    return 0;
}
static void run(void *(*with)(void *)) {
    pthread_t thread;
    pthread_create(&thread, 0, with, all);
    pthread_join(thread, 0);
    madvise(all, N * 8192L, MADV_DONTNEED);
}
int main(void) {
    all = mmap(0, N * 8192L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(all, N * 8192L, MADV_NOHUGEPAGE);
    run(match_loop);
    run(scan);
    run(value);
    printf("lines %zu %zu\n", offsetof(struct order, seq) / 64, offsetof(struct order, price) / 64);
    return sum == 42;
}
"#;

/// Builds a program with the advised struct: the line that two threads share is gone, and the
/// compiler puts the members where the advice says.
#[test]
fn the_advised_struct_has_no_shared_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let first = Advised::of(folder.path(), "before", SHARED)?;
    ensure!(first.lines == "lines 0 0", "{}", first.lines);
    let seq = first.member("seq")?;
    ensure!(seq["write_shared"] == true && seq["offset"].as_u64() > Some(0), "{seq:#}");
    let definition = first.advice["definition"].as_str().context("a definition")?;
    let (start, rest) = SHARED.split_once("struct order {").context("the struct")?;
    let (_, end) = rest.split_once("};").context("the end of the struct")?;
    let second = Advised::of(folder.path(), "after", &format!("{start}{definition}{end}"))?;
    let line =
        |name: &str| -> Result<u64> { Ok(first.member(name)?["offset"].as_u64().context("an offset")? / 64) };
    let (seq, price) = (line("seq")?, line("price")?);
    ensure!(seq != price && second.lines == format!("lines {seq} {price}"), "{definition}\n{}", second.lines);
    for member in second.advice["members"].as_array().context("members")? {
        let name = member["name"].as_str().context("a name")?;
        ensure!(member["offset_now"] == first.member(name)?["offset"], "{definition}\n{member:#}");
    }
    Ok(())
}

/// What `precise types --advise` says of a program, and what the program prints.
struct Advised {
    advice: serde_json::Value,
    lines: String,
}

impl Advised {
    fn of(folder: &Path, name: &str, source: &str) -> Result<Self> {
        Self::of_program(folder, name, &c(folder, name, source)?, "order")
    }

    fn of_program(folder: &Path, name: &str, program: &Path, of: &str) -> Result<Self> {
        let program = program.display().to_string();
        let file = folder.join(format!("{name}.parquet")).display().to_string();
        let by = "ip,address,thread";
        let run = ["record", "-q", "-e", "page-faults", "-c", "1", "--granule", "1", "--by", by];
        let ended = precise([&run[..], &["-o", &file, "--", &program]].concat())?.expect(0)?;
        let lines = ended.stdout.lines().find(|line| line.starts_with("lines"));
        let lines = lines.context("the lines")?.to_owned();
        let view = precise(["types", "-i", &file, "--json", "--advise", of])?.expect(0)?;
        let view: serde_json::Value = serde_json::from_str(&view.stdout)?;
        let types = view["events"][0]["types"].as_array().context("types")?;
        let order = types.iter().find(|ty| ty["name"] == of).with_context(|| format!("{view:#}"))?;
        Ok(Self { advice: order["advice"].clone(), lines })
    }

    fn member(&self, name: &str) -> Result<&serde_json::Value> {
        let members = self.advice["members"].as_array().context("members")?;
        members.iter().find(|member| member["name"] == name).with_context(|| name.to_owned())
    }
}

/// Runs a command that must succeed.
fn tool(name: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(name).args(arguments).output().with_context(|| name.to_owned())?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The debug information of a program is on a server only.
#[test]
fn debug_information_comes_from_a_server() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let program = c(folder.path(), "orders", C)?.display().to_string();
    let (separate, file) = (path("orders.debug"), path("faults.parquet"));
    tool("objcopy", &["--only-keep-debug", &program, &separate])?;
    tool("strip", &["--strip-debug", &program])?;
    let by = "ip,address,thread";
    let run = ["record", "-q", "-e", "page-faults", "-c", "1", "--granule", "1", "--by", by];
    precise([&run[..], &["-o", &file, "--", &program]].concat())?.expect(0)?;
    let build_id = Headers::read(&File::open(&program)?)?.and_then(|headers| headers.build_id());
    let build_id = build_id.context("a build id")?.hex();

    let ask = |urls: &str, more: &[(&str, &str)]| -> Result<(u64, Ended)> {
        let mut asked = command(["types", "-i", &file, "--json", "order"])?;
        asked.env("DEBUGINFOD_URLS", urls).env("DEBUGINFOD_CACHE_PATH", path("cache"));
        let ended = Ended::from(asked.envs(more.iter().copied()).output()?).expect(0)?;
        let view: serde_json::Value = serde_json::from_str(&ended.stdout)?;
        let types = view["events"][0]["types"].as_array().context("types")?;
        let order = types.iter().find(|ty| ty["name"] == "order");
        Ok((order.map_or(0, |order| order["samples"].as_u64().unwrap_or(0)), ended))
    };
    // Nobody is asked whom the environment does not name.
    let server = DebuginfodServer::start()?;
    assert_eq!(ask("", &[])?.0, 0);
    // A server without it.
    let wanted = format!("/buildid/{build_id}/debuginfo");
    assert_eq!(ask(&server.url(), &[])?.0, 0);
    let asked = server.take_asked();
    ensure!(asked.iter().filter(|path| **path == wanted).count() == 1, "{asked:?}");
    // A file with another build id is refused, and not kept.
    server.serve(&build_id, std::fs::read("/bin/true")?);
    let (samples, ended) = ask(&server.url(), &[])?;
    ensure!(samples == 0 && ended.stderr.contains("it has not the build id"), "{}", ended.stderr);
    // So is what is no ELF file, and what is too large.
    server.serve(&build_id, b"<html>".to_vec());
    assert_eq!(ask(&server.url(), &[])?.0, 0);
    server.serve(&build_id, std::fs::read(&separate)?);
    let (samples, ended) = ask(&server.url(), &[("DEBUGINFOD_MAXSIZE", "1000")])?;
    ensure!(samples == 0 && ended.stderr.contains("DEBUGINFOD_MAXSIZE"), "{}", ended.stderr);
    // The right one, after a server that is down.
    let both = format!("http://127.0.0.1:1 {}", server.url());
    let (samples, ended) = ask(&both, &[])?;
    ensure!(samples > 300 && ended.stderr.contains("fetching the debug information"), "{}", ended.stderr);
    server.take_asked();
    // It is in the cache now.
    assert_eq!(ask(&server.url(), &[])?.0, samples);
    let asked = server.take_asked();
    ensure!(!asked.contains(&wanted), "{asked:?}");
    let annotated = precise(["annotate", "-i", &file, "--json", "fill"])?.expect(0)?;
    ensure!(!annotated.stdout.contains("orders.c"), "the environment of this test names no server");
    let mut annotated = command(["annotate", "-i", &file, "--json", "fill"])?;
    annotated.env("DEBUGINFOD_URLS", server.url()).env("DEBUGINFOD_CACHE_PATH", path("cache"));
    let annotated = Ended::from(annotated.output()?).expect(0)?;
    ensure!(annotated.stdout.contains("orders.c"), "its lines are from there too: {}", annotated.stdout);
    Ok(())
}

/// A struct with members of many types, and the same accesses as [`SHARED`], in C++.
const SHARED_CPP: &str = r#"
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>
namespace book {
enum class Side : unsigned char { Buy, Sell };
struct Point { int x, y; };
//<
struct Order {
    long id; std::uint64_t seq; double price; Point at; Side side; const char *name;
    std::string label; std::vector<Point> path; std::unique_ptr<Order> next;
    long (*rate)(const Order &); unsigned short cells[2][3]; struct { int a; long b; } pair;
    Order *links[4]; std::function<void()> call; bool open; char rest[7975];
};
static_assert(sizeof(Order) == 8192, "each object begins a page");
//>
}
using book::Order;
enum { N = 120 };
static Order *all;
static long sum;
[[gnu::noinline]] void match_loop(Order *o) { for (long i = 0; i < N; i++) o[i].seq = i; }
[[gnu::noinline]] void scan(Order *o) { for (long i = 0; i < N; i++) sum += o[i].seq; }
[[gnu::noinline]] void value(Order *o) { for (long i = 0; i < N; i++) sum += (long)o[i].price; }
static void run(void (*with)(Order *)) {
    std::thread(with, all).join();
    madvise((void *)all, N * 8192L, MADV_DONTNEED);
}
int main() {
    all = (Order *)mmap(nullptr, N * 8192L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)all, N * 8192L, MADV_NOHUGEPAGE);
    run(match_loop);
    run(scan);
    run(value);
    printf("lines\n");
    return sum == 42;
}
"#;

/// Returns the advice about a struct of a program, and the program's source with the advised
/// definition in place of its own.
fn advised(folder: &Path, program: &Path, source: &str, name: &str) -> Result<(serde_json::Value, String)> {
    let advised = Advised::of_program(folder, "advised", program, name)?;
    let definition = advised.advice["definition"].as_str().context("a definition")?;
    ensure!(!definition.is_empty(), "{:#}", advised.advice);
    let (start, rest) = source.split_once("//<").context("the struct")?;
    let (_, end) = rest.split_once("//>").context("the end of the struct")?;
    Ok((advised.advice.clone(), format!("{start}{definition}{end}")))
}

/// What must hold of each member, and of the whole: `each` makes a line of a name and its offset.
fn assertions(
    advice: &serde_json::Value,
    each: impl Fn(&str, u64) -> String,
    whole: String,
) -> Result<String> {
    let mut text = String::new();
    for member in advice["members"].as_array().context("members")? {
        let (name, offset) = (member["name"].as_str().context("a name")?, member["offset"].as_u64());
        text += &each(name, offset.context("an offset")?);
    }
    Ok(text + &whole)
}

#[test]
fn the_advised_struct_of_cpp_compiles() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = cpp(folder.path(), "shared", SHARED_CPP)?;
    let (advice, source) = advised(folder.path(), &program, SHARED_CPP, "book::Order")?;
    let size = advice["size"].as_u64().context("a size")?;
    let each = |name: &str, offset| {
        format!("static_assert(offsetof(book::Order, {name}) == {offset}, \"{name}\");\n")
    };
    let whole = format!("static_assert(sizeof(book::Order) == {size}, \"size\");\n");
    let source = source + &assertions(&advice, each, whole)?;
    let file = folder.path().join("advised.cc").display().to_string();
    std::fs::write(&file, &source)?;
    tool("g++", &["-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", &file]).with_context(|| source)
}
