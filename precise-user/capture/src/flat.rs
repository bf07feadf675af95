//! The columns of a flat Parquet table, which a query reads without a join.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A boolean.
    Bool,
    /// An unsigned number of 8 bits.
    U8,
    /// An unsigned number of 16 bits.
    U16,
    /// An unsigned number of 32 bits.
    U32,
    /// An unsigned number of 64 bits: an address, an id, or bits.
    U64,
    /// A number of 63 bits, stored with a sign: a count or an offset. Spark, which has no unsigned
    /// types, would read an unsigned one as a decimal.
    I64,
    /// Text in UTF-8, dictionary-encoded.
    Text,
    /// A time, in microseconds since the Unix epoch, UTC. Spark refuses nanoseconds, and DuckDB's
    /// functions of time do not take them; `precise.meta` has the nanoseconds.
    Time,
}

/// A column of a flat table.
#[derive(Clone, Copy, Debug)]
pub struct FlatColumn {
    /// Name of the column in SQL. It is never renamed.
    pub name: &'static str,
    /// Type of the column. It never changes.
    pub kind: ColumnType,
    /// Whether the column may be null.
    pub nullable: bool,
    /// Description of the column, with its unit.
    pub doc: &'static str,
}

impl FlatColumn {
    /// Returns a column that has a value in each row.
    pub const fn must(name: &'static str, kind: ColumnType, doc: &'static str) -> Self {
        Self { name, kind, nullable: false, doc }
    }

    /// Returns a column that may be null.
    pub const fn may(name: &'static str, kind: ColumnType, doc: &'static str) -> Self {
        Self { name, kind, nullable: true, doc }
    }

    /// Returns the type of the column's values.
    pub(crate) fn value_type(&self) -> (Physical, Option<LogicalType>) {
        match self.kind {
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::U8 => (Physical::INT32, Some(LogicalType::integer(8, false))),
            ColumnType::U16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
            ColumnType::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            ColumnType::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::I64 => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        }
    }

    /// Returns the column's type in the schema of the file.
    pub(crate) fn parquet_type(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = self.value_type();
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

/// Returns the schema of a file with these columns.
pub(crate) fn schema(columns: impl IntoIterator<Item = FlatColumn>) -> Result<TypePtr, ParquetError> {
    let fields = columns.into_iter().map(|column| column.parquet_type().map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("precise").with_fields(fields).build()?))
}
