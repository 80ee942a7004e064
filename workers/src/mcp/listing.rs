//! The tools of a server, page by page.
//!
//! Leaves what they mean to the catalogue. Invariant: it ends, whatever cursors a server makes up; a tool that cannot be read costs
//! itself and no other.

use std::collections::BTreeSet;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};

use super::catalogue::Offered;
use crate::Json;
use crate::limits::{LIST_PAGES_MAX, LIST_TOOLS_MAX};

/// The tools of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// In the server's order, each name once.
    pub(super) tools: Vec<Offered>,
    /// What was odd about the list.
    pub(super) warnings: Vec<String>,
}

impl Listing {
    /// How many tools were looked at.
    fn seen(&self) -> usize {
        self.tools.len() + self.warnings.len()
    }
}

/// Asks for all pages.
pub(super) async fn list(peer: &Peer<RoleClient>, server: &str) -> Result<Listing, ServiceError> {
    let mut listing = Listing::default();
    let (mut names, mut cursors) = (BTreeSet::new(), BTreeSet::new());
    let mut cursor: Option<String> = None;
    for page in 1.. {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let asked = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        let (tools, next) = page_of(&asked.await_response().await?);
        for tool in tools.iter().take(LIST_TOOLS_MAX.saturating_sub(listing.seen())) {
            match Offered::read(server, tool) {
                Ok(tool) if names.insert(tool.name.clone()) => listing.tools.push(tool),
                // While a list changes, a tool may come on two pages.
                Ok(tool) => listing.warnings.push(format!("{} is listed twice", tool.name)),
                Err(why) => listing.warnings.push(why),
            }
        }
        let Some(next) = next.filter(|next| !next.is_empty()) else { break };
        let end = if !cursors.insert(next.clone()) {
            "the list repeats a page: it ends there"
        } else if page >= LIST_PAGES_MAX || listing.seen() >= LIST_TOOLS_MAX {
            "the list is too long: the rest of it is left out"
        } else {
            cursor = Some(next);
            continue;
        };
        listing.warnings.push(end.to_owned());
        break;
    }
    for warning in &listing.warnings {
        tracing::warn!(server, warning, "the tools of an MCP server");
    }
    Ok(listing)
}

/// The tools of a page, and the next cursor. A page that the library cannot read as a whole is read tool by tool.
fn page_of(result: &ServerResult) -> (Vec<Json>, Option<String>) {
    let page = serde_json::to_value(result).unwrap_or_default();
    let tools = page.get("tools").and_then(Json::as_array).cloned().unwrap_or_default();
    (tools, page.get("nextCursor").and_then(Json::as_str).map(str::to_owned))
}
