"""The page, through real parts: a simulated engine over HTTP, an inventory and the page as processes."""
