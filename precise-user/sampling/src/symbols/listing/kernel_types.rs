//! Types of kernel code, by the kernel's own description of its types (BTF).
//!
//! BTF has prototypes, structs and the variables of each CPU, but no variables of functions. So
//! what is known at the entry of a function is its parameters, and the data flow has to find the
//! rest: which members point where, and what calls return.

use std::rc::Rc;

use precise_code::types::{
    DescribedTypes, FunctionFacts, Global, Home, Member, MemberRole, PerCpu, RegisterNumber, TypeForm,
    TypeId, TypeLabel, TypeLayout, TypeShape, Types, Variable, bounded_name,
};
use precise_code::{BranchKind, Instruction};
use rustc_hash::FxHashMap;

use super::kernel::KernelCode;
use crate::btf::{Btf, BtfKind};
use crate::symbols::kernel::KernelSymbols;

/// The registers of the first parameters: rdi, rsi, rdx, rcx, r8, r9 (System V ABI for x86-64,
/// §3.2.3).
const PARAMETERS: [RegisterNumber; 6] = [7, 6, 2, 1, 8, 9];
/// The largest parameter in registers, in bytes; larger ones are on the stack.
const IN_REGISTERS: u64 = 16;
/// The section of the variables of each CPU.
const PER_CPU: &str = ".data..percpu";
/// Maximum number of arrays of arrays.
const MAX_ARRAYS: usize = 16;
/// Maximum number of fields of a type that are read.
const MAX_FIELDS: usize = 8192;

/// The types of a kernel, or of a kernel and one of its modules.
#[derive(Debug)]
pub(super) struct BtfTypes {
    btf: Btf,
    /// Functions by name.
    functions: Vec<u32>,
    /// Names of structs, unions and enums that have none but that of a typedef.
    typedefs: FxHashMap<u32, u32>,
    per_cpu: PerCpuVariables,
    members: FxHashMap<TypeId, Rc<Vec<Member>>>,
    /// A kernel has some thousand structs, of which samples are in some.
    layouts: FxHashMap<TypeId, TypeLayout>,
}

/// The variables of each CPU.
#[derive(Debug, Default)]
struct PerCpuVariables {
    /// The address at which the section begins.
    start: u64,
    /// Distances from the start, sizes and ids, by distance.
    variables: Vec<(u64, u64, u32)>,
}

impl BtfTypes {
    pub fn new(btf: Btf) -> Self {
        let (mut functions, mut typedefs) = (Vec::new(), FxHashMap::default());
        for id in btf.ids() {
            match btf.kind(id) {
                BtfKind::Function(_) => functions.push(id),
                BtfKind::Alias(to) if btf.is_typedef(id) && btf.name(to).is_empty() => {
                    typedefs.entry(to).or_insert(id);
                }
                _ => {}
            }
        }
        functions.sort_by_key(|id| btf.name(*id));
        Self {
            btf,
            functions,
            typedefs,
            per_cpu: PerCpuVariables::default(),
            members: FxHashMap::default(),
            layouts: FxHashMap::default(),
        }
    }

    /// Looks up the variables of each CPU. Their section begins where the symbols say. Without
    /// symbols of data (`CONFIG_KALLSYMS_ALL`), the load of the current task tells it.
    pub fn find_per_cpu(&mut self, code: &KernelCode, symbols: &mut KernelSymbols) {
        let btf = &self.btf;
        let sections = || btf.ids().filter(|id| btf.kind(*id) == BtfKind::Section);
        let Some(section) = sections().find(|id| btf.name(*id) == PER_CPU) else { return };
        let mut variables = Vec::new();
        for (variable, offset, size) in btf.variables(section) {
            if let BtfKind::Variable(ty) = btf.kind(variable) {
                variables.push((u64::from(offset), u64::from(size), variable, ty));
            }
        }
        // Linux 6.2 to 6.14 have the task as the first member of a struct.
        let holds_task = |name: &str| name == "current_task" || name == "pcpu_hot";
        let task = variables.iter().find(|variable| holds_task(btf.name(variable.2)));
        let from_task = |symbols: &mut KernelSymbols| {
            let function = symbols.address_of("bpf_get_current_task")?;
            let instructions = code.function(symbols, function).ok()?;
            let load = instructions.iter().find_map(Instruction::gs_address)?;
            load.checked_sub(task?.0)
        };
        let start = symbols.address_of("__per_cpu_start").or_else(|| from_task(symbols));
        let Some(start) = start else { return };
        variables.sort_unstable();
        let variables = variables.into_iter().map(|(offset, size, id, _)| (offset, size, id)).collect();
        self.per_cpu = PerCpuVariables { start, variables };
    }

    /// Returns what is known about the code of the function with a name.
    pub fn facts(
        &mut self,
        name: &str,
        instructions: &[Instruction],
        symbols: &mut KernelSymbols,
    ) -> FunctionFacts {
        let mut facts = FunctionFacts { from_entry: !is_part(name), ..FunctionFacts::default() };
        if let Some(prototype) = self.prototype(name).filter(|_| facts.from_entry) {
            facts.described = true;
            facts.variables = self.parameters(prototype, instructions);
        }
        for instruction in instructions {
            let Some(branch) = instruction.branch.filter(|branch| branch.kind == BranchKind::Call) else {
                continue;
            };
            let called = branch.target.and_then(|target| symbols.function(target).ok());
            let called = called.filter(|called| called.offset == 0);
            let returned = called.and_then(|called| self.prototype(called.name)).map(|id| self.btf.kind(id));
            if let Some(BtfKind::Prototype(ty)) = returned {
                let next = instruction.address.wrapping_add(u64::from(instruction.length));
                facts.returns.insert(next, TypeId(self.btf.strip(ty)));
            }
        }
        facts
    }

    /// Returns the prototype of a function; `None` if it is not known, or if functions of that name
    /// have several.
    fn prototype(&self, name: &str) -> Option<u32> {
        // A copy that the compiler made for some callers (`.constprop`, `.isra`) is described only
        // if its parameters are where the ABI puts them (pahole, `ftype__has_unexpected_reg`).
        let name = name.split('.').next().unwrap_or_default();
        let from = self.functions.partition_point(|id| self.btf.name(*id) < name);
        let same = self.functions.get(from..)?.iter().take_while(|id| self.btf.name(**id) == name);
        let mut found = None;
        for id in same {
            let BtfKind::Function(prototype) = self.btf.kind(*id) else { continue };
            if found.is_some_and(|found| found != prototype) {
                return None;
            }
            found = Some(prototype);
        }
        found
    }

    /// Returns the parameters of a function, which are in registers at its entry.
    fn parameters(&mut self, prototype: u32, instructions: &[Instruction]) -> Vec<Variable> {
        // The kernel patches a call of its tracer over the bytes at the entry, which keeps all
        // registers. So the parameters are still there at the instruction behind it.
        let Some(first) = instructions.first() else { return Vec::new() };
        let behind = instructions.iter().take(2).take_while(|i| i.precedes_kernel_code()).count();
        let end = instructions.get(behind).map_or(first.address, |instruction| instruction.address) + 1;
        let types: Vec<TypeId> =
            self.btf.parameters(prototype).map(|ty| TypeId(self.btf.strip(ty))).collect();
        let (mut free, mut variables) = (PARAMETERS.iter(), Vec::new());
        for ty in types {
            let size = self.size_of(ty);
            if size > IN_REGISTERS || free.as_slice().len() < size.div_ceil(8) as usize {
                continue;
            }
            for piece in (0..size).step_by(8) {
                let Some(register) = free.next() else { break };
                let home = Home::Value(*register, 0);
                let piece = (size > 8).then_some(piece);
                variables.push(Variable { start: first.address, end, home, ty, piece });
            }
        }
        variables
    }

    fn read_members(&self, ty: TypeId) -> Vec<Member> {
        let members = self.btf.members(ty.0).take(MAX_FIELDS);
        members
            .map(|member| Member {
                name: bounded_name(member.name.to_owned()),
                offset: u64::from(member.bit_offset / 8),
                ty: TypeId(self.btf.strip(member.ty)),
                bits: member.bits.map(u64::from),
                role: MemberRole::Field,
            })
            .collect()
    }
}

/// Returns whether a symbol is a part of a function that the compiler moved elsewhere.
fn is_part(name: &str) -> bool {
    name.split('.').any(|part| part == "cold" || part == "part")
}

impl Types for BtfTypes {
    fn shape(&mut self, ty: TypeId) -> TypeShape {
        match self.btf.kind(ty.0) {
            BtfKind::Number(_) | BtfKind::Enumeration(_) | BtfKind::Pointer(_) => TypeShape::Scalar,
            BtfKind::Struct(_) | BtfKind::Union(_) => TypeShape::Composite,
            BtfKind::Array(element, _) => TypeShape::Array { element: TypeId(self.btf.strip(element)) },
            _ => TypeShape::Opaque,
        }
    }

    fn size(&mut self, ty: TypeId) -> Option<u64> {
        let (mut id, mut times) = (ty.0, 1_u64);
        for _ in 0..MAX_ARRAYS {
            match self.btf.kind(id) {
                BtfKind::Array(element, count) => {
                    times = times.checked_mul(count)?;
                    id = self.btf.strip(element);
                }
                BtfKind::Pointer(_) => return times.checked_mul(8),
                BtfKind::Number(size)
                | BtfKind::Enumeration(size)
                | BtfKind::Struct(size)
                | BtfKind::Union(size) => return times.checked_mul(size),
                _ => return None,
            }
        }
        None
    }

    fn pointee(&mut self, ty: TypeId) -> Option<TypeId> {
        let BtfKind::Pointer(to) = self.btf.kind(ty.0) else { return None };
        Some(TypeId(self.btf.strip(to)))
    }

    fn fields_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        self.members_at(ty, offset)
    }

    fn erased(&mut self, _: TypeId) -> Option<TypeId> {
        None
    }

    fn global(&mut self, _: u64) -> Option<Global> {
        None
    }

    fn has_per_cpu(&self) -> bool {
        true
    }

    fn per_cpu(&mut self, address: u64) -> Option<PerCpu> {
        let PerCpuVariables { start, variables } = &self.per_cpu;
        let at = address.checked_sub(*start)?;
        let next = variables.partition_point(|(offset, ..)| *offset <= at);
        let (offset, size, id) = *variables.get(next.checked_sub(1)?)?;
        if at - offset >= size {
            return None;
        }
        let BtfKind::Variable(ty) = self.btf.kind(id) else { return None };
        let global = Global { address: start.checked_add(offset)?, ty: TypeId(self.btf.strip(ty)) };
        let is_offset = self.btf.name(id) == "this_cpu_off";
        Some(if is_offset { PerCpu::Offset(global) } else { PerCpu::Variable(global) })
    }
}

impl DescribedTypes for BtfTypes {
    fn label(&self, ty: TypeId) -> Option<TypeLabel<'_>> {
        let form = match self.btf.kind(ty.0) {
            BtfKind::Struct(_) => TypeForm::Struct,
            BtfKind::Union(_) => TypeForm::Union,
            BtfKind::Enumeration(_) => TypeForm::Enumeration,
            BtfKind::Pointer(_) => TypeForm::Pointer,
            BtfKind::Prototype(_) => TypeForm::Function,
            _ => TypeForm::Other,
        };
        let name = if ty.0 == 0 { "void" } else { self.btf.name(ty.0) };
        let typedef = self.typedefs.get(&ty.0).filter(|_| name.is_empty());
        let name = typedef.map_or(name, |typedef| self.btf.name(*typedef));
        Some(TypeLabel { name, form, alignment: None })
    }

    fn members(&mut self, ty: TypeId) -> Rc<Vec<Member>> {
        if let Some(known) = self.members.get(&ty) {
            return known.clone();
        }
        let members = Rc::new(self.read_members(ty));
        self.members.insert(ty, members.clone());
        members
    }

    fn global_name(&mut self, _: u64) -> String {
        String::new()
    }

    fn layouts(&mut self) -> Option<&mut FxHashMap<TypeId, TypeLayout>> {
        Some(&mut self.layouts)
    }
}
