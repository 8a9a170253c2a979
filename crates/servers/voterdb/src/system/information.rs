//! `@SystemInformation`: what the server says of itself.

use crate::Durability;
use crate::identity::{BUILD, VERSION};
use crate::result::{Datum, ResultTable, Type};
use crate::shared::Shared;
use plimsoll_core::clock::wall_us;

/// `@SystemInformation`.
pub(super) fn information(shared: &Shared, selector: &str) -> Result<ResultTable, String> {
    match selector {
        "" | "OVERVIEW" => Ok(overview(shared)),
        "DEPLOYMENT" => Ok(deployment(shared)),
        _ => Err(format!(
            "Invalid @SystemInformation selector {selector}; known: OVERVIEW, DEPLOYMENT"
        )),
    }
}

fn overview(shared: &Shared) -> ResultTable {
    let identity = &shared.identity;
    let up_ms = (wall_us() / 1_000).saturating_sub(identity.start_ms);
    let (days, rest_ms) = (up_ms / 86_400_000, up_ms % 86_400_000);
    let uptime = format!(
        "{days} days {:02}:{:02}:{:02}.{:03}",
        rest_ms / 3_600_000,
        rest_ms / 60_000 % 60,
        rest_ms / 1_000 % 60,
        rest_ms % 1_000
    );
    let address = identity.address.ip().to_string();
    let columns = [("HOST_ID", Type::Integer), ("KEY", Type::Text), ("VALUE", Type::Text)];
    let mut table = ResultTable::new(&columns);
    for (key, value) in [
        ("HOSTNAME", identity.hostname.clone()),
        ("IPADDRESS", address.clone()),
        ("CLIENTINTERFACE", address),
        ("CLIENTPORT", identity.address.port().to_string()),
        ("BUILDSTRING", BUILD.to_owned()),
        ("VERSION", VERSION.to_owned()),
        ("CLUSTERSTATE", "Running".to_owned()),
        ("INITIALIZED", "true".to_owned()),
        ("FULLCLUSTERSIZE", "1".to_owned()),
        ("KSAFETY", "0".to_owned()),
        ("REPLICATIONROLE", "NONE".to_owned()),
        ("SNAPSHOTS", shared.snapshots.to_string()),
        ("STARTTIME", identity.start_ms.to_string()),
        ("UPTIME", uptime),
    ] {
        table.rows.push(vec![Datum::Int(0), Datum::text(key), Datum::text(value)]);
    }
    table
}

fn deployment(shared: &Shared) -> ResultTable {
    let config = &shared.config;
    let mut table = ResultTable::new(&[("PROPERTY", Type::Text), ("VALUE", Type::Text)]);
    for (property, value) in [
        ("hostcount", "1".to_owned()),
        ("kfactor", "0".to_owned()),
        ("sitesperhost", shared.routing.partitions().to_string()),
        ("commandlogenabled", (config.durability != Durability::None).to_string()),
        ("commandlogmode", config.durability.name().to_owned()),
        ("securityenabled", (!config.users.is_empty()).to_string()),
    ] {
        table.rows.push(vec![Datum::text(property), Datum::text(value)]);
    }
    table
}
