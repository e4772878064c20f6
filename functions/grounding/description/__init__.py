"""How the HTTPS API describes itself. Only `page` is imported before somebody asks."""
