//! The value of a field of a sample, in the words of reports.

use precise_common::data_src::DataSource;
use precise_common::mode::IN_GUEST;

use super::{NamedSample, StreamField};
use precise_model::values::Value;
use precise_model::words::Served;
use precise_model::{Name, Reason, words};

impl StreamField {
    /// Returns the value of this field for a sample.
    pub fn value(self, named: &NamedSample<'_>) -> Value {
        let sample = named.sample;
        let number = |number: u64| if number == 0 { Value::NotGiven } else { Value::Number(number) };
        let address = |address: u64| match address {
            0 => Value::NotGiven,
            _ if named.hides(address) => Value::Unknown(Reason::KernelHidden),
            _ => Value::Address(address),
        };
        let name = |name: Name| match name {
            Name::Known(id) => Value::Text(named.names.get(id).to_owned()),
            Name::Unknown(reason) => Value::Unknown(reason),
        };
        let code = |of: fn(&precise_model::CodeLocation) -> Name| {
            named.code.map_or(Value::Unknown(Reason::NotRecorded), |code| name(of(code)))
        };
        let source = |of: fn(DataSource) -> Value| named.source().map_or(Value::NotGiven, of);
        let text = |text: &str| Value::Text(text.to_owned());
        match self {
            Self::Time => Value::Number(sample.time),
            Self::Cpu => Value::Number(sample.cpu.into()),
            Self::Comm => {
                named.comm.as_ref().map_or_else(|reason| Value::Unknown(*reason), |comm| text(comm))
            }
            Self::Thread => {
                named.thread.as_ref().map_or_else(|reason| Value::Unknown(*reason), |name| text(name))
            }
            Self::Pid => Value::Number(sample.pid.into()),
            Self::Tid => Value::Number(sample.tid.into()),
            Self::Event => text(named.event),
            Self::Period => Value::Number(sample.period),
            Self::Latency => number(sample.weight.latency),
            Self::InstructionLatency => number(sample.weight.instruction.into()),
            Self::RetireLatency => number(sample.weight.retire.into()),
            Self::Op => source(|s| words::op(s).map_or(Value::NotGiven, said)),
            Self::Level => source(|s| Served::of(s).map_or(Value::NotGiven, said)),
            Self::Snoop => source(|s| words::snoop(s).map_or(Value::NotGiven, |snoop| said(snoop.name()))),
            Self::Tlb => source(|s| words::tlb(s).map_or(Value::NotGiven, |tlb| said(tlb.name()))),
            Self::Locked => source(|s| s.locked.map_or(Value::NotGiven, Value::Flag)),
            Self::Remote => source(|s| Value::Flag(s.remote)),
            Self::DataSrc => sample.data_src.map_or(Value::NotGiven, Value::Address),
            Self::Address => address(sample.address),
            Self::PhysAddress => address(sample.phys_address),
            Self::PageSize => number(sample.data_page_size),
            Self::Variable => named.data.map_or(Value::NotGiven, |data| name(data.variable)),
            Self::Region => named.data.map_or(Value::NotGiven, |data| name(data.region)),
            Self::Cgroup => {
                named.cgroup.as_ref().map_or_else(|reason| Value::Unknown(*reason), |path| text(path))
            }
            Self::Mode => text(if named.kernel() { "kernel" } else { "user" }),
            Self::Exact => Value::Flag(named.exact),
            Self::Ip if named.hides(sample.ip) => Value::Unknown(Reason::KernelHidden),
            Self::Ip if sample.ip == IN_GUEST => Value::Unknown(Reason::Guest),
            Self::Ip => Value::Address(sample.ip),
            // Both contain addresses.
            Self::Registers | Self::Raw if named.hides(sample.ip) || named.hides(sample.address) => {
                Value::Unknown(Reason::KernelHidden)
            }
            Self::Symbol => code(|code| code.function),
            Self::Module => code(|code| code.module),
            Self::Line => match (code(|code| code.source), named.code) {
                (Value::Text(file), Some(code)) if code.line > 0 => {
                    Value::Text(format!("{file}:{}", code.line))
                }
                (value, _) => value,
            },
            Self::Registers => {
                let words = named.registers.and_then(|registers| registers.words(&sample.raw));
                words.map_or(Value::NotGiven, Value::Text)
            }
            Self::Raw => raw(&sample.raw),
        }
    }

    /// Returns the offset in bytes from the start of what [`Self::value`] names; `None` if it names
    /// nothing.
    pub fn offset(self, named: &NamedSample<'_>) -> Option<u64> {
        match self {
            Self::Symbol => {
                named.code.filter(|code| matches!(code.function, Name::Known(_))).map(|c| c.function_offset)
            }
            Self::Variable => {
                named.data.filter(|data| matches!(data.variable, Name::Known(_))).map(|d| d.variable_offset)
            }
            _ => None,
        }
    }
}

/// Formats a part of the data source.
fn said(word: impl ToString) -> Value {
    Value::Text(word.to_string())
}

/// Formats the driver's raw data as the words of the record: first the 32 bits of capabilities,
/// then the registers with 64 bits each.
fn raw(bytes: &[u8]) -> Value {
    let Some((capabilities, registers)) = bytes.split_first_chunk::<4>() else { return Value::NotGiven };
    let mut text = format!("{:#010x}", u32::from_ne_bytes(*capabilities));
    for chunk in registers.chunks(8) {
        match chunk.try_into() {
            Ok(word) => text += &format!(",{:#x}", u64::from_ne_bytes(word)),
            // Padding.
            Err(_) if chunk.iter().all(|byte| *byte == 0) => {}
            Err(_) => chunk.iter().for_each(|byte| text += &format!(",{byte:#04x}")),
        }
    }
    Value::Text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_parts_are_words() {
        assert_eq!(raw(&[]), Value::NotGiven);
        assert_eq!(raw(&[1, 2]), Value::NotGiven);
        let mut bytes = 0xffu32.to_ne_bytes().to_vec();
        bytes.extend(0x1234u64.to_ne_bytes());
        assert_eq!(raw(&bytes), Value::Text("0x000000ff,0x1234".into()));
        bytes.extend([0; 4]);
        assert_eq!(raw(&bytes), Value::Text("0x000000ff,0x1234".into()));
        bytes[15] = 7;
        assert_eq!(raw(&bytes), Value::Text("0x000000ff,0x1234,0x00,0x00,0x00,0x07".into()).clone());
    }
}
