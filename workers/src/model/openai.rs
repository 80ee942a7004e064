//! Chat completions, to come.

use super::{Completion, ModelError, Provider, Request};
use crate::options::OpenAiSettings;
use crate::sdk::TaskContext;

pub(crate) struct OpenAi;
impl OpenAi {
    pub(crate) fn new(_settings: &OpenAiSettings) -> Result<OpenAi, String> {
        Err("openai is not built in yet".to_owned())
    }
}
#[async_trait::async_trait]
impl Provider for OpenAi {
    async fn complete(&self, _request: &Request, _task: &TaskContext) -> Result<Completion, ModelError> {
        Err(ModelError::new(super::error::Kind::BadRequest, "openai is not built in yet"))
    }
}
