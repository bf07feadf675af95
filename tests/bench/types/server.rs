//! A small server: orders over HTTP, for `cargo xtask bench types`.
//!
//! `bench-types-server` prints its port and serves until its standard input ends.
//! `GET /N` buys and sells order N, and answers with the state of the book.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::rc::Rc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// An order that waits for others.
struct Order {
    number: u64,
    quantity: u32,
    owner: String,
    fills: Vec<Fill>,
}

/// A trade.
struct Fill {
    price: u64,
    quantity: u32,
}

/// All orders: by price, and who has which.
#[derive(Default)]
struct Book {
    levels: BTreeMap<u64, Vec<Order>>,
    by_owner: HashMap<String, u64>,
    traded: u64,
}

impl Book {
    fn order(&mut self, number: u64) -> String {
        let price = 1000 + number % 64;
        let owner = format!("owner {}", number % 1000);
        *self.by_owner.entry(owner.clone()).or_default() += 1;
        let level = self.levels.entry(price).or_default();
        let order = Order { number, quantity: 10, owner, fills: Vec::new() };
        match number % 2 {
            0 => level.push(order),
            _ => trade(level, order, price, &mut self.traded),
        }
        if level.len() > 256 {
            level.remove(0);
        }
        let best = self.levels.iter().find(|(_, level)| !level.is_empty());
        let sum: u64 = self.levels.values().flatten().map(|order| u64::from(order.quantity)).sum();
        let best = best.map_or(0, |(price, level)| price + level.first().map_or(0, |order| order.number));
        format!("{{\"best\":{best},\"quantity\":{sum},\"traded\":{}}}\n", self.traded)
    }
}

/// Trades an order with those of its level.
fn trade(level: &mut [Order], mut order: Order, price: u64, traded: &mut u64) {
    for other in level.iter_mut().filter(|other| other.quantity > 0) {
        let quantity = other.quantity.min(order.quantity).min(3);
        other.quantity -= quantity;
        other.fills.push(Fill { price, quantity });
        order.quantity -= quantity;
        *traded += u64::from(quantity) + u64::from(other.owner == order.owner);
        *traded += other.fills.iter().map(|fill| fill.price % 2 + u64::from(fill.quantity)).sum::<u64>() % 2;
        if order.quantity == 0 {
            break;
        }
    }
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ended = std::io::stdin().read_to_end(&mut rest);
        std::process::exit(0);
    });
    tokio::task::LocalSet::new().block_on(&runtime, serve())
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    let book = Rc::new(RefCell::new(Book::default()));
    loop {
        let (stream, _) = listener.accept().await?;
        let book = book.clone();
        tokio::task::spawn_local(async move {
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let number = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
                let body = book.borrow_mut().order(number);
                async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body)))) }
            });
            let _closed = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
