//! Calls about whole runs and the whole store.

use std::path::Path;
use std::time::Duration;

use hyper::Method;
use outlast_kernel::Json;
use outlast_protocol::requests::{Compatibility, Fork, List, Migrate, Retention};
use outlast_protocol::run::RunView;
use serde_json::json;

use super::{Called, Client, Started, encode, path, query};
use crate::limits::{ANSWER_MS_MAX, WHOLE_MS_MAX};

impl Client {
    /// Forks a run, or finds the fork that an equal request made.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Invalid`], [`outlast_protocol::Code::Conflict`].
    pub async fn fork(&self, run: &str, request: &Fork) -> Called<Started> {
        self.post(path(run, "/fork")?, request).await
    }

    /// Returns the runs that share histories with a run, each before its forks.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn tree(&self, run: &str) -> Called<List<RunView>> {
        self.get(path(run, "/tree")?).await
    }

    /// Migrates a run to a deployed machine, or returns why it cannot be now.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Invalid`].
    pub async fn migrate(&self, run: &str, request: &Migrate) -> Called<Json> {
        self.post(path(run, "/migrate")?, request).await
    }

    /// Returns whether a run could go on with a machine.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Invalid`].
    pub async fn compatibility(&self, run: &str, request: &Compatibility) -> Called<Json> {
        self.post(path(run, "/compatibility")?, request).await
    }

    /// Returns a page of the records of a run.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn export(&self, run: &str, cursor: Option<&str>) -> Called<List<Json>> {
        let path = path(run, "/export")? + &query(&[("cursor", cursor)]);
        self.call::<(), _>(Method::GET, path, None, whole()).await
    }

    /// Keeps a run that was exported, or finds it.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Invalid`], [`outlast_protocol::Code::Conflict`], [`outlast_protocol::Code::Forbidden`] unless the
    /// server is called through its owner's socket.
    pub async fn import(&self, records: &[Json]) -> Called<Started> {
        let body = json!({ "records": records });
        self.call(Method::POST, "/v1/import".to_owned(), Some(&body), whole()).await
    }

    /// Copies the store into a new directory.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Invalid`], [`outlast_protocol::Code::Forbidden`].
    pub async fn backup(&self, directory: &Path) -> Called<Json> {
        let body = json!({ "directory": directory });
        self.call(Method::POST, "/v1/backup".to_owned(), Some(&body), whole()).await
    }

    /// Deletes a run that has ended, with its history.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Conflict`] if it has not ended.
    pub async fn delete(&self, run: &str) -> Called<Json> {
        let patience = Duration::from_millis(ANSWER_MS_MAX);
        self.call::<(), _>(Method::DELETE, path(run, "")?, None, patience).await
    }

    /// Keeps bytes under their hash, which is returned, until an event names them, for an hour at most.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::TooLarge`], [`outlast_protocol::Code::DiskFull`].
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Called<String> {
        let hash = blake3::hash(&bytes).to_hex().to_string();
        self.call_raw(Method::PUT, format!("/v1/blobs/{hash}"), Some(bytes), whole()).await?;
        Ok(hash)
    }

    /// Returns bytes by their hash.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn blob(&self, hash: &str) -> Called<Vec<u8>> {
        self.call_raw(Method::GET, format!("/v1/blobs/{}", encode(hash)), None, whole()).await
    }

    /// Returns how long ended runs are kept.
    ///
    /// # Errors
    /// As every call: see [`super::ClientError`].
    pub async fn retention(&self) -> Called<Retention> {
        self.get("/v1/retention".to_owned()).await
    }

    /// Says how long ended runs are kept.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Invalid`].
    pub async fn put_retention(&self, retention: &Retention) -> Called<Retention> {
        let patience = Duration::from_millis(ANSWER_MS_MAX);
        self.call(Method::PUT, "/v1/retention".to_owned(), Some(retention), patience).await
    }

    /// Returns the bytes that a run has for itself.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn usage(&self, run: &str) -> Called<Json> {
        self.get(path(run, "/usage")?).await
    }

    /// Returns the bytes of a page of runs.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::InvalidCursor`].
    pub async fn usages(&self, cursor: Option<&str>) -> Called<List<Json>> {
        self.get(format!("/v1/usage{}", query(&[("cursor", cursor)]))).await
    }
}

fn whole() -> Duration {
    Duration::from_millis(WHOLE_MS_MAX)
}
