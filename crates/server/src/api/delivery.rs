//! Joins what connections know with what the service asks of them.

use async_trait::async_trait;

use crate::net::DeliveryProbe;
use crate::service::ClientConnection;

#[async_trait]
impl ClientConnection for DeliveryProbe {
    fn answer_ends(&self) {
        DeliveryProbe::answer_ends(self);
    }

    fn is_sent(&self) -> bool {
        DeliveryProbe::is_sent(self)
    }

    fn is_known_broken(&self) -> bool {
        DeliveryProbe::is_known_broken(self)
    }

    async fn is_broken(&self) -> bool {
        DeliveryProbe::is_broken(self).await
    }
}
