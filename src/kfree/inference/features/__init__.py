"""Binary latent features: rows that are sums of some of K means; K given, grown, or paid for."""
