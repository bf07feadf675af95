//! Objects whose members are on pages of their own, and code that reaches them in the ways of Rust.

use std::alloc::{Layout, alloc};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(align(4096))]
pub struct Page<T> {
    inner: T,
}

pub struct Leg {
    strike: Page<u64>,
    expiry: Page<u32>,
}

pub enum Kind {
    Market { slip: Page<u64> },
    Limit { price: Page<f64>, depth: Page<u64> },
}

pub struct Order {
    weight: Page<u64>,
    leg: Leg,
    kind: Kind,
    route: Page<Option<Box<Order>>>,
    history: Page<[u64; 8]>,
}

pub struct Shared {
    hits: Page<AtomicU64>,
    limit: Page<u64>,
}

pub struct Book<'a, T> {
    all: &'a mut [T],
}

trait Cost {
    fn cost(&self) -> u64;
}

impl Cost for Order {
    #[inline(never)]
    fn cost(&self) -> u64 {
        self.leg.strike.inner + 1
    }
}

#[inline(never)]
fn fill(all: &mut Vec<Order>) {
    for (i, one) in all.iter_mut().enumerate() {
        one.weight.inner = i as u64;
        if i % 3 != 0 {
            one.history.inner[i & 7] += 1;
        }
    }
}

#[inline(never)]
fn expire<'a>(book: &mut Book<'a, Order>, at: u32) {
    for i in 0..book.all.len() {
        book.all[i].leg.expiry.inner = at;
    }
}

#[inline(never)]
fn costs(all: &[&dyn Cost]) -> u64 {
    all.iter().map(|one| one.cost()).sum()
}

#[inline(never)]
fn kinds(all: &[Order]) -> u64 {
    let mut sum = 0;
    for one in all {
        sum += match &one.kind {
            Kind::Market { slip } => slip.inner,
            Kind::Limit { price, depth } => price.inner as u64 + depth.inner,
        };
    }
    sum
}

#[inline(never)]
fn walk(mut next: Option<&Box<Order>>) -> u64 {
    let mut sum = 0;
    while let Some(one) = next {
        sum += 1;
        next = one.route.inner.as_ref();
    }
    sum
}

#[inline(never)]
fn hit(all: &[Arc<Shared>]) -> u64 {
    let mut sum = 0;
    for one in all {
        one.hits.inner.fetch_add(1, Ordering::Relaxed);
        sum += one.limit.inner;
    }
    sum
}

unsafe extern "C" {
    fn madvise(start: *mut u8, length: usize, advice: i32) -> i32;
}

const DONTNEED: i32 = 4;
const NOHUGEPAGE: i32 = 15;

fn member(of: &str, names: &str, offset: usize, size: usize) {
    println!("member {of} {names} {offset} {size}");
}

/// `shapes ROUNDS` does its work in that many rounds. Only the first round touches pages that are
/// new.
fn main() {
    let rounds: u32 = std::env::args().nth(1).map_or(1, |rounds| rounds.parse().unwrap());
    let n = 120;
    let layout = Layout::from_size_align(n * size_of::<Order>(), 4096).unwrap();
    let start = unsafe { alloc(layout) };
    unsafe { madvise(start, layout.size(), NOHUGEPAGE) };
    println!("array order {start:p} {n} {}", size_of::<Order>());
    member("order", "weight", offset_of!(Order, weight), 4096);
    member("order", "strike", offset_of!(Order, leg.strike), 4096);
    member("order", "expiry", offset_of!(Order, leg.expiry), 4096);
    member("order", "kind", offset_of!(Order, kind), size_of::<Kind>());
    member("order", "route", offset_of!(Order, route), 4096);
    member("order", "history", offset_of!(Order, history), 4096);
    member("shared", "hits", offset_of!(Shared, hits), 4096);
    member("shared", "limit", offset_of!(Shared, limit), 4096);
    // Untouched memory is zero, which is a valid order.
    let mut all = unsafe { Vec::from_raw_parts(start.cast::<Order>(), n, n) };
    let mut sum = 0;
    for _ in 0..rounds {
        fill(&mut all);
        let dynamic: Vec<&dyn Cost> = all.iter().map(|one| one as &dyn Cost).collect();
        sum += costs(&dynamic);
        expire(&mut Book { all: &mut all }, 7);
        sum += kinds(&all);
    }
    // A box of each order, whose route is the next one.
    let first = start.cast::<Order>();
    for i in (1..n).rev() {
        let next = unsafe { Box::from_raw(first.add(i)) };
        all[i - 1].route.inner = Some(next);
    }
    let head = unsafe { Box::from_raw(first) };
    for _ in 0..rounds {
        sum += walk(Some(&head));
    }
    std::mem::forget(head);
    std::mem::forget(all);
    let shared: Vec<Arc<Shared>> = (0..n as u64)
        .map(|limit| Arc::new(Shared { hits: Page { inner: AtomicU64::new(1) }, limit: Page { inner: limit } }))
        .collect();
    for one in &shared {
        let at = (&raw const **one).cast_mut().cast::<u8>();
        unsafe { madvise(at, size_of::<Shared>(), DONTNEED) };
        println!("array shared {at:p} 1 {}", size_of::<Shared>());
    }
    for _ in 0..rounds {
        sum += hit(&shared);
    }
    std::mem::forget(shared);
    println!("sum {sum}");
}
