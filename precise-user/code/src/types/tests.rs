//! The data flow over assembled code, with types that are written down here.

use super::*;
use crate::testing::assemble;

const NODE: TypeId = TypeId(0);
const POINTER: TypeId = TypeId(1);
const LONG: TypeId = TypeId(2);

/// `struct node { struct node *next; long a; long b; };`, in the kernel or in a program.
struct Nodes {
    kernel: bool,
}

impl Types for Nodes {
    fn shape(&mut self, ty: TypeId) -> TypeShape {
        if ty == NODE { TypeShape::Composite } else { TypeShape::Scalar }
    }

    fn size(&mut self, ty: TypeId) -> Option<u64> {
        Some(if ty == NODE { 24 } else { 8 })
    }

    fn pointee(&mut self, ty: TypeId) -> Option<TypeId> {
        (ty == POINTER).then_some(NODE)
    }

    fn fields_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        match (ty, offset) {
            (NODE, 0..8) => vec![(POINTER, offset)],
            (NODE, 8..24) => vec![(LONG, offset % 8)],
            _ => Vec::new(),
        }
    }

    fn erased(&mut self, _: TypeId) -> Option<TypeId> {
        None
    }

    fn global(&mut self, _: u64) -> Option<Global> {
        None
    }

    fn has_per_cpu(&self) -> bool {
        self.kernel
    }

    /// A pointer to a node, a node, and what leads to the copy of this CPU.
    fn per_cpu(&mut self, address: u64) -> Option<PerCpu> {
        match address {
            _ if !self.kernel => None,
            0x5000..0x5008 => Some(PerCpu::Variable(Global { address: 0x5000, ty: POINTER })),
            0x6000..0x6018 => Some(PerCpu::Variable(Global { address: 0x6000, ty: NODE })),
            0x7000..0x7008 => Some(PerCpu::Offset(Global { address: 0x7000, ty: LONG })),
            _ => None,
        }
    }
}

/// Returns the places of all accesses of a function whose first argument is a pointer to a node at
/// its first instruction, and nowhere else as far as debug information says.
fn places(text: &str) -> Vec<Result<(TypeId, u64), Untyped>> {
    places_in(text, Nodes { kernel: true })
}

fn places_in(text: &str, nodes: Nodes) -> Vec<Result<(TypeId, u64), Untyped>> {
    places_with(text, nodes, &[])
}

/// Returns the places, with more variables.
fn places_with(text: &str, mut nodes: Nodes, more: &[Variable]) -> Vec<Result<(TypeId, u64), Untyped>> {
    let code = assemble(text);
    let variable = Variable { start: 0x1000, end: 0x1001, home: Home::Value(7, 0), ty: POINTER, piece: None };
    let facts = FunctionFacts {
        from_entry: true,
        described: true,
        variables: [&[variable], more].concat(),
        ..FunctionFacts::default()
    };
    let wanted: Vec<u64> = code.iter().map(|instruction| instruction.offset).collect();
    let found = accesses(&code, &facts, &mut nodes, &wanted).unwrap();
    let of = |offset| found[offset].iter().map(|access| access.place.map(|place| (place.ty, place.offset)));
    wanted.iter().flat_map(of).collect()
}

#[test]
fn a_pointer_is_followed_through_moves_members_and_the_stack() {
    assert_eq!(places("mov %rdi,%rax\n mov 8(%rax),%rcx"), [Ok((NODE, 8))]);
    assert_eq!(places("mov (%rdi),%rdi\n mov 16(%rdi),%rcx"), [Ok((NODE, 0)), Ok((NODE, 16))]);
    assert_eq!(places("lea 8(%rdi),%rax\n mov 8(%rax),%rcx"), [Ok((NODE, 16))]);
    assert_eq!(places("add $24,%rdi\n mov 8(%rdi),%rcx"), [Ok((NODE, 8))]);
    let spilled = "mov %rdi,%rdi\n sub $16,%rsp\n mov %rdi,(%rsp)\n xor %edi,%edi\n mov (%rsp),%rdx\n \
                   mov 8(%rdx),%rcx";
    assert_eq!(places(spilled).last(), Some(&Ok((NODE, 8))));
    let walk = "1: mov 8(%rdi),%rcx\n mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret";
    assert_eq!(places(walk)[..2], [Ok((NODE, 8)), Ok((NODE, 0))]);
}

#[test]
fn what_cannot_be_followed_has_a_reason() {
    assert_eq!(places("nop\n mov 32(%rdi),%rcx"), [Err(Untyped::Outside)]);
    assert_eq!(places("nop\n mov (%rdi,%rsi,8),%rcx"), [Err(Untyped::Index)]);
    assert_eq!(places("nop\n mov (%rsi),%rcx"), [Err(Untyped::NoRegister)]);
    assert_eq!(places("nop\n mov %fs:8,%rcx"), [Err(Untyped::Segment)]);
    // A call overwrites the register, and a value of 32 bits is no pointer.
    assert_eq!(places("nop\n call 1f\n1: mov (%rdi),%rcx").last(), Some(&Err(Untyped::NoRegister)));
    assert_eq!(places("mov %edi,%eax\n mov (%rax),%rcx"), [Err(Untyped::NoRegister)]);
}

#[test]
fn an_index_may_count_from_a_constant() {
    let walk = "mov $48,%ecx\n 1: mov -40(%rdi,%rcx),%rax\n add $48,%rcx\n cmp $480,%rcx\n jne 1b\n ret";
    assert_eq!(places(walk)[0], Ok((NODE, 8)));
    let half = "mov $48,%ecx\n 1: mov -40(%rdi,%rcx),%rax\n add $12,%rcx\n cmp $480,%rcx\n jne 1b\n ret";
    assert_eq!(places(half)[0], Err(Untyped::Index));
}

/// gcc says that a number whose register was overwritten is in the member that it was stored to.
#[test]
fn a_number_in_the_element_before_is_a_part_of_it() {
    let text = "nop\n 1: mov %rax,8(%rdi)\n add $24,%rdi\n mov %rcx,-8(%rdi)\n dec %rdx\n jne 1b\n ret";
    let stored = Variable { start: 0x1009, end: 0x100d, home: Home::At(7, -16), ty: LONG, piece: None };
    assert_eq!(places_with(text, Nodes { kernel: false }, &[stored])[..2], [Ok((NODE, 8)), Ok((NODE, 16))]);
}

/// `for (link = &head; *link; link = &(*link)->next)`: a link is a member of a node but at first.
#[test]
fn a_place_where_two_paths_meet_has_what_both_lead_to() {
    let walk = "nop\n 1: mov (%rsi),%rax\n mov %rax,%rsi\n test %rax,%rax\n jne 1b\n ret";
    let head = Variable { start: 0x1000, end: 0x1001, home: Home::At(6, 0), ty: POINTER, piece: None };
    assert_eq!(places_with(walk, Nodes { kernel: false }, &[head])[0], Ok((POINTER, 0)));
}

#[test]
fn what_is_said_later_was_true_before() {
    let stored = "nop\n movq $1,8(%rsi)\n mov %rsi,(%rdi)";
    assert_eq!(places(stored), [Ok((NODE, 8)), Ok((NODE, 0))]);
    let copied = "nop\n movq $1,8(%rsi)\n mov %rsi,%rbx\n xor %esi,%esi\n mov %rbx,(%rdi)";
    assert_eq!(places(copied)[0], Ok((NODE, 8)));
    // Another value, or another type.
    let replaced = "nop\n movq $1,8(%rsi)\n mov %rdx,%rsi\n mov %rsi,(%rdi)";
    assert_eq!(places(replaced)[0], Err(Untyped::NoRegister));
    let number = "nop\n movq $1,8(%rsi)\n mov %rsi,8(%rdi)";
    assert_eq!(places(number)[0], Err(Untyped::NoRegister));
}

#[test]
fn what_fills_the_space_before_a_loop_leads_nowhere() {
    let text = "mov %rdi,%r12\n lea 8(%rsp),%rbx\n call *%rdx\n mov %r12,%rbx\n jmp 2f\n nop\n \
                1: add $24,%rbx\n 2: mov 8(%rbx),%rcx\n dec %rdx\n jne 1b\n ret";
    assert!(places(text).contains(&Ok((NODE, 8))), "{:?}", places(text));
}

#[test]
fn variables_of_the_cpu_are_followed() {
    assert_eq!(places("mov %gs:0x6008,%rcx"), [Ok((NODE, 8))]);
    assert_eq!(places("mov %gs:0x5000,%rax\n mov 16(%rax),%rcx").last(), Some(&Ok((NODE, 16))));
    assert_eq!(places("nop\n mov %gs:0x7000,%rcx"), [Ok((LONG, 0))]);
    assert_eq!(places("nop\n mov %gs:0x8000,%rcx"), [Err(Untyped::Segment)]);
    // The copy of this CPU, by each way that compilers take.
    for way in [
        "mov $0x6000,%rax\n add %gs:0x7000,%rax\n mov 8(%rax),%rcx",
        "mov %gs:0x7000,%rax\n add $0x6000,%rax\n mov 8(%rax),%rcx",
        "mov %gs:0x7000,%rax\n mov 0x6008(%rax),%rcx",
        "mov %gs:0x7000,%rax\n lea 0x6000(%rax),%rax\n mov 8(%rax),%rcx",
        "add %gs:0x7000,%rdi\n mov 8(%rdi),%rcx",
    ] {
        assert_eq!(places(way).last(), Some(&Ok((NODE, 8))), "{way}");
    }
    // A pointer to such a variable, relative to the segment.
    assert_eq!(places("mov %gs:8(%rdi),%rcx"), [Ok((NODE, 8))]);
    assert_eq!(places("nop\n mov %gs:8(%rsi),%rcx"), [Err(Untyped::Segment)]);
}

#[test]
fn a_program_keeps_something_unknown_in_the_segment_of_the_cpu() {
    let program = |text: &str| places_in(text, Nodes { kernel: false });
    // The pointer in the register points to a node, but the access is not there.
    assert_eq!(program("mov %gs:8(%rdi),%rcx"), [Err(Untyped::Segment)]);
    assert_eq!(program("mov %gs:(%rdi),%rax\n mov 8(%rax),%rcx")[1], Err(Untyped::NoRegister));
    assert_eq!(program("nop\n mov %gs:0x6008,%rcx"), [Err(Untyped::Segment)]);
}
