//! From a socket that is up to a connection that is secure, where it is to be: the question in clear that some
//! protocols put first, and the beginning of TLS.

use super::Shard;
use super::connections::State;
use super::line::LayerError;
use crate::net::Net;
use crate::tls::{TlsRefusal, layer_of};
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::{Layer, Protocol};

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// The socket is connected: TLS or what comes before it, or else the codec, takes over.
    pub(super) fn secure(&mut self, key: u32) {
        if self.plan.tls.is_none() {
            return self.opened(key);
        }
        let question = self.protocol.preamble();
        if question.is_empty() {
            return self.begin_tls(key);
        }
        self.connections.get_mut(key).begin_handshake();
        if self.line.write(key, question).is_err() {
            self.open_failed(key, Failure::Tls, "the connection broke when TLS was asked for");
        }
    }

    /// Returns true if a connection waits for the answer to what it asked in clear.
    pub(super) fn has_asked(&self, key: u32) -> bool {
        self.connections.get(key).state() == State::Handshaking && self.line.tls(key).is_none()
    }

    /// The answer is there.
    pub(super) fn answered(&mut self, key: u32, bytes: &[u8]) {
        match layer_of(&self.protocol, bytes) {
            Ok(Layer::Tls) => self.begin_tls(key),
            Ok(Layer::Clear) => self.opened(key),
            Err(refusal) => self.open_failed(key, Failure::Tls, &refusal),
        }
    }

    fn begin_tls(&mut self, key: u32) {
        let Some(tls) = &self.plan.tls else { return };
        let target = &self.plan.targets[self.connections.get(key).target() as usize];
        let session = tls
            .name(&target.host)
            .map_err(|e| e.to_string())
            .and_then(|name| tls.connection(name).map_err(|e| e.to_string()));
        match session {
            Ok(session) => {
                self.connections.get_mut(key).begin_handshake();
                if self.line.begin_tls(key, session).is_err() {
                    self.open_failed(key, Failure::Tls, "the connection broke in the handshake");
                }
            }
            Err(reason) => self.open_failed(key, Failure::Tls, &reason),
        }
    }

    /// TLS came to an end that it should not have come to.
    pub(super) fn tls_failed(&mut self, key: u32, error: &LayerError) {
        let is_handshaking = self.connections.get(key).state() == State::Handshaking;
        let refusal = match (error, &self.plan.tls) {
            (LayerError::Tls(error), Some(tls)) => tls.refusal(error, is_handshaking),
            (LayerError::Tls(error), None) => TlsRefusal::Other(error.to_string()),
            (LayerError::Net(error), _) => TlsRefusal::Other(error.to_string()),
        };
        if is_handshaking {
            self.open_failed(key, Failure::Tls, &refusal);
        } else {
            self.lose(key, Failure::Tls, &refusal);
        }
    }
}
