//! Meanings of names, and types of expressions.

use super::schema::Table;
use super::syntax::{Aggregate, Expr, From, Function};
use crate::result::{Datum, Type};

/// A table of FROM and the name it goes by.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) table: Table,
    pub(super) name: String,
}

/// The tables of a FROM.
pub(super) fn tables(from: &[From]) -> Result<Vec<Named>, String> {
    let mut found: Vec<Named> = Vec::with_capacity(from.len());
    for one in from {
        let table = table(&one.table)?;
        let name = one.alias.clone().unwrap_or_else(|| table.name().to_owned());
        if found.iter().any(|other| other.name == name) {
            return Err(format!("{name} stands twice in FROM; give one of them another name"));
        }
        found.push(Named { table, name });
    }
    Ok(found)
}

/// The table of this name.
pub(super) fn table(name: &str) -> Result<Table, String> {
    Table::find(name).ok_or_else(|| format!("user lacks privilege or object not found: {name}"))
}

/// Puts columns in the place of their names.
pub(super) fn bind(expr: &mut Expr, tables: &[Named]) -> Result<(), String> {
    if let Expr::Name(table, column) = expr {
        *expr = column_of(table.as_deref(), column, tables)?;
        return Ok(());
    }
    expr.parts_mut().into_iter().try_for_each(|part| bind(part, tables))
}

fn column_of(table: Option<&str>, column: &str, tables: &[Named]) -> Result<Expr, String> {
    let mut found = None;
    for (source, named) in tables.iter().enumerate() {
        if table.is_some_and(|table| table != named.name && table != named.table.name()) {
            continue;
        }
        let columns = named.table.columns();
        if let Some(place) = columns.iter().position(|known| known.name == column) {
            if found.is_some() {
                return Err(format!("ambiguous column name: {column}; write which table's it is"));
            }
            found = Some(Expr::Column(source, place));
        }
    }
    let shown = table.map_or(column.to_owned(), |table| format!("{table}.{column}"));
    found.ok_or_else(|| format!("user lacks privilege or object not found: {shown}"))
}

/// The type of a value. Conditions have none and are looked into for what they compare.
pub(super) fn kind(expr: &Expr, tables: &[Named], params: &[Datum<'_>]) -> Result<Type, String> {
    let of = |expr: &Expr| kind(expr, tables, params);
    let number = |expr: &Expr, what: &str| match of(expr)? {
        kind if kind.is_number() => Ok(kind),
        Type::Null => Ok(Type::BigInt),
        _ => Err(format!("incompatible data type in operation: {what} takes numbers")),
    };
    Ok(match expr {
        Expr::Null => Type::Null,
        Expr::Int(_) => Type::BigInt,
        Expr::Float(_) => Type::Float,
        Expr::Text(_) => Type::Text,
        Expr::Param(place) => match params.get(*place) {
            Some(Datum::Int(_)) => Type::BigInt,
            Some(Datum::Float(_)) => Type::Float,
            Some(Datum::State(_) | Datum::Text(_)) => Type::Text,
            Some(Datum::Null) | None => Type::Null,
        },
        Expr::Column(source, column) => tables[*source].table.columns()[*column].kind,
        Expr::Negate(of) => number(of, "'-'")?,
        Expr::Sum(_, a, b) => match (number(a, "arithmetic")?, number(b, "arithmetic")?) {
            (a, b) if a.is_whole() && b.is_whole() => Type::BigInt,
            _ => Type::Float,
        },
        Expr::Call(function, values) => call_kind(*function, values, tables, params)?,
        Expr::Aggregate { kind: aggregate, of: value, .. } => match (aggregate, value) {
            (Aggregate::Count, Some(value)) => of(value).map(|_| Type::BigInt)?,
            (Aggregate::Count, None) => Type::BigInt,
            (Aggregate::Min | Aggregate::Max, Some(value)) => of(value)?,
            (Aggregate::Sum | Aggregate::Avg, Some(value)) => {
                match number(value, "an aggregate")? {
                    kind if kind.is_whole() => Type::BigInt,
                    kind => kind,
                }
            }
            (_, None) => return Err("an aggregate without a value".to_owned()),
        },
        Expr::Compare(_, a, b) => comparable(&[a, b], tables, params)?,
        Expr::Between(a, b, c) => comparable(&[a, b, c], tables, params)?,
        Expr::In(a, list) => {
            let all: Vec<&Expr> = std::iter::once(&**a).chain(list).collect();
            comparable(&all, tables, params)?
        }
        Expr::Like(a, b) => match (of(a)?, of(b)?) {
            (Type::Text | Type::Null, Type::Text | Type::Null) => Type::Null,
            _ => return Err("incompatible data type in operation: LIKE takes texts".to_owned()),
        },
        // The tree below is looked at, and is a condition or a value of any type.
        Expr::Not(_) | Expr::And(_) | Expr::Or(_) | Expr::IsNull(_) => {
            expr.parts().into_iter().try_for_each(|part| of(part).map(|_| ()))?;
            Type::Null
        }
        Expr::Name(..) | Expr::Computed(_) => Type::Null,
    })
}

fn call_kind(
    function: Function,
    values: &[Expr],
    tables: &[Named],
    params: &[Datum<'_>],
) -> Result<Type, String> {
    let is_text = matches!(function, Function::Upper | Function::Lower | Function::CharLength);
    let mut is_whole = true;
    for value in values {
        let kind = kind(value, tables, params)?;
        is_whole &= kind != Type::Float;
        if kind != Type::Null && is_text != (kind == Type::Text) {
            return Err(format!("incompatible data type in operation: {function:?}"));
        }
    }
    Ok(match function {
        Function::Upper | Function::Lower => Type::Text,
        Function::CharLength => Type::BigInt,
        Function::Mod if !is_whole => return Err("MOD takes whole numbers".to_owned()),
        Function::Mod | Function::Abs if is_whole => Type::BigInt,
        Function::Mod | Function::Abs => Type::Float,
    })
}

/// Values that are compared are all numbers or all texts.
fn comparable(all: &[&Expr], tables: &[Named], params: &[Datum<'_>]) -> Result<Type, String> {
    let mut is_text = None;
    for expr in all {
        let kind = kind(expr, tables, params)?;
        if kind == Type::Null {
            continue;
        }
        let this = kind == Type::Text;
        if is_text.is_some_and(|other| other != this) {
            return Err("incompatible data types in comparison: a number and a text".to_owned());
        }
        is_text = Some(this);
    }
    Ok(Type::Null)
}
