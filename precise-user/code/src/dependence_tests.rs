use super::*;
use crate::testing::assemble;

/// Returns the dependence of each load in the code.
fn loads(text: &str) -> Vec<(usize, Dependence, Vec<usize>)> {
    let instructions = assemble(text);
    let mut dependences = Dependences::of(&instructions);
    let load = |i| dependences.load(i).map(|load| (i, load.dependence, load.from));
    (0..instructions.len()).filter_map(load).collect()
}

const fn chase(hops: usize) -> Dependence {
    Dependence::Chase { hops }
}

const fn unknown(why: UnknownDependence) -> Dependence {
    Dependence::Unknown { why }
}

use Dependence::{BehindChase, Gather, Independent};

#[test]
fn a_list_is_a_chase_and_its_data_hang_on_it() {
    let list = loads("1: add 8(%rdi),%rax\n mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret");
    assert_eq!(list[..2], [(0, BehindChase, vec![1]), (1, chase(1), vec![1])]);
    // Through copies and arithmetic, as compilers generate them: container_of, tagged pointers, two
    // pointers per iteration.
    let moved = loads(
        "1: mov 16(%rbx),%rax\n lea -8(%rax),%rcx\n and $-4,%rcx\n mov %rcx,%rbx\n cmp %rbx,%rdx\n jne 1b",
    );
    assert_eq!(moved, [(0, chase(1), vec![0])]);
    let two = loads("1: mov 8(%rdi),%rax\n mov (%rax),%rdi\n test %rdi,%rdi\n jne 1b");
    assert_eq!(two, [(0, chase(2), vec![1]), (1, chase(2), vec![0])]);
    let index = loads("1: movslq (%rsi,%rax,4),%rax\n dec %rcx\n jne 1b");
    assert_eq!(index, [(0, chase(1), vec![0])]);
    // Without a frame, rbp is an ordinary register.
    assert_eq!(loads("1: mov (%rbp),%rbp\n test %rbp,%rbp\n jne 1b"), [(0, chase(1), vec![0])]);
}

#[test]
fn a_tree_is_one_hop_whichever_way_it_goes() {
    let tree = "1: cmp (%rdi),%rsi\n jl 2f\n mov 16(%rdi),%rdi\n jmp 3f\n 2: mov 8(%rdi),%rdi\n 3: test %rdi,%rdi\n jne 1b";
    assert_eq!(
        loads(tree),
        [(0, BehindChase, vec![2, 4]), (2, chase(1), vec![2, 4]), (4, chase(1), vec![2, 4])]
    );
    let moved = "1: mov 8(%rdi),%rax\n mov 16(%rdi),%rdx\n cmp %rcx,%rsi\n mov %rax,%rdi\n cmovl %rdx,%rdi\n test %rdi,%rdi\n jne 1b";
    assert_eq!(loads(moved)[0].1, chase(1));
    assert_eq!(loads(moved)[1].1, chase(1));
}

#[test]
fn arrays_and_gathers_are_none() {
    let scan = loads("xor %eax,%eax\n 1: add (%rdi,%rax,8),%rdx\n inc %rax\n cmp %rsi,%rax\n jne 1b");
    assert_eq!(scan, [(1, Independent, vec![])]);
    let gather =
        loads("1: movslq (%rsi,%rax,4),%rcx\n add (%rdi,%rcx,8),%rdx\n inc %rax\n cmp %r8,%rax\n jne 1b");
    assert_eq!(gather, [(0, Independent, vec![]), (1, Gather, vec![0])]);
    let vector =
        loads("1: vmovdqu (%rsi,%rax),%ymm1\n vpgatherdd %ymm2,(%rdi,%ymm1,4),%ymm0\n add $32,%rax\n jne 1b");
    assert_eq!(vector[1], (1, Gather, vec![0]));
    // The start of the array is loaded from its owner in each iteration, and is the same each time.
    let owner = loads("1: mov (%rdi),%rcx\n add (%rcx,%rax,8),%rdx\n inc %rax\n cmp %r8,%rax\n jne 1b");
    assert_eq!(owner[1], (1, Independent, vec![]));
    let global =
        loads("1: mov table(%rip),%rcx\n add (%rcx,%rax,8),%rdx\n inc %rax\n jne 1b\n table: .quad 0");
    assert_eq!(global[1].1, Independent);
}

#[test]
fn the_innermost_loop_counts() {
    // One list per bucket of a table.
    let buckets = "1: mov (%rsi,%rax,8),%rdi\n jmp 3f\n 2: mov (%rdi),%rdi\n 3: test %rdi,%rdi\n jne 2b\n inc %rax\n cmp %rcx,%rax\n jne 1b";
    let found = loads(buckets);
    assert_eq!(found[0].1, Independent);
    assert_eq!(found[1].1, chase(1));
    // One row of a matrix of pointers.
    let rows = "1: mov (%rsi,%rax,8),%rdi\n xor %ecx,%ecx\n 2: add (%rdi,%rcx,8),%rdx\n inc %rcx\n cmp %r8,%rcx\n jne 2b\n inc %rax\n cmp %r9,%rax\n jne 1b";
    assert_eq!(loads(rows)[1].1, Independent);
    let instructions = assemble(buckets);
    let mut dependences = Dependences::of(&instructions);
    assert_eq!(dependences.load(2).unwrap().in_loop, [2]);
    assert_eq!(dependences.load(0).unwrap().in_loop, [0, 2]);
}

#[test]
fn values_put_aside_on_the_stack_are_found_again() {
    // p = p->next, as gcc -O0 compiles it.
    let plain = "push %rbp\n mov %rsp,%rbp\n 1: mov -8(%rbp),%rax\n mov (%rax),%rax\n mov %rax,-8(%rbp)\n cmpq $0,-8(%rbp)\n jne 1b\n pop %rbp\n ret";
    assert!(loads(plain).contains(&(3, chase(1), vec![3])));
    let array = "push %rbp\n mov %rsp,%rbp\n 1: mov -16(%rbp),%rax\n mov -8(%rbp),%rdx\n mov (%rdx,%rax,8),%rax\n addq $1,-16(%rbp)\n cmpq $9,-16(%rbp)\n jne 1b\n pop %rbp\n ret";
    assert!(loads(array).contains(&(4, Independent, vec![])));
}

#[test]
fn what_is_not_known_is_said() {
    // One step per call: the loop may be in the caller.
    let once = loads("mov (%rdi),%rax\n mov 8(%rax),%rax\n ret");
    assert_eq!(once[0], (0, unknown(UnknownDependence::Caller), vec![]));
    assert_eq!(once[1], (1, Gather, vec![0]));
    let called = loads("1: call next\n mov (%rax),%rcx\n test %rcx,%rcx\n jne 1b\n next: ret");
    assert_eq!(called[0], (1, unknown(UnknownDependence::Call), vec![]));
    let table = "jmp *%rax\n mov (%rdi),%rcx\n ret";
    assert_eq!(loads(table)[0].1, unknown(UnknownDependence::Lost));
    let instructions = assemble("mov %rax,(%rdi)\n lea 8(%rdi),%rax\n nop 8(%rax)\n add %rax,%rcx");
    let mut dependences = Dependences::of(&instructions);
    assert!((0..5).all(|i| dependences.load(i).is_none()), "no loads");
    assert_eq!(Dependences::of(&[]).load(0), None);
}
