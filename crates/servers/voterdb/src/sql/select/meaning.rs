//! The meaning of a select: names bound, `*` written out, aggregates found, types known.

use crate::result::{Datum, Type};
use crate::sql::names::{Named, bind, kind, tables};
use crate::sql::sink::Computation;
use crate::sql::syntax::{Expr, Item, Order, Select};

/// One column of the result.
pub(super) struct Shown {
    pub(super) expr: Expr,
    pub(super) name: String,
    pub(super) kind: Type,
}

/// A select that can be run.
pub(super) struct Meaning {
    pub(super) tables: Vec<Named>,
    /// All of which must hold.
    pub(super) conditions: Vec<Expr>,
    pub(super) items: Vec<Shown>,
    pub(super) is_grouped: bool,
    pub(super) groups: Vec<Expr>,
    pub(super) computations: Vec<Computation>,
    pub(super) having: Option<Expr>,
    pub(super) order: Vec<Order>,
    pub(super) limit: Option<usize>,
    pub(super) offset: usize,
}

impl Meaning {
    pub(super) fn of(select: &Select, params: &[Datum<'static>]) -> Result<Self, String> {
        let tables = tables(&select.from)?;
        let conditions = conditions(select, &tables, params)?;
        let mut items = items(select, &tables, params)?;
        let mut order = order(select, &items, &tables)?;
        let mut groups = select.groups.clone();
        for group in &mut groups {
            bind(group, &tables)?;
            kind(group, &tables, params)?;
            if group.any(&is_aggregate) {
                return Err("GROUP BY holds an aggregate".to_owned());
            }
        }
        let mut having = select.having.clone();
        if let Some(having) = &mut having {
            bind(having, &tables)?;
            kind(having, &tables, params)?;
        }
        for order in &order {
            kind(&order.by, &tables, params)?;
        }
        let mut computations = Vec::new();
        let exprs = items.iter_mut().map(|item| &mut item.expr);
        let exprs = exprs.chain(order.iter_mut().map(|order| &mut order.by)).chain(&mut having);
        let exprs: Vec<&mut Expr> = exprs.collect();
        let mut after = Vec::new();
        for expr in exprs {
            take_aggregates(expr, &mut computations)?;
            after.push(&*expr);
        }
        let is_grouped = !groups.is_empty() || !computations.is_empty() || select.having.is_some();
        if is_grouped {
            after.into_iter().try_for_each(|expr| must_be_grouped(expr, &groups, &tables))?;
        }
        let count = |expr: &Option<Expr>, what| expr.as_ref().map(|e| rows(e, params, what));
        Ok(Self {
            conditions,
            is_grouped,
            computations,
            limit: count(&select.limit, "LIMIT").transpose()?,
            offset: count(&select.offset, "OFFSET").transpose()?.unwrap_or(0),
            groups,
            items,
            having,
            order,
            tables,
        })
    }
}

fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Aggregate { .. })
}

/// The conditions of WHERE and of joins, one by one.
fn conditions(
    select: &Select,
    tables: &[Named],
    params: &[Datum<'static>],
) -> Result<Vec<Expr>, String> {
    let mut found = Vec::new();
    let mut left: Vec<Expr> = select.filter.iter().cloned().collect();
    while let Some(one) = left.pop() {
        match one {
            Expr::And(all) => left.extend(all),
            mut one => {
                bind(&mut one, tables)?;
                kind(&one, tables, params)?;
                if one.any(&is_aggregate) {
                    return Err("an aggregate stands in WHERE; HAVING takes it".to_owned());
                }
                found.push(one);
            }
        }
    }
    // In the order in which they were written.
    found.reverse();
    Ok(found)
}

fn items(
    select: &Select,
    tables: &[Named],
    params: &[Datum<'static>],
) -> Result<Vec<Shown>, String> {
    let mut found = Vec::new();
    let all_of = |found: &mut Vec<Shown>, source: usize| {
        for (place, column) in tables[source].table.columns().iter().enumerate() {
            let expr = Expr::Column(source, place);
            found.push(Shown { expr, name: column.name.to_owned(), kind: column.kind });
        }
    };
    for item in &select.items {
        match item {
            Item::All => (0..tables.len()).for_each(|source| all_of(&mut found, source)),
            Item::AllOf(name) => {
                let place = tables.iter().position(|named| named.name == *name);
                let unknown = || format!("user lacks privilege or object not found: {name}");
                all_of(&mut found, place.ok_or_else(unknown)?);
            }
            Item::Expr(expr, alias) => {
                let mut expr = expr.clone();
                bind(&mut expr, tables)?;
                let kind = kind(&expr, tables, params)?;
                let name = match (alias, &expr) {
                    (Some(alias), _) => alias.clone(),
                    (None, Expr::Column(source, place)) => {
                        tables[*source].table.columns()[*place].name.to_owned()
                    }
                    (None, _) => format!("C{}", found.len() + 1),
                };
                found.push(Shown { expr, name, kind });
            }
        }
    }
    Ok(found)
}

/// The sort keys of the rows: a column of the result by its number or name, or any expression.
fn order(select: &Select, items: &[Shown], tables: &[Named]) -> Result<Vec<Order>, String> {
    let one = |order: &Order| {
        let by = match &order.by {
            Expr::Int(number) => {
                let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                let item = place.and_then(|place| items.get(place));
                item.ok_or_else(|| format!("ORDER BY {number}: there is no such column"))?
                    .expr
                    .clone()
            }
            Expr::Name(None, name) if items.iter().any(|item| item.name == *name) => {
                let item = items.iter().find(|item| item.name == *name);
                item.map_or(Expr::Null, |item| item.expr.clone())
            }
            expr => {
                let mut expr = expr.clone();
                bind(&mut expr, tables)?;
                expr
            }
        };
        Ok(Order { by, is_descending: order.is_descending })
    };
    select.order.iter().map(one).collect()
}

/// Puts places in the list of computations where aggregates stood.
fn take_aggregates(expr: &mut Expr, found: &mut Vec<Computation>) -> Result<(), String> {
    let Expr::Aggregate { kind, is_distinct, of } = expr else {
        return expr.parts_mut().into_iter().try_for_each(|part| take_aggregates(part, found));
    };
    let of = of.as_deref().cloned();
    if of.as_ref().is_some_and(|of| of.any(&is_aggregate)) {
        return Err("an aggregate holds another".to_owned());
    }
    let computation = Computation { kind: *kind, is_distinct: *is_distinct, of };
    let place = found.iter().position(|known| *known == computation).unwrap_or_else(|| {
        found.push(computation);
        found.len() - 1
    });
    *expr = Expr::Computed(place);
    Ok(())
}

/// Beside aggregates only what GROUP BY names has one value in a group.
fn must_be_grouped(expr: &Expr, groups: &[Expr], tables: &[Named]) -> Result<(), String> {
    if groups.contains(expr) {
        return Ok(());
    }
    if let Expr::Column(source, place) = expr {
        let name = tables[*source].table.columns()[*place].name;
        return Err(format!("expression not in aggregate or GROUP BY columns: {name}"));
    }
    expr.parts().into_iter().try_for_each(|part| must_be_grouped(part, groups, tables))
}

/// A number of rows: a literal or a parameter.
fn rows(expr: &Expr, params: &[Datum<'static>], what: &str) -> Result<usize, String> {
    let number = match expr {
        Expr::Int(number) => Some(*number),
        Expr::Param(place) => match params.get(*place) {
            Some(Datum::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("{what} takes a whole number from 0"))
}
