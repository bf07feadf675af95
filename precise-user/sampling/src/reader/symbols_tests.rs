//! Tests of packing symbols, and of answers that cannot be right.

use std::borrow::Cow;
use std::path::Path;

use blazesym::symbolize::InlinedFn;

use super::*;

fn place(line: u32) -> CodeInfo<'static> {
    CodeInfo {
        dir: Some(Cow::Borrowed(Path::new("/src"))),
        file: Cow::Borrowed(OsStr::new("a.c")),
        line: Some(line),
        column: None,
        _non_exhaustive: (),
    }
}

fn symbol(name: &str, inlined: &[&str]) -> Sym<'static> {
    let inlined = inlined.iter().zip(1..).map(|(name, line)| InlinedFn {
        name: Cow::Owned((*name).to_owned()),
        code_info: Some(place(line)),
        _non_exhaustive: (),
    });
    Sym {
        name: Cow::Owned(name.to_owned()),
        module: None,
        addr: 0x1000,
        offset: 8,
        size: Some(16),
        code_info: Some(Box::new(place(100))),
        inlined: inlined.collect(),
        _non_exhaustive: (),
    }
}

/// Makes an answer one that cannot be right.
type Spoil<'a> = &'a dyn Fn(&mut PackedSymbols);

fn packed(found: &[Symbolized<'_>]) -> PackedSymbols {
    let mut packer = Packer::default();
    found.iter().for_each(|found| packer.add(found, None));
    packer.finish()
}

#[test]
fn a_text_is_sent_once() {
    let found = [
        Symbolized::Sym(symbol("_ZN5space3fooEibc", &["touch", "look"])),
        Symbolized::Unknown(Reason::UnknownAddr),
        Symbolized::Sym(symbol("main", &["touch"])),
        Symbolized::Unknown(Reason::IgnoredError),
    ];
    let packed = packed(&found);
    assert_eq!(packed.texts, "space::foo(int, bool, char)/src/a.ctouchlookmain");
    let symbols = packed.unpack(4).expect("sound");
    let [FoundSymbol::Symbol(first), FoundSymbol::None, FoundSymbol::Symbol(main), FoundSymbol::Failed] =
        &symbols[..]
    else {
        panic!("{symbols:?}")
    };
    assert_eq!(
        (&*first.name, first.address, first.offset, first.size),
        ("space::foo(int, bool, char)", 0x1000, 8, Some(16))
    );
    let lines: Vec<_> = first.inlined.iter().map(|frame| (&*frame.name, frame.line.clone())).collect();
    let line = |number| Some(FileLine { path: "/src/a.c".into(), number: Some(number) });
    assert_eq!(lines, [("touch", line(1)), ("look", line(2))]);
    assert_eq!((&*main.name, &main.line, main.inlined.len()), ("main", &line(100), 1));
    assert!(Rc::ptr_eq(&first.inlined[0].name, &main.inlined[0].name));
}

#[test]
fn the_part_of_a_function_has_its_own_name_and_start() {
    let found = Symbolized::Sym(Sym { addr: 0, size: None, ..symbol("main", &[]) });
    let part = Sym { addr: 0x2000, ..symbol("main.cold", &[]) };
    let mut packer = Packer::default();
    packer.add(&found, Some(&part));
    let symbols = packer.finish().unpack(1).expect("sound");
    let [FoundSymbol::Symbol(symbol)] = &symbols[..] else { panic!("{symbols:?}") };
    assert_eq!((&*symbol.name, symbol.address, symbol.size), ("main.cold", 0x2000, Some(16)));
}

#[test]
fn what_has_no_room_has_failed() {
    // Each is as long as a text may be.
    let found: Vec<_> =
        (0..5000).map(|index| Symbolized::Sym(symbol(&format!("{index:0>4000}"), &["touch"]))).collect();
    let packed = packed(&found);
    assert!(packed.texts.len() <= MAX_ANSWER);
    let symbols = packed.unpack(5000).expect("sound");
    assert!(matches!(symbols.first(), Some(FoundSymbol::Symbol(_))));
    assert_eq!(symbols.last(), Some(&FoundSymbol::Failed));
}

#[test]
fn an_answer_is_not_believed() {
    let good = packed(&[Symbolized::Sym(symbol("é", &["touch"]))]);
    assert!(good.clone().unpack(1).is_ok());
    let wrong = |spoil: Spoil<'_>| {
        let mut bad = good.clone();
        spoil(&mut bad);
        bad.unpack(1)
    };
    let of = |bad: &mut PackedSymbols, spoil: &dyn Fn(&mut u32, &mut Option<PackedLine>, &mut u32)| {
        let PackedSymbol::Symbol { name, line, inlined, .. } = &mut bad.found[0] else { panic!() };
        spoil(name, line, inlined);
    };
    let nowhere = Some(PackedLine { path: 4, number: None });
    let all: [(&str, Spoil<'_>); 10] = [
        ("a name without a text", &|bad| of(bad, &|name, _, _| *name = 4)),
        ("a path without a text", &|bad| of(bad, &|_, line, _| *line = nowhere)),
        ("more inlined functions than there are", &|bad| of(bad, &|_, _, inlined| *inlined = u32::MAX)),
        ("an inlined function without a name", &|bad| bad.inlined[0].name = u32::MAX),
        ("an inlined function without a path", &|bad| bad.inlined[0].line = nowhere),
        ("a text in the middle of a character", &|bad| bad.ends[0] = 1),
        ("a text that ends before it begins", &|bad| bad.ends[1] = 0),
        ("a text that is not there", &|bad| bad.ends[2] = 1 << 20),
        ("more texts than anything has", &|bad| bad.ends.extend([2; 4])),
        ("another number of symbols", &|bad| bad.found.push(PackedSymbol::None)),
    ];
    for (what, spoil) in all {
        assert_eq!(wrong(spoil), Err(WRONG), "{what}");
    }
}
