"""Services of others, on loopback, as their documentation says they answer."""
