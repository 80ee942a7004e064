//! Deploying flows: text is checked, and the machines are kept for as long as a run needs them.
//!
//! Leaves finding faults to the dsl. Invariant: a deployment is durable as a whole or not at all.

use std::sync::Arc;

use outlast_dsl::diag::{Diagnostic, Sources};
use outlast_dsl::{Checked, SourceFile, check, part};
use outlast_protocol::requests::{Deploy, FlowView};
use outlast_protocol::{ApiError, Code};

use super::flows::Source;
use super::{Engine, errors, flows};

/// Why flows are not deployed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// Their text has faults.
    #[error("the flows have faults")]
    Invalid {
        /// The faults, and warnings beside them.
        diagnostics: Vec<Diagnostic>,
        /// The files that they are about.
        sources: Sources,
    },
    /// Something else than their text.
    #[error(transparent)]
    Other(#[from] ApiError),
}

impl Engine {
    /// Checks and deploys the flows of the files that no other file of the request uses; what is deployed stays in the store. Paths in
    /// `use` lead from file to file by their names in the request.
    ///
    /// # Errors
    /// The diagnostics of the text, or what else went wrong.
    pub async fn deploy(&self, request: Deploy) -> Result<Vec<FlowView>, DeployError> {
        self.deploy_if(request, &|_| true).await
    }

    /// As [`Engine::deploy`], for somebody who may not deploy each flow; [`Code::Forbidden`] for one of which `may` says no.
    pub(crate) async fn deploy_if(
        &self,
        request: Deploy,
        may: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<FlowView>, DeployError> {
        let profile = request.profile;
        let files = request.files.into_iter().map(|file| SourceFile { name: file.name, text: file.text });
        let (files, mut attachments) = part(files.collect());
        let checking = tokio::task::spawn_blocking(move || {
            let checked = check(&files, &attachments);
            attachments.retain(|name, _| checked.files.iter().all(|file| file.name != *name));
            (attachments, checked)
        });
        let (attachments, checked) = checking
            .await
            .map_err(|e| ApiError::new(Code::Internal, format!("the flows could not be checked: {e}")))?;
        let Checked { flows: checked, files, diagnostics, tests: _ } = checked;
        if checked.is_empty() && !diagnostics.iter().any(Diagnostic::is_error) {
            let error = ApiError::new(Code::Invalid, "there is no flow in these files").at("files");
            return Err(error.hint("declare one: flow NAME() -> TYPE { … }").into());
        }
        if diagnostics.iter().any(Diagnostic::is_error) {
            let mut sources = Sources::default();
            for file in files {
                sources.add(file.name, file.text);
            }
            return Err(DeployError::Invalid { diagnostics, sources });
        }
        if let Some(flow) = checked.iter().find(|flow| !may(&flow.name)) {
            let message = format!("the token does not allow flow {}", flow.name);
            return Err(ApiError::new(Code::Forbidden, message).hint("leave it out").into());
        }
        let mut puts = Vec::new();
        let mut deployed = Vec::new();
        for flow in checked {
            let hash = flow.machine.hash().0;
            // Who names no profile leaves the one that the flow was deployed with before.
            let view = FlowView {
                profile: profile.clone().or_else(|| self.flow(&flow.name)?.profile),
                name: flow.name,
                version: flow.version,
                machine: hash,
            };
            let source = Source {
                places: flow.places,
                files: files.iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
                attachments: attachments.clone(),
            };
            puts.extend(flows::records(&view, &flow.machine, &source));
            deployed.push((view, Arc::new(flow.machine)));
        }
        self.core.ctx.committer.put(puts).await.map_err(|refused| errors::refused(&refused))?;
        let views = deployed.iter().map(|(view, _)| view.clone()).collect();
        for (view, machine) in deployed {
            self.core.ctx.flows.deployed(view, machine);
        }
        Ok(views)
    }

    /// Returns a deployed flow.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<FlowView> {
        self.core.ctx.flows.get(name)
    }

    /// Returns the deployed flows by name.
    ///
    /// # Errors
    /// [`Code::Internal`].
    pub fn flows(&self) -> Result<Vec<FlowView>, ApiError> {
        Ok(self.core.ctx.flows.list())
    }
}
