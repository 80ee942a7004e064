//! What each route needs: the one table of rights over HTTP.
//!
//! Leaves methods of JSON-RPC to their own table. Invariant: a route that is not in the table lets nobody through, and a test compares the
//! table with the OpenAPI document.

use axum::http::Method;
use outlast_protocol::access::Scope;

use crate::access::Need;

/// Returns what a route needs, by its method and its path as the router has it; none if it is not known.
pub(super) fn need(method: &Method, path: &str) -> Option<Need> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|(verb, route, _)| *verb == method && *route == path).map(|(_, _, need)| *need)
}

/// Returns the methods of a path as the router has it.
pub(super) fn methods(path: &str) -> Vec<&'static str> {
    ROUTES.iter().filter(|(_, route, _)| *route == path).map(|(verb, ..)| *verb).collect()
}

const READ: Need = Need::Scope(Scope::Read);
const CONTROL: Need = Need::Scope(Scope::Control);
const DEPLOY: Need = Need::Scope(Scope::Deploy);
const WORK: Need = Need::Scope(Scope::Work);
const ADMIN: Need = Need::Scope(Scope::Admin);

const ROUTES: &[(&str, &str, Need)] = &[
    ("POST", "/v1/flows", DEPLOY),
    ("GET", "/v1/flows", READ),
    ("GET", "/v1/machines/{hash}", READ),
    ("POST", "/v1/profiles", Need::Owner),
    ("GET", "/v1/profiles/{name}", Need::Owner),
    ("POST", "/v1/runs", Need::Scope(Scope::Start)),
    ("GET", "/v1/runs", READ),
    ("GET", "/v1/runs/{id}", READ),
    // What is deleted is gone for audits too.
    ("DELETE", "/v1/runs/{id}", ADMIN),
    ("GET", "/v1/runs/{id}/result", READ),
    ("POST", "/v1/runs/{id}/messages", Need::Scope(Scope::Send)),
    ("POST", "/v1/runs/{id}/withdraw", Need::Scope(Scope::Send)),
    ("POST", "/v1/runs/{id}/answers", Need::Scope(Scope::Answer)),
    ("POST", "/v1/runs/{id}/cancel", CONTROL),
    ("POST", "/v1/runs/{id}/terminate", CONTROL),
    ("POST", "/v1/runs/{id}/settle", CONTROL),
    ("POST", "/v1/runs/{id}/release", CONTROL),
    ("POST", "/v1/runs/{id}/fork", CONTROL),
    ("POST", "/v1/runs/{id}/migrate", CONTROL),
    ("POST", "/v1/runs/{id}/compatibility", CONTROL),
    // A run as it is carried elsewhere brings its environment along, which is more than what it did.
    ("GET", "/v1/runs/{id}/export", CONTROL),
    ("GET", "/v1/runs/{id}/tree", READ),
    ("GET", "/v1/runs/{id}/way", READ),
    ("GET", "/v1/runs/{id}/events", READ),
    ("GET", "/v1/runs/{id}/audit", READ),
    ("GET", "/v1/runs/{id}/stream", READ),
    ("GET", "/v1/runs/{id}/usage", READ),
    ("GET", "/v1/usage", READ),
    ("GET", "/v1/retention", READ),
    ("PUT", "/v1/retention", ADMIN),
    ("GET", "/v1/schedules", READ),
    ("GET", "/v1/schedules/{name}", READ),
    ("PUT", "/v1/schedules/{name}", DEPLOY),
    ("DELETE", "/v1/schedules/{name}", DEPLOY),
    ("POST", "/v1/schedules/{name}/pause", DEPLOY),
    ("POST", "/v1/schedules/{name}/resume", DEPLOY),
    ("POST", "/v1/schedules/{name}/run-now", DEPLOY),
    ("POST", "/v1/rpc", Need::Each),
    ("POST", "/v1/import", Need::Owner),
    ("POST", "/v1/backup", Need::Owner),
    ("POST", "/v1/tokens", ADMIN),
    ("GET", "/v1/tokens", ADMIN),
    ("DELETE", "/v1/tokens/{name}", ADMIN),
    // Who may look at runs, or works for them.
    ("GET", "/v1/blobs/{hash}", Need::Each),
    ("PUT", "/v1/blobs/{hash}", WORK),
    ("POST", "/v1/workers/register", WORK),
    ("POST", "/v1/workers/poll", WORK),
    ("POST", "/v1/workers/report", WORK),
    ("POST", "/v1/workers/progress", WORK),
    ("GET", "/v1/workers/control", WORK),
    ("GET", "/v1/status", Need::Token),
    ("GET", "/v1/doctor", Need::Owner),
    ("GET", "/v1/openapi.json", Need::Token),
    ("GET", "/metrics", READ),
    ("GET", "/health/live", Need::Nothing),
    ("GET", "/health/ready", Need::Nothing),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Writes a need as the document has it: `x-scope`, or no security at all.
    fn written(need: Need) -> String {
        match need {
            Need::Nothing => "none".to_owned(),
            Need::Token => "any".to_owned(),
            Need::Each => "each".to_owned(),
            Need::Owner => "owner".to_owned(),
            Need::Scope(scope) => scope.to_string(),
        }
    }

    #[test]
    fn the_table_is_that_of_the_document() {
        let document: serde_json::Value = serde_json::from_str(outlast_protocol::OPENAPI).unwrap();
        let mut described = BTreeMap::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let scope =
                    operation["x-scope"].as_str().unwrap_or_else(|| panic!("{method} {path} has no x-scope"));
                described.insert((method.to_uppercase(), path.clone()), scope.to_owned());
            }
        }
        let row = |(method, path, need): &(&str, &str, Need)| {
            (((*method).to_owned(), (*path).to_owned()), written(*need))
        };
        let table: BTreeMap<_, _> = ROUTES.iter().map(row).collect();
        assert_eq!(table.len(), ROUTES.len(), "a route stands there twice");
        assert_eq!(table, described);
    }

    #[test]
    fn what_is_not_in_the_table_lets_nobody_through() {
        assert_eq!(need(&Method::GET, "/v2"), None);
        assert_eq!(need(&Method::PATCH, "/v1/runs/{id}"), None);
        assert_eq!(need(&Method::HEAD, "/v1/runs"), Some(READ));
    }
}
